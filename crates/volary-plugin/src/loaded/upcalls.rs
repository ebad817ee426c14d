//! What a plug-in calls: log, and changes from elsewhere.

use crate::abi::*;
use crate::convert;
use crate::news::{LINE_MAX, News};
use crate::slot::bytes;
use parking_lot::Mutex;
use std::ffi::c_char;
use std::sync::{Arc, Weak};
use volary_core::{Change, Severity};

/// What the plug-in gets, and where it leads. Never freed: a plug-in may call after `release`.
#[repr(C)]
struct Upcalls {
    c: VolaryHost,
    news: Mutex<Weak<News>>,
    /// The plug-in knows nodes by the numbers that the host does.
    knows_nodes: bool,
}

/// Returns what a plug-in gets of a host that gathers `news`.
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
        // Of what cannot be understood, the safe reading.
        _ => Change::Everything,
    };
    news.changed(change);
}
