//! Reservations ahead of files that grow.
//!
//! The policies put a block behind the one before it. If several files grow in turn, each finds
//! another file's block there. So the blocks behind the last one of an open file are reserved for
//! it ([`Reservations`](volary_block::Reservations)). A file that cannot grow in place continues in
//! a run of free blocks of the same length. The policies still choose the section's group.
//!
//! Nothing is reserved behind the first piece of a file, because most files are written once and
//! closed.

use super::{Alloc, Run};
use crate::disk::volume::Volume;
use crate::groups::policy::{Policy, Wish};
use crate::inodes::blocks::Reader;
use volary_block::Reservation;
use volary_core::Result;

/// Groups in which a search looks for a long run.
const GROUPS: usize = 4;

/// How many times files grow at the next free block without a search, after a search found no run
/// of a quarter of the wished length.
const REST: u32 = 128;

/// Most blocks for which room is reserved before the first one that was written.
const BEFORE_MAX: u64 = 32;

/// A file that grows through an open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grower {
    pub(crate) ino: u32,
    /// The block that it gets now.
    pub(crate) lbn: u64,
    /// How many blocks it has.
    pub(crate) blocks: u64,
    /// The time in seconds.
    pub(crate) now: i64,
}

impl Grower {
    fn owner(&self) -> u64 {
        self.ino.into()
    }

    /// Returns the place of the file's block in a reservation.
    fn place_in(&self, kept: &Reservation, frag: u64) -> Option<u64> {
        let first = kept.first + self.lbn.checked_sub(kept.at)? * frag;
        kept.range().contains(&first).then_some(first)
    }
}

impl Alloc {
    /// Returns the place for a block of a growing file, with the block before it at `before`. That
    /// is the wished place, if it is free and not reserved for another file. Otherwise it is the
    /// start of a long run.
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
        // The first block of a section goes where the policy says, and others where the file ends.
        // A block that is written before its predecessors needs room for them too.
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

    /// Reserves the free room behind a piece of a growing file, unless an existing reservation of
    /// the file continues there.
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

    /// Returns whether a block of a file lies in a run of at least `count` blocks that is reserved
    /// for the file.
    pub(crate) fn is_in_row(&self, volume: &Volume, ino: u32, first: u64, count: u64) -> bool {
        let kept = self.kept.others_at(first, None);
        let own = self.kept.others_at(first, Some(ino.into()));
        own.is_none() && kept.is_some_and(|kept| kept.end - kept.start >= count * volume.frag)
    }

    /// Returns the block's place in the file's reservation, if that place fits.
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

    /// Returns how many blocks before this one need room too, because it is written before them:
    /// those of its section that no reservation is for.
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

    /// Drops the reservations of a file.
    pub(crate) fn give_up(&mut self, ino: u32) {
        self.kept.give_back(ino.into());
    }

    /// Sets other parameters. Reservations made with the old ones are dropped.
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

    /// Returns whether the block at `first` is free, and not reserved for another file.
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

    /// Returns the first fragment of a run of `count` free blocks, and its length. Searches the
    /// wished group from the wished place on, then other groups. If no run is long enough, returns
    /// the longest one seen.
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
                // A file stays in its group while there is room, so a run of half the length will
                // do.
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
