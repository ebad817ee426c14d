//! Merges fragments into requests, and spreads files over sweeps.

use crate::listing::list::{Done, List, Piece};
use std::collections::HashMap;
use std::ops::Range;

/// How fragments are merged into requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Merge {
    /// The largest gap between two fragments that is read along with both; `None` for a request for
    /// each.
    pub(crate) gap: Option<u64>,
    /// The largest request, unless one fragment is larger.
    pub(crate) request: u64,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The indexes of its fragments.
    pub(crate) pieces: Range<usize>,
    pub(crate) at: u64,
    pub(crate) len: u64,
}

impl Merge {
    /// Returns the first request for fragments that are not done, starting at index `from` of the
    /// sorted fragments.
    pub(crate) fn next(self, pieces: &[Piece], done: &Done, from: usize) -> Option<Span> {
        let first = (from..pieces.len()).find(|&i| !done.has(i))?;
        let start = pieces.get(first)?;
        let mut end = start.end();
        let mut next = first + 1;
        if let Some(gap) = self.gap {
            let rest = pieces.get(next..).unwrap_or_default();
            for (piece, i) in rest.iter().zip(next..) {
                let new_end = end.max(piece.end());
                let is_longer = new_end > end && new_end - start.at > self.request;
                if piece.at > end.saturating_add(gap) || is_longer {
                    break;
                }
                next = i + 1;
                // A fragment that is done does not lengthen the request.
                if !done.has(i) {
                    end = new_end;
                }
            }
        }
        Some(Span {
            pieces: first..next,
            at: start.at,
            len: end - start.at,
        })
    }
}

/// The most sweeps. Files that fit into none go into the last, where cleaning helps.
const SWEEPS_MAX: usize = 64;

/// Spreads files over sweeps, so that the files being assembled at any point of a sweep take at
/// most `room` bytes. Uses first fit, in the order of first fragments. Returns the sweep of each
/// file that has to be assembled; all others are in sweep 0. Also returns the number of sweeps.
pub(crate) fn first_fit(list: &List, room: u64, copied: impl Fn(u32) -> bool) -> (Vec<u8>, usize) {
    let mut of_file = vec![0_u8; list.files.len()];
    let mut loads: Vec<u64> = vec![0];
    let mut left: HashMap<u32, u32> = HashMap::new();
    for piece in list.pieces.iter().filter(|p| copied(p.file)) {
        let Some(file) = list.files.head(piece.file as usize) else {
            continue;
        };
        let sweep = of_file.get_mut(piece.file as usize);
        let Some(sweep) = sweep else { continue };
        let rest = left.entry(piece.file).or_insert_with(|| {
            let fits = loads.iter().position(|load| load + file.size <= room);
            let found = fits.unwrap_or_else(|| {
                if loads.len() < SWEEPS_MAX {
                    loads.push(0);
                }
                loads.len() - 1
            });
            *sweep = found as u8;
            if let Some(load) = loads.get_mut(found) {
                *load += file.size;
            }
            file.fragments
        });
        *rest -= 1;
        if *rest == 0 {
            left.remove(&piece.file);
            if let Some(load) = loads.get_mut(usize::from(*sweep)) {
                *load -= file.size;
            }
        }
    }
    (of_file, loads.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(at: u64, len: u32) -> Piece {
        Piece {
            at,
            file: 0,
            offset: 0,
            len,
        }
    }

    fn spans(merge: Merge, pieces: &[Piece], done: &Done) -> Vec<(u64, u64)> {
        let (mut all, mut from) = (Vec::new(), 0);
        while let Some(span) = merge.next(pieces, done, from) {
            from = span.pieces.end;
            all.push((span.at, span.len));
        }
        all
    }

    #[test]
    fn what_is_close_is_one_request_up_to_its_size() {
        let pieces = [
            piece(0, 10),
            piece(12, 10),
            piece(40, 10),
            piece(50, 100),
            piece(60, 10),
            piece(200, 500),
        ];
        let done = Done::new(pieces.len());
        let merge = |gap, request| Merge { gap, request };
        let all = |m| spans(m, &pieces, &done);
        assert_eq!(all(merge(Some(5), 1000)), [(0, 22), (40, 110), (200, 500)]);
        assert_eq!(all(merge(Some(100), 64)), [(0, 50), (50, 100), (200, 500)]);
        assert_eq!(all(merge(None, 1000)).len(), 6);
        done.set(0);
        done.set(2);
        assert_eq!(
            spans(merge(Some(5), 1000), &pieces, &done),
            [(12, 10), (50, 100), (200, 500)]
        );
    }
}
