//! Requests about names: looking up, creating, linking, removing and renaming.

use crate::kernel::types;
use crate::requests::caller::Caller;
use crate::requests::server::Server;
use fuser::{INodeNo, RenameFlags as Flags};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use volary_core::{
    Create, Entry, FileKind, Kind, Mode, NodeId, OpenId, RenameFlags, Result, SetAttr,
};
use volary_session::{OpenHow, Rights, Share};

/// An entry that a request names.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) parent: INodeNo,
    pub(crate) name: &'a OsStr,
}

/// The new node that a request asks for.
pub(crate) struct Making<'a> {
    pub(crate) parent: INodeNo,
    pub(crate) name: &'a OsStr,
    pub(crate) mode: u32,
    pub(crate) umask: u32,
}

impl Server {
    pub(crate) fn find(&self, req: &Caller, parent: INodeNo, name: &OsStr) -> Result<Entry> {
        let dir = self.node(parent)?;
        let entry = self.sessions.of(req).lookup(dir, name.as_bytes())?;
        Ok(entry)
    }

    /// Creates or opens a file by the flags of `open(2)`.
    pub(crate) fn make_file(
        &self,
        req: &Caller,
        making: &Making<'_>,
        flags: i32,
    ) -> Result<(Entry, OpenId)> {
        let dir = self.node(making.parent)?;
        let session = self.sessions.of(req).with_umask(making.umask);
        let mode = types::mode(flags, self.told.wishes.write_back);
        let set = types::new_mode(making.mode);
        let name = making.name.as_bytes();
        let how = types::create_how(flags);
        // Only Linux truncates a file that it opens for reading.
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

    pub(crate) fn make_dir(&self, req: &Caller, making: &Making<'_>) -> Result<Entry> {
        let dir = self.node(making.parent)?;
        let set = types::new_mode(making.mode);
        let session = self.sessions.of(req).with_umask(making.umask);
        session.mkdir(dir, making.name.as_bytes(), &set)
    }

    /// Creates a node of the kind in `making.mode`.
    pub(crate) fn make_node(&self, req: &Caller, making: &Making<'_>, rdev: u32) -> Result<Entry> {
        let dir = self.node(making.parent)?;
        // A mode without a kind means a file, by POSIX.
        let kind = match FileKind::from_mode(making.mode) {
            Some(kind) => kind,
            None if making.mode & 0o170_000 == 0 => FileKind::File,
            None => return Err(Kind::Invalid.into()),
        };
        let rdev = match kind {
            FileKind::CharDevice | FileKind::BlockDevice => types::unpacked_rdev(rdev),
            _ => 0,
        };
        let set = types::new_mode(making.mode);
        self.sessions.of(req).with_umask(making.umask).mknod(
            dir,
            making.name.as_bytes(),
            kind,
            rdev,
            &set,
        )
    }

    pub(crate) fn make_symlink(
        &self,
        req: &Caller,
        parent: INodeNo,
        name: &OsStr,
        target: &[u8],
    ) -> Result<Entry> {
        let dir = self.node(parent)?;
        self.sessions
            .of(req)
            .symlink(dir, name.as_bytes(), target, &SetAttr::mode(0o777))
    }

    pub(crate) fn make_link(
        &self,
        req: &Caller,
        node: INodeNo,
        parent: INodeNo,
        name: &OsStr,
    ) -> Result<Entry> {
        let (node, dir) = (self.node(node)?, self.node(parent)?);
        self.sessions.of(req).link(node, dir, name.as_bytes())
    }

    pub(crate) fn remove_name(&self, req: &Caller, parent: INodeNo, name: &OsStr) -> Result<()> {
        let dir = self.node(parent)?;
        self.outliving(dir, name.as_bytes(), || {
            self.sessions.of(req).unlink(dir, name.as_bytes())
        })
    }

    pub(crate) fn remove_dir(&self, req: &Caller, parent: INodeNo, name: &OsStr) -> Result<()> {
        let dir = self.node(parent)?;
        self.sessions.of(req).rmdir(dir, name.as_bytes())
    }

    pub(crate) fn move_name(
        &self,
        req: &Caller,
        from: At<'_>,
        to: At<'_>,
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
        let (from_dir, to_dir) = (self.node(from.parent)?, self.node(to.parent)?);
        let (name, new_name) = (from.name.as_bytes(), to.name.as_bytes());
        let rename = || {
            let session = self.sessions.of(req);
            session.rename(from_dir, name, to_dir, new_name, how)
        };
        if how == RenameFlags::REPLACE {
            self.outliving(to_dir, new_name, rename)
        } else {
            rename()
        }
    }

    /// Removes a name by `remove`. The kernel may still use the node after its last name is gone,
    /// until it forgets it. So the node is kept open that long.
    fn outliving(
        &self,
        dir: NodeId,
        name: &[u8],
        remove: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let pin = self.open_to_outlive(dir, name);
        let removed = remove();
        if let Some((node, open)) = pin {
            let kept = removed.is_ok() && self.nodes.pin(node, open);
            if !kept {
                let _ = self.sessions.own().close(open);
            }
        }
        removed
    }

    /// Opens the file with this name, if it has no other name and the kernel knows it.
    fn open_to_outlive(&self, dir: NodeId, name: &[u8]) -> Option<(NodeId, OpenId)> {
        let own = self.sessions.own();
        let Entry { node, attr } = own.lookup(dir, name).ok()?;
        if attr.kind != FileKind::File || attr.nlink > 1 || !self.nodes.knows(node) {
            return None;
        }
        let nothing = Share {
            wants: Rights::NONE,
            allows: Rights::ALL,
        };
        let how = OpenHow::from(Mode::Read).with_share(nothing);
        let open = own.open_bare_seen(&attr, None, &how).ok()?;
        Some((node, open))
    }

    /// Notes that the kernel has dropped some lookups of a node.
    pub(crate) fn drop_lookups(&self, number: u64, lookups: u64) {
        if let Some(forgotten) = self.nodes.forget(number, lookups) {
            let own = self.sessions.own();
            if let Some(open) = forgotten.pin {
                let _ = own.close(open);
            }
            own.forget(forgotten.node, lookups);
        }
    }
}
