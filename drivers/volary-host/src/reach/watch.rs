//! Reports changes by other processes.
//!
//! The kernel (fanotify) identifies nodes by handles, which correspond to node ids, and names the
//! process. Changes by this process are skipped, because the session has reported them. The watched
//! directories are the root and those with a held descriptor, in which names were looked up or
//! which were listed.

use crate::held::attachment::Attachment;
use crate::held::ids::Ids;
use crate::held::nodes::Nodes;
use crate::kernel::error::from_errno;
use crate::kernel::sys::{self, Handle};
use crate::reach::root::Root;
use parking_lot::RwLock;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use volary_core::{Caps, Change, ChangeSink, Kind, NodeId, Result, Watch};

/// All watches.
pub(crate) struct Watchers {
    attachment: Arc<Attachment>,
    root: Root,
    ids: Arc<Ids>,
    nodes: Arc<Nodes>,
    all: RwLock<Vec<Weak<Watcher>>>,
}

/// A watch: a fanotify group.
struct Watcher {
    group: OwnedFd,
    stop: OwnedFd,
}

/// The thread that reads from a watch. It ends when this is dropped.
struct Reading {
    watcher: Arc<Watcher>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        // If the counter is already full, it wakes the thread as well.
        let _ = rustix::io::write(&self.watcher.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Nanoseconds that the thread rests after news. Repeated changes are then merged into one event,
/// and a process that makes many changes is not slowed down.
const REST: i64 = 10_000_000;
/// Bytes of news that are read at once.
const ROOM: usize = 64 << 10;

impl Watchers {
    pub(crate) fn new(
        attachment: Arc<Attachment>,
        root: Root,
        ids: Arc<Ids>,
        nodes: Arc<Nodes>,
    ) -> Self {
        Self {
            attachment,
            root,
            ids,
            nodes,
            all: RwLock::default(),
        }
    }

    /// See [`watch`](volary_core::FileSystem::watch).
    pub(crate) fn start(&self, sink: Arc<dyn ChangeSink>) -> Result<Watch> {
        self.attachment.check_attached()?;
        self.attachment.check_able(Caps::WATCH)?;
        let watcher = Arc::new(Watcher {
            group: sys::watch_new().map_err(from_errno)?,
            stop: eventfd(0, EventfdFlags::CLOEXEC).map_err(from_errno)?,
        });
        let (source, ids) = (Arc::clone(&watcher), Arc::clone(&self.ids));
        let thread = thread::Builder::new()
            .name("volary-host-watch".into())
            .spawn(move || source.tell(&ids, &*sink));
        let reading = Reading {
            thread: Some(thread.map_err(|_| Kind::Busy)?),
            watcher,
        };
        self.all.write().push(Arc::downgrade(&reading.watcher));
        self.attachment.check_attached()?;
        self.watch_dir(&self.root.fd);
        for dir in self.nodes.dirs() {
            self.watch_dir(&dir);
        }
        Ok(Watch(Box::new(reading)))
    }

    /// Watches the entries of a directory, for all watchers. A directory that the host has no room
    /// to watch is ignored silently.
    pub(crate) fn watch_dir(&self, dir: &OwnedFd) {
        let mut ended = false;
        for watcher in &*self.all.read() {
            match watcher.upgrade() {
                Some(watcher) => drop(sys::watch_add(&watcher.group, dir)),
                None => ended = true,
            }
        }
        if ended {
            self.all.write().retain(|w| w.strong_count() > 0);
        }
    }
}

impl Watcher {
    /// Reports changes to `sink` until the watch ends.
    fn tell(&self, ids: &Ids, sink: &dyn ChangeSink) {
        let mut room = vec![0; ROOM];
        let me = std::process::id();
        loop {
            match rustix::io::read(&self.group, &mut room) {
                Ok(got) => {
                    for event in Events(room.get(..got).unwrap_or_default()) {
                        if event.by != me {
                            event.changes(ids, |change| sink.changed(change));
                        }
                    }
                    if self.is_stopped(Some(REST), false) {
                        return;
                    }
                }
                Err(rustix::io::Errno::AGAIN) => {
                    if self.is_stopped(None, true) {
                        return;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return sink.changed(Change::Everything),
            }
        }
    }

    /// Waits up to `nanos` nanoseconds for the end, and with `heard` for news as well. Returns
    /// whether the watch has ended.
    fn is_stopped(&self, nanos: Option<i64>, heard: bool) -> bool {
        let mut both = [
            PollFd::new(&self.stop, PollFlags::IN),
            PollFd::new(&self.group, PollFlags::IN),
        ];
        let (first, _) = both.split_at_mut(if heard { 2 } else { 1 });
        let timeout = nanos.map(|tv_nsec| Timespec { tv_sec: 0, tv_nsec });
        match poll(first, timeout.as_ref()) {
            Ok(_) => first.first().is_some_and(|stop| !stop.revents().is_empty()),
            Err(e) => e != rustix::io::Errno::INTR,
        }
    }
}

/// An event: `struct fanotify_event_metadata` and what follows it.
struct Event<'a> {
    mask: u64,
    /// The process that made the change, or 0 if this process may not know it.
    by: u32,
    infos: &'a [u8],
}

/// The events in a buffer that the kernel filled.
struct Events<'a>(&'a [u8]);

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let len = usize::try_from(sys::u32_at(self.0, 0)?).ok()?;
        let head = usize::from(sys::u16_at(self.0, 6)?);
        let (event, rest) = self.0.split_at_checked(len)?;
        let found = Event {
            mask: sys::u64_at(event, 8)?,
            by: sys::u32_at(event, 20)?,
            infos: event.get(head..)?,
        };
        self.0 = rest;
        Some(found)
    }
}

impl Event<'_> {
    fn changes(&self, ids: &Ids, tell: impl Fn(Change)) {
        if self.mask & libc::FAN_Q_OVERFLOW != 0 {
            return tell(Change::Everything);
        }
        let (dir, node) = self.nodes(ids);
        let names = libc::FAN_CREATE | libc::FAN_DELETE | libc::FAN_MOVE;
        if self.mask & names != 0
            && let Some(dir) = dir
        {
            tell(Change::Entries(dir));
        }
        let Some(node) = node else { return };
        if self.mask & libc::FAN_MODIFY != 0 {
            tell(Change::Data(node));
        } else if self.mask & (libc::FAN_ATTRIB | names) != 0 {
            tell(Change::Attr(node));
        }
    }

    /// Returns the event's directory, and its node: one in the directory, or the directory itself.
    fn nodes(&self, ids: &Ids) -> (Option<NodeId>, Option<NodeId>) {
        let (mut dir, mut node) = (None, None);
        let mut rest = self.infos;
        while let (Some(&kind), Some(len)) = (rest.first(), sys::u16_at(rest, 2)) {
            let len = usize::from(len);
            let Some((info, more)) = rest.split_at_checked(len).filter(|_| len > 0) else {
                break;
            };
            match kind {
                libc::FAN_EVENT_INFO_TYPE_DFID_NAME | libc::FAN_EVENT_INFO_TYPE_DFID => {
                    dir = handle(info).and_then(|handle| ids.node_of(&handle));
                }
                libc::FAN_EVENT_INFO_TYPE_FID => {
                    node = handle(info).and_then(|handle| ids.node_of(&handle));
                }
                _ => {}
            }
            rest = more;
        }
        (dir, node)
    }
}

/// Returns the handle in a `struct fanotify_event_info_fid`, after a head of 4 bytes and
/// the file system's id of 8.
fn handle(info: &[u8]) -> Option<Handle> {
    let len = usize::try_from(sys::u32_at(info, 12)?).ok()?;
    let kind = sys::u32_at(info, 16)?.cast_signed();
    Some(Handle::new(kind, info.get(20..20_usize.checked_add(len)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_are_cut_off_anywhere_are_no_trouble() {
        let mut event = Vec::new();
        event.extend(60_u32.to_ne_bytes());
        event.extend([3, 0, 24, 0]);
        event.extend(libc::FAN_CREATE.to_ne_bytes());
        event.extend((-1_i32).to_ne_bytes());
        event.extend(7_u32.to_ne_bytes());
        event.extend([libc::FAN_EVENT_INFO_TYPE_DFID_NAME, 0, 36, 0]);
        event.extend([0; 8]);
        event.extend(8_u32.to_ne_bytes());
        event.extend(1_i32.to_ne_bytes());
        event.extend([5, 0, 0, 0, 6, 0, 0, 0]);
        event.extend(*b"name\0\0\0\0");
        assert_eq!(event.len(), 60);
        let whole = Events(&event).next().unwrap();
        assert_eq!((whole.by, whole.infos.len()), (7, 36));
        let found = handle(whole.infos).unwrap();
        assert_eq!(
            (found.kind(), found.bytes()),
            (1, &[5, 0, 0, 0, 6, 0, 0, 0][..])
        );
        for len in 0..60 {
            assert!(Events(&event[..len]).next().is_none());
        }
        for at in 24..60 {
            let mut odd = event.clone();
            odd[at] ^= 0xff;
            let odd = Events(&odd).next().unwrap();
            let _ = handle(odd.infos);
        }
    }
}
