//! Listings of directories.

use crate::attached::attrs::Attrs;
use crate::change::cookies::Cookies;
use crate::change::files::Files;
use crate::change::nodes::{Nodes, node_id};
use crate::name_table::entry::{Entry as Named, Head, dir_prefix, name_of_key};
use crate::tree::btree::Tree;
use volary_core::{Attr, Cookie, DirBuf, FileKind, NodeId, OpenId, Result};

/// Listings of directories, over the cookies that were given out.
pub(crate) struct Listing<'a> {
    files: &'a mut Files,
    cookies: &'a mut Cookies,
}

impl<'a> Listing<'a> {
    pub(crate) fn of(files: &'a mut Files, cookies: &'a mut Cookies) -> Self {
        Self { files, cookies }
    }

    /// Lists an open directory. Returns whether that was the end of it.
    ///
    /// # Errors
    /// `Stale`, `NotDir`; `Corrupt`, `Io`.
    pub(crate) fn list(&mut self, open: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let dir = self.files.opens.get(open)?.uid;
        Nodes::of(self.files).dir(dir)?;
        let prefix = dir_prefix(dir);
        let mut start = match from {
            Cookie::START => prefix.clone(),
            cookie => self.cookies.key_after(self.files, dir, cookie)?,
        };
        let mut last = Vec::new();
        loop {
            let leaf = Tree::of(&mut self.files.core).leaf(&start)?;
            for (key, value) in leaf.cells() {
                if !key.starts_with(&prefix) {
                    return Ok(true);
                }
                // Of a name's versions, the newest comes first.
                let Some(name) = name_of_key(key).filter(|name| *name != last) else {
                    continue;
                };
                let Some((node, kind, attr)) = self.shown(value, out.wants_attr())? else {
                    continue;
                };
                let next = self.cookies.of(dir, name);
                if !out.push(next, node, kind, name, attr) {
                    return Ok(false);
                }
                self.cookies.remember(dir, next, name);
                last.clear();
                last.extend_from_slice(name);
            }
            match leaf.end() {
                Some(end) => start = end.to_vec(),
                None => return Ok(true),
            }
        }
    }

    /// Returns what a listing shows of what a name leads to; none if that is no entry.
    fn shown(&mut self, value: &[u8], with_attr: bool) -> Result<Option<Shown>> {
        if let (false, Some((uid, kind))) = (with_attr, Head::uid_and_kind(value)) {
            return Ok(Some((node_id(uid)?, kind, None)));
        }
        let Some(entry) = Named::decode(value) else {
            return Ok(None);
        };
        let head = Nodes::of(self.files).head_of(entry)?;
        let attr = Attrs::of(self.files).attr(&head)?;
        Ok(Some((
            attr.node,
            attr.kind,
            Some(attr).filter(|_| with_attr),
        )))
    }
}

/// A node as a listing shows it.
type Shown = (NodeId, FileKind, Option<Attr>);
