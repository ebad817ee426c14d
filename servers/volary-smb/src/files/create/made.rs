//! Creates missing files and directories.

use super::super::known::Kept;
use super::super::names::Path;
use super::super::{attrs, ea, security};
use super::{Opened, Opening, RETRY, Walked, mode_for};
use crate::answer::Failure;
use crate::files::access;
use crate::files::security::descriptor::Descriptor;
use crate::files::security::stored;
use crate::wire::Status;
use crate::wire::create::{Action, option};
use crate::wire::fscc::file::attribute;
use volary_core::{Attr, Caps, Create, Entry, FileKind, Kind, Mode, NodeId, OpenId, SetAttr};
use volary_session::{OpenHow, Session};

/// Permission bits of new nodes, before the umask. A descriptor (`SecD`) changes them.
const FILE_MODE: u32 = 0o666;
const DIR_MODE: u32 = 0o777;
const UMASK: u32 = 0o022;
const OWNERS: u32 = 0o700;

impl Opening<'_, '_> {
    pub(super) fn missing(&self, walked: Walked, path: &Path) -> Result<Opened, Failure> {
        let request = self.request;
        if !request.disposition.makes() {
            return Err(Status::OBJECT_NAME_NOT_FOUND.into());
        }
        if self.call.tree.is_read_only() {
            return Err(Status::ACCESS_DENIED.into());
        }
        let read_only = request.attributes & attribute::READONLY != 0;
        if read_only && request.has(option::DELETE_ON_CLOSE) {
            return Err(Status::CANNOT_DELETE.into());
        }
        let is_dir = request.has(option::DIRECTORY);
        if is_dir && request.attributes & attribute::TEMPORARY != 0 {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if path.dir_only && !is_dir {
            return Err(Status::OBJECT_NAME_INVALID.into());
        }
        let access = self.granted_new()?;
        let Some((dir, name)) = walked.at() else {
            return Err(Status::OBJECT_NAME_INVALID.into());
        };
        let common = &self.call.tree.common;
        let root = common.root_session();
        if let Some(attr) = &walked.dir_attr {
            stored::check_add(&root, attr, self.session.cred(), is_dir)?;
        }
        let as_of = common.known.as_of();
        let mode = self.new_mode(&root, &walked, is_dir);
        let made = if is_dir {
            self.make_dir(dir, name, access, mode)
        } else {
            self.make_file(dir, name, access, mode)
        };
        let (entry, open) = made.map_err(|e| match e.kind() {
            Kind::Exists | Kind::NotFound => RETRY.into(),
            Kind::Invalid => Status::OBJECT_NAME_INVALID.into(),
            _ => Failure::from(e),
        })?;
        common.known.keep(entry.node, Kept::NOTHING, as_of);
        let mut opened = Opened {
            open,
            entry,
            walked,
            access,
            action: Action::Created,
            is_bare: false,
        };
        let completed = self.completed(&opened, is_dir);
        opened.is_bare = self.or_unmake(&opened, completed)?;
        Ok(opened)
    }

    /// Returns the mode for creating a node. If a security descriptor will apply, only the owner
    /// has access until it is set.
    fn new_mode(&self, root: &Session, walked: &Walked, is_dir: bool) -> u32 {
        let mode = if is_dir { DIR_MODE } else { FILE_MODE };
        let has_rules = match self.request.asked.descriptor {
            Some(bytes) => Descriptor::parse(bytes).is_some_and(|given| given.dacl.is_some()),
            None => {
                let kind = if is_dir {
                    FileKind::Dir
                } else {
                    FileKind::File
                };
                walked.dir_attr.is_some_and(|dir| {
                    let parent = stored::read(root, &dir);
                    let child = Attr { kind, ..dir };
                    parent.is_some_and(|parent| stored::inherited(&parent, &child).is_some())
                })
            }
        };
        if has_rules { mode & OWNERS } else { mode }
    }

    fn make_file(
        &self,
        dir: NodeId,
        name: &[u8],
        access: u32,
        mode: u32,
    ) -> volary_core::Result<(Entry, OpenId)> {
        let reads = access & (access::READ_DATA | access::EXECUTE) != 0;
        let writes = access & access::WRITES != 0;
        let how = OpenHow {
            share: Some(self.request.shares(access)),
            lease_key: self.key(),
            parent_key: self.parent_key(),
            ..OpenHow::from(mode_for(reads, writes).unwrap_or(Mode::Read))
        };
        let set = SetAttr::mode(mode);
        let session = self.session.clone().with_umask(UMASK);
        session.create(dir, name, Create::New, how, &set)
    }

    fn make_dir(
        &self,
        dir: NodeId,
        name: &[u8],
        access: u32,
        mode: u32,
    ) -> volary_core::Result<(Entry, OpenId)> {
        let session = self.session.clone().with_umask(UMASK);
        let entry = session.mkdir(dir, name, &SetAttr::mode(mode))?;
        let how = OpenHow {
            share: Some(self.request.shares(access)),
            lease_key: self.key(),
            parent_key: self.parent_key(),
            ..OpenHow::from(Mode::Read)
        };
        let at = Some((dir, name));
        let open = if access & access::READ_DATA != 0 {
            session.open_seen(&entry.attr, at, how)
        } else {
            session.open_bare_seen(&entry.attr, at, &how)
        };
        Ok((entry, open?))
    }

    /// Sets the requested attributes of a new node. Returns whether it has only what every new node
    /// has.
    fn completed(&self, opened: &Opened, is_dir: bool) -> Result<bool, Failure> {
        let attr = &opened.entry.attr;
        let archive = if is_dir { 0 } else { attribute::ARCHIVE };
        let (common, asked) = (&self.call.tree.common, &self.request.asked);
        let attributes = self.request.attributes | archive;
        attrs::set_dos(&self.session, common, attr, attributes, None)?;
        let protected = self.protect(opened)?;
        self.made_with(opened.open, attr)?;
        let plain = attributes & !attribute::NORMAL == archive && attr.dos.is_none();
        let more = protected || !asked.eas.is_empty() || asked.allocation.is_some();
        Ok(plain && !more)
    }

    /// Allocates the requested space, and sets the requested extended attributes.
    pub(super) fn made_with(&self, open: OpenId, attr: &Attr) -> Result<(), Failure> {
        let asked = &self.request.asked;
        ea::set(&self.session, attr.node, &asked.eas)?;
        if let Some(len) = asked.allocation.filter(|len| *len > 0)
            && self.session.caps().has(Caps::PREALLOCATE)
            && attr.kind == volary_core::FileKind::File
        {
            match self.session.allocate(open, 0, len, false) {
                // This is optional, so it is ignored for an open that cannot write.
                Err(e) if e == Kind::Access || e == Kind::Unsupported => {}
                allocated => allocated?,
            }
        }
        Ok(())
    }

    /// Sets the descriptor in the request, or else the inherited one. Returns whether there was
    /// one.
    fn protect(&self, opened: &Opened) -> Result<bool, Failure> {
        let attr = &opened.entry.attr;
        let common = &self.call.tree.common;
        let (root, alone) = (common.root_session(), &common.protecting);
        if let Some(bytes) = self.request.asked.descriptor {
            let descriptor = Descriptor::parse(bytes).ok_or(Status::INVALID_SECURITY_DESCR)?;
            let given = descriptor.parts();
            security::set(&self.session, &root, alone, attr.node, &descriptor, given)?;
            return Ok(true);
        }
        match &opened.walked.dir_attr {
            Some(dir) => security::inherit(&self.session, &root, alone, dir, attr),
            None => Ok(false),
        }
    }

    /// Passes `done` on. If it is an error, removes the new node, as far as the caller may.
    fn or_unmake(&self, opened: &Opened, done: Result<bool, Failure>) -> Result<bool, Failure> {
        let done = self.or_undo(opened, done);
        // This must be undone even if the client has cancelled the request.
        let session = &self.call.tree.session;
        let is_there = |entry: Entry| entry.node == opened.entry.node;
        if done.is_err()
            && let Some((dir, name)) = opened.walked.at()
            && session.lookup(dir, name).is_ok_and(is_there)
        {
            // The first error is reported. An error here would add nothing.
            let _ = match opened.entry.attr.kind {
                FileKind::Dir => session.rmdir(dir, name),
                _ => session.unlink(dir, name),
            };
        }
        done
    }
}
