//! One call of a table: its context, its session, its turn, and the check of its result.

use super::hooks::Hooks;
use super::sessions::{Session, Sessions};
use crate::abi::{VolaryAttach, VolaryCaps, VolaryContext, VolaryHost, VolaryNode};
use crate::names::Names;
use crate::slot::{Lent, Slot};
use parking_lot::Mutex;
use std::ffi::c_void;
use std::sync::Arc;
use volary_core::{Caps, Cred, Ctx, DirBuf, Error, Kind, Result};

/// The longest result of variable length: a symlink's target, an extended attribute.
const ANSWER_MAX: usize = 1 << 20;
/// The first size of the buffer for such a result.
const ANSWER_ROOM: usize = 4 << 10;

/// Splits a list of extended attributes' names, each of which ends with NUL.
///
/// # Errors
/// `Io` if the list is malformed.
pub(crate) fn list_of_names(all: &[u8]) -> Result<Vec<Vec<u8>>> {
    let Some(rest) = all.strip_suffix(b"\0") else {
        return match all.is_empty() {
            true => Ok(Vec::new()),
            false => Err(lie("listxattr", "gave a name without an end")),
        };
    };
    let names: Vec<Vec<u8>> = rest.split(|&b| b == 0).map(<[u8]>::to_vec).collect();
    match names.iter().any(Vec::is_empty) {
        true => Err(lie("listxattr", "gave an empty name")),
        false => Ok(names),
    }
}

/// Returns the error for an impossible result.
pub(crate) fn lie(what: &str, words: &str) -> Error {
    Error::note(Kind::Io, format!("the plug-in's {what} {words}"))
}

pub(crate) struct Calls {
    hooks: Hooks,
    host: *const VolaryHost,
    caps: Caps,
    serial: Option<Mutex<()>>,
    sessions: Sessions,
}

#[expect(
    unsafe_code,
    reason = "the table says that it can be called from any thread"
)]
// SAFETY: its pointers are the plug-in's own; `serial` serialises calls if the plug-in wants one at
// a time.
unsafe impl Send for Calls {}
#[expect(
    unsafe_code,
    reason = "the table says that it can be called from any thread"
)]
// SAFETY: as above.
unsafe impl Sync for Calls {}

impl Calls {
    pub(super) fn new(hooks: Hooks, host: *const VolaryHost) -> Self {
        Self {
            hooks,
            host,
            caps: Caps {
                bits: Caps::CASE_SENSITIVE | Caps::CASE_KEEPING | Caps::ANY_NAME,
                name_max: 255,
                size_max: i64::MAX as u64,
                time_step: 1,
            },
            serial: None,
            sessions: Sessions::default(),
        }
    }

    pub(super) fn set_serial(&mut self, is_serial: bool) {
        self.serial = is_serial.then(Mutex::default);
    }

    pub(super) fn set_caps(&mut self, caps: Caps) {
        self.caps = caps;
    }

    #[expect(unsafe_code, reason = "calls the plug-in")]
    pub(super) fn attach(&self, cx: &Ctx<'_>, how: &VolaryAttach) -> Result<()> {
        let Some(attach) = self.hooks.attach else {
            return Ok(());
        };
        let lent = Slot::take(cx, std::ptr::null_mut());
        // SAFETY: a function of this table, with what it asks for.
        let answer = unsafe { attach(self.hooks.fs, lent.context(), self.host, how) };
        nothing("attach", &lent, answer.into())
    }

    #[expect(unsafe_code, reason = "calls the plug-in")]
    pub(super) fn caps(&self) -> Result<VolaryCaps> {
        let mut out = VolaryCaps {
            can: self.caps.bits,
            name_max: self.caps.name_max.into(),
            size_max: self.caps.size_max,
            time_step: self.caps.time_step,
            root: VolaryNode {
                ino: 1,
                generation: 0,
            },
            serial: 0,
            commit_ms: 0,
        };
        if let Some(caps) = self.hooks.caps {
            // SAFETY: a function of this table, with what it asks for.
            let answer = unsafe { caps(self.hooks.fs, &raw mut out) };
            if answer != 0 {
                return Err(lie("caps", &format!("answered {answer}")));
            }
        }
        Ok(out)
    }

    /// Makes a call that returns a number.
    ///
    /// # Errors
    /// That of a negative result.
    pub(crate) fn number<N: Into<i64>>(
        &self,
        what: &str,
        cx: &Ctx<'_>,
        call: impl FnOnce(*mut c_void, *const VolaryContext) -> N,
    ) -> Result<u64> {
        let session = self.session(cx)?;
        let at = session.as_ref().map_or(std::ptr::null_mut(), |s| s.at);
        let _turn = self.serial.as_ref().map(Mutex::lock);
        let lent = Slot::take(cx, at);
        let answer = call(self.hooks.fs, lent.context()).into();
        u64::try_from(answer).map_err(|_| lent.error(what, answer))
    }

    /// Makes a call that must return 0.
    ///
    /// # Errors
    /// That of a negative result; `Io` for a positive one.
    pub(crate) fn done(
        &self,
        what: &str,
        cx: &Ctx<'_>,
        call: impl FnOnce(*mut c_void, *const VolaryContext) -> i32,
    ) -> Result<()> {
        match self.number(what, cx, call)? {
            0 => Ok(()),
            n => Err(lie(what, &format!("answered {n}, not 0"))),
        }
    }

    /// Makes a call that fills a buffer and returns the length of the whole. If the buffer was too
    /// small, makes it again with a larger one.
    ///
    /// # Errors
    /// That of a negative result; `Io` for one that is too long.
    pub(crate) fn filled(
        &self,
        what: &str,
        cx: &Ctx<'_>,
        call: impl Fn(*mut c_void, *const VolaryContext, &mut [u8]) -> i64,
    ) -> Result<Vec<u8>> {
        let mut room = ANSWER_ROOM;
        // Another caller may have made it longer meanwhile. The bound prevents an endless loop.
        for _ in 0..8 {
            let mut buf = vec![0; room];
            let len = self.number(what, cx, |fs, cx| call(fs, cx, &mut buf))?;
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            if len <= room {
                buf.truncate(len);
                return Ok(buf);
            }
            if len > ANSWER_MAX {
                break;
            }
            room = len;
        }
        Err(lie(
            what,
            "has an answer of more than a mebibyte, or one that ever grows",
        ))
    }

    /// Lists a directory into `out`; returns true at the end.
    ///
    /// # Errors
    /// That of a negative result; `Io` for invalid entries.
    pub(super) fn list(
        &self,
        cx: &Ctx<'_>,
        from: u64,
        out: &mut DirBuf,
        call: impl FnOnce(*mut c_void, *const VolaryContext, *const crate::abi::VolaryList) -> i32,
    ) -> Result<bool> {
        let session = self.session(cx)?;
        let at = session.as_ref().map_or(std::ptr::null_mut(), |s| s.at);
        let _turn = self.serial.as_ref().map(Mutex::lock);
        let lent = Slot::take(cx, at);
        let fs = self.hooks.fs;
        let run = |list| call(fs, lent.context(), list);
        let (answer, listed) = lent.listing(out, self.caps, from, run);
        if answer < 0 {
            return Err(lent.error("readdir", answer.into()));
        }
        if let Some(words) = listed.lie {
            return Err(lie("readdir", &words));
        }
        match (answer, listed.is_full, listed.added) {
            // The plug-in got no room for an entry, so there are more.
            (_, true, _) | (0, _, 1..) => Ok(false),
            (1, ..) => Ok(true),
            (0, ..) => Err(lie("readdir", "says that there is more, and gives nothing")),
            (n, ..) => Err(lie("readdir", &format!("answered {n}, not 0 or 1"))),
        }
    }

    /// Lists all names of a directory, of at most `name_max` bytes each, within `room` bytes of
    /// memory.
    ///
    /// # Errors
    /// That of a negative result; `Io` for invalid names; `TooManyOpen` if `room` does not suffice.
    pub(crate) fn names(
        &self,
        cx: &Ctx<'_>,
        room: usize,
        call: impl FnOnce(*mut c_void, *const VolaryContext, *const crate::abi::VolaryPathList) -> i32,
    ) -> Result<Names> {
        let session = self.session(cx)?;
        let at = session.as_ref().map_or(std::ptr::null_mut(), |s| s.at);
        let _turn = self.serial.as_ref().map(Mutex::lock);
        let lent = Slot::take(cx, at);
        let fs = self.hooks.fs;
        let run = |list| call(fs, lent.context(), list);
        let (answer, listed) = lent.names(self.caps.name_max.into(), room, run);
        match (answer, listed) {
            (n, _) if n < 0 => Err(lent.error("readdir", n.into())),
            (_, Err(Some(words))) => Err(lie("readdir", &words)),
            (_, Err(None)) => {
                let words = "the directories that are being listed have no room for one more";
                Err(Error::note(Kind::TooManyOpen, words))
            }
            (0, Ok(names)) => Ok(names),
            (n, _) => Err(lie("readdir", &format!("answered {n}, not 0"))),
        }
    }

    #[expect(unsafe_code, reason = "calls the plug-in")]
    fn session(&self, cx: &Ctx<'_>) -> Result<Option<Arc<Session>>> {
        let Some(connect) = self.hooks.connect else {
            return Ok(None);
        };
        let begin = || {
            let _turn = self.serial.as_ref().map(Mutex::lock);
            let lent = Slot::take(cx, std::ptr::null_mut());
            let mut at = std::ptr::null_mut();
            // SAFETY: a function of this table, with what it asks for.
            let answer = unsafe { connect(self.hooks.fs, lent.context(), &raw mut at) };
            nothing("connect", &lent, answer.into())?;
            Ok(Session::new(at, self.hooks))
        };
        let cred: &Cred = cx.cred;
        self.sessions.of(cred, begin).map(Some)
    }
}

fn nothing(what: &str, lent: &Lent<'_>, answer: i64) -> Result<()> {
    match answer {
        0 => Ok(()),
        n if n < 0 => Err(lent.error(what, n)),
        n => Err(lie(what, &format!("answered {n}, not 0"))),
    }
}

impl Drop for Calls {
    #[expect(unsafe_code, reason = "calls the plug-in")]
    fn drop(&mut self) {
        self.sessions.end();
        if let Some(release) = self.hooks.release {
            // SAFETY: the last call of this table.
            unsafe { release(self.hooks.fs) }
        }
    }
}
