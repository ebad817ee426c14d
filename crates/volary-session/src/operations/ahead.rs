//! Reads directories ahead of a walk, in the order of the disk.

use crate::operations::listing::Row;
use crate::session::Session;
use std::fmt;
use volary_core::{Cookie, DirBuf, FileKind, Mode, NodeId, Prefetch, Result};

/// The most nodes of a group of directories whose attributes are read ahead.
const NUMBERS_MAX: usize = 8192;
/// Numbers that are read with one call, and bytes of their names.
const BATCH: (usize, usize) = (1024, 64 << 10);

/// Lets a driver read what a walk will list soon.
///
/// A walk meets directories in the order of their names, and the disk holds them in another one.
/// The driver is told of a group at a time, and reads it in its own order.
pub struct Ahead {
    session: Session,
    helps: bool,
}

impl Ahead {
    /// The most directories that [`dirs`](Self::dirs) is best given.
    pub const GROUP: usize = 64;

    /// Returns a reader ahead for walks through `session`.
    pub fn new(session: &Session) -> Self {
        Self {
            session: session.clone(),
            helps: true,
        }
    }

    /// Returns whether the driver may gain from it. If not, [`dirs`](Self::dirs) does nothing.
    pub fn helps(&self) -> bool {
        self.helps
    }

    /// Lets the driver read these directories, and then the attributes of all nodes in them, each
    /// in the order of the disk. Errors are left to the walk.
    pub fn dirs(&mut self, dirs: &[NodeId]) {
        if dirs.is_empty() || !self.helps {
            return;
        }
        self.helps = self.session.prefetch(dirs, Prefetch::Entries);
        if !self.helps {
            return;
        }
        let mut nodes = Vec::new();
        for dir in dirs {
            // An error is reported when the directory is listed.
            let _ = self.numbers(*dir, &mut nodes);
        }
        self.session.prefetch(&nodes, Prefetch::Attributes);
    }

    /// Prepares for the walk to enter the first of these rows, a directory, and then the others.
    /// `ready` counts the directories of this listing that were read ahead and not entered yet; it
    /// begins with 0.
    pub fn enter(&mut self, rows: &[Row], ready: &mut usize) {
        if !self.helps {
            return;
        }
        if *ready == 0 {
            let is_dir = |row: &&Row| row.attr.kind == FileKind::Dir;
            let dirs = rows.iter().filter(is_dir).take(Self::GROUP);
            let dirs: Vec<NodeId> = dirs.map(|row| row.attr.node).collect();
            self.dirs(&dirs);
            *ready = dirs.len();
        }
        *ready = ready.saturating_sub(1);
    }

    /// Adds the nodes of a directory, until there are about [`NUMBERS_MAX`].
    fn numbers(&self, dir: NodeId, nodes: &mut Vec<NodeId>) -> Result<()> {
        if nodes.len() >= NUMBERS_MAX {
            return Ok(());
        }
        let session = &self.session;
        let open = session.open(dir, Mode::Read)?;
        let (mut from, mut end) = (Cookie::START, Ok(false));
        while let Ok(false) = end
            && nodes.len() < NUMBERS_MAX
        {
            let mut buf = DirBuf::new(BATCH.0, BATCH.1, false).numbers_do();
            end = session.readdir(open, from, &mut buf);
            nodes.extend(buf.iter().map(|e| e.node));
            match buf.last_cookie() {
                Some(next) if next != from => from = next,
                _ => break,
            }
        }
        session.close(open)?;
        end.map(|_| ())
    }
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("helps", &self.helps).finish()
    }
}
