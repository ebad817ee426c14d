//! [`Sight`]: whom the names in a directory may be told to.
//!
//! Who watches a whole tree has been let into its top, which says nothing of the directories below.

use crate::files::access;
use crate::files::open::table::File;
use crate::files::security::stored;
use std::sync::Arc;
use volary_core::{Access, Attr, Cred, NodeId};
use volary_session::{ClientId, Session, Volume};

/// Who made a change, on which share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct By<'a> {
    pub(crate) volume: &'a Arc<Volume>,
    /// The client whose changes are made here.
    pub(crate) client: ClientId,
    /// `None` if that is not known here.
    pub(crate) cred: Option<&'a Cred>,
}

impl By<'_> {
    /// Returns root's session, by which the server looks for itself.
    pub(crate) fn root_session(&self) -> Session {
        self.volume.session(Cred::root()).with_client(self.client)
    }
}

/// A directory in which something changed, as those see it who watch one above it. What it takes to
/// tell is found when the first watch asks that needs it, once for each user.
pub(super) struct Sight<'a> {
    by: By<'a>,
    way: Way<'a>,
    /// From the root of the share to the directory; empty if there is no such way any more.
    dirs: Option<Vec<Attr>>,
    /// For users, the depth of the topmost directory from which they can get there.
    tops: Vec<(Cred, usize)>,
}

/// How the directory is known.
enum Way<'a> {
    /// By its path from the root.
    Names(&'a [Vec<u8>]),
    /// By itself and the directories above it, up to the root.
    Nodes(Vec<NodeId>),
}

impl<'a> Sight<'a> {
    /// Of the directory at this path.
    pub(super) fn of_path(by: By<'a>, path: &'a [Vec<u8>]) -> Self {
        Self::new(by, Way::Names(path))
    }

    /// Of the first of these directories, each of which is in the next; the last is the root.
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

    /// Returns whether who opened `file`, a directory `depth` below the root, may list this one, and
    /// search those between. Who made the change knows of it.
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

    /// Returns the depth of the topmost directory from which this user can get here. From the directory itself
    /// everybody can who has opened it.
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

/// Returns whether this user may list the directory: as an open of it would be granted.
fn lists(session: &Session, root: &Session, dir: &Attr) -> bool {
    session.access_seen(dir, Access::READ).is_ok()
        && stored::allows(root, dir, session.cred(), access::READ_DATA)
}
