//! Calls to the host: messages and changes.

use crate::abi::{
    VOLARY_CHANGED_ALL, VOLARY_CHANGED_ATTR, VOLARY_CHANGED_DATA, VOLARY_CHANGED_ENTRIES,
    VOLARY_CHANGED_GONE, VOLARY_LOG_ERROR, VOLARY_LOG_NOTE, VolaryHost, VolaryNode,
};
use crate::convert;
use volary_core::{Change, ChangeSink, FileSystem, Severity};

/// The host's upcalls.
#[derive(Clone, Copy)]
pub(super) struct Told(pub(super) *const VolaryHost);

#[expect(
    unsafe_code,
    reason = "the host says that it can be called from any thread"
)]
// SAFETY: as above.
unsafe impl Send for Told {}
#[expect(
    unsafe_code,
    reason = "the host says that it can be called from any thread"
)]
// SAFETY: as above.
unsafe impl Sync for Told {}

impl Told {
    /// Logs what the driver has found.
    #[expect(unsafe_code, reason = "calls the host")]
    pub(super) fn findings(self, fs: &dyn FileSystem) {
        // SAFETY: the host is valid until `release`.
        let Some(log) = (unsafe { self.0.as_ref() }).and_then(|host| host.log) else {
            return;
        };
        for finding in fs.findings() {
            let words = format!("{} [{}]", finding.message, finding.code);
            let level = match finding.severity {
                Severity::Note => VOLARY_LOG_NOTE,
                _ => VOLARY_LOG_ERROR,
            };
            // SAFETY: with what the host asks for.
            unsafe { log(self.0, level, words.as_ptr().cast(), words.len()) }
        }
    }
}

impl ChangeSink for Told {
    #[expect(unsafe_code, reason = "calls the host")]
    fn changed(&self, change: Change) {
        // SAFETY: the host is valid until `release`.
        let Some(changed) = (unsafe { self.0.as_ref() }).and_then(|host| host.changed) else {
            return;
        };
        let none = VolaryNode::default();
        let (what, node) = match change {
            Change::Data(node) => (VOLARY_CHANGED_DATA, convert::to_node(node)),
            Change::Attr(node) => (VOLARY_CHANGED_ATTR, convert::to_node(node)),
            Change::Entries(node) => (VOLARY_CHANGED_ENTRIES, convert::to_node(node)),
            Change::Gone(node) => (VOLARY_CHANGED_GONE, convert::to_node(node)),
            Change::Everything => (VOLARY_CHANGED_ALL, none),
        };
        // SAFETY: with what the host asks for.
        unsafe { changed(self.0, what, node) }
    }
}
