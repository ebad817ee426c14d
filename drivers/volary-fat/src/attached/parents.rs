//! Which directory another one is in, where its own first cluster says it wrongly or
//! not at all.
//!
//! `.` and `..` belong into the first two slots. Where they stand in others, they are
//! found there. Where there are none, all directories are gone through from the root
//! on, and what is found is remembered for the next such directory.

use crate::base::store::Store;
use crate::directory::dir::Dir;
use crate::directory::slots::{Event, entry_at};
use crate::table::runs::Runs;
use crate::table::twofold::Of;
use crate::volume::judge::{self, Judge};
use crate::volume::ondisk::{DOT, DOT_DOT, DirEntry, ENTRY_LEN, Short, is_dots};
use parking_lot::Mutex;
use std::ops::ControlFlow;
use std::sync::Arc;
use volary_core::{Kind, Result};
use volary_ondisk::NumberMap;

/// Most directories that are remembered.
const PARENTS_MAX: usize = 1 << 16;

/// The ways from directories to those that they are in.
pub(crate) struct Parents {
    store: Arc<Store>,
    /// Entries are in the paper's layout.
    paper: bool,
    /// First clusters of directories, and of those that they are in; 0 for the root.
    known: Mutex<NumberMap<u32>>,
}

impl Parents {
    /// Returns the parents of the directories in `store`; none is known yet.
    pub(crate) fn new(store: Arc<Store>, paper: bool) -> Self {
        Self {
            store,
            paper,
            known: Mutex::default(),
        }
    }

    fn get(&self, first: u32) -> Option<u32> {
        self.known.lock().get(&first.into()).copied()
    }

    fn note(&self, first: u32, parent: u32) {
        let mut known = self.known.lock();
        if known.len() < PARENTS_MAX {
            known.insert(first.into(), parent);
        }
    }

    /// `.` or `..` of the directory that starts at a cluster, wherever in that it
    /// stands, and its byte offset.
    fn dot_entry(&self, first: u32, name: Short) -> Result<Option<(u64, DirEntry)>> {
        let base = self.store.layout.cluster_offset(first);
        let is_it = |e: &DirEntry| e.DIR_Name == name && e.is_dir();
        let proper = base + u64::from(name == DOT_DOT) * ENTRY_LEN as u64;
        let mut raw = [0; ENTRY_LEN];
        self.store.cache.read(proper, &mut raw)?;
        if let Some(entry) = entry_at(&raw).filter(is_it) {
            return Ok(Some((proper, entry)));
        }
        let mut cluster = vec![0; self.store.layout.cluster_len as usize];
        self.store.cache.read(base, &mut cluster)?;
        let slots = (base..).step_by(ENTRY_LEN).zip(cluster.chunks(ENTRY_LEN));
        let live = slots.take_while(|(_, raw)| raw.first() != Some(&0));
        let mut entries = live.filter_map(|(at, raw)| Some((at, entry_at(raw)?)));
        Ok(entries.find(|(_, entry)| is_it(entry)))
    }

    /// Returns the first cluster of the directory that the one which seems to start at a
    /// cluster is in; 0 for the root.
    ///
    /// # Errors
    /// `Stale` if it seems not to be a directory, or is in none; `Io`.
    pub(crate) fn of(&self, first: u32) -> Result<u32> {
        if !self.store.layout.is_cluster(first) || first == self.store.layout.root_cluster {
            return Err(Kind::Stale.into());
        }
        let fat32 = self.store.layout.is_fat32();
        let dot = self.dot_entry(first, DOT)?;
        let own = dot.is_some_and(|(_, e)| e.first_cluster(fat32) == first);
        match self.dot_entry(first, DOT_DOT)? {
            Some((_, above)) if own => {
                let parent = above.first_cluster(fat32);
                let is_root = parent == self.store.layout.root_cluster;
                Ok(if is_root { 0 } else { parent })
            }
            _ if self.is_like_dir(first)? => self.search_parent(first),
            _ => Err(Kind::Stale.into()),
        }
    }

    /// Returns whether a cluster holds what a directory does.
    fn is_like_dir(&self, first: u32) -> Result<bool> {
        let mut bytes = vec![0; self.store.layout.cluster_len as usize];
        self.store
            .cache
            .read(self.store.layout.cluster_offset(first), &mut bytes)?;
        let layout = &self.store.layout;
        let paper = self.paper;
        let tally = judge::tally(&bytes, Judge { layout, paper });
        Ok(tally.good > 0 && tally.bad == 0)
    }

    fn search_parent(&self, first: u32) -> Result<u32> {
        if let Some(parent) = self.get(first) {
            return Ok(parent);
        }
        self.find_parents()?;
        self.get(first).ok_or_else(|| Kind::Stale.into())
    }

    /// Goes through all directories.
    fn find_parents(&self) -> Result<()> {
        let fat32 = self.store.layout.is_fat32();
        let mut todo = vec![0];
        let mut seen = NumberMap::default();
        while let Some(parent) = todo.pop() {
            let start = if parent == 0 {
                self.store.layout.root_cluster
            } else {
                parent
            };
            let mut runs = Runs::from_first(start, Of::Dir);
            if runs.load_all(&self.store.table).is_err() {
                continue;
            }
            let dir = Dir {
                first: parent,
                runs,
                index: None,
            };
            dir.scan(&self.store, 0, |event| {
                if let Event::Record(r) = event
                    && r.short.is_dir()
                    && !is_dots(&r.short)
                {
                    let first = r.short.first_cluster(fat32);
                    if self.store.layout.is_cluster(first)
                        && seen.insert(first.into(), ()).is_none()
                    {
                        self.note(first, parent);
                        todo.push(first);
                    }
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(())
    }

    /// Makes `..` of a directory that was moved say so, if it has one.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn set(&self, first: u32, parent: u32, stage: volary_block::Stage) -> Result<()> {
        let Some((place, _)) = self.dot_entry(first, DOT_DOT)? else {
            self.note(first, parent);
            return Ok(());
        };
        let fat32 = self.store.layout.is_fat32();
        self.store.cache.update(place, ENTRY_LEN, stage, |raw| {
            if let Some(mut entry) = entry_at(raw) {
                entry.set_first_cluster(parent, fat32);
                raw.copy_from_slice(zerocopy::IntoBytes::as_bytes(&entry));
            }
        })
    }
}
