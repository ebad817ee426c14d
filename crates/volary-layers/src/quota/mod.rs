//! Limits what owners take.

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

/// Limits bytes and nodes, of the whole volume or of each owner.
///
/// A file counts with its length, a symlink with that of its target, anything else with no bytes.
/// Each node counts as one, however many names it has, from its making until its last name and last
/// open are gone. The root is not counted. A call that would exceed a limit answers `Quota` and
/// changes nothing. With [`QuotaBounds::each`], a node counts for its owner, and user 0 has no
/// limit; giving a file away needs room with the new owner.
///
/// When the layer is attached, it counts existing nodes by a walk through the whole volume. It
/// stores nothing there, so a crash leaves nothing to repair. A volume that is over its limit when
/// attached accepts nothing more, but may shrink. Changes that bypass the layer are not seen until
/// the next attachment.
///
/// `statfs` shows the limit as the size and the rest of it as free. With [`QuotaBounds::each`],
/// `quota` of users shows the limit of each owner of a node, and `set_quota` of users answers
/// `NotPermitted`. Otherwise, and for groups, both are passed to the volume. Takes away
/// [`Caps::PREALLOCATE`], since preallocated space has no length. Calls that change the count run
/// one at a time. Put it below `crypt` (whose files are longer below than above), or above to count
/// what users see.
pub struct Quota {
    below: Fs,
    bounds: QuotaBounds,
    /// Read-locked by writes within the size of their file, write-locked by calls that change the
    /// count.
    changing: RwLock<()>,
    state: Mutex<State>,
}

/// The limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaBounds {
    /// Bytes; `None` for no limit.
    pub bytes: Option<u64>,
    /// Nodes; `None` for no limit.
    pub nodes: Option<u64>,
    /// Whether the limits apply to each owner separately.
    pub each: bool,
}

#[derive(Default)]
struct State {
    used: Used,
    /// The node of each open, and how many opens a node has; bounded by the opens below.
    opens: HashMap<OpenId, NodeId>,
    times_open: HashMap<NodeId, u64>,
    /// Nodes that have no name but are open.
    nameless: HashSet<NodeId>,
}

impl Quota {
    /// Puts the layer over `below`, and counts its nodes.
    ///
    /// # Errors
    /// Those of reading the volume.
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

    /// Parses `bytes=SIZE`, `nodes=N`, `each`, with commas between.
    ///
    /// # Errors
    /// `Invalid`, which says what is expected, and for `each` over a volume that keeps no owners;
    /// as [`new`](Self::new).
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

    /// Returns the bytes and nodes that count for `uid`, or without `each` those of all owners.
    pub fn used(&self, uid: u32) -> (u64, u64) {
        let share = self.state.lock().used.of(self.payer(uid));
        (share.bytes, share.nodes)
    }

    /// Returns the owner whose share a node of `uid` counts for; `None` for the whole volume.
    fn payer(&self, uid: u32) -> Option<u32> {
        self.bounds.each.then_some(uid)
    }

    /// # Errors
    /// `Quota` if the share of `uid` has no room for a file to grow from `was` to `size`. A size
    /// above the volume's own maximum is left for the volume to refuse.
    fn check_size(&self, uid: u32, was: u64, size: u64) -> Result<()> {
        if size > self.below.caps().size_max {
            return Ok(());
        }
        self.check(uid, size.saturating_sub(was), 0)
    }

    /// # Errors
    /// `Quota` if the share of `uid` has no room for this much more.
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

    /// Updates the count after a node has changed.
    fn changed(&self, was: &Attr, is: &Attr) {
        let used = &mut self.state.lock().used;
        used.take(was.uid, bytes_of(was), 1);
        used.add(is.uid, bytes_of(is), 1);
    }

    /// Returns the owner that a new node gets.
    fn owner(set: &SetAttr, cred: &Cred) -> u32 {
        set.uid.unwrap_or(cred.uid)
    }

    /// Makes a node that does not exist yet, if the owner has room for it and its `bytes`.
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

    /// Updates the count after a name of this node was removed.
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
    /// `Stale` for an open that was not made through this layer.
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
        // A node must not lose its last name between the two calls.
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
        // A write that failed half way may still have extended the file.
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
    /// Ends an open. Returns its node if the node is freed with it.
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
