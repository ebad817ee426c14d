//! In pages of which size memory is allocated.

/// Least `--memory` of a bulk read, in bytes, with which it uses huge pages. Below it, pages that threads use only in part would weigh too much.
pub(crate) const HUGE_MIN: u64 = 256 << 20;

/// Switches huge pages of the process on or off. They save page faults of commands that use much memory once. Servers, and
/// commands that use little, would only take more memory.
pub(crate) fn use_huge_pages(are_used: bool) {
    // A kernel that knows no huge pages gives none.
    let _ = rustix::thread::disable_transparent_huge_pages(!are_used);
}
