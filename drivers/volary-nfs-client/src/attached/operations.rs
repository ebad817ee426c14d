//! An attached volume: its parts, its opens, and detaching.

use crate::attached::dirs::Dirs;
use crate::attached::files::Files;
use crate::attached::hidden::HiddenFiles;
use crate::attached::names::Names;
use crate::attached::tree::Tree;
use crate::calls::entries::Entries;
use crate::calls::export::{Export, Who};
use crate::content::ahead::{Ahead, AheadLimits};
use crate::content::attrs::Attrs;
use crate::content::behind::{Behind, BehindLimits};
use crate::content::room::Room;
use crate::content::workers::Workers;
use crate::known::name_cache::NameCache;
use crate::known::node::Node;
use crate::known::nodes::Nodes;
use crate::location::NfsOptions;
use crate::opens::locks::Locks;
use crate::opens::nlm::Nlm;
use crate::opens::open::Opens;
use crate::server::info::Info;
use crate::server::mount::{Mount, own_cred};
use crate::wire::proto::{Fattr, Fh};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volary_core::{Caps, Cred, Ctx, FileKind, Kind, Mode, NodeId, OpenId, Result};

/// Roughly the memory that a cached node takes, in bytes.
const NODE_BYTES: u64 = 1024;
const NODES_MIN: u64 = 1024;

/// An attached export. If dropped without a detach, it sends all written data and unmounts.
pub(crate) struct Attached {
    export: Arc<Export>,
    mount: Mount,
    pub(crate) whose: Option<Cred>,
    pub(crate) caps: Caps,
    pub(crate) root: NodeId,
    nodes: Arc<Nodes>,
    pub(crate) opens: Arc<Opens>,
    /// Threads for calls that nobody waits for: reading ahead and writing behind.
    workers: Arc<Workers>,
    pub(crate) attrs: Arc<Attrs>,
    pub(crate) files: Files,
    pub(crate) names: Names,
    pub(crate) dirs: Dirs,
    /// `None` for a server without NLM.
    pub(crate) locks: Option<Locks>,
}

/// A mounted export, and the server's capabilities.
pub(crate) struct Mounted {
    pub(crate) export: Export,
    pub(crate) nlm: Option<Nlm>,
    pub(crate) mount: Mount,
    /// The root's handle, its attributes, and the time of the call that read them; see
    /// [`tick`](crate::known::attr_cache::tick).
    pub(crate) root: (Fh, Fattr, u64),
    pub(crate) info: Info,
}

impl Attached {
    /// Assembles the parts of an attached export.
    ///
    /// # Errors
    /// As [`enter`](Nodes::enter).
    pub(crate) fn new(of: Mounted, options: &NfsOptions, whose: Option<Cred>) -> Result<Self> {
        let (info, caps) = (of.info, of.info.caps);
        let (fh, attr, asked) = of.root;
        let room = options.memory / 4 / NODE_BYTES;
        let room = usize::try_from(room.max(NODES_MIN)).unwrap_or(usize::MAX);
        let nodes = Arc::new(Nodes::new(room));
        let root = nodes.enter(fh, &attr, asked)?;
        let export = Arc::new(of.export);
        let workers = Arc::new(Workers::new((options.connections * 2).max(2)));
        let opens = Arc::new(Opens::default());
        let (ahead, behind) = content(&export, &workers, options, &info);
        let attrs = Arc::new(Attrs::new(
            export.clone(),
            ahead.clone(),
            behind.clone(),
            options.cache,
            caps.size_max,
        ));
        let cache = NameCache::new(room);
        let entries = Arc::new(Entries::new(export.clone(), nodes.clone(), cache));
        let tree = Tree::new(entries.clone(), attrs.clone(), root.id);
        let hidden = HiddenFiles::new(
            entries.clone(),
            attrs.clone(),
            behind.clone(),
            caps.has(Caps::HARD_LINKS),
        );
        Ok(Self {
            mount: of.mount,
            whose,
            caps,
            root: root.id,
            nodes,
            names: Names::new(export.clone(), behind.clone(), tree, hidden, opens.clone()),
            dirs: Dirs::new(export.clone(), entries, attrs.clone(), info.list_max),
            attrs,
            files: Files::new(
                export.clone(),
                ahead,
                behind,
                Room::new(export.clone(), root),
                caps.size_max,
            ),
            locks: of
                .nlm
                .map(|nlm| Locks::new(export.clone(), nlm, options.timeout)),
            opens,
            workers,
            export,
        })
    }

    /// Returns the caller on whose behalf an operation makes calls.
    pub(crate) fn who<'a>(&'a self, cx: &'a Ctx<'_>) -> Who<'a> {
        Who {
            cred: self.whose.as_ref().unwrap_or(cx.cred),
            cancel: Some(cx.cancel),
        }
    }

    /// # Errors
    /// `Stale` once the export is detached.
    pub(crate) fn check(&self) -> Result<()> {
        self.export.check()
    }

    /// # Errors
    /// `Stale`.
    pub(crate) fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        self.check()?;
        self.nodes.get(id)
    }

    /// See [`open`](volary_core::FileSystem::open).
    pub(crate) fn open_node(&self, who: Who<'_>, node: &Arc<Node>, mode: Mode) -> Result<OpenId> {
        // Close-to-open consistency: data that others have closed is seen now.
        self.files.behind.settle(node)?;
        let _stays = node.going.read();
        self.export.fetch_attr(who, node)?;
        match node.kind {
            FileKind::Dir if mode != Mode::Read => return Err(Kind::IsDir.into()),
            FileKind::File | FileKind::Dir => {}
            _ => return Err(Kind::Invalid.into()),
        }
        if mode != Mode::Read {
            self.export.check_writable()?;
        }
        Ok(self.opens.add(Arc::clone(node), mode))
    }

    /// See [`close`](volary_core::FileSystem::close).
    pub(crate) fn end_open(&self, who: Who<'_>, open: OpenId) -> Result<()> {
        let opened = self.opens.remove(open)?;
        let node = &opened.node;
        if let Some(locks) = &self.locks {
            locks.end_open(who, &opened);
        }
        let written = if opened.mode == Mode::Read {
            Ok(())
        } else {
            self.files.behind.commit(who, node)
        };
        let _alone = node.going.write();
        if node.opens.fetch_sub(1, Ordering::SeqCst) > 1 {
            return written;
        }
        self.files.ahead.forget(node);
        written.and(self.names.hidden.let_go(who, node))
    }

    /// See [`detach`](volary_core::FileSystem::detach).
    pub(crate) fn detach_once(&self, who: Who<'_>) -> Result<()> {
        if self.export.is_detached() {
            return Ok(());
        }
        self.leave(who)
    }

    /// Ends all opens, makes all data durable on the server, and unmounts.
    fn leave(&self, who: Who<'_>) -> Result<()> {
        let mut first = Ok(());
        for open in self.opens.ids() {
            first = first.and(self.end_open(who, open));
        }
        first = first.and(self.files.behind.commit_all(who));
        if self.export.detach() {
            return Ok(());
        }
        self.workers.end();
        let cred = self.whose.clone().unwrap_or_else(own_cred);
        self.mount.unmount(&cred);
        self.export.end();
        if let Some(locks) = &self.locks {
            locks.end();
        }
        self.names.tree.entries.clear();
        first
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if !self.export.is_detached() {
            let cred = self.whose.clone().unwrap_or_else(Cred::root);
            // Nobody can receive the error.
            let _ = self.leave(Who::behind(&cred));
        }
    }
}

/// Returns the read-ahead and the write-behind, which get a quarter of the memory each.
fn content(
    export: &Arc<Export>,
    workers: &Arc<Workers>,
    options: &NfsOptions,
    info: &Info,
) -> (Arc<Ahead>, Arc<Behind>) {
    let memory = usize::try_from(options.memory / 4).unwrap_or(usize::MAX);
    let limits = AheadLimits {
        read_max: info.read_max,
        memory,
        cache: options.cache,
    };
    let ahead = Arc::new(Ahead::new(export.clone(), workers.clone(), limits));
    let limits = BehindLimits {
        write_max: info.write_max,
        memory,
        sync: options.sync,
    };
    let behind = Behind::new(export.clone(), ahead.clone(), workers.clone(), limits);
    (ahead, Arc::new(behind))
}
