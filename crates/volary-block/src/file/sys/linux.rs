//! The host's calls on Linux, beyond those of every UNIX.

use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{
    Advice, FallocateFlags, OFlags, SeekFrom, fcntl_getfl, fcntl_setfl, fstat, major, minor, seek,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::Result;
use std::num::NonZeroU64;
use std::ops::Range;
use volary_core::HostFile;

/// Bytes of a page in the host's page cache.
const PAGE: u64 = 4096;

/// Returns how many pages of a file's range are in the host's page cache, and how many the range
/// has. Returns `None` if the host cannot tell (before Linux 6.5).
#[expect(unsafe_code, reason = "no safe cachestat")]
pub fn cached_pages(file: impl AsFd, offset: u64, len: u64) -> Option<(u64, u64)> {
    const CACHESTAT: libc::c_long = 451;
    let (range, mut found) = ([offset, len], [0_u64; 5]);
    // SAFETY: `range` and `found` have the layouts of `struct cachestat_range` and `struct cachestat`, and live
    // through the call.
    let answer = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_fd().as_raw_fd(),
            range.as_ptr(),
            found.as_mut_ptr(),
            0,
        )
    };
    let [cached, ..] = found;
    (answer == 0).then_some((cached, len.div_ceil(PAGE)))
}

/// Returns the bytes of a sector of a block device.
pub(crate) fn sector_size(device: &File) -> u32 {
    rustix::fs::ioctl_blksszget(device).unwrap_or(512)
}

/// Makes a hole in a file, which reads as zeros. Returns false if the file system cannot.
///
/// # Errors
/// `EIO` if the device below failed.
pub(crate) fn punch(file: &File, offset: u64, len: u64) -> Result<bool> {
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(file, how, offset, len) {
        Ok(()) => Ok(true),
        Err(e) if e == Errno::IO => Err(e.into()),
        Err(_) => Ok(false),
    }
}

/// Returns the parts of a range of a file that are not holes, up to `most` of them. Returns `None`
/// if there are more, or if the file does not tell.
pub(crate) fn data_in(
    file: HostFile<'_>,
    range: Range<u64>,
    most: usize,
) -> Option<Vec<Range<u64>>> {
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) if start < range.end => start,
            // Nothing but a hole is left.
            Ok(_) | Err(Errno::NXIO) => break,
            Err(_) => return None,
        };
        let end = seek(file, SeekFrom::Hole(start)).ok()?.min(range.end);
        if found.len() == most || end <= start {
            return None;
        }
        found.push(start..end);
        at = end;
    }
    Some(found)
}

/// Asks the host to read a range into its page cache. This is only a hint, and the read reports any
/// error.
pub(crate) fn will_read(file: &File, offset: u64, len: u64) {
    if let Some(len) = NonZeroU64::new(len) {
        let _ = rustix::fs::fadvise(file, offset, Some(len), Advice::WillNeed);
    }
}

/// Reopens a file to bypass the page cache, if the host can.
pub(crate) fn past_cache(file: &File, read_only: bool) -> Option<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut how = File::options();
    let opened = how.read(true).write(!read_only).open(path).ok()?;
    let flags = fcntl_getfl(&opened).ok()?;
    fcntl_setfl(&opened, flags | OFlags::DIRECT).ok()?;
    Some(opened)
}

/// Returns the process that holds a lock on `file`, if the host tells it.
pub(crate) fn holder(file: &File) -> Option<u32> {
    let stat = fstat(file).ok()?;
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    let (major, minor) = (major(stat.st_dev), minor(stat.st_dev));
    holder_in(&table, &format!("{major:02x}:{minor:02x}:{}", stat.st_ino))
}

/// Finds the holder of a lock in the text of `/proc/locks`, with lines such as `1: FLOCK ADVISORY
/// WRITE 4711 08:01:123 0 EOF`. Waiting processes have a `->` after the number.
fn holder_in(table: &str, file: &str) -> Option<u32> {
    table.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        if words.next() != Some("FLOCK") {
            return None;
        }
        let id = words.nth(2)?;
        let is_it = words.next() == Some(file);
        // A process in another PID namespace has no number here.
        id.parse().ok().filter(|id| is_it && *id > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_the_one_of_a_lock_on_that_file() {
        let table = "\
1: POSIX  ADVISORY  WRITE 11 08:01:5 0 EOF
2: FLOCK  ADVISORY  WRITE 12 08:01:6 0 EOF
3: FLOCK  ADVISORY  READ 0 08:01:7 0 EOF
4: FLOCK  ADVISORY  WRITE 13 08:01:5 0 EOF
4: -> FLOCK  ADVISORY  WRITE 14 08:01:8 0 EOF
";
        let found = [5, 6, 7, 8].map(|file| holder_in(table, &format!("08:01:{file}")));
        assert_eq!(found, [Some(13), Some(12), None, None]);
    }
}
