//! Entries of the FAT: their values, as they are stored, and what these mean.

use crate::volume::layout::FatKind;

/// What an entry of the FAT says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The cluster is free.
    Free,
    /// The chain goes on there; a cluster that exists.
    Next(u32),
    /// The chain ends here.
    End,
    /// The cluster must not be used.
    Bad,
    /// A value without a meaning: 1, or past the last cluster.
    Wrong(u32),
}

/// Returns what a value means on a volume whose highest cluster number is `last`.
pub(crate) fn meaning(kind: FatKind, last: u32, value: u32) -> Link {
    match value {
        0 => Link::Free,
        n if (2..=last).contains(&n) => Link::Next(n),
        n if n == kind.bad() => Link::Bad,
        n if n >= kind.end_min() => Link::End,
        n => Link::Wrong(n),
    }
}

/// Returns the value of an entry; 0 past the end.
pub(crate) fn entry(kind: FatKind, bytes: &[u8], index: u32) -> u32 {
    let i = index as usize;
    match kind {
        FatKind::Fat12 => {
            let at = i + i / 2;
            let pair = chunk::<2>(bytes, at);
            let both = u32::from(u16::from_le_bytes(pair));
            if i.is_multiple_of(2) {
                both & 0xfff
            } else {
                both >> 4
            }
        }
        FatKind::Fat16 => u16::from_le_bytes(chunk(bytes, i * 2)).into(),
        FatKind::Fat32 => u32::from_le_bytes(chunk(bytes, i * 4)) & 0x0fff_ffff,
    }
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .unwrap_or([0; N])
}

/// Sets the value of an entry and gives the bytes that it stands in: where
/// they start and how many. Past the end nothing happens.
pub(crate) fn set_entry(kind: FatKind, bytes: &mut [u8], index: u32, value: u32) -> (usize, usize) {
    let i = index as usize;
    let [v0, v1, ..] = value.to_le_bytes();
    match kind {
        FatKind::Fat12 => {
            let at = i + i / 2;
            if let Some([a, b]) = bytes.get_mut(at..).and_then(|b| b.first_chunk_mut()) {
                if i.is_multiple_of(2) {
                    *a = v0;
                    *b = (*b & 0xf0) | (v1 & 0x0f);
                } else {
                    *a = (*a & 0x0f) | (v0 << 4);
                    *b = (v1 << 4) | (v0 >> 4);
                }
            }
            (at, 2)
        }
        FatKind::Fat16 => {
            if let Some(two) = bytes.get_mut(i * 2..).and_then(|b| b.first_chunk_mut()) {
                *two = [v0, v1];
            }
            (i * 2, 2)
        }
        FatKind::Fat32 => {
            if let Some(four) = bytes.get_mut(i * 4..).and_then(|b| b.first_chunk_mut()) {
                let kept = u32::from_le_bytes(*four) & 0xf000_0000;
                *four = (kept | (value & 0x0fff_ffff)).to_le_bytes();
            }
            (i * 4, 4)
        }
    }
}
