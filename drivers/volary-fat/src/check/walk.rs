//! One look at all directories and chains. It changes nothing: what it finds
//! is a list of [`Problem`]s for others to tell of and to mend.
//!
//! Each chain is followed once. A cluster that is met a second time is either
//! in the same chain (a loop) or in another one (a cross-link); who else has
//! it is found out later, and only then.

use super::bits::Bits;
use super::fat::{Counts, Link};
use super::twins::Marks;
use super::volume::{Dir, NONE, Piece, Reader, Volume};
use crate::directory::slots::{Event, Scanner};
use crate::volume::judge;
use crate::volume::ondisk::{DIR_ENTRIES_MAX, ENTRY_LEN};
use std::ops::ControlFlow;
use volary_core::{Error, Progress, Result};

/// After so many problems a walk ends early: these are mended first.
const PROBLEMS_MAX: usize = 50_000;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The root directory's first cluster is free or bad in the FAT.
    RootStart,
    /// The first cluster, as given, cannot be one.
    Start(u32),
    /// After `last` the chain goes to `value`, where it cannot.
    Link {
        last: u32,
        value: u32,
    },
    /// After `last` the chain goes to `value` or comes back to itself, since
    /// one half of the entry was not written; it ends there.
    Half {
        last: u32,
        value: u32,
    },
    /// After `last` the chain comes back to itself.
    Loop {
        last: u32,
    },
    /// After `last` (0: at its start) the chain goes to `at`, another's.
    Cross {
        last: u32,
        at: u32,
    },
    /// The cluster at an index of a directory holds something else.
    Garbage {
        index: u32,
    },
    /// A directory holds something else altogether.
    NotDir,
    /// The sector of a directory at a byte cannot be read.
    Unreadable {
        at: u64,
    },
    /// A directory has more entries than there can be.
    TooLong,
    /// Slots of a unit, of the root directory or beside good dots, hold
    /// something else.
    GarbageSlots {
        unit: u32,
    },
    /// The entry in slot 0 (or 1) is not `.` (or `..`).
    Dot,
    /// `.` or `..` of the directory in another slot than its own.
    StrayDot,
    /// `..` leads elsewhere.
    DotDot,
    /// A directory's entry has a size.
    DirSize,
    /// The chain goes on after the size is covered; `last` is the last cluster
    /// that is needed, `clean` whether the rest is a sound chain.
    Excess {
        last: u32,
        clean: bool,
    },
    /// Size 0, but a chain.
    SizeZero,
    /// The chain has only so many clusters.
    SizeLong {
        clusters: u32,
    },
    /// A size, but no chain.
    NoChain,
    /// Entries stand after the end mark in slot `end`.
    AfterEnd {
        end: u32,
        torn: bool,
        sound: bool,
    },
    /// Parts of a long name without an entry.
    Orphan {
        count: u32,
    },
    /// Fields of a part of a long name that must be 0.
    LongField,
    /// A long name with characters that none can have.
    LongName,
    ShortName,
    NtBits,
    /// The entry shares a name with the one in this slot.
    Duplicate {
        with: u32,
    },
    /// A label outside of the root directory, or a second one.
    LabelPlace,
    /// A label with a size or a chain.
    LabelData,
    LabelName,
    /// A file or directory marked as a label.
    VolumeId,
    BadDate,
    UnixCheck,
    /// The extension, when it is to be reset.
    UnixData,
}

/// In which order problems are mended: what one step changes can make the
/// next ones vanish, or come to light.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Chains that lead nowhere, and directories that are none; entries that a
    /// torn directory hides, and that may need what others would free.
    Chains,
    /// Chains that meet.
    Crosses,
    /// All else.
    Details,
}

impl What {
    pub(super) fn phase(self) -> Phase {
        match self {
            Self::RootStart
            | Self::Start(_)
            | Self::Link { .. }
            | Self::Half { .. }
            | Self::Loop { .. }
            | Self::Garbage { .. }
            | Self::NotDir
            | Self::Unreadable { .. }
            | Self::TooLong
            | Self::AfterEnd { torn: true, .. } => Phase::Chains,
            Self::Cross { .. } => Phase::Crosses,
            _ => Phase::Details,
        }
    }
}

/// Something wrong, and where. Of a directory itself where `slot` is [`NONE`],
/// else of the entry there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem {
    pub(super) what: What,
    pub(super) dir: u32,
    pub(super) first: u32,
    pub(super) slot: u32,
}

/// How a chain ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// As it should.
    End,
    /// At a cluster that is free.
    Free(u32),
    /// At a value or cluster that cannot follow.
    Wrong(u32),
    /// At a cluster that was met before.
    Met(u32),
}

/// A chain as far as it is sound and new.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub(super) clusters: u32,
    /// Its last cluster; 0 if it has none.
    pub(super) last: u32,
    /// The last cluster that was asked for, if it is that long.
    pub(super) needed: u32,
    pub(super) stop: Stop,
}

/// What a walk saw.
pub(super) struct Walk {
    /// Clusters that a path leads to.
    pub(super) used: Bits,
    pub(super) dirs: Vec<Dir>,
    pub(super) problems: Vec<Problem>,
    pub(super) files: u64,
    /// Filled in by the sweep after it.
    pub(super) counts: Counts,
    /// Slot of the label in the root directory.
    pub(super) label: Option<u32>,
    /// Slot of the table of owners in the root directory.
    pub(super) owners: Option<u32>,
    /// Whether the extension is to be reset.
    pub(super) reset: bool,
    /// Whether it has come to the end.
    pub(super) complete: bool,
    pub(super) marks: Marks,
    buf: Vec<u8>,
    /// Parts of the directory after its end mark.
    after: After,
}

/// What stands after an end mark.
#[derive(Clone, Copy, Default)]
struct After {
    end: u32,
    first: Option<u32>,
    good: u32,
    bad: u32,
    /// Whether the first slot that is not all zeros may have been written
    /// without the end mark's sector.
    torn: Option<bool>,
}

impl Walk {
    /// Looks at everything.
    ///
    /// # Errors
    /// `Io`; `Interrupted`.
    pub(super) fn run(vol: &mut Volume, reset: bool, progress: &dyn Progress) -> Result<Self> {
        let mut walk = Self {
            used: Bits::new(vol.layout.last_cluster()),
            dirs: Vec::new(),
            problems: Vec::new(),
            files: 0,
            counts: Counts::default(),
            label: None,
            owners: None,
            reset,
            complete: false,
            marks: Marks::default(),
            buf: Vec::new(),
            after: After::default(),
        };
        walk.root(vol)?;
        let mut next = 0;
        while let Some(dir) = walk.dirs.get(next).copied() {
            progress.progress("files", walk.files, 0)?;
            walk.directory(vol, next as u32, &dir)?;
            if walk.problems.len() > PROBLEMS_MAX {
                return Ok(walk);
            }
            next += 1;
        }
        walk.complete = true;
        Ok(walk)
    }

    fn root(&mut self, vol: &mut Volume) -> Result<()> {
        let mut dir = Dir {
            cluster: vol.layout.root_cluster,
            clusters: 0,
            parent: 0,
            first: NONE,
            slot: NONE,
        };
        if dir.cluster != 0 {
            let chain = self.claim(vol, dir.cluster, u32::MAX)?;
            dir.clusters = chain.clusters;
            if chain.clusters == 0 {
                self.note(What::RootStart, 0, NONE, NONE);
            } else {
                self.chain_problem(vol, dir.cluster, &chain, 0, NONE, NONE)?;
                self.check_length(vol, 0, chain.clusters);
            }
        }
        self.dirs.push(dir);
        Ok(())
    }

    /// Adds a problem.
    pub(super) fn note(&mut self, what: What, dir: u32, first: u32, slot: u32) {
        self.problems.push(Problem {
            what,
            dir,
            first,
            slot,
        });
    }

    /// Follows a chain as far as it is sound and nobody else's, and takes its
    /// clusters.
    pub(super) fn claim(&mut self, vol: &mut Volume, start: u32, need: u32) -> Result<Chain> {
        let mut chain = Chain {
            clusters: 0,
            last: 0,
            needed: 0,
            stop: Stop::End,
        };
        let mut at = start;
        loop {
            if !vol.layout.is_cluster(at) {
                chain.stop = Stop::Wrong(at);
                return Ok(chain);
            }
            let link = vol.fat.link(at)?;
            if matches!(link, Link::Free | Link::Bad) {
                let free = link == Link::Free;
                chain.stop = if free {
                    Stop::Free(at)
                } else {
                    Stop::Wrong(at)
                };
                return Ok(chain);
            }
            if !self.used.add(at) {
                chain.stop = Stop::Met(at);
                return Ok(chain);
            }
            chain.clusters += 1;
            chain.last = at;
            if chain.clusters == need {
                chain.needed = at;
            }
            match link {
                Link::Next(n) => at = n,
                Link::End => return Ok(chain),
                Link::Wrong(value) => {
                    chain.stop = Stop::Wrong(value);
                    return Ok(chain);
                }
                Link::Free | Link::Bad => {}
            }
        }
    }

    /// Notes how a chain ends, if not well.
    pub(super) fn chain_problem(
        &mut self,
        vol: &mut Volume,
        start: u32,
        chain: &Chain,
        dir: u32,
        first: u32,
        slot: u32,
    ) -> Result<()> {
        let last = chain.last;
        let what = match chain.stop {
            Stop::End => return Ok(()),
            Stop::Free(value) | Stop::Wrong(value) if last == 0 => What::Start(value),
            Stop::Free(value) | Stop::Wrong(value) => What::Link { last, value },
            Stop::Met(at) if self.is_own(vol, start, chain, at)? => What::Loop { last },
            Stop::Met(at) => What::Cross { last, at },
        };
        self.note(what, dir, first, slot);
        Ok(())
    }

    /// Returns whether `at` is one of the chain's own clusters.
    pub(super) fn is_own(
        &self,
        vol: &mut Volume,
        start: u32,
        chain: &Chain,
        at: u32,
    ) -> Result<bool> {
        let mut cluster = start;
        for _ in 0..chain.clusters {
            if cluster == at {
                return Ok(true);
            }
            match vol.fat.link(cluster)? {
                Link::Next(n) => cluster = n,
                _ => break,
            }
        }
        Ok(false)
    }

    /// Notes a directory with too many entries; says what may be read of it.
    pub(super) fn check_length(&mut self, vol: &Volume, dir: u32, clusters: u32) {
        let most = DIR_ENTRIES_MAX.div_ceil(vol.slots_per_cluster());
        if clusters > most {
            self.note(What::TooLong, dir, NONE, NONE);
        }
    }

    fn directory(&mut self, vol: &mut Volume, number: u32, dir: &Dir) -> Result<()> {
        let mut reader = Reader::new(dir);
        let mut scanner = Scanner::new(vol.names.long);
        self.marks.clear();
        self.after = After::default();
        let mut buf = std::mem::take(&mut self.buf);
        while let Some(piece) = reader.fill(vol, &mut buf)? {
            if !self.piece(vol, number, dir, &mut scanner, piece, &mut buf)? {
                break;
            }
        }
        self.buf = buf;
        let mut orphan = None;
        let _ = scanner.finish(|event| {
            if let Event::Orphan { first, count } = event {
                orphan = Some((first, count));
            }
            ControlFlow::<()>::Continue(())
        });
        if let Some((first, count)) = orphan {
            self.note(What::Orphan { count }, number, first, first);
        }
        self.check_after(number);
        let mut marks = std::mem::take(&mut self.marks);
        for (with, slot) in marks.pairs(vol, dir)? {
            let first = vol.first_slot(dir, slot)?;
            self.note(What::Duplicate { with }, number, first, slot);
        }
        self.marks = marks;
        Ok(())
    }

    /// Looks at a stretch of a directory; false if the rest is not to be read.
    fn piece(
        &mut self,
        vol: &mut Volume,
        number: u32,
        dir: &Dir,
        scanner: &mut Scanner,
        piece: Piece,
        buf: &mut [u8],
    ) -> Result<bool> {
        let unit = vol.unit(dir);
        let mut slot = piece.slot;
        let (mut from, end) = (piece.offset, piece.offset + buf.len() as u64);
        while let Some(at) = vol.disk.first_lost(from, end - from) {
            self.note(What::Unreadable { at }, number, NONE, NONE);
            from = at + 1;
        }
        for part in buf.chunks_mut(unit) {
            if !scanner.ended() && !self.judge(vol, number, dir, slot, part) {
                return Ok(false);
            }
            if slot == 0 && number != 0 {
                self.dots(vol, number, dir, part);
            }
            self.slots(vol, number, scanner, slot, part)?;
            slot += (part.len() / ENTRY_LEN) as u32;
        }
        Ok(true)
    }

    /// Judges a unit as a whole. False if it ends the directory.
    fn judge(&mut self, vol: &Volume, number: u32, dir: &Dir, slot: u32, part: &mut [u8]) -> bool {
        if !judge::tally(part, vol.judge()).is_garbage() {
            return true;
        }
        let unit = slot / (vol.unit(dir) / ENTRY_LEN).max(1) as u32;
        let own = number == 0 || judge::has_dot(part, dir.cluster, &vol.layout);
        if unit == 0 && !own {
            self.note(What::NotDir, number, NONE, NONE);
            return false;
        }
        if unit > 0 && dir.cluster != 0 {
            self.note(What::Garbage { index: unit }, number, NONE, NONE);
            return false;
        }
        self.note(What::GarbageSlots { unit }, number, NONE, NONE);
        let (slots, _) = part.as_chunks_mut::<ENTRY_LEN>();
        for raw in slots.iter_mut().take_while(|raw| raw.first() != Some(&0)) {
            if !judge::is_sane(raw, vol.judge()) {
                raw.fill(crate::volume::ondisk::FREE);
            }
        }
        true
    }

    fn slots(
        &mut self,
        vol: &mut Volume,
        number: u32,
        scanner: &mut Scanner,
        slot: u32,
        part: &[u8],
    ) -> Result<()> {
        self.long_fields(number, slot, scanner.ended(), part);
        if !scanner.ended() {
            let flow = scanner.feed(part, |event| match self.event(vol, number, event) {
                Ok(()) => ControlFlow::Continue(()),
                Err(e) => ControlFlow::<Error>::Break(e),
            });
            if let ControlFlow::Break(e) = flow {
                return Err(e);
            }
        }
        if scanner.ended() {
            self.after_end(vol, slot, part)?;
        }
        Ok(())
    }

    fn event(&mut self, vol: &mut Volume, number: u32, event: Event<'_>) -> Result<()> {
        match event {
            Event::Record(record) => self.record(vol, number, &record)?,
            Event::Free(_) => {}
            Event::Orphan { first, count } => {
                self.note(What::Orphan { count }, number, first, first);
            }
            Event::End(slot) => {
                self.after = After {
                    end: slot,
                    ..After::default()
                };
            }
        }
        Ok(())
    }

    /// Looks at slots after the end mark.
    fn after_end(&mut self, vol: &mut Volume, slot: u32, part: &[u8]) -> Result<()> {
        let (slots, _) = part.as_chunks::<ENTRY_LEN>();
        let skip = self.after.end.saturating_sub(slot) as usize;
        for (i, raw) in slots.iter().enumerate().skip(skip) {
            if raw.iter().all(|&b| b == 0) {
                continue;
            }
            let at = slot + i as u32;
            let mark = raw.first() == Some(&0);
            let starts_sector = at.is_multiple_of((512 / ENTRY_LEN) as u32);
            self.after.torn.get_or_insert(starts_sector && !mark);
            if mark || raw.first() == Some(&crate::volume::ondisk::FREE) {
                continue;
            }
            let good = judge::is_sane(raw, vol.judge()) && chain_is_there(vol, raw)?;
            self.after.good += u32::from(good);
            self.after.bad += u32::from(!good);
            if self.after.first.is_none() {
                self.after.first = Some(at);
            }
        }
        Ok(())
    }

    /// A crash can leave the sector with the end mark unwritten and the next
    /// one written; everything else after an end mark is damage.
    fn check_after(&mut self, number: u32) {
        let After {
            end,
            first,
            good,
            bad,
            torn,
        } = self.after;
        let Some(first) = first else {
            return;
        };
        let sound = good > bad;
        let torn = bad == 0 && torn == Some(true);
        self.note(What::AfterEnd { end, torn, sound }, number, first, first);
    }
}

/// Returns whether the entry's first cluster, if it has one, is in use.
fn chain_is_there(vol: &mut Volume, raw: &[u8; ENTRY_LEN]) -> Result<bool> {
    let entry: &crate::volume::ondisk::DirEntry = zerocopy::transmute_ref!(raw);
    let start = vol.start(entry);
    if entry.is_long() || start == 0 {
        return Ok(true);
    }
    Ok(!matches!(vol.fat.link(start)?, Link::Free | Link::Bad))
}
