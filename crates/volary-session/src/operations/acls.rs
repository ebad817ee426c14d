//! Access control lists: set together with the mode, and inherited.

use crate::operations::set_xattr::SetXattr;
use crate::rules;
use crate::session::Session;
use crate::shared::events::News;
use volary_core::{
    ACL_ACCESS, ACL_DEFAULT, Acl, Attr, Ctx, Entry, FileKind, Kind, Name, NodeId, Result, SetAttr,
    default_acl_of,
};

/// Permission bits of a mode.
const BITS: u32 = 0o777;
/// The owner's permission bits.
const OWNERS: u32 = 0o700;

/// Returns whether `name` is that of an access control list.
pub(crate) fn is_acl(name: &[u8]) -> bool {
    name == ACL_ACCESS || name == ACL_DEFAULT
}

/// What a new node inherits from its directory's default list.
pub(crate) struct Inherited {
    /// The node's own list, if a mode cannot express it.
    access: Option<Acl>,
    mode: u32,
    /// The default list of the new node, if it is a directory.
    default: Option<Acl>,
}

impl Session {
    /// Sets an access control list, or removes it.
    ///
    /// # Errors
    /// `Unsupported` for a symlink; `Access` for a default list on a node that is not a directory;
    /// `NotPermitted` for callers other than owner and root; `Invalid` for a list that is not
    /// sound; `Exists`, `NoXattr` as `how` says.
    pub(crate) fn set_acl(
        &self,
        cx: &Ctx<'_>,
        node: NodeId,
        name: &[u8],
        value: Option<&[u8]>,
        how: SetXattr,
    ) -> Result<()> {
        let attr = self.fs().getattr(cx, node)?;
        if attr.kind == FileKind::Symlink {
            return Err(Kind::Unsupported.into());
        }
        if name == ACL_DEFAULT && attr.kind != FileKind::Dir && value.is_some() {
            return Err(Kind::Access.into());
        }
        if self.checks_rights() && !rules::owns(&attr, &self.cred) {
            return Err(Kind::NotPermitted.into());
        }
        let acl = value.map(Acl::parse).transpose()?;
        let one_step = self.volume.xattr_sets.lock();
        how.check(self.fs().getxattr(cx, node, name))?;
        if name == ACL_DEFAULT {
            self.keep_acl(cx, node, name, acl.as_ref())?;
        } else {
            self.set_access(cx, &attr, acl)?;
        }
        drop(one_step);
        self.tell(|| News::Attr(node));
        Ok(())
    }

    /// Sets the node's access list and its mode. On the way, after a failure and after a crash,
    /// access is never wider than both the old and the new list allow. Without a list, the group
    /// keeps the rights it had.
    fn set_access(&self, cx: &Ctx<'_>, attr: &Attr, acl: Option<Acl>) -> Result<()> {
        let old = self.acl_seen(attr)?;
        let Some(acl) = acl.or_else(|| old.map(Acl::without_names)) else {
            return Ok(());
        };
        let mut mode = attr.mode & !BITS | acl.mode();
        if !self.cred.is_root() && !self.cred.in_group(attr.gid) && attr.kind != FileKind::Dir {
            mode &= !rules::SET_GID;
        }
        let both = mode & attr.mode;
        let chmod = |from: u32, to: u32| match from == to {
            true => Ok(()),
            false => self
                .fs()
                .setattr(cx, attr.node, &SetAttr::mode(to))
                .map(drop),
        };
        chmod(attr.mode, both)?;
        let list = (!acl.is_mode()).then_some(&acl);
        if let Err(e) = self.keep_acl(cx, attr.node, ACL_ACCESS, list) {
            // If this fails too, access is narrower than before.
            let _ = chmod(both, attr.mode);
            return Err(e);
        }
        chmod(both, mode)
    }

    fn keep_acl(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], acl: Option<&Acl>) -> Result<()> {
        match acl {
            Some(acl) => self.fs().setxattr(cx, node, name, &acl.emit()),
            None => match self.fs().removexattr(cx, node, name) {
                Err(e) if e == Kind::NoXattr => Ok(()),
                removed => removed,
            },
        }
    }

    /// Returns what a new node, made with `set` in `dir`, inherits from the directory's default
    /// list. Until [`bestow`](Self::bestow) applies a list, only the owner has access. The umask
    /// applies only if there is no default list.
    pub(crate) fn inherit(
        &self,
        cx: &Ctx<'_>,
        dir: &Attr,
        kind: FileKind,
        set: &mut SetAttr,
    ) -> Result<Option<Inherited>> {
        let Some(asked) = set.mode.filter(|_| kind != FileKind::Symlink) else {
            return Ok(None);
        };
        let Some(default) = default_acl_of(&**self.fs(), cx, dir)? else {
            set.mode = Some(asked & !self.umask);
            return Ok(None);
        };
        let access = default.clone().inherited(asked);
        let mode = asked & !BITS | access.mode();
        let lists = !access.is_mode();
        set.mode = Some(if lists {
            mode & !BITS | mode & OWNERS
        } else {
            mode
        });
        Ok(Some(Inherited {
            access: lists.then_some(access),
            mode,
            default: (kind == FileKind::Dir).then_some(default),
        }))
    }

    /// Gives a new node what it inherits; if that fails, removes the node again.
    pub(crate) fn bestow(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        entry: &mut Entry,
        inherited: Option<Inherited>,
    ) -> Result<()> {
        let Some(inherited) = inherited else {
            return Ok(());
        };
        let node = entry.node;
        let give = || {
            if let Some(default) = &inherited.default {
                self.keep_acl(cx, node, ACL_DEFAULT, Some(default))?;
            }
            if let Some(access) = &inherited.access {
                self.keep_acl(cx, node, ACL_ACCESS, Some(access))?;
            }
            self.fs().setattr(cx, node, &SetAttr::mode(inherited.mode))
        };
        match give() {
            Ok(attr) => {
                entry.attr = attr;
                Ok(())
            }
            Err(e) => {
                // The caller never saw the node: an error of its removal adds nothing.
                let _ = match entry.attr.kind {
                    FileKind::Dir => self.fs().rmdir(cx, dir, name),
                    _ => self.fs().unlink(cx, dir, name),
                };
                Err(e)
            }
        }
    }
}
