//! [`Sight`]: decides which users may see the names in a directory.
//!
//! A user who watches a whole tree was permitted to open its top. This says nothing about the
//! directories below.

use crate::files::access;
use crate::files::open::table::File;
use crate::files::security::stored;
use std::sync::Arc;
use volary_core::{Access, Attr, Cred, NodeId};
use volary_session::{ClientId, Session, Volume};

/// The author of a change, and its share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct By<'a> {
    pub(crate) volume: &'a Arc<Volume>,
    /// The client id of changes that are made here.
    pub(crate) client: ClientId,
    /// The user, or `None` if unknown.
    pub(crate) cred: Option<&'a Cred>,
}

impl By<'_> {
    /// Returns root's session, for the server's own look-ups.
    pub(crate) fn root_session(&self) -> Session {
        self.volume.session(Cred::root()).with_client(self.client)
    }
}

/// A directory with a change, from the view of watches above it. What is needed to decide is
/// determined when the first watch needs it, and once for each user.
pub(super) struct Sight<'a> {
    by: By<'a>,
    way: Way<'a>,
    /// The directories from the share's root to this one. Empty if there is no such path any more.
    dirs: Option<Vec<Attr>>,
    /// For each user, the depth of the topmost directory from which they can reach this one.
    tops: Vec<(Cred, usize)>,
}

/// How the directory is known.
enum Way<'a> {
    /// By its path from the root.
    Names(&'a [Vec<u8>]),
    /// By itself and its ancestors, up to the root.
    Nodes(Vec<NodeId>),
}

impl<'a> Sight<'a> {
    /// Returns the sight of the directory at this path.
    pub(super) fn of_path(by: By<'a>, path: &'a [Vec<u8>]) -> Self {
        Self::new(by, Way::Names(path))
    }

    /// Returns the sight of the first of these directories. Each lies in the next one, and the last
    /// is the root.
    pub(super) fn of_nodes(by: By<'a>, nodes: Vec<NodeId>) -> Self {
        Self::new(by, Way::Nodes(nodes))
    }

    fn new(by: By<'a>, way: Way<'a>) -> Self {
        Self {
            by,
            way,
            dirs: None,
            tops: Vec::new(),
        }
    }

    /// Returns whether the user who opened `file`, a directory at `depth`, may list this one and
    /// search those between. The author of the change always may.
    pub(super) fn is_open_to(&mut self, file: &File, depth: usize) -> bool {
        let Some(tree) = file.tree.upgrade() else {
            return false;
        };
        let session = tree.session();
        let cred = session.cred();
        if self.by.cred == Some(cred) {
            return true;
        }
        if let Some((_, top)) = self.tops.iter().find(|(known, _)| known == cred) {
            return depth >= *top;
        }
        let top = self.top(session);
        self.tops.push((cred.clone(), top));
        depth >= top
    }

    /// Returns the depth of the topmost directory from which this user can reach this one. A user
    /// who has opened this directory itself always may see it.
    fn top(&mut self, session: &Session) -> usize {
        let root = self.by.root_session();
        let way = &self.way;
        let dirs = self.dirs.get_or_insert_with(|| way.attrs(&root));
        let Some((here, above)) = dirs.split_last() else {
            return usize::MAX;
        };
        if !lists(session, &root, here) {
            return above.len();
        }
        let closed = |dir: &Attr| session.access_seen(dir, Access::EXEC).is_err();
        let last_closed = above.iter().rposition(closed);
        last_closed.map_or(0, |at| at.saturating_add(1))
    }
}

impl Way<'_> {
    fn attrs(&self, root: &Session) -> Vec<Attr> {
        let found: volary_core::Result<Vec<Attr>> = match self {
            Self::Names(names) => root.getattr(root.root()).and_then(|top| {
                let mut attrs = vec![top];
                let mut here = top;
                for name in *names {
                    here = root.lookup_seen(&here, name)?.attr;
                    attrs.push(here);
                }
                Ok(attrs)
            }),
            Self::Nodes(nodes) => nodes.iter().rev().map(|node| root.getattr(*node)).collect(),
        };
        found.unwrap_or_default()
    }
}

/// Returns whether this user may list the directory, by the same rules as for an open.
fn lists(session: &Session, root: &Session, dir: &Attr) -> bool {
    session.access_seen(dir, Access::READ).is_ok()
        && stored::allows(root, dir, session.cred(), access::READ_DATA)
}
