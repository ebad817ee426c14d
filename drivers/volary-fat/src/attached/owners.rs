//! The table of owners of an attached volume: the hidden file that holds it,
//! read at attach and written before an entry uses a new row.
//!
//! The root directory has no entry that could hold its mode and owner; the
//! entry of this file holds them, with a generation of [`ROOT_MARK`].

use crate::attached::commit::Commits;
use crate::attached::file::File;
use crate::attached::node::Node;
use crate::names::record::Record;
use crate::unix::owner::{HEAD_LEN, OwnerTable, TABLE_LEN_MAX, TABLE_NAME};
use crate::unix::today::UnixData;
use crate::volume::ondisk::DirEntry;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use volary_core::{Ctx, FileKind, Result};

/// The generation of the table's entry if it holds mode and owner of the root.
const ROOT_MARK: u8 = 63;
/// No slot.
const NONE: u32 = u32::MAX;

/// The table, and the file that holds it.
pub(crate) struct Owners {
    table: RwLock<OwnerTable>,
    /// The slot of the file's entry in the root directory.
    slot: AtomicU32,
    node: RwLock<Option<Arc<Node>>>,
    /// Held while a row is added.
    adding: Mutex<()>,
}

impl Default for Owners {
    fn default() -> Self {
        Self {
            table: RwLock::default(),
            slot: AtomicU32::new(NONE),
            node: RwLock::default(),
            adding: Mutex::default(),
        }
    }
}

impl Owners {
    /// Returns the pair of an index; `None` for the mount's owner and for an index
    /// that the table does not have.
    pub(crate) fn get(&self, index: u16) -> Option<(u32, u32)> {
        self.table.read().get(index)
    }

    /// Returns whether this slot of the root directory is the table's, which is not
    /// shown.
    pub(crate) fn is_table(&self, dir: u32, slot: u32) -> bool {
        dir == 0 && self.slot.load(Ordering::Relaxed) == slot
    }

    /// Takes the table that stands in the file of `node`, whose entry is in this slot of the root
    /// directory.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn open(&self, commits: &Commits, node: Arc<Node>, slot: u32) -> Result<()> {
        self.slot.store(slot, Ordering::Relaxed);
        let len = usize::try_from(node.meta.lock().size).unwrap_or(0);
        let mut bytes = vec![0; len.min(TABLE_LEN_MAX)];
        let got = File::new(commits, &node).read(0, &mut bytes)?;
        let table = OwnerTable::parse(bytes.get(..got).unwrap_or_default());
        *self.table.write() = table.unwrap_or_default();
        *self.node.write() = Some(node);
        Ok(())
    }

    /// Returns the index of an owner, with a new row if there is none yet; 0 where there is no file for
    /// the table.
    ///
    /// # Errors
    /// `NoSpace` if the table is full; what writing it answers.
    pub(crate) fn index(&self, commits: &Commits, cx: &Ctx<'_>, uid: u32, gid: u32) -> Result<u16> {
        if let Some(index) = self.table.read().find(uid, gid) {
            return Ok(index);
        }
        let _alone = self.adding.lock();
        if let Some(index) = self.table.read().find(uid, gid) {
            return Ok(index);
        }
        let Some(node) = self.node.read().clone() else {
            return Ok(0);
        };
        let index = self.table.write().add(uid, gid)?;
        let written = write_row(commits, cx, &node, index, uid, gid);
        if written.is_err() {
            self.table.write().pop();
        }
        written.map(|()| index)
    }

    /// Keeps mode and owner of the root, which were changed.
    ///
    /// # Errors
    /// What a change answers.
    pub(crate) fn keep_root(&self, commits: &Commits, mode: u32, owner: u16) -> Result<()> {
        let Some(node) = self.node.read().clone() else {
            return Ok(());
        };
        commits.change(|_| {
            let mut meta = node.meta.lock();
            let data = UnixData {
                kind: FileKind::File,
                mode: (mode & 0o7777) as u16,
                owner,
                generation: ROOT_MARK,
            };
            data.write(&mut meta.entry);
            let now = meta.ctime;
            commits.changed(&node, &mut meta, now);
            Ok(())
        })
    }
}

/// Writes a row, which must be on the disk before an entry counts on it.
fn write_row(
    commits: &Commits,
    cx: &Ctx<'_>,
    node: &Arc<Node>,
    index: u16,
    uid: u32,
    gid: u32,
) -> Result<()> {
    let file = File::new(commits, node);
    if index == 1 {
        // A table that could not be read begins anew.
        file.write(cx, Some(0), &OwnerTable::head())?;
    }
    let row = OwnerTable::row(uid, gid);
    file.write(cx, Some(OwnerTable::offset(index)), &row)?;
    commits.commit()
}

/// Returns what the table's entry says of the root directory, which has none: mode and owner, if they
/// were changed.
pub(crate) fn root_data(entry: &DirEntry) -> Option<UnixData> {
    let data = UnixData::read(entry).filter(|d| d.generation == ROOT_MARK)?;
    Some(UnixData {
        kind: FileKind::Dir,
        ..data
    })
}

/// Returns whether a record of the root directory is the table's.
pub(crate) fn is_table(record: &Record<'_>) -> bool {
    record.short.DIR_Name == TABLE_NAME && !record.short.is_dir() && !record.short.is_label()
}

const _: () = assert!(HEAD_LEN < 512);
