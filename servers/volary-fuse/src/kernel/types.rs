//! Converts between the kernel's types and the core's.

use fuser::{
    FileAttr, FileType, INodeNo, InitFlags, KernelConfig, OpenAccMode, OpenFlags, TimeOrNow,
};
use rustix::fs::OFlags;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use volary_core::{Attr, Create, FileKind, Mode, SetAttr, SetTime, StatFs, Time};

/// The greatest file size that the kernel supports.
pub(crate) const SIZE_MAX: u64 = i64::MAX as u64;
/// The most bytes in one read or write request.
pub(crate) const IO_MAX: u32 = 1 << 20;

/// Returns a node's attributes, with the kernel's id of the node.
pub(crate) fn file_attr(attr: &Attr, number: u64) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: attr.size.min(SIZE_MAX),
        blocks: attr.allocated.div_ceil(512),
        atime: attr.atime.into(),
        mtime: attr.mtime.into(),
        ctime: attr.ctime.into(),
        crtime: attr.btime.unwrap_or_default().into(),
        kind: file_type(attr.kind),
        perm: (attr.mode & 0o7777) as u16,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        rdev: packed_rdev(attr.rdev),
        blksize: attr.io_size.max(512),
        flags: 0,
    }
}

/// Returns all-zero attributes, for a reply that has no node.
pub(crate) fn nothing() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

pub(crate) fn file_type(kind: FileKind) -> FileType {
    match kind {
        FileKind::File => FileType::RegularFile,
        FileKind::Dir => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Fifo => FileType::NamedPipe,
        FileKind::Socket => FileType::Socket,
        FileKind::CharDevice => FileType::CharDevice,
        FileKind::BlockDevice => FileType::BlockDevice,
    }
}

/// Returns a device number in the kernel's form. The 12 bits of the major number lie between the
/// lower 8 and the upper 12 bits of the minor.
fn packed_rdev(rdev: u64) -> u32 {
    let (major, minor) = ((rdev >> 32) as u32, rdev as u32);
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & 0xf_ff00) << 12
}

/// Returns the device number for one in the kernel's form. The major number is in the upper half,
/// and the minor in the lower.
pub(crate) fn unpacked_rdev(packed: u32) -> u64 {
    let major = packed >> 8 & 0xfff;
    let minor = packed & 0xff | packed >> 12 & 0xf_ff00;
    u64::from(major) << 32 | u64::from(minor)
}

/// Returns the time from a request. The FUSE library gets the sign of the nanoseconds of times
/// before 1970 wrong, and this is corrected here.
fn time(from: SystemTime) -> Time {
    match UNIX_EPOCH.duration_since(from) {
        Ok(before) if !before.is_zero() => {
            let secs = i64::try_from(before.as_secs()).map_or(i64::MIN, |secs| -secs);
            Time::new(secs, before.subsec_nanos())
        }
        _ => from.into(),
    }
}

pub(crate) fn set_time(from: TimeOrNow) -> SetTime {
    match from {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(at) => SetTime::To(time(at)),
    }
}

/// Returns the attributes of a new node, before the umask is applied.
pub(crate) fn new_mode(mode: u32) -> SetAttr {
    SetAttr::mode(mode & 0o7777)
}

/// Returns the mode of an open. With `write_back`, the kernel reads the rest of a page around a
/// write, so an open for writing must permit reading too.
pub(crate) fn mode(flags: i32, write_back: bool) -> Mode {
    match OpenFlags(flags).acc_mode() {
        OpenAccMode::O_RDONLY => Mode::Read,
        OpenAccMode::O_WRONLY if !write_back => Mode::Write,
        OpenAccMode::O_WRONLY | OpenAccMode::O_RDWR => Mode::ReadWrite,
    }
}

pub(crate) fn has_flag(flags: i32, flag: OFlags) -> bool {
    OFlags::from_bits_retain(flags as u32).contains(flag)
}

/// Returns what `create` does if the name exists.
pub(crate) fn create_how(flags: i32) -> Create {
    if has_flag(flags, OFlags::EXCL) {
        Create::New
    } else if has_flag(flags, OFlags::TRUNC) {
        Create::Truncate
    } else {
        Create::Open
    }
}

/// Returns the blocks for `statfs`: all, free, and free to the caller.
pub(crate) fn blocks(stat: &StatFs) -> (u64, u64, u64, u32) {
    let size = stat.block_size.max(512);
    let count = |bytes: u64| bytes / u64::from(size);
    (
        count(stat.size),
        count(stat.free),
        count(stat.available),
        size,
    )
}

/// The settings that are requested from the kernel when the connection begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    /// All changes come through this volume's sessions.
    pub(crate) sole: bool,
    /// The kernel gathers writes (write-back cache).
    pub(crate) write_back: bool,
    /// Byte-range locks come here as requests.
    pub(crate) session_locks: bool,
    /// Nodes may have access lists.
    pub(crate) acls: bool,
    /// The kernel checks access.
    pub(crate) kernel_checks: bool,
    /// The number of requests that are handled at once.
    pub(crate) threads: usize,
    /// The read-ahead in KiB.
    pub(crate) read_ahead: u32,
    /// The resolution of the time of last change, in nanoseconds.
    pub(crate) time_step: u64,
}

impl Wishes {
    /// Requests as many features as the kernel has, with two exceptions.
    ///
    /// `FUSE_ATOMIC_O_TRUNC` would truncate a file with its open. This comes before the kernel
    /// checks whether the file is a running program.
    ///
    /// `FUSE_ASYNC_DIO` lets direct writes end later than their call. Linux drops the cached pages
    /// that they replace before it sends them, but not again after they are done. A concurrent
    /// reader could thus leave old pages in the cache permanently.
    pub(crate) fn ask(&self, config: &mut KernelConfig) {
        let always = [
            InitFlags::FUSE_EXPORT_SUPPORT,
            InitFlags::FUSE_BIG_WRITES,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_ASYNC_READ,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
            InitFlags::FUSE_MAX_PAGES,
        ];
        let sole = [
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_EXPLICIT_INVAL_DATA,
        ];
        let wanted = always
            .into_iter()
            .chain(sole.into_iter().filter(|_| self.sole))
            .chain(
                [InitFlags::FUSE_AUTO_INVAL_DATA]
                    .into_iter()
                    .filter(|_| !self.sole),
            )
            .chain(
                [InitFlags::FUSE_WRITEBACK_CACHE]
                    .into_iter()
                    .filter(|_| self.write_back),
            )
            .chain(
                [InitFlags::FUSE_POSIX_LOCKS]
                    .into_iter()
                    .filter(|_| self.session_locks),
            );
        // An access list replaces the umask, but the kernel cannot know about it before it asks.
        let acls = [InitFlags::FUSE_DONT_MASK]
            .into_iter()
            .chain(
                [InitFlags::FUSE_POSIX_ACL]
                    .into_iter()
                    .filter(|_| self.kernel_checks),
            )
            .filter(|_| self.acls);
        for flag in wanted.chain(acls) {
            // Features that an older kernel lacks are not used.
            let _ = config.add_capabilities(flag);
        }
        self.ask_sizes(config);
    }

    /// Requests sizes. If one is refused, requests the nearest permitted one.
    fn ask_sizes(&self, config: &mut KernelConfig) {
        let _ = config.set_max_write(IO_MAX);
        let ahead = self.read_ahead.saturating_mul(1024).max(4096);
        if let Err(nearest) = config.set_max_readahead(ahead) {
            let _ = config.set_max_readahead(nearest);
        }
        let background = u16::try_from(self.threads.saturating_mul(4)).unwrap_or(u16::MAX);
        let _ = config.set_max_background(background.max(16));
        let step = Duration::from_nanos(self.time_step.clamp(1, 1_000_000_000));
        if let Err(nearest) = config.set_time_granularity(step) {
            let _ = config.set_time_granularity(nearest);
        }
    }
}

/// Returns whether the kernel can maintain times in steps of `nanos`: it supports powers of ten up
/// to a second.
pub(crate) fn kernel_keeps_step(nanos: u64) -> bool {
    (0..=9).any(|power| 10_u64.pow(power) == nanos.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_come_back() {
        for (major, minor) in [(0, 0), (8, 1), (4095, 0xf_ffff), (1, 256)] {
            let rdev = u64::from(major as u32) << 32 | minor;
            assert_eq!(unpacked_rdev(packed_rdev(rdev)), rdev, "{major}:{minor}");
        }
    }

    #[test]
    fn times_before_1970_are_read_as_they_were_sent() {
        // -2 s + 0.8 s, in the form that the library returns.
        let sent = UNIX_EPOCH - Duration::new(2, 800_000_000);
        assert_eq!(time(sent), Time::new(-2, 800_000_000));
        assert_eq!(
            time(UNIX_EPOCH - Duration::from_secs(3)),
            Time::from_secs(-3)
        );
        assert_eq!(time(UNIX_EPOCH), Time::EPOCH);
        assert_eq!(time(UNIX_EPOCH + Duration::new(4, 5)), Time::new(4, 5));
    }

    #[test]
    fn who_writes_may_read_under_write_back_only() {
        let write = OFlags::WRONLY.bits() as i32;
        assert_eq!(mode(write, false), Mode::Write);
        assert_eq!(mode(write, true), Mode::ReadWrite);
        assert_eq!(mode(OFlags::RDONLY.bits() as i32, true), Mode::Read);
    }

    #[test]
    fn only_powers_of_ten_are_steps_that_the_kernel_keeps() {
        assert!(kernel_keeps_step(0) && kernel_keeps_step(100) && kernel_keeps_step(1_000_000_000));
        assert!(!kernel_keeps_step(2_000_000_000) && !kernel_keeps_step(20));
    }
}
