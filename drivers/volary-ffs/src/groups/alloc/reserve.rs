//! Room ahead of files that grow.
//!
//! The policies put a block behind the one before it, but of files that grow in turns each
//! finds another's block there. So the blocks behind the last one of an open file are kept for
//! it ([`Reservations`](volary_block::Reservations)), and a file that cannot go on where it
//! ends goes on where as many are free in a row. The section of a file that they are in, and so
//! their group, is chosen as ever.
//!
//! Nothing is kept behind the first piece of a file: most are written once and closed.

use super::{Alloc, Run};
use crate::disk::volume::Volume;
use crate::groups::policy::{Policy, Wish};
use crate::inodes::blocks::Reader;
use volary_block::Reservation;
use volary_core::Result;

/// Groups in which a search looks for a long stretch.
const GROUPS: usize = 4;

/// So often a file goes on at the next free block, without a search, after a search that
/// found no stretch of a quarter of what was wished for.
const REST: u32 = 128;

/// Blocks before one that came first, for which room is kept as well.
const BEFORE_MAX: u64 = 32;

/// A file that grows through an open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grower {
    pub(crate) ino: u32,
    /// The block that it gets.
    pub(crate) lbn: u64,
    /// How many it has.
    pub(crate) blocks: u64,
    /// The time in seconds.
    pub(crate) now: i64,
}

impl Grower {
    fn owner(&self) -> u64 {
        self.ino.into()
    }

    /// Returns where its block is to be in what is kept for it.
    fn place_in(&self, kept: &Reservation, frag: u64) -> Option<u64> {
        let first = kept.first + self.lbn.checked_sub(kept.at)? * frag;
        kept.range().contains(&first).then_some(first)
    }
}

impl Alloc {
    /// Returns the place for a block of a file that grows, with the block before it at `before`: where it
    /// is wished for, if it is free and nobody else's; else at the start of a long stretch.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn steer(
        &mut self,
        reader: &Reader<'_>,
        grower: &Grower,
        before: Option<u64>,
        wish: Wish,
    ) -> Result<Wish> {
        let (volume, lbn) = (reader.volume, grower.lbn);
        let most = self.policy.row(volume, lbn);
        if most == 0 {
            return Ok(wish);
        }
        let behind = before.map(|before| before + volume.frag);
        let within = self.policy.within_section(volume, lbn);
        let goes_on = self.own_place(reader, grower, |place| behind.is_none_or(|at| at == place));
        let apart = self.own_place(reader, grower, |_| true);
        let back = match before {
            Some(_) => 0,
            None => self.back(reader, grower),
        };
        // In a new section a block comes where the policy says; else where the file goes on. One
        // that comes before others needs room for them too.
        let next = behind.filter(|_| within > 0).unwrap_or(wish.near);
        let next = Some(next).filter(|_| back == 0);
        for place in goes_on.into_iter().chain(next).chain(apart) {
            if self.is_free_block(reader, place, wish)? {
                return Ok(Wish::at(volume, wish.ino, place));
            }
        }
        let ahead = self.ahead(reader, grower).min(most - 1);
        let found = self.seek(reader, wish, back + 1 + ahead)?;
        Ok(match found {
            Some((first, len)) => {
                let first = first + back.min(len - 1) * volume.frag;
                Wish::at(volume, wish.ino, first)
            }
            None => wish,
        })
    }

    /// Keeps what is free behind a piece that a growing file has got, unless what is kept for it
    /// goes on there.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn keep_ahead(
        &mut self,
        reader: &Reader<'_>,
        grower: &Grower,
        piece: Run,
    ) -> Result<()> {
        let (volume, lbn) = (reader.volume, grower.lbn);
        let most = self.policy.row(volume, lbn);
        if most == 0 || !piece.first.is_multiple_of(volume.frag) {
            return Ok(());
        }
        let here = |kept: &Reservation| grower.place_in(kept, volume.frag) == Some(piece.first);
        let kept = self.kept.use_of(grower.owner(), grower.now, here);
        if let Some(kept) = kept {
            let row = (kept.range().end - piece.first) / volume.frag;
            if row > 1 || row == most {
                return Ok(());
            }
        }
        let ahead = self.ahead(reader, grower).min(most - 1);
        let back = self.back(reader, grower);
        let number = volume.group_of(piece.first);
        self.tally(reader, number)?;
        let Some(field) = self.field(volume, number, None) else {
            return Ok(());
        };
        let block = (piece.first - volume.base(number)) / volume.frag;
        let row = 1 + match field.is_free(block + 1) {
            true => field.row(block + 1, ahead),
            false => 0,
        };
        let (at, first) = match kept {
            Some(kept) => (kept.at, kept.first),
            None => {
                let back = field.row_before(block, back);
                (lbn - back, piece.first - back * volume.frag)
            }
        };
        let end = piece.first + row * volume.frag;
        if end - first > volume.frag || piece.count < volume.frag {
            let reservation = Reservation {
                owner: grower.owner(),
                at,
                first,
                len: end - first,
            };
            self.kept.keep(reservation, grower.now);
        }
        Ok(())
    }

    /// Returns whether a block of a file lies in a stretch of at least so many blocks that is kept for it.
    pub(crate) fn is_in_row(&self, volume: &Volume, ino: u32, first: u64, count: u64) -> bool {
        let kept = self.kept.others_at(first, None);
        let own = self.kept.others_at(first, Some(ino.into()));
        own.is_none() && kept.is_some_and(|kept| kept.end - kept.start >= count * volume.frag)
    }

    /// Returns where a block is to be in what is kept for its file, if that place fits.
    fn own_place(
        &mut self,
        reader: &Reader<'_>,
        grower: &Grower,
        fits: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let frag = reader.volume.frag;
        let has = |kept: &Reservation| grower.place_in(kept, frag).is_some_and(&fits);
        let kept = self.kept.use_of(grower.owner(), grower.now, has)?;
        grower.place_in(&kept, frag)
    }

    /// For how many blocks before a growing file's block room is kept as well, if it comes before
    /// them: those of its section that no reservation is for.
    fn back(&mut self, reader: &Reader<'_>, grower: &Grower) -> u64 {
        let lbn = grower.lbn;
        let within = self.policy.within_section(reader.volume, lbn);
        let most = within.min(BEFORE_MAX);
        let frag = reader.volume.frag;
        let is_for = |lbn: u64| {
            move |kept: &Reservation| (kept.at..kept.at + kept.len / frag).contains(&lbn)
        };
        let before = (lbn - most..lbn).rev();
        let all = before.take_while(|&lbn| {
            let kept = self.kept.use_of(grower.owner(), grower.now, is_for(lbn));
            kept.is_none()
        });
        all.count() as u64
    }

    /// Gives back what is kept for a file.
    pub(crate) fn give_up(&mut self, ino: u32) {
        self.kept.give_back(ino.into());
    }

    /// Goes by other parameters from now on; what was kept by the old ones is given back.
    pub(crate) fn go_by(&mut self, policy: Policy) {
        self.policy = policy;
        self.kept.give_all_back();
    }

    /// Returns the number of blocks to reserve ahead of a growing file.
    fn ahead(&self, reader: &Reader<'_>, grower: &Grower) -> u64 {
        let free = u64::try_from(self.summary.total()[1]).unwrap_or(0);
        let bsize = reader.volume.bsize;
        self.kept.ahead(grower.owner(), grower.blocks, free, bsize)
    }

    /// Returns whether the block at `first` is free, and nobody else's.
    fn is_free_block(&mut self, reader: &Reader<'_>, first: u64, wish: Wish) -> Result<bool> {
        let volume = reader.volume;
        if first.saturating_add(volume.frag) > volume.size {
            return Ok(false);
        }
        let number = volume.group_of(first);
        self.tally(reader, number)?;
        let block = (first - volume.base(number)) / volume.frag;
        let field = self.field(volume, number, wish.owner());
        Ok(field.is_some_and(|field| field.is_free(block)))
    }

    /// Returns the first fragment of `count` free blocks in a row, and how many there are: in the group
    /// that is wished for, from the place that is wished for on; else in others. Where there are
    /// not so many, the longest row that it has seen.
    fn seek(&mut self, reader: &Reader<'_>, wish: Wish, count: u64) -> Result<Option<(u64, u64)>> {
        if self.rest > 0 {
            self.rest -= 1;
            return Ok(None);
        }
        let volume = reader.volume;
        let mut best: Option<(u64, u64)> = None;
        for number in Self::order(volume, wish.group).take(GROUPS) {
            let longest = best.map_or(0, |(_, len)| len);
            if self.summary.of(number)[1] <= i64::try_from(longest).unwrap_or(i64::MAX) {
                continue;
            }
            self.tally(reader, number)?;
            let Some(field) = self.field(volume, number, None) else {
                continue;
            };
            let base = volume.base(number);
            let from = match number == wish.group {
                true => wish.near.saturating_sub(base) / volume.frag,
                false => 0,
            };
            if let Some((block, len)) = field.longest(from, count).filter(|f| f.1 > longest) {
                best = Some((base + block * volume.frag, len));
                // A file stays in its group while that has room.
                if len * 2 >= count {
                    break;
                }
            }
        }
        if best.is_none_or(|(_, len)| len < count / 4) {
            self.rest = REST;
        }
        Ok(best)
    }
}
