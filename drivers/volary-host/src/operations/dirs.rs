//! Listings of directories, with the host's own cookies.

use crate::held::ids::Ids;
use crate::held::listing::{END, Raw};
use crate::held::nodes::Nodes;
use crate::held::opens::{Opened, Opens};
use std::sync::Arc;
use volary_core::{Cookie, DirBuf, FileKind, Kind, NodeId, OpenId, Result};

/// The listings of open directories.
pub(crate) struct Dirs {
    root: NodeId,
    ids: Arc<Ids>,
    nodes: Arc<Nodes>,
    opens: Arc<Opens>,
}

impl Dirs {
    pub(crate) fn new(root: NodeId, ids: Arc<Ids>, nodes: Arc<Nodes>, opens: Arc<Opens>) -> Self {
        Self {
            root,
            ids,
            nodes,
            opens,
        }
    }

    /// See [`readdir`](volary_core::FileSystem::readdir).
    pub(crate) fn list(&self, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let open = self.opens.get(dir)?;
        if open.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        if from.0 == END {
            return Ok(true);
        }
        let mut listing = open.listing.lock();
        listing.give(&open.fd, from, |raw| self.push(&open, raw, out))
    }

    /// Adds an entry to `out`. Returns false if there is no room. Skips entries that are gone since
    /// the host listed them, or do not belong to this volume.
    fn push(&self, open: &Opened, raw: &Raw<'_>, out: &mut DirBuf) -> Result<bool> {
        if raw.is_dots() {
            return Ok(true);
        }
        if !out.wants_ids()
            && let Some((node, kind)) = raw.leaf()
        {
            return Ok(out.push(raw.next, node, kind, raw.name, None));
        }
        let attr = match self.ids.at_listed(&open.fd, raw.name, raw.ino) {
            Ok(attr) => attr,
            Err(e) if matches!(e.kind(), Kind::NotFound | Kind::CrossVolume | Kind::Stale) => {
                return Ok(true);
            }
            Err(e) => return Err(e),
        };
        let (node, kind) = (attr.node, attr.kind);
        let wanted = out.wants_attr().then_some(attr);
        if !out.push(raw.next, node, kind, raw.name, wanted) {
            return Ok(false);
        }
        if node != self.root {
            let way = Some((open.node, raw.name)).filter(|_| !self.ids.open_by_handle());
            // Entries with attributes count as looked up, because servers use them so. If it counts
            // too often, the node is merely remembered for longer.
            let lookups = u64::from(out.wants_attr());
            self.nodes.note(node, kind, lookups, way, None);
        }
        Ok(true)
    }
}
