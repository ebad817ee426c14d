//! Extended attributes.

use super::error::VolResult;
use super::held::Held;
use std::sync::Arc;
use volary_core::{NodeId, Result};
use volary_session::{Follow, SetXattr};

/// The extended attributes of a file or directory; see [`Vol::xattrs`](crate::Vol::xattrs).
#[derive(Clone, Debug)]
pub struct Xattrs {
    held: Arc<Held>,
    path: Vec<u8>,
    node: NodeId,
}

impl Xattrs {
    pub(super) fn of(held: &Arc<Held>, path: &[u8]) -> VolResult<Self> {
        let found = held.walk(path, Follow::Yes);
        let found = found.map_err(|e| held.failed_at("find", path, e))?;
        Ok(Self {
            held: Arc::clone(held),
            path: path.to_vec(),
            node: found.node,
        })
    }

    /// Returns the names of the attributes: `user.comment`.
    ///
    /// # Errors
    /// `Unsupported` if the volume has none.
    pub fn names(&self) -> VolResult<Vec<Vec<u8>>> {
        self.done("list attributes of", self.held.session.listxattr(self.node))
    }

    /// Returns the value of an attribute.
    ///
    /// # Errors
    /// `NoXattr`; `Unsupported`.
    pub fn get(&self, name: impl AsRef<[u8]>) -> VolResult<Vec<u8>> {
        let value = self.held.session.getxattr(self.node, name.as_ref());
        self.done("read an attribute of", value)
    }

    /// Sets an attribute, whether it exists or not.
    ///
    /// # Errors
    /// `Invalid`, `NameTooLong` for the name; `TooBig`; `ReadOnly`, `NoSpace`; `Unsupported`.
    pub fn set(&self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> VolResult<()> {
        let (name, value) = (name.as_ref(), value.as_ref());
        let session = &self.held.session;
        let set = session.setxattr(self.node, name, value, SetXattr::Any);
        self.done("set an attribute of", set)
    }

    /// Removes an attribute.
    ///
    /// # Errors
    /// `NoXattr`; `ReadOnly`; `Unsupported`.
    pub fn remove(&self, name: impl AsRef<[u8]>) -> VolResult<()> {
        let removed = self.held.session.removexattr(self.node, name.as_ref());
        self.done("remove an attribute of", removed)
    }

    fn done<T>(&self, doing: &'static str, done: Result<T>) -> VolResult<T> {
        done.map_err(|e| self.held.failed_at(doing, &self.path, e))
    }
}
