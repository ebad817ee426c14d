//! Directory records, checked.

use crate::ondisk::{DirectoryRecord, RECORD_LEN, flag};
use volary_core::{Error, Result};
use zerocopy::FromBytes;

/// A directory record (ECMA-119, 9.1).
#[derive(Clone)]
pub(crate) struct Record {
    /// Where it stands, in bytes on the device.
    pub(crate) at: u64,
    /// Its length in bytes.
    pub(crate) len: usize,
    /// The structure as stored.
    pub(crate) raw: DirectoryRecord,
    /// The file identifier.
    pub(crate) name: Vec<u8>,
    /// What stands behind it.
    pub(crate) system_use: Vec<u8>,
}

impl Record {
    /// Returns the record at the head of `bytes`, which stand at `at`; `None` where there
    /// is none (a length of 0).
    ///
    /// # Errors
    /// `Corrupt` if it is too short for itself or reaches past `bytes`.
    pub(crate) fn parse(at: u64, bytes: &[u8]) -> Result<Option<Self>> {
        let len = usize::from(bytes.first().copied().unwrap_or(0));
        if len == 0 {
            return Ok(None);
        }
        let bad = |what, found: usize, expected: String| {
            Error::corrupt(what, at, found.to_string(), expected)
        };
        let bytes = bytes
            .get(..len)
            .ok_or_else(|| bad("LEN_DR", len, format!("at most {}", bytes.len())))?;
        let (raw, rest) = DirectoryRecord::read_from_prefix(bytes)
            .map_err(|_| bad("LEN_DR", len, format!("at least {}", RECORD_LEN + 1)))?;
        let name_len = usize::from(raw.identifier_length);
        let name = rest.get(..name_len).filter(|name| !name.is_empty());
        let name = name
            .ok_or_else(|| bad("LEN_FI", name_len, format!("1 to {}", rest.len())))?
            .to_vec();
        // The system use area begins at an even place.
        let pad = usize::from(name_len % 2 == 0);
        let system_use = rest.get(name_len + pad..).unwrap_or_default().to_vec();
        Ok(Some(Self {
            at,
            len,
            raw,
            name,
            system_use,
        }))
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.raw.file_flags & flag != 0
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.has(flag::DIRECTORY)
    }

    /// Returns whether it is a directory's record of itself.
    pub(crate) fn is_self(&self) -> bool {
        self.name == [0]
    }

    /// Returns whether it is a directory's record of the one that holds it.
    pub(crate) fn is_parent(&self) -> bool {
        self.name == [1]
    }

    /// Returns whether the data lie in pieces with gaps between.
    pub(crate) fn is_interleaved(&self) -> bool {
        self.raw.file_unit_size != 0 || self.raw.interleave_gap_size != 0
    }

    /// Length of the data, in bytes.
    pub(crate) fn size(&self) -> u64 {
        u64::from(self.raw.data_length.get())
    }
}
