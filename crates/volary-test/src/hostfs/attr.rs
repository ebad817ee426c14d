//! Converts attributes from and to those of the host.

use super::errno::from_errno;
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
};
use volary_core::{Attr, FileKind, Kind, NodeId, Result, SetAttr, SetTime, Time};

/// Returns the attributes of the node of a descriptor.
pub(super) fn of(fd: impl AsFd) -> Result<Attr> {
    let stat = rustix::fs::fstat(fd).map_err(from_errno)?;
    from_stat(&stat).ok_or_else(|| Kind::Invalid.into())
}

/// Converts the host's attributes. Returns `None` for an unknown kind.
pub(super) fn from_stat(stat: &Stat) -> Option<Attr> {
    let (major, minor) = (
        rustix::fs::major(stat.st_rdev),
        rustix::fs::minor(stat.st_rdev),
    );
    let kind = FileKind::from_mode(stat.st_mode)?;
    let device = matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
    Some(Attr {
        node: NodeId::new(stat.st_ino, 0)?,
        kind,
        mode: stat.st_mode & 0o7777,
        nlink: u32::try_from(stat.st_nlink).ok()?,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: if device {
            u64::from(major) << 32 | u64::from(minor)
        } else {
            0
        },
        size: u64::try_from(stat.st_size).ok()?,
        allocated: u64::try_from(stat.st_blocks).ok()? * 512,
        io_size: u32::try_from(stat.st_blksize).unwrap_or(4096),
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        btime: None,
        change: 0,
        dos: None,
    })
}

fn time(secs: i64, nanos: impl TryInto<u32>) -> Time {
    Time::new(secs, nanos.try_into().unwrap_or(0))
}

/// Returns a path by which the node of a descriptor can be opened again.
pub(super) fn path_of(fd: impl AsFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}

/// Sets the attributes of `set`. The size comes first, as only it is likely to be refused.
pub(super) fn set(fd: impl AsFd, kind: FileKind, set: &SetAttr) -> Result<()> {
    if set.dos.is_some() || set.btime.is_some() {
        return Err(Kind::Unsupported.into());
    }
    let path = path_of(&fd);
    if let Some(size) = set.size {
        match kind {
            FileKind::File => {}
            FileKind::Dir => return Err(Kind::IsDir.into()),
            _ => return Err(Kind::Invalid.into()),
        }
        if i64::try_from(size).is_err() {
            return Err(Kind::TooBig.into());
        }
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::empty()).map_err(from_errno)?;
        rustix::fs::ftruncate(file, size).map_err(from_errno)?;
    }
    let mut mode = set.mode;
    if set.uid.is_some() || set.gid.is_some() {
        // chown clears set-user-ID and set-group-ID on the host.
        mode = mode.or(Some(of(&fd)?.mode));
        let (uid, gid) = (set.uid.map(Uid::from_raw), set.gid.map(Gid::from_raw));
        rustix::fs::chownat(&fd, "", uid, gid, AtFlags::EMPTY_PATH).map_err(from_errno)?;
    }
    if let Some(mode) = mode.filter(|_| kind != FileKind::Symlink) {
        rustix::fs::chmod(&path, Mode::from_raw_mode(mode)).map_err(from_errno)?;
    }
    if set.atime.is_some() || set.mtime.is_some() {
        let times = Timestamps {
            last_access: spec(set.atime),
            last_modification: spec(set.mtime),
        };
        rustix::fs::utimensat(&fd, "", &times, AtFlags::EMPTY_PATH).map_err(from_errno)?;
    }
    Ok(())
}

fn spec(time: Option<SetTime>) -> Timespec {
    match time {
        None => Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        Some(SetTime::Now) => Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        },
        Some(SetTime::To(t)) => Timespec {
            tv_sec: t.secs,
            tv_nsec: t.nanos.into(),
        },
    }
}
