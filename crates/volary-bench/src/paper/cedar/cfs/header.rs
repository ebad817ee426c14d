//! A file's two header sectors: its properties and its run table.

use anyhow::{Context, Result, ensure};
use volary_sim::SECTOR;

/// Sectors of a header.
pub(super) const SECTORS: usize = 2;

/// Sectors in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) len: u64,
}

/// What a header says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) uid: u32,
    pub(super) version: u16,
    pub(super) keep: u16,
    /// Bytes of the file.
    pub(super) len: u64,
    /// When it was made, in milliseconds.
    pub(super) made: u64,
    pub(super) name: Vec<u8>,
    pub(super) runs: Vec<Run>,
}

impl Header {
    /// # Errors
    /// Of more runs than there is room for.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(SECTORS * SECTOR);
        bytes.extend(self.uid.to_le_bytes());
        bytes.extend(self.version.to_le_bytes());
        bytes.extend(self.keep.to_le_bytes());
        bytes.extend(self.len.to_le_bytes());
        bytes.extend(self.made.to_le_bytes());
        bytes.push(u8::try_from(self.name.len()).context("a name that is too long")?);
        bytes.extend(&self.name);
        bytes.push(u8::try_from(self.runs.len()).context("too many runs")?);
        for run in &self.runs {
            bytes.extend((run.first as u32).to_le_bytes());
            bytes.extend((run.len as u32).to_le_bytes());
        }
        ensure!(bytes.len() <= SECTORS * SECTOR, "too many runs");
        bytes.resize(SECTORS * SECTOR, 0);
        Ok(bytes)
    }

    /// # Errors
    /// Of bytes that are no header.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut rest = bytes;
        let mut header = Self {
            uid: u32::from_le_bytes(take(&mut rest)?),
            version: u16::from_le_bytes(take(&mut rest)?),
            keep: u16::from_le_bytes(take(&mut rest)?),
            len: u64::from_le_bytes(take(&mut rest)?),
            made: u64::from_le_bytes(take(&mut rest)?),
            ..Self::default()
        };
        let [len] = take(&mut rest)?;
        let (name, after) = rest
            .split_at_checked(usize::from(len))
            .context("a header without its name")?;
        header.name = name.to_vec();
        rest = after;
        let [runs] = take(&mut rest)?;
        for _ in 0..runs {
            header.runs.push(Run {
                first: u32::from_le_bytes(take(&mut rest)?).into(),
                len: u32::from_le_bytes(take(&mut rest)?).into(),
            });
        }
        Ok(header)
    }
}

/// Takes bytes from the front.
fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk().context("a header that ends")?;
    *rest = after;
    Ok(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_what_was_put_into_it() {
        let mut header = Header {
            uid: 7,
            version: 2,
            keep: 1,
            len: 3500,
            made: 1 << 40,
            name: b"<Cedar>Small.mesa".to_vec(),
            runs: vec![Run { first: 9, len: 3 }, Run { first: 40, len: 4 }],
        };
        let bytes = header.encode().unwrap();
        assert_eq!(bytes.len(), SECTORS * SECTOR);
        assert_eq!(Header::decode(&bytes).unwrap(), header);
        assert!(Header::decode(&bytes[..40]).is_err());
        header.runs = vec![Run { first: 9, len: 3 }; 200];
        assert!(header.encode().is_err());
    }
}
