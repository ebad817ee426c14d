//! Names: finding, making, moving and removing nodes by them.

use super::pointers::{Chars, Cx, Fs, give, name, node};
use crate::abi::{VolaryAttr, VolaryNode, VolarySetAttr};
use crate::convert;
use crate::export::enter::enter;
use crate::slot::bytes;
use volary_core::{Kind, RenameFlags};

pub(super) unsafe extern "C" fn lookup(
    fs: Fs,
    cx: Cx,
    dir: VolaryNode,
    at: Chars,
    len: usize,
    out: *mut VolaryAttr,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let entry = fs.lookup(cx, node(dir)?, name(at, len)?)?;
            Ok(give(out, &entry.attr))
        })
    }
}

pub(super) unsafe extern "C" fn parent(
    fs: Fs,
    cx: Cx,
    dir: VolaryNode,
    out: *mut VolaryAttr,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            Ok(give(out, &fs.parent(cx, node(dir)?)?.attr))
        })
    }
}

pub(super) unsafe extern "C" fn create(
    fs: Fs,
    cx: Cx,
    dir: VolaryNode,
    at: Chars,
    len: usize,
    how: u32,
    set: *const VolarySetAttr,
    out: *mut VolaryAttr,
    handle: *mut u64,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let how = convert::create(how).ok_or(Kind::Invalid)?;
            let set = convert::set(set.as_ref().ok_or(Kind::Invalid)?);
            let (entry, open) = fs.create(cx, node(dir)?, name(at, len)?, how, &set)?;
            handle.write(open.0);
            Ok(give(out, &entry.attr))
        })
    }
}

pub(super) unsafe extern "C" fn mkdir(
    fs: Fs,
    cx: Cx,
    dir: VolaryNode,
    at: Chars,
    len: usize,
    set: *const VolarySetAttr,
    out: *mut VolaryAttr,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let set = convert::set(set.as_ref().ok_or(Kind::Invalid)?);
            let entry = fs.mkdir(cx, node(dir)?, name(at, len)?, &set)?;
            Ok(give(out, &entry.attr))
        })
    }
}

pub(super) unsafe extern "C" fn mknod(
    fs: Fs,
    cx: Cx,
    dir: VolaryNode,
    at: Chars,
    len: usize,
    kind: u32,
    rdev: u64,
    set: *const VolarySetAttr,
    out: *mut VolaryAttr,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let set = convert::set(set.as_ref().ok_or(Kind::Invalid)?);
            let kind = convert::file_kind(kind).map_err(|_| Kind::Invalid)?;
            let entry = fs.mknod(cx, node(dir)?, name(at, len)?, kind, rdev, &set)?;
            Ok(give(out, &entry.attr))
        })
    }
}

pub(super) unsafe extern "C" fn symlink(
    fs: Fs,
    cx: Cx,
    dir: VolaryNode,
    at: Chars,
    len: usize,
    target: Chars,
    target_len: usize,
    set: *const VolarySetAttr,
    out: *mut VolaryAttr,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let set = convert::set(set.as_ref().ok_or(Kind::Invalid)?);
            let target = bytes(target.cast(), target_len);
            let entry = fs.symlink(cx, node(dir)?, name(at, len)?, target, &set)?;
            Ok(give(out, &entry.attr))
        })
    }
}

pub(super) unsafe extern "C" fn link(
    fs: Fs,
    cx: Cx,
    of: VolaryNode,
    dir: VolaryNode,
    at: Chars,
    len: usize,
    out: *mut VolaryAttr,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let entry = fs.link(cx, node(of)?, node(dir)?, name(at, len)?)?;
            Ok(give(out, &entry.attr))
        })
    }
}

pub(super) unsafe extern "C" fn unlink(
    fs: Fs,
    cx: Cx,
    dir: VolaryNode,
    at: Chars,
    len: usize,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            fs.unlink(cx, node(dir)?, name(at, len)?).map(|()| 0)
        })
    }
}

pub(super) unsafe extern "C" fn rmdir(
    fs: Fs,
    cx: Cx,
    dir: VolaryNode,
    at: Chars,
    len: usize,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            fs.rmdir(cx, node(dir)?, name(at, len)?).map(|()| 0)
        })
    }
}

pub(super) unsafe extern "C" fn rename(
    fs: Fs,
    cx: Cx,
    from: VolaryNode,
    at: Chars,
    len: usize,
    to: VolaryNode,
    new: Chars,
    new_len: usize,
    flags: u32,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let (from, to) = (node(from)?, node(to)?);
            let (name, new_name) = (name(at, len)?, name(new, new_len)?);
            let flags = RenameFlags(flags);
            fs.rename(cx, from, name, to, new_name, flags).map(|()| 0)
        })
    }
}
