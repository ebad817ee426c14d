//! Tells the kernel to forget what others have changed.
//!
//! The kernel takes such news only while no request on the same node holds it,
//! so they are told by a thread that answers no requests.

use crate::kernel::nodes::Nodes;
use fuser::{INodeNo, Notifier};
use parking_lot::{Condvar, Mutex};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use volary_core::NodeId;
use volary_session::{ClientId, Event, EventQueue, EventSink, News, Subscription, Volume};

/// How much news may wait; past that the kernel is told to forget all.
const WAITING_MAX: usize = 65_536;
/// How long an open waits for the kernel to be told what it has to know.
const PATIENCE: Duration = Duration::from_millis(100);

/// A thread that tells the kernel; see [`Teller::start`].
pub(crate) struct Teller {
    others: Arc<Others>,
    thread: Option<JoinHandle<()>>,
    _subscription: Subscription,
}

/// Keeps the events, of which none is this mount's own.
struct Others {
    queue: EventQueue,
    nodes: Arc<Nodes>,
    news: Arc<Progress>,
}

/// How many events have come, and how many the kernel was told of.
#[derive(Default)]
pub(crate) struct Progress {
    come: AtomicU64,
    told: Mutex<u64>,
    more: Condvar,
}

impl Progress {
    /// Waits until the kernel has been told of all that has come so far, but no
    /// longer than [`PATIENCE`]: it may be that it waits itself for the one who
    /// waits here.
    pub(crate) fn catch_up(&self) {
        let come = self.come.load(Ordering::SeqCst);
        let mut told = self.told.lock();
        let behind = |told: &mut u64| *told < come;
        self.more.wait_while_for(&mut told, behind, PATIENCE);
    }

    /// One event, or all that there were.
    fn note_told(&self, all: bool) {
        let mut told = self.told.lock();
        let come = self.come.load(Ordering::SeqCst);
        *told = if all { come } else { come.min(*told + 1) };
        self.more.notify_all();
    }
}

impl Others {
    /// Notes what the next open is not to answer from what the kernel holds.
    fn mark_stale(&self, news: &News) {
        match news {
            News::Data(node) | News::Entries(node) => self.nodes.mark_stale(*node),
            News::Made { dir, .. } | News::Removed { dir, .. } => self.nodes.mark_stale(*dir),
            News::Renamed { from, to, .. } => {
                self.nodes.mark_stale(*from);
                self.nodes.mark_stale(*to);
            }
            News::Everything => self.nodes.mark_all_stale(),
            News::Attr(_) | News::Gone(_) => {}
        }
    }
}

impl EventSink for Others {
    fn event(&self, event: &Event) {
        // Before the one who changed it has its answer.
        self.mark_stale(&event.news);
        self.news.come.fetch_add(1, Ordering::SeqCst);
        self.queue.event(event);
    }
}

impl Teller {
    /// Tells the kernel, from now on, of what clients other than `mine` change.
    pub(crate) fn start(
        volume: &Volume,
        mine: ClientId,
        (nodes, news): (Arc<Nodes>, Arc<Progress>),
        kernel: Notifier,
    ) -> Self {
        let others = Arc::new(Others {
            queue: EventQueue::new(WAITING_MAX),
            nodes: Arc::clone(&nodes),
            news: Arc::clone(&news),
        });
        let subscription = volume.subscribe_to_others(mine, others.clone());
        let source = Arc::clone(&others);
        let telling = move || {
            while let Some(event) = source.queue.take() {
                tell(&kernel, &nodes, &event.news);
                // It may stand for many that were thrown away.
                news.note_told(event.news == News::Everything);
            }
        };
        let thread = thread::Builder::new()
            .name("volary-events".into())
            .spawn(telling);
        Self {
            others,
            thread: thread.ok(),
            _subscription: subscription,
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.others.queue.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Errors are not answered to: what the kernel does not know, or no longer
/// listens to, it need not forget.
fn tell(kernel: &Notifier, nodes: &Nodes, news: &News) {
    let entry = |dir: NodeId, name: &[u8]| {
        if nodes.knows(dir) {
            let dir = INodeNo(nodes.number(dir));
            let _ = kernel.inval_entry(dir, OsStr::from_bytes(name));
            let _ = kernel.inval_inode(dir, 0, 0);
        }
    };
    let data = |node: NodeId| {
        if nodes.knows(node) {
            let _ = kernel.inval_inode(INodeNo(nodes.number(node)), 0, 0);
        }
    };
    // A negative offset leaves the data alone.
    let attr = |node: NodeId| {
        if nodes.knows(node) {
            let _ = kernel.inval_inode(INodeNo(nodes.number(node)), -1, 0);
        }
    };
    match news {
        News::Made { dir, name, .. } => entry(*dir, name),
        News::Removed { dir, name, node } => {
            entry(*dir, name);
            node.map(attr);
        }
        News::Renamed {
            from,
            name,
            to,
            new_name,
            node,
            replaced,
            ..
        } => {
            entry(*from, name);
            entry(*to, new_name);
            [*node, *replaced].into_iter().flatten().for_each(attr);
        }
        News::Data(node) | News::Entries(node) => data(*node),
        News::Attr(node) | News::Gone(node) => attr(*node),
        News::Everything => {
            for number in nodes.all() {
                let _ = kernel.inval_inode(INodeNo(number), 0, 0);
            }
        }
    }
}
