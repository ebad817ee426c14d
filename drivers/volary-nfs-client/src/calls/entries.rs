//! Calls on entries of directories, and a cache of their results.

use crate::calls::export::{Changed, Export, Who, after_status};
use crate::fail;
use crate::known::attr_cache::tick;
use crate::known::name_cache::NameCache;
use crate::known::node::Node;
use crate::known::nodes::Nodes;
use crate::wire::proto::{Fattr, Fh, Wcc, error_of, procedure, status};
use std::sync::Arc;
use volary_core::Result;
use volary_rpc::{Decoded, Input, Output};

/// A name in a directory.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) dir: &'a Arc<Node>,
    pub(crate) name: &'a [u8],
}

/// Makes calls on entries of directories.
pub(crate) struct Entries {
    export: Arc<Export>,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) names: NameCache,
}

impl Entries {
    pub(crate) fn new(export: Arc<Export>, nodes: Arc<Nodes>, names: NameCache) -> Self {
        Self {
            export,
            nodes,
            names,
        }
    }

    /// Clears the caches of names and nodes.
    pub(crate) fn clear(&self) {
        self.names.clear();
        self.nodes.clear();
    }

    /// Returns the node that a name refers to, if it is cached and others have not changed the
    /// directory since.
    pub(crate) fn known(&self, at: At<'_>) -> Option<Arc<Node>> {
        let named = self.names.get(at.dir.id, at.name)?;
        if named.epoch != at.dir.epoch() {
            return None;
        }
        self.nodes.get(named.node).ok()
    }

    /// Calls LOOKUP.
    pub(crate) fn look_up(&self, who: Who<'_>, at: At<'_>) -> Result<Arc<Node>> {
        let At { dir, name } = at;
        let asked = tick();
        let put = |out: &mut Output| {
            dir.fh.write(out);
            out.opaque(name);
        };
        let (status, done) = self.export.nfs(who, procedure::LOOKUP, put)?;
        let mut input = after_status(&done);
        if status != status::OK {
            if let Some(attr) = Fattr::read_maybe(&mut input).map_err(fail::garbage)? {
                dir.note(&attr, asked)?;
            }
            self.names.forget(dir.id, name);
            return Err(error_of(status));
        }
        let read = |input: &mut Input<'_>| {
            let fh = Fh::read(input)?;
            Decoded::Ok((fh, Fattr::read_maybe(input)?, Fattr::read_maybe(input)?))
        };
        let (fh, attr, of_dir) = read(&mut input).map_err(fail::garbage)?;
        let node = self.enter(who, fh, attr, asked)?;
        if let Some(attr) = of_dir {
            dir.note(&attr, asked)?;
        }
        // The parent of a directory may change without a change of its own entries.
        if name != b".." && dir.is_unchanged_since(asked) {
            self.names.note(dir.id, dir.epoch(), name, node.id);
            // Another thread may have begun to remove the name, and may already have dropped it
            // from the cache.
            if !dir.is_unchanged_since(asked) {
                self.names.forget(dir.id, name);
            }
        }
        Ok(node)
    }

    /// Returns the node of a handle. Asks for its attributes if the reply had none.
    fn enter(&self, who: Who<'_>, fh: Fh, attr: Option<Fattr>, asked: u64) -> Result<Arc<Node>> {
        let attr = match attr {
            Some(attr) => attr,
            None => {
                let put = |out: &mut Output| fh.write(out);
                self.export.ask(who, procedure::GETATTR, put, Fattr::read)?
            }
        };
        self.nodes.enter(fh, &attr, asked)
    }

    /// Makes a node by CREATE, MKDIR, SYMLINK or MKNOD.
    pub(crate) fn make(
        &self,
        who: Who<'_>,
        procedure: u32,
        at: At<'_>,
        write: impl Fn(&mut Output),
    ) -> Result<Arc<Node>> {
        let At { dir, name } = at;
        let changing = dir.begin_change();
        let asked = tick();
        let put = |out: &mut Output| {
            dir.fh.write(out);
            out.opaque(name);
            write(out);
        };
        let (status, done) = self.export.nfs(who, procedure, put)?;
        let mut input = after_status(&done);
        let read = |input: &mut Input<'_>| {
            let made = if status == status::OK {
                (Fh::read_maybe(input)?, Fattr::read_maybe(input)?)
            } else {
                (None, None)
            };
            Decoded::Ok((made, Wcc::read(input)?))
        };
        let ((fh, attr), wcc) = read(&mut input).map_err(fail::garbage)?;
        changing.end(&wcc)?;
        let epoch = dir.epoch();
        if status != status::OK {
            return Err(error_of(status));
        }
        let node = match (fh, attr) {
            (Some(fh), Some(attr)) => self.nodes.enter(fh, &attr, asked)?,
            _ => self.look_up(who, at)?,
        };
        self.names.note(dir.id, epoch, name, node.id);
        Ok(node)
    }

    /// Calls LINK.
    pub(crate) fn link(&self, who: Who<'_>, node: &Node, at: At<'_>) -> Result<()> {
        let (of_node, of_dir) = (node.begin_change(), at.dir.begin_change());
        let put = |out: &mut Output| {
            node.fh.write(out);
            at.dir.fh.write(out);
            out.opaque(at.name);
        };
        let (status, done) = self.export.nfs(who, procedure::LINK, put)?;
        let mut input = after_status(&done);
        let after = Fattr::read_maybe(&mut input).map_err(fail::garbage)?;
        let wcc = Wcc::read(&mut input).map_err(fail::garbage)?;
        of_node.end(&Wcc {
            before: None,
            after,
        })?;
        of_dir.end(&wcc)?;
        match status {
            status::OK => Ok(()),
            status => Err(error_of(status)),
        }
    }

    /// Removes a name by REMOVE or RMDIR.
    pub(crate) fn remove(&self, who: Who<'_>, procedure: u32, at: At<'_>) -> Result<Changed> {
        self.export.change(who, procedure, at.dir, |out| {
            at.dir.fh.write(out);
            out.opaque(at.name);
        })
    }

    /// Calls RENAME.
    pub(crate) fn rename(&self, who: Who<'_>, from: At<'_>, to: At<'_>) -> Result<()> {
        let of_from = from.dir.begin_change();
        let of_to = (from.dir.id != to.dir.id).then(|| to.dir.begin_change());
        let put = |out: &mut Output| {
            from.dir.fh.write(out);
            out.opaque(from.name);
            to.dir.fh.write(out);
            out.opaque(to.name);
        };
        let (status, done) = self.export.nfs(who, procedure::RENAME, put)?;
        let mut input = after_status(&done);
        let first = Wcc::read(&mut input).map_err(fail::garbage)?;
        let second = Wcc::read(&mut input).map_err(fail::garbage)?;
        of_from.end(&first)?;
        if let Some(of_to) = of_to {
            of_to.end(&second)?;
        }
        match status {
            status::OK => Ok(()),
            status::NOENT if done.is_resent => Ok(()),
            status => Err(error_of(status)),
        }
    }
}
