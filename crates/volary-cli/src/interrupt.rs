//! Ctrl-C: long work ends at the next point where it leaves no harm, and the
//! volume is detached as always.

use crate::exit::{Done, Fail};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static STOPPED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on SIGINT and SIGTERM do not kill, but are seen by [`check`]. A
/// second one kills.
pub(crate) fn catch() {
    let flag = STOPPED.get_or_init(Arc::default);
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Where a signal cannot be caught, it kills: as without this.
        let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(flag));
        let _ = signal_hook::flag::register(signal, Arc::clone(flag));
    }
}

/// Returns whether the user has asked to stop.
pub(crate) fn is_set() -> bool {
    STOPPED
        .get()
        .is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// # Errors
/// `Stopped`, if the user has asked for it.
pub(crate) fn check() -> Done {
    if is_set() {
        Err(Fail::stopped())
    } else {
        Ok(())
    }
}
