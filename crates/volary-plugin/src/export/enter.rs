//! One call: from C's context to volary's and back, with panics caught.

use super::driver::Exported;
use crate::abi::VolaryContext;
use crate::convert;
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use volary_core::{Cancel, Cred, Ctx, Error, FileSystem, Kind, Result, Time};

thread_local! {
    /// The context of this thread's current call.
    static CURRENT: Cell<*const VolaryContext> = const { Cell::new(std::ptr::null()) };
}

/// Returns a time of 1 once the host's caller has lost interest in this thread's call, otherwise 0.
/// It is the clock of a [`Cancel`] whose deadline is 1.
#[expect(unsafe_code, reason = "asks the host")]
fn asked() -> Time {
    let cx = CURRENT.get();
    // SAFETY: a context is there while its call is.
    let is_over = unsafe {
        cx.as_ref()
            .and_then(|c| c.cancelled)
            .is_some_and(|cancelled| cancelled(cx) != 0)
    };
    Time::from_secs(is_over.into())
}

/// A result for C: a number, or an error's code.
pub(super) trait Answer {
    fn error(code: i32) -> Self;
}

impl Answer for i32 {
    fn error(code: i32) -> Self {
        code
    }
}

impl Answer for i64 {
    fn error(code: i32) -> Self {
        code.into()
    }
}

/// Calls the driver, as the caller that C's context names.
///
/// # Safety
/// `fs` points to an [`Exported`], and `cx` is the host's, of this call.
#[expect(unsafe_code, reason = "both come from C")]
pub(super) unsafe fn enter<R: Answer>(
    fs: *mut c_void,
    cx: *const VolaryContext,
    call: impl FnOnce(&dyn FileSystem, &Ctx<'_>) -> Result<R>,
) -> R {
    // SAFETY: as the caller promises.
    unsafe {
        guarded(fs, cx, |exported, cx| {
            let attached = exported.attached.read();
            let attached = attached.as_ref().ok_or(Kind::Stale)?;
            let done = call(&*attached.fs, cx);
            attached.told.findings(&*attached.fs);
            done
        })
    }
}

/// Does the same, whether the driver is attached or not.
///
/// # Safety
/// As for [`enter`].
#[expect(unsafe_code, reason = "both come from C")]
pub(super) unsafe fn guarded<R: Answer>(
    fs: *mut c_void,
    cx: *const VolaryContext,
    call: impl FnOnce(&Exported, &Ctx<'_>) -> Result<R>,
) -> R {
    // SAFETY: as the caller promises.
    let (Some(exported), Some(c)) = (unsafe { (fs.cast::<Exported>().as_ref(), cx.as_ref()) })
    else {
        return R::error(convert::code(Kind::Invalid));
    };
    // SAFETY: the context's groups are there for the time of the call.
    let groups: Arc<[u32]> = match c.group_count {
        0 => Arc::from([]),
        n => Arc::from(unsafe { std::slice::from_raw_parts(c.groups, n as usize) }),
    };
    let cred = Cred {
        uid: c.uid,
        gid: c.gid,
        groups,
    };
    let cancel = Cancel::until(Time::from_secs(1), asked, None);
    let ctx = Ctx {
        cred: &cred,
        now: Time::new(c.now.secs, c.now.nanos),
        cancel: &cancel,
    };
    let before = CURRENT.replace(cx);
    let done = catch_unwind(AssertUnwindSafe(|| call(exported, &ctx)));
    CURRENT.set(before);
    let done = done.unwrap_or_else(|panic| {
        let words = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let words = format!("the driver panicked: {}", words.unwrap_or("no words"));
        Err(Error::note(Kind::Io, words))
    });
    done.unwrap_or_else(|e| {
        // SAFETY: the context is the host's, of this call.
        unsafe { note(c, &e) }
        R::error(convert::code(e.kind()))
    })
}

/// Writes an error's message into the context.
///
/// # Safety
/// The buffer has as many bytes as `c` says.
#[expect(unsafe_code, reason = "the note is a buffer of C")]
unsafe fn note(c: &VolaryContext, e: &Error) {
    let words = e.to_string();
    if c.note.is_null() || c.note_room == 0 || words == e.kind().words() {
        return;
    }
    let mut len = words.len().min(c.note_room - 1);
    while !words.is_char_boundary(len) {
        len -= 1;
    }
    // SAFETY: as the caller promises.
    unsafe {
        std::ptr::copy_nonoverlapping(words.as_ptr(), c.note.cast(), len);
        *c.note.add(len) = 0;
    }
}
