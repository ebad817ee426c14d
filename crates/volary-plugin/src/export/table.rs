//! The functions of an exported driver.

#![expect(unsafe_code, reason = "each is called by a host of C, with pointers")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "all for one reason: the host gives each function what the table says"
)]

use super::enter::{Told, enter, guarded};
use super::{Attached, Exported, Opening};
use crate::abi::*;
use crate::convert::{self, to_attr};
use crate::slot::bytes;
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use volary_core::{
    Access, Attach, Attr, Caps, Cookie, DirBuf, Error, Kind, Lock, Name, NodeId, OpenId,
    RenameFlags, Result,
};

type Fs = *mut c_void;
type Cx = *const VolaryContext;
type Chars = *const c_char;

/// Names of one listing that a driver is asked for, in bytes.
const NAMES_MAX: usize = 64 << 10;
const ENTRIES_MAX: usize = 1024;

pub(super) const TABLE: VolaryTable = VolaryTable {
    version: VOLARY_PLUGIN_VERSION,
    size: size_of::<VolaryTable>() as u32,
    fs: std::ptr::null_mut(),
    lookup: Some(lookup),
    getattr: Some(getattr),
    readdir: Some(readdir),
    read: Some(read),
    attach: Some(attach),
    release: Some(release),
    caps: Some(caps),
    connect: None,
    disconnect: None,
    statfs: Some(statfs),
    sync: Some(sync),
    detach: Some(detach),
    parent: Some(parent),
    create: Some(create),
    mkdir: Some(mkdir),
    mknod: Some(mknod),
    symlink: Some(symlink),
    link: Some(link),
    unlink: Some(unlink),
    rmdir: Some(rmdir),
    rename: Some(rename),
    setattr: Some(setattr),
    access: Some(access),
    readlink: Some(readlink),
    getxattr: Some(getxattr),
    setxattr: Some(setxattr),
    listxattr: Some(listxattr),
    removexattr: Some(removexattr),
    forget: Some(forget),
    open: Some(open),
    write: Some(write),
    fsync: Some(fsync),
    allocate: Some(allocate),
    lock: Some(lock),
    ioctl: Some(ioctl),
    close: Some(close),
};

/// A table without functions.
#[cfg(feature = "fuzzing")]
pub(crate) const EMPTY: VolaryTable = VolaryTable {
    version: VOLARY_PLUGIN_VERSION,
    size: size_of::<VolaryTable>() as u32,
    fs: std::ptr::null_mut(),
    lookup: None,
    getattr: None,
    readdir: None,
    read: None,
    attach: None,
    release: None,
    caps: None,
    connect: None,
    disconnect: None,
    statfs: None,
    sync: None,
    detach: None,
    parent: None,
    create: None,
    mkdir: None,
    mknod: None,
    symlink: None,
    link: None,
    unlink: None,
    rmdir: None,
    rename: None,
    setattr: None,
    access: None,
    readlink: None,
    getxattr: None,
    setxattr: None,
    listxattr: None,
    removexattr: None,
    forget: None,
    open: None,
    write: None,
    fsync: None,
    allocate: None,
    lock: None,
    ioctl: None,
    close: None,
};

fn node(n: VolaryNode) -> Result<NodeId> {
    convert::node(n).map_err(|_| Kind::Stale.into())
}

/// # Safety
/// There are `len` bytes at `at`.
unsafe fn name<'a>(at: Chars, len: usize) -> Result<Name<'a>> {
    Ok(Name::new(unsafe { bytes(at.cast(), len) })?)
}

/// Gives attributes.
///
/// # Safety
/// There is room for them at `out`.
unsafe fn give(out: *mut VolaryAttr, attr: &Attr) -> i32 {
    unsafe { out.write(to_attr(attr)) };
    0
}

/// Gives bytes, if there is room, and says how many there are.
///
/// # Safety
/// There are `room` bytes at `buf`.
unsafe fn give_bytes(found: &[u8], buf: *mut c_void, room: usize) -> i64 {
    if found.len() <= room && !found.is_empty() {
        unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), buf.cast(), found.len()) };
    }
    found.len() as i64
}

unsafe extern "C" fn attach(
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

unsafe extern "C" fn release(fs: Fs) {
    if fs.is_null() {
        return;
    }
    let exported = unsafe { Box::from_raw(fs.cast::<Exported>()) };
    // A driver that panics as it is dropped must not do so into C.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(exported)));
}

unsafe extern "C" fn caps(fs: Fs, out: *mut VolaryCaps) -> i32 {
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

unsafe extern "C" fn statfs(fs: Fs, cx: Cx, out: *mut VolaryStatFs) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            out.write(convert::to_statfs(&fs.statfs(cx)?));
            Ok(0)
        })
    }
}

unsafe extern "C" fn sync(fs: Fs, cx: Cx) -> i32 {
    unsafe { enter(fs, cx, |fs, cx| fs.sync(cx).map(|()| 0)) }
}

unsafe extern "C" fn detach(fs: Fs, cx: Cx) -> i32 {
    unsafe { enter(fs, cx, |fs, cx| fs.detach(cx).map(|()| 0)) }
}

unsafe extern "C" fn lookup(
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

unsafe extern "C" fn parent(fs: Fs, cx: Cx, dir: VolaryNode, out: *mut VolaryAttr) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            Ok(give(out, &fs.parent(cx, node(dir)?)?.attr))
        })
    }
}

unsafe extern "C" fn getattr(fs: Fs, cx: Cx, of: VolaryNode, out: *mut VolaryAttr) -> i32 {
    unsafe { enter(fs, cx, |fs, cx| Ok(give(out, &fs.getattr(cx, node(of)?)?))) }
}

unsafe extern "C" fn readdir(
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

unsafe extern "C" fn read(
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

unsafe extern "C" fn create(
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

unsafe extern "C" fn mkdir(
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

unsafe extern "C" fn mknod(
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

unsafe extern "C" fn symlink(
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

unsafe extern "C" fn link(
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

unsafe extern "C" fn unlink(fs: Fs, cx: Cx, dir: VolaryNode, at: Chars, len: usize) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            fs.unlink(cx, node(dir)?, name(at, len)?).map(|()| 0)
        })
    }
}

unsafe extern "C" fn rmdir(fs: Fs, cx: Cx, dir: VolaryNode, at: Chars, len: usize) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            fs.rmdir(cx, node(dir)?, name(at, len)?).map(|()| 0)
        })
    }
}

unsafe extern "C" fn rename(
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

unsafe extern "C" fn setattr(
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

unsafe extern "C" fn access(fs: Fs, cx: Cx, of: VolaryNode, want: u32) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let want = Access(want as u8);
            fs.access(cx, node(of)?, want).map(|may| may.0.into())
        })
    }
}

unsafe extern "C" fn readlink(
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

unsafe extern "C" fn getxattr(
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

unsafe extern "C" fn setxattr(
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

unsafe extern "C" fn listxattr(
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

unsafe extern "C" fn removexattr(fs: Fs, cx: Cx, of: VolaryNode, at: Chars, len: usize) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let name = bytes(at.cast(), len);
            fs.removexattr(cx, node(of)?, name).map(|()| 0)
        })
    }
}

unsafe extern "C" fn forget(fs: Fs, of: VolaryNode, lookups: u64) {
    let forget = || {
        let exported = unsafe { fs.cast::<Exported>().as_ref() };
        if let (Some(exported), Ok(of)) = (exported, node(of))
            && let Some(attached) = exported.attached.read().as_ref()
        {
            attached.fs.forget(of, lookups);
        }
    };
    // It is a hint: a panic is nobody's answer.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(forget));
}

unsafe extern "C" fn open(fs: Fs, cx: Cx, of: VolaryNode, mode: u32, handle: *mut u64) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            let mode = convert::mode(mode).ok_or(Kind::Invalid)?;
            handle.write(fs.open(cx, node(of)?, mode)?.0);
            Ok(0)
        })
    }
}

unsafe extern "C" fn write(
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

unsafe extern "C" fn fsync(fs: Fs, cx: Cx, file: VolaryOpen, data_only: u32) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            fs.fsync(cx, OpenId(file.handle), data_only != 0)
                .map(|()| 0)
        })
    }
}

unsafe extern "C" fn allocate(
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

unsafe extern "C" fn lock(fs: Fs, cx: Cx, file: VolaryOpen, lock: *const VolaryLock) -> i32 {
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

unsafe extern "C" fn ioctl(
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

unsafe extern "C" fn close(fs: Fs, cx: Cx, open: VolaryOpen) -> i32 {
    unsafe {
        enter(fs, cx, |fs, cx| {
            fs.close(cx, OpenId(open.handle)).map(|()| 0)
        })
    }
}
