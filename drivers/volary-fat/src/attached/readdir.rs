//! Listing directories.

use crate::attached::node::{Natural, Node, dir_ino, key_of, slot_ino};
use crate::attached::tree::Tree;
use crate::directory::dir::Dir;
use crate::directory::slots::Event;
use crate::names::record::Record;
use crate::table::runs::{Run, Runs};
use crate::table::twofold::Of;
use crate::volume::ondisk::{DIR_ENTRIES_MAX, DirEntry, is_dots};
use std::ops::ControlFlow;
use volary_core::{Attr, Cookie, Ctx, DirBuf, Extent, FileKind, Kind, NodeId, Result};

impl Tree {
    /// Fills `out` with entries from a cookie on: the number of the slot to go
    /// on with. True when there are no more.
    ///
    /// # Errors
    /// `NotDir`; `Invalid` for a number that no directory has; `Io`, `Corrupt`.
    pub(crate) fn list_dir(&self, node: &Node, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let body = self.read_dir(node)?;
        let dir = body.dir()?;
        let from = u32::try_from(from.0).ok().filter(|&s| s <= DIR_ENTRIES_MAX);
        let from = from.ok_or(Kind::Invalid)?;
        if node.meta.lock().gone {
            return Ok(true);
        }
        let mut name = Vec::new();
        let mut full = false;
        dir.scan(&self.store, from, |event| {
            let Event::Record(record) = event else {
                return ControlFlow::Continue(());
            };
            if !self.is_shown(dir, &record) {
                return ControlFlow::Continue(());
            }
            let Some((id, kind, attr)) = self.listed(dir, &record, out.wants_attr()) else {
                return ControlFlow::Continue(());
            };
            self.entries.names.show(&record, &mut name);
            let next = Cookie(u64::from(record.last_slot) + 1);
            if out.push(next, id, kind, &name, attr) {
                if let Some(size) = attr.map(|attr| attr.size)
                    && kind == FileKind::File
                    && out.wants_extents(size)
                    && !self.store.takes_changes()
                {
                    out.set_extents(id, |all| self.extents_of(&record.short, size, all));
                }
                return ControlFlow::Continue(());
            }
            full = true;
            ControlFlow::Break(())
        })?;
        Ok(!full)
    }

    /// Reads directories into the cache, in the order in which they lie. Files have no more than
    /// what their directories say.
    pub(crate) fn prefetch_dirs(&self, cx: &Ctx<'_>, dirs: &[NodeId]) {
        let cluster_len = u64::from(self.store.layout.cluster_len);
        let mut parts = Vec::new();
        for dir in dirs {
            let Natural::Dir(first) = Natural::of(dir.ino.get()) else {
                continue;
            };
            if !self.store.layout.is_cluster(first) {
                continue;
            }
            let mut runs = Runs::from_first(first, Of::Dir);
            // What is damaged is told when it is listed.
            let _ = runs.load(&self.store.table, self.store.dir_clusters_max());
            let part = |run: &Run| {
                let len = u64::from(run.len) * cluster_len;
                (self.store.layout.cluster_offset(run.first), len)
            };
            parts.extend(runs.as_slice().iter().map(part));
        }
        self.store
            .cache
            .prefetch_all(parts, &|| cx.check_cancel().is_ok());
    }

    /// Adds to `out` where the bytes of a file lie, by its entry alone. The file is not in use, and
    /// the volume takes no changes.
    fn extents_of(&self, entry: &DirEntry, size: u64, out: &mut Vec<Extent>) -> Result<()> {
        let first = entry.first_cluster(self.store.layout.is_fat32());
        let mut runs = Runs::from_first(first, Of::File(self.store.clusters_for(size)));
        self.store.extents(&mut runs, size, 0..size, out)
    }

    fn is_shown(&self, dir: &Dir, record: &Record<'_>) -> bool {
        !record.short.is_label()
            && !is_dots(&record.short)
            && !self.is_owner_table(dir.first, record.slot)
    }

    /// Id, kind and attributes of an entry, without making a node.
    fn listed(
        &self,
        dir: &Dir,
        record: &Record<'_>,
        want_attr: bool,
    ) -> Option<(NodeId, FileKind, Option<Attr>)> {
        let entry = &record.short;
        let key = key_of(dir.first, record.slot);
        let live = if entry.is_dir() {
            let first = entry.first_cluster(self.store.layout.is_fat32());
            let node = self.nodes.dir(first).filter(|_| first != 0);
            node.filter(|n| n.meta.lock().place.is_some_and(|p| p.key() == key))
        } else {
            self.nodes.at(key)
        };
        if let Some(node) = live {
            let attr = want_attr.then(|| self.attrs.attr(&node));
            return Some((node.id, node.kind, attr));
        }
        let kind = self.attrs.kind_of(entry);
        let first = entry.first_cluster(self.store.layout.is_fat32());
        let ino = if entry.is_dir() && self.store.layout.is_cluster(first) {
            dir_ino(first)
        } else {
            slot_ino(key)
        };
        let id = NodeId::new(ino, self.attrs.stamp(entry, key))?;
        // What a device node stands for is in its content: that costs a read.
        let cheap = !matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
        let attr = (want_attr && cheap).then(|| {
            let meta = self.attrs.cold_meta(entry, self.nodes.floor());
            self.attrs.attr_of(id, &meta)
        });
        Some((id, kind, attr))
    }
}
