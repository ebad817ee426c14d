//! An entry, as a driver describes it.

use super::nodes::whole_blocks;
use crate::attr;
use volary_core::{Attr, FileKind, NodeId, Time};

/// An entry: its kind, its attributes and its content. `F` is the driver's key to a file's bytes.
///
/// By default a file has the mode `rw-r--r--`, a directory `rwxr-xr-x`, and the attaching user owns
/// them.
#[derive(Clone, Debug)]
pub struct Item<F> {
    pub(super) kind: FileKind,
    pub(super) size: u64,
    pub(super) content: Content<F>,
    mode: Option<u32>,
    owner: Option<Owner>,
    rdev: u64,
    pub(super) modified: Time,
    accessed: Option<Time>,
    born: Option<Time>,
    pub(super) xattrs: Vec<Xattr>,
}

/// An extended attribute: its name and its value.
type Xattr = (Box<[u8]>, Box<[u8]>);

/// A user and a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub(super) enum Content<F> {
    None,
    File(F),
    Target(Box<[u8]>),
}

impl<F> Item<F> {
    /// Returns a file of `size` bytes. `file` is the driver's key to them.
    pub fn file(size: u64, file: F) -> Self {
        Self::new(FileKind::File, size, Content::File(file))
    }

    /// Returns a directory.
    pub fn dir() -> Self {
        Self::new(FileKind::Dir, 0, Content::None)
    }

    /// Returns a symlink to `target`.
    pub fn symlink(target: impl Into<Box<[u8]>>) -> Self {
        let target = target.into();
        Self::new(
            FileKind::Symlink,
            target.len() as u64,
            Content::Target(target),
        )
    }

    /// Returns a fifo, a socket, or a device. `rdev` has the major number in its upper half, the
    /// minor in the lower.
    pub fn special(kind: FileKind, rdev: u64) -> Self {
        Self {
            rdev,
            ..Self::new(kind, 0, Content::None)
        }
    }

    fn new(kind: FileKind, size: u64, content: Content<F>) -> Self {
        Self {
            kind,
            size,
            content,
            mode: None,
            owner: None,
            rdev: 0,
            modified: Time::EPOCH,
            accessed: None,
            born: None,
            xattrs: Vec::new(),
        }
    }

    /// Sets the permission bits: 12 bits, others are ignored.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode & 0o7777);
        self
    }

    /// Sets the owner and group.
    #[must_use]
    pub fn owner(mut self, uid: u32, gid: u32) -> Self {
        self.owner = Some(Owner { uid, gid });
        self
    }

    /// Sets the time of last change.
    #[must_use]
    pub fn modified(mut self, time: Time) -> Self {
        self.modified = time;
        self
    }

    /// Sets the time of last access. The default is the time of last change.
    #[must_use]
    pub fn accessed(mut self, time: Time) -> Self {
        self.accessed = Some(time);
        self
    }

    /// Sets the time of birth.
    #[must_use]
    pub fn born(mut self, time: Time) -> Self {
        self.born = Some(time);
        self
    }

    /// Adds an extended attribute: `user.comment`. The last of a name counts.
    #[must_use]
    pub fn xattr(mut self, name: impl Into<Box<[u8]>>, value: impl Into<Box<[u8]>>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.xattrs.retain(|(other, _)| *other != name);
        self.xattrs.push((name, value));
        self
    }

    /// Returns whether the entry is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind == FileKind::Dir
    }

    /// Returns the attributes as those of node `node`. `owner` owns it if the item names no owner.
    pub(super) fn attr(&self, node: NodeId, owner: Owner, nlink: u32) -> Attr {
        let base = match self.kind {
            FileKind::File => attr::file(node, self.size),
            FileKind::Dir => attr::dir(node),
            FileKind::Symlink => attr::symlink(node, self.size),
            kind => attr::special(node, kind, self.rdev),
        };
        let Owner { uid, gid } = self.owner.unwrap_or(owner);
        Attr {
            mode: self.mode.unwrap_or(base.mode),
            uid,
            gid,
            nlink,
            mtime: self.modified,
            ctime: self.modified,
            atime: self.accessed.unwrap_or(self.modified),
            btime: self.born,
            change: (self.modified.secs as u64)
                .wrapping_mul(1_000_000_000)
                .wrapping_add(self.modified.nanos.into()),
            ..base
        }
    }

    /// Returns how much space its content takes on a volume that does not pack it, in bytes.
    pub(super) fn room(&self) -> u64 {
        match self.kind {
            FileKind::File => whole_blocks(self.size),
            _ => 0,
        }
    }

    /// Returns the approximate size of its heap memory, in bytes.
    pub(super) fn heap(&self) -> u64 {
        let target = match &self.content {
            Content::Target(target) => target.len(),
            _ => 0,
        };
        let xattrs = self.xattrs.iter();
        let xattrs: usize = xattrs
            .map(|(name, value)| name.len() + value.len() + 64)
            .sum();
        (target + xattrs) as u64
    }
}
