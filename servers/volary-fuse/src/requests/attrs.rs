//! Requests about attributes and extended attributes.

use crate::kernel::types;
use crate::requests::caller::Caller;
use crate::requests::server::Server;
use fuser::{AccessFlags, FileHandle, INodeNo, TimeOrNow};
use rustix::fs::XattrFlags;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use volary_core::{Access, Attr, Kind, OpenId, Result, SetAttr};
use volary_session::SetXattr;

/// The changes that a request asks for.
pub(crate) struct Changes {
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) atime: Option<TimeOrNow>,
    pub(crate) mtime: Option<TimeOrNow>,
}

impl Changes {
    fn set(&self) -> SetAttr {
        SetAttr {
            mode: self.mode.map(|mode| mode & 0o7777),
            uid: self.uid,
            gid: self.gid,
            size: self.size,
            atime: self.atime.map(types::set_time),
            mtime: self.mtime.map(types::set_time),
            ..SetAttr::default()
        }
    }
}

impl Server {
    pub(crate) fn attr_of(
        &self,
        req: &Caller,
        node: INodeNo,
        open: Option<FileHandle>,
    ) -> Result<Attr> {
        let session = self.sessions.of(req);
        match (self.node(node), open) {
            (Ok(node), _) => session.getattr(node),
            (Err(_), Some(open)) => session.getattr_open(OpenId(open.0)),
            (Err(e), None) => Err(e),
        }
    }

    pub(crate) fn change_attr(
        &self,
        req: &Caller,
        node: INodeNo,
        open: Option<FileHandle>,
        changes: &Changes,
    ) -> Result<Attr> {
        let set = changes.set();
        if set.size.is_some_and(|size| size > types::SIZE_MAX) {
            return Err(Kind::TooBig.into());
        }
        let session = self.sessions.of(req);
        match open {
            Some(open) if set.size.is_some() => session.setattr_open(OpenId(open.0), &set),
            _ => session.setattr(self.node(node)?, &set),
        }
    }

    pub(crate) fn link_target(&self, req: &Caller, node: INodeNo) -> Result<Vec<u8>> {
        self.sessions.of(req).readlink(self.node(node)?)
    }

    pub(crate) fn check_access(
        &self,
        req: &Caller,
        node: INodeNo,
        want: AccessFlags,
    ) -> Result<()> {
        let node = self.node(node)?;
        let mut asked = Access::default();
        let kinds = [
            (AccessFlags::R_OK, Access::READ),
            (AccessFlags::W_OK, Access::WRITE),
            (AccessFlags::X_OK, Access::EXEC),
        ];
        for (_, access) in kinds.iter().filter(|(flag, _)| want.contains(*flag)) {
            asked = asked.and(*access);
        }
        self.sessions.of(req).access(node, asked)
    }

    pub(crate) fn xattr(&self, req: &Caller, node: INodeNo, name: &OsStr) -> Result<Vec<u8>> {
        self.sessions
            .of(req)
            .getxattr(self.node(node)?, name.as_bytes())
    }

    /// Returns the names of the extended attributes, each followed by a NUL.
    pub(crate) fn xattr_names(&self, req: &Caller, node: INodeNo) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        for name in self.sessions.of(req).listxattr(self.node(node)?)? {
            all.extend_from_slice(&name);
            all.push(0);
        }
        Ok(all)
    }

    pub(crate) fn set_xattr(
        &self,
        req: &Caller,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> Result<()> {
        let flags = XattrFlags::from_bits_retain(flags as u32);
        let how = match (
            flags.contains(XattrFlags::CREATE),
            flags.contains(XattrFlags::REPLACE),
        ) {
            (false, false) => SetXattr::Any,
            (true, false) => SetXattr::New,
            (false, true) => SetXattr::Replace,
            (true, true) => return Err(Kind::Invalid.into()),
        };
        let node = self.node(node)?;
        self.sessions
            .of(req)
            .setxattr(node, name.as_bytes(), value, how)
    }

    pub(crate) fn remove_xattr(&self, req: &Caller, node: INodeNo, name: &OsStr) -> Result<()> {
        let node = self.node(node)?;
        self.sessions.of(req).removexattr(node, name.as_bytes())
    }
}
