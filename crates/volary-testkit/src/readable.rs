//! How much of what files held can still be read, for tests of damage and repair.
//!
//! A test takes the [`Content`] of a whole volume, damages it, and counts the [`Readable`] bytes
//! before and after the repair: none may be lost by it.

use crate::tree::entries;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use volary_core::{Cookie, Ctx, DirBuf, FileKind, Fs, Mode, Name, NodeId, Result, escape};

/// Bytes that are compared as one: they are readable together or not at all.
const SECTOR: usize = 512;

/// Bytes that are asked for at once; smaller requests follow where that fails.
const PIECE: usize = 1 << 16;

/// Directories below each other that are gone through: damage can make loops.
const DEPTH_MAX: usize = 100;

/// Names of a directory that are gone through, for the same reason.
const NAMES_MAX: usize = 1 << 16;

/// What files hold by path, and symlinks lead to. Paths have no leading slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content(pub BTreeMap<Vec<u8>, Vec<u8>>);

/// Bytes by path that are as they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readable(pub BTreeMap<Vec<u8>, u64>);

impl Content {
    /// Reads all files of a volume that is whole. Their sectors should differ from each other:
    /// bytes that were moved are recognised by what they are.
    ///
    /// # Errors
    /// What the volume answers.
    pub fn read(fs: &Fs, cx: &Ctx<'_>) -> Result<Self> {
        let mut content = Self::default();
        let mut todo = vec![(Vec::new(), fs.root())];
        while let Some((path, dir)) = todo.pop() {
            for (name, node, kind) in entries(fs, cx, dir)? {
                let path = below(&path, &name);
                match kind {
                    FileKind::Dir => todo.push((path, node)),
                    FileKind::Symlink => _ = content.0.insert(path, fs.readlink(cx, node)?),
                    FileKind::File => _ = content.0.insert(path, whole(fs, cx, node)?),
                    _ => {}
                }
            }
        }
        Ok(content)
    }

    /// Counts what of it can still be read, in whole sectors. A sector counts if it is at its
    /// place in the file of the same path, or anywhere in a file of a path that was not there
    /// before, as in `lost+found`. What the volume refuses to list or to read counts as lost.
    pub fn readable(&self, fs: &Fs, cx: &Ctx<'_>) -> Readable {
        let there = Nodes::list(fs, cx);
        let known: usize = self.0.values().map(Vec::len).sum();
        let mut strangers = BTreeSet::new();
        let mut left = 2 * known + PIECE;
        for (path, &(node, kind)) in &there.0 {
            if self.0.contains_key(path) || left == 0 {
                continue;
            }
            let sectors = sectors(fs, cx, node, kind, left);
            left = left.saturating_sub(sectors.len() * SECTOR);
            strangers.extend(sectors.into_iter().flatten());
        }
        let count = |(path, bytes): (&Vec<u8>, &Vec<u8>)| {
            let own = there.0.get(path);
            let own = own.map(|&(node, kind)| sectors(fs, cx, node, kind, bytes.len()));
            (
                path.clone(),
                alike(bytes, &own.unwrap_or_default(), &strangers),
            )
        };
        Readable(self.0.iter().map(count).collect())
    }
}

impl Readable {
    /// Returns bytes of all files.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Files of which less can be read than before, a line each. Empty if nothing was lost.
    pub fn lost_since(&self, before: &Self) -> Vec<String> {
        let lost = before.0.iter().filter_map(|(path, &was)| {
            let is = self.0.get(path).copied().unwrap_or(0);
            let line = || format!("'{}': {is} bytes are readable; {was} were", escape(path));
            (is < was).then(line)
        });
        lost.collect()
    }
}

impl fmt::Display for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, bytes) in &self.0 {
            writeln!(f, "{bytes:>10} '{}'", escape(path))?;
        }
        Ok(())
    }
}

fn below(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut below = path.to_vec();
    if !below.is_empty() {
        below.push(b'/');
    }
    below.extend_from_slice(name);
    below
}

/// Returns a whole file.
fn whole(fs: &Fs, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
    let open = fs.open(cx, node, Mode::Read)?;
    let (mut bytes, mut buf) = (Vec::new(), vec![0; PIECE]);
    loop {
        let n = fs.read(cx, open, bytes.len() as u64, &mut buf)?;
        bytes.extend_from_slice(buf.get(..n).unwrap_or_default());
        if n == 0 {
            break;
        }
    }
    fs.close(cx, open)?;
    Ok(bytes)
}

/// Returns bytes of `bytes` whose sectors are `own` ones at their places, or among `strangers`.
fn alike(bytes: &[u8], own: &[Option<Vec<u8>>], strangers: &BTreeSet<Vec<u8>>) -> u64 {
    let alike = bytes.chunks(SECTOR).enumerate().filter(|(at, sector)| {
        let is_own = matches!(own.get(*at), Some(Some(own)) if own.starts_with(sector));
        // A file's last sector may stand before other bytes.
        let moved = || strangers.range(sector.to_vec()..).next();
        is_own || moved().is_some_and(|one| one.starts_with(sector))
    });
    alike.map(|(_, sector)| sector.len() as u64).sum()
}

/// Returns the first `most` bytes of a node by sectors: of a file those that can be read; the target of
/// a symlink; none of others.
fn sectors(
    fs: &Fs,
    cx: &Ctx<'_>,
    node: NodeId,
    kind: FileKind,
    most: usize,
) -> Vec<Option<Vec<u8>>> {
    let pieces = |bytes: &[u8]| {
        let pieces = bytes.chunks(SECTOR).map(|sector| Some(sector.to_vec()));
        pieces.collect::<Vec<_>>()
    };
    match kind {
        FileKind::Symlink => fs.readlink(cx, node).map_or(Vec::new(), |to| pieces(&to)),
        FileKind::File => {
            let Ok(open) = fs.open(cx, node, Mode::Read) else {
                return Vec::new();
            };
            let size = fs.getattr(cx, node).map_or(0, |attr| attr.size);
            let size = usize::try_from(size).unwrap_or(usize::MAX).min(most);
            let (mut all, mut buf) = (Vec::new(), vec![0; PIECE]);
            for at in (0..size).step_by(PIECE) {
                let len = PIECE.min(size - at);
                let part = buf.get_mut(..len).unwrap_or_default();
                match fs.read(cx, open, at as u64, part) {
                    Ok(n) if n == len => all.extend(pieces(part)),
                    _ => all.extend(one_by_one(|at, part| fs.read(cx, open, at, part), at, len)),
                }
            }
            _ = fs.close(cx, open);
            all
        }
        _ => Vec::new(),
    }
}

/// Sectors from `at` on, each of which is read alone.
fn one_by_one(
    read: impl Fn(u64, &mut [u8]) -> Result<usize>,
    at: usize,
    len: usize,
) -> Vec<Option<Vec<u8>>> {
    let one = |at: usize, len: usize| {
        let mut sector = vec![0; len];
        let n = read(at as u64, &mut sector).ok()?;
        sector.truncate(n);
        Some(sector).filter(|sector| !sector.is_empty())
    };
    let places = (at..at + len).step_by(SECTOR);
    places
        .map(|from| one(from, SECTOR.min(at + len - from)))
        .collect()
}

/// What a damaged volume still lists.
struct Nodes(BTreeMap<Vec<u8>, (NodeId, FileKind)>);

impl Nodes {
    fn list(fs: &Fs, cx: &Ctx<'_>) -> Self {
        let mut nodes = Self(BTreeMap::new());
        let mut met = HashSet::from([fs.root()]);
        let mut todo = vec![(Vec::new(), fs.root(), 0)];
        while let Some((path, dir, depth)) = todo.pop() {
            for name in listed(fs, cx, dir) {
                // What its entry says may be wrong.
                let Some((node, kind)) = found(fs, cx, dir, &name) else {
                    continue;
                };
                let path = below(&path, &name);
                if kind == FileKind::Dir && depth < DEPTH_MAX && met.insert(node) {
                    todo.push((path.clone(), node, depth + 1));
                }
                nodes.0.insert(path, (node, kind));
            }
        }
        nodes
    }
}

/// Returns the node that a name leads to.
fn found(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, name: &[u8]) -> Option<(NodeId, FileKind)> {
    let node = fs.lookup(cx, dir, Name::new(name).ok()?).ok()?.node;
    Some((node, fs.getattr(cx, node).ok()?.kind))
}

/// Names in a directory, up to where it cannot be listed.
fn listed(fs: &Fs, cx: &Ctx<'_>, dir: NodeId) -> Vec<Vec<u8>> {
    let Ok(open) = fs.open(cx, dir, Mode::Read) else {
        return Vec::new();
    };
    let (mut all, mut at) = (Vec::new(), Cookie::START);
    // One entry at a time: those before the damage are not lost with it.
    let mut buf = DirBuf::new(1, 1 << 12, false);
    loop {
        buf.clear();
        let end = fs.readdir(cx, open, at, &mut buf);
        all.extend(buf.iter().map(|entry| entry.name.to_vec()));
        match (end, buf.last_cookie()) {
            (Ok(false), Some(next)) if next != at && all.len() < NAMES_MAX => at = next,
            _ => break,
        }
    }
    _ = fs.close(cx, open);
    all
}
