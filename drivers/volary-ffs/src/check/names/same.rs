//! Entries of one name in a directory.

use super::{Change, Names, finding};
use crate::directory::dir::Entry;
use crate::inodes::inode::Inode;
use volary_core::{Finding, Severity};

impl Names<'_, '_> {
    /// Returns whether the name of an entry stands in its directory before; nobody can reach what it
    /// leads to then. The repair takes the entry out, and what has no other name goes to
    /// lost+found.
    pub(super) fn is_same(&mut self, dir: &Inode, entry: &Entry<'_>) -> bool {
        if self.present.insert(entry.name.to_vec()) {
            return false;
        }
        let message = format!(
            "the entry at byte {}, of inode {}, has the name of an earlier one",
            entry.at, entry.ino
        );
        let same = Finding {
            code: "same-name",
            ..finding(Severity::Damage, dir.at, message)
        };
        let path = self.path(dir.ino, Some(entry.name));
        if self.tell(path, same) {
            self.plan.entry(dir.ino, entry.at, Change::Remove);
            return true;
        }
        // It stays, and so does the name that it is.
        false
    }
}
