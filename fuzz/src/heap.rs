//! A heap with a bound: growth past it is a crash, the same in every run.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's heap, with what [`limit`] allows.
pub struct Bounded;

static USED: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Lets the heap grow by at most `more` bytes from what is now in use, until
/// the next call. The report of a panic is not bound: it would wait for itself.
pub fn limit(more: usize) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            LIMIT.store(usize::MAX, Relaxed);
            report(panic);
        }));
    });
    LIMIT.store(USED.load(Relaxed).saturating_add(more), Relaxed);
}

// SAFETY: all is forwarded to the system's heap, which keeps the contract; a
// null pointer, given when the bound is passed, is a legal answer.
#[expect(unsafe_code, reason = "a global allocator is unsafe by its trait")]
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Relaxed) + layout.size();
        if used > LIMIT.load(Relaxed) {
            USED.fetch_sub(layout.size(), Relaxed);
            // For the report.
            LIMIT.store(usize::MAX, Relaxed);
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Relaxed) + layout.size();
        if used > LIMIT.load(Relaxed) {
            USED.fetch_sub(layout.size(), Relaxed);
            // For the report.
            LIMIT.store(usize::MAX, Relaxed);
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}
