//! From a name, a place or an id to a node.

use crate::attached::{Attached, Unix, dir_of};
use crate::attrs::Perms;
use crate::commit::{Epoch, REMOVALS};
use crate::dir::{Dir, span_of};
use crate::index::Span;
use crate::node::{Body, Meta, Natural, Node, Place, key_of};
use crate::ondisk::{DirEntry, ENTRY_LEN};
use crate::runs::Runs;
use crate::slots::Event;
use crate::twofold::Of;
use parking_lot::{Mutex, RwLock};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use volary_core::{Error, FileKind, Kind, NodeId, Result};
use zerocopy::IntoBytes;

/// Most directories on the way from the root that an id found cold is
/// believed with.
const DEPTH_MAX: usize = 4096;

/// An entry and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    /// The short entry.
    pub(crate) entry: DirEntry,
    /// Its slots.
    pub(crate) span: Span,
    /// The place of these.
    pub(crate) place: Place,
}

impl Located {
    /// An entry of `dir`.
    ///
    /// # Errors
    /// `Corrupt` for a slot that there is not.
    pub(crate) fn new(fs: &Attached, dir: &Dir, entry: DirEntry, span: Span) -> Result<Self> {
        let place = Place {
            dir: dir.first,
            first_slot: span.first,
            slot: span.slot,
            last_slot: span.last,
            offset: dir.offset(fs, span.slot)?,
        };
        Ok(Self { entry, span, place })
    }
}

impl Attached {
    /// Finds a name, in its folded form, in a directory with an index. What is
    /// hidden is found too.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn locate(&self, dir: &Dir, folded: &[u8]) -> Result<Option<Located>> {
        let found = self.find(dir, folded, |r| (r.short, span_of(r)))?;
        found
            .map(|(entry, span)| Located::new(self, dir, entry, span))
            .transpose()
    }

    /// As [`locate`](Self::locate), but what is hidden is not there.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    pub(crate) fn locate_shown(&self, dir: &Dir, folded: &[u8]) -> Result<Located> {
        let found = self.locate(dir, folded)?.ok_or(Kind::NotFound)?;
        if self.owners.is_table(dir.first, found.span.slot) {
            return Err(Kind::NotFound.into());
        }
        Ok(found)
    }

    /// The node of an entry. The directory that holds it must be locked.
    ///
    /// # Errors
    /// `Corrupt` for a directory that begins nowhere, at the root, or where
    /// one with another entry begins; `Io`.
    pub(crate) fn node_of(&self, at: &Located) -> Result<Arc<Node>> {
        let key = at.place.key();
        let generation = self.stamp(&at.entry, key);
        if at.entry.is_dir() {
            let first = self.dir_cluster(at)?;
            let node = self.nodes.dir_or(first, generation, |id, change| {
                self.make_node(id, at, change, 0)
            });
            let node = node.ok_or(Kind::Corrupt)?;
            if node.meta.lock().place.map(|p| p.key()) != Some(key) {
                return Err(self.bad_dir(at, "the start of another directory"));
            }
            return Ok(node);
        }
        if self.unix != Unix::Off
            && let Some(node) = self.nodes.at(key)
        {
            return Ok(node);
        }
        let rdev = self.rdev_of(&at.entry)?;
        let make = |id, change| self.make_node(id, at, change, rdev);
        self.nodes
            .at_or(key, generation, make)
            .ok_or_else(|| Kind::Corrupt.into())
    }

    fn dir_cluster(&self, at: &Located) -> Result<u32> {
        let first = at.entry.first_cluster(self.layout.is_fat32());
        if !self.layout.is_cluster(first) || first == self.layout.root_cluster {
            return Err(self.bad_dir(at, &first.to_string()));
        }
        Ok(first)
    }

    fn bad_dir(&self, at: &Located, found: &str) -> Error {
        Error::corrupt(
            "DIR_FstClus of a directory",
            at.place.offset,
            found,
            "a cluster of its own",
        )
    }

    fn make_node(&self, id: NodeId, at: &Located, change: u64, rdev: u64) -> Node {
        let Perms { kind, .. } = self.perms(&at.entry);
        let first = at.entry.first_cluster(self.layout.is_fat32());
        let of = match at.entry.is_dir() {
            true => Of::Dir,
            false => Of::File(self.clusters_for(at.entry.DIR_FileSize.get().into())),
        };
        let runs = Runs::from_first(first, of);
        let body = if at.entry.is_dir() {
            Body::Dir(Dir {
                first,
                runs,
                index: None,
            })
        } else {
            Body::File(runs)
        };
        let meta = Meta {
            place: Some(at.place),
            rdev,
            ..self.cold_meta(&at.entry, change)
        };
        Node {
            id,
            kind,
            opens: AtomicU32::new(0),
            meta: Mutex::new(meta),
            body: RwLock::new(body),
        }
    }

    /// The directory that starts at a cluster; 0 for the root.
    ///
    /// # Errors
    /// `Stale` if no directory that a path leads to starts there; `Io`,
    /// `Corrupt`.
    pub(crate) fn dir_node(&self, first: u32) -> Result<Arc<Node>> {
        match self.nodes.dir(first) {
            Some(node) => Ok(node),
            None => self.find_dir(first),
        }
    }

    /// Finds a directory by its way from the root.
    fn find_dir(&self, first: u32) -> Result<Arc<Node>> {
        let mut way = vec![first];
        let mut node = loop {
            let at = *way.last().ok_or(Kind::Stale)?;
            if at == 0 {
                way.pop();
                break self.root.clone();
            }
            if let Some(node) = self.nodes.dir(at) {
                way.pop();
                break node;
            }
            if way.len() > DEPTH_MAX {
                return Err(Kind::Stale.into());
            }
            way.push(self.parent_cluster(at)?);
        };
        for &first in way.iter().rev() {
            node = self.child_dir(&node, first)?;
        }
        Ok(node)
    }

    /// The directory in `parent` that starts at a cluster.
    fn child_dir(&self, parent: &Node, first: u32) -> Result<Arc<Node>> {
        let body = self.read_dir(parent)?;
        let dir = dir_of(&body)?;
        let fat32 = self.layout.is_fat32();
        let mut found = None;
        dir.scan(self, 0, |event| match event {
            Event::Record(r)
                if r.short.is_dir()
                    && !crate::dir::is_dots(&r.short)
                    && r.short.first_cluster(fat32) == first =>
            {
                found = Some((r.short, span_of(&r)));
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        })?;
        let (entry, span) = found.ok_or(Kind::Stale)?;
        self.node_of(&Located::new(self, dir, entry, span)?)
    }

    /// The node of an id.
    ///
    /// # Errors
    /// `Stale`; `Io`, `Corrupt`.
    pub(crate) fn resolve(&self, id: NodeId) -> Result<Arc<Node>> {
        self.alive()?;
        if let Some(node) = self.nodes.get(id) {
            return Ok(node);
        }
        let node = match Natural::of(id.ino.get()) {
            Natural::Root => self.root.clone(),
            Natural::Dir(first) => self.dir_node(first)?,
            Natural::Slot(dir, slot) => self.node_in_slot(dir, slot)?,
            Natural::Odd => return Err(Kind::Stale.into()),
        };
        if node.id != id {
            return Err(Kind::Stale.into());
        }
        Ok(node)
    }

    fn node_in_slot(&self, first: u32, slot: u32) -> Result<Arc<Node>> {
        let parent = self.dir_node(first)?;
        let body = self.read_dir(&parent)?;
        let dir = dir_of(&body)?;
        if let Some(node) = self.nodes.at(key_of(first, slot)) {
            return Ok(node);
        }
        if slot >= dir.capacity(self) {
            return Err(Kind::Stale.into());
        }
        let found = dir.record_at(self, slot, |r| {
            let shown = !r.short.is_label() && !r.short.is_dir();
            shown.then(|| (r.short, span_of(r)))
        })?;
        let (entry, span) = found.flatten().ok_or(Kind::Stale)?;
        if self.owners.is_table(first, slot) {
            return Err(Kind::Stale.into());
        }
        self.node_of(&Located::new(self, dir, entry, span)?)
    }

    /// Brings a node's entry into its directory's sector. In a commit.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn put_entry(&self, node: &Node, epoch: &Epoch) -> Result<()> {
        let mut meta = node.meta.lock();
        meta.moved = false;
        if !std::mem::take(&mut meta.dirty) || meta.gone {
            return Ok(());
        }
        let Some(place) = meta.place else {
            return Ok(());
        };
        let entry = self.stored_entry(&meta);
        let stage = self.stage_of(place.dir, epoch);
        self.cache.update(place.offset, ENTRY_LEN, stage, |b| {
            b.copy_from_slice(entry.as_bytes());
        })
    }

    /// The stage for entries of the directory that starts at a cluster.
    pub(crate) fn stage_of(&self, dir: u32, epoch: &Epoch) -> volary_block::Stage {
        if epoch.is_born(dir) {
            volary_block::Stage::DATA
        } else {
            crate::commit::ENTRIES
        }
    }

    /// The stage for removals from a directory that belong to a move.
    pub(crate) fn removal_stage(&self, dir: &Dir, epoch: &Epoch) -> volary_block::Stage {
        if epoch.is_born(dir.first) {
            volary_block::Stage::DATA
        } else {
            REMOVALS
        }
    }

    /// The kind of an entry, and whether it is a directory.
    pub(crate) fn kind_of(&self, entry: &DirEntry) -> FileKind {
        self.perms(entry).kind
    }
}
