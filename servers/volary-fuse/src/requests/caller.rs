//! [`Caller`]: who made a request.

use fuser::Request;
use std::sync::Arc;
use volary_core::Cancel;

/// Who made a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The calling thread, by its number on this host.
    pub(crate) pid: u32,
    /// Set when the caller no longer wants the answer. `None` if nobody checks this.
    pub(crate) cancel: Option<Arc<Cancel>>,
}

impl Caller {
    pub(crate) fn of(req: &Request) -> Self {
        Self {
            uid: req.uid(),
            gid: req.gid(),
            pid: req.pid(),
            cancel: None,
        }
    }
}
