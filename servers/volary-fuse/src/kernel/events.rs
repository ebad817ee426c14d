//! Tells the kernel to drop what other clients have changed.
//!
//! The kernel handles such a notification only while no request holds the same node. So a separate
//! thread sends them, which answers no requests.

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

/// The most events that may wait. Beyond this, the kernel is told to drop everything.
const WAITING_MAX: usize = 65_536;
/// How long an open waits for pending notifications of the kernel.
const PATIENCE: Duration = Duration::from_millis(100);

/// A thread that notifies the kernel; see [`Teller::start`].
pub(crate) struct Teller {
    others: Arc<Others>,
    thread: Option<JoinHandle<()>>,
    _subscription: Subscription,
}

/// Queues the events, none of which comes from this mount.
struct Others {
    queue: EventQueue,
    nodes: Arc<Nodes>,
    news: Arc<Progress>,
}

/// How many events have arrived, and how many the kernel was notified of.
#[derive(Default)]
pub(crate) struct Progress {
    come: AtomicU64,
    told: Mutex<u64>,
    more: Condvar,
}

impl Progress {
    /// Waits until the kernel has been notified of all events so far, but no longer than
    /// [`PATIENCE`]. The kernel itself may be waiting for the request that waits here.
    pub(crate) fn catch_up(&self) {
        let come = self.come.load(Ordering::SeqCst);
        let mut told = self.told.lock();
        let behind = |told: &mut u64| *told < come;
        self.more.wait_while_for(&mut told, behind, PATIENCE);
    }

    /// Notes that the kernel was notified of one event, or of `all`.
    fn note_told(&self, all: bool) {
        let mut told = self.told.lock();
        let come = self.come.load(Ordering::SeqCst);
        *told = if all { come } else { come.min(*told + 1) };
        self.more.notify_all();
    }
}

impl Others {
    /// Marks nodes whose next open must not use the kernel's cached data.
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
        // This comes before the client that made the change gets its answer.
        self.mark_stale(&event.news);
        self.news.come.fetch_add(1, Ordering::SeqCst);
        self.queue.event(event);
    }
}

impl Teller {
    /// Notifies the kernel, from now on, of changes by clients other than `mine`.
    pub(crate) fn start(
        volume: &Volume,
        mine: ClientId,
        nodes: Arc<Nodes>,
        news: Arc<Progress>,
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
                // `Everything` may stand for many events that were dropped.
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

/// Notifies the kernel of an event. Errors are ignored: the kernel need not drop what it does not
/// know, and it may no longer listen.
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
    // A negative offset drops only the attributes.
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
