//! Renaming: within a directory, between two, onto another name, and in case
//! alone.

use crate::attached::{Attached, Unix, dir_of_mut};
use crate::attrs::count_rename;
use crate::commit::{ENTRIES, Epoch, Step, Stop};
use crate::dir::{Dir, Scratch};
use crate::entries::Slots;
use crate::index::Span;
use crate::locate::Located;
use crate::node::{Body, Node};
use crate::ondisk::{DirEntry, ENTRY_LEN};
use crate::slots::LongStyle;
use crate::tree::{check_empty, check_has_name, check_left};
use parking_lot::RwLockWriteGuard;
use std::sync::Arc;
use volary_block::Stage;
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
            Self::One(dir) | Self::Two(dir, _) => dir_of_mut(dir),
        }
    }

    fn to(&mut self) -> Result<&mut Dir> {
        match self {
            Self::One(dir) | Self::Two(_, dir) => dir_of_mut(dir),
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
        (from, name): (NodeId, Name<'_>),
        (to, new_name): (NodeId, Name<'_>),
        flags: RenameFlags,
    ) -> Result<()> {
        self.writable()?;
        let _tree = self.tree.lock();
        let from = self.dir(from)?;
        let to = self.dir(to)?;
        let above = self.way_up(&to)?;
        let mut dirs = self.lock_dirs(&from, &to)?;
        let source = self.locate_shown(dirs.from()?, &self.folded(name))?;
        check_has_name(&to)?;
        let node = self.node_of(&source)?;
        if node.is_dir() && above.contains(&node.id) {
            return Err(Kind::Invalid.into());
        }
        let found = self.locate(dirs.to()?, &self.folded(new_name))?;
        let target = found.map(|t| self.target(&source, &t));
        let task = task(flags, node.is_dir(), name == new_name, target)?;
        let at = Move {
            cx,
            from: &from,
            to: &to,
            node,
            source,
        };
        match (task, found) {
            (Task::Nothing, _) => Ok(()),
            (Task::Respell, _) => {
                self.rename_in_place(&at, dirs.to()?, &source, new_name.as_bytes())
            }
            (Task::Replace, Some(t)) => self.replace(&at, &mut dirs, &t, new_name.as_bytes()),
            (Task::Swap, _) => Err(Kind::Unsupported.into()),
            (Task::Move | Task::Replace, _) => self.move_entry(&at, &mut dirs, new_name.as_bytes()),
        }
    }

    /// What the new name leads to. FAT has one name for each node.
    fn target(&self, source: &Located, found: &Located) -> Target {
        let is_same = found.place.key() == source.place.key();
        Target {
            is_same_entry: is_same,
            is_same_node: is_same,
            is_dir: self.perms(&found.entry).kind == FileKind::Dir,
        }
    }

    /// A directory and all above it. The tree must be locked.
    fn way_up(&self, dir: &Arc<Node>) -> Result<Vec<NodeId>> {
        let (mut ids, mut circle) = (vec![dir.id], Circle::new(dir.id));
        let mut place = dir.meta.lock().place;
        while let Some(at) = place {
            let node = self.dir_node(at.dir)?;
            circle.check(node.id)?;
            ids.push(node.id);
            place = node.meta.lock().place;
        }
        Ok(ids)
    }

    fn lock_dirs<'a>(&self, from: &'a Node, to: &'a Node) -> Result<Dirs<'a>> {
        if from.id == to.id {
            return Ok(Dirs::One(self.write_dir(from)?));
        }
        let from = self.write_dir(from)?;
        Ok(Dirs::Two(from, self.write_dir(to)?))
    }

    /// Moves an entry to a name that is free.
    fn move_entry(&self, at: &Move<'_>, dirs: &mut Dirs<'_>, new_name: &[u8]) -> Result<()> {
        let entry = self.moved_entry(&at.node);
        let mut slots = self.plan(dirs.to()?, new_name, &entry)?;
        let old = at.source.span;
        let mut both = None;
        let located = self.change(|epoch| {
            if let Some(located) = both {
                self.prepare_removal(dirs.from()?, epoch, &[], old)?;
                self.remove_moved(dirs.from()?, epoch, &[], old)?;
                self.settle(at, epoch, &located)?;
                return Ok(located);
            }
            dirs.durable_first(epoch)?;
            slots.set_birth(&self.moved_entry(&at.node));
            let to = dirs.to()?;
            let first = to.room(self, epoch, slots.count())?;
            let added = to.sectors(self, first, slots.count())?;
            if self.could_lose_both(dirs.from()?, epoch, &added, old)? {
                epoch.note_move(&added, &[])?;
                both = Some(self.insert_at(dirs.to()?, epoch, &mut slots, first, true)?);
                return Err(Stop::Commit);
            }
            self.prepare_removal(dirs.from()?, epoch, &added, old)?;
            let located = self.insert_at(dirs.to()?, epoch, &mut slots, first, true)?;
            self.remove_moved(dirs.from()?, epoch, &added, old)?;
            self.settle(at, epoch, &located)?;
            Ok(located)
        })?;
        self.note_place(at, &located);
        Ok(())
    }

    /// Whether one of the sectors that are added to, but not that of the new
    /// short entry, is also taken from: a disk that writes it alone has neither
    /// name. Then the one must be durable before the other goes, and a commit
    /// comes in between. Taking it out needs no device after this.
    fn could_lose_both(&self, from: &Dir, epoch: &Epoch, added: &[u64], old: Span) -> Result<bool> {
        from.touch(self, old.first, old.len())?;
        let taken = from.sectors(self, old.first, old.len())?;
        let before_short = added.split_last().map_or(&[][..], |(_, before)| before);
        let shared = before_short.iter().any(|s| taken.contains(s));
        Ok(shared && !epoch.is_born(from.first))
    }

    /// Sees to it that taking an entry out after adding it elsewhere can be
    /// ordered, and will not need the device.
    fn prepare_removal(&self, from: &Dir, epoch: &Epoch, added: &[u64], span: Span) -> Step<()> {
        from.touch(self, span.first, span.len())?;
        let taken = from.sectors(self, span.first, span.len())?;
        if epoch.is_born(from.first) {
            return Ok(());
        }
        epoch.note_left(from.first);
        epoch.note_move(added, &taken)
    }

    /// Takes out an entry that was added elsewhere: where that is another
    /// sector, after the addition is durable.
    fn remove_moved(&self, from: &mut Dir, epoch: &Epoch, added: &[u64], span: Span) -> Step<()> {
        self.leave(from, span)?;
        for slot in span.first..=span.last {
            let one = Span {
                first: slot,
                slot,
                last: slot,
            };
            let sectors = from.sectors(self, slot, 1)?;
            let shared = sectors.iter().all(|s| added.contains(s));
            let stage = if shared && !epoch.is_born(from.first) {
                ENTRIES
            } else {
                self.removal_stage(from, epoch)
            };
            from.erase(self, one, stage)?;
        }
        Ok(())
    }

    /// Notes the new place of a node that was moved.
    fn settle(&self, at: &Move<'_>, epoch: &Epoch, located: &Located) -> Step<()> {
        if at.node.is_dir() && at.from.id != at.to.id {
            self.set_dot_dot(&at.node, located.place.dir, epoch)?;
        }
        let now = at.cx.now;
        {
            let mut meta = at.node.meta.lock();
            meta.place = Some(located.place);
            meta.moved = true;
            take_name(&mut meta.entry, &located.entry, self.names.long);
            let DirEntry {
                DIR_CrtTimeTenth,
                DIR_CrtTime,
                DIR_CrtDate,
                ..
            } = located.entry;
            if self.unix != Unix::Paper {
                meta.entry.DIR_CrtTimeTenth = DIR_CrtTimeTenth;
                meta.entry.DIR_CrtTime = DIR_CrtTime;
                meta.entry.DIR_CrtDate = DIR_CrtDate;
            }
            self.changed(&at.node, &mut meta, now);
        }
        self.modified(at.from, now);
        self.modified(at.to, now);
        Ok(())
    }

    /// The entry of a node with a rename counted in it.
    fn moved_entry(&self, node: &Node) -> DirEntry {
        let meta = node.meta.lock();
        let mut entry = self.stored_entry(&meta);
        if !meta.moved && !node.is_dir() {
            count_rename(&mut entry, self.unix);
        }
        entry
    }

    fn note_place(&self, at: &Move<'_>, located: &Located) {
        if !at.node.is_dir() {
            let (old, new) = (at.source.place.key(), located.place.key());
            self.nodes.moved(&at.node, old, Some(new));
        }
        if self.unix == Unix::Paper && at.source.place.key() != located.place.key() {
            self.nodes.leave(at.source.place.key());
        }
    }

    fn set_dot_dot(&self, node: &Node, parent: u32, epoch: &Epoch) -> Result<()> {
        let first = node.meta.lock().entry.first_cluster(self.layout.is_fat32());
        let stage = if epoch.is_born(first) {
            Stage::DATA
        } else {
            ENTRIES
        };
        self.moved_under(first, parent, stage)
    }

    /// Moves an entry onto another: the short entry there is overwritten, its
    /// name stays.
    fn replace(
        &self,
        at: &Move<'_>,
        dirs: &mut Dirs<'_>,
        target: &Located,
        new_name: &[u8],
    ) -> Result<()> {
        if self.owners.is_table(target.place.dir, target.span.slot) {
            return Err(Kind::NotPermitted.into());
        }
        let victim = self.node_of(target)?;
        if victim.id == at.from.id {
            return Err(Kind::NotEmpty.into());
        }
        let mut content = if victim.is_dir() {
            let content = self.write_dir(&victim)?;
            check_empty(crate::attached::dir_of(&content)?)?;
            content
        } else {
            victim.body.write()
        };
        self.load_all(&mut content)?;
        let located = self.change(|epoch| {
            dirs.durable_first(epoch)?;
            check_left(&content, epoch)?;
            let mut entry = self.moved_entry(&at.node);
            if self.stamp(&entry, 0) == self.stamp(&target.entry, 0) {
                // An id of what was there must not lead to what is there now.
                count_rename(&mut entry, self.unix);
            }
            take_name(&mut entry, &target.entry, self.names.long);
            let located = Located { entry, ..*target };
            let added = dirs.to()?.sectors(self, target.span.slot, 1)?;
            dirs.to()?.touch(self, target.span.slot, 1)?;
            self.prepare_removal(dirs.from()?, epoch, &added, at.source.span)?;
            let mut raw = [0; ENTRY_LEN];
            raw.copy_from_slice(entry.as_bytes());
            let to = dirs.to()?;
            to.write(self, target.span.slot, &[raw], to.stage(epoch))?;
            if self.births.last(target.place.key()).is_none() {
                self.births.note(target.place.key(), &target.entry);
            }
            self.remove_moved(dirs.from()?, epoch, &added, at.source.span)?;
            self.lose_name(at.cx, &victim, &mut content);
            self.settle(at, epoch, &located)?;
            Ok(located)
        })?;
        drop(content);
        self.left(&victim, target);
        if !victim.is_open() {
            self.nodes.remove(victim.id);
        }
        self.note_place(at, &located);
        let at = Move {
            cx: at.cx,
            from: at.to,
            to: at.to,
            node: at.node.clone(),
            source: located,
        };
        self.rename_in_place(&at, dirs.to()?, &located, new_name)
    }

    /// Gives an entry of `dir` another name that leads to it already: one that
    /// differs in case, or its long instead of its short one.
    fn rename_in_place(
        &self,
        at: &Move<'_>,
        dir: &mut Dir,
        old: &Located,
        new_name: &[u8],
    ) -> Result<()> {
        let shown = dir.record(self, old.span, |r| {
            let mut name = Vec::new();
            self.names.show(r, &mut name);
            name
        })?;
        if shown.is_none_or(|s| s == new_name) {
            return Ok(());
        }
        let entry = self.moved_entry(&at.node);
        self.hide(dir, old.span)?;
        let result = self
            .plan(dir, new_name, &entry)
            .and_then(|mut slots| self.write_renamed(at, dir, old, &mut slots));
        match result {
            Ok(located) => {
                self.note_place(at, &located);
                Ok(())
            }
            Err(e) => {
                self.unhide(dir, old.span)?;
                Err(e)
            }
        }
    }

    fn write_renamed(
        &self,
        at: &Move<'_>,
        dir: &mut Dir,
        old: &Located,
        slots: &mut Slots,
    ) -> Result<Located> {
        let in_place = slots.count() == old.span.len();
        let mut both = None;
        self.change(|epoch| {
            if let Some(located) = both {
                self.prepare_removal(dir, epoch, &[], old.span)?;
                self.erase_renamed(dir, epoch, old.span)?;
                self.settle(at, epoch, &located)?;
                return Ok(located);
            }
            slots.set_birth(&self.moved_entry(&at.node));
            let first = if in_place {
                old.span.first
            } else {
                dir.room(self, epoch, slots.count())?
            };
            let added = dir.sectors(self, first, slots.count())?;
            if !in_place && self.could_lose_both(dir, epoch, &added, old.span)? {
                epoch.note_move(&added, &[])?;
                both = Some(self.insert_at(dir, epoch, slots, first, true)?);
                return Err(Stop::Commit);
            }
            self.prepare_removal(dir, epoch, &added, old.span)?;
            let located = self.insert_at(dir, epoch, slots, first, true)?;
            if !in_place {
                self.erase_renamed(dir, epoch, old.span)?;
            }
            self.settle(at, epoch, &located)?;
            Ok(located)
        })
    }

    /// Takes out the slots of a name that is hidden already.
    fn erase_renamed(&self, dir: &mut Dir, epoch: &Epoch, span: Span) -> Result<()> {
        let stage = self.removal_stage(dir, epoch);
        dir.erase(self, span, stage)?;
        if let Some(index) = &mut dir.index {
            index.release(span);
        }
        Ok(())
    }

    /// Takes the names of an entry out of the index, but not its slots.
    fn hide(&self, dir: &mut Dir, span: Span) -> Result<()> {
        self.leave(dir, span)?;
        if let Some(index) = &mut dir.index {
            index.take(span.first, span.len());
        }
        Ok(())
    }

    fn unhide(&self, dir: &mut Dir, span: Span) -> Result<()> {
        let mut index = dir.index.take();
        let entered = dir.record(self, span, |r| {
            if let Some(index) = &mut index {
                index.enter(self, r, &mut Scratch::default());
            }
        });
        dir.index = index.filter(|_| entered.is_ok());
        Ok(())
    }
}

/// Gives an entry the name of another.
fn take_name(entry: &mut DirEntry, other: &DirEntry, style: LongStyle) {
    entry.DIR_Name = other.DIR_Name;
    match style {
        LongStyle::Vfat => entry.DIR_NTRes = other.DIR_NTRes,
        LongStyle::Paper => {
            let long = crate::paper::LONG;
            entry.DIR_Attr = entry.DIR_Attr & !long | other.DIR_Attr & long;
        }
    }
}
