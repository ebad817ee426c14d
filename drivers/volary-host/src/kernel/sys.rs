//! System calls that no safe library has: file handles, directory entries in bulk, locks of open
//! file descriptions, fanotify, and places of files.

use crate::kernel::proc::path_of;
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io::{Errno, Result};
use std::ffi::CString;

/// The longest handle of any file system: `MAX_HANDLE_SZ`.
const HANDLE_MAX: usize = 128;

/// The result of `name_to_handle_at(2)`: a node's identity in its file system's form.
#[repr(C, align(8))]
#[derive(Clone)]
pub(crate) struct Handle {
    len: u32,
    kind: i32,
    data: [u8; HANDLE_MAX],
}

impl Handle {
    /// Returns a handle of a kind with these bytes, cut at [`HANDLE_MAX`].
    pub(crate) fn new(kind: i32, bytes: &[u8]) -> Self {
        let mut data = [0; HANDLE_MAX];
        let len = bytes.len().min(HANDLE_MAX);
        if let (Some(to), Some(from)) = (data.get_mut(..len), bytes.get(..len)) {
            to.copy_from_slice(from);
        }
        Self {
            len: u32::try_from(len).unwrap_or(0),
            kind,
            data,
        }
    }

    pub(crate) fn kind(&self) -> i32 {
        self.kind
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        self.data.get(..len).unwrap_or_default()
    }
}

fn check(answer: libc::c_int) -> Result<libc::c_int> {
    if answer < 0 {
        return Err(last_error());
    }
    Ok(answer)
}

fn last_error() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error();
    Errno::from_raw_os_error(code.unwrap_or(libc::EIO))
}

/// Returns the handle of the node that `name` leads to in `dir`, and the mount it is on. If `name`
/// is empty, this is the node that `dir` is open for. A symlink is not followed.
#[expect(unsafe_code, reason = "no safe name_to_handle_at")]
pub(crate) fn handle_at(dir: impl AsFd, name: &[u8]) -> Result<(Handle, i32)> {
    let mut handle = Handle::new(0, &[]);
    handle.len = u32::try_from(HANDLE_MAX).unwrap_or(0);
    let mut mount = 0;
    let mut room = [0_u8; 256];
    let flags = if name.is_empty() {
        libc::AT_EMPTY_PATH
    } else {
        0
    };
    // Names of entries are short, so their NUL-terminated copy can be on the stack.
    let long;
    let path = match room.get_mut(..name.len()) {
        Some(start) if name.len() < 256 && !name.contains(&0) => {
            start.copy_from_slice(name);
            room.as_ptr().cast::<libc::c_char>()
        }
        _ => {
            long = CString::new(name).map_err(|_| Errno::INVAL)?;
            long.as_ptr()
        }
    };
    // SAFETY: `path` ends with NUL and lives until after the call; `handle` has
    // the layout of `struct file_handle` with the room that `len` says.
    check(unsafe {
        libc::name_to_handle_at(
            dir.as_fd().as_raw_fd(),
            path,
            (&raw mut handle).cast(),
            &raw mut mount,
            flags,
        )
    })?;
    Ok((handle, mount))
}

/// Opens the node that a handle identifies, on the file system of `mount`.
#[expect(unsafe_code, reason = "no safe open_by_handle_at")]
pub(crate) fn open_handle(
    mount: impl AsFd,
    handle: &Handle,
    flags: rustix::fs::OFlags,
) -> Result<OwnedFd> {
    let mut handle = handle.clone();
    let flags = i32::try_from(flags.bits()).map_err(|_| Errno::INVAL)?;
    // SAFETY: `handle` is a whole `struct file_handle`. A descriptor that is
    // not negative is new, and nobody else's.
    unsafe {
        let mount = mount.as_fd().as_raw_fd();
        let fd = check(libc::open_by_handle_at(
            mount,
            (&raw mut handle).cast(),
            flags,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Fills `room` with entries of the directory from its offset on, as `struct linux_dirent64`.
/// Returns the bytes filled, which are 0 at the end.
#[expect(unsafe_code, reason = "no safe getdents64 into a buffer that is kept")]
pub(crate) fn entries(dir: impl AsFd, room: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes no more than `room.len()` bytes to `room`.
    let got = unsafe {
        libc::syscall(
            libc::SYS_getdents64,
            dir.as_fd().as_raw_fd(),
            room.as_mut_ptr(),
            room.len(),
        )
    };
    usize::try_from(got).map_err(|_| last_error())
}

/// What to do with a range of an open file description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeLock {
    Shared,
    Exclusive,
    None,
}

/// Sets the lock of `file`'s open file description on a range. A length of 0 means up to the end of
/// any file. Never waits.
///
/// # Errors
/// `AGAIN` or `ACCESS` if another description holds a conflicting lock.
pub(crate) fn set_lock(file: impl AsFd, start: i64, len: i64, lock: RangeLock) -> Result<()> {
    range_lock(file, libc::F_OFD_SETLK, start, len, lock).map(drop)
}

/// Returns whether the lock is available now.
pub(crate) fn could_lock(file: impl AsFd, start: i64, len: i64, lock: RangeLock) -> Result<bool> {
    let found = range_lock(file, libc::F_OFD_GETLK, start, len, lock)?;
    Ok(found == RangeLock::None)
}

#[expect(unsafe_code, reason = "no safe fcntl for locks of descriptions")]
fn range_lock(
    file: impl AsFd,
    command: libc::c_int,
    start: i64,
    len: i64,
    lock: RangeLock,
) -> Result<RangeLock> {
    let kind = match lock {
        RangeLock::Shared => libc::F_RDLCK,
        RangeLock::Exclusive => libc::F_WRLCK,
        RangeLock::None => libc::F_UNLCK,
    };
    let narrow = |n: libc::c_int| libc::c_short::try_from(n).unwrap_or(0);
    let mut how = libc::flock {
        l_type: narrow(kind),
        l_whence: narrow(libc::SEEK_SET),
        l_start: start,
        l_len: len,
        l_pid: 0,
    };
    // SAFETY: `how` is a whole `struct flock` that lives through the call.
    check(unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, &raw mut how) })?;
    Ok(match libc::c_int::from(how.l_type) {
        libc::F_RDLCK => RangeLock::Shared,
        libc::F_WRLCK => RangeLock::Exclusive,
        _ => RangeLock::None,
    })
}

/// Returns a fanotify group that reports the directory, the name and the node of each event, by
/// handles.
#[expect(unsafe_code, reason = "no safe fanotify_init")]
pub(crate) fn watch_new() -> Result<OwnedFd> {
    let flags = libc::FAN_CLOEXEC
        | libc::FAN_CLASS_NOTIF
        | libc::FAN_NONBLOCK
        | libc::FAN_REPORT_DFID_NAME_TARGET;
    let event_flags = u32::try_from(libc::O_RDONLY | libc::O_CLOEXEC).unwrap_or(0);
    // SAFETY: no pointers. A descriptor that is not negative is new.
    unsafe {
        Ok(OwnedFd::from_raw_fd(check(libc::fanotify_init(
            flags,
            event_flags,
        ))?))
    }
}

/// Subscribes to changes of the entries of a directory, and of the nodes that they lead to. The
/// mark does not keep the directory in memory.
#[expect(unsafe_code, reason = "no safe fanotify_mark")]
pub(crate) fn watch_add(group: impl AsFd, dir: impl AsFd) -> Result<()> {
    let path = CString::new(path_of(dir)).map_err(|_| Errno::INVAL)?;
    let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_ONLYDIR | libc::FAN_MARK_EVICTABLE;
    let news = libc::FAN_CREATE
        | libc::FAN_DELETE
        | libc::FAN_MOVE
        | libc::FAN_MODIFY
        | libc::FAN_ATTRIB
        | libc::FAN_ONDIR
        | libc::FAN_EVENT_ON_CHILD;
    // SAFETY: `path` ends with NUL and lives through the call.
    check(unsafe {
        libc::fanotify_mark(
            group.as_fd().as_raw_fd(),
            flags,
            news,
            libc::AT_FDCWD,
            path.as_ptr(),
        )
    })
    .map(drop)
}

/// An extent of a file, as `FIEMAP` returns it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mapping {
    /// Its offset in the file.
    pub(crate) start: u64,
    /// Its offset on the device.
    pub(crate) place: u64,
    pub(crate) len: u64,
    pub(crate) reserved: [u64; 2],
    pub(crate) flags: u32,
    pub(crate) more_reserved: [u32; 3],
}

pub(crate) const MAP_LAST: u32 = 1;
pub(crate) const MAP_UNKNOWN: u32 = 2;
pub(crate) const MAP_DELAYED: u32 = 4;
pub(crate) const MAP_ENCODED: u32 = 8;
pub(crate) const MAP_ENCRYPTED: u32 = 0x80;
pub(crate) const MAP_NOT_ALIGNED: u32 = 0x100;
pub(crate) const MAP_INLINE: u32 = 0x200;
pub(crate) const MAP_TAIL: u32 = 0x400;
pub(crate) const MAP_UNWRITTEN: u32 = 0x800;

impl Mapping {
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }
}

/// Extents that are requested at once.
const MAPPINGS: usize = 32;

/// A `struct fiemap` with room for [`MAPPINGS`] extents.
#[repr(C)]
pub(crate) struct Mappings {
    start: u64,
    len: u64,
    flags: u32,
    count: u32,
    room: u32,
    reserved: u32,
    all: [Mapping; MAPPINGS],
}

impl Mappings {
    pub(crate) fn as_slice(&self) -> &[Mapping] {
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        self.all.get(..count).unwrap_or(&self.all)
    }

    /// Returns whether the range has no more extents after these.
    pub(crate) fn is_last(&self) -> bool {
        let last = self.as_slice().last();
        last.is_none_or(|last| {
            last.flags & MAP_LAST != 0 || last.end() >= self.start.saturating_add(self.len)
        })
    }
}

/// Returns the first extents of a range, after its dirty content has been written to the device.
#[expect(unsafe_code, reason = "no safe FIEMAP")]
pub(crate) fn mappings(file: impl AsFd, start: u64, len: u64) -> Result<Mappings> {
    // `_IOWR('f', 11, struct fiemap)`. The type's signedness depends on the C library.
    #[allow(
        clippy::cast_possible_wrap,
        clippy::cast_lossless,
        clippy::as_conversions,
        reason = "musl takes it as an i32"
    )]
    const FIEMAP: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;
    const SYNC: u32 = 1;
    let mut asked = Mappings {
        start,
        len,
        flags: SYNC,
        count: 0,
        room: u32::try_from(MAPPINGS).unwrap_or(0),
        reserved: 0,
        all: [Mapping::default(); MAPPINGS],
    };
    // SAFETY: `asked` has the layout of `struct fiemap`, with the room for extents that it says, and lives through
    // the call.
    check(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), FIEMAP, &raw mut asked) })?;
    Ok(asked)
}

/// Returns the bytes of a number as the kernel gives it, in the host's byte order.
#[expect(
    clippy::disallowed_methods,
    reason = "the kernel of the same host has the same order"
)]
mod native {
    fn bytes<const N: usize>(all: &[u8], at: usize) -> Option<[u8; N]> {
        all.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    pub(crate) fn u16_at(all: &[u8], at: usize) -> Option<u16> {
        bytes(all, at).map(u16::from_ne_bytes)
    }

    pub(crate) fn u32_at(all: &[u8], at: usize) -> Option<u32> {
        bytes(all, at).map(u32::from_ne_bytes)
    }

    pub(crate) fn u64_at(all: &[u8], at: usize) -> Option<u64> {
        bytes(all, at).map(u64::from_ne_bytes)
    }
}
pub(crate) use native::{u16_at, u32_at, u64_at};
