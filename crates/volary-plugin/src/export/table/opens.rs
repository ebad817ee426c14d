//! Opens: listing, reading, writing, locks.

use super::pointers::{Cx, Fs, give_bytes, node};
use crate::abi::{
    VOLARY_LOCK_EXCLUSIVE, VOLARY_LOCK_TEST, VOLARY_LOCK_UNLOCK, VolaryEntry, VolaryList,
    VolaryLock, VolaryNode, VolaryOpen,
};
use crate::convert::{self, to_attr};
use crate::export::enter::enter;
use crate::slot::bytes;
use std::ffi::c_void;
use volary_core::{Cookie, DirBuf, Kind, Lock, OpenId};

/// The most bytes of names, and the most entries, that a driver is asked for at once.
const NAMES_MAX: usize = 64 << 10;
const ENTRIES_MAX: usize = 1024;

pub(super) unsafe extern "C" fn open(
    fs: Fs,
    cx: Cx,
    of: VolaryNode,
    mode: u32,
    handle: *mut u64,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let mode = convert::mode(mode).ok_or(Kind::Invalid)?;
            handle.write(fs.open(cx, node(of)?, mode)?.0);
            Ok(0)
        })
    }
}

pub(super) unsafe extern "C" fn readdir(
    fs: Fs,
    cx: Cx,
    dir: VolaryOpen,
    from: u64,
    list: *const VolaryList,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let to = list.as_ref().ok_or(Kind::Invalid)?;
            let add = to.add.ok_or(Kind::Invalid)?;
            let mut buf = DirBuf::new(ENTRIES_MAX, NAMES_MAX, to.wants_attr != 0);
            let is_end = fs.readdir(cx, OpenId(dir.handle), Cookie(from), &mut buf)?;
            for entry in buf.iter() {
                let attr = entry.attr.as_ref().map(to_attr);
                let given = VolaryEntry {
                    next: entry.next.0,
                    node: convert::to_node(entry.node),
                    kind: convert::to_file_kind(entry.kind),
                    name_len: entry.name.len() as u32,
                    name: entry.name.as_ptr().cast(),
                    attr: attr.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
                };
                if add(list, &raw const given) == 0 {
                    return Ok(0);
                }
            }
            Ok(is_end.into())
        })
    }
}

pub(super) unsafe extern "C" fn read(
    fs: Fs,
    cx: Cx,
    file: VolaryOpen,
    offset: u64,
    buf: *mut c_void,
    len: usize,
) -> i64 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let buf = match len {
                0 => &mut [],
                _ => std::slice::from_raw_parts_mut(buf.cast(), len),
            };
            Ok(fs.read(cx, OpenId(file.handle), offset, buf)? as i64)
        })
    }
}

pub(super) unsafe extern "C" fn write(
    fs: Fs,
    cx: Cx,
    file: VolaryOpen,
    offset: u64,
    append: u32,
    data: *const c_void,
    len: usize,
) -> i64 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let at = (append == 0).then_some(offset);
            let end = fs.write(cx, OpenId(file.handle), at, bytes(data, len))?;
            i64::try_from(end).map_err(|_| Kind::TooBig.into())
        })
    }
}

pub(super) unsafe extern "C" fn fsync(fs: Fs, cx: Cx, file: VolaryOpen, data_only: u32) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            fs.fsync(cx, OpenId(file.handle), data_only != 0)
                .map(|()| 0)
        })
    }
}

pub(super) unsafe extern "C" fn allocate(
    fs: Fs,
    cx: Cx,
    file: VolaryOpen,
    offset: u64,
    len: u64,
    hole: u32,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let open = OpenId(file.handle);
            fs.allocate(cx, open, offset, len, hole != 0).map(|()| 0)
        })
    }
}

pub(super) unsafe extern "C" fn lock(
    fs: Fs,
    cx: Cx,
    file: VolaryOpen,
    lock: *const VolaryLock,
) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let lock = lock.as_ref().ok_or(Kind::Invalid)?;
            let lock = Lock {
                owner: lock.owner,
                offset: lock.offset,
                len: lock.len,
                exclusive: lock.flags & VOLARY_LOCK_EXCLUSIVE != 0,
                unlock: lock.flags & VOLARY_LOCK_UNLOCK != 0,
                test: lock.flags & VOLARY_LOCK_TEST != 0,
            };
            fs.lock(cx, OpenId(file.handle), lock).map(|()| 0)
        })
    }
}

pub(super) unsafe extern "C" fn ioctl(
    fs: Fs,
    cx: Cx,
    file: VolaryOpen,
    code: u32,
    input: *const c_void,
    len: usize,
    buf: *mut c_void,
    room: usize,
) -> i64 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let found = fs.ioctl(cx, OpenId(file.handle), code, bytes(input, len))?;
            Ok(give_bytes(&found, buf, room))
        })
    }
}

pub(super) unsafe extern "C" fn close(fs: Fs, cx: Cx, open: VolaryOpen) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            fs.close(cx, OpenId(open.handle)).map(|()| 0)
        })
    }
}
