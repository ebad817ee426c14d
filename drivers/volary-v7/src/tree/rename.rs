//! Renaming.

use crate::change::edit::{Step, Stop};
use crate::change::epoch::{PARENTS, REMOVALS};
use crate::disk::inode::Inode;
use crate::disk::ondisk::ROOT_INO;
use crate::tree::names::{Found, Tree};
use volary_core::{Error, FileKind, Kind, Name, NodeId, RenameFlags, Result};
use volary_ondisk::rename::{self, Target, Task};

/// Renames a node.
///
/// # Errors
/// As [`FileSystem::rename`](volary_core::FileSystem::rename).
pub(crate) fn rename(
    tree: &mut Tree<'_>,
    from: NodeId,
    name: Name<'_>,
    to: NodeId,
    new_name: Name<'_>,
    flags: RenameFlags,
) -> Step<()> {
    if flags == RenameFlags::SWAP {
        return Err(Kind::Unsupported.into());
    }
    let old = tree.find(from, name)?;
    let new = match tree.find(to, new_name) {
        Ok(new) => Some(new),
        Err(Stop::Error(e)) if e == Kind::NotFound => None,
        Err(e) => return Err(e),
    };
    let target = tree.files.edit.load(to)?;
    if tree.files.edit.is_removed(target.ino) {
        return Err(Kind::NotFound.into());
    }
    let mut rename = Move {
        kind: old.node.kind(),
        tree,
        old,
        new,
        target,
        name: new_name,
    };
    let is_same_name = name == new_name;
    match rename.task(flags, is_same_name)? {
        Task::Nothing => Ok(()),
        _ => {
            rename.check_order()?;
            rename.run()
        }
    }
}

/// A rename under way.
struct Move<'t, 'a> {
    tree: &'t mut Tree<'a>,
    kind: Option<FileKind>,
    old: Found,
    /// What has the new name.
    new: Option<Found>,
    /// The directory of the new name.
    target: Inode,
    name: Name<'t>,
}

impl Move<'_, '_> {
    fn is_dir(&self) -> bool {
        self.kind == Some(FileKind::Dir)
    }

    /// Returns whether the node goes into another directory.
    fn leaves(&self) -> bool {
        self.old.dir.ino != self.target.ino
    }

    /// Returns what there is to do.
    ///
    /// # Errors
    /// `Invalid` for a directory that would lie in itself; those of [`rename::task`]; `Corrupt`; `Io`.
    fn task(&self, flags: RenameFlags, is_same_name: bool) -> Step<Task> {
        if self.is_dir() && self.is_within()? {
            return Err(Kind::Invalid.into());
        }
        let found = self.new.as_ref().map(|new| Target {
            is_same_entry: false,
            is_same_node: new.node.ino == self.old.node.ino,
            is_dir: new.node.kind() == Some(FileKind::Dir),
        });
        Ok(rename::task(flags, self.is_dir(), is_same_name, found)?)
    }

    /// Checks that it can come to the disk in one epoch with what was done before.
    ///
    /// # Errors
    /// [`Stop::Commit`]; `NotEmpty`, `TooManyLinks`; `Corrupt`; `Io`.
    fn check_order(&self) -> Step<()> {
        let tree = &self.tree;
        if tree.files.epoch.born.contains(&self.target.ino) && self.leaves() {
            // It must be there itself before the old name goes.
            return Err(Stop::Commit);
        }
        match &self.new {
            Some(new) if self.is_dir() => tree.check_removable(&new.node),
            None if self.is_dir() && self.leaves() => tree.files.edit.check_links(&self.target),
            _ => Ok(()),
        }
    }

    fn run(&mut self) -> Step<()> {
        self.tree.files.edit.check_links(&self.old.node)?;
        let (ino, dir) = (self.old.node.ino, self.old.dir.ino);
        let source = self.tree.entries(dir).spot(self.old.at)?.shown();
        // By both names for a moment, on the disk.
        let now = self.tree.files.edit.now;
        let node = self.tree.files.edit.node(ino)?;
        node.adds = node.adds.saturating_add(1);
        node.mem.times[2] = now;
        let home = self.put_name()?;
        let mut added = vec![home];
        if let Some(new) = &self.new {
            self.tree.drop_name(self.target.ino, &new.node)?;
        }
        if self.is_dir() && self.leaves() {
            added.push(self.change_parent(home)?);
        }
        if let Some(source) = source
            && !self.tree.files.epoch.moves.note_rename(&added, source, dir)
        {
            return Err(Stop::Commit);
        }
        let is_one = source.is_none_or(|source| added.contains(&source));
        let stage = (!is_one).then_some(REMOVALS);
        // A new entry may have been put in front of the old one, but none has moved.
        self.tree.entries(dir).remove(self.old.at, stage)
    }

    /// Makes the new name lead to the node. Gives the sector.
    fn put_name(&mut self) -> Step<u64> {
        let (ino, target) = (self.old.node.ino, self.target.ino);
        match &self.new {
            Some(new) => {
                let spot = self.tree.entries(target).redirect(new.at, ino, None)?;
                self.tree.files.edit.touch_content(target)?;
                Ok(spot.sector())
            }
            None => {
                self.tree.free_name(self.target.id()?, self.name)?;
                let spot = self.tree.entries(target).add(self.name.as_bytes(), ino)?;
                Ok(spot.sector())
            }
        }
    }

    /// Makes `..` of a directory, whose new name is in sector `home`, lead to its new parent. Gives
    /// the sector of `..`.
    fn change_parent(&mut self, home: u64) -> Step<u64> {
        let (ino, target) = (self.old.node.ino, self.target.ino);
        self.tree.files.edit.add_links(target, 1)?;
        let at = self.tree.dots(&self.old.node)?;
        let dots = self.tree.entries(ino).spot(at)?.sector();
        // A sector keeps its stage, even if a change is taken back: first this.
        if !self.tree.files.epoch.moves.note_parent(home, dots) {
            return Err(Stop::Commit);
        }
        self.tree.files.epoch.moved.insert(ino);
        self.tree.entries(ino).redirect(at, target, Some(PARENTS))?;
        self.tree.files.edit.drop_link(self.old.dir.ino)?;
        Ok(dots)
    }

    /// Returns whether the new name's directory is the node, or lies in it: the loop check of rename.
    ///
    /// # Errors
    /// `Corrupt` where no way leads to the root; `Io`.
    fn is_within(&self) -> Result<bool> {
        let mut at = self.target.clone();
        rename::lies_in(self.target.ino, self.old.node.ino, |ino| {
            if ino == ROOT_INO {
                return Ok(None);
            }
            let (parent, _) = self.tree.search(&at, b"..")?.ok_or_else(|| {
                let found = format!("no way to the root (directory {ino})");
                Error::corrupt("..", at.at, found, "the directory that holds it")
            })?;
            at = self.tree.files.edit.inode(parent)?;
            Ok(Some(parent))
        })
    }
}
