//! An attached volume: its parts, how they are put together, and what is done with nodes.

use crate::attached::attrs::{Attrs, set_dos};
use crate::attached::commit::Commits;
use crate::attached::entries::{Entries, Located};
use crate::attached::file::File;
use crate::attached::node::Node;
use crate::attached::opens::{Open, Opens};
use crate::attached::owners::{is_table, root_data};
use crate::attached::tree::Tree;
use crate::base::store::{State, Store};
use crate::directory::index::span_of;
use crate::directory::slots::Event;
use crate::names::style::Names;
use crate::options::{MountOptions, UnixMode};
use crate::table::fat::Table;
use crate::table::marks;
use crate::unix::owner::{OwnerTable, TABLE_NAME};
use crate::unix::paper::is_used;
use crate::unix::which::Unix;
use crate::volume::layout::Layout;
use crate::volume::ondisk::attr;
use parking_lot::Mutex;
use std::ops::ControlFlow;
use std::sync::Arc;
use volary_block::{Cache, CacheOptions};
use volary_core::{
    Attach, BlockDevice, Cancel, Cred, Ctx, FileKind, Kind, Mode, NodeId, OpenId, Result, SetAttr,
    StatFs, Time,
};

/// An attached volume.
pub(crate) struct Attached {
    pub(crate) store: Arc<Store>,
    pub(crate) commits: Commits,
    pub(crate) tree: Tree,
    pub(crate) opens: Opens,
    /// Held by operations that lock more than one directory.
    pub(crate) moving: Mutex<()>,
}

/// The smallest cache that a volume can be attached with, in bytes.
const MEMORY_MIN: u64 = 4 << 20;

impl Attached {
    /// Attaches the volume on `dev`. Writes nothing, unless `how` asks for the
    /// UNIX extension on a volume without it.
    ///
    /// # Errors
    /// `Invalid` for an option; `Corrupt` for a boot sector or a root
    /// directory that makes no sense; `Unsupported`; `Io`.
    pub(crate) fn new(dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Self> {
        let mut options = MountOptions::new(how)?;
        let layout = Layout::read_at(&*dev, options.boot.unwrap_or(0))?;
        if options.unix == UnixMode::Auto && !layout.is_fat32() && is_used(&*dev, &layout)? {
            options.take_paper(how);
        }
        let memory = how.memory.max(MEMORY_MIN);
        let read_only = how.read_only || dev.geometry().read_only || options.boot.is_some();
        let cache_options = CacheOptions {
            memory: memory / 2,
            io_size: options.io_size,
        };
        let table = Table::new(dev.clone(), &layout, memory / 8);
        let was_dirty = marks::is_dirty(&layout, &table)?;
        let state = if read_only {
            State::ReadOnly
        } else {
            State::Writable
        };
        let paper = options.unix == UnixMode::Dosfs;
        if paper && layout.is_fat32() {
            return Err(volary_core::Error::note(
                Kind::Invalid,
                "unix=dosfs needs FAT12 or FAT16: on FAT32 its bytes hold the cluster number",
            ));
        }
        let names = Names::new(options.names, options.codepage, paper)?;
        let cache = Cache::new(dev, cache_options);
        let mut store = Store::new(layout, cache, table, names.long, state);
        store.by_replica = options.boot.is_some();
        let store = Arc::new(store);
        let unix = if paper { Unix::Paper } else { Unix::Off };
        let attrs = Attrs::new(&options, unix, store.layout.cluster_len);
        let entries = Entries::new(store.clone(), names);
        let mut fs = Self {
            tree: Tree::new(store.clone(), attrs, entries, memory / 8)?,
            commits: Commits::new(store.clone(), options.zone, was_dirty, memory / 8),
            store,
            opens: Opens::default(),
            moving: Mutex::default(),
        };
        if !was_dirty
            && let Some(hints) = marks::read_fsinfo(&**fs.store.device(), &fs.store.layout)?
        {
            fs.store.table.believe(hints.count, hints.next);
        }
        if matches!(options.unix, UnixMode::Auto | UnixMode::On) {
            fs.open_owners(options.unix == UnixMode::On, !read_only)?;
        }
        Ok(fs)
    }

    /// Finds the table of owners and takes it; makes it if it is `wanted` and changes are taken.
    ///
    /// # Errors
    /// `Io`, `Corrupt`, `NoSpace`.
    fn open_owners(&mut self, wanted: bool, writable: bool) -> Result<()> {
        let located = match self.find_table()? {
            Some(located) => located,
            None if wanted && writable => self.make_table()?,
            None => {
                if wanted {
                    self.tree.attrs.unix = Unix::Today;
                }
                return Ok(());
            }
        };
        let node = self.tree.node_of(&located)?;
        let owners = &self.tree.attrs.owners;
        owners.open(&self.commits, node, located.span.slot)?;
        if let Some(data) = root_data(&located.entry) {
            data.write(&mut self.tree.root.meta.lock().entry);
        }
        self.tree.attrs.unix = Unix::Today;
        Ok(())
    }

    fn find_table(&self) -> Result<Option<Located>> {
        let body = self.tree.read_dir(&self.tree.root)?;
        let dir = body.dir()?;
        let mut found = None;
        dir.scan(&self.store, 0, |event| match event {
            Event::Record(r) if is_table(&r) => {
                found = Some(r.short).map(|entry| (entry, span_of(&r)));
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        })?;
        found
            .map(|(entry, span)| Located::new(&self.store, dir, entry, span))
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
        let mut entry = self.tree.attrs.new_entry(
            &self.commits,
            &cx,
            FileKind::File,
            0,
            &SetAttr::default(),
        )?;
        entry.DIR_Attr = attr::HIDDEN | attr::SYSTEM | attr::READ_ONLY;
        let located = self.add_short(&self.tree.root, TABLE_NAME, entry)?;
        let node = self.tree.node_of(&located)?;
        File::new(&self.commits, &node).write(&cx, Some(0), &OwnerTable::head())?;
        Ok(located)
    }

    /// Returns how full the volume is.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn stat(&self) -> Result<StatFs> {
        self.store.alive()?;
        let cluster = u64::from(self.store.layout.cluster_len);
        let free =
            u64::from(self.store.table.free_count()?) + u64::from(self.store.pending_clusters());
        let size = u64::from(self.store.layout.cluster_count) * cluster;
        let free = (free * cluster).min(size);
        Ok(StatFs {
            block_size: self.store.layout.cluster_len,
            size,
            free,
            available: free,
            nodes: 0,
            nodes_free: 0,
        })
    }

    /// Opens a node.
    ///
    /// # Errors
    /// `IsDir` for writing a directory, `Invalid` for what has no content of
    /// its own, `ReadOnly`.
    pub(crate) fn open_node(&self, id: NodeId, mode: Mode) -> Result<OpenId> {
        let node = self.tree.resolve(id)?;
        match node.kind {
            FileKind::File => {}
            FileKind::Dir if mode == Mode::Read => {}
            FileKind::Dir => return Err(Kind::IsDir.into()),
            _ => return Err(Kind::Invalid.into()),
        }
        if mode != Mode::Read {
            self.store.writable()?;
        }
        // The body keeps a removal out until the table has the open.
        let body = node.body.read();
        if node.meta.lock().gone && !node.is_open() {
            return Err(Kind::Stale.into());
        }
        let open = self.add_open(node.clone(), mode);
        drop(body);
        Ok(open)
    }

    /// Changes attributes: the size last, since that can fail for want of space.
    ///
    /// # Errors
    /// As [`FileSystem::setattr`](volary_core::FileSystem::setattr).
    pub(crate) fn set_all(&self, cx: &Ctx<'_>, node: &Arc<Node>, set: &SetAttr) -> Result<()> {
        self.store.writable()?;
        if node.meta.lock().gone && !node.is_open() {
            return Err(Kind::Stale.into());
        }
        if let Some(size) = set.size {
            File::new(&self.commits, node).set_size(cx, size)?;
        }
        let rest = SetAttr { size: None, ..*set };
        if rest == SetAttr::default() {
            return Ok(());
        }
        self.set_attrs(cx, node, &rest)
    }

    /// Changes all attributes but the size.
    ///
    /// # Errors
    /// `NotPermitted` for a mode or an owner that this volume cannot keep;
    /// `Unsupported` for a time of birth.
    fn set_attrs(&self, cx: &Ctx<'_>, node: &Arc<Node>, set: &SetAttr) -> Result<()> {
        let attrs = &self.tree.attrs;
        let before = attrs.perms(&node.meta.lock().entry);
        let mut perms = before;
        perms.mode = set.mode.map_or(perms.mode, |m| m & 0o7777);
        perms.uid = set.uid.unwrap_or(perms.uid);
        perms.gid = set.gid.unwrap_or(perms.gid);
        if set.btime.is_some() && attrs.unix != Unix::Off {
            return Err(Kind::Unsupported.into());
        }
        let keeps_perms =
            perms == before || attrs.can_keep(node.id == self.tree.root.id, &before, &mut perms)?;
        let owner = if keeps_perms && perms != before {
            attrs.owner_index(&self.commits, cx, perms.uid, perms.gid)?
        } else {
            0
        };
        self.commits.change(|_| {
            let mut meta = node.meta.lock();
            let rdev = meta.rdev;
            if let Some(dos) = set.dos {
                set_dos(&mut meta.entry, dos);
            }
            if perms != before && keeps_perms {
                attrs.set_perms(&mut meta.entry, &perms, owner, rdev);
            }
            attrs.set_times(cx, &mut meta, set);
            self.commits.changed(node, &mut meta, cx.now);
            Ok(())
        })?;
        if node.id == self.tree.root.id {
            attrs.owners.keep_root(&self.commits, perms.mode, owner)?;
        }
        Ok(())
    }

    /// Adds an open of a node. Its body or that of its directory must be locked, which keeps a
    /// removal out.
    pub(crate) fn add_open(&self, node: Arc<Node>, mode: Mode) -> OpenId {
        self.opens.add(node.id.ino.get(), Open { node, mode })
    }

    /// Ends an open. The clusters of a node without a name are given back with
    /// its last.
    ///
    /// # Errors
    /// `Stale`; what giving them back answers.
    pub(crate) fn close_open(&self, open: OpenId) -> Result<()> {
        let closed = self.opens.remove(open)?;
        let node = closed.open.node;
        if closed.is_last {
            self.store.table.give_up(node.id.ino.get());
        }
        if !closed.is_last || !node.meta.lock().gone {
            return Ok(());
        }
        let mut body = node.body.write();
        if node.is_open() {
            return Ok(());
        }
        self.tree.nodes.remove(node.id);
        if self.store.writable().is_err() {
            return Ok(());
        }
        File::new(&self.commits, &node).free(&mut body)
    }

    /// Ends the attachment.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn detach_now(&self) -> Result<()> {
        if self.store.alive().is_err() {
            return Ok(());
        }
        self.opens.clear();
        self.store.table.give_all_up();
        let mut result = Ok(());
        if self.store.writable().is_ok() {
            for node in self.tree.nodes.gone() {
                let freed = File::new(&self.commits, &node).free(&mut node.body.write());
                result = result.and(freed);
            }
        }
        let finished = self.commits.finish();
        result.and(finished)
    }
}
