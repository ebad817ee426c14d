//! All that a volume holds, as one reader sees it: with attributes of all kinds, and by extents.

use crate::volumes::as_root;
use rustix::fs::{lgetxattr, llistxattr};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use volary_core::{
    Attr, BlockDevice, Cookie, Ctx, DirBuf, FileKind, Fs, Mode, Name, NodeId, Place, Time,
};

/// What is compared of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// Names that lead to it.
    pub links: u32,
    /// Bytes of content.
    pub size: u64,
    /// Units of 512 bytes that it takes.
    pub sectors: u64,
    /// Major and minor number of a device.
    pub rdev: (u64, u64),
    /// Access, change of the content, change.
    pub times: [Time; 3],
    /// The node's number.
    pub ino: u64,
    /// Of content or target.
    pub hash: u64,
    /// Extended attributes.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Nodes by their paths.
pub type View = BTreeMap<Vec<u8>, Row>;

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Returns how two views differ, a line each: at most 8.
pub fn differences(left: &View, right: &View) -> Vec<String> {
    let names = left.keys().chain(right.keys());
    let mut all: Vec<_> = names
        .filter(|name| left.get(*name) != right.get(*name))
        .map(|name| {
            let name_shown = String::from_utf8_lossy(name);
            format!(
                "{name_shown}:\n  {:?}\n  {:?}",
                left.get(name),
                right.get(name)
            )
        })
        .collect();
    all.sort();
    all.dedup();
    all.truncate(8);
    all
}

/// Holds if two views are the same.
///
/// # Panics
/// If not, saying how they differ.
#[track_caller]
pub fn assert_same(what: &str, left: &View, right: &View) {
    let all = differences(left, right);
    assert!(all.is_empty(), "{what}:\n{}", all.join("\n"));
}

/// As we see it. Listings are asked for some entries at a time, so that cookies are tried.
///
/// # Panics
/// If answers contradict each other.
pub fn ours(fs: &Fs, dev: &Arc<dyn BlockDevice>) -> View {
    as_root(|cx| {
        let mut view = View::new();
        let mut dirs = vec![(Vec::new(), fs.root())];
        while let Some((path, dir)) = dirs.pop() {
            for (name, id, attr) in list(fs, cx, dir) {
                let found = fs
                    .lookup(cx, dir, Name::new(&name).unwrap())
                    .expect("lookup");
                assert_eq!(found.node, id);
                assert_eq!(found.attr, attr);
                let path = [path.as_slice(), b"/", &name].concat();
                if attr.kind == FileKind::Dir {
                    assert_eq!(fs.parent(cx, id).expect("parent").node, dir);
                    dirs.push((path.clone(), id));
                }
                view.insert(path, row(fs, cx, &attr, dev));
            }
        }
        view
    })
}

fn list(fs: &Fs, cx: &Ctx<'_>, dir: NodeId) -> Vec<(Vec<u8>, NodeId, Attr)> {
    let open = fs.open(cx, dir, Mode::Read).expect("open");
    let (mut all, mut at) = (Vec::new(), Cookie::START);
    loop {
        let mut out = DirBuf::new(37, 1 << 16, true);
        let end = fs.readdir(cx, open, at, &mut out).expect("readdir");
        for entry in out.iter() {
            let attr = fs.getattr(cx, entry.node).expect("getattr");
            assert_eq!(entry.attr, Some(attr));
            assert_eq!(entry.kind, attr.kind);
            all.push((entry.name.to_vec(), entry.node, attr));
        }
        at = out.last_cookie().unwrap_or(at);
        if end {
            break;
        }
    }
    fs.close(cx, open).expect("close");
    all
}

fn row(fs: &Fs, cx: &Ctx<'_>, attr: &Attr, dev: &Arc<dyn BlockDevice>) -> Row {
    let hash = match attr.kind {
        FileKind::File => hash(&content(fs, cx, attr, dev)),
        FileKind::Symlink => {
            let target = fs.readlink(cx, attr.node).expect("readlink");
            assert_eq!(target.len() as u64, attr.size);
            hash(&target)
        }
        _ => 0,
    };
    let names = fs.listxattr(cx, attr.node).expect("listxattr");
    let value = |name: Vec<u8>| {
        let value = fs.getxattr(cx, attr.node, &name).expect("getxattr");
        (name, value)
    };
    Row {
        kind: attr.kind,
        mode: attr.mode,
        owner: (attr.uid, attr.gid),
        links: attr.nlink,
        size: attr.size,
        sectors: attr.allocated.div_ceil(512),
        rdev: (attr.rdev >> 32, attr.rdev & 0xffff_ffff),
        times: [attr.atime, attr.mtime, attr.ctime],
        ino: attr.node.ino.get(),
        hash,
        xattrs: names.into_iter().map(value).collect(),
    }
}

/// Returns a file's bytes, in one read and in small ones, and by its extents.
///
/// # Panics
/// If these differ.
pub fn content(fs: &Fs, cx: &Ctx<'_>, attr: &Attr, dev: &Arc<dyn BlockDevice>) -> Vec<u8> {
    let open = fs.open(cx, attr.node, Mode::Read).expect("open");
    let len = usize::try_from(attr.size).expect("a size");
    let mut whole = vec![1; len + 10];
    assert_eq!(fs.read(cx, open, 0, &mut whole).expect("read"), len);
    whole.truncate(len);
    let mut parts = Vec::new();
    let mut part = [0; 30_001];
    loop {
        let n = fs
            .read(cx, open, parts.len() as u64, &mut part)
            .expect("read");
        parts.extend_from_slice(&part[..n]);
        if n == 0 {
            break;
        }
    }
    assert!(parts == whole);
    let mut extents = Vec::new();
    fs.extents(cx, open, 0, u64::MAX, &mut extents)
        .expect("extents");
    let mut by_extents = Vec::new();
    for extent in extents {
        let at = by_extents.len();
        assert_eq!(extent.offset, at as u64);
        let end = at + usize::try_from(extent.len).expect("a length");
        by_extents.resize(end, 0);
        match extent.place {
            Place::Device(place) => dev.read_at(place, &mut by_extents[at..]).expect("a read"),
            Place::Hole => {}
            Place::Encoded => by_extents[at..].copy_from_slice(&whole[at..end]),
        }
    }
    assert!(by_extents == whole, "the extents hold something else");
    fs.close(cx, open).expect("close");
    whole
}

/// As Linux sees a directory.
///
/// # Panics
/// If it cannot be read.
pub fn host(root: &Path) -> View {
    let mut view = View::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            let meta = path.symlink_metadata().expect("lstat");
            let kind = FileKind::from_mode(meta.mode()).expect("a kind");
            let hash = match kind {
                FileKind::File => hash(&std::fs::read(&path).expect("content")),
                FileKind::Symlink => hash(path.read_link().expect("target").as_os_str().as_bytes()),
                _ => 0,
            };
            let time = |secs, nanos| Time::new(secs, u32::try_from(nanos).unwrap());
            let rdev = meta.rdev();
            let major = rdev >> 8 & 0xfff | rdev >> 32 & 0xffff_f000;
            let minor = rdev & 0xff | rdev >> 12 & 0xffff_ff00;
            let row = Row {
                kind,
                mode: meta.mode() & 0o7777,
                owner: (meta.uid(), meta.gid()),
                links: u32::try_from(meta.nlink()).unwrap(),
                size: meta.size(),
                sectors: meta.blocks(),
                rdev: (major, minor),
                times: [
                    time(meta.atime(), meta.atime_nsec()),
                    time(meta.mtime(), meta.mtime_nsec()),
                    time(meta.ctime(), meta.ctime_nsec()),
                ],
                ino: meta.ino(),
                hash,
                xattrs: xattrs(&path),
            };
            let name = path.strip_prefix(root).expect("inside");
            view.insert([b"/", name.as_os_str().as_bytes()].concat(), row);
            if kind == FileKind::Dir {
                dirs.push(path);
            }
        }
    }
    view
}

fn xattrs(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 1 << 16];
    let len = llistxattr(path, names.as_mut_slice()).unwrap_or(0);
    let names = names[..len]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let value = |name: &[u8]| {
        let mut value = vec![0; 1 << 16];
        let len =
            lgetxattr(path, OsStr::from_bytes(name), value.as_mut_slice()).expect("an attribute");
        (name.to_vec(), value[..len].to_vec())
    };
    names.map(value).collect()
}

/// Returns a view without what a copy of a tree does not keep.
pub fn kept_by_a_copy(view: &View) -> View {
    let change = |row: &Row| Row {
        links: if row.kind == FileKind::Dir {
            0
        } else {
            row.links
        },
        size: if row.kind == FileKind::Dir {
            0
        } else {
            row.size
        },
        sectors: 0,
        times: [Time::EPOCH, Time::from_secs(row.times[1].secs), Time::EPOCH],
        ino: 0,
        ..row.clone()
    };
    let rows = view
        .iter()
        .filter(|(name, _)| name.as_slice() != b"/lost+found");
    rows.map(|(name, row)| (name.clone(), change(row)))
        .collect()
}
