//! A loader's order: random within a window that moves over the disk.

use crate::delivering::outlet::{Job, Outlet};
use crate::interface::options::Shuffle;
use crate::listing::list::{Done, Piece};
use crate::state::part::Part;
use crate::sweeps::sweep::Sweep;
use std::ops::ControlFlow;

/// Delivers the files that have fragments, window by window.
pub(crate) fn deliver(part: &Part<'_>, how: Shuffle, outlet: &Outlet<'_>) -> ControlFlow<()> {
    let most = how.window.min(part.run.assembly.max());
    let size = |file: &u32| part.list.files.head(*file as usize).map_or(0, |f| f.size);
    let mut rng = SplitMix(how.seed);
    let files = by_place(&part.list.pieces, part.list.files.len());
    let mut rest = files.as_slice();
    let mut of_window = vec![false; part.list.files.len()];
    while !rest.is_empty() {
        let mut sum = 0_u64;
        let fits = |file: &&u32| {
            sum = sum.saturating_add(size(file));
            sum <= most
        };
        // A window has at least one file: a file in one piece always fits into the memory.
        let count = rest.iter().take_while(fits).count().max(1);
        let (window, after) = rest.split_at(count.min(rest.len()));
        mark(&mut of_window, window, true);
        let is_in = |file| of_window.get(file as usize) == Some(&true);
        let pieces = part.list.pieces_if(is_in);
        let mut whole = Sweep::new(part, &pieces).keep(outlet)?;
        mark(&mut of_window, window, false);
        for file in shuffled(window, &mut rng) {
            if let Some(buf) = whole.remove(&file) {
                outlet.give(Job::Own(file, buf))?;
            }
        }
        rest = after;
    }
    ControlFlow::Continue(())
}

fn mark(of_window: &mut [bool], files: &[u32], is_in: bool) {
    for file in files {
        if let Some(mark) = of_window.get_mut(*file as usize) {
            *mark = is_in;
        }
    }
}

/// Returns files in the order of their first fragments.
fn by_place(pieces: &[Piece], count: usize) -> Vec<u32> {
    let seen = Done::new(count);
    let is_first = |piece: &&Piece| {
        let file = piece.file as usize;
        let is_first = !seen.has(file);
        seen.set(file);
        is_first
    };
    pieces.iter().filter(is_first).map(|p| p.file).collect()
}

fn shuffled(files: &[u32], rng: &mut SplitMix) -> Vec<u32> {
    let mut order = files.to_vec();
    for i in (1..order.len()).rev() {
        order.swap(i, rng.below(i + 1));
    }
    order
}

/// SplitMix64, a pseudorandom number generator: the same seed gives the same numbers.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}
