//! Operations on nodes: attributes, access, symlinks.

use crate::rules;
use crate::session::Session;
use crate::shared::events::News;
use crate::shared::leases::Impact;
use crate::shared::sharing::Rights;
use crate::shared::uses::{By, Mark};
use std::sync::atomic::Ordering;
use volary_core::{
    Access, Acl, Attr, Caps, Ctx, DirEntry, Error, FileKind, Kind, NodeId, OpenId, Result, SetAttr,
    acl_of, permits,
};

/// What a listing knows of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Its attributes.
    Known(Attr),
    /// The entry exists, but its attributes cannot be read: its node is damaged.
    Unknown,
    /// The entry has been removed since.
    Gone,
}

/// Returns whether an error comes from the node alone: it is gone, damaged or unreadable.
fn is_unread(e: &Error) -> bool {
    matches!(
        e.kind(),
        Kind::Stale | Kind::NotFound | Kind::Corrupt | Kind::Io
    )
}

impl Session {
    /// Returns the attributes of an entry that a listing of `dir` gave.
    ///
    /// # Errors
    /// Of the driver, where they do not come from the node.
    pub fn listed(&self, dir: NodeId, entry: &DirEntry<'_>) -> Result<Listed> {
        match self.attr_listed(dir, entry) {
            Ok(attr) => Ok(Listed::Known(attr)),
            Err(e) if e == Kind::NotFound => Ok(Listed::Gone),
            Err(e) if is_unread(&e) || e == Kind::Access => Ok(Listed::Unknown),
            Err(e) => Err(e),
        }
    }

    /// Returns the attributes of an entry from a listing of `dir`.
    ///
    /// # Errors
    /// `NotFound` if the entry has been removed since; `Access`; the driver's.
    pub fn attr_listed(&self, dir: NodeId, entry: &DirEntry<'_>) -> Result<Attr> {
        if let Some(attr) = entry.attr {
            return Ok(attr);
        }
        match self.getattr(entry.node) {
            // Ask by name: a listing may give a damaged node a number without an inode behind it, and the
            // name may refer to another node by now.
            Err(e) if is_unread(&e) => Ok(self.lookup(dir, entry.name)?.attr),
            attr => attr,
        }
    }

    /// Returns the node's attributes. Needs no access.
    ///
    /// # Errors
    /// None of its own.
    pub fn getattr(&self, node: NodeId) -> Result<Attr> {
        self.fs().getattr(&self.ctx(), node)
    }

    /// Changes attributes, all or none, and returns them as they now are.
    ///
    /// Mode, owner, group, birth time and DOS attributes are changed by the owner and root. Only
    /// root gives a node to another owner, or to a group that the caller is not in. Times are set
    /// by the owner and root; any caller with write access may set both to now. A size needs write
    /// access.
    ///
    /// Side effects: a change of owner or group, or of size by a caller other than root, takes
    /// set-uid and set-gid (if the group may execute) from any node but a directory. A change of
    /// these by any caller takes its capabilities (`security.capability`). A caller outside the
    /// file's group cannot set set-gid.
    ///
    /// # Errors
    /// `TooBig`; for a size, `IsDir` for a directory and `Invalid` for other nodes that are no
    /// file; `NotPermitted`; `Access`; `Unsupported` for an attribute that the volume cannot keep.
    /// For a size, `Sharing` first of all, if an open's share mode does not allow writing.
    pub fn setattr(&self, node: NodeId, set: &SetAttr) -> Result<Attr> {
        self.change(&self.ctx(), node, set, None)
    }

    /// Changes attributes of the node of an open. A new size needs only an open for writing.
    ///
    /// # Errors
    /// As [`setattr`](Self::setattr); `Access` for a size if the file was opened for reading only;
    /// `Sharing` only for a size through a [momentary](crate::OpenHow::momentary) open.
    pub fn setattr_open(&self, open: OpenId, set: &SetAttr) -> Result<Attr> {
        let opened = self.volume.opens.get(open)?;
        if set.size.is_some() && !opened.writes() {
            return Err(Kind::Access.into());
        }
        if set.size.is_some() {
            self.check_momentary(&opened, Impact::WRITE)?;
        }
        self.change(&self.ctx(), opened.node, set, Some(opened.mark))
    }

    /// Returns the attributes of the node of an open.
    ///
    /// # Errors
    /// None of its own.
    pub fn getattr_open(&self, open: OpenId) -> Result<Attr> {
        let opened = self.volume.opens.get(open)?;
        self.getattr(opened.node)
    }

    /// Changes attributes through `open`, if one is given: then the right to change the size is
    /// known to exist.
    pub(crate) fn change(
        &self,
        cx: &Ctx<'_>,
        node: NodeId,
        set: &SetAttr,
        open: Option<Mark>,
    ) -> Result<Attr> {
        if *set == SetAttr::default() {
            return self.fs().getattr(cx, node);
        }
        self.check_writable()?;
        let by = open.map_or(By::Key(None), By::Open);
        if set.size.is_some() && open.is_none() {
            let uses = &self.volume.uses;
            uses.check_moment(node, Rights::WRITE, self.client)?;
        }
        let set = if self.is_plain_change(set) {
            *set
        } else {
            self.checked_change(cx, node, set, open.is_some())?
        };
        if set.size.is_some() {
            self.contend(node, by, Impact::WRITE)?;
        }
        if set.size.is_some() || set.uid.is_some() || set.gid.is_some() {
            self.drop_capability(cx, node)?;
        }
        let after = self.fs().setattr(cx, node, &set)?;
        if set
            .mode
            .is_some_and(|m| m & (rules::SET_UID | rules::SET_GID) != 0)
        {
            self.volume.set_id_epoch.fetch_add(1, Ordering::SeqCst);
        }
        if set.size.is_some() {
            self.has_changed(node, by);
        }
        self.tell(|| match set.size {
            Some(_) => News::Data(node),
            None => News::Attr(node),
        });
        Ok(after)
    }

    /// Returns whether the change can be made without a look at the node: the caller has all
    /// rights, and there are no side effects.
    fn is_plain_change(&self, set: &SetAttr) -> bool {
        let may_all = self.trust || self.cred.is_root();
        let plain = set.uid.is_none() && set.gid.is_none() && set.size.is_none();
        may_all && plain && !self.volume.caps.has(Caps::CHECKS_ACCESS)
    }

    fn checked_change(
        &self,
        cx: &Ctx<'_>,
        node: NodeId,
        set: &SetAttr,
        sizes: bool,
    ) -> Result<SetAttr> {
        if set
            .size
            .is_some_and(|size| size > self.volume.caps.size_max)
        {
            return Err(Kind::TooBig.into());
        }
        let attr = self.fs().getattr(cx, node)?;
        match attr.kind {
            FileKind::File => {}
            FileKind::Dir if set.size.is_some() => return Err(Kind::IsDir.into()),
            _ if set.size.is_some() => return Err(Kind::Invalid.into()),
            _ => {}
        }
        if self.checks_rights() {
            let writes = || self.may(cx, &attr, Access::WRITE);
            rules::check_change(&attr, &self.cred, set, sizes, writes)?;
        }
        if self.volume.caps.has(Caps::MODES) && !self.volume.caps.has(Caps::CHECKS_ACCESS) {
            Ok(rules::with_side_effects(&attr, &self.cred, set))
        } else {
            Ok(*set)
        }
    }

    /// Checks that the caller has all of `want`. Mode bits and access list decide, even if the
    /// kernel checks access.
    ///
    /// # Errors
    /// `ReadOnly` for write access on a file, directory or symlink of a read-only volume; `Access`.
    pub fn access(&self, node: NodeId, want: Access) -> Result<()> {
        let attr = self.fs().getattr(&self.ctx(), node)?;
        self.access_seen(&attr, want)
    }

    /// Checks access as [`access`](Self::access) does, on a node whose attributes, `attr`, the
    /// caller has just read.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn access_seen(&self, attr: &Attr, want: Access) -> Result<()> {
        let kept = matches!(
            attr.kind,
            FileKind::File | FileKind::Dir | FileKind::Symlink
        );
        if want.has(Access::WRITE) && kept {
            self.check_writable()?;
        }
        let granted = if self.volume.caps.has(Caps::CHECKS_ACCESS) {
            self.fs().access(&self.ctx(), attr.node, want)?.has(want)
        } else {
            permits(&**self.fs(), &self.ctx(), attr, want)?
        };
        if granted {
            Ok(())
        } else {
            Err(Kind::Access.into())
        }
    }

    /// Returns the node's access list, if it has one, with its current mode applied. Needs no
    /// access.
    ///
    /// # Errors
    /// None of its own.
    pub fn acl_seen(&self, attr: &Attr) -> Result<Option<Acl>> {
        acl_of(&**self.fs(), &self.ctx(), attr)
    }

    /// Returns the target of a symlink. Needs no access.
    ///
    /// # Errors
    /// `Invalid` if it is not a symlink.
    pub fn readlink(&self, node: NodeId) -> Result<Vec<u8>> {
        self.fs().readlink(&self.ctx(), node)
    }
}
