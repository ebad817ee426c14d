//! [`Server`]: what all requests share.

use crate::kernel::nodes::Nodes;
use crate::kernel::told::Told;
use crate::kernel::types::{self, Wishes};
use crate::options::{Checks, Locks, MountOptions};
use crate::requests::counts::{Counts, RequestKind as Kind};
use crate::requests::reply::reply_empty;
use crate::requests::sessions::Sessions;
use crate::requests::waiters::Waiters;
use fuser::{INodeNo, Notifier, ReplyEmpty};
use rustix::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use volary_core::{Caps, NodeId, Result};
use volary_session::{ClientId, Linger, Volume};

/// Answers the kernel's requests from one volume.
pub(crate) struct Server {
    pub(crate) volume: Arc<Volume>,
    pub(crate) sessions: Sessions,
    pub(crate) told: Told,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) linger: Linger,
    /// The descriptor that delivers the kernel's requests, once the volume is mounted.
    pub(crate) kernel: Arc<OnceLock<OwnedFd>>,
    /// Notifies the kernel, once the volume is mounted.
    pub(crate) notifier: Arc<OnceLock<Notifier>>,
}

impl Server {
    pub(crate) fn new(
        volume: Arc<Volume>,
        client: ClientId,
        options: &MountOptions,
        threads: usize,
    ) -> Self {
        let caps = volume.caps();
        let sole = !(caps.has(Caps::WATCH)
            || caps.has(Caps::SHARED_LOCKS)
            || caps.has(Caps::CHECKS_ACCESS)
            || caps.has(Caps::SHARED));
        let steps_match = types::kernel_keeps_step(caps.time_step);
        let write_back_is_safe = sole && steps_match && options.checks == Checks::Kernel;
        let wishes = Wishes {
            sole,
            write_back: options.write_back.unwrap_or(false) && write_back_is_safe,
            session_locks: options.locks == Locks::Session || caps.has(Caps::SHARED_LOCKS),
            acls: caps.has(Caps::XATTRS | Caps::MODES),
            kernel_checks: options.checks == Checks::Kernel,
            threads,
            read_ahead: options.read_ahead,
            time_step: caps.time_step,
        };
        let nodes = Arc::new(Nodes::new(volume.fs().root()));
        Self {
            sessions: Sessions::new(Arc::clone(&volume), client, options.checks),
            told: Told::new(&nodes, caps, wishes, options),
            nodes,
            counts: Arc::default(),
            waiters: Arc::default(),
            linger: Linger::new(instant),
            kernel: Arc::default(),
            notifier: Arc::default(),
            volume,
        }
    }

    /// Counts the request and answers it. A panic makes only this one request fail.
    pub(crate) fn answer<T>(&self, kind: Kind, request: impl FnOnce() -> Result<T>) -> Result<T> {
        self.counts.add(kind);
        catch_unwind(AssertUnwindSafe(request)).unwrap_or_else(|_| {
            tracing::error!(target: "FUSE", "caught panic");
            Err(volary_core::Kind::Io.into())
        })
    }

    /// Answers a request whose reply is only a success or an error.
    pub(crate) fn end(&self, reply: ReplyEmpty, kind: Kind, request: impl FnOnce() -> Result<()>) {
        reply_empty(reply, self.answer(kind, request));
    }

    /// Returns the node with the kernel's id `number`.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn node(&self, number: INodeNo) -> Result<NodeId> {
        self.nodes.get(number.0)
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a thread stays awake")]
fn instant() -> Instant {
    Instant::now()
}
