//! Extended attributes.

use crate::operations::acls;
use crate::operations::set_xattr::SetXattr;
use crate::rules;
use crate::session::Session;
use crate::shared::events::News;
use std::sync::atomic::Ordering;
use volary_core::{ACL_ACCESS, Access, Attr, Caps, Ctx, FileKind, Kind, NodeId, Result};

/// The attribute in which Linux keeps a program's capabilities.
pub(crate) const CAPABILITY: &[u8] = b"security.capability";
/// Longest name of an extended attribute, in bytes, as in Linux.
const NAME_MAX: usize = 255;
/// Prefix of the names of volary's own attributes, on a volume that has no other namespace for
/// them.
const RESERVED: &[u8] = b"user.volary.";
/// Longest value, in bytes, as in Linux.
const VALUE_MAX: usize = 64 << 10;

impl Session {
    /// Returns the value of an extended attribute. `user.` attributes need read access on the node;
    /// only root sees `trusted.` ones.
    ///
    /// # Errors
    /// `Unsupported` without [`Caps::XATTRS`]; `Invalid` or `NameTooLong` for the name; `Access`;
    /// `NoXattr`.
    pub fn getxattr(&self, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let cx = self.ctx();
        self.check_xattr(&cx, node, name, Access::READ)?;
        if name == ACL_ACCESS {
            let attr = self.fs().getattr(&cx, node)?;
            let acl = self.acl_seen(&attr)?;
            return acl
                .map(|acl| acl.emit())
                .ok_or_else(|| Kind::NoXattr.into());
        }
        self.fs().getxattr(&cx, node, name)
    }

    /// Sets an extended attribute. `user.` attributes need write access on the node, which must be
    /// a file or a directory; if it is a sticky directory, the caller must own it. Access lists
    /// ([`ACL_ACCESS`](volary_core::ACL_ACCESS), and of directories
    /// [`ACL_DEFAULT`](volary_core::ACL_DEFAULT)) are set by the owner and root; all others, and
    /// those under `user.volary.`, by root only. An access list sets the mode too; one that the
    /// mode can express is not stored.
    /// # Errors
    /// As [`getxattr`](Self::getxattr); `NotPermitted`; `TooBig` past 64 KiB;
    /// `Exists`, `NoXattr` as `how` says.
    pub fn setxattr(&self, node: NodeId, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        let cx = self.ctx();
        self.check_writable()?;
        self.check_xattr(&cx, node, name, Access::WRITE)?;
        if acls::is_acl(name) {
            return self.set_acl(&cx, node, name, Some(value), how);
        }
        if value.len() > VALUE_MAX {
            return Err(Kind::TooBig.into());
        }
        let _one_step = self.volume.xattr_sets.lock();
        how.check(self.fs().getxattr(&cx, node, name))?;
        self.fs().setxattr(&cx, node, name, value)?;
        if name == CAPABILITY {
            self.volume.set_id_epoch.fetch_add(1, Ordering::SeqCst);
        }
        drop(_one_step);
        self.tell(|| News::Attr(node));
        Ok(())
    }

    /// Returns the names of the extended attributes that the caller may see.
    ///
    /// # Errors
    /// `Unsupported` without [`Caps::XATTRS`].
    pub fn listxattr(&self, node: NodeId) -> Result<Vec<Vec<u8>>> {
        let mut names = self.fs().listxattr(&self.ctx(), node)?;
        if !self.cred.is_root() {
            names.retain(|name| !name.starts_with(b"trusted."));
        }
        Ok(names)
    }

    /// Removes an extended attribute. Needs the rights that [`setxattr`](Self::setxattr) needs; for
    /// `security.capability`, which a write removes as well, write access is enough.
    ///
    /// # Errors
    /// As [`getxattr`](Self::getxattr); `NotPermitted`.
    pub fn removexattr(&self, node: NodeId, name: &[u8]) -> Result<()> {
        let cx = self.ctx();
        self.check_writable()?;
        let by_write = name == CAPABILITY && self.caps().has(Caps::XATTRS);
        if !(by_write && self.may(&cx, &self.fs().getattr(&cx, node)?, Access::WRITE)?) {
            self.check_xattr(&cx, node, name, Access::WRITE)?;
        }
        if acls::is_acl(name) {
            return self.set_acl(&cx, node, name, None, SetXattr::Replace);
        }
        self.fs().removexattr(&cx, node, name)?;
        self.tell(|| News::Attr(node));
        Ok(())
    }

    fn check_xattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], want: Access) -> Result<()> {
        if !self.volume.caps.has(Caps::XATTRS) {
            return Err(Kind::Unsupported.into());
        }
        if name.is_empty() || name.contains(&0) {
            return Err(Kind::Invalid.into());
        }
        if name.len() > NAME_MAX {
            return Err(Kind::NameTooLong.into());
        }
        // A file system that checks access itself does not know these names.
        let reserved = name.starts_with(RESERVED);
        if reserved && want == Access::WRITE && !self.cred.is_root() {
            return Err(Kind::NotPermitted.into());
        }
        if reserved || acls::is_acl(name) || !self.checks_rights() {
            return Ok(());
        }
        let reads = want == Access::READ;
        let refusal = if name.starts_with(b"user.") {
            let attr = self.fs().getattr(cx, node)?;
            self.user_xattr_refusal(cx, &attr, want)
        } else {
            let hidden = name.starts_with(b"trusted.") || !reads;
            let refused = hidden && !self.cred.is_root();
            refused.then_some(if reads {
                Kind::NoXattr
            } else {
                Kind::NotPermitted
            })
        };
        match refusal {
            Some(kind) => Err(kind.into()),
            None => Ok(()),
        }
    }

    fn user_xattr_refusal(&self, cx: &Ctx<'_>, attr: &Attr, want: Access) -> Option<Kind> {
        let reads = want == Access::READ;
        if !matches!(attr.kind, FileKind::File | FileKind::Dir) {
            return Some(if reads {
                Kind::NoXattr
            } else {
                Kind::NotPermitted
            });
        }
        let sticky = attr.kind == FileKind::Dir && attr.mode & rules::STICKY != 0;
        if !reads && sticky && !rules::owns(attr, &self.cred) {
            return Some(Kind::NotPermitted);
        }
        match self.may(cx, attr, want) {
            Ok(true) => None,
            Ok(false) => Some(Kind::Access),
            Err(e) => Some(e.kind()),
        }
    }
}
