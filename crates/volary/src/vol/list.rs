//! Listings of directories, and walks through trees.

use super::error::{VolError, VolResult};
use super::held::Held;
use std::collections::HashSet;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::vec::IntoIter;
use volary_core::{Attr, Cookie, DirBuf, Error, FileKind, Kind, Mode, NodeId, OpenId, Result};
use volary_session::{Follow, Listed, PATH_MAX};

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolEntry {
    /// Its name, in bytes as the volume stores it.
    pub name: Vec<u8>,
    /// The kind of its node.
    pub kind: FileKind,
    /// The node that it leads to.
    pub node: NodeId,
    /// The node's attributes; `None` if it is damaged.
    pub attr: Option<Attr>,
}

impl VolEntry {
    /// Returns whether the entry is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind == FileKind::Dir
    }
}

/// The number of entries that are read at once.
const BATCH: usize = 1024;

/// The most memory for the entries of one directory, in bytes: some two million entries. A server
/// could list without end.
const LISTING_MAX: usize = 512 << 20;

/// Returns the entries of the directory at `path`.
///
/// # Errors
/// `NotFound`, `NotDir`; as [`entries`].
pub(super) fn list(held: &Held, path: &[u8]) -> Result<Vec<VolEntry>> {
    let found = held.walk(path, Follow::Yes)?;
    match found.attr.kind {
        FileKind::Dir => entries(held, found.node),
        _ => Err(Kind::NotDir.into()),
    }
}

/// Returns the entries of a directory, in the order in which they are stored.
///
/// # Errors
/// `TooBig` for a directory with too many entries; the driver's errors.
pub(super) fn entries(held: &Held, dir: NodeId) -> Result<Vec<VolEntry>> {
    let open = held.session.open(dir, Mode::Read)?;
    let read = read_all(held, dir, open);
    held.session.close(open)?;
    read
}

fn read_all(held: &Held, dir: NodeId, open: OpenId) -> Result<Vec<VolEntry>> {
    let mut all = Vec::new();
    let mut bytes = 0;
    let mut batch = DirBuf::new(BATCH, BATCH * 32, true);
    let mut from = Cookie::START;
    loop {
        batch.clear();
        let is_end = held.session.readdir(open, from, &mut batch)?;
        for entry in batch.iter() {
            let attr = match held.session.listed(dir, &entry)? {
                Listed::Known(attr) => Some(attr),
                Listed::Unknown => None,
                Listed::Gone => continue,
            };
            bytes += size_of::<VolEntry>() + entry.name.len();
            all.push(VolEntry {
                name: entry.name.to_vec(),
                kind: attr.map_or(entry.kind, |attr| attr.kind),
                node: attr.map_or(entry.node, |attr| attr.node),
                attr,
            });
        }
        match batch.last_cookie() {
            Some(next) if !is_end => from = next,
            _ => return Ok(all),
        }
        if bytes > LISTING_MAX {
            let words = format!(
                "a directory with more than {} entries is not listed",
                all.len()
            );
            return Err(Error::note(Kind::TooBig, words));
        }
    }
}

/// An entry that a [`Walk`] returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked {
    /// Its path, which begins as the walk's path was written.
    pub path: Vec<u8>,
    /// The entry.
    pub entry: VolEntry,
}

/// A walk through everything below a directory; see [`Vol::walk`](crate::Vol::walk).
#[derive(Debug)]
pub struct Walk {
    held: Arc<Held>,
    path: Vec<u8>,
    /// Directories that were entered. On a damaged volume, one can be in two places, or in itself.
    seen: HashSet<NodeId>,
    levels: Vec<Level>,
    /// The directory to enter next: the one returned last, or `None` for the beginning of the walk.
    next: Option<Option<NodeId>>,
}

#[derive(Debug)]
struct Level {
    rows: IntoIter<VolEntry>,
    path_len: usize,
}

impl Walk {
    pub(super) fn new(held: Arc<Held>, path: &[u8]) -> Self {
        Self {
            held,
            path: path.to_vec(),
            seen: HashSet::new(),
            levels: Vec::new(),
            next: Some(None),
        }
    }

    /// Skips the entries of the directory that was returned last.
    pub fn skip_dir(&mut self) {
        if let Some(Some(_)) = self.next {
            self.next = None;
        }
    }

    fn enter(&mut self, dir: Option<NodeId>) -> VolResult<()> {
        let entered = || -> Result<(NodeId, Vec<VolEntry>)> {
            let dir = match dir {
                Some(dir) => dir,
                None => {
                    let found = self.held.walk(&self.path, Follow::Yes)?;
                    if found.attr.kind != FileKind::Dir {
                        return Err(Kind::NotDir.into());
                    }
                    found.node
                }
            };
            if self.path.len() > PATH_MAX {
                let words = format!("deeper than {PATH_MAX} bytes of path; not entered");
                return Err(Error::note(Kind::NameTooLong, words));
            }
            if self.seen.contains(&dir) {
                let words = "this directory is in another place too; the volume is damaged";
                return Err(Error::note(Kind::Corrupt, words));
            }
            Ok((dir, entries(&self.held, dir)?))
        };
        let (dir, rows) = entered().map_err(|e| self.failed(e))?;
        self.seen.insert(dir);
        self.levels.push(Level {
            rows: rows.into_iter(),
            path_len: self.path.len(),
        });
        Ok(())
    }

    fn failed(&self, e: Error) -> VolError {
        self.held.failed_at("list", &self.path, e)
    }
}

impl Iterator for Walk {
    type Item = VolResult<Walked>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(dir) = self.next.take()
            && let Err(e) = self.enter(dir)
        {
            return Some(Err(e));
        }
        loop {
            let level = self.levels.last_mut()?;
            self.path.truncate(level.path_len);
            let Some(entry) = level.rows.next() else {
                self.levels.pop();
                continue;
            };
            if self.path.last() != Some(&b'/') {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(&entry.name);
            self.next = entry.is_dir().then_some(Some(entry.node));
            let path = self.path.clone();
            return Some(Ok(Walked { path, entry }));
        }
    }
}

impl FusedIterator for Walk {}
