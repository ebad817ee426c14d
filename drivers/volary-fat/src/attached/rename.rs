//! Renaming: within a directory, between two, onto another name, and in case
//! alone.

use crate::attached::attrs::count_rename;
use crate::attached::create::check_has_name;
use crate::attached::entries::{Located, Slots};
use crate::attached::node::{Body, Node};
use crate::attached::operations::Attached;
use crate::attached::remove::{check_empty, check_left};
use crate::attached::tree::Tree;
use crate::base::epoch::{Epoch, Step, Stop};
use crate::base::store::Store;
use crate::directory::dir::Dir;
use crate::directory::index::Span;
use crate::names::record::LongStyle;
use crate::unix::which::Unix;
use crate::volume::ondisk::{DirEntry, ENTRY_LEN};
use parking_lot::RwLockWriteGuard;
use std::sync::Arc;
use volary_core::{Ctx, FileKind, Kind, Name, NodeId, RenameFlags, Result};
use volary_ondisk::rename::{Circle, Target, Task, task};
use zerocopy::IntoBytes;

/// The directories of a rename: one or two.
enum Dirs<'a> {
    One(RwLockWriteGuard<'a, Body>),
    Two(RwLockWriteGuard<'a, Body>, RwLockWriteGuard<'a, Body>),
}

impl Dirs<'_> {
    fn from(&mut self) -> Result<&mut Dir> {
        match self {
            Self::One(dir) | Self::Two(dir, _) => dir.dir_mut(),
        }
    }

    fn to(&mut self) -> Result<&mut Dir> {
        match self {
            Self::One(dir) | Self::Two(_, dir) => dir.dir_mut(),
        }
    }

    /// Asks for a commit before anything is moved into a directory that was made in
    /// this epoch from one that was not: the new directory's own entry may be on its
    /// way as late as the loss of the old name is.
    fn durable_first(&mut self, epoch: &Epoch) -> Step<()> {
        if epoch.is_born(self.to()?.first) && !epoch.is_born(self.from()?.first) {
            return Err(Stop::Commit);
        }
        Ok(())
    }
}

/// A rename under way.
struct Move<'a> {
    fs: &'a Attached,
    store: &'a Store,
    tree: &'a Tree,
    cx: &'a Ctx<'a>,
    from: &'a Arc<Node>,
    to: &'a Arc<Node>,
    node: Arc<Node>,
    source: Located,
}

impl Attached {
    pub(crate) fn rename_entry(
        &self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        self.store.writable()?;
        let _moving = self.moving.lock();
        let from = self.tree.dir(from)?;
        let to = self.tree.dir(to)?;
        let above = self.way_up(&to)?;
        let mut dirs = self.lock_dirs(&from, &to)?;
        let source = self
            .tree
            .locate_shown(dirs.from()?, &self.tree.entries.folded(name))?;
        check_has_name(&to)?;
        let node = self.tree.node_of(&source)?;
        if node.is_dir() && above.contains(&node.id) {
            return Err(Kind::Invalid.into());
        }
        let found = self
            .tree
            .entries
            .locate(dirs.to()?, &self.tree.entries.folded(new_name))?;
        let target = found.map(|t| self.target(&source, &t));
        let task = task(flags, node.is_dir(), name == new_name, target)?;
        let at = Move {
            fs: self,
            store: &self.store,
            tree: &self.tree,
            cx,
            from: &from,
            to: &to,
            node,
            source,
        };
        match (task, found) {
            (Task::Nothing, _) => Ok(()),
            (Task::Respell, _) => at.rename_in_place(dirs.to()?, &source, new_name.as_bytes()),
            (Task::Replace, Some(t)) => at.replace(&mut dirs, &t, new_name.as_bytes()),
            (Task::Swap, _) => Err(Kind::Unsupported.into()),
            (Task::Move | Task::Replace, _) => at.move_entry(&mut dirs, new_name.as_bytes()),
        }
    }

    /// Returns what the new name leads to. FAT has one name for each node.
    fn target(&self, source: &Located, found: &Located) -> Target {
        let is_same = found.place.key() == source.place.key();
        Target {
            is_same_entry: is_same,
            is_same_node: is_same,
            is_dir: self.tree.attrs.perms(&found.entry).kind == FileKind::Dir,
        }
    }

    /// Returns a directory and all above it. The tree must be locked.
    fn way_up(&self, dir: &Arc<Node>) -> Result<Vec<NodeId>> {
        let (mut ids, mut circle) = (vec![dir.id], Circle::new(dir.id));
        let mut place = dir.meta.lock().place;
        while let Some(at) = place {
            let node = self.tree.dir_node(at.dir)?;
            circle.check(node.id)?;
            ids.push(node.id);
            place = node.meta.lock().place;
        }
        Ok(ids)
    }

    fn lock_dirs<'a>(&self, from: &'a Node, to: &'a Node) -> Result<Dirs<'a>> {
        if from.id == to.id {
            return Ok(Dirs::One(self.tree.write_dir(from)?));
        }
        let from = self.tree.write_dir(from)?;
        Ok(Dirs::Two(from, self.tree.write_dir(to)?))
    }
}

impl Move<'_> {
    /// Moves an entry to a name that is free.
    fn move_entry(&self, dirs: &mut Dirs<'_>, new_name: &[u8]) -> Result<()> {
        let entry = self.moved_entry(&self.node);
        let mut slots = self.tree.entries.plan(dirs.to()?, new_name, &entry)?;
        let old = self.source.span;
        let mut both = None;
        let located = self.fs.commits.change(|epoch| {
            if let Some(located) = both {
                self.prepare_removal(dirs.from()?, epoch, &[], old)?;
                self.remove_moved(dirs.from()?, epoch, &[], old)?;
                self.settle(epoch, &located)?;
                return Ok(located);
            }
            dirs.durable_first(epoch)?;
            slots.set_birth(&self.moved_entry(&self.node));
            let to = dirs.to()?;
            let first = to.room(self.store, epoch, slots.count())?;
            let added = to.sectors(self.store, first, slots.count())?;
            if self.could_lose_both(dirs.from()?, epoch, &added, old)? {
                epoch.note_move(&added, &[])?;
                both = Some(self.add(dirs.to()?, epoch, &mut slots, first)?);
                return Err(Stop::Commit);
            }
            self.prepare_removal(dirs.from()?, epoch, &added, old)?;
            let located = self.add(dirs.to()?, epoch, &mut slots, first)?;
            self.remove_moved(dirs.from()?, epoch, &added, old)?;
            self.settle(epoch, &located)?;
            Ok(located)
        })?;
        self.tree.moved(&self.node, &self.source, &located);
        Ok(())
    }

    /// Writes a planned entry, which keeps its stamp, into slots of a directory that are free.
    fn add(&self, dir: &mut Dir, epoch: &Epoch, slots: &mut Slots, first: u32) -> Step<Located> {
        let Tree { entries, attrs, .. } = self.tree;
        entries.insert_at(attrs, dir, epoch, slots, first, true)
    }

    /// Returns whether one of the sectors that are added to, but not that of the new
    /// short entry, is also taken from: a disk that writes it alone has neither
    /// name. Then the one must be durable before the other goes, and a commit
    /// comes in between. Taking it out needs no device after this.
    fn could_lose_both(&self, from: &Dir, epoch: &Epoch, added: &[u64], old: Span) -> Result<bool> {
        from.touch(self.store, old.first, old.len())?;
        let taken = from.sectors(self.store, old.first, old.len())?;
        let before_short = added.split_last().map_or(&[][..], |(_, before)| before);
        let shared = before_short.iter().any(|s| taken.contains(s));
        Ok(shared && !epoch.is_born(from.first))
    }

    /// Sees to it that taking an entry out after adding it elsewhere can be
    /// ordered, and will not need the device.
    fn prepare_removal(&self, from: &Dir, epoch: &Epoch, added: &[u64], span: Span) -> Step<()> {
        from.touch(self.store, span.first, span.len())?;
        let taken = from.sectors(self.store, span.first, span.len())?;
        if epoch.is_born(from.first) {
            return Ok(());
        }
        epoch.note_left(from.first);
        epoch.note_move(added, &taken)
    }

    /// Takes out an entry that was added elsewhere: where that is another
    /// sector, after the addition is durable.
    fn remove_moved(&self, from: &mut Dir, epoch: &Epoch, added: &[u64], span: Span) -> Step<()> {
        self.tree.entries.leave(from, span)?;
        for slot in span.first..=span.last {
            let one = Span {
                first: slot,
                slot,
                last: slot,
            };
            let sectors = from.sectors(self.store, slot, 1)?;
            let shared = sectors.iter().all(|s| added.contains(s));
            let stage = match shared {
                true => epoch.stage(from.first),
                false => epoch.removal_stage(from.first),
            };
            from.erase(self.store, one, stage)?;
        }
        Ok(())
    }

    /// Notes the new place of a node that was moved.
    fn settle(&self, epoch: &Epoch, located: &Located) -> Step<()> {
        if self.node.is_dir() && self.from.id != self.to.id {
            self.set_dot_dot(&self.node, located.place.dir, epoch)?;
        }
        let now = self.cx.now;
        {
            let mut meta = self.node.meta.lock();
            meta.place = Some(located.place);
            meta.moved = true;
            take_name(
                &mut meta.entry,
                &located.entry,
                self.tree.entries.names.long,
            );
            let DirEntry {
                DIR_CrtTimeTenth,
                DIR_CrtTime,
                DIR_CrtDate,
                ..
            } = located.entry;
            if self.tree.attrs.unix != Unix::Paper {
                meta.entry.DIR_CrtTimeTenth = DIR_CrtTimeTenth;
                meta.entry.DIR_CrtTime = DIR_CrtTime;
                meta.entry.DIR_CrtDate = DIR_CrtDate;
            }
            self.fs.commits.changed(&self.node, &mut meta, now);
        }
        self.fs.commits.modified(self.from, now);
        self.fs.commits.modified(self.to, now);
        Ok(())
    }

    /// Returns the entry of a node with a rename counted in it.
    fn moved_entry(&self, node: &Node) -> DirEntry {
        let meta = node.meta.lock();
        let mut entry = meta.stored(self.tree.attrs.zone);
        if !meta.moved && !node.is_dir() {
            count_rename(&mut entry, self.tree.attrs.unix);
        }
        entry
    }

    fn set_dot_dot(&self, node: &Node, parent: u32, epoch: &Epoch) -> Result<()> {
        let first = node
            .meta
            .lock()
            .entry
            .first_cluster(self.store.layout.is_fat32());
        self.tree.parents.set(first, parent, epoch.stage(first))
    }

    /// Moves an entry onto another: the short entry there is overwritten, its
    /// name stays.
    fn replace(&self, dirs: &mut Dirs<'_>, target: &Located, new_name: &[u8]) -> Result<()> {
        if self
            .fs
            .tree
            .is_owner_table(target.place.dir, target.span.slot)
        {
            return Err(Kind::NotPermitted.into());
        }
        let victim = self.tree.node_of(target)?;
        if victim.id == self.from.id {
            return Err(Kind::NotEmpty.into());
        }
        let mut content = if victim.is_dir() {
            let content = self.tree.write_dir(&victim)?;
            check_empty(content.dir()?)?;
            content
        } else {
            victim.body.write()
        };
        content.runs_mut().load_all(&self.store.table)?;
        let located = self.fs.commits.change(|epoch| {
            dirs.durable_first(epoch)?;
            check_left(&content, epoch)?;
            let mut entry = self.moved_entry(&self.node);
            if self.tree.attrs.stamp(&entry, 0) == self.tree.attrs.stamp(&target.entry, 0) {
                // An id of what was there must not lead to what is there now.
                count_rename(&mut entry, self.tree.attrs.unix);
            }
            take_name(&mut entry, &target.entry, self.tree.entries.names.long);
            let located = Located { entry, ..*target };
            let added = dirs.to()?.sectors(self.store, target.span.slot, 1)?;
            dirs.to()?.touch(self.store, target.span.slot, 1)?;
            self.prepare_removal(dirs.from()?, epoch, &added, self.source.span)?;
            let mut raw = [0; ENTRY_LEN];
            raw.copy_from_slice(entry.as_bytes());
            let to = dirs.to()?;
            to.write(self.store, target.span.slot, &[raw], epoch.stage(to.first))?;
            if self.tree.attrs.births.last(target.place.key()).is_none() {
                self.fs
                    .tree
                    .attrs
                    .births
                    .note(target.place.key(), &target.entry);
            }
            self.remove_moved(dirs.from()?, epoch, &added, self.source.span)?;
            self.fs.lose_name(self.cx, &victim, &mut content);
            self.settle(epoch, &located)?;
            Ok(located)
        })?;
        drop(content);
        self.tree.left(&victim, target);
        if !victim.is_open() {
            self.tree.nodes.remove(victim.id);
        }
        self.tree.moved(&self.node, &self.source, &located);
        let at = Move {
            from: self.to,
            node: self.node.clone(),
            source: located,
            ..*self
        };
        at.rename_in_place(dirs.to()?, &located, new_name)
    }

    /// Gives an entry of `dir` another name that leads to it already: one that
    /// differs in case, or its long instead of its short one.
    fn rename_in_place(&self, dir: &mut Dir, old: &Located, new_name: &[u8]) -> Result<()> {
        let shown = dir.record(self.store, old.span, |r| {
            let mut name = Vec::new();
            self.tree.entries.names.show(r, &mut name);
            name
        })?;
        if shown.is_none_or(|s| s == new_name) {
            return Ok(());
        }
        let entry = self.moved_entry(&self.node);
        let entries = &self.tree.entries;
        entries.hide(dir, old.span)?;
        let result = entries
            .plan(dir, new_name, &entry)
            .and_then(|mut slots| self.write_renamed(dir, old, &mut slots));
        match result {
            Ok(located) => {
                self.tree.moved(&self.node, &self.source, &located);
                Ok(())
            }
            Err(e) => {
                entries.unhide(dir, old.span);
                Err(e)
            }
        }
    }

    fn write_renamed(&self, dir: &mut Dir, old: &Located, slots: &mut Slots) -> Result<Located> {
        let in_place = slots.count() == old.span.len();
        let mut both = None;
        self.fs.commits.change(|epoch| {
            if let Some(located) = both {
                self.prepare_removal(dir, epoch, &[], old.span)?;
                self.erase_renamed(dir, epoch, old.span)?;
                self.settle(epoch, &located)?;
                return Ok(located);
            }
            slots.set_birth(&self.moved_entry(&self.node));
            let first = if in_place {
                old.span.first
            } else {
                dir.room(self.store, epoch, slots.count())?
            };
            let added = dir.sectors(self.store, first, slots.count())?;
            if !in_place && self.could_lose_both(dir, epoch, &added, old.span)? {
                epoch.note_move(&added, &[])?;
                both = Some(self.add(dir, epoch, slots, first)?);
                return Err(Stop::Commit);
            }
            self.prepare_removal(dir, epoch, &added, old.span)?;
            let located = self.add(dir, epoch, slots, first)?;
            if !in_place {
                self.erase_renamed(dir, epoch, old.span)?;
            }
            self.settle(epoch, &located)?;
            Ok(located)
        })
    }

    /// Takes out the slots of a name that is hidden already.
    fn erase_renamed(&self, dir: &mut Dir, epoch: &Epoch, span: Span) -> Result<()> {
        let stage = epoch.removal_stage(dir.first);
        dir.erase(self.store, span, stage)?;
        if let Some(index) = &mut dir.index {
            index.release(span);
        }
        Ok(())
    }
}

/// Gives an entry the name of another.
fn take_name(entry: &mut DirEntry, other: &DirEntry, style: LongStyle) {
    entry.DIR_Name = other.DIR_Name;
    match style {
        LongStyle::Vfat => entry.DIR_NTRes = other.DIR_NTRes,
        LongStyle::Paper => {
            let long = crate::unix::paper::LONG;
            entry.DIR_Attr = entry.DIR_Attr & !long | other.DIR_Attr & long;
        }
    }
}
