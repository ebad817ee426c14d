//! Making, removing and renaming entries.

use crate::dir::Dir;
use crate::node::Body;
use crate::state::State;
use volary_core::{
    Caps, Ctx, Entry, FileKind, Kind, Name, NodeId, RenameFlags, Result, SetAttr, Time,
};

/// An entry in a directory: where it is, and what it leads to.
struct Found {
    dir: NodeId,
    key: Vec<u8>,
    node: NodeId,
}

impl State {
    /// Returns the node that a name leads to.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`.
    pub(crate) fn lookup(&self, dir: NodeId, name: Name<'_>) -> Result<NodeId> {
        let found = self.node(dir)?.dir()?.get(&self.options.key(name));
        found.ok_or_else(|| Kind::NotFound.into())
    }

    /// Checks that an entry can be made.
    ///
    /// # Errors
    /// `NotDir`; `Exists`; `NotFound` in a directory that was removed; `Invalid`, `NameTooLong`.
    pub(crate) fn check_free(&self, dir: NodeId, name: Name<'_>) -> Result<()> {
        if self
            .node(dir)?
            .dir()?
            .get(&self.options.key(name))
            .is_some()
        {
            return Err(Kind::Exists.into());
        }
        if self.node(dir)?.nlink == 0 {
            return Err(Kind::NotFound.into());
        }
        self.check_name(name)
    }

    fn check_name(&self, name: Name<'_>) -> Result<()> {
        if !self.options.has(Caps::ANY_NAME) && (self.options.refuses)(name.as_bytes()) {
            return Err(Kind::Invalid.into());
        }
        if name.as_bytes().len() > usize::from(self.options.caps.name_max) {
            return Err(Kind::NameTooLong.into());
        }
        Ok(())
    }

    /// Makes a node with a first name.
    ///
    /// # Errors
    /// As [`check_free`](Self::check_free); `TooManyLinks`, `NoSpace`.
    pub(crate) fn make(
        &mut self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        body: Body,
        set: &SetAttr,
    ) -> Result<Entry> {
        self.check_free(dir, name)?;
        let is_dir = matches!(body, Body::Dir(_));
        if is_dir {
            self.check_links(dir)?;
        }
        let node = self.add_node(body, set, cx.now)?;
        self.node_mut(node)?.nlink = if is_dir { 2 } else { 1 };
        if is_dir {
            self.node_mut(dir)?.nlink += 1;
        }
        self.add_name(dir, name, node, cx.now)?;
        self.entry(node)
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// As [`make`](Self::make).
    pub(crate) fn mkdir(
        &mut self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        set: &SetAttr,
    ) -> Result<Entry> {
        self.make(cx, dir, name, Body::Dir(Dir::new(dir)), set)
    }

    /// Links a node under another name.
    ///
    /// # Errors
    /// `Unsupported`; `IsDir`; as [`check_free`](Self::check_free); `TooManyLinks`.
    pub(crate) fn link(
        &mut self,
        cx: &Ctx<'_>,
        node: NodeId,
        dir: NodeId,
        name: Name<'_>,
    ) -> Result<Entry> {
        self.options.check_has(Caps::HARD_LINKS)?;
        if self.node(node)?.kind() == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        self.check_free(dir, name)?;
        if self.node(node)?.nlink == 0 {
            return Err(Kind::NotFound.into());
        }
        self.check_links(node)?;
        self.node_mut(node)?.nlink += 1;
        self.add_name(dir, name, node, cx.now)?;
        self.touch(node, cx.now)?;
        self.entry(node)
    }

    /// Removes a name of a node that is not a directory.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`, `IsDir`.
    pub(crate) fn unlink(&mut self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let found = self.find(dir, name)?;
        if self.is_dir(found.node)? {
            return Err(Kind::IsDir.into());
        }
        self.node_mut(dir)?.dir_mut()?.remove(&found.key);
        self.touch_content(dir, cx.now)?;
        self.drop_name(cx, found.dir, found.node)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`, `NotEmpty`.
    pub(crate) fn rmdir(&mut self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let found = self.find(dir, name)?;
        self.check_empty(found.node)?;
        self.node_mut(dir)?.dir_mut()?.remove(&found.key);
        self.touch_content(dir, cx.now)?;
        self.drop_name(cx, found.dir, found.node)
    }

    /// Renames a node.
    ///
    /// # Errors
    /// Those of [`FileSystem::rename`](volary_core::FileSystem::rename).
    pub(crate) fn rename(
        &mut self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        if flags == RenameFlags::SWAP && !self.options.has(Caps::SWAP) {
            return Err(Kind::Unsupported.into());
        }
        let old = self.find(from, name)?;
        let new = match self.find(to, new_name) {
            Err(e) if e == Kind::NotFound && flags != RenameFlags::SWAP => None,
            found => Some(found?),
        };
        if self.node(to)?.nlink == 0 {
            return Err(Kind::NotFound.into());
        }
        self.check_not_into_itself(old.node, to)?;
        match (flags, new) {
            (RenameFlags::SWAP, Some(new)) => {
                self.check_not_into_itself(new.node, from)?;
                self.swap(cx, &old, &new)
            }
            (_, Some(new))
                if (new.dir, &new.key) == (old.dir, &old.key)
                    && (flags != RenameFlags::KEEP || name != new_name) =>
            {
                self.check_name(new_name)?;
                self.respell(cx, &new, new_name)
            }
            (RenameFlags::KEEP, Some(_)) => Err(Kind::Exists.into()),
            (_, Some(new)) if new.node == old.node => Ok(()),
            (_, Some(new)) => {
                self.check_replaceable(old.node, new.node)?;
                self.check_name(new_name)?;
                self.node_mut(new.dir)?.dir_mut()?.remove(&new.key);
                self.drop_name(cx, new.dir, new.node)?;
                self.move_name(cx, &old, to, new_name)
            }
            (_, None) => {
                self.check_free(to, new_name)?;
                if self.is_dir(old.node)? && from != to {
                    self.check_links(to)?;
                }
                self.move_name(cx, &old, to, new_name)
            }
        }
    }

    /// Moves the entry to a free name.
    fn move_name(&mut self, cx: &Ctx<'_>, old: &Found, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.node_mut(old.dir)?.dir_mut()?.remove(&old.key);
        self.touch_content(old.dir, cx.now)?;
        self.add_name(dir, name, old.node, cx.now)?;
        self.change_parent(old.node, old.dir, dir)?;
        self.touch(old.node, cx.now)
    }

    fn swap(&mut self, cx: &Ctx<'_>, old: &Found, new: &Found) -> Result<()> {
        let (into_old, into_new) = (new.node, old.node);
        self.node_mut(old.dir)?
            .dir_mut()?
            .redirect(&old.key, into_old);
        self.node_mut(new.dir)?
            .dir_mut()?
            .redirect(&new.key, into_new);
        self.change_parent(into_new, old.dir, new.dir)?;
        self.change_parent(into_old, new.dir, old.dir)?;
        for dir in [old.dir, new.dir] {
            self.touch_content(dir, cx.now)?;
        }
        for node in [old.node, new.node] {
            self.touch(node, cx.now)?;
        }
        Ok(())
    }

    /// Renames an entry to a name that has the same key. Only the case of letters may change.
    fn respell(&mut self, cx: &Ctx<'_>, entry: &Found, name: Name<'_>) -> Result<()> {
        let spelling = self.options.spelling(name);
        let dir = self.node_mut(entry.dir)?.dir_mut()?;
        if dir.respell(&entry.key, spelling) {
            self.touch_content(entry.dir, cx.now)?;
            self.touch(entry.node, cx.now)?;
        }
        Ok(())
    }

    fn find(&self, dir: NodeId, name: Name<'_>) -> Result<Found> {
        let node = self.lookup(dir, name)?;
        let key = self.options.key(name);
        Ok(Found { dir, key, node })
    }

    fn is_dir(&self, node: NodeId) -> Result<bool> {
        Ok(self.node(node)?.kind() == FileKind::Dir)
    }

    /// Checks that a directory is empty.
    ///
    /// # Errors
    /// `NotDir`, `NotEmpty`.
    fn check_empty(&self, dir: NodeId) -> Result<()> {
        if self.node(dir)?.dir()?.is_empty() {
            Ok(())
        } else {
            Err(Kind::NotEmpty.into())
        }
    }

    /// Checks that a node can have one more link.
    ///
    /// # Errors
    /// `TooManyLinks`.
    fn check_links(&self, node: NodeId) -> Result<()> {
        if self.node(node)?.nlink >= self.options.link_max {
            return Err(Kind::TooManyLinks.into());
        }
        Ok(())
    }

    /// Checks that a node does not move into itself.
    ///
    /// # Errors
    /// `Invalid` if `dir` is `node` or lies in it.
    fn check_not_into_itself(&self, node: NodeId, dir: NodeId) -> Result<()> {
        let mut at = dir;
        loop {
            if at == node {
                return Err(Kind::Invalid.into());
            }
            if at == self.root {
                return Ok(());
            }
            at = self.node(at)?.dir()?.parent;
        }
    }

    /// Checks that node `old` may replace node `new`.
    ///
    /// # Errors
    /// `NotDir`, `IsDir`, `NotEmpty`.
    fn check_replaceable(&self, old: NodeId, new: NodeId) -> Result<()> {
        match (self.is_dir(old)?, self.is_dir(new)?) {
            (true, true) => self.check_empty(new),
            (true, false) => Err(Kind::NotDir.into()),
            (false, true) => Err(Kind::IsDir.into()),
            (false, false) => Ok(()),
        }
    }

    fn add_name(&mut self, dir: NodeId, name: Name<'_>, node: NodeId, now: Time) -> Result<()> {
        let (key, spelling) = (self.options.key(name), self.options.spelling(name));
        self.node_mut(dir)?.dir_mut()?.insert(key, spelling, node);
        self.touch_content(dir, now)
    }

    /// Updates a node that has lost a name in `dir`.
    fn drop_name(&mut self, cx: &Ctx<'_>, dir: NodeId, node: NodeId) -> Result<()> {
        if self.is_dir(node)? {
            self.node_mut(dir)?.nlink -= 1;
            self.node_mut(node)?.nlink = 0;
        } else {
            self.node_mut(node)?.nlink -= 1;
        }
        self.touch(node, cx.now)?;
        self.drop_unused(node);
        Ok(())
    }

    /// Updates the links of a node, perhaps a directory, that has moved to another directory.
    fn change_parent(&mut self, node: NodeId, from: NodeId, to: NodeId) -> Result<()> {
        if self.is_dir(node)? && from != to {
            self.node_mut(node)?.dir_mut()?.parent = to;
            self.node_mut(from)?.nlink -= 1;
            self.node_mut(to)?.nlink += 1;
        }
        Ok(())
    }
}
