//! Whether standard output was closed when the program was started.
//!
//! Before `main` the standard library puts `/dev/null` in the place of what is closed, and what
//! is printed would be lost without a word. So this looks before that.

use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT: AtomicBool = AtomicBool::new(false);

/// Returns whether standard output was closed.
pub(crate) fn is_stdout() -> bool {
    STDOUT.load(Ordering::Relaxed)
}

extern "C" fn look() {
    let closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    STDOUT.store(closed, Ordering::Relaxed);
}

#[used]
#[expect(
    unsafe_code,
    reason = "the loader calls what is in this section: a function as it expects"
)]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
