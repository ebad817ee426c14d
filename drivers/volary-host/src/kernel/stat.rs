//! `statx(2)`, and its result as attributes of the project.

use crate::kernel::error::from_errno;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Statx, StatxFlags};
use volary_core::{Attr, FileKind, Kind, NodeId, Result, Time};

/// Calls `statx(2)` for an entry of `dir`, or for `dir` itself if `name` is empty.
///
/// # Errors
/// Those of the host.
pub(crate) fn look(dir: impl AsFd, name: &[u8]) -> Result<Statx> {
    let flags = if name.is_empty() {
        AtFlags::EMPTY_PATH
    } else {
        AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT
    };
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    rustix::fs::statx(dir, name, flags, mask).map_err(from_errno)
}

/// Translates the host's attributes. The change counter is the time of the last change. Since Linux
/// 6.13, that time is fine-grained if somebody looked in between. Before, its resolution was a tick
/// of the kernel's clock.
///
/// # Errors
/// `Invalid` for an unknown kind.
pub(crate) fn from_statx(node: NodeId, stat: &Statx) -> Result<Attr> {
    let kind = FileKind::from_mode(stat.stx_mode.into()).ok_or(Kind::Invalid)?;
    let device = matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
    let ctime = time(stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec);
    let has_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    let rdev = u64::from(stat.stx_rdev_major) << 32 | u64::from(stat.stx_rdev_minor);
    Ok(Attr {
        node,
        kind,
        mode: u32::from(stat.stx_mode) & 0o7777,
        nlink: stat.stx_nlink,
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        rdev: if device { rdev } else { 0 },
        size: stat.stx_size,
        allocated: stat.stx_blocks.saturating_mul(512),
        io_size: stat.stx_blksize,
        atime: time(stat.stx_atime.tv_sec, stat.stx_atime.tv_nsec),
        mtime: time(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
        ctime,
        btime: has_birth.then(|| time(stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)),
        change: change(ctime),
        dos: None,
    })
}

fn time(secs: i64, nanos: u32) -> Time {
    Time::new(secs, nanos)
}

fn change(at: Time) -> u64 {
    let secs = at.secs.max(0).cast_unsigned();
    secs.saturating_mul(1_000_000_000)
        .saturating_add(at.nanos.into())
}
