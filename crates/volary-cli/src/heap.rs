//! What allocates memory, and in pages of which size.

/// The allocator. That of glibc gets memory page by page, with a fault for each: a fifth of the processor time of a bulk
/// read. That of musl has one lock for all threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Memory of a bulk read from which on the huge pages that threads use in part do not count, in bytes.
pub(crate) const HUGE_MIN: u64 = 256 << 20;

/// Has the host give memory in huge pages, or not, from now on. They save the faults of who uses much memory once; who
/// runs for long, or uses little, takes more memory by them.
pub(crate) fn use_huge_pages(are_used: bool) {
    // A kernel that knows no huge pages gives none.
    let _ = rustix::thread::disable_transparent_huge_pages(!are_used);
}
