//! [`Loaded`]: a table of functions as a [`FileSystem`](volary_core::FileSystem).
//!
//! | module | what |
//! |---|---|
//! | `calls` | one call of the table: its context, session and turn, and the check of its result |
//! | `fs` | the operations |
//! | `hooks` | functions for the volume as a whole, which both kinds of table have |
//! | `opens` | opens, numbered by the host, so that a plug-in cannot mix them up |
//! | `sessions` | `connect` and `disconnect` |
//! | `upcalls` | functions that the plug-in calls |

pub(crate) mod calls;
mod fs;
pub(crate) mod hooks;
mod opens;
mod sessions;
pub(crate) mod upcalls;

use crate::abi::{
    VOLARY_PLUGIN_VERSION, VolaryAttach, VolaryCaps, VolaryHost, VolaryNode, VolaryTable,
};
use crate::convert;
use crate::news::News;
use calls::{Calls, lie};
use hooks::Hooks;
use opens::Opens;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use volary_core::{Attach, Caps, Ctx, Error, FileSystem, Kind, NodeId, Result};

/// The end of the required functions: those up to `read`.
const TABLE_MIN: usize = offset_of!(VolaryTable, attach);
/// The largest size of a table, of any version to come.
const TABLE_MAX: usize = 64 << 10;

/// Capabilities that a table never has. The host has no function for places on a device.
const NEVER: u32 = Caps::EXTENTS;

/// A table as a file system. Every result is checked.
pub struct Loaded {
    table: Functions<VolaryTable>,
    calls: Calls,
    caps: Caps,
    root: NodeId,
    commit: Duration,
    opens: Opens,
    news: Arc<News>,
    detached: AtomicBool,
}

impl Loaded {
    /// Attaches the file system of a table.
    ///
    /// # Errors
    /// `Unsupported` for a table of another version or size; `Io` for one without a required
    /// function, or with impossible capabilities; what `attach` returns.
    ///
    /// # Safety
    /// `table` is NULL, or was returned by a plug-in of this interface's version, and is not
    /// attached yet.
    #[expect(
        unsafe_code,
        reason = "the table is a plug-in's: nothing checks its functions"
    )]
    pub unsafe fn attach(table: *const VolaryTable, how: &Attach, cx: &Ctx<'_>) -> Result<Self> {
        // SAFETY: as the caller promises.
        let table = unsafe { copied(table, TABLE_MIN)? };
        let missing = [
            ("lookup", table.lookup.is_none()),
            ("getattr", table.getattr.is_none()),
            ("readdir", table.readdir.is_none()),
            ("read", table.read.is_none()),
        ];
        check_there(&missing)?;
        let hooks = Hooks {
            fs: table.fs,
            attach: table.attach,
            release: table.release,
            caps: table.caps,
            connect: table.connect,
            disconnect: table.disconnect,
        };
        let news = Arc::new(News::default());
        let begun = Begun::new(hooks, upcalls::host(&news, true), how, cx)?;
        let root = convert::node(begun.root).map_err(|words| lie("caps", &words))?;
        Ok(Self {
            table: Functions(table),
            calls: begun.calls,
            caps: begun.caps,
            root,
            commit: begun.commit,
            opens: Opens::default(),
            news,
            detached: AtomicBool::new(false),
        })
    }
}

/// A table that may be called from any thread, as its interface demands.
pub(crate) struct Functions<T>(pub(crate) T);

#[expect(
    unsafe_code,
    reason = "the table says that it can be called from any thread"
)]
// SAFETY: its pointers are the plug-in's own; `Calls` serialises calls if the plug-in wants one at
// a time.
unsafe impl<T> Send for Functions<T> {}
#[expect(
    unsafe_code,
    reason = "the table says that it can be called from any thread"
)]
// SAFETY: as above.
unsafe impl<T> Sync for Functions<T> {}

impl<T> std::ops::Deref for Functions<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// An attached table, and the capabilities that it reported.
pub(crate) struct Begun {
    pub(crate) calls: Calls,
    pub(crate) caps: Caps,
    pub(crate) commit: Duration,
    root: VolaryNode,
}

impl Begun {
    /// Attaches the volume, and asks the plug-in for its capabilities.
    ///
    /// # Errors
    /// Those that `attach` and `caps` of the plug-in return; `Io` for impossible limits.
    pub(crate) fn new(
        hooks: Hooks,
        host: *const VolaryHost,
        how: &Attach,
        cx: &Ctx<'_>,
    ) -> Result<Self> {
        let mut calls = Calls::new(hooks, host);
        let given = VolaryAttach {
            size: size_of::<VolaryAttach>() as u32,
            read_only: how.read_only.into(),
            memory: how.memory,
            uid: how.uid,
            gid: how.gid,
            umask: how.umask,
        };
        calls.attach(cx, &given)?;
        let said = calls.caps()?;
        calls.set_serial(said.serial != 0);
        let caps = checked_caps(&said, how.read_only)?;
        calls.set_caps(caps);
        Ok(Self {
            calls,
            caps,
            commit: match said.commit_ms {
                0 => volary_core::COMMIT_TIME,
                ms => Duration::from_millis(ms.into()),
            },
            root: said.root,
        })
    }
}

impl Loaded {
    /// Returns whether the plug-in wants calls of `forget`.
    pub(crate) fn forgets(&self) -> bool {
        self.table.forget.is_some()
    }
}

/// Copies a table. Functions past its end are missing if it is shorter than the host's.
///
/// # Errors
/// `Unsupported` for another version, or if it has fewer than `least` bytes.
///
/// # Safety
/// `table` is NULL, or points to a version, a size and that many bytes. A `T` begins with these
/// two, and may be all zeros.
#[expect(unsafe_code, reason = "reads a table as long as it says that it is")]
pub(crate) unsafe fn copied<T: Copy>(table: *const T, least: usize) -> Result<T> {
    if table.is_null() {
        let words = format!(
            "the plug-in has no such file system in version {VOLARY_PLUGIN_VERSION} of the table"
        );
        return Err(Error::note(Kind::Unsupported, words));
    }
    // SAFETY: as the caller promises; the first two fields say how much there is.
    let [version, size] = unsafe { *table.cast::<[u32; 2]>() };
    let size = size as usize;
    if version != VOLARY_PLUGIN_VERSION {
        let words = format!(
            "the plug-in's table is of version {version}, and this program's of \
             {VOLARY_PLUGIN_VERSION}; build it anew with this program's volary_plugin.h"
        );
        return Err(Error::note(Kind::Unsupported, words));
    }
    if !(least..=TABLE_MAX).contains(&size) || !size.is_multiple_of(align_of::<T>()) {
        let words = format!(
            "the plug-in's table says that it has {size} bytes, which no table of version \
             {version} has; set its size to sizeof of its type"
        );
        return Err(Error::note(Kind::Unsupported, words));
    }
    let mut own = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: the source has `size` bytes, the target those of a table; zeros are no functions.
    unsafe {
        let len = size.min(size_of::<T>());
        std::ptr::copy_nonoverlapping(table.cast::<u8>(), own.as_mut_ptr().cast(), len);
        Ok(own.assume_init())
    }
}

/// # Errors
/// `Io`, with the name of the first missing function.
pub(crate) fn check_there(missing: &[(&str, bool)]) -> Result<()> {
    match missing.iter().find(|(_, is_missing)| *is_missing) {
        Some((name, _)) => {
            let words = format!("the plug-in's table has no function {name}, which must be there");
            Err(Error::note(Kind::Io, words))
        }
        None => Ok(()),
    }
}

/// # Errors
/// `Io` for impossible limits.
fn checked_caps(said: &VolaryCaps, read_only: bool) -> Result<Caps> {
    let name_max = u16::try_from(said.name_max).ok().filter(|&n| n > 0);
    let Some(name_max) = name_max else {
        return Err(lie(
            "caps",
            &format!("gave {} as the longest name", said.name_max),
        ));
    };
    if said.size_max > i64::MAX as u64 {
        return Err(lie(
            "caps",
            &format!("gave {} as the largest file", said.size_max),
        ));
    }
    let caps = Caps {
        bits: said.can,
        name_max,
        size_max: said.size_max,
        time_step: said.time_step.max(1),
    };
    let never = NEVER | if read_only { Caps::WRITE } else { 0 };
    Ok(caps.without(never))
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut f = f.debug_struct("Loaded");
        f.field("caps", &self.caps()).field("root", &self.root);
        f.finish_non_exhaustive()
    }
}
