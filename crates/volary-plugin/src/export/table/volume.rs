//! The volume as a whole: attaching, abilities, detaching.

use super::pointers::{Cx, Fs};
use crate::abi::{
    VOLARY_INVALID, VOLARY_STALE, VolaryAttach, VolaryCaps, VolaryHost, VolaryStatFs,
};
use crate::convert;
use crate::export::driver::{Attached, Exported, Opening};
use crate::export::enter::{enter, guarded};
use crate::export::told::Told;
use std::sync::Arc;
use volary_core::{Attach, Caps, Error, Kind};

pub(super) unsafe extern "C" fn attach(
    fs: Fs,
    cx: Cx,
    host: *const VolaryHost,
    how: *const VolaryAttach,
) -> i32 {
    unsafe {
        guarded(fs, cx, |exported: &Exported, cx| {
            let how = how.as_ref().ok_or(Kind::Invalid)?;
            let invalid = || Error::note(Kind::Invalid, "the configuration is no UTF-8");
            let config = std::str::from_utf8(&exported.config).map_err(|_| invalid())?;
            let attach = Attach {
                read_only: how.read_only != 0,
                memory: how.memory,
                uid: how.uid,
                gid: how.gid,
                umask: how.umask,
                ..Attach::default()
            };
            let opening = Opening {
                config,
                attach: &attach,
                now: cx.now,
            };
            let fs = (exported.driver.open)(&opening)?;
            let told = Told(host);
            let watches = fs.caps().has(Caps::WATCH);
            let watch = watches.then(|| fs.watch(Arc::new(told))).transpose()?;
            *exported.attached.write() = Some(Attached {
                fs,
                told,
                _watch: watch,
            });
            Ok(0)
        })
    }
}

pub(super) unsafe extern "C" fn release(fs: Fs) {
    if fs.is_null() {
        return;
    }
    let exported = unsafe { Box::from_raw(fs.cast::<Exported>()) };
    // If a driver panics while it is dropped, the panic must not reach C.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(exported)));
}

pub(super) unsafe extern "C" fn caps(fs: Fs, out: *mut VolaryCaps) -> i32 {
    let Some(exported) = (unsafe { fs.cast::<Exported>().as_ref() }) else {
        return VOLARY_INVALID;
    };
    let attached = exported.attached.read();
    let Some(attached) = attached.as_ref() else {
        return VOLARY_STALE;
    };
    let caps = attached.fs.caps();
    let said = VolaryCaps {
        can: caps.bits,
        name_max: caps.name_max.into(),
        size_max: caps.size_max.min(i64::MAX as u64),
        time_step: caps.time_step,
        root: convert::to_node(attached.fs.root()),
        serial: 0,
        commit_ms: u32::try_from(attached.fs.commit_time().as_millis()).unwrap_or(0),
    };
    unsafe { out.write(said) };
    0
}

pub(super) unsafe extern "C" fn statfs(fs: Fs, cx: Cx, out: *mut VolaryStatFs) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            out.write(convert::to_statfs(&fs.statfs(cx)?));
            Ok(0)
        })
    }
}

pub(super) unsafe extern "C" fn sync(fs: Fs, cx: Cx) -> i32 {
    unsafe { enter(fs, cx, |fs, cx| fs.sync(cx).map(|()| 0)) }
}

pub(super) unsafe extern "C" fn detach(fs: Fs, cx: Cx) -> i32 {
    unsafe { enter(fs, cx, |fs, cx| fs.detach(cx).map(|()| 0)) }
}
