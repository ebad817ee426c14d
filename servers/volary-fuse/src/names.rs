//! Requests about names: look up, make, link, remove, rename.

use crate::kernel;
use crate::server::Server;
use fuser::{INodeNo, RenameFlags as Flags, Request};
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use volary_core::{Create, Entry, FileKind, Kind, Mode, OpenId, RenameFlags, Result, SetAttr};

/// What a node is to be made as, out of a request.
pub(crate) struct Making<'a> {
    pub(crate) parent: INodeNo,
    pub(crate) name: &'a OsStr,
    pub(crate) mode: u32,
    pub(crate) umask: u32,
}

impl Server {
    pub(crate) fn find(&self, req: &Request, parent: INodeNo, name: &OsStr) -> Result<Entry> {
        let dir = self.node(parent)?;
        let entry = self.session(req).lookup(dir, name.as_bytes())?;
        Ok(entry)
    }

    /// Makes or opens a file, as `open(2)`'s flags say.
    pub(crate) fn make_file(
        &self,
        req: &Request,
        making: &Making<'_>,
        flags: i32,
    ) -> Result<(Entry, OpenId)> {
        let dir = self.node(making.parent)?;
        let session = self.session(req);
        let mode = kernel::mode(flags, self.wishes.write_back);
        let set = kernel::new_mode(making.mode, making.umask);
        let name = making.name.as_bytes();
        self.note_change();
        let how = kernel::create_how(flags);
        // Only Linux cuts a file that it opens for reading.
        if how != Create::Truncate || mode != Mode::Read {
            return session.create(dir, name, how, mode, &set);
        }
        let (mut entry, open) = session.create(dir, name, Create::Open, mode, &set)?;
        entry.attr = session
            .setattr(entry.node, &SetAttr::size(0))
            .inspect_err(|_| {
                let _ = session.close(open);
            })?;
        Ok((entry, open))
    }

    pub(crate) fn make_dir(&self, req: &Request, making: &Making<'_>) -> Result<Entry> {
        let dir = self.node(making.parent)?;
        let set = kernel::new_mode(making.mode, making.umask);
        self.note_change();
        self.session(req).mkdir(dir, making.name.as_bytes(), &set)
    }

    /// Makes a node of the kind that `making.mode` says.
    pub(crate) fn make_node(&self, req: &Request, making: &Making<'_>, rdev: u32) -> Result<Entry> {
        let dir = self.node(making.parent)?;
        // Nothing but permission bits means a file: POSIX.
        let kind = match FileKind::from_mode(making.mode) {
            Some(kind) => kind,
            None if making.mode & 0o170_000 == 0 => FileKind::File,
            None => return Err(Kind::Invalid.into()),
        };
        let rdev = match kind {
            FileKind::CharDevice | FileKind::BlockDevice => kernel::unpacked_rdev(rdev),
            _ => 0,
        };
        let set = kernel::new_mode(making.mode, making.umask);
        self.note_change();
        self.session(req)
            .mknod(dir, making.name.as_bytes(), kind, rdev, &set)
    }

    pub(crate) fn make_symlink(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &[u8],
    ) -> Result<Entry> {
        let dir = self.node(parent)?;
        self.note_change();
        self.session(req)
            .symlink(dir, name.as_bytes(), target, &SetAttr::mode(0o777))
    }

    pub(crate) fn make_link(
        &self,
        req: &Request,
        node: INodeNo,
        parent: INodeNo,
        name: &OsStr,
    ) -> Result<Entry> {
        let (node, dir) = (self.node(node)?, self.node(parent)?);
        self.note_change();
        self.session(req).link(node, dir, name.as_bytes())
    }

    pub(crate) fn remove_name(&self, req: &Request, parent: INodeNo, name: &OsStr) -> Result<()> {
        let dir = self.node(parent)?;
        self.note_change();
        self.session(req).unlink(dir, name.as_bytes())
    }

    pub(crate) fn remove_dir(&self, req: &Request, parent: INodeNo, name: &OsStr) -> Result<()> {
        let dir = self.node(parent)?;
        self.note_change();
        self.session(req).rmdir(dir, name.as_bytes())
    }

    pub(crate) fn move_name(
        &self,
        req: &Request,
        from: (INodeNo, &OsStr),
        to: (INodeNo, &OsStr),
        flags: Flags,
    ) -> Result<()> {
        let how = if flags.is_empty() {
            RenameFlags::REPLACE
        } else if flags == Flags::RENAME_NOREPLACE {
            RenameFlags::KEEP
        } else if flags == Flags::RENAME_EXCHANGE {
            RenameFlags::SWAP
        } else {
            return Err(Kind::Invalid.into());
        };
        let (from_dir, to_dir) = (self.node(from.0)?, self.node(to.0)?);
        let (name, new_name) = (from.1.as_bytes(), to.1.as_bytes());
        self.note_change();
        self.session(req)
            .rename(from_dir, name, to_dir, new_name, how)
    }
}

/// Whether an open cuts the file, which an open for reading does by itself.
pub(crate) fn cuts(flags: i32) -> bool {
    kernel::has_flag(flags, OFlags::TRUNC)
}
