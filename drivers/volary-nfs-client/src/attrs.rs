//! Attributes, rights, and what symlinks hold.

use crate::fail;
use crate::node::{Node, tick};
use crate::proto::{Fattr, Sattr, access_bits, granted, procedure};
use crate::volume::{Volume, Who};
use std::sync::Arc;
use volary_core::{Access, Attr, FileKind, Kind, Result, SetAttr};
use volary_rpc::{Input, Output};

/// The longest target of a symlink, in bytes: `PATH_MAX` of all systems.
pub(crate) const TARGET_MAX: usize = 4096;

impl Volume {
    /// See [`setattr`](volary_core::FileSystem::setattr).
    pub(crate) fn set_attr(
        self: &Arc<Self>,
        who: Who<'_>,
        node: &Arc<Node>,
        set: &SetAttr,
    ) -> Result<Attr> {
        self.check_writable()?;
        let sattr = Sattr::new(set)?;
        if let Some(size) = set.size {
            match node.kind {
                FileKind::File => {}
                FileKind::Dir => return Err(Kind::IsDir.into()),
                _ => return Err(Kind::Invalid.into()),
            }
            if size > self.info.caps.size_max {
                return Err(Kind::TooBig.into());
            }
        }
        // What is written behind would come after, and undo it.
        let _alone = node.io.write();
        self.settle(node)?;
        if sattr.is_empty() {
            return self.attr_of(who, node);
        }
        if set.size.is_some() {
            self.forget_content(node);
        }
        let put = |out: &mut Output| {
            node.fh.write(out);
            sattr.write(out);
            out.bool(false);
        };
        self.change(who, procedure::SETATTR, node, put)?.done()?;
        self.attr_of(who, node)
    }

    /// See [`access`](volary_core::FileSystem::access).
    pub(crate) fn rights_of(&self, who: Who<'_>, node: &Node, want: Access) -> Result<Access> {
        if let Some(rights) = node.rights(who.cred, want, self.options.cache) {
            return Ok(rights);
        }
        // All at once: the rest is asked for soon.
        let all = Access::READ.and(Access::WRITE).and(Access::EXEC);
        let asked = tick();
        let put = |out: &mut Output| {
            node.fh.write(out);
            out.u32(access_bits(node.kind, all));
        };
        let (attr, bits) = self.ask(who, procedure::ACCESS, put, |input| {
            Ok((Fattr::read_maybe(input)?, input.u32()?))
        })?;
        if let Some(attr) = attr {
            node.note(&attr, asked)?;
        }
        let rights = granted(node.kind, all, bits);
        node.note_rights(who.cred, all, rights);
        Ok(Access(rights.0 & want.0))
    }

    /// See [`readlink`](volary_core::FileSystem::readlink).
    pub(crate) fn target_of(&self, who: Who<'_>, node: &Node) -> Result<Vec<u8>> {
        if node.kind != FileKind::Symlink {
            return Err(Kind::Invalid.into());
        }
        let asked = tick();
        let put = |out: &mut Output| node.fh.write(out);
        let read = |input: &mut Input<'_>| {
            let attr = Fattr::read_maybe(input)?;
            Ok((attr, input.opaque(TARGET_MAX)?.to_vec()))
        };
        let (attr, target) = self.ask(who, procedure::READLINK, put, read)?;
        if let Some(attr) = attr {
            node.note(&attr, asked)?;
        }
        if target.is_empty() || target.contains(&0) {
            let words = "1 to 4096 bytes without NUL";
            return Err(fail::nonsense("target of a symlink", "another", words));
        }
        Ok(target)
    }
}
