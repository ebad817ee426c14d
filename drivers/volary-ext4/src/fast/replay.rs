//! Makes the changes of fast commits, one after the other.

use crate::extents::run_of;
use crate::journal::fast::Change;
use crate::ondisk::fctag;
use crate::run::{Run, Spot};
use crate::store::Store;
use std::collections::HashMap;
use volary_core::FileKind;

impl Store {
    /// Makes the changes of fast commits, in their order. Skips those of an inode that is not there, as
    /// Linux does.
    pub(crate) fn replay_fast(&mut self, changes: &[Change]) {
        for (tag, value) in changes {
            self.replay_change(*tag, value);
        }
        self.fast.stored = HashMap::new();
    }

    fn replay_change(&mut self, tag: u16, value: &[u8]) {
        let (Some(first), Some(second)) = (u32_at(value, 0), u32_at(value, 4)) else {
            return;
        };
        let name = value.get(8..).unwrap_or_default();
        match tag {
            fctag::INODE => {
                let raw = value.get(4..).unwrap_or_default().to_vec();
                let is_dir = self.is_dir(first);
                let changed = self.fast.inodes.entry(first).or_default();
                changed.raw = Some(raw);
                // What is written of a file has its names counted.
                if !is_dir {
                    changed.links = 0;
                }
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
            fctag::CREAT | fctag::LINK => self.replay_link(tag, (first, second), name),
            fctag::UNLINK => self.replay_unlink((first, second), name),
            _ => {}
        }
    }

    fn replay_link(&mut self, tag: u16, (dir, ino): (u32, u32), name: &[u8]) {
        if self.fast.has_added(dir, name, ino) || self.stands_there(dir, name, ino) {
            return;
        }
        self.fast.dirs.entry(dir).or_default().add(name, ino);
        if tag == fctag::CREAT && self.is_dir(ino) {
            self.fast.dirs.entry(ino).or_default().parent = Some(dir);
            self.fast.count(dir, 1);
        } else if tag == fctag::LINK {
            self.fast.count(ino, 1);
        }
    }

    fn replay_unlink(&mut self, (dir, ino): (u32, u32), name: &[u8]) {
        if !self.fast.has_added(dir, name, ino) && !self.stands_there(dir, name, ino) {
            return;
        }
        self.fast.dirs.entry(dir).or_default().remove(name);
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
        if !self.fast.stored.contains_key(&dir) {
            let names = self.stored_names(dir);
            self.fast.stored.insert(dir, names);
        }
        let names = self.fast.stored.get(&dir);
        names.and_then(|names| names.get(name)) == Some(&ino)
    }

    /// Returns the names of a directory on the volume, with their inodes, up to where it is damaged.
    fn stored_names(&self, dir: u32) -> HashMap<Vec<u8>, u32> {
        let mut names = HashMap::new();
        let Ok(dir) = self.inode(dir) else {
            return names;
        };
        let checked = dir.check_size(&self.volume);
        if checked.and_then(|()| self.check_dir(&dir)).is_err() {
            return names;
        }
        let mut start = 0;
        while let Ok(Some(chunk)) = self.chunk(&dir, start) {
            start = chunk.end();
            let mut place = chunk.start;
            while let Ok(Some(entry)) = self.entry(&dir, &chunk, place) {
                place = entry.end;
                names.entry(entry.name).or_insert(entry.ino);
            }
        }
        names
    }

    fn is_dir(&self, ino: u32) -> bool {
        let inode = self.inode(ino);
        inode.is_ok_and(|inode| inode.kind() == Some(FileKind::Dir))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*four))
}
