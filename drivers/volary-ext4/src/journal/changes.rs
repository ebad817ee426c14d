//! Makes the changes of fast commits, one after the other.

use crate::content::extents::run_of;
use crate::content::file::Content;
use crate::content::map::BlockMap;
use crate::directory::dir::Directory;
use crate::disk::ondisk::fctag;
use crate::disk::run::{Run, Spot};
use crate::fast::Fast;
use crate::inodes::groups::Groups;
use crate::inodes::tables::InodeTables;
use crate::journal::fast::Change;
use std::collections::HashMap;
use volary_core::FileKind;

/// Changes that are being made.
pub(crate) struct Changes<'a> {
    groups: &'a Groups,
    /// What was changed so far.
    fast: Fast,
    /// Names on the volume of each directory that a change is about.
    stored: HashMap<u32, HashMap<Vec<u8>, u32>>,
}

impl<'a> Changes<'a> {
    /// Makes the changes of fast commits, in their order. Skips those of an inode that is not there, as
    /// Linux does.
    pub(crate) fn replay(groups: &'a Groups, changes: &[Change]) -> Fast {
        let mut replay = Self {
            groups,
            fast: Fast::default(),
            stored: HashMap::new(),
        };
        for (tag, value) in changes {
            replay.change(*tag, value);
        }
        replay.fast
    }

    fn change(&mut self, tag: u16, value: &[u8]) {
        let (Some(first), Some(second)) = (u32_at(value, 0), u32_at(value, 4)) else {
            return;
        };
        let name = value.get(8..).unwrap_or_default();
        match tag {
            fctag::INODE => {
                let raw = value.get(4..).unwrap_or_default().to_vec();
                let is_dir = self.is_dir(first);
                // What is written of a file has its names counted.
                self.fast.set_inode(first, raw, !is_dir);
            }
            fctag::ADD_RANGE => {
                let entry = value.get(4..).and_then(|rest| rest.first_chunk());
                if let Some(run) = entry.map(run_of).filter(|run| run.len > 0) {
                    self.fast.set_range(first, run);
                }
            }
            fctag::DEL_RANGE => {
                let len = u32_at(value, 8).unwrap_or(0);
                let run = Run {
                    first: second.into(),
                    len: len.into(),
                    spot: Spot::Hole,
                };
                if len > 0 {
                    self.fast.set_range(first, run);
                }
            }
            fctag::CREAT | fctag::LINK => self.link(tag, first, second, name),
            fctag::UNLINK => self.unlink(first, second, name),
            _ => {}
        }
    }

    fn link(&mut self, tag: u16, dir: u32, ino: u32, name: &[u8]) {
        if self.fast.has_added(dir, name, ino) || self.stands_there(dir, name, ino) {
            return;
        }
        self.fast.add(dir, name, ino);
        if tag == fctag::CREAT && self.is_dir(ino) {
            self.fast.make_dir(ino, dir);
            self.fast.count(dir, 1);
        } else if tag == fctag::LINK {
            self.fast.count(ino, 1);
        }
    }

    fn unlink(&mut self, dir: u32, ino: u32, name: &[u8]) {
        if !self.fast.has_added(dir, name, ino) && !self.stands_there(dir, name, ino) {
            return;
        }
        self.fast.remove(dir, name);
        match self.is_dir(ino) {
            true => self.fast.count(dir, -1),
            false => self.fast.count(ino, -1),
        }
    }

    /// Returns whether a directory has an entry of this name for this inode on the volume, and it is not
    /// removed yet.
    fn stands_there(&mut self, dir: u32, name: &[u8], ino: u32) -> bool {
        if self.fast.is_removed(dir, name) {
            return false;
        }
        if !self.stored.contains_key(&dir) {
            let names = self.stored_names(dir);
            self.stored.insert(dir, names);
        }
        let names = self.stored.get(&dir);
        names.and_then(|names| names.get(name)) == Some(&ino)
    }

    /// Returns the names of a directory on the volume, with their inodes, up to where it is damaged.
    fn stored_names(&self, dir: u32) -> HashMap<Vec<u8>, u32> {
        let mut names = HashMap::new();
        let Ok(inode) = self.inodes().inode(dir) else {
            return names;
        };
        let blocks = self.groups.blocks();
        let checked = inode.check_size(blocks.volume());
        if checked.and_then(|()| inode.check_dir()).is_err() {
            return names;
        }
        let map = BlockMap::new(blocks, &self.fast, &inode);
        let dir = Directory::new(Content::new(map), &self.fast);
        let mut start = 0;
        while let Ok(Some(chunk)) = dir.chunk(start) {
            start = chunk.end();
            let mut place = chunk.start;
            while let Ok(Some(entry)) = dir.entry(&chunk, place) {
                place = entry.end;
                names.entry(entry.name).or_insert(entry.ino);
            }
        }
        names
    }

    fn inodes(&self) -> InodeTables<'_> {
        InodeTables::new(self.groups, &self.fast)
    }

    fn is_dir(&self, ino: u32) -> bool {
        let inode = self.inodes().inode(ino);
        inode.is_ok_and(|inode| inode.kind() == Some(FileKind::Dir))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*four))
}
