//! Directories with several names.

use super::{Change, Names, finding};
use crate::disk::ondisk::UFS_ROOTINO;
use volary_core::{Finding, Severity};

impl Names<'_, '_> {
    /// Leaves each directory one name, and lets `..` lead to that name's directory. After a power
    /// cut, a moved directory has two names, and `..` says which one is right.
    pub(super) fn names_of_directories(&mut self) {
        let mut all: Vec<_> = std::mem::take(&mut self.twins).into_iter().collect();
        all.sort_unstable();
        for (ino, names) in all {
            if ino == UFS_ROOTINO {
                for &(dir, at) in &names {
                    self.twin(ino, dir, at, false);
                }
                continue;
            }
            let leads = self.parents.get(&ino).copied();
            let named = |at: &(u32, u64)| leads.is_some_and(|(parent, _)| parent == at.0);
            let keep = names.iter().find(|at| named(at)).or(names.first()).copied();
            let Some(keep) = keep else { continue };
            if let Some(seen) = self.inodes.all.get_mut(&ino) {
                seen.parent = keep.0;
            }
            let moved = names.len() == 2 && named(&keep);
            for &(dir, at) in names.iter().filter(|at| **at != keep) {
                self.twin(ino, dir, at, moved);
            }
            if let Some((leads, at)) = leads.filter(|leads| leads.0 != keep.0) {
                self.wrong_dots(ino, b"..", leads, at, keep.0);
            }
        }
        let root = self.parents.get(&UFS_ROOTINO).copied();
        if let Some((leads, at)) = root.filter(|leads| leads.0 != UFS_ROOTINO) {
            self.wrong_dots(UFS_ROOTINO, b"..", leads, at, UFS_ROOTINO);
        }
    }

    pub(super) fn twin(&mut self, ino: u32, dir: u32, at: u64, moved: bool) {
        let message = format!("directory {ino} has another name as well");
        let severity = match moved {
            true => Severity::Crash,
            false => Severity::Damage,
        };
        let place = self.reader.volume.inode_at(dir.into()).unwrap_or(0);
        let twice = Finding {
            code: "twice",
            ..finding(severity, place, message)
        };
        if self.tell(self.path(dir, None), twice) {
            self.plan.entry(dir, at, Change::Remove);
            if let Some(seen) = self.inodes.all.get_mut(&ino) {
                seen.found = seen.found.saturating_sub(1);
            }
        }
    }
}
