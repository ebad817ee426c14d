//! Manifests taken from a directory of the host, a tar or a volume.

use super::{Content, Manifest, Node, as_root, join, split};
use crate::tree::entries;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use volary_core::{Attr, Ctx, FileKind, Fs, Mode, Name, NodeId, Time, escape};

/// The total size of files that a manifest of a volume holds in full. Of the files beyond it, only
/// some parts are held.
const BYTES_MAX: u64 = 64 << 20;
/// The size of such a part, in bytes.
const PART: u64 = 64 << 10;
/// Once a manifest of a volume has more entries than this, further directories are not listed.
const ENTRIES_MAX: usize = 20_000;

impl Manifest {
    /// Makes a manifest of a directory of the host, without following symlinks. The content of
    /// files is read when it is needed.
    ///
    /// # Errors
    /// Errors of the host.
    pub fn of_dir(dir: &Path) -> io::Result<Self> {
        let mut manifest = Self::default();
        let mut known = HashMap::new();
        let mut todo = vec![Vec::new()];
        while let Some(at) = todo.pop() {
            for entry in fs::read_dir(dir.join(std::ffi::OsStr::from_bytes(&at)))? {
                let entry = entry?;
                let path = join(&at, entry.file_name().as_bytes());
                let stat = fs::symlink_metadata(entry.path())?;
                let inode = (stat.dev(), stat.ino());
                if stat.is_dir() {
                    todo.push(path.clone());
                } else if let Some(&number) = known.get(&inode) {
                    manifest.link(&path, number);
                    continue;
                }
                let node = of_host(&entry.path(), &stat)?;
                known.insert(inode, manifest.add(&path, node));
            }
        }
        Ok(manifest)
    }

    /// Makes a manifest of a tar. The content of files is read when it is needed.
    ///
    /// # Errors
    /// If the tar cannot be read or is invalid.
    pub fn of_tar(file: &Path) -> io::Result<Self> {
        let mut manifest = Self::default();
        manifest.keeps.times = Some(1_000_000_000);
        let mut archive = tar::Archive::new(File::open(file)?);
        for entry in archive.entries()? {
            let entry = entry?;
            let path = plain_path(&entry.path_bytes());
            if path.is_empty() {
                continue;
            }
            manifest.add_dirs_of(&path);
            if entry.header().entry_type().is_hard_link() {
                let target = entry.link_name_bytes().map(|name| plain_path(&name));
                let number = target.and_then(|target| manifest.find(&target));
                let number =
                    number.ok_or_else(|| io::Error::other("a link to what is not there"))?;
                manifest.link(&path, number);
            } else if let Some(node) = of_entry(file, &entry)? {
                match manifest.find(&path) {
                    Some(number) => manifest.nodes[number] = node,
                    None => drop(manifest.add(&path, node)),
                }
            }
        }
        Ok(manifest)
    }

    /// Adds the directories of `path` that have no entry of their own in the tar.
    fn add_dirs_of(&mut self, path: &[u8]) {
        let (dir, _) = split(path);
        if self.find(dir).is_none() {
            self.add_dirs_of(dir);
            let mut node = Node::new(FileKind::Dir);
            node.stated = false;
            self.add(dir, node);
        }
    }

    /// Makes a manifest of a volume, read in the simplest way: it lists each directory, looks up
    /// each name, and reads files in order. Of large files, it reads only some parts.
    ///
    /// # Errors
    /// A description of the first error, with its path.
    pub fn of_volume(fs: &Fs) -> Result<Self, String> {
        as_root(|cx| {
            let mut taking = Taking {
                manifest: Self::default(),
                known: HashMap::new(),
                bytes: BYTES_MAX,
            };
            let root = fs
                .getattr(cx, fs.root())
                .map_err(|e| format!("the root: {e}"))?;
            taking.manifest.nodes[0] = of_attr(&root);
            let mut todo = vec![(Vec::new(), fs.root(), 0)];
            while let Some((path, dir, number)) = todo.pop() {
                if taking.manifest.paths.len() > ENTRIES_MAX {
                    taking.manifest.nodes[number].listed = false;
                    continue;
                }
                let tell = |e| format!("'{}': {e}", escape(&path));
                for (name, _, _) in entries(fs, cx, dir).map_err(tell)? {
                    let below = join(&path, &name);
                    let tell = |e| format!("'{}': {e}", escape(&below));
                    if let Some(dir) = taking.take(fs, cx, dir, &name, &below).map_err(tell)? {
                        todo.push((below, dir.0, dir.1));
                    }
                }
            }
            Ok(taking.manifest)
        })
    }
}

/// A manifest of a volume, while it is being made.
struct Taking {
    manifest: Manifest,
    known: HashMap<NodeId, usize>,
    bytes: u64,
}

impl Taking {
    /// Adds an entry. For a directory, returns its node and its number, so that it is listed next.
    fn take(
        &mut self,
        fs: &Fs,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: &[u8],
        path: &[u8],
    ) -> volary_core::Result<Option<(NodeId, usize)>> {
        let entry = fs.lookup(cx, dir, Name::new(name)?)?;
        let is_dir = entry.attr.kind == FileKind::Dir;
        if let Some(&number) = self.known.get(&entry.node).filter(|_| !is_dir) {
            self.manifest.link(path, number);
            return Ok(None);
        }
        let mut node = of_attr(&entry.attr);
        match node.kind {
            FileKind::File => node.content = self.content(fs, cx, &entry.attr)?,
            FileKind::Symlink => node.target = fs.readlink(cx, entry.node)?,
            _ => {}
        }
        if fs.caps().has(volary_core::Caps::XATTRS) {
            let mut xattrs = BTreeMap::new();
            for name in fs.listxattr(cx, entry.node)? {
                let value = fs.getxattr(cx, entry.node, &name)?;
                xattrs.insert(name, value);
            }
            node.xattrs = Some(xattrs);
        }
        let number = self.manifest.add(path, node);
        self.known.insert(entry.node, number);
        Ok(is_dir.then_some((entry.node, number)))
    }

    fn content(&mut self, fs: &Fs, cx: &Ctx<'_>, attr: &Attr) -> volary_core::Result<Content> {
        let open = fs.open(cx, attr.node, Mode::Read)?;
        let read = |from: u64, to: u64| {
            let mut bytes = Vec::new();
            while from + (bytes.len() as u64) < to {
                let at = from + bytes.len() as u64;
                let mut buf = vec![0; usize::try_from((to - at).min(PART)).unwrap_or(0)];
                let n = fs.read(cx, open, at, &mut buf)?;
                if n == 0 {
                    break;
                }
                bytes.extend_from_slice(&buf[..n.min(buf.len())]);
            }
            Ok::<_, volary_core::Error>(bytes)
        };
        let len = attr.size;
        let content = if len <= self.bytes {
            self.bytes -= len;
            Content::Bytes(read(0, len)?.into())
        } else {
            let places = [
                0,
                (len / 2).saturating_sub(PART / 2),
                len.saturating_sub(PART),
            ];
            let parts = places
                .into_iter()
                .map(|at| Ok((at, read(at, (at + PART).min(len))?)));
            Content::Parts {
                len,
                parts: parts.collect::<volary_core::Result<_>>()?,
            }
        };
        fs.close(cx, open)?;
        Ok(content)
    }
}

fn of_attr(attr: &Attr) -> Node {
    Node {
        mode: attr.mode,
        uid: attr.uid,
        gid: attr.gid,
        mtime: attr.mtime,
        rdev: attr.rdev,
        ..Node::new(attr.kind)
    }
}

fn of_host(path: &Path, stat: &Metadata) -> io::Result<Node> {
    let kind = stat.file_type();
    let is_device = kind.is_block_device() || kind.is_char_device();
    let (major, minor) = (
        rustix::fs::major(stat.rdev()),
        rustix::fs::minor(stat.rdev()),
    );
    let node = Node {
        mode: stat.mode() & 0o7777,
        uid: stat.uid(),
        gid: stat.gid(),
        mtime: Time::new(stat.mtime(), u32::try_from(stat.mtime_nsec()).unwrap_or(0)),
        rdev: if is_device {
            u64::from(major) << 32 | u64::from(minor)
        } else {
            0
        },
        ..Node::new(FileKind::from_mode(stat.mode()).ok_or_else(|| io::Error::other("of no kind"))?)
    };
    Ok(match node.kind {
        FileKind::File => Node {
            content: Content::Host {
                file: path.to_owned(),
                at: 0,
                len: stat.len(),
            },
            ..node
        },
        FileKind::Symlink => Node {
            target: fs::read_link(path)?.as_os_str().as_bytes().to_vec(),
            ..node
        },
        _ => node,
    })
}

/// Converts an entry of a tar to a node, or returns `None` if it represents none.
fn of_entry<R: io::Read>(file: &Path, entry: &tar::Entry<'_, R>) -> io::Result<Option<Node>> {
    use tar::EntryType;
    let header = entry.header();
    let kind = match header.entry_type() {
        EntryType::Regular | EntryType::Continuous => FileKind::File,
        EntryType::Directory => FileKind::Dir,
        EntryType::Symlink => FileKind::Symlink,
        EntryType::Fifo => FileKind::Fifo,
        EntryType::Char => FileKind::CharDevice,
        EntryType::Block => FileKind::BlockDevice,
        _ => return Ok(None),
    };
    let number = |n: io::Result<u64>| n.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let (major, minor) = match kind {
        FileKind::CharDevice | FileKind::BlockDevice => (
            header.device_major()?.unwrap_or(0),
            header.device_minor()?.unwrap_or(0),
        ),
        _ => (0, 0),
    };
    let secs = i64::try_from(header.mtime()?).unwrap_or(i64::MAX);
    Ok(Some(Node {
        mode: header.mode()? & 0o7777,
        uid: number(header.uid())?,
        gid: number(header.gid())?,
        mtime: Time::from_secs(secs),
        rdev: u64::from(major) << 32 | u64::from(minor),
        content: match kind {
            FileKind::File => Content::Host {
                file: file.to_owned(),
                at: entry.raw_file_position(),
                len: entry.size(),
            },
            _ => Content::default(),
        },
        target: entry
            .link_name_bytes()
            .filter(|_| kind == FileKind::Symlink)
            .map_or(Vec::new(), |t| t.to_vec()),
        ..Node::new(kind)
    }))
}

/// Returns a path of a tar without `./` and without leading, trailing and double slashes.
fn plain_path(path: &[u8]) -> Vec<u8> {
    let names = path.split(|&b| b == b'/');
    let names: Vec<_> = names.filter(|n| !n.is_empty() && *n != b".").collect();
    names.join(&b'/')
}
