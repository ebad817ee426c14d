//! The content of a file, in memory or in a file of the host.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// The bytes of a file.
#[derive(Clone, Debug)]
pub enum Content {
    /// All bytes, in memory.
    Bytes(Arc<[u8]>),
    /// A range of a file on the host.
    Host {
        /// The file.
        file: PathBuf,
        /// The offset of the first byte in `file`.
        at: u64,
        /// The number of bytes.
        len: u64,
    },
    /// Zeros, except for some ranges.
    Sparse {
        /// The length of the file.
        len: u64,
        /// The other ranges, in order: their offsets and bytes.
        parts: Vec<(u64, Arc<[u8]>)>,
    },
    /// A file of which only some ranges are known.
    Parts {
        /// The length of the file.
        len: u64,
        /// The known ranges: their offsets and bytes.
        parts: Vec<(u64, Vec<u8>)>,
    },
}

impl Default for Content {
    fn default() -> Self {
        Self::Bytes(Arc::from([]))
    }
}

impl Content {
    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Host { len, .. } | Self::Sparse { len, .. } | Self::Parts { len, .. } => *len,
        }
    }

    /// Returns whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns what a read of `want` bytes at `offset` must return, or `None` if those bytes are
    /// not known.
    ///
    /// # Panics
    /// If the host's file cannot be read.
    pub fn read(&self, offset: u64, want: usize) -> Option<Vec<u8>> {
        let rest = self.len().saturating_sub(offset);
        let want = usize::try_from(rest).map_or(want, |rest| want.min(rest));
        if want == 0 {
            return Some(Vec::new());
        }
        match self {
            Self::Bytes(bytes) => {
                let from = usize::try_from(offset).ok()?;
                bytes.get(from..from + want).map(<[u8]>::to_vec)
            }
            Self::Host { file, at, .. } => {
                let mut buf = vec![0; want];
                let read = File::open(file).and_then(|f| f.read_exact_at(&mut buf, at + offset));
                read.unwrap_or_else(|e| panic!("{}: {e}", file.display()));
                Some(buf)
            }
            Self::Sparse { parts, .. } => {
                let mut buf = vec![0; want];
                for (at, bytes) in parts {
                    overlay(&mut buf, offset, *at, bytes);
                }
                Some(buf)
            }
            Self::Parts { parts, .. } => parts.iter().find_map(|(at, bytes)| {
                let from = usize::try_from(offset.checked_sub(*at)?).ok()?;
                bytes.get(from..from.checked_add(want)?).map(<[u8]>::to_vec)
            }),
        }
    }
}

/// Copies the bytes that lie from `at` on into a buffer that begins at `offset`.
fn overlay(buf: &mut [u8], offset: u64, at: u64, bytes: &[u8]) {
    let from = at.max(offset);
    let to = (at + bytes.len() as u64).min(offset + buf.len() as u64);
    if from < to {
        let len = (to - from) as usize;
        let (there, here) = ((from - offset) as usize, (from - at) as usize);
        buf[there..there + len].copy_from_slice(&bytes[here..here + len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sparse_reads_as_if_all_of_it_were_there() {
        let mut all = [0; 100];
        all[..3].copy_from_slice(b"abc");
        all[50..52].copy_from_slice(b"de");
        let parts = vec![(0, Arc::from(*b"abc")), (50, Arc::from(*b"de"))];
        let sparse = Content::Sparse { len: 100, parts };
        for offset in 0..=101_u64 {
            for want in [0, 1, 2, 49, 51, 200] {
                let from = (offset as usize).min(100);
                let to = (from + want).min(100);
                let got = sparse.read(offset, want).expect("all is known");
                assert_eq!(got, all[from..to], "{want} at {offset}");
            }
        }
    }
}
