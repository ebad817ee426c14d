//! Attributes, access rights, and targets of symlinks.

use crate::calls::export::{Export, Who};
use crate::content::ahead::Ahead;
use crate::content::behind::Behind;
use crate::fail;
use crate::known::attr_cache::tick;
use crate::known::node::Node;
use crate::wire::proto::{Fattr, Sattr, access_bits, granted, procedure};
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Access, Attr, Entry, FileKind, Kind, Result, SetAttr};
use volary_rpc::{Input, Output};

/// The longest target of a symlink, in bytes: `PATH_MAX` of all systems.
pub(crate) const TARGET_MAX: usize = 4096;

/// The attributes of nodes, including the effects of data written here.
pub(crate) struct Attrs {
    export: Arc<Export>,
    ahead: Arc<Ahead>,
    behind: Arc<Behind>,
    /// How long they are valid.
    pub(crate) cache: Duration,
    size_max: u64,
}

impl Attrs {
    pub(crate) fn new(
        export: Arc<Export>,
        ahead: Arc<Ahead>,
        behind: Arc<Behind>,
        cache: Duration,
        size_max: u64,
    ) -> Self {
        Self {
            export,
            ahead,
            behind,
            cache,
            size_max,
        }
    }

    /// Returns valid attributes from the cache, or else fetches them.
    pub(crate) fn of(&self, who: Who<'_>, node: &Arc<Node>) -> Result<Attr> {
        self.behind.settle(node)?;
        match node.attr(self.cache) {
            Some(attr) => Ok(attr),
            None => self.export.fetch_attr(who, node),
        }
    }

    /// Returns cached attributes of any age. Fetches them only if a later change made them
    /// doubtful.
    pub(crate) fn last_of(&self, who: Who<'_>, node: &Arc<Node>) -> Result<Attr> {
        self.behind.settle(node)?;
        match node.believed() {
            Some(attr) => Ok(attr),
            None => self.export.fetch_attr(who, node),
        }
    }

    /// Returns the entry for a node.
    pub(crate) fn entry(&self, who: Who<'_>, node: &Arc<Node>) -> Result<Entry> {
        let attr = self.of(who, node)?;
        Ok(Entry {
            node: node.id,
            attr,
        })
    }

    /// See [`setattr`](volary_core::FileSystem::setattr).
    pub(crate) fn set(&self, who: Who<'_>, node: &Arc<Node>, set: &SetAttr) -> Result<Attr> {
        self.export.check_writable()?;
        let sattr = Sattr::new(set)?;
        if let Some(size) = set.size {
            match node.kind {
                FileKind::File => {}
                FileKind::Dir => return Err(Kind::IsDir.into()),
                _ => return Err(Kind::Invalid.into()),
            }
            if size > self.size_max {
                return Err(Kind::TooBig.into());
            }
        }
        // Data written behind would arrive after the change, and undo it.
        let _alone = node.io.write();
        self.behind.settle(node)?;
        if sattr.is_empty() {
            return self.of(who, node);
        }
        if set.size.is_some() {
            self.ahead.forget(node);
        }
        let put = |out: &mut Output| {
            node.fh.write(out);
            sattr.write(out);
            out.bool(false);
        };
        self.export
            .change(who, procedure::SETATTR, node, put)?
            .done()?;
        self.of(who, node)
    }

    /// See [`access`](volary_core::FileSystem::access).
    pub(crate) fn rights_of(&self, who: Who<'_>, node: &Node, want: Access) -> Result<Access> {
        if let Some(rights) = node.rights(who.cred, want, self.cache) {
            return Ok(rights);
        }
        // Asks for all rights at once, since the others are needed soon.
        let all = Access::READ.and(Access::WRITE).and(Access::EXEC);
        let asked = tick();
        let put = |out: &mut Output| {
            node.fh.write(out);
            out.u32(access_bits(node.kind, all));
        };
        let (attr, bits) = self.export.ask(who, procedure::ACCESS, put, |input| {
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
        let (attr, target) = self.export.ask(who, procedure::READLINK, put, read)?;
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
