//! Bounds what owners take.

mod count;
mod used;

use count::count;
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use used::{Used, bytes_of};
use volary_core::{
    Attr, Caps, Create, Cred, Ctx, Entry, Error, FileKind, Fs, Kind, Layer, Mode, Name, NodeId,
    OpenId, Options, QuotaLimits, QuotaOf, QuotaReport, QuotaShare, RenameFlags, Result, SetAttr,
    SetQuota, StatFs,
};

/// Bounds bytes and nodes, of the whole volume or of each owner by itself.
///
/// A file counts with its length, a symlink with its target's, anything else
/// with no bytes; each node counts as one, however many names it has, from
/// when it is made until its last name and last open are gone. The root is not
/// counted. What would go past a bound answers `Quota` and changes nothing. With
/// [`QuotaBounds::each`], the owner of a node pays for it, and user 0 has no
/// bound; giving a file away needs room with the new owner.
///
/// What is there is counted when the layer is put on, by a walk through the whole
/// volume; nothing is kept on it, so that a crash leaves nothing to mend. A volume
/// that is over its bound when it is attached takes nothing more, but may shrink.
/// Changes that do not come through the layer are not seen until then.
///
/// `statfs` shows the bound as the size and what is left of it as free. With
/// [`QuotaBounds::each`], `quota` of users tells the bound of each who has
/// something, and `set_quota` of users answers `NotPermitted`; else, and of groups,
/// both are the volume's. Takes
/// away [`Caps::PREALLOCATE`], whose room has no length. Calls that change what
/// is counted run one after the other. Put it below `crypt` (whose files are
/// longer below than above), or above to count what users see.
pub struct Quota {
    below: Fs,
    bounds: QuotaBounds,
    /// Held for reading by writes that stay inside their file, for writing by
    /// what changes the count.
    changing: RwLock<()>,
    state: Mutex<State>,
}

/// How much may be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaBounds {
    /// Bytes; `None` for any.
    pub bytes: Option<u64>,
    /// Nodes; `None` for any.
    pub nodes: Option<u64>,
    /// For each owner by itself.
    pub each: bool,
}

#[derive(Default)]
struct State {
    used: Used,
    /// Which node is open, and how often; bounded by the opens below.
    opens: HashMap<OpenId, NodeId>,
    times_open: HashMap<NodeId, u64>,
    /// Nodes that have no name but are open.
    nameless: HashSet<NodeId>,
}

impl Quota {
    /// Over `below`, whose nodes are counted now.
    ///
    /// # Errors
    /// Of reading the volume.
    pub fn new(below: Fs, bounds: QuotaBounds) -> Result<Self> {
        let used = count(&below)?;
        let state = State {
            used,
            ..State::default()
        };
        Ok(Self {
            below,
            bounds,
            changing: RwLock::default(),
            state: Mutex::new(state),
        })
    }

    /// From words: `bytes=SIZE`, `nodes=N`, `each`, with commas between.
    ///
    /// # Errors
    /// `Invalid`, saying what is expected, and for `each` over a volume that
    /// keeps no owners; as [`new`](Self::new).
    pub fn parse(below: Fs, text: &str) -> Result<Self> {
        let bad = |_: Error| {
            let words = format!(
                "layer quota does not know '{text}'; expected bytes=SIZE, nodes=N or both, \
                 and each for a bound of each owner's own"
            );
            Error::note(Kind::Invalid, words)
        };
        let mut options = Options::parse(text);
        let bounds = QuotaBounds {
            bytes: options.number("bytes").map_err(bad)?,
            nodes: options.number("nodes").map_err(bad)?,
            each: options.flag("each", false).map_err(bad)?,
        };
        for key in ["bytes", "nodes", "each"] {
            options.take(key);
        }
        if !options.is_empty() || (bounds.bytes, bounds.nodes) == (None, None) {
            return Err(bad(Kind::Invalid.into()));
        }
        if bounds.each && !below.caps().has(Caps::MODES) {
            let words = "layer quota: the volume keeps no owners; leave out each";
            return Err(Error::note(Kind::Invalid, words));
        }
        Self::new(below, bounds)
    }

    /// Returns bytes and nodes that count for `uid`, or, without `each`, for all.
    pub fn used(&self, uid: u32) -> (u64, u64) {
        let share = self.state.lock().used.of(self.payer(uid));
        (share.bytes, share.nodes)
    }

    /// Whose share pays for a node of `uid`'s.
    fn payer(&self, uid: u32) -> Option<u32> {
        self.bounds.each.then_some(uid)
    }

    /// # Errors
    /// `Quota` if the share of `uid` has no room for a file of that size to
    /// become so much longer. A size that the volume refuses is for it to refuse.
    fn check_size(&self, uid: u32, was: u64, size: u64) -> Result<()> {
        if size > self.below.caps().size_max {
            return Ok(());
        }
        self.check(uid, size.saturating_sub(was), 0)
    }

    /// # Errors
    /// `Quota` if the share of `uid` has no room for so much more.
    fn check(&self, uid: u32, bytes: u64, nodes: u64) -> Result<()> {
        if self.bounds.each && uid == 0 {
            return Ok(());
        }
        let share = self.state.lock().used.of(self.payer(uid));
        let past = |used: u64, more: u64, bound: Option<u64>| {
            more > 0 && bound.is_some_and(|bound| used.saturating_add(more) > bound)
        };
        if past(share.bytes, bytes, self.bounds.bytes)
            || past(share.nodes, nodes, self.bounds.nodes)
        {
            return Err(Kind::Quota.into());
        }
        Ok(())
    }

    fn charge(&self, attr: &Attr) {
        let used = &mut self.state.lock().used;
        used.add(attr.uid, bytes_of(attr), 1);
    }

    fn credit(&self, attr: &Attr) {
        let used = &mut self.state.lock().used;
        used.take(attr.uid, bytes_of(attr), 1);
    }

    /// A node was one thing and is now another.
    fn changed(&self, was: &Attr, is: &Attr) {
        let used = &mut self.state.lock().used;
        used.take(was.uid, bytes_of(was), 1);
        used.add(is.uid, bytes_of(is), 1);
    }

    /// Returns the owner that a new node will have.
    fn owner(set: &SetAttr, cred: &Cred) -> u32 {
        set.uid.unwrap_or(cred.uid)
    }

    /// Makes a node of so many bytes that is not there yet.
    fn make(
        &self,
        cx: &Ctx<'_>,
        set: &SetAttr,
        bytes: u64,
        call: impl FnOnce() -> Result<Entry>,
    ) -> Result<Entry> {
        let _changing = self.changing.write();
        self.check(Self::owner(set, cx.cred), bytes, 1)?;
        let entry = call()?;
        self.charge(&entry.attr);
        Ok(entry)
    }

    /// A name of this node is gone.
    fn unnamed(&self, attr: &Attr) {
        let last = attr.kind == FileKind::Dir || attr.nlink <= 1;
        if !last {
            return;
        }
        let mut state = self.state.lock();
        if state.times_open.contains_key(&attr.node) {
            state.nameless.insert(attr.node);
        } else {
            state.used.take(attr.uid, bytes_of(attr), 1);
        }
    }

    fn opened(&self, open: OpenId, node: NodeId) {
        let mut state = self.state.lock();
        state.opens.insert(open, node);
        *state.times_open.entry(node).or_default() += 1;
    }

    /// # Errors
    /// `Stale` for an open that did not come from here.
    fn node_of(&self, open: OpenId) -> Result<NodeId> {
        let node = self.state.lock().opens.get(&open).copied();
        node.ok_or_else(|| Kind::Stale.into())
    }
}

impl Layer for Quota {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn caps(&self) -> Caps {
        self.below.caps().without(Caps::PREALLOCATE)
    }

    fn statfs(&self, cx: &Ctx<'_>) -> Result<StatFs> {
        let mut stat = self.below.statfs(cx)?;
        if self.bounds.each && cx.cred.uid == 0 {
            return Ok(stat);
        }
        let share = self.state.lock().used.of(self.payer(cx.cred.uid));
        if let Some(bound) = self.bounds.bytes {
            let left = bound.saturating_sub(share.bytes);
            stat.size = stat.size.min(bound);
            stat.free = stat.free.min(left);
            stat.available = stat.available.min(left);
        }
        if let Some(bound) = self.bounds.nodes {
            stat.nodes = stat.nodes.min(bound);
            stat.nodes_free = stat.nodes_free.min(bound.saturating_sub(share.nodes));
        }
        Ok(stat)
    }

    fn quota(&self, cx: &Ctx<'_>, of: QuotaOf, from: u32) -> Result<QuotaReport> {
        if !self.bounds.each || of == QuotaOf::Groups {
            return self.below.quota(cx, of, from);
        }
        let next = self.state.lock().used.next(from);
        let shown = |uid: u32, used: u64, bound: Option<u64>| QuotaShare {
            used,
            limits: QuotaLimits {
                soft: None,
                hard: bound.filter(|_| uid != 0),
            },
            until: None,
        };
        let quota = next.map(|(uid, share)| volary_core::Quota {
            id: uid,
            bytes: shown(uid, share.bytes, self.bounds.bytes),
            nodes: shown(uid, share.nodes, self.bounds.nodes),
        });
        Ok(QuotaReport {
            quota,
            ..QuotaReport::default()
        })
    }

    fn set_quota(&self, cx: &Ctx<'_>, of: QuotaOf, set: &SetQuota) -> Result<()> {
        if !self.bounds.each || of == QuotaOf::Groups {
            return self.below.set_quota(cx, of, set);
        }
        let words = "each user has the bound that layer quota was given";
        Err(Error::note(Kind::NotPermitted, words))
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let _changing = self.changing.write();
        let was = match self.below.lookup(cx, dir, name) {
            Ok(entry) => Some(entry.attr),
            Err(e) if e == Kind::NotFound => None,
            Err(e) => return Err(e),
        };
        if was.is_none() {
            self.check(Self::owner(set, cx.cred), set.size.unwrap_or(0), 1)?;
        }
        let (entry, open) = self.below.create(cx, dir, name, how, set)?;
        match was {
            Some(was) => self.changed(&was, &entry.attr),
            None => self.charge(&entry.attr),
        }
        self.opened(open, entry.node);
        Ok((entry, open))
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.make(cx, set, 0, || self.below.mkdir(cx, dir, name, set))
    }

    fn mknod(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        self.make(cx, set, 0, || {
            self.below.mknod(cx, dir, name, kind, rdev, set)
        })
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.make(cx, set, target.len() as u64, || {
            self.below.symlink(cx, dir, name, target, set)
        })
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let _changing = self.changing.write();
        let was = self.below.lookup(cx, dir, name)?.attr;
        self.below.unlink(cx, dir, name)?;
        self.unnamed(&was);
        Ok(())
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let _changing = self.changing.write();
        let was = self.below.lookup(cx, dir, name)?.attr;
        self.below.rmdir(cx, dir, name)?;
        self.unnamed(&was);
        Ok(())
    }

    fn rename(
        &self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        let _changing = self.changing.write();
        let moved = self.below.lookup(cx, from, name).ok();
        let replaced = self.below.lookup(cx, to, new_name).ok();
        self.below.rename(cx, from, name, to, new_name, flags)?;
        if flags == RenameFlags::REPLACE {
            let same = moved.map(|m| m.node);
            if let Some(gone) = replaced.filter(|r| Some(r.node) != same) {
                self.unnamed(&gone.attr);
            }
        }
        Ok(())
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        if set.size.is_none() && set.uid.is_none() {
            return self.below.setattr(cx, node, set);
        }
        let _changing = self.changing.write();
        let was = self.below.getattr(cx, node)?;
        let size = set.size.filter(|_| was.kind == FileKind::File);
        let bytes = size.unwrap_or(bytes_of(&was));
        match set.uid.filter(|&uid| self.bounds.each && uid != was.uid) {
            Some(uid) => self.check(uid, bytes, 1)?,
            None => self.check_size(was.uid, bytes_of(&was), bytes)?,
        }
        let is = self.below.setattr(cx, node, set)?;
        if node != self.below.root() {
            self.changed(&was, &is);
        }
        Ok(is)
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        // A node must not lose its last name between the two.
        let _changing = self.changing.read();
        let open = self.below.open(cx, node, mode)?;
        self.opened(open, node);
        Ok(open)
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let node = self.node_of(open)?;
        let len = data.len() as u64;
        if let Some(end) = offset.and_then(|offset| offset.checked_add(len)) {
            let _inside = self.changing.read();
            if end <= self.below.getattr(cx, node)?.size {
                return self.below.write(cx, open, offset, data);
            }
        }
        let _changing = self.changing.write();
        let was = self.below.getattr(cx, node)?;
        let end = offset.unwrap_or(was.size).saturating_add(len);
        if len > 0 {
            self.check_size(was.uid, was.size, end)?;
        }
        let answer = self.below.write(cx, open, offset, data);
        // A write that failed half way may have made it longer.
        if let Ok(is) = self.below.getattr(cx, node) {
            self.changed(&was, &is);
        }
        answer
    }

    fn allocate(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        hole: bool,
    ) -> Result<()> {
        if !hole {
            return Err(Kind::Unsupported.into());
        }
        self.below.allocate(cx, open, offset, len, hole)
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        let _changing = self.changing.write();
        let last = self.state.lock().closed(open);
        let gone = last.and_then(|node| self.below.getattr(cx, node).ok());
        let answer = self.below.close(cx, open);
        if let Some(attr) = gone {
            self.credit(&attr);
        }
        answer
    }
}

impl State {
    /// Ends an open; gives its node if that goes with it.
    fn closed(&mut self, open: OpenId) -> Option<NodeId> {
        let node = self.opens.remove(&open)?;
        let times = self.times_open.get_mut(&node)?;
        *times -= 1;
        if *times > 0 {
            return None;
        }
        self.times_open.remove(&node);
        self.nameless.remove(&node).then_some(node)
    }
}
