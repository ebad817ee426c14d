//! What Linux does beyond what every UNIX does.

use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{Advice, FallocateFlags, OFlags, fcntl_getfl, fcntl_setfl, fstat, major, minor};
use rustix::io::Errno;
use std::fs::File;
use std::io::Result;
use std::num::NonZeroU64;

/// Bytes of a page as the host counts them.
const PAGE: u64 = 4096;

/// Returns how many pages of a range of a file the host has in its page cache, and how many there are; `None` where it cannot tell
/// (before Linux 6.5).
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

/// Makes a hole in a file: what was there reads as zeros. Returns false if the file's system cannot.
///
/// # Errors
/// If the device below failed.
pub(crate) fn punch(file: &File, offset: u64, len: u64) -> Result<bool> {
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(file, how, offset, len) {
        Ok(()) => Ok(true),
        Err(e) if e == Errno::IO => Err(e.into()),
        Err(_) => Ok(false),
    }
}

/// Asks the host to read a range into its page cache. A hint: what goes wrong is told by the read.
pub(crate) fn will_read(file: &File, offset: u64, len: u64) {
    if let Some(len) = NonZeroU64::new(len) {
        let _ = rustix::fs::fadvise(file, offset, Some(len), Advice::WillNeed);
    }
}

/// Returns a file anew, past the page cache, if the host can.
pub(crate) fn past_cache(file: &File, read_only: bool) -> Option<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut how = File::options();
    let opened = how.read(true).write(!read_only).open(path).ok()?;
    let flags = fcntl_getfl(&opened).ok()?;
    fcntl_setfl(&opened, flags | OFlags::DIRECT).ok()?;
    Some(opened)
}

/// Returns the process that holds a lock on `file`, where the host says which.
pub(crate) fn holder(file: &File) -> Option<u32> {
    let stat = fstat(file).ok()?;
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    let (major, minor) = (major(stat.st_dev), minor(stat.st_dev));
    holder_in(&table, &format!("{major:02x}:{minor:02x}:{}", stat.st_ino))
}

/// Finds the holder of a lock in the text of `/proc/locks`: `1: FLOCK ADVISORY WRITE 4711 08:01:123
/// 0 EOF`. Those that wait have a `->` after the number.
fn holder_in(table: &str, file: &str) -> Option<u32> {
    table.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        if words.next() != Some("FLOCK") {
            return None;
        }
        let id = words.nth(2)?;
        let is_it = words.next() == Some(file);
        // A process of another namespace has no number here.
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
