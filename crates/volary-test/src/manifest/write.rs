//! Writing the content of a manifest: as a directory, as a tar, or into a volume.

use super::{Content, Manifest, Node, as_root, split};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode as HostMode, Timespec, Timestamps, mknodat, utimensat,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use volary_core::{Caps, Create, Ctx, FileKind, Fs, Name, NodeId, OpenId, SetAttr, SetTime};

/// The size of one write, in bytes.
const PART: usize = 1 << 20;

impl Manifest {
    /// Creates all nodes in an empty directory of the host. This needs root to set owners, unless
    /// they are [removed](super::Lack::Owners) from the manifest.
    ///
    /// # Errors
    /// Errors of the host.
    pub fn write_dir(&self, dir: &Path) -> io::Result<()> {
        let mut first = HashMap::new();
        for (path, number) in self.iter().filter(|(path, _)| !path.is_empty()) {
            let at = dir.join(OsStr::from_bytes(path));
            match first.get(&number) {
                Some(known) => fs::hard_link(known, &at)?,
                None => make_on_host(&at, self.node(number))?,
            }
            first.entry(number).or_insert(at);
        }
        // Adding entries changes a directory's times, so attributes are set from the deepest path
        // up.
        for (path, number) in self.iter().collect::<Vec<_>>().into_iter().rev() {
            if !path.is_empty() {
                self.dress_on_host(&dir.join(OsStr::from_bytes(path)), self.node(number))?;
            }
        }
        Ok(())
    }

    fn dress_on_host(&self, at: &Path, node: &Node) -> io::Result<()> {
        if self.keeps.owners {
            lchown(at, Some(node.uid), Some(node.gid))?;
        }
        if self.keeps.modes && node.kind != FileKind::Symlink {
            fs::set_permissions(at, fs::Permissions::from_mode(node.mode))?;
        }
        let time = Timespec {
            tv_sec: node.mtime.secs,
            tv_nsec: node.mtime.nanos.into(),
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        utimensat(CWD, at, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }

    /// Writes all nodes as a tar, in the order of their paths.
    ///
    /// # Errors
    /// Errors of `to`, and an error if not all bytes of a file are known.
    pub fn write_tar(&self, to: impl Write) -> io::Result<()> {
        let mut tar = tar::Builder::new(to);
        let mut first = HashMap::new();
        for (path, number) in self.iter().filter(|(path, _)| !path.is_empty()) {
            let (node, at) = (self.node(number), PathBuf::from(OsStr::from_bytes(path)));
            let mut header = header(node);
            if let Some(known) = first.get(&number) {
                header.set_entry_type(tar::EntryType::Link);
                header.set_size(0);
                tar.append_link(&mut header, &at, known)?;
            } else if node.kind == FileKind::Symlink && node.target.len() <= 100 {
                header.set_link_name_literal(&node.target)?;
                tar.append_data(&mut header, &at, io::empty())?;
            } else if node.kind == FileKind::Symlink {
                tar.append_link(&mut header, &at, OsStr::from_bytes(&node.target))?;
            } else {
                tar.append_data(&mut header, &at, Reader { node, at: 0 })?;
            }
            first.entry(number).or_insert(at);
        }
        tar.into_inner()?.flush()
    }

    /// Creates all nodes in an empty volume that allows changes.
    ///
    /// # Errors
    /// A description of the first error, with its path.
    pub fn fill(&self, fs: &Fs) -> Result<(), String> {
        as_root(|cx| {
            let mut nodes: HashMap<usize, NodeId> = HashMap::from([(0, fs.root())]);
            for (path, number) in self.iter().filter(|(path, _)| !path.is_empty()) {
                let (dir, name) = split(path);
                let dir = self.find(dir).and_then(|dir| nodes.get(&dir).copied());
                let dir = dir.ok_or("a path without its directory")?;
                let made = match nodes.get(&number) {
                    Some(&node) => Name::new(name)
                        .map_err(Into::into)
                        .and_then(|name| fs.link(cx, node, dir, name).map(|entry| entry.node)),
                    None => self.make_in(fs, cx, dir, name, number),
                };
                let made = made.map_err(|e| format!("'{}': {e}", volary_core::escape(path)))?;
                nodes.insert(number, made);
            }
            for (path, number) in self.iter().collect::<Vec<_>>().into_iter().rev() {
                let set = SetAttr {
                    mtime: self
                        .keeps
                        .times
                        .map(|_| SetTime::To(self.node(number).mtime)),
                    ..SetAttr::default()
                };
                if !path.is_empty() && set.mtime.is_some() {
                    let set = fs.setattr(cx, nodes[&number], &set);
                    set.map_err(|e| format!("'{}': {e}", volary_core::escape(path)))?;
                }
            }
            fs.sync(cx).map_err(|e| e.to_string())
        })
    }

    fn make_in(
        &self,
        fs: &Fs,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: &[u8],
        number: usize,
    ) -> volary_core::Result<NodeId> {
        let (node, name) = (self.node(number), Name::new(name)?);
        let set = SetAttr {
            mode: self.keeps.modes.then_some(node.mode),
            uid: self.keeps.owners.then_some(node.uid),
            gid: self.keeps.owners.then_some(node.gid),
            ..SetAttr::default()
        };
        Ok(match node.kind {
            FileKind::Dir => fs.mkdir(cx, dir, name, &set)?.node,
            FileKind::Symlink => fs.symlink(cx, dir, name, &node.target, &set)?.node,
            FileKind::File => {
                let (entry, open) = fs.create(cx, dir, name, Create::New, &set)?;
                match &node.content {
                    Content::Sparse { len, parts } if fs.caps().has(Caps::HOLES) => {
                        fs.setattr(cx, entry.node, &SetAttr::size(*len))?;
                        for (at, bytes) in parts {
                            fs.write(cx, open, Some(*at), bytes)?;
                        }
                    }
                    content => write_all(fs, cx, open, content)?,
                }
                fs.close(cx, open)?;
                entry.node
            }
            kind => fs.mknod(cx, dir, name, kind, node.rdev, &set)?.node,
        })
    }
}

fn write_all(fs: &Fs, cx: &Ctx<'_>, open: OpenId, content: &Content) -> volary_core::Result<()> {
    let mut at = 0;
    while let Some(part) = content.read(at, PART).filter(|part| !part.is_empty()) {
        at = fs.write(cx, open, Some(at), &part)?;
    }
    Ok(())
}

fn make_on_host(at: &Path, node: &Node) -> io::Result<()> {
    let special = |kind| {
        let (major, minor) = (node.rdev >> 32, node.rdev & u64::from(u32::MAX));
        let dev = rustix::fs::makedev(major as u32, minor as u32);
        mknodat(CWD, at, kind, HostMode::from_raw_mode(0o600), dev).map_err(Into::into)
    };
    match node.kind {
        FileKind::Dir => fs::create_dir(at),
        FileKind::Symlink => symlink(OsStr::from_bytes(&node.target), at),
        FileKind::File => {
            let mut file = fs::File::create_new(at)?;
            match &node.content {
                Content::Sparse { len, parts } => {
                    file.set_len(*len)?;
                    let mut parts = parts.iter();
                    parts.try_for_each(|(at, bytes)| file.write_all_at(bytes, *at))
                }
                _ => io::copy(&mut Reader { node, at: 0 }, &mut file).map(drop),
            }
        }
        FileKind::Fifo => special(FileType::Fifo),
        FileKind::Socket => special(FileType::Socket),
        FileKind::CharDevice => special(FileType::CharacterDevice),
        FileKind::BlockDevice => special(FileType::BlockDevice),
    }
}

fn header(node: &Node) -> tar::Header {
    use tar::EntryType;
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(match node.kind {
        FileKind::Dir => EntryType::Directory,
        FileKind::Symlink => EntryType::Symlink,
        FileKind::Fifo => EntryType::Fifo,
        FileKind::CharDevice => EntryType::Char,
        FileKind::BlockDevice => EntryType::Block,
        FileKind::File | FileKind::Socket => EntryType::Regular,
    });
    header.set_mode(node.mode);
    header.set_uid(node.uid.into());
    header.set_gid(node.gid.into());
    header.set_mtime(u64::try_from(node.mtime.secs).unwrap_or(0));
    header.set_size(node.content.len());
    header
}

/// The bytes of a file, in order.
struct Reader<'a> {
    node: &'a Node,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let part = self.node.content.read(self.at, buf.len());
        let part = part.ok_or_else(|| io::Error::other("not all bytes are known"))?;
        buf[..part.len()].copy_from_slice(&part);
        self.at += part.len() as u64;
        Ok(part.len())
    }
}
