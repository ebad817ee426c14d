//! A whole volume as one value, for comparisons: before and after a change, or between two readers.

use crate::digest::{digest, digest_of};
use std::collections::BTreeMap;
use std::fmt;
use volary_core::{Cookie, Ctx, DirBuf, FileKind, Fs, Mode, Name, NodeId, Result, Time, escape};

/// The nodes of a volume by path, without the root. Paths have no leading slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(pub BTreeMap<Vec<u8>, Leaf>);

/// A node of a [`Tree`]. What a reader cannot determine is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The kind of the node.
    pub kind: FileKind,
    /// The size of a file in bytes; 0 for other nodes.
    pub size: u64,
    /// [`digest`] of a file's content or a symlink's target; `None` for other nodes.
    pub hash: Option<[u8; 32]>,
    /// The permission bits, the owner and the group.
    pub owner: Option<(u32, u32, u32)>,
    /// The link count. For a directory, its own `.` and the `..` of its subdirectories may count
    /// too.
    pub links: Option<u32>,
    /// The time when the content last changed.
    pub mtime: Option<Time>,
}

impl Tree {
    /// Reads a whole volume.
    ///
    /// # Errors
    /// Errors of the volume.
    ///
    /// # Panics
    /// If directories are nested more than 100 deep, as a loop is then likely, or if a listing is
    /// inconsistent.
    pub fn read(fs: &Fs, cx: &Ctx<'_>) -> Result<Self> {
        let mut tree = Self::default();
        let mut todo = vec![(Vec::new(), fs.root())];
        while let Some((path, dir)) = todo.pop() {
            let depth = path.iter().filter(|&&b| b == b'/').count();
            assert!(depth <= 100, "directories go deeper than 100");
            for (name, node, kind) in entries(fs, cx, dir)? {
                let mut below = path.clone();
                if !below.is_empty() {
                    below.push(b'/');
                }
                below.extend_from_slice(&name);
                let leaf = Leaf::read(fs, cx, dir, &name, kind)?;
                if leaf.kind == FileKind::Dir {
                    todo.push((below.clone(), node));
                }
                let twice = tree.0.insert(below, leaf).is_some();
                assert!(!twice, "'{}' is listed twice", escape(&name));
            }
        }
        Ok(tree)
    }

    /// Changes each leaf, e.g. to remove what another reader cannot determine.
    #[must_use]
    pub fn map(mut self, change: impl Fn(&mut Leaf)) -> Self {
        self.0.values_mut().for_each(change);
        self
    }

    /// Returns the differences to `other`, one per line and at most 20.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut all = Vec::new();
        for (path, leaf) in &self.0 {
            match other.0.get(path) {
                None => all.push(format!("'{}' is missing; was {leaf}", escape(path))),
                Some(o) if o != leaf => {
                    all.push(format!("'{}' is {o}; was {leaf}", escape(path)));
                }
                Some(_) => {}
            }
        }
        for (path, leaf) in &other.0 {
            if !self.0.contains_key(path) {
                all.push(format!("'{}' is new: {leaf}", escape(path)));
            }
        }
        all.truncate(20);
        all
    }

    /// Asserts that the two are equal.
    ///
    /// # Panics
    /// If they differ. The message lists the differences.
    #[track_caller]
    pub fn assert_same(&self, other: &Self) {
        let differences = self.differences(other);
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
}

impl Leaf {
    fn read(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, name: &[u8], listed: FileKind) -> Result<Self> {
        let entry = fs.lookup(cx, dir, Name::new(name)?)?;
        let attr = fs.getattr(cx, entry.node)?;
        assert_eq!(attr.kind, listed, "kind of '{}' as listed", escape(name));
        let hash = match attr.kind {
            FileKind::File => Some(hash_file(fs, cx, entry.node)?),
            FileKind::Symlink => Some(digest(&fs.readlink(cx, entry.node)?)),
            _ => None,
        };
        Ok(Self {
            kind: attr.kind,
            size: if attr.kind == FileKind::File {
                attr.size
            } else {
                0
            },
            hash,
            owner: Some((attr.mode, attr.uid, attr.gid)),
            links: Some(attr.nlink),
            mtime: Some(attr.mtime),
        })
    }
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} bytes", self.kind, self.size)?;
        if let Some((mode, uid, gid)) = self.owner {
            write!(f, ", {mode:o} {uid}:{gid}")?;
        }
        if let Some(links) = self.links {
            write!(f, ", {links} links")?;
        }
        if let Some(t) = self.mtime {
            write!(f, ", changed {}.{:09}", t.secs, t.nanos)?;
        }
        if let Some([a, b, c, d, ..]) = self.hash {
            write!(f, ", {a:02x}{b:02x}{c:02x}{d:02x}..")?;
        }
        Ok(())
    }
}

/// Returns the entries of a directory: name, node, kind.
pub fn entries(fs: &Fs, cx: &Ctx<'_>, dir: NodeId) -> Result<Vec<(Vec<u8>, NodeId, FileKind)>> {
    let open = fs.open(cx, dir, Mode::Read)?;
    let mut buf = DirBuf::new(256, 1 << 16, false);
    let (mut all, mut at) = (Vec::new(), Cookie::START);
    loop {
        buf.clear();
        let end = fs.readdir(cx, open, at, &mut buf)?;
        all.extend(buf.iter().map(|e| (e.name.to_vec(), e.node, e.kind)));
        assert!(all.len() <= 10_000_000, "readdir comes to no end");
        match buf.last_cookie() {
            Some(next) => at = next,
            None => assert!(end, "readdir gave nothing, but no end"),
        }
        if end {
            break;
        }
    }
    fs.close(cx, open)?;
    Ok(all)
}

/// Removes a node and, if it is a directory, everything below it.
///
/// # Errors
/// Errors of the volume. What was removed before the error stays removed.
pub fn remove(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
    let found = fs.lookup(cx, dir, name)?;
    if found.attr.kind != FileKind::Dir {
        return fs.unlink(cx, dir, name);
    }
    for (below, _, _) in entries(fs, cx, found.node)? {
        remove(fs, cx, found.node, Name::new(&below)?)?;
    }
    fs.rmdir(cx, dir, name)
}

fn hash_file(fs: &Fs, cx: &Ctx<'_>, node: NodeId) -> Result<[u8; 32]> {
    let open = fs.open(cx, node, Mode::Read)?;
    let hash = digest_of(|at, buf| fs.read(cx, open, at, buf))?;
    fs.close(cx, open)?;
    Ok(hash)
}
