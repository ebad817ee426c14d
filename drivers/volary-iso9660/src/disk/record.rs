//! Directory records, checked.

use crate::disk::ondisk::{DirectoryRecord, RECORD_LEN, flag};
use volary_core::{Error, Result};
use zerocopy::FromBytes;

/// A directory record (ECMA-119, 9.1).
#[derive(Clone)]
pub(crate) struct Record {
    /// Its place on the device, in bytes.
    pub(crate) at: u64,
    /// Its length in bytes.
    pub(crate) len: usize,
    /// The structure as stored.
    pub(crate) raw: DirectoryRecord,
    /// The file identifier.
    pub(crate) name: Vec<u8>,
    /// The system use area behind the name.
    pub(crate) system_use: Vec<u8>,
}

impl Record {
    /// Parses the record at the start of `bytes`, which are at `at` on the device. Returns `None`
    /// if its length is 0.
    ///
    /// # Errors
    /// `Corrupt` if the record is too short for its fields, or reaches past `bytes`.
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
        // The system use area begins at an even offset.
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

    /// Returns whether it is a directory's record of its parent.
    pub(crate) fn is_parent(&self) -> bool {
        self.name == [1]
    }

    /// Returns whether the data are interleaved: in pieces with gaps between them.
    pub(crate) fn is_interleaved(&self) -> bool {
        self.raw.file_unit_size != 0 || self.raw.interleave_gap_size != 0
    }

    /// Returns the length of the data, in bytes.
    pub(crate) fn size(&self) -> u64 {
        u64::from(self.raw.data_length.get())
    }
}
