//! Raw directory bytes to records: a short entry with the long name that
//! belongs to it. Takes any chunks of whole entries, allocates nothing.
//!
//! What does not belong together is reported, not guessed at: long parts
//! without their short entry are [`Event::Orphan`].

use crate::names::long::{Gather, PARTS_MAX};
use crate::names::record::{Long, LongStyle, Record};
use crate::names::short::checksum;
use crate::unix::paper;
use crate::volume::ondisk::{DirEntry, END, ENTRY_LEN, FREE, LAST_LONG_ENTRY, LongEntry};
use std::ops::ControlFlow;
use zerocopy::{FromBytes, transmute_ref};

/// What a stretch of a directory holds.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// An entry.
    Record(Record<'a>),
    /// A free slot before the end.
    Free(u32),
    /// Parts of a long name that belong to nothing.
    Orphan {
        /// The first slot.
        first: u32,
        /// How many follow each other.
        count: u32,
    },
    /// This slot and all after it are free.
    End(u32),
}

/// Reads a directory from its first slot on.
pub(crate) struct Scanner {
    style: LongStyle,
    /// The next slot.
    slot: u32,
    /// Where the parts in `gather`, or orphans, begin.
    first: u32,
    /// Slots from `first` on that are parts without a whole.
    orphans: u32,
    gather: Gather,
    /// The paper's short entry whose tail comes next.
    head: Option<DirEntry>,
    ended: bool,
}

impl Scanner {
    /// From slot 0 on.
    pub(crate) const fn new(style: LongStyle) -> Self {
        Self {
            style,
            slot: 0,
            first: 0,
            orphans: 0,
            gather: Gather::new(),
            head: None,
            ended: false,
        }
    }

    /// Returns the slot that comes next.
    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    /// Returns whether the end mark has been passed.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Reads the next bytes: whole entries; what is less at the end is passed
    /// over. Stops early where `each` says so, and just after the end mark.
    pub(crate) fn feed<B>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Event<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let (entries, _) = bytes.as_chunks::<ENTRY_LEN>();
        for raw in entries {
            if self.ended {
                break;
            }
            let slot = self.slot;
            self.slot += 1;
            self.entry(slot, raw, &mut each)?;
        }
        ControlFlow::Continue(())
    }

    /// Says what is unfinished at the end of the last chunk.
    pub(crate) fn finish<B>(
        &mut self,
        mut each: impl FnMut(Event<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.flush_head(&mut each)?;
        self.flush_orphans(self.slot, &mut each)
    }

    fn entry<B>(
        &mut self,
        slot: u32,
        raw: &[u8; ENTRY_LEN],
        each: &mut impl FnMut(Event<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let first = raw.first().copied().unwrap_or(END);
        if let Some(head) = self.head.take() {
            if first != END && first != FREE && paper::is_tail(raw) {
                return each(Event::Record(Record {
                    first_slot: slot - 1,
                    slot: slot - 1,
                    last_slot: slot,
                    short: head,
                    long: Long::Paper(paper::tail_bytes(raw)),
                }));
            }
            each(plain(slot - 1, head))?;
        }
        match first {
            END => {
                self.flush_orphans(slot, each)?;
                self.ended = true;
                each(Event::End(slot))
            }
            FREE => {
                self.flush_orphans(slot, each)?;
                each(Event::Free(slot))
            }
            _ => {
                let entry: &DirEntry = transmute_ref!(raw);
                if entry.is_long() {
                    self.part(slot, transmute_ref!(raw), each)
                } else {
                    self.short(slot, entry, each)
                }
            }
        }
    }

    fn part<B>(
        &mut self,
        slot: u32,
        part: &LongEntry,
        each: &mut impl FnMut(Event<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        if !self.gather.is_empty() && self.gather.next(part) {
            return ControlFlow::Continue(());
        }
        if Gather::begins(part) || !self.gather.is_empty() {
            self.flush_orphans(slot, each)?;
        }
        if self.orphans == 0 {
            self.first = slot;
        }
        if !self.gather.begin(part) {
            self.orphans += 1;
        }
        ControlFlow::Continue(())
    }

    fn short<B>(
        &mut self,
        slot: u32,
        entry: &DirEntry,
        each: &mut impl FnMut(Event<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        if self.style == LongStyle::Paper && paper::has_tail(entry) {
            self.flush_orphans(slot, each)?;
            self.head = Some(*entry);
            return ControlFlow::Continue(());
        }
        if self.gather.is_empty() || entry.is_label() {
            self.flush_orphans(slot, each)?;
            return each(plain(slot, *entry));
        }
        let Some(units) = self.gather.finish(checksum(&entry.DIR_Name)) else {
            self.flush_orphans(slot, each)?;
            return each(plain(slot, *entry));
        };
        let flow = each(Event::Record(Record {
            first_slot: self.first,
            slot,
            last_slot: slot,
            short: *entry,
            long: Long::Vfat(units),
        }));
        self.gather.clear();
        flow
    }

    fn flush_head<B>(
        &mut self,
        each: &mut impl FnMut(Event<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        match self.head.take() {
            Some(head) => each(plain(self.slot.saturating_sub(1), head)),
            None => ControlFlow::Continue(()),
        }
    }

    /// Reports parts gathered or passed over that end before `slot`.
    fn flush_orphans<B>(
        &mut self,
        slot: u32,
        each: &mut impl FnMut(Event<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        if self.gather.is_empty() && self.orphans == 0 {
            return ControlFlow::Continue(());
        }
        self.gather.clear();
        self.orphans = 0;
        each(Event::Orphan {
            first: self.first,
            count: slot - self.first,
        })
    }
}

fn plain<'a>(slot: u32, short: DirEntry) -> Event<'a> {
    Event::Record(Record {
        first_slot: slot,
        slot,
        last_slot: slot,
        short,
        long: Long::None,
    })
}

/// Returns where the record of the short entry `at` begins: at the first part of its
/// long name, if the slots before it are one.
pub(crate) fn begin_of(slots: &[[u8; ENTRY_LEN]], at: usize) -> usize {
    for order in 1..=at.min(PARTS_MAX) {
        let Some(raw) = slots.get(at - order) else {
            return at;
        };
        let part: &LongEntry = transmute_ref!(raw);
        let entry: &DirEntry = transmute_ref!(raw);
        if !entry.is_long() || usize::from(part.LDIR_Ord & !LAST_LONG_ENTRY) != order {
            return at;
        }
        if part.LDIR_Ord & LAST_LONG_ENTRY != 0 {
            return at - order;
        }
    }
    at
}

/// Returns the entry in the first 32 bytes of `raw`, if there are that many.
pub(crate) fn entry_at(raw: &[u8]) -> Option<DirEntry> {
    DirEntry::read_from_prefix(raw).ok().map(|(entry, _)| entry)
}

#[cfg(test)]
mod tests;
