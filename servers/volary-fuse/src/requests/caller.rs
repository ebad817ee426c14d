//! [`Caller`]: who asks.

use fuser::Request;
use std::sync::Arc;
use volary_core::Cancel;

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The thread that asks, as this host numbers it.
    pub(crate) pid: u32,
    /// Set when it no longer wants the answer; only where somebody looks.
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
