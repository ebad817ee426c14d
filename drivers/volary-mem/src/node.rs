//! Nodes of all kinds.

use crate::content::{Content, PAGE};
use crate::dir::Dir;
use std::collections::BTreeMap;
use volary_core::{Attr, FileKind, Kind, NodeId, Result, Time};

/// A node, with the content of its kind.
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) body: Body,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The number of names. A directory counts its own `.`, and the `..` of its subdirectories. At
    /// 0, the node lives until its last close.
    pub(crate) nlink: u32,
    pub(crate) opens: u32,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
    pub(crate) btime: Time,
    pub(crate) change: u64,
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The content of a node, by its kind.
pub(crate) enum Body {
    File(Content),
    Dir(Dir),
    Symlink(Vec<u8>),
    /// A fifo, socket or device.
    Special(FileKind, u64),
}

impl Node {
    pub(crate) fn kind(&self) -> FileKind {
        match &self.body {
            Body::File(_) => FileKind::File,
            Body::Dir(_) => FileKind::Dir,
            Body::Symlink(_) => FileKind::Symlink,
            Body::Special(kind, _) => *kind,
        }
    }

    /// Returns the content of a directory.
    ///
    /// # Errors
    /// `NotDir`.
    pub(crate) fn dir(&self) -> Result<&Dir> {
        match &self.body {
            Body::Dir(dir) => Ok(dir),
            _ => Err(Kind::NotDir.into()),
        }
    }

    /// Returns the content of a directory, for a change.
    ///
    /// # Errors
    /// `NotDir`.
    pub(crate) fn dir_mut(&mut self) -> Result<&mut Dir> {
        match &mut self.body {
            Body::Dir(dir) => Ok(dir),
            _ => Err(Kind::NotDir.into()),
        }
    }

    /// Returns the content of a file.
    ///
    /// # Errors
    /// `IsDir`; `Invalid` for other kinds.
    pub(crate) fn file(&self) -> Result<&Content> {
        match &self.body {
            Body::File(content) => Ok(content),
            Body::Dir(_) => Err(Kind::IsDir.into()),
            _ => Err(Kind::Invalid.into()),
        }
    }

    /// Returns the content of a file, for a change.
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub(crate) fn file_mut(&mut self) -> Result<&mut Content> {
        match &mut self.body {
            Body::File(content) => Ok(content),
            Body::Dir(_) => Err(Kind::IsDir.into()),
            _ => Err(Kind::Invalid.into()),
        }
    }

    /// Returns the room that its content takes, in bytes.
    fn allocated(&self, holes: bool) -> u64 {
        match &self.body {
            Body::File(content) => content.room(holes),
            Body::Symlink(target) => target.len() as u64,
            Body::Dir(_) | Body::Special(..) => 0,
        }
    }

    /// Returns the room that the node takes, in bytes, including extended attributes.
    pub(crate) fn room(&self, holes: bool) -> u64 {
        let body = self.allocated(holes);
        let xattrs: usize = self.xattrs.iter().map(|(k, v)| k.len() + v.len()).sum();
        body + xattrs as u64
    }

    pub(crate) fn attr(&self, holes: bool) -> Attr {
        let (size, rdev) = match &self.body {
            Body::File(content) => (content.size(), 0),
            Body::Symlink(target) => (target.len() as u64, 0),
            Body::Dir(_) => (0, 0),
            Body::Special(_, rdev) => (0, *rdev),
        };
        Attr {
            node: self.id,
            kind: self.kind(),
            mode: self.mode,
            nlink: self.nlink,
            uid: self.uid,
            gid: self.gid,
            rdev,
            size,
            allocated: self.allocated(holes),
            io_size: PAGE as u32,
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
            btime: Some(self.btime),
            change: self.change,
            dos: None,
        }
    }
}
