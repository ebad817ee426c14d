//! The table of owners of an attached volume: the hidden file that holds it,
//! read at attach and written before an entry uses a new row.
//!
//! The root directory has no entry that could hold its mode and owner; the
//! entry of this file holds them, with a generation of [`ROOT_MARK`].

use crate::attached::{Attached, Unix};
use crate::attrs::Perms;
use crate::locate::Located;
use crate::node::Node;
use crate::ondisk::attr;
use crate::options::UnixMode;
use crate::owner::{HEAD_LEN, OwnerTable, TABLE_LEN_MAX, TABLE_NAME};
use crate::slots::{Event, Record};
use crate::unix::UnixData;
use parking_lot::{Mutex, RwLock};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use volary_core::{Cancel, Cred, Ctx, FileKind, Result, SetAttr, Time};

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
    /// The pair of an index; `None` for the mount's owner and for an index
    /// that the table does not have.
    pub(crate) fn get(&self, index: u16) -> Option<(u32, u32)> {
        self.table.read().get(index)
    }

    /// Whether this slot of the root directory is the table's, which is not
    /// shown.
    pub(crate) fn is_table(&self, dir: u32, slot: u32) -> bool {
        dir == 0 && self.slot.load(Ordering::Relaxed) == slot
    }
}

impl Attached {
    /// Finds the table and reads it; makes it if it is to be there.
    ///
    /// # Errors
    /// `Io`, `Corrupt`, `NoSpace`.
    pub(crate) fn open_owners(&mut self, writable: bool) -> Result<Unix> {
        let located = match self.find_table()? {
            Some(located) => located,
            None if self.options.unix == UnixMode::On && writable => self.make_table()?,
            None if self.options.unix == UnixMode::On => return Ok(Unix::Today),
            None => return Ok(Unix::Off),
        };
        let entry = located.entry;
        self.owners.slot.store(located.span.slot, Ordering::Relaxed);
        let node = self.node_of(&located)?;
        let len = usize::try_from(node.meta.lock().size).unwrap_or(0);
        let mut bytes = vec![0; len.min(TABLE_LEN_MAX)];
        let got = self.read_node(&node, 0, &mut bytes)?;
        let table = OwnerTable::parse(bytes.get(..got).unwrap_or_default());
        *self.owners.table.write() = table.unwrap_or_default();
        *self.owners.node.write() = Some(node);
        if let Some(mut data) = UnixData::read(&entry).filter(|d| d.generation == ROOT_MARK) {
            data.kind = FileKind::Dir;
            data.write(&mut self.root.meta.lock().entry);
        }
        Ok(Unix::Today)
    }

    fn find_table(&self) -> Result<Option<Located>> {
        let body = self.read_dir(&self.root)?;
        let dir = crate::attached::dir_of(&body)?;
        let mut found = None;
        dir.scan(self, 0, |event| match event {
            Event::Record(r) if is_table(&r) => {
                found = Some(r.short).map(|entry| (entry, crate::dir::span_of(&r)));
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        })?;
        found
            .map(|(entry, span)| Located::new(self, dir, entry, span))
            .transpose()
    }

    fn make_table(&self) -> Result<Located> {
        let cred = Cred::root();
        let cancel = Cancel::new();
        let cx = Ctx {
            cred: &cred,
            now: Time::EPOCH,
            cancel: &cancel,
        };
        let mut entry = self.new_entry(&cx, FileKind::File, 0, &SetAttr::default())?;
        entry.DIR_Attr = attr::HIDDEN | attr::SYSTEM | attr::READ_ONLY;
        let located = self.add_short(&self.root, TABLE_NAME, entry)?;
        let node = self.node_of(&located)?;
        self.write_node(&cx, &node, Some(0), &OwnerTable::head())?;
        Ok(located)
    }

    /// The index of an owner, with a new row if there is none yet; 0 on a
    /// volume without the table.
    ///
    /// # Errors
    /// `NoSpace` if the table is full; what writing it answers.
    pub(crate) fn owner_index(&self, cx: &Ctx<'_>, uid: u32, gid: u32) -> Result<u16> {
        if self.unix != Unix::Today {
            return Ok(0);
        }
        if let Some(index) = self.owners.table.read().find(uid, gid) {
            return Ok(index);
        }
        let _alone = self.owners.adding.lock();
        if let Some(index) = self.owners.table.read().find(uid, gid) {
            return Ok(index);
        }
        let Some(node) = self.owners.node.read().clone() else {
            return Ok(0);
        };
        let index = self.owners.table.write().add(uid, gid)?;
        let written = self.write_row(cx, &node, index, uid, gid);
        if written.is_err() {
            self.owners.table.write().pop();
        }
        written.map(|()| index)
    }

    /// The row must be on the disk before an entry counts on it.
    fn write_row(
        &self,
        cx: &Ctx<'_>,
        node: &Arc<Node>,
        index: u16,
        uid: u32,
        gid: u32,
    ) -> Result<()> {
        if index == 1 {
            // A table that could not be read begins anew.
            self.write_node(cx, node, Some(0), &OwnerTable::head())?;
        }
        let row = OwnerTable::row(uid, gid);
        self.write_node(cx, node, Some(OwnerTable::offset(index)), &row)?;
        self.commit()
    }

    /// Keeps mode and owner of the root, which were changed.
    ///
    /// # Errors
    /// What a change answers.
    pub(crate) fn keep_root_perms(&self, perms: &Perms, owner: u16) -> Result<()> {
        let Some(node) = self.owners.node.read().clone() else {
            return Ok(());
        };
        self.change(|_| {
            let mut meta = node.meta.lock();
            let data = UnixData {
                kind: FileKind::File,
                mode: (perms.mode & 0o7777) as u16,
                owner,
                generation: ROOT_MARK,
            };
            data.write(&mut meta.entry);
            let now = meta.ctime;
            self.changed(&node, &mut meta, now);
            Ok(())
        })
    }
}

fn is_table(record: &Record<'_>) -> bool {
    record.short.DIR_Name == TABLE_NAME && !record.short.is_dir() && !record.short.is_label()
}

const _: () = assert!(HEAD_LEN < 512);
