//! [`FileId`]: how opens are named.

use super::{Cursor, Short};

/// How an open is named on the wire (`SMB2_FILEID`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    pub(crate) persistent: u64,
    pub(crate) volatile: u64,
}

impl FileId {
    /// Stands for the file of the request before, in a related request.
    pub(crate) const PREVIOUS: Self = Self {
        persistent: u64::MAX,
        volatile: u64::MAX,
    };

    /// Reads one.
    ///
    /// # Errors
    /// [`Short`] if it is not there.
    pub(crate) fn read(c: &mut Cursor<'_>) -> Result<Self, Short> {
        Ok(Self {
            persistent: c.u64()?,
            volatile: c.u64()?,
        })
    }
}
