//! An attachment and its parts.

use crate::held::attachment::Attachment;
use crate::held::ids::Ids;
use crate::held::nodes::Nodes;
use crate::held::opens::Opens;
use crate::kernel::error::from_errno;
use crate::kernel::proc;
use crate::operations::ahead::Ahead;
use crate::operations::attrs::Attrs;
use crate::operations::content::Content;
use crate::operations::create::Maker;
use crate::operations::dirs::Dirs;
use crate::operations::files::Files;
use crate::operations::names::Names;
use crate::operations::together::Batches;
use crate::operations::xattrs::Xattrs;
use crate::options::HostOptions;
use crate::reach::beneath::Beneath;
use crate::reach::probe;
use crate::reach::root::Root;
use crate::reach::tree::Tree;
use crate::reach::watch::Watchers;
use rustix::fs::{CWD, Mode as HostMode, OFlags};
use std::path::Path;
use std::sync::Arc;
use volary_core::Result;

/// An attached directory.
pub(crate) struct Host {
    pub(crate) attachment: Arc<Attachment>,
    pub(crate) root: Root,
    pub(crate) ids: Arc<Ids>,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) attrs: Arc<Attrs>,
    pub(crate) xattrs: Xattrs,
    pub(crate) dirs: Dirs,
    pub(crate) ahead: Ahead,
    pub(crate) names: Names,
    pub(crate) content: Content,
    pub(crate) files: Arc<Files>,
    pub(crate) batches: Batches,
    pub(crate) maker: Maker,
}

impl Host {
    /// Attaches the directory at `path`.
    ///
    /// # Errors
    /// As [`attach`](crate::attach).
    pub(crate) fn new(path: &Path, options: &HostOptions) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root_fd =
            rustix::fs::openat(CWD, path, flags, HostMode::empty()).map_err(from_errno)?;
        proc::check()?;
        let ids = Ids::new(&root_fd, options.by_handle)?;
        let root_node = ids.of(&root_fd)?.node;
        let whole = probe::is_whole(&root_fd, ids.mount());
        let caps = probe::caps(&root_fd, &ids, options.read_only)?;
        let descriptors_max = options.descriptors_max.unwrap_or_else(probe::descriptors);
        let root = Root {
            node: root_node,
            fd: Arc::new(root_fd),
        };
        let ids = Arc::new(ids);
        let nodes = Arc::new(Nodes::new(options.nodes_max, descriptors_max));
        let attachment = Arc::new(Attachment::new(caps));
        Ok(Self::of(attachment, root, ids, nodes, whole, options))
    }

    /// Assembles the parts of an attachment.
    fn of(
        attachment: Arc<Attachment>,
        root: Root,
        ids: Arc<Ids>,
        nodes: Arc<Nodes>,
        whole: bool,
        options: &HostOptions,
    ) -> Self {
        let opens = Arc::new(Opens::new(probe::descriptors_for_opens()));
        let watchers = Arc::new(Watchers::new(
            attachment.clone(),
            root.clone(),
            ids.clone(),
            nodes.clone(),
        ));
        let tree = Arc::new(Tree::new(
            attachment.clone(),
            root.clone(),
            ids.clone(),
            nodes.clone(),
            Beneath::new(root.clone(), ids.clone(), nodes.clone(), whole),
            watchers.clone(),
        ));
        let attrs = Arc::new(Attrs::new(
            attachment.clone(),
            nodes.clone(),
            tree.clone(),
            options.set_ids,
        ));
        let files = Arc::new(Files::new(
            attachment.clone(),
            root.clone(),
            nodes.clone(),
            opens.clone(),
            tree.clone(),
        ));
        Self {
            xattrs: Xattrs::new(attachment.clone(), tree.clone()),
            dirs: Dirs::new(root.node, ids.clone(), nodes.clone(), opens.clone()),
            ahead: Ahead::new(ids.clone(), tree.clone()),
            names: Names::new(
                attachment.clone(),
                root.node,
                ids.clone(),
                nodes.clone(),
                tree.clone(),
            ),
            content: Content::new(attachment.clone(), opens, options.places),
            batches: Batches::new(files.clone(), options.rings),
            maker: Maker::new(
                attachment.clone(),
                ids.clone(),
                tree.clone(),
                attrs.clone(),
                files.clone(),
                probe::may_give_away(),
            ),
            attachment,
            root,
            ids,
            nodes,
            watchers,
            tree,
            attrs,
            files,
        }
    }

    /// Ends all opens and removes all known nodes. Returns false if this was done before.
    pub(crate) fn end(&self) -> bool {
        let ends = self.attachment.end();
        if ends {
            self.files.clear();
        }
        ends
    }
}
