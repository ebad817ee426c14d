//! Nodes: attributes, symlinks, extended attributes.

use super::pointers::{Chars, Cx, Fs, give, give_bytes, node};
use crate::abi::{VolaryAttr, VolaryNode, VolarySetAttr};
use crate::convert;
use crate::export::driver::Exported;
use crate::export::enter::enter;
use crate::slot::bytes;
use std::ffi::{c_char, c_void};
use volary_core::{Access, Kind};

pub(super) unsafe extern "C" fn getattr(
    fs: Fs,
    cx: Cx,
    of: VolaryNode,
    out: *mut VolaryAttr,
) -> i32 {
    unsafe { enter(fs, cx, |fs, cx| Ok(give(out, &fs.getattr(cx, node(of)?)?))) }
}

pub(super) unsafe extern "C" fn setattr(
    fs: Fs,
    cx: Cx,
    of: VolaryNode,
    set: *const VolarySetAttr,
    out: *mut VolaryAttr,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let set = convert::set(set.as_ref().ok_or(Kind::Invalid)?);
            Ok(give(out, &fs.setattr(cx, node(of)?, &set)?))
        })
    }
}

pub(super) unsafe extern "C" fn access(fs: Fs, cx: Cx, of: VolaryNode, want: u32) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let want = Access(want as u8);
            fs.access(cx, node(of)?, want).map(|may| may.0.into())
        })
    }
}

pub(super) unsafe extern "C" fn readlink(
    fs: Fs,
    cx: Cx,
    of: VolaryNode,
    buf: *mut c_char,
    room: usize,
) -> i64 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            Ok(give_bytes(&fs.readlink(cx, node(of)?)?, buf.cast(), room))
        })
    }
}

pub(super) unsafe extern "C" fn getxattr(
    fs: Fs,
    cx: Cx,
    of: VolaryNode,
    at: Chars,
    len: usize,
    buf: *mut c_void,
    room: usize,
) -> i64 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let value = fs.getxattr(cx, node(of)?, bytes(at.cast(), len))?;
            Ok(give_bytes(&value, buf, room))
        })
    }
}

pub(super) unsafe extern "C" fn setxattr(
    fs: Fs,
    cx: Cx,
    of: VolaryNode,
    at: Chars,
    len: usize,
    value: *const c_void,
    value_len: usize,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let (name, value) = (bytes(at.cast(), len), bytes(value, value_len));
            fs.setxattr(cx, node(of)?, name, value).map(|()| 0)
        })
    }
}

pub(super) unsafe extern "C" fn listxattr(
    fs: Fs,
    cx: Cx,
    of: VolaryNode,
    buf: *mut c_char,
    room: usize,
) -> i64 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let mut all = Vec::new();
            for name in fs.listxattr(cx, node(of)?)? {
                all.extend_from_slice(&name);
                all.push(0);
            }
            Ok(give_bytes(&all, buf.cast(), room))
        })
    }
}

pub(super) unsafe extern "C" fn removexattr(
    fs: Fs,
    cx: Cx,
    of: VolaryNode,
    at: Chars,
    len: usize,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let name = bytes(at.cast(), len);
            fs.removexattr(cx, node(of)?, name).map(|()| 0)
        })
    }
}

pub(super) unsafe extern "C" fn forget(fs: Fs, of: VolaryNode, lookups: u64) {
    let forget = || {
        let exported = unsafe { fs.cast::<Exported>().as_ref() };
        if let (Some(exported), Ok(of)) = (exported, node(of))
            && let Some(attached) = exported.attached.read().as_ref()
        {
            attached.fs.forget(of, lookups);
        }
    };
    // It is a hint, so a panic has no caller to report to.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(forget));
}
