//! Attributes: read and set.

use crate::held::attachment::Attachment;
use crate::held::nodes::Nodes;
use crate::kernel::error::{from_errno, from_errno_on_node};
use crate::kernel::proc::path_of;
use crate::reach::tree::Tree;
use rustix::fd::AsFd;
use rustix::fs::{
    AtFlags, Gid, Mode as HostMode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
};
use std::sync::Arc;
use volary_core::{Attr, FileKind, Kind, NodeId, Result, SetAttr, SetTime};

const SET_IDS: u32 = 0o6000;

/// The attributes of nodes.
pub(crate) struct Attrs {
    attachment: Arc<Attachment>,
    nodes: Arc<Nodes>,
    tree: Arc<Tree>,
    /// Whether set-uid and set-gid bits of files can be set.
    set_ids: bool,
}

impl Attrs {
    pub(crate) fn new(
        attachment: Arc<Attachment>,
        nodes: Arc<Nodes>,
        tree: Arc<Tree>,
        set_ids: bool,
    ) -> Self {
        Self {
            attachment,
            nodes,
            tree,
            set_ids,
        }
    }

    /// See [`getattr`](volary_core::FileSystem::getattr).
    pub(crate) fn get(&self, node: NodeId) -> Result<Attr> {
        let (_, fd) = self.tree.node(node)?;
        self.tree.attr_by(node, &fd)
    }

    /// See [`setattr`](volary_core::FileSystem::setattr).
    pub(crate) fn change(&self, node: NodeId, set: &SetAttr) -> Result<Attr> {
        self.attachment.check_writable()?;
        let (kind, fd) = self.tree.node(node)?;
        let old = self.tree.attr_by(node, &fd)?;
        let set = &self.allowed(kind, set);
        self.check_change(kind, set)?;
        if let Some(size) = set.size {
            self.resize(node, &fd, size)?;
        }
        self.set_others(&fd, &old, set)?;
        self.tree.attr_by(node, &fd)
    }

    /// Removes the bits that may not be set: see
    /// [`HostOptions::set_ids`](crate::HostOptions::set_ids).
    pub(crate) fn allowed(&self, kind: FileKind, set: &SetAttr) -> SetAttr {
        let keeps = self.set_ids || kind == FileKind::Dir;
        let mode = set.mode.map(|mode| match keeps {
            true => mode,
            false => mode & !SET_IDS,
        });
        SetAttr { mode, ..*set }
    }

    fn check_change(&self, kind: FileKind, set: &SetAttr) -> Result<()> {
        if let Some(size) = set.size {
            self.attachment.check_size(size)?;
        }
        match (set.size, kind) {
            (Some(_), FileKind::Dir) => return Err(Kind::IsDir.into()),
            (None, _) | (_, FileKind::File) => {}
            (Some(_), _) => return Err(Kind::Invalid.into()),
        }
        if set.dos.is_some() || set.btime.is_some() {
            return Err(Kind::Unsupported.into());
        }
        Ok(())
    }

    /// Truncates or extends a file, by an open for writing if there is one. Such an open permits
    /// this whatever the file's mode is now.
    fn resize(&self, node: NodeId, fd: impl AsFd, size: u64) -> Result<()> {
        if let Some(open) = self.nodes.open_to_write(node) {
            return rustix::fs::ftruncate(&open.fd, size).map_err(from_errno);
        }
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(path_of(fd), flags, HostMode::empty());
        rustix::fs::ftruncate(file.map_err(from_errno_on_node)?, size).map_err(from_errno)
    }

    /// Sets all of `set` but the size. The owner comes first, because changing it may clear bits of
    /// the mode. Then come the mode and the times.
    ///
    /// # Errors
    /// Those of the host.
    pub(crate) fn set_others(&self, fd: impl AsFd, old: &Attr, set: &SetAttr) -> Result<()> {
        let mut mode = set.mode;
        if set.uid.is_some() || set.gid.is_some() {
            let (uid, gid) = (set.uid.map(Uid::from_raw), set.gid.map(Gid::from_raw));
            rustix::fs::chownat(&fd, "", uid, gid, AtFlags::EMPTY_PATH).map_err(from_errno)?;
            if old.mode & SET_IDS != 0 {
                let kept = SetAttr {
                    mode: mode.or(Some(old.mode)),
                    ..SetAttr::default()
                };
                mode = self.allowed(old.kind, &kept).mode;
            }
        }
        if let Some(mode) = mode.filter(|_| old.kind != FileKind::Symlink) {
            let mode = HostMode::from_raw_mode(mode & 0o7777);
            rustix::fs::chmod(path_of(&fd), mode).map_err(from_errno_on_node)?;
        }
        if set.atime.is_some() || set.mtime.is_some() {
            let times = Timestamps {
                last_access: spec(set.atime),
                last_modification: spec(set.mtime),
            };
            rustix::fs::utimensat(&fd, "", &times, AtFlags::EMPTY_PATH).map_err(from_errno)?;
        }
        Ok(())
    }

    /// Returns the target of a symlink.
    ///
    /// # Errors
    /// `Invalid` if it is not a symlink.
    pub(crate) fn target(&self, node: NodeId) -> Result<Vec<u8>> {
        let (kind, fd) = self.tree.node(node)?;
        if kind != FileKind::Symlink {
            return Err(Kind::Invalid.into());
        }
        let target = rustix::fs::readlinkat(&fd, "", Vec::new()).map_err(from_errno_on_node)?;
        Ok(target.into_bytes())
    }
}

fn spec(time: Option<SetTime>) -> Timespec {
    let (tv_sec, tv_nsec) = match time {
        None => (0, UTIME_OMIT),
        Some(SetTime::Now) => (0, UTIME_NOW),
        Some(SetTime::To(t)) => (t.secs, t.nanos.into()),
    };
    Timespec { tv_sec, tv_nsec }
}
