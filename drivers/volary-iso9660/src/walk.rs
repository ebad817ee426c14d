//! Goes through all directories, each once, whatever damage there is.

use crate::dir::{Found, Stretch};
use crate::node::{Entry, Nodes};
use std::collections::HashSet;
use volary_core::{Error, FileKind, Result};

/// What a walk tells. An error ends it.
pub(crate) trait Visitor {
    /// A directory, before what it holds.
    fn dir(&mut self, at: &Place<'_>, stretch: Stretch) -> Result<()> {
        let _ = (at, stretch);
        Ok(())
    }
    /// A record, before what it is.
    fn record(&mut self, at: &Place<'_>, found: &Found) -> Result<()> {
        let _ = (at, found);
        Ok(())
    }
    /// An entry.
    fn entry(&mut self, at: &Place<'_>, entry: &Entry) -> Result<()>;
    /// Damage: the rest of the block is passed over.
    fn bad(&mut self, at: &Place<'_>, e: Error) -> Result<()>;
    /// A directory that was met before.
    fn again(&mut self, at: &Place<'_>, start: u64) -> Result<()> {
        let _ = (at, start);
        Ok(())
    }
}

/// A directory that was met; its memory is what the walk needs.
struct Dir {
    parent: usize,
    name: Vec<u8>,
    start: u64,
}

/// Where the walk is: a directory, or an entry of it.
pub(crate) struct Place<'a> {
    dirs: &'a [Dir],
    dir: usize,
    name: Option<&'a [u8]>,
}

/// The longest path that is put together, in bytes.
const PATH_MAX: usize = 4096;

impl Place<'_> {
    /// The path from the root.
    pub(crate) fn path(&self) -> Vec<u8> {
        let mut parts: Vec<&[u8]> = self.name.into_iter().collect();
        let (mut at, mut len) = (self.dir, 0);
        while at != 0 && len < PATH_MAX {
            let Some(dir) = self.dirs.get(at) else { break };
            parts.push(&dir.name);
            len += dir.name.len() + 1;
            at = dir.parent;
        }
        let mut path = Vec::new();
        for part in parts.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(part);
        }
        if path.is_empty() {
            path.push(b'/');
        }
        path
    }
}

/// Walks the whole volume, a level at a time.
///
/// # Errors
/// Of `visitor`.
pub(crate) fn walk(nodes: &Nodes<'_>, visitor: &mut dyn Visitor) -> Result<()> {
    let root = nodes.reader.volume.root;
    let mut dirs = vec![Dir {
        parent: 0,
        name: Vec::new(),
        start: root,
    }];
    let mut met = HashSet::from([root]);
    let mut at = 0;
    while let Some(start) = dirs.get(at).map(|dir| dir.start) {
        let mut below = Vec::new();
        let place = |name| Place {
            dirs: &dirs,
            dir: at,
            name,
        };
        match nodes.dir(start) {
            Err(e) => visitor.bad(&place(None), e)?,
            Ok(node) => {
                let stretch = node.sections.first().copied();
                let stretch = stretch.unwrap_or(Stretch { start, len: 0 });
                visitor.dir(&place(None), stretch)?;
                entries(nodes, stretch, &place, visitor, &mut |entry| {
                    let start = entry.id.ino.get();
                    if !met.insert(start) {
                        return false;
                    }
                    below.push((entry.name.clone(), start));
                    true
                })?;
            }
        }
        let below = below.into_iter().map(|(name, start)| Dir {
            parent: at,
            name,
            start,
        });
        dirs.extend(below);
        at += 1;
    }
    Ok(())
}

/// Goes through one directory; `go_on` takes directories in it, and says whether
/// they are new.
fn entries<'a>(
    nodes: &Nodes<'_>,
    dir: Stretch,
    place: &impl Fn(Option<&'a [u8]>) -> Place<'a>,
    visitor: &mut dyn Visitor,
    go_on: &mut dyn FnMut(&Entry) -> bool,
) -> Result<()> {
    let mut at = 0;
    while at < dir.len {
        let found = match nodes.reader.found(dir, at) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(()),
            Err(e) => {
                visitor.bad(&place(None), e)?;
                at = nodes.reader.next_block(at);
                continue;
            }
        };
        at = found.end;
        visitor.record(&place(None), &found)?;
        match nodes.entry(&found) {
            Err(e) => visitor.bad(&place(None), e)?,
            Ok(None) => {}
            Ok(Some(entry)) => {
                let here = place(None);
                let here = Place {
                    name: Some(&entry.name),
                    ..here
                };
                visitor.entry(&here, &entry)?;
                if entry.kind == FileKind::Dir && !go_on(&entry) {
                    visitor.again(&here, entry.id.ino.get())?;
                }
            }
        }
    }
    Ok(())
}
