//! Where a file lies: its holes, and its fragments on the underlying block device.
//!
//! Places on the device are known for ext2, ext3, ext4 and XFS. Their `FIEMAP` gives offsets on the
//! block device that `stat` names. A place is valid while the file does not change. Reads from it
//! must bypass the device's page cache, which the file system does not keep up to date.

use crate::held::births::Moment;
use crate::held::opens::Opened;
use crate::kernel::error::from_errno;
use crate::kernel::stat::look;
use crate::kernel::sys::{self, Mapping};
use crate::reach::resolve::PATH;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, FileType, IFlags, SeekFrom, makedev};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use volary_block::cached_pages;
use volary_core::{Extent, Kind, Place, Result};

/// Flags of content that the device stores in another form than `read` returns, or does not have
/// yet.
const ENCODED: IFlags = IFlags::COMPRESSED
    .union(IFlags::JOURNALING)
    .union(IFlags::from_bits_retain(ENCRYPTED | VERITY));
/// `FS_ENCRYPT_FL`.
const ENCRYPTED: u32 = 0x800;
/// `FS_VERITY_FL`: `read` verifies the content of the device.
const VERITY: u32 = 0x10_0000;

/// Adds the extents of a file: see [`extents`](volary_core::FileSystem::extents). Data is
/// `Encoded`, unless places are wanted and known.
pub(crate) fn extents(
    open: &Opened,
    offset: u64,
    len: u64,
    wanted: bool,
    out: &mut Vec<Extent>,
) -> Result<()> {
    let end = offset.checked_add(len).ok_or(Kind::TooBig)?;
    let known = out.len();
    if wanted && on_device(&open.fd, offset, end, out) {
        return Ok(());
    }
    out.truncate(known);
    let _offset = open.listing.lock();
    let mut at = offset;
    while at < end {
        let data = next(&open.fd, SeekFrom::Data(at), end)?;
        push(out, at, data, Place::Hole);
        let hole = next(&open.fd, SeekFrom::Hole(data), end)?;
        push(out, data, hole, Place::Encoded);
        at = hole.max(data);
        if hole == data && data < end {
            // The file was truncated meanwhile.
            push(out, at, end, Place::Hole);
            break;
        }
    }
    Ok(())
}

/// Adds the places from `from` to `end` on the device. Returns false if the file must not be read
/// there. It may be changing, be in the page cache already, or be stored in another form.
fn on_device(fd: &OwnedFd, from: u64, end: u64, out: &mut Vec<Extent>) -> bool {
    let is_plain = rustix::fs::ioctl_getflags(fd).is_ok_and(|flags| !flags.intersects(ENCODED));
    let is_settled = look(fd, b"").is_ok_and(|stat| Moment::changed(&stat).is_past());
    let is_cached = cached_pages(fd, from, end - from).is_some_and(|(cached, all)| cached >= all);
    if !is_plain || !is_settled || is_cached {
        return false;
    }
    let mut at = from;
    while at < end {
        let before = at;
        let Ok(mappings) = sys::mappings(fd, at, end - at) else {
            return false;
        };
        for mapping in mappings.as_slice() {
            let Some(place) = place_of(mapping) else {
                return false;
            };
            let (start, stop) = (mapping.start.max(at), mapping.end().min(end));
            push(out, at, start.min(end), Place::Hole);
            push(out, start, stop, ahead(place, start - mapping.start));
            at = at.max(stop);
        }
        if mappings.is_last() {
            push(out, at, end, Place::Hole);
            return true;
        }
        if at == before {
            return false;
        }
    }
    true
}

/// Returns where an extent of `FIEMAP` lies. Returns `None` if that is unknown, or only the file
/// system can decode it.
fn place_of(mapping: &Mapping) -> Option<Place> {
    const OTHER: u32 = sys::MAP_UNKNOWN
        | sys::MAP_DELAYED
        | sys::MAP_ENCODED
        | sys::MAP_ENCRYPTED
        | sys::MAP_NOT_ALIGNED
        | sys::MAP_INLINE
        | sys::MAP_TAIL;
    match mapping.flags {
        flags if flags & OTHER != 0 => None,
        flags if flags & sys::MAP_UNWRITTEN != 0 => Some(Place::Hole),
        _ => Some(Place::Device(mapping.place)),
    }
}

/// Returns the place that is `by` bytes later.
fn ahead(place: Place, by: u64) -> Place {
    match place {
        Place::Device(at) => Place::Device(at.saturating_add(by)),
        place => place,
    }
}

/// Returns the block device that has the directory's files, if `FIEMAP` gives places on it.
pub(crate) fn device(dir: &Path) -> Option<PathBuf> {
    let flags = PATH | rustix::fs::OFlags::DIRECTORY;
    let dir = rustix::fs::openat(CWD, dir, flags, rustix::fs::Mode::empty()).ok()?;
    let stat = look(&dir, b"").ok()?;
    let (_, mount) = sys::handle_at(&dir, b"").ok()?;
    let all = std::fs::read("/proc/self/mountinfo").ok()?;
    let source = all
        .split(|&b| b == b'\n')
        .find_map(|line| on(line, mount))?;
    let (major, minor) = (stat.stx_dev_major, stat.stx_dev_minor);
    let by_number = PathBuf::from(format!("/dev/block/{major}:{minor}"));
    let is_it = |path: &PathBuf| {
        rustix::fs::stat(path).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
                && stat.st_rdev == makedev(major, minor)
        })
    };
    [source, by_number].into_iter().find(is_it)
}

/// Returns the source of a mount from its line of `/proc/self/mountinfo`, if its file system gives
/// places on a single device.
fn on(line: &[u8], mount: i32) -> Option<PathBuf> {
    let mut fields = line.split(|&b| b == b' ');
    if fields.next() != Some(mount.to_string().as_bytes()) {
        return None;
    }
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let (kind, source, options) = (fields.next()?, fields.next()?, fields.next()?);
    let others: [&[u8]; 2] = [b"data=journal", b"rtdev="];
    let has_others = options
        .split(|&b| b == b',')
        .any(|option| others.iter().any(|other| option.starts_with(other)));
    let kinds: [&[u8]; 4] = [b"ext2", b"ext3", b"ext4", b"xfs"];
    (kinds.contains(&kind) && !has_others).then(|| PathBuf::from(OsStr::from_bytes(source)))
}

/// Returns the next offset that `place` seeks, or `end` if there is none before.
fn next(fd: impl AsFd, place: SeekFrom, end: u64) -> Result<u64> {
    match rustix::fs::seek(fd, place) {
        Ok(at) => Ok(at.min(end)),
        Err(Errno::NXIO | Errno::INVAL | Errno::OVERFLOW) => Ok(end),
        Err(e) => Err(from_errno(e)),
    }
}

fn push(out: &mut Vec<Extent>, from: u64, to: u64, place: Place) {
    if to > from {
        out.push(Extent {
            offset: from,
            len: to - from,
            place,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mounts_whose_places_are_on_one_device_are_taken() {
        let of = |line: &[u8]| on(line, 22);
        let ext4 = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro";
        assert_eq!(of(ext4), Some(PathBuf::from("/dev/sda1")));
        for other in [
            &b"23 1 8:1 / / rw - ext4 /dev/sda1 rw"[..],
            b"22 1 8:1 / / rw - ext4 /dev/sda1 rw,data=journal",
            b"22 1 8:1 / / rw - xfs /dev/sda1 rw,rtdev=/dev/sdb1",
            b"22 1 0:40 / / rw - btrfs /dev/sda1 rw",
            b"22 1 0:40 / / rw - overlay overlay rw",
            b"22 1 8:1 / / rw",
            b"",
        ] {
            assert_eq!(of(other), None, "{}", other.escape_ascii());
        }
    }

    #[test]
    fn what_only_the_file_system_understands_has_no_place() {
        let mapping = |flags| Mapping {
            place: 4096,
            len: 512,
            flags,
            ..Mapping::default()
        };
        assert_eq!(place_of(&mapping(0)), Some(Place::Device(4096)));
        assert_eq!(place_of(&mapping(1)), Some(Place::Device(4096)));
        let unwritten = mapping(sys::MAP_UNWRITTEN);
        assert_eq!(place_of(&unwritten), Some(Place::Hole));
        for flag in [
            sys::MAP_UNKNOWN,
            sys::MAP_DELAYED,
            sys::MAP_ENCODED,
            sys::MAP_ENCRYPTED,
            sys::MAP_INLINE,
        ] {
            assert_eq!(place_of(&mapping(flag | sys::MAP_UNWRITTEN)), None);
        }
    }
}
