//! The path walk: from a path to a node, within the volume.

use crate::session::Session;
use volary_core::{Attr, Ctx, Entry, FileKind, Kind, NodeId, Result};

/// Longest path, in bytes: Linux's 4096 without the final NUL.
pub const PATH_MAX: usize = 4095;

/// How many symlinks one walk follows at most.
pub const SYMLINKS_MAX: u32 = 40;

/// Whether a walk follows a symlink that is the last component. Earlier ones are always followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Follow {
    Yes,
    No,
}

/// Checks the length and bytes of a path.
///
/// # Errors
/// `NotFound` if it is empty, `NameTooLong` past [`PATH_MAX`], `Invalid` with
/// NUL in it.
pub(crate) fn check_path(path: &[u8]) -> Result<()> {
    if path.is_empty() {
        return Err(Kind::NotFound.into());
    }
    if path.len() > PATH_MAX {
        return Err(Kind::NameTooLong.into());
    }
    if path.contains(&0) {
        return Err(Kind::Invalid.into());
    }
    Ok(())
}

/// A walk under way.
struct Walk<'a> {
    session: &'a Session,
    cx: Ctx<'a>,
    root: Attr,
    /// The directory reached.
    at: Entry,
    /// Paths still to walk, the next one last: a symlink's target is pushed on top of the rest of
    /// the path that led to it.
    rest: Vec<Rest>,
    symlinks: u32,
}

/// What is left of one path.
struct Rest {
    path: Vec<u8>,
    next: usize,
}

/// One component, and whether anything follows it.
struct Step {
    name: Vec<u8>,
    /// Nothing but slashes follows, in this path and those below it.
    is_last: bool,
    /// A slash follows.
    slash: bool,
}

impl Session {
    /// Walks a path from the root; a leading slash makes no difference. `..` in the root is the
    /// root, and an absolute symlink starts at the root again, so that no path leaves the volume.
    /// If the path ends in a slash, a symlink as the last component is followed, and the node must
    /// be a directory. Needs search access on each directory on the way.
    ///
    /// # Errors
    /// `NotFound` for an empty path or target, `NameTooLong`, `Invalid` for
    /// NUL; then, at each step, `NotDir`, `Access`, `NameTooLong`, `NotFound`;
    /// `SymlinkLoop` after [`SYMLINKS_MAX`] symlinks.
    pub fn walk(&self, path: &[u8], follow: Follow) -> Result<Entry> {
        self.walk_from(self.root(), path, follow)
    }

    /// Walks a path as [`walk`](Self::walk) does, but from `dir` if it has no leading slash.
    ///
    /// # Errors
    /// As [`walk`](Self::walk).
    pub fn walk_from(&self, dir: NodeId, path: &[u8], follow: Follow) -> Result<Entry> {
        let mut walk = Walk::new(self, dir, path)?;
        while let Some(step) = walk.next_step() {
            walk.cx.check_cancel()?;
            let found = walk.find(&step.name)?;
            let stays = step.is_last && !step.slash && follow == Follow::No;
            if found.attr.kind == FileKind::Symlink && !stays {
                walk.follow(&found, step.slash)?;
                continue;
            }
            if step.slash && found.attr.kind != FileKind::Dir {
                return Err(Kind::NotDir.into());
            }
            walk.at = found;
        }
        Ok(walk.at)
    }

    /// Walks all of a path but its last name. Returns the directory and that name, for operations
    /// that make or remove an entry. The path `/` gives the root and `.`. If the path ends in a
    /// slash, an existing node of that name must be a directory.
    ///
    /// # Errors
    /// As [`walk`](Self::walk).
    pub fn walk_parent(&self, path: &[u8]) -> Result<(NodeId, Vec<u8>)> {
        self.walk_parent_from(self.root(), path)
    }

    /// Walks a path as [`walk_parent`](Self::walk_parent) does, but from `dir` if it has no
    /// leading slash.
    ///
    /// # Errors
    /// As [`walk`](Self::walk).
    pub fn walk_parent_from(&self, dir: NodeId, path: &[u8]) -> Result<(NodeId, Vec<u8>)> {
        let trimmed = path.iter().rposition(|&b| b != b'/').map_or(0, |i| i + 1);
        let split = path[..trimmed]
            .iter()
            .rposition(|&b| b == b'/')
            .map_or(0, |i| i + 1);
        check_path(path)?;
        if trimmed == 0 {
            return Ok((self.root(), b".".to_vec()));
        }
        let (way, name) = (&path[..split], &path[split..trimmed]);
        let parent = if way.is_empty() {
            Walk::new(self, dir, b".")?.at
        } else {
            self.walk_from(dir, way, Follow::Yes)?
        };
        if parent.attr.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        if trimmed < path.len() {
            match self.lookup(parent.node, name) {
                Ok(found) if found.attr.kind != FileKind::Dir => return Err(Kind::NotDir.into()),
                Err(e) if e != Kind::NotFound => return Err(e),
                _ => {}
            }
        }
        Ok((parent.node, name.to_vec()))
    }
}

impl<'a> Walk<'a> {
    fn new(session: &'a Session, dir: NodeId, path: &[u8]) -> Result<Self> {
        check_path(path)?;
        let cx = session.ctx();
        let root = session.fs().getattr(&cx, session.root())?;
        let start = if path.starts_with(b"/") || dir == root.node {
            root
        } else {
            session.fs().getattr(&cx, dir)?
        };
        Ok(Self {
            session,
            cx,
            root,
            at: entry(&start),
            rest: vec![Rest {
                path: path.to_vec(),
                next: 0,
            }],
            symlinks: 0,
        })
    }

    fn find(&self, name: &[u8]) -> Result<Entry> {
        if self.at.attr.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        self.session
            .need(&self.cx, &self.at.attr, volary_core::Access::EXEC)?;
        self.session.lookup_in(&self.cx, &self.at.attr, name)
    }

    /// Continues with the target of the symlink. `slash`: a slash follows the symlink.
    fn follow(&mut self, symlink: &Entry, slash: bool) -> Result<()> {
        self.symlinks += 1;
        if self.symlinks > SYMLINKS_MAX {
            return Err(Kind::SymlinkLoop.into());
        }
        let mut path = self.session.fs().readlink(&self.cx, symlink.node)?;
        check_path(&path)?;
        if path.starts_with(b"/") {
            self.at = entry(&self.root);
        }
        if slash {
            path.push(b'/');
        }
        self.rest.push(Rest { path, next: 0 });
        Ok(())
    }

    fn next_step(&mut self) -> Option<Step> {
        let (name, slash) = loop {
            match self.rest.last_mut()?.next_name() {
                Some(found) => break found,
                None => self.rest.pop(),
            };
        };
        let is_last = self.rest.iter().all(Rest::is_done);
        Some(Step {
            name,
            is_last,
            slash,
        })
    }
}

impl Rest {
    fn next_name(&mut self) -> Option<(Vec<u8>, bool)> {
        let left = self.path.get(self.next..)?;
        let start = left.iter().position(|&b| b != b'/')?;
        let left = &left[start..];
        let len = left.iter().position(|&b| b == b'/').unwrap_or(left.len());
        let name = left[..len].to_vec();
        self.next += start + len;
        Some((name, len < left.len()))
    }

    fn is_done(&self) -> bool {
        self.path[self.next..].iter().all(|&b| b == b'/')
    }
}

fn entry(attr: &Attr) -> Entry {
    Entry {
        node: attr.node,
        attr: *attr,
    }
}
