//! Walks all directories, each once, whatever damage there is.

use crate::disk::volume::Stretch;
use crate::extensions::susp::Areas;
use crate::tree::dir::Found;
use crate::tree::node::{Entry, Nodes};
use std::collections::HashSet;
use volary_core::{Error, FileKind, Result};

/// What a walk calls. An error from it ends the walk.
pub(crate) trait Visitor {
    /// Called for a directory, before its entries.
    fn dir(&mut self, at: &Place<'_>, stretch: Stretch) -> Result<()> {
        let _ = (at, stretch);
        Ok(())
    }
    /// Called for a record, before its entry.
    fn record(&mut self, at: &Place<'_>, found: &Found) -> Result<()> {
        let _ = (at, found);
        Ok(())
    }
    /// Called for an entry.
    fn entry(&mut self, at: &Place<'_>, entry: &Entry) -> Result<()>;
    /// Called for damage of a directory or in it. The walk continues, unless nothing more can be
    /// read there.
    fn bad(&mut self, at: &Place<'_>, e: Error) -> Result<()>;
    /// Called for an entry of a directory that was already visited.
    fn again(&mut self, at: &Place<'_>, start: u64) -> Result<()> {
        let _ = (at, start);
        Ok(())
    }
}

/// A directory that was visited. These are what a walk needs memory for.
struct Dir {
    parent: usize,
    name: Vec<u8>,
    start: u64,
}

/// Where the walk is: a directory, or an entry of it.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    dirs: &'a [Dir],
    dir: usize,
    name: Option<&'a [u8]>,
}

/// The longest path that is assembled, in bytes.
const PATH_MAX: usize = 4096;

impl Place<'_> {
    /// Returns the path from the root.
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

/// Walks the whole volume, a level at a time. Reads each block of directories once.
///
/// # Errors
/// Those of `visitor`; `Interrupted`.
pub(crate) fn walk(nodes: &Nodes<'_>, visitor: &mut dyn Visitor) -> Result<()> {
    let root = nodes.reader.volume.root;
    let mut walk = Walk {
        nodes,
        visitor,
        met: HashSet::from([root]),
        areas: Areas::of_all(nodes.reader.cache),
    };
    let mut dirs = vec![Dir {
        parent: 0,
        name: Vec::new(),
        start: root,
    }];
    let mut at = 0;
    while let Some(start) = dirs.get(at).map(|dir| dir.start) {
        let place = Place {
            dirs: &dirs,
            dir: at,
            name: None,
        };
        let below = walk.dir(&place, start)?;
        dirs.extend(below);
        at += 1;
    }
    Ok(())
}

struct Walk<'a> {
    nodes: &'a Nodes<'a>,
    visitor: &'a mut dyn Visitor,
    /// Where the visited directories begin.
    met: HashSet<u64>,
    areas: Areas,
}

impl Walk<'_> {
    /// Walks one directory. Returns its new subdirectories.
    fn dir(&mut self, place: &Place<'_>, start: u64) -> Result<Vec<Dir>> {
        let mut below = Vec::new();
        let dir = match self.nodes.dir(start) {
            Ok(node) => node.sections.first().copied(),
            Err(e) => return self.visitor.bad(place, e).map(|()| below),
        };
        let dir = dir.unwrap_or(Stretch { start, len: 0 });
        self.visitor.dir(place, dir)?;
        let mut at = 0;
        loop {
            self.nodes.check_cancel()?;
            let entry = match self.nodes.reader.found(dir, &mut at) {
                Ok(None) => return Ok(below),
                Ok(Some(found)) => {
                    self.visitor.record(place, &found)?;
                    self.nodes.entry(&found, &mut self.areas)
                }
                Err(e) => Err(e),
            };
            match entry {
                Ok(Some(entry)) => below.extend(self.entry(place, entry)?),
                Ok(None) => {}
                Err(e) => self.visitor.bad(place, e)?,
            }
        }
    }

    /// Visits an entry. Returns it as a directory, if it is a new one.
    fn entry(&mut self, dir: &Place<'_>, entry: Entry) -> Result<Option<Dir>> {
        let here = Place {
            name: Some(&entry.name),
            ..*dir
        };
        self.visitor.entry(&here, &entry)?;
        if entry.kind != FileKind::Dir {
            return Ok(None);
        }
        let start = entry.id.ino.get();
        if self.met.contains(&start) {
            self.visitor.again(&here, start)?;
            return Ok(None);
        }
        if let Err(e) = self.nodes.dir(start) {
            self.visitor.bad(&here, e)?;
            return Ok(None);
        }
        self.met.insert(start);
        Ok(Some(Dir {
            parent: dir.dir,
            name: entry.name,
            start,
        }))
    }
}
