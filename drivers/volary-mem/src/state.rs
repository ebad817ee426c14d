//! All nodes and opens of a volume, and the room they take.

use crate::content::Content;
use crate::dir::Dir;
use crate::node::{Body, Node};
use crate::options::MemOptions;
use std::collections::BTreeMap;
use std::ops::Range;
use volary_core::{Attr, Caps, Ctx, Entry, Kind, Mode, NodeId, OpenId, Result, SetAttr, Time};

/// What the volume's one lock protects.
pub(crate) struct State {
    pub(crate) options: MemOptions,
    pub(crate) root: NodeId,
    nodes: BTreeMap<NodeId, Node>,
    opens: BTreeMap<OpenId, (NodeId, Mode)>,
    next_ino: u64,
    next_open: u64,
    /// Grows with each change; see [`Attr::change`].
    changes: u64,
    used: u64,
    pub(crate) detached: bool,
}

/// The root's number.
const ROOT: u64 = 1;

impl State {
    pub(crate) fn new(options: MemOptions, now: Time) -> Result<Self> {
        let root = NodeId::new(ROOT, 1).ok_or(Kind::Invalid)?;
        let mut state = Self {
            root,
            nodes: BTreeMap::new(),
            opens: BTreeMap::new(),
            next_ino: ROOT,
            next_open: 1,
            changes: 0,
            used: 0,
            detached: false,
            options,
        };
        let set = SetAttr::owned(state.options.dir_mode, state.options.uid, state.options.gid);
        let made = state.add_node(Body::Dir(Dir::new(root)), &set, now)?;
        state.node_mut(made)?.nlink = 2;
        Ok(state)
    }

    // ---- Nodes ----

    /// Returns a node.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn node(&self, id: NodeId) -> Result<&Node> {
        self.nodes.get(&id).ok_or_else(|| Kind::Stale.into())
    }

    /// Returns a node, for a change.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn node_mut(&mut self, id: NodeId) -> Result<&mut Node> {
        self.nodes.get_mut(&id).ok_or_else(|| Kind::Stale.into())
    }

    pub(crate) fn attr(&self, id: NodeId) -> Result<Attr> {
        let mut attr = self.node(id)?.attr(self.options.has(Caps::HOLES));
        if !self.options.has(Caps::MODES) {
            attr.mode = self.options.default_mode(attr.kind);
            attr.uid = self.options.uid;
            attr.gid = self.options.gid;
        }
        Ok(attr)
    }

    pub(crate) fn entry(&self, node: NodeId) -> Result<Entry> {
        let attr = self.attr(node)?;
        Ok(Entry { node, attr })
    }

    /// Adds a new node without a name. Returns its id.
    ///
    /// # Errors
    /// `NoSpace`, `TooBig`; nothing has changed then.
    pub(crate) fn add_node(&mut self, body: Body, set: &SetAttr, now: Time) -> Result<NodeId> {
        if self.nodes.len() as u64 >= self.options.nodes_max {
            return Err(Kind::NoSpace.into());
        }
        let id = NodeId::new(self.next_ino, 1).ok_or(Kind::NoSpace)?;
        let mut node = Node {
            id,
            body,
            mode: 0,
            uid: set.uid.unwrap_or(self.options.uid),
            gid: set.gid.unwrap_or(self.options.gid),
            nlink: 0,
            opens: 0,
            atime: now.round_down(self.options.atime_step),
            mtime: now.round_down(self.options.caps.time_step),
            ctime: now.round_down(self.options.caps.time_step),
            btime: now.round_down(self.options.btime_step),
            change: 0,
            xattrs: BTreeMap::new(),
        };
        node.mode = set.mode.unwrap_or(self.options.default_mode(node.kind())) & 0o7777;
        if let (Body::File(content), Some(size)) = (&mut node.body, set.size) {
            self.options.check_size(size)?;
            content.resize(size);
        }
        self.options.set_times(&mut node, set, now);
        self.use_room(0, node.room(self.options.has(Caps::HOLES)))?;
        self.next_ino += 1;
        self.nodes.insert(id, node);
        Ok(id)
    }

    /// Sets the node's time of last change to `now`.
    pub(crate) fn touch(&mut self, id: NodeId, now: Time) -> Result<()> {
        self.changes += 1;
        let (changes, step) = (self.changes, self.options.caps.time_step);
        let node = self.node_mut(id)?;
        node.ctime = now.round_down(step);
        node.change = changes;
        Ok(())
    }

    /// Sets the node's times of last change, and of last change of its content, to `now`.
    pub(crate) fn touch_content(&mut self, id: NodeId, now: Time) -> Result<()> {
        let step = self.options.caps.time_step;
        self.node_mut(id)?.mtime = now.round_down(step);
        self.touch(id, now)
    }

    /// Frees a node that has no name and is not open.
    pub(crate) fn drop_unused(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get(&id)
            && node.nlink == 0
            && node.opens == 0
        {
            self.used -= node.room(self.options.has(Caps::HOLES));
            self.nodes.remove(&id);
        }
    }

    // ---- Attributes ----

    /// Changes attributes, all or none.
    ///
    /// # Errors
    /// `Unsupported`; for a size, `TooBig`, `IsDir`, `Invalid`, `NoSpace`.
    pub(crate) fn set_attr(&mut self, cx: &Ctx<'_>, id: NodeId, set: &SetAttr) -> Result<()> {
        let now = self.attr(id)?;
        let keeps_modes = self.options.has(Caps::MODES)
            || set.mode.is_none_or(|mode| mode == now.mode)
                && set.uid.is_none_or(|uid| uid == now.uid)
                && set.gid.is_none_or(|gid| gid == now.gid);
        if !keeps_modes || set.dos.is_some() {
            return Err(Kind::Unsupported.into());
        }
        if let Some(size) = set.size {
            self.change_content(id, 0..0, size, |content| content.resize(size))?;
            self.touch_content(id, cx.now)?;
        }
        let mut node = self.nodes.remove(&id).ok_or(Kind::Stale)?;
        node.mode = set.mode.map_or(node.mode, |mode| mode & 0o7777);
        node.uid = set.uid.unwrap_or(node.uid);
        node.gid = set.gid.unwrap_or(node.gid);
        self.options.set_times(&mut node, set, cx.now);
        self.nodes.insert(id, node);
        self.touch(id, cx.now)
    }

    // ---- Room ----

    /// Notes that something which took `before` bytes now takes `after` bytes.
    ///
    /// # Errors
    /// `NoSpace`; nothing has changed then.
    pub(crate) fn use_room(&mut self, before: u64, after: u64) -> Result<()> {
        let used = self.used.saturating_sub(before).saturating_add(after);
        if after > before && used > self.options.size {
            return Err(Kind::NoSpace.into());
        }
        self.used = used;
        Ok(())
    }

    pub(crate) fn free(&self) -> u64 {
        self.options.size.saturating_sub(self.used)
    }

    pub(crate) fn nodes_free(&self) -> u64 {
        let there = self.nodes.len() as u64;
        self.options.nodes_max.saturating_sub(there)
    }

    /// Changes the content of a file. Before `change`, the content's pages for these bytes, and a
    /// size of at least `size`, are accounted for.
    ///
    /// # Errors
    /// `IsDir`, `Invalid`, `TooBig`, `NoSpace`; nothing has changed then.
    pub(crate) fn change_content(
        &mut self,
        id: NodeId,
        bytes: Range<u64>,
        size: u64,
        change: impl FnOnce(&mut Content),
    ) -> Result<()> {
        let holes = self.options.has(Caps::HOLES);
        let content = self.node(id)?.file()?;
        let before = content.room(holes);
        let most = content.room_with(bytes.start, bytes.end - bytes.start, size, holes);
        self.options.check_size(size)?;
        self.use_room(before, most)?;
        let content = self.node_mut(id)?.file_mut()?;
        change(content);
        let after = content.room(holes);
        self.use_room(most, after)
    }

    // ---- Opens ----

    /// Opens a node.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn open(&mut self, node: NodeId, mode: Mode) -> Result<OpenId> {
        let open = OpenId(self.next_open);
        self.node_mut(node)?.opens += 1;
        self.opens.insert(open, (node, mode));
        self.next_open += 1;
        Ok(open)
    }

    /// Returns the node of an open.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn opened(&self, open: OpenId) -> Result<NodeId> {
        let opened = self.opens.get(&open).map(|(node, _)| *node);
        opened.ok_or_else(|| Kind::Stale.into())
    }

    /// Returns the node of an open that permits writing.
    ///
    /// # Errors
    /// `Stale`; `Invalid` for one that is only for reading.
    pub(crate) fn opened_to_write(&self, open: OpenId) -> Result<NodeId> {
        match self.opens.get(&open) {
            None => Err(Kind::Stale.into()),
            Some((_, Mode::Read)) => Err(Kind::Invalid.into()),
            Some((node, _)) => Ok(*node),
        }
    }

    pub(crate) fn close(&mut self, open: OpenId) -> Result<()> {
        let (node, _) = self.opens.remove(&open).ok_or(Kind::Stale)?;
        self.node_mut(node)?.opens -= 1;
        self.drop_unused(node);
        Ok(())
    }

    pub(crate) fn close_all(&mut self) {
        let opens: Vec<_> = self.opens.keys().copied().collect();
        for open in opens {
            // An open in the table always has its node, so this cannot fail.
            let _ = self.close(open);
        }
    }
}
