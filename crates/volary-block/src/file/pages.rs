//! What the host has in its page cache.

use rustix::fd::{AsFd, AsRawFd};

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
