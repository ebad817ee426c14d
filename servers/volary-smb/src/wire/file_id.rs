//! [`FileId`]: the id of an open.

use super::{Cursor, Short};

/// The id of an open in the protocol (`SMB2_FILEID`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    pub(crate) persistent: u64,
    pub(crate) volatile: u64,
}

impl FileId {
    /// Means the previous request's file, in a related request.
    pub(crate) const PREVIOUS: Self = Self {
        persistent: u64::MAX,
        volatile: u64::MAX,
    };

    /// Parses an id.
    ///
    /// # Errors
    /// [`Short`] if bytes are missing.
    pub(crate) fn read(c: &mut Cursor<'_>) -> Result<Self, Short> {
        Ok(Self {
            persistent: c.u64()?,
            volatile: c.u64()?,
        })
    }
}
