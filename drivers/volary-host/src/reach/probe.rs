//! Finds out what the host's file system can do, and what this process may do.

use crate::held::ids::Ids;
use crate::kernel::error::from_errno;
use crate::kernel::proc::path_of;
use crate::kernel::stat::look;
use crate::kernel::sys;
use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, Mode as HostMode, OFlags, XattrFlags};
use rustix::process::{Resource, getrlimit};
use volary_core::{Caps, Result};

/// File systems without owners, links and special files, which ignore the case of letters: FAT,
/// exFAT.
const PLAIN: [i64; 2] = [0x4d44, 0x2011_bab0];
/// File systems whose directory cookies stay valid: ext4, XFS, Btrfs.
const STEADY: [i64; 3] = [0xef53, 0x5846_5342, 0x9123_683e];

/// The abilities of every UNIX file system.
const UNIX: u32 = Caps::MODES
    | Caps::SYMLINKS
    | Caps::HARD_LINKS
    | Caps::DEVICES
    | Caps::CASE_SENSITIVE
    | Caps::SWAP
    | Caps::ANY_NAME;

/// Returns the abilities of the volume at `root`. Some are tried on a nameless temporary file.
///
/// # Errors
/// Those of the host.
pub(crate) fn caps(root: &OwnedFd, ids: &Ids, read_only: bool) -> Result<Caps> {
    let stat = rustix::fs::fstatvfs(root).map_err(from_errno)?;
    let magic = rustix::fs::fstatfs(root).map_err(from_errno)?.f_type;
    let on_read_only = stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY);
    let mut bits = Caps::CASE_KEEPING | Caps::EXTENTS;
    if !PLAIN.contains(&magic) {
        bits |= UNIX;
    }
    if STEADY.contains(&magic) {
        bits |= Caps::STABLE_COOKIES;
    }
    if ids.open_by_handle() {
        bits |= Caps::STABLE_IDS;
    }
    if ids.are_exact() && sys::watch_new().is_ok() {
        bits |= Caps::WATCH;
    }
    let scratch = if read_only || on_read_only {
        None
    } else {
        bits |= Caps::WRITE | Caps::SHARED_LOCKS;
        scratch(root)
    };
    let size_max = scratch.as_ref().map_or(OFFSET_MAX, size_max);
    // Without a temporary file, assume what nearly all file systems can do.
    bits |= scratch.as_ref().map_or(USUAL, tried);
    Ok(Caps {
        bits,
        name_max: u16::try_from(stat.f_namemax).unwrap_or(u16::MAX),
        size_max,
        time_step: if PLAIN.contains(&magic) {
            2_000_000_000
        } else {
            1
        },
    })
}

const OFFSET_MAX: u64 = i64::MAX as u64;
const USUAL: u32 = Caps::HOLES | Caps::PREALLOCATE | Caps::XATTRS;

/// Returns a nameless temporary file.
fn scratch(root: &OwnedFd) -> Option<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::openat(root, ".", flags, HostMode::RUSR | HostMode::WUSR).ok()
}

fn tried(file: &OwnedFd) -> u32 {
    let mut bits = 0;
    let keep = FallocateFlags::KEEP_SIZE;
    if rustix::fs::fallocate(file, keep, 0, 4096).is_ok() {
        bits |= Caps::PREALLOCATE;
    }
    if rustix::fs::fallocate(file, keep | FallocateFlags::PUNCH_HOLE, 0, 4096).is_ok() {
        bits |= Caps::HOLES;
    }
    let name = "user.volary";
    if rustix::fs::setxattr(path_of(file), name, b"", XattrFlags::empty()).is_ok() {
        bits |= Caps::XATTRS;
    }
    bits
}

/// Returns the greatest size that the file can have. Sizes past the process's own limit are not
/// tried, because the process would get a signal.
fn size_max(file: &OwnedFd) -> u64 {
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(OFFSET_MAX);
    let (mut good, mut bad) = (0, limit.min(OFFSET_MAX));
    if rustix::fs::ftruncate(file, bad).is_ok() {
        good = bad;
    }
    while bad - good > 1 {
        let half = good + (bad - good) / 2;
        match rustix::fs::ftruncate(file, half) {
            Ok(()) => good = half,
            Err(_) => bad = half,
        }
    }
    good
}

/// Returns whether the mount `mount`, whose root directory is `root`, shows a whole file system
/// rather than one of its directories.
pub(crate) fn is_whole(root: &OwnedFd, mount: i32) -> bool {
    let top = look(root, b"").is_ok_and(|stat| {
        let flag = rustix::fs::StatxAttributes::MOUNT_ROOT;
        stat.stx_attributes.contains(flag)
    });
    let shown = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let number = mount.to_string();
    top && shown.split(|&b| b == b'\n').any(|line| {
        let mut fields = line.split(|&b| b == b' ');
        fields.next() == Some(number.as_bytes()) && fields.nth(2) == Some(b"/")
    })
}

/// Returns whether this process may give files to others.
pub(crate) fn may_give_away() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    let wanted = CapabilitySet::CHOWN | CapabilitySet::FOWNER;
    capabilities(None).is_ok_and(|held| held.effective.contains(wanted))
}

/// Descriptors that opens leave to the rest of the process, such as sockets and logs.
const RESERVE: usize = 512;

/// Returns how many of the process's descriptors opens may take. All but [`RESERVE`] of them, or
/// but a quarter if that is less.
pub(crate) fn descriptors_for_opens() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    let limit = usize::try_from(limit).unwrap_or(1 << 20);
    limit - RESERVE.min(limit / 4)
}

/// Returns half of the descriptors that this process may have.
pub(crate) fn descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    usize::try_from(limit / 2).unwrap_or(512).min(1 << 20)
}
