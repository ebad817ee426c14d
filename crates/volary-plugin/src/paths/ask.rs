//! Looks at a path, and makes its node known.

#![expect(
    unsafe_code,
    reason = "calls the plug-in, by a table that is as C says"
)]

use super::Paths;
use super::tree::{ROOT, Seen};
use crate::abi::{VolaryAttr, VolaryContext, VolaryNode, VolaryPathTable};
use crate::convert;
use crate::loaded::calls::lie;
use std::ffi::{CString, c_char, c_void};
use std::sync::atomic::Ordering;
use volary_core::{Attr, Caps, Ctx, Entry, Error, FileKind, Kind, NodeId, Result};

/// The prefix of names in the root that keep files which were removed while open.
pub(super) const REMOVED: &[u8] = b".volary-removed-";

/// Returns a C string.
///
/// # Errors
/// `Invalid` if it has a NUL in it.
pub(super) fn text(bytes: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(bytes).map_err(|_| Kind::Invalid.into())
}

/// Returns the number of a node. For an id that was never given out, returns 0, which is no node's
/// number.
pub(super) fn number(node: NodeId) -> u64 {
    match node.generation {
        0 => node.ino.get(),
        _ => 0,
    }
}

/// Returns whether a name is reserved for files that were removed while open.
pub(super) fn is_reserved(dir: u64, name: &[u8]) -> bool {
    dir == ROOT && name.starts_with(REMOVED)
}

/// Turns `NotFound` of a node's path into `Stale`.
pub(super) fn gone(e: Error) -> Error {
    match e.kind() {
        Kind::NotFound => Kind::Stale.into(),
        _ => e,
    }
}

impl Paths {
    /// # Errors
    /// `Stale` once the volume is detached.
    pub(super) fn alive(&self) -> Result<&VolaryPathTable> {
        match self.detached.load(Ordering::Acquire) {
            false => Ok(&*self.table),
            true => Err(Kind::Stale.into()),
        }
    }

    /// # Errors
    /// `Stale`; `ReadOnly` if the volume is read-only.
    pub(super) fn changing(&self) -> Result<&VolaryPathTable> {
        let table = self.alive()?;
        match self.caps.has(Caps::WRITE) {
            true => Ok(table),
            false => Err(Kind::ReadOnly.into()),
        }
    }

    /// Returns the attributes at a path. They have no node id yet.
    ///
    /// # Errors
    /// The plug-in's; `Io` for impossible attributes.
    pub(super) fn look(&self, cx: &Ctx<'_>, path: &[u8]) -> Result<(Attr, Seen)> {
        let f = self.alive()?.getattr.ok_or(Kind::Unsupported)?;
        let path = text(path)?;
        let mut out = VolaryAttr::default();
        self.calls.done("getattr", cx, |fs, c| {
            // SAFETY: a function of this table, with what the table says it gets.
            unsafe { f(fs, c, path.as_ptr(), &raw mut out) }
        })?;
        let identity = (out.node.ino, out.node.generation);
        out.node = VolaryNode {
            ino: ROOT,
            generation: 0,
        };
        let attr = convert::attr(&out).map_err(|words| lie("getattr", &words))?;
        if attr.kind == FileKind::File && attr.size > self.caps.size_max {
            return Err(lie("getattr", "gave a size that the volume cannot have"));
        }
        let kind = attr.kind;
        Ok((attr, Seen { kind, identity }))
    }

    /// Returns attributes with a node's id.
    pub(super) fn of(&self, node: u64, mut attr: Attr) -> Result<Attr> {
        attr.node = NodeId::new(node, 0).ok_or(Kind::Stale)?;
        if self.tree.is_hidden(node) {
            attr.nlink = attr.nlink.saturating_sub(1);
        }
        Ok(attr)
    }

    /// Returns the attributes of a node.
    ///
    /// # Errors
    /// `Stale`; the plug-in's.
    pub(super) fn attr(&self, cx: &Ctx<'_>, node: u64) -> Result<Attr> {
        loop {
            let path = self.tree.path(node)?;
            match self.look(cx, &path) {
                Ok((attr, _)) if node == ROOT && attr.kind == FileKind::Dir => {
                    return self.of(node, attr);
                }
                Ok(_) if node == ROOT => {
                    return Err(lie("getattr", "has a root that is no directory"));
                }
                Ok((attr, seen)) if self.tree.is_same(node, seen) => return self.of(node, attr),
                Err(e) if !matches!(e.kind(), Kind::NotFound | Kind::NotDir) => return Err(e),
                // Others have removed the name, or put another node in its place.
                Ok(_) | Err(_) if self.tree.lose(node) => {}
                Ok(_) | Err(_) => return Err(Kind::Stale.into()),
            }
        }
    }

    /// Returns the entry of a name, and its path.
    ///
    /// # Errors
    /// `NotFound`; `NotDir`; `Stale`; the plug-in's.
    pub(super) fn find(&self, cx: &Ctx<'_>, dir: u64, name: &[u8]) -> Result<(Entry, Vec<u8>)> {
        let path = self.tree.path_in(dir, name)?;
        if is_reserved(dir, name) {
            return Err(Kind::NotFound.into());
        }
        let (attr, seen) = self.look(cx, &path)?;
        let node = self.tree.enter(dir, name, seen, true)?;
        let attr = self.of(node, attr)?;
        let node = attr.node;
        Ok((Entry { node, attr }, path))
    }

    /// Makes a node at a free name, by `call`.
    ///
    /// # Errors
    /// The plug-in's; `NotPermitted` for a reserved name.
    pub(super) fn make(
        &self,
        cx: &Ctx<'_>,
        dir: u64,
        name: &[u8],
        what: &str,
        kind: FileKind,
        call: impl FnOnce(*mut c_void, *const VolaryContext, *const c_char) -> i32,
    ) -> Result<Entry> {
        let path = self.tree.path_in(dir, name)?;
        self.check_free(dir, name)?;
        let path = text(path)?;
        let before = self.tree.known(dir, name);
        self.calls
            .done(what, cx, |fs, c| call(fs, c, path.as_ptr()))?;
        // The name was free, so others must have removed the node that was known there.
        if before.is_some() && self.tree.known(dir, name) == before {
            self.tree.remove(dir, name);
        }
        let (entry, _) = self.find(cx, dir, name).map_err(gone)?;
        match entry.attr.kind == kind {
            true => Ok(entry),
            false => Err(lie(what, "made something of another kind")),
        }
    }

    /// # Errors
    /// `NotPermitted`.
    pub(super) fn check_free(&self, dir: u64, name: &[u8]) -> Result<()> {
        match is_reserved(dir, name) {
            true => {
                let words = "such names hold files that were removed while they were open";
                Err(Error::note(Kind::NotPermitted, words))
            }
            false => Ok(()),
        }
    }
}
