//! Repairs a chunk of a directory, with the entries that can be recovered from its bytes.

use crate::directory::dir::{self, d_type, needed};
use crate::disk::ondisk::{DIRBLKSIZ, DIRECT_HEAD, Stored};
use crate::disk::volume::Volume;
use volary_core::{FileKind, Name};

/// Bytes of a chunk.
pub(super) type Chunk = [u8; DIRBLKSIZ];

/// Where `.` and `..` stand in a directory, and where the entries behind them begin.
const DOTS: [usize; 2] = [0, 12];
const BEHIND_DOTS: usize = 24;

/// An entry that is kept.
#[derive(Clone, Copy)]
struct Kept {
    at: usize,
    name_len: usize,
}

/// Repairs chunks.
pub(super) struct Salvage<'a> {
    pub(super) volume: &'a Volume,
    /// Returns whether an inode is in use.
    pub(super) is_used: &'a dyn Fn(u32) -> bool,
}

impl Salvage<'_> {
    /// Returns the chunk with all entries that are whole, and those of which only a length is
    /// damaged. What follows the damage is kept only if valid entries fill the chunk from there to
    /// its end.
    pub(super) fn whole(&self, chunk: &Chunk) -> Chunk {
        let (mut kept, mut at) = (Vec::new(), 0);
        while at < DIRBLKSIZ {
            if let Some((one, end)) = self.entry(chunk, at) {
                kept.extend(one);
                at = end;
                continue;
            }
            let named = self.named(chunk, at);
            kept.extend(named);
            let from = at + named.map_or(4, |one| Self::room(one.name_len));
            let mut next = (from..DIRBLKSIZ).step_by(4);
            match next.find(|&next| self.goes_on(chunk, next)) {
                Some(next) => at = next,
                None => break,
            }
        }
        self.filled(chunk, &kept)
    }

    /// Puts the entries `.` and `..` in front of a chunk. `..` keeps its target if it had one that
    /// is in use.
    pub(super) fn with_dots(&self, chunk: &Chunk, dir: u32, parent: u32) -> Chunk {
        let mut chunk = self.whole(chunk);
        let all = dir::entries(self.volume, &chunk);
        let above = all
            .filter(|entry| entry.name == b"..")
            .map(|entry| entry.ino);
        let above = above.filter(|&ino| (self.is_used)(ino)).last();
        let all = dir::entries(self.volume, &chunk).filter(|entry| entry.is_used());
        let others = all.filter(|entry| entry.at >= BEHIND_DOTS as u64 && !entry.is_dots());
        let mut kept: Vec<Kept> = DOTS
            .iter()
            .zip(1..)
            .map(|(&at, name_len)| Kept { at, name_len })
            .collect();
        kept.extend(others.map(|entry| Kept {
            at: usize::try_from(entry.at).unwrap_or(0),
            name_len: entry.name.len(),
        }));
        let order = self.volume.order;
        for (at, ino) in DOTS.into_iter().zip([dir, above.unwrap_or(parent)]) {
            ino.put(order, &mut chunk, at);
            b"..\0\0".put(order, &mut chunk, at + DIRECT_HEAD);
            if self.volume.has_types {
                d_type(FileKind::Dir).put(order, &mut chunk, at + 6);
            }
        }
        // The first of the two entries is `.`, with a single dot.
        0_u8.put(order, &mut chunk, DIRECT_HEAD + 1);
        self.filled(&chunk, &kept)
    }

    /// Returns the entry at `at`, if it is whole, and where it ends. Free room is given as `None`
    /// with its end.
    fn entry(&self, chunk: &Chunk, at: usize) -> Option<(Option<Kept>, usize)> {
        let (ino, name, end) = dir::whole(self.volume, chunk, at)?;
        if ino == 0 {
            return Some((None, end));
        }
        let one = Kept {
            at,
            name_len: name.len(),
        };
        is_name(name).then_some((Some(one), end))
    }

    /// Returns the entry at `at` judging by its name alone, which ends with a zero.
    fn named(&self, chunk: &Chunk, at: usize) -> Option<Kept> {
        let ino = u32::get(self.volume.order, chunk.get(at..at + DIRECT_HEAD)?, 0);
        let rest = chunk.get(at + DIRECT_HEAD..)?;
        let name_len = rest.iter().take(256).position(|&byte| byte == 0)?;
        let is_one = (self.is_used)(ino) && is_name(rest.get(..name_len)?);
        is_one.then_some(Kept { at, name_len })
    }

    /// Returns whether only free room and entries of inodes in use fill the chunk from `at` on.
    fn goes_on(&self, chunk: &Chunk, mut at: usize) -> bool {
        while at < DIRBLKSIZ {
            match self.entry(chunk, at) {
                Some((Some(one), _))
                    if !(self.is_used)(u32::get(self.volume.order, chunk, one.at)) =>
                {
                    return false;
                }
                Some((_, end)) => at = end,
                None => return false,
            }
        }
        true
    }

    /// Returns the chunk with these entries, each extended up to the next one.
    fn filled(&self, chunk: &Chunk, kept: &[Kept]) -> Chunk {
        let order = self.volume.order;
        let mut chunk = *chunk;
        let first = kept.first().map_or(DIRBLKSIZ, |one| one.at);
        if first > 0 {
            0_u32.put(order, &mut chunk, 0);
            length(first).put(order, &mut chunk, 4);
            // Linux requires even a free entry to be long enough for its name.
            0_u16.put(order, &mut chunk, 6);
        }
        let ends = kept.iter().skip(1).map(|next| next.at).chain([DIRBLKSIZ]);
        for (one, end) in kept.iter().zip(ends) {
            length(end - one.at).put(order, &mut chunk, one.at + 4);
            match self.volume.has_types {
                true => (one.name_len as u8).put(order, &mut chunk, one.at + 7),
                false => length(one.name_len).put(order, &mut chunk, one.at + 6),
            }
        }
        chunk
    }

    fn room(name: usize) -> usize {
        usize::try_from(needed(name)).unwrap_or(DIRBLKSIZ)
    }
}

fn length(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(0)
}

fn is_name(name: &[u8]) -> bool {
    name == b"." || name == b".." || Name::new(name).is_ok()
}
