//! Functions that a plug-in calls: log, and changes by others.

use crate::abi::*;
use crate::convert;
use crate::news::{LINE_MAX, News};
use crate::slot::bytes;
use parking_lot::Mutex;
use std::ffi::c_char;
use std::sync::{Arc, Weak};
use volary_core::{Change, Severity};

/// The host structure for a plug-in, and the target of its calls. It is never freed, as a plug-in
/// may call even after `release`.
#[repr(C)]
struct Upcalls {
    c: VolaryHost,
    news: Mutex<Weak<News>>,
    /// The plug-in uses the same node ids as the host.
    knows_nodes: bool,
}

/// Returns the host structure for a plug-in, whose reports go to `news`.
pub(crate) fn host(news: &Arc<News>, knows_nodes: bool) -> *const VolaryHost {
    let cell = Box::leak(Box::new(Upcalls {
        c: VolaryHost {
            size: size_of::<VolaryHost>() as u32,
            version: VOLARY_PLUGIN_VERSION,
            log: Some(log),
            changed: Some(changed),
        },
        news: Mutex::new(Arc::downgrade(news)),
        knows_nodes,
    }));
    (&raw const *cell).cast()
}

#[expect(
    unsafe_code,
    reason = "a host is the first field of a cell that is never freed"
)]
fn news(host: *const VolaryHost) -> Option<(Arc<News>, bool)> {
    if host.is_null() {
        return None;
    }
    // SAFETY: hosts are given out by `host` alone.
    let cell = unsafe { &*host.cast::<Upcalls>() };
    Some((cell.news.lock().upgrade()?, cell.knows_nodes))
}

#[expect(unsafe_code, reason = "called by plug-ins")]
unsafe extern "C" fn log(host: *const VolaryHost, level: u32, text: *const c_char, len: usize) {
    let Some((news, _)) = news(host) else { return };
    // SAFETY: the plug-in promises `len` bytes; no more are read than are shown.
    let words = unsafe { bytes(text.cast(), len.min(LINE_MAX)) };
    let severity = match level {
        VOLARY_LOG_NOTE => Severity::Note,
        _ => Severity::Damage,
    };
    news.say(severity, words);
}

#[expect(unsafe_code, reason = "called by plug-ins")]
unsafe extern "C" fn changed(host: *const VolaryHost, what: u32, node: VolaryNode) {
    let Some((news, knows_nodes)) = news(host) else {
        return;
    };
    let node = convert::node(node);
    let change = match (what, node) {
        _ if !knows_nodes => Change::Everything,
        (VOLARY_CHANGED_DATA, Ok(node)) => Change::Data(node),
        (VOLARY_CHANGED_ATTR, Ok(node)) => Change::Attr(node),
        (VOLARY_CHANGED_ENTRIES, Ok(node)) => Change::Entries(node),
        (VOLARY_CHANGED_GONE, Ok(node)) => Change::Gone(node),
        // If the change cannot be understood, everything may have changed.
        _ => Change::Everything,
    };
    news.changed(change);
}
