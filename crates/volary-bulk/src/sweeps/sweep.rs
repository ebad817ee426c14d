//! Phase 2: one sweep over the disk, which assembles files.

use crate::delivering::outlet::{Job, Outlet};
use crate::interface::delivery::Why;
use crate::listing::list::{Done, Piece};
use crate::listing::plan::Span;
use crate::state::budget::Buf;
use crate::state::part::Part;
use crate::sweeps::ahead::{self, Ahead, Loaded};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use volary_core::{BlockDevice, Error, Kind, Read};

/// Requests in one batch of cleaning: the depth of a disk's queue.
const QUEUE: usize = 32;

/// Cleaning completes this fraction (1/n) of the bytes of begun files; the sweep soon completes the
/// others.
const CLEANED: u64 = 4;

/// A sweep over sorted fragments.
pub(crate) struct Sweep<'a> {
    part: &'a Part<'a>,
    pieces: &'a [Piece],
    /// Files of which some fragments were read.
    pending: HashMap<u32, Pending>,
    /// Bytes of these files' buffers.
    begun: u64,
    /// Files that the device could not read.
    broken: HashSet<u32>,
    /// The fragments of each file; made at the first use.
    of_file: Option<OfFile>,
    /// Complete files, if the caller wants them instead of the outlet.
    kept: Option<HashMap<u32, Buf>>,
}

/// A file that is being assembled.
struct Pending {
    buf: Buf,
    left: u32,
}

impl<'a> Sweep<'a> {
    pub(crate) fn new(part: &'a Part<'a>, pieces: &'a [Piece]) -> Self {
        Self {
            part,
            pieces,
            pending: HashMap::new(),
            begun: 0,
            broken: HashSet::new(),
            of_file: None,
            kept: None,
        }
    }

    /// Reads all fragments, and passes each complete file to the outlet.
    pub(crate) fn run(mut self, outlet: &Outlet<'_>) -> ControlFlow<()> {
        self.read(outlet)
    }

    /// Reads all fragments and returns the files. They must fit into the memory for assembly
    /// together.
    pub(crate) fn keep(mut self, outlet: &Outlet<'_>) -> ControlFlow<(), HashMap<u32, Buf>> {
        self.kept = Some(HashMap::new());
        match self.read(outlet) {
            ControlFlow::Continue(()) => ControlFlow::Continue(self.kept.unwrap_or_default()),
            ControlFlow::Break(()) => ControlFlow::Break(()),
        }
    }

    fn read(&mut self, outlet: &Outlet<'_>) -> ControlFlow<()> {
        let Some(device) = self.part.source.device.clone() else {
            return ControlFlow::Continue(());
        };
        let run = self.part.run;
        run.tally.add(|sum| sum.sweeps += 1);
        let done = Done::new(self.pieces.len());
        // Several threads would only wait for each other.
        match ahead::is_alone(&*device, self.part.tuned) {
            true => self.read_here(&*device, &done, outlet)?,
            false => self.read_by_threads(&*device, &done, outlet),
        }
        run.check()
    }

    /// Reads on this thread; a device that reads ahead gets hints of what comes next.
    fn read_here(
        &mut self,
        device: &dyn BlockDevice,
        done: &Done,
        outlet: &Outlet<'_>,
    ) -> ControlFlow<()> {
        let (run, merge) = (self.part.run, self.part.merge());
        let hints = if device.is_cached() {
            self.part.tuned.depth
        } else {
            0
        };
        let (mut coming, mut next, mut end) = (VecDeque::new(), 0, 0);
        loop {
            while coming.len() <= hints
                && let Some(span) = merge.next(self.pieces, done, next)
            {
                next = span.pieces.end;
                // The device notices sequential reads by itself: only a jump needs a hint.
                if span.at.saturating_sub(end) > self.part.tuned.gap {
                    device.will_read(span.at, span.len);
                }
                end = span.at + span.len;
                coming.push_back(span);
            }
            let Some(span) = coming.pop_front() else {
                return ControlFlow::Continue(());
            };
            run.check()?;
            run.tally.read(span.pieces.len() as u64, span.len);
            let buf = ahead::room(device, &run.reads, span.len, merge.request);
            let buf = buf.ok_or_else(|| Error::from(Kind::TooBig));
            let data = buf.and_then(|buf| ahead::load(device, &span, buf));
            let loaded = Loaded { span, data };
            if self.take(loaded, device, done, outlet).is_break() {
                run.end();
                return ControlFlow::Break(());
            }
        }
    }

    /// Reads on as many threads as the device takes requests at a time. They share `done`, and skip
    /// what cleaning has read.
    fn read_by_threads(&mut self, device: &dyn BlockDevice, done: &Done, outlet: &Outlet<'_>) {
        let run = self.part.run;
        let ahead = Ahead::new(
            device,
            self.pieces,
            done,
            self.part.merge(),
            self.part.tuned.depth,
            &run.reads,
            &run.tally,
        );
        std::thread::scope(|scope| {
            for _ in 0..self.part.tuned.depth {
                scope.spawn(|| ahead.work());
            }
            let mut number = 0;
            while let Some(loaded) = ahead.wait(number) {
                number += 1;
                if self.take(loaded, device, done, outlet).is_break() {
                    run.end();
                    break;
                }
            }
            ahead.stop();
        });
    }

    /// Distributes the fragments of one request: delivers whole files, and assembles others. If the
    /// request failed, reads its fragments one by one.
    fn take(
        &mut self,
        loaded: Loaded,
        device: &dyn BlockDevice,
        done: &Done,
        outlet: &Outlet<'_>,
    ) -> ControlFlow<()> {
        let Loaded { span, data } = loaded;
        for index in span.pieces {
            let Some(piece) = self.pieces.get(index).copied() else {
                continue;
            };
            if done.has(index) || self.broken.contains(&piece.file) {
                continue;
            }
            let begin = data.as_ref().map_or(0, |(_, begin)| *begin);
            let from = usize::try_from(piece.at - span.at).unwrap_or(usize::MAX);
            let from = begin.saturating_add(from);
            let range = from..from.saturating_add(piece.len as usize);
            match &data {
                Ok((buf, _)) if self.kept.is_none() && !self.part.is_copied(piece.file) => {
                    done.set(index);
                    outlet.give(Job::Shared(piece.file, buf.clone(), range))?;
                }
                Ok((buf, _)) => {
                    self.begin(piece, device, done, outlet)?;
                    if done.has(index) {
                        continue;
                    }
                    let bytes = buf.bytes.get(range);
                    self.put(index, piece, done, outlet, |into| match bytes {
                        Some(bytes) => copy(bytes, into),
                        None => false,
                    })?;
                }
                // One bad sector fails the whole request, so each fragment is read alone.
                Err(_) => {
                    self.begin(piece, device, done, outlet)?;
                    if !done.has(index) {
                        self.part.run.tally.read(1, u64::from(piece.len));
                        let read = |into: &mut [u8]| device.read_at(piece.at, into).is_ok();
                        self.put(index, piece, done, outlet, read)?;
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Allocates the buffer of a fragment's file if it has none. If there is no room, completes
    /// begun files first.
    fn begin(
        &mut self,
        piece: Piece,
        device: &dyn BlockDevice,
        done: &Done,
        outlet: &Outlet<'_>,
    ) -> ControlFlow<()> {
        let Piece { file, at, .. } = piece;
        if self.pending.contains_key(&file) || self.broken.contains(&file) {
            return ControlFlow::Continue(());
        }
        let run = self.part.run;
        let Some(head) = self.part.list.files.head(file as usize) else {
            return ControlFlow::Continue(());
        };
        let size = head.size;
        while self.begun.saturating_add(size) > run.assembly.max() && !self.pending.is_empty() {
            let before = self.pending.len();
            self.clean(at, device, done, outlet)?;
            if self.pending.len() == before {
                break;
            }
        }
        // The consumer holds all memory that is not in begun files, and will free it.
        match run.assembly.take(size) {
            Some(held) => {
                let len = usize::try_from(size).unwrap_or(usize::MAX);
                let buf = Buf::new(len, held);
                let left = head.fragments;
                self.begun += size;
                self.pending.insert(file, Pending { buf, left });
            }
            None => {
                run.check()?;
                self.give_up(file, outlet);
            }
        }
        ControlFlow::Continue(())
    }

    /// Writes a fragment into its file with `fill`. If it was the last one, delivers the file.
    fn put(
        &mut self,
        index: usize,
        piece: Piece,
        done: &Done,
        outlet: &Outlet<'_>,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> ControlFlow<()> {
        let Some(pending) = self.pending.get_mut(&piece.file) else {
            return ControlFlow::Continue(());
        };
        done.set(index);
        let from = piece.offset as usize;
        let into = pending.buf.bytes.get_mut(from..from + piece.len as usize);
        if !into.is_some_and(fill) {
            self.give_up(piece.file, outlet);
            return ControlFlow::Continue(());
        }
        pending.left = pending.left.saturating_sub(1);
        if pending.left > 0 {
            return ControlFlow::Continue(());
        }
        let Some(buf) = self.complete(piece.file) else {
            return ControlFlow::Continue(());
        };
        match &mut self.kept {
            Some(kept) => _ = kept.insert(piece.file, buf),
            None => outlet.give(Job::Own(piece.file, buf))?,
        }
        ControlFlow::Continue(())
    }

    /// Removes a file from the begun ones.
    fn complete(&mut self, file: u32) -> Option<Buf> {
        let Pending { buf, .. } = self.pending.remove(&file)?;
        self.begun -= buf.bytes.len() as u64;
        Some(buf)
    }

    /// Gives up a file that the device cannot read. It is read through the session, which reports
    /// the error.
    fn give_up(&mut self, file: u32, outlet: &Outlet<'_>) {
        self.complete(file);
        self.broken.insert(file);
        outlet.again(file, Why::Unread);
    }

    /// Completes the files that would hold most memory for longest from `now` on: reads their
    /// remaining fragments in device order.
    fn clean(
        &mut self,
        now: u64,
        device: &dyn BlockDevice,
        done: &Done,
        outlet: &Outlet<'_>,
    ) -> ControlFlow<()> {
        let run = self.part.run;
        run.tally.add(|sum| sum.cleanings += 1);
        let of_file = self
            .of_file
            .get_or_insert_with(|| OfFile::new(self.pieces, self.part.list.files.len()));
        let begun = dearest(&self.pending, self.begun / CLEANED, |file| {
            let mut left = of_file.get(file).iter().rev().map(|&i| i as usize);
            let last = left.find(|&i| !done.has(i))?;
            Some(self.pieces.get(last)?.at.saturating_sub(now))
        });
        let left = begun.iter().flat_map(|&file| of_file.get(file)).copied();
        let mut left: Vec<u32> = left.filter(|&i| !done.has(i as usize)).collect();
        left.sort_unstable();
        let rest: Vec<Piece> = left
            .iter()
            .filter_map(|&i| self.pieces.get(i as usize))
            .copied()
            .collect();
        let mut from = 0;
        while from < rest.len() {
            let mut some = self.some(&rest, &mut from);
            read_all(device, &mut some);
            for (span, scratch) in some {
                for i in span.pieces.clone() {
                    let (Some(&piece), Some(&index)) = (rest.get(i), left.get(i)) else {
                        continue;
                    };
                    self.put(index as usize, piece, done, outlet, |into| {
                        let at = usize::try_from(piece.at - span.at).unwrap_or(usize::MAX);
                        let range = at..at.saturating_add(piece.len as usize);
                        match scratch.as_ref().and_then(|buf| buf.bytes.get(range)) {
                            Some(bytes) => copy(bytes, into),
                            None => device.read_at(piece.at, into).is_ok(),
                        }
                    })?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns the next requests, from fragment `from` on, as many as there are buffers for. A
    /// request larger than all buffers is returned alone and without a buffer.
    fn some(&self, rest: &[Piece], from: &mut usize) -> Vec<(Span, Option<Buf>)> {
        let run = self.part.run;
        let (none, mut some) = (Done::new(0), Vec::new());
        while some.len() < QUEUE
            && let Some(span) = self.part.merge().next(rest, &none, *from)
        {
            let held = run.scratch.try_take(span.len);
            if held.is_none() && !some.is_empty() {
                break;
            }
            let len = usize::try_from(span.len).unwrap_or(usize::MAX);
            let is_last = held.is_none();
            *from = span.pieces.end;
            run.tally.read(span.pieces.len() as u64, span.len);
            some.push((span, held.map(|held| Buf::new(len, held))));
            if is_last {
                break;
            }
        }
        some
    }
}

/// Returns files that hold most memory for longest, per read that would complete them: at least
/// `least` bytes of them, or all. `distance` returns how far away a file's last missing fragment
/// lies.
fn dearest(
    pending: &HashMap<u32, Pending>,
    least: u64,
    distance: impl Fn(u32) -> Option<u64>,
) -> Vec<u32> {
    let cost = |(&file, pending): (&u32, &Pending)| {
        let distance = u128::from(distance(file).unwrap_or(0));
        let bytes = pending.buf.bytes.len() as u128;
        (distance * bytes / u128::from(pending.left.max(1)), file)
    };
    let mut all: Vec<(u128, u32)> = pending.iter().map(cost).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    let is_wanted = |(_, file): &(u128, u32)| {
        let is_wanted = sum <= least;
        sum += pending.get(file).map_or(0, |p| p.buf.bytes.len() as u64);
        is_wanted
    };
    let some = all.into_iter().take_while(is_wanted);
    some.map(|(_, file)| file).collect()
}

/// Reads all requests in one batch; the device may choose the order. Removes the buffer of a
/// request that fails.
fn read_all(device: &dyn BlockDevice, some: &mut [(Span, Option<Buf>)]) {
    let with_room = some.iter_mut().filter_map(|(span, buf)| {
        let buf = buf.as_mut()?;
        Some(Read {
            offset: span.at,
            buf: &mut buf.bytes,
            result: Ok(()),
        })
    });
    let mut reads: Vec<Read<'_>> = with_room.collect();
    device.read_batch(&mut reads);
    let mut went: VecDeque<bool> = reads.iter().map(|read| read.result.is_ok()).collect();
    for (_, buf) in some.iter_mut().filter(|(_, buf)| buf.is_some()) {
        if went.pop_front() != Some(true) {
            *buf = None;
        }
    }
}

fn copy(bytes: &[u8], into: &mut [u8]) -> bool {
    let fits = bytes.len() == into.len();
    if fits {
        into.copy_from_slice(bytes);
    }
    fits
}

/// The fragments of each file, as indexes in the sorted list.
struct OfFile {
    first: Vec<u32>,
    pieces: Vec<u32>,
}

impl OfFile {
    fn new(pieces: &[Piece], files: usize) -> Self {
        let mut first = vec![0_u32; files + 2];
        for piece in pieces {
            if let Some(count) = first.get_mut(piece.file as usize + 2) {
                *count += 1;
            }
        }
        for i in 1..first.len() {
            first[i] += first[i - 1];
        }
        let mut sorted = vec![0; pieces.len()];
        for (index, piece) in pieces.iter().enumerate() {
            let Some(next) = first.get_mut(piece.file as usize + 1) else {
                continue;
            };
            if let Some(slot) = sorted.get_mut(*next as usize) {
                *slot = index as u32;
            }
            *next += 1;
        }
        Self {
            first,
            pieces: sorted,
        }
    }

    fn get(&self, file: u32) -> &[u32] {
        let file = file as usize;
        let bound = |i: usize| self.first.get(i).map_or(0, |&at| at as usize);
        self.pieces
            .get(bound(file)..bound(file + 1))
            .unwrap_or_default()
    }
}
