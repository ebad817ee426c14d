//! CHANGE_NOTIFY (MS-SMB2 3.3.5.19, MS-FSA 2.1.5.11): directories that clients watch.
//!
//! The first request on an open says what is watched, and how much is kept between requests: as
//! much as its reply may hold. Changes made through this server are told with their paths; of
//! those made elsewhere only the directory is known, and for a watch on a whole tree its path is
//! found by climbing. Of a directory below the one that is watched, only who may list it is told
//! ([`sight`]).

mod climb;
mod index;
mod sight;

use self::index::{Index, PathKey};
pub(crate) use self::sight::By;
use self::sight::Sight;
use super::access;
use super::names::{Path, to_utf16};
use super::table::File;
use crate::answer::{Answer, Failure};
use crate::budget::Taken;
use crate::client::Wait;
use crate::files::call::Call;
use crate::wire::FileId;
use crate::wire::fscc::notify::{self, Action};
use crate::wire::{Cursor, Out, Status, out::len32};
use parking_lot::{Mutex, RwLock};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use volary_core::{FileKind, NodeId};
use volary_session::News;

/// `CompletionFilter`.
pub(crate) mod filter {
    pub(crate) const FILE_NAME: u32 = 0x1;
    pub(crate) const DIR_NAME: u32 = 0x2;
    pub(crate) const ATTRIBUTES: u32 = 0x4;
    pub(crate) const SIZE: u32 = 0x8;
    pub(crate) const LAST_WRITE: u32 = 0x10;
    pub(crate) const LAST_ACCESS: u32 = 0x20;
    pub(crate) const CREATION: u32 = 0x40;
    pub(crate) const EA: u32 = 0x80;
    pub(crate) const SECURITY: u32 = 0x100;
}

const WATCH_TREE: u16 = 1;
/// Most changes that are kept for a watch.
const KEPT_MAX: usize = 4096;
/// Most bytes of changes that are kept for all watches of a share.
const BYTES_MAX: usize = 16 << 20;

/// A directory that a client watches.
#[derive(Debug)]
pub(crate) struct Watch {
    file: Weak<File>,
    node: NodeId,
    filter: u32,
    tree: bool,
    /// Bytes of changes that are kept.
    max: usize,
    state: Mutex<State>,
    /// Where it is in the index; changed under its lock.
    key: AtomicU64,
    /// Bytes of changes that are kept for all watches of the share.
    bytes: Arc<AtomicUsize>,
    /// One of what its user may have.
    _taken: Taken,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.state.get_mut().clear(&self.bytes);
    }
}

#[derive(Debug, Default)]
struct State {
    changes: Vec<(Action, Vec<u8>)>,
    len: usize,
    /// More happened than could be kept.
    overflown: bool,
    waiting: VecDeque<(Arc<Wait>, usize)>,
    ended: bool,
}

/// CHANGE_NOTIFY.
pub(crate) fn change_notify(call: &mut Call<'_>) -> Answer {
    let mut c = Cursor::new(call.body);
    if c.u16()? != 32 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let (flags, max) = (c.u16()?, c.u32()?);
    let id = FileId::read(&mut c)?;
    let filter = c.u32()?;
    let file = call.named(id)?;
    if !file.is_dir() || max > call.link.io_max() {
        return Err(Status::INVALID_PARAMETER.into());
    }
    file.need_any(access::READ_DATA)?;
    if call.tree.session.delete_pending(file.open) {
        return Err(Status::DELETE_PENDING.into());
    }
    let max = usize::try_from(max).unwrap_or(0);
    let watch = watch_of(call, &file, filter, flags & WATCH_TREE != 0, max)?;
    watch.ask(call.wait, max)
}

/// # Errors
/// `INSUFFICIENT_RESOURCES` if the user watches as much as they may.
fn watch_of(
    call: &Call<'_>,
    file: &Arc<File>,
    filter: u32,
    tree: bool,
    max: usize,
) -> Result<Arc<Watch>, Failure> {
    let mut slot = file.watch.lock();
    if let Some(watch) = &*slot {
        return Ok(Arc::clone(watch));
    }
    let taken = call.logon.budget.watches.take(call.link.limits().watches);
    let watches = &call.tree.common.watches;
    let watch = Arc::new(Watch {
        file: Arc::downgrade(file),
        node: file.node,
        filter,
        tree,
        max,
        state: Mutex::default(),
        key: AtomicU64::new(0),
        bytes: Arc::clone(&watches.bytes),
        _taken: taken.ok_or(Status::INSUFFICIENT_RESOURCES)?,
    });
    watches.add(&watch, file);
    *slot = Some(Arc::clone(&watch));
    Ok(watch)
}

impl Watch {
    /// Answers with what has changed, or later.
    fn ask(self: &Arc<Self>, wait: &Arc<Wait>, max: usize) -> Answer {
        let mut state = self.state.lock();
        if state.ended {
            return Err(Status::NOTIFY_CLEANUP.into());
        }
        if state.overflown || !state.changes.is_empty() {
            return state.take(max, &self.bytes);
        }
        drop(state);
        let (this, parked) = (Arc::downgrade(self), Arc::downgrade(wait));
        let failure = wait.park(move || {
            if let Some(this) = this.upgrade() {
                this.forget(&parked);
            }
        });
        // Whoever finds it among those that wait can answer it: it is parked before.
        if failure.status == Status::PENDING {
            self.wait(wait, max);
        }
        Err(failure)
    }

    /// Lets a parked request wait, for what has changed since as well.
    fn wait(&self, wait: &Arc<Wait>, max: usize) {
        let mut state = self.state.lock();
        let ended = state.ended;
        if !ended {
            state.waiting.push_back((Arc::clone(wait), max));
        }
        drop(state);
        if ended {
            wait.finish(Err(told(Status::NOTIFY_CLEANUP)));
        }
        self.answer();
    }

    fn forget(&self, wait: &Weak<Wait>) {
        let mut state = self.state.lock();
        state
            .waiting
            .retain(|(other, _)| !std::ptr::eq(Arc::as_ptr(other), wait.as_ptr()));
    }

    /// Notes changes of one moment and answers who waits.
    fn note(&self, changes: &[(Action, Vec<u8>)]) {
        let mut state = self.state.lock();
        for (action, name) in changes {
            let name = to_utf16(name);
            let more = name.len().saturating_add(12);
            let all = self.bytes.fetch_add(more, Ordering::Relaxed);
            state.len = state.len.saturating_add(more);
            let full = state.len > self.max || state.changes.len() >= KEPT_MAX;
            if full || state.overflown || all > BYTES_MAX {
                state.clear(&self.bytes);
                state.overflown = true;
            } else {
                state.changes.push((*action, name));
            }
        }
        drop(state);
        self.answer();
    }

    fn answer(&self) {
        loop {
            let mut state = self.state.lock();
            if !state.overflown && state.changes.is_empty() {
                return;
            }
            let Some((wait, max)) = state.waiting.pop_front() else {
                return;
            };
            let kept = (state.changes.clone(), state.len, state.overflown);
            let answer = state.take(max, &self.bytes);
            drop(state);
            if !wait.finish(answer) {
                let mut state = self.state.lock();
                state.clear(&self.bytes);
                self.bytes.fetch_add(kept.1, Ordering::Relaxed);
                (state.changes, state.len, state.overflown) = kept;
            }
        }
    }

    /// Sends away those who wait.
    pub(crate) fn end(&self, status: Status) {
        let mut state = self.state.lock();
        state.ended |= status == Status::NOTIFY_CLEANUP;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for (wait, _) in waiting {
            wait.finish(Err(told(status)));
        }
    }
}

impl State {
    /// Forgets what has changed, of which `bytes` has count.
    fn clear(&mut self, bytes: &AtomicUsize) -> Vec<(Action, Vec<u8>)> {
        bytes.fetch_sub(std::mem::take(&mut self.len), Ordering::Relaxed);
        std::mem::take(&mut self.changes)
    }

    fn take(&mut self, max: usize, bytes: &AtomicUsize) -> Answer {
        let changes = self.clear(bytes);
        let overflown = std::mem::take(&mut self.overflown);
        let list = if overflown {
            None
        } else {
            notify::list(&changes, max)
        };
        match list {
            Some(list) => Ok(reply(&list)),
            None => Err(told(Status::NOTIFY_ENUM_DIR)),
        }
    }
}

/// An answer that is no error, without changes.
fn told(status: Status) -> Failure {
    Failure::with_body(status, reply(&[]))
}

fn reply(list: &[u8]) -> Vec<u8> {
    const LIST_AT: u16 = 64 + 8;
    let mut out = Out::with_capacity(list.len().saturating_add(8));
    out.u16(9);
    out.u16(if list.is_empty() { 0 } else { LIST_AT });
    out.u32(len32(list.len())).bytes(list);
    out.done()
}

/// The watches of a share.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    index: RwLock<Index>,
    /// So that changing what nobody watches costs one load.
    count: AtomicUsize,
    /// Bytes of changes that are kept.
    bytes: Arc<AtomicUsize>,
}

impl Watches {
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    fn add(&self, watch: &Arc<Watch>, file: &File) {
        let key = self.key_of(file);
        let mut index = self.index.write();
        index.add(watch, key);
        self.count.store(index.len(), Ordering::Release);
        drop(index);
        // It may have been moved before it was here to be told.
        self.follow(watch);
    }

    /// A file with a watch was closed.
    pub(crate) fn remove(&self, watch: &Arc<Watch>) {
        let mut index = self.index.write();
        index.remove(watch);
        self.count.store(index.len(), Ordering::Release);
    }

    fn key_of(&self, file: &File) -> PathKey {
        let path = file.path.lock().components();
        self.index.read().key_of(&path)
    }

    /// Puts a watch where its directory is now.
    fn follow(&self, watch: &Arc<Watch>) {
        if let Some(file) = watch.file.upgrade() {
            let key = self.key_of(&file);
            self.index.write().put(watch, key);
        }
    }

    /// A directory was moved: so was all that is below it.
    pub(crate) fn moved(&self) {
        if !self.is_empty() {
            self.all().iter().for_each(|watch| self.follow(watch));
        }
    }

    fn all(&self) -> Vec<Arc<Watch>> {
        self.index.read().all()
    }

    fn near(&self, path: &[Vec<u8>]) -> Vec<Arc<Watch>> {
        self.index.read().near(path)
    }

    /// An entry was made.
    pub(crate) fn made(&self, by: By<'_>, path: &[Vec<u8>], kind: FileKind) {
        self.tell(by, Action::Added, path, name_filter(Some(kind)));
    }

    /// An entry was removed.
    pub(crate) fn removed(&self, by: By<'_>, path: &[Vec<u8>], kind: Option<FileKind>) {
        self.tell(by, Action::Removed, path, name_filter(kind));
    }

    /// What the entry leads to was changed in one of these ways.
    pub(crate) fn changed(&self, by: By<'_>, path: &[Vec<u8>], ways: u32) {
        self.tell(by, Action::Modified, path, ways);
    }

    /// An entry was renamed. Watches that see one side only are told that it came or went.
    pub(crate) fn renamed(&self, by: By<'_>, from: &[Vec<u8>], to: &[Vec<u8>], kind: FileKind) {
        if self.is_empty() {
            return;
        }
        let names = name_filter(Some(kind));
        let same_dir = parent(from) == parent(to);
        let mut old_dir = Sight::of_path(by, parent(from));
        let mut new_dir = Sight::of_path(by, parent(to));
        let mut near = self.near(from);
        if !same_dir {
            near.extend(self.near(to));
            near.sort_unstable_by_key(|watch| Arc::as_ptr(watch).addr());
            near.dedup_by(|a, b| Arc::ptr_eq(a, b));
        }
        for watch in near {
            if watch.filter & names == 0 {
                // Windows tells those who do not watch names that a file is another, and does
                // not tell it of directories.
                let ways = filter::ATTRIBUTES | filter::CREATION;
                let told = kind != FileKind::Dir && watch.filter & ways != 0;
                if let Some(name) = told.then(|| watch.sees(&mut new_dir, to)).flatten() {
                    watch.note(&[(Action::Modified, name)]);
                }
                continue;
            }
            let old = watch
                .sees(&mut old_dir, from)
                .map(|name| (Action::RenamedOld, name));
            let new = watch
                .sees(&mut new_dir, to)
                .map(|name| (Action::RenamedNew, name));
            let changes = match (old, new) {
                (Some(old), Some(new)) if same_dir => vec![old, new],
                (old, new) => {
                    let gone = old.map(|(_, name)| (Action::Removed, name));
                    let came = new.map(|(_, name)| (Action::Added, name));
                    gone.into_iter().chain(came).collect()
                }
            };
            if !changes.is_empty() {
                watch.note(&changes);
            }
        }
    }

    fn tell(&self, by: By<'_>, action: Action, path: &[Vec<u8>], filter: u32) {
        if self.is_empty() {
            return;
        }
        let mut dir = Sight::of_path(by, parent(path));
        for watch in self.near(path) {
            if watch.filter & filter == 0 {
                continue;
            }
            if let Some(name) = watch.sees(&mut dir, path) {
                watch.note(&[(action, name)]);
            }
        }
    }

    /// An entry was removed from a directory whose path may have to be found.
    pub(crate) fn removed_in(&self, by: By<'_>, dir: NodeId, name: &[u8], kind: Option<FileKind>) {
        self.tell_in(by, dir, &[(Action::Removed, name)], name_filter(kind));
    }

    /// A change made elsewhere than through this server.
    pub(crate) fn elsewhere(&self, by: By<'_>, news: &News) {
        let session = by.common.all_seeing();
        match news {
            News::Made { dir, name, node } => {
                let kind = session.getattr(*node).ok().map(|attr| attr.kind);
                self.tell_in(by, *dir, &[(Action::Added, name)], name_filter(kind));
            }
            News::Renamed {
                from,
                name,
                to,
                new_name,
                ..
            } => {
                let kind = session.lookup(*to, new_name).ok().map(|e| e.attr.kind);
                let filter = name_filter(kind);
                let (old, new) = if from == to {
                    (Action::RenamedOld, Action::RenamedNew)
                } else {
                    (Action::Removed, Action::Added)
                };
                if from == to {
                    self.tell_in(by, *from, &[(old, name), (new, new_name)], filter);
                } else {
                    self.tell_in(by, *from, &[(old, name)], filter);
                    self.tell_in(by, *to, &[(new, new_name)], filter);
                }
            }
            News::Entries(dir) => self.overflow(Some(*dir)),
            News::Everything => self.overflow(None),
            News::Removed { .. } | News::Data(_) | News::Attr(_) | News::Gone(_) => {}
        }
    }

    fn tell_in(&self, by: By<'_>, dir: NodeId, changes: &[(Action, &[u8])], filter: u32) {
        let index = self.index.read();
        let (has_trees, mut near) = (index.has_trees(), index.of_node(dir));
        drop(index);
        near.retain(|watch| watch.filter & filter != 0);
        note_below(&near, &[], changes);
        if !has_trees {
            return;
        }
        let Ok(above) = climb::above(&by.common.all_seeing(), dir) else {
            let all = self.all().into_iter();
            all.filter(|watch| watch.tree)
                .for_each(|watch| watch.overflow());
            return;
        };
        let nodes = above.iter().map(|(node, _)| *node).collect();
        let mut sight = Sight::of_nodes(by, nodes);
        for (depth, (node, _)) in above.iter().rev().enumerate() {
            if *node == dir {
                continue;
            }
            let mut trees = self.index.read().of_node(*node);
            trees.retain(|watch| watch.tree && watch.filter & filter != 0);
            trees.retain(|watch| watch.is_let_into(&mut sight, depth));
            if let Some(below) = climb::below(&above, *node) {
                note_below(&trees, &below, changes);
            }
        }
    }

    fn overflow(&self, dir: Option<NodeId>) {
        for watch in self.all() {
            if dir.is_none_or(|dir| watch.tree || watch.node == dir) {
                watch.overflow();
            }
        }
    }
}

impl Watch {
    /// Says no more than that something has changed.
    fn overflow(&self) {
        self.state.lock().overflown = true;
        self.answer();
    }

    /// Whether its user may be told of what is in a directory below.
    fn is_let_into(&self, dir: &mut Sight<'_>, depth: usize) -> bool {
        let file = self.file.upgrade();
        file.is_some_and(|file| dir.is_open_to(&file, depth))
    }

    /// The name by which the watch tells of this path in `dir`, if it sees it.
    fn sees(&self, dir: &mut Sight<'_>, path: &[Vec<u8>]) -> Option<Vec<u8>> {
        let file = self.file.upgrade()?;
        let own = file.path.lock().components();
        let below = path.strip_prefix(own.as_slice())?;
        let (last, dirs) = below.split_last()?;
        let told = dirs.is_empty() || self.tree && dir.is_open_to(&file, own.len());
        told.then(|| shown_below(dirs.iter().map(Vec::as_slice), last))
    }
}

/// Tells watches of changes in a directory that is `below` theirs.
fn note_below(watches: &[Arc<Watch>], below: &[Vec<u8>], changes: &[(Action, &[u8])]) {
    let named = |name: &[u8]| shown_below(below.iter().map(Vec::as_slice), name);
    for watch in watches {
        let seen: Vec<_> = changes.iter().map(|(a, name)| (*a, named(name))).collect();
        watch.note(&seen);
    }
}

fn shown_below<'a>(dirs: impl Iterator<Item = &'a [u8]>, name: &'a [u8]) -> Vec<u8> {
    let path: Vec<Vec<u8>> = dirs.chain([name]).map(<[u8]>::to_vec).collect();
    let shown = Path::show(&path);
    shown
        .strip_prefix(b"\\")
        .map_or_else(Vec::new, <[u8]>::to_vec)
}

fn parent(path: &[Vec<u8>]) -> &[Vec<u8>] {
    path.split_last().map_or(&[], |(_, dir)| dir)
}

fn name_filter(kind: Option<FileKind>) -> u32 {
    match kind {
        Some(FileKind::Dir) => filter::DIR_NAME,
        Some(_) => filter::FILE_NAME,
        None => filter::FILE_NAME | filter::DIR_NAME,
    }
}
