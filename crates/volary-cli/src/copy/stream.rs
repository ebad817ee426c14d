//! A tree on its way: what a source reads and a sink writes, in batches.
//!
//! A copy begins in one thread, with one batch that is filled and emptied in
//! turn: most end before a second thread would pay. One that goes on past
//! [`ALONE`] gets a thread for the sink; the source then runs ahead of it by at
//! most [`BATCHES`] batches, so the memory that a copy takes does not grow with
//! what is copied.

mod outlet;

pub(crate) use outlet::{Budget, Outlet, Piece, Pieces};

use super::host_range::HostRange;
use super::links::Link;
use crate::exit::{Done, Exit};
use crate::volumes::Tally;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use volary::{FileKind, NodeId, Time};

/// Bytes that one thread copies before the sink gets its own.
const ALONE: usize = 8 << 20;

/// Batches that are on their way at most.
const BATCHES: usize = 4;

/// Bytes in a batch: few enough to stay in a processor's cache between the
/// read and the write, and so many that the host writes them for less: it uses larger pieces of
/// memory of long requests.
pub(crate) const BATCH_LEN: usize = 1 << 20;

/// Parts of a long file begin at multiples of this, in bytes.
const STEP: u64 = 64 << 10;

/// Items in a batch, at most: empty files take no bytes.
const ITEMS_MAX: usize = 512;

/// What holes are filled with, where they cannot be kept.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// So many zeros, or fewer if that is many.
pub(crate) fn zeros(len: u64) -> &'static [u8] {
    let len = usize::try_from(len).unwrap_or(ZEROS.len());
    ZEROS.get(..len).unwrap_or(&ZEROS)
}

/// What is copied of a node beside its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    pub(crate) kind: FileKind,
    /// Permission bits: 12 bits.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Length in bytes; `None` for what is read until it ends.
    pub(crate) len: Option<u64>,
    pub(crate) rdev: u64,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    /// DOS attributes, where the source keeps them.
    pub(crate) dos: Option<u8>,
    /// The node, if it comes out of a volume.
    pub(crate) node: Option<NodeId>,
    /// The source keeps owners and modes, or options say what they are; else `mode` is 0666 or 0777, less the write bits of
    /// what is read-only.
    pub(crate) keeps_modes: bool,
    /// It has other names, which are to stay names of one node.
    pub(crate) link: Option<Link>,
    /// Extended attributes came before it.
    pub(crate) has_xattrs: bool,
}

/// A stretch of a batch's bytes.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
}

impl Span {
    const fn len(self) -> u64 {
        (self.end - self.start) as u64
    }
}

#[derive(Debug)]
enum Item {
    /// A directory; what follows up to its `Leave` is in it.
    Enter(Span, Meta),
    Leave,
    /// A file and the beginning of what it holds; more comes if true.
    File(Span, Meta, Span, bool),
    /// More of the file; yet more comes if true.
    More(Span, bool),
    /// So many zeros that take no room; yet more comes if true.
    Hole(u64, bool),
    /// A stretch of the file that the sink has copied where it is, if it can. More comes. Told to
    /// the source: how many bytes it was, or none if the sink never can.
    HostRange(HostRange, SyncSender<Option<u64>>),
    /// The rest of the file could not be read.
    Broken,
    Symlink(Span, Meta, Span),
    /// A fifo, socket or device.
    Special(Span, Meta),
    /// One more name of a node that came before.
    Link(Span, Meta),
    /// Name and value of an extended attribute of what comes next.
    Xattr(Span, Span),
}

/// Items, and the bytes that they speak of.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    used: usize,
    items: Vec<Item>,
}

impl Batch {
    fn new() -> Self {
        Self {
            bytes: vec![0; BATCH_LEN],
            used: 0,
            items: Vec::with_capacity(ITEMS_MAX),
        }
    }

    /// The same with nothing in it.
    fn emptied(mut self) -> Self {
        self.used = 0;
        self.items.clear();
        self
    }

    fn get(&self, span: Span) -> &[u8] {
        self.bytes.get(span.start..span.end).unwrap_or_default()
    }

    /// Returns how many items from this one on are whole files of which there is nothing but names,
    /// attributes and bytes.
    fn whole_files(&self, at: usize) -> usize {
        let items = self.items.get(at..).unwrap_or_default().iter();
        let whole = items.take_while(|item| match item {
            Item::File(_, meta, _, more) => !more && meta.link.is_none() && !meta.has_xattrs,
            _ => false,
        });
        whole.count()
    }

    /// Returns bytes of content of these items.
    fn content(&self, items: Range<usize>) -> u64 {
        let items = self.items.get(items).unwrap_or_default().iter();
        let len = |item: &Item| match item {
            Item::File(.., data, _) | Item::More(data, _) => (data.end - data.start) as u64,
            _ => 0,
        };
        items.map(len).sum()
    }
}

/// A batch on loan from the source, to which it goes back, empty, when nobody has it any more.
struct Loan {
    batch: Batch,
    back: SyncSender<Batch>,
}

impl Drop for Loan {
    fn drop(&mut self) {
        // The source may have ended: then it wants no more.
        let _ = self.back.send(std::mem::take(&mut self.batch).emptied());
    }
}

/// Whole files of one directory, one after the other in a batch.
pub(crate) struct Files {
    loan: Arc<Loan>,
    /// Which items.
    range: Range<usize>,
}

impl Files {
    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// So many at a time.
    pub(crate) fn parts(&self, len: usize) -> impl Iterator<Item = Self> {
        let starts = self.range.clone().step_by(len.max(1));
        starts.map(move |start| Self {
            loan: Arc::clone(&self.loan),
            range: start..self.range.end.min(start + len),
        })
    }

    /// Lets `make` make each, of its name, what is copied of it and its content; gives what came
    /// of them, up to one that says `Stopped`.
    pub(crate) fn each<T>(
        &self,
        mut make: impl FnMut(&[u8], &Meta, &[u8]) -> Done<T>,
    ) -> Vec<Done<T>> {
        let batch = &self.loan.batch;
        let items = batch.items.get(self.range.clone());
        let mut all = Vec::with_capacity(self.len());
        for item in items.unwrap_or_default() {
            if let Item::File(name, meta, data, _) = item {
                all.push(make(batch.get(*name), meta, batch.get(*data)));
                if all.last().is_some_and(stops) {
                    break;
                }
            }
        }
        all
    }
}

/// Returns whether nothing more is to be made.
pub(crate) fn stops<T>(done: &Done<T>) -> bool {
    matches!(done, Err(fail) if fail.exit == Exit::Stopped)
}

/// What a copy writes to. Names are one name each; a directory that is
/// entered stays the place of what follows until it is left. What fails is
/// left out and the rest goes on, but for a failure that says `Stopped`.
pub(crate) trait Sink: Send {
    /// Makes a directory, or takes the one that is there, and goes into it.
    fn enter(&mut self, name: &[u8], meta: &Meta) -> Done;
    /// Goes back out of it.
    fn leave(&mut self) -> Done;
    /// Makes a file that begins with `data`; if `more`, it goes on.
    fn file(&mut self, name: &[u8], meta: &Meta, data: &[u8], more: bool) -> Done;
    /// Makes whole files, as [`file`](Self::file) does. Tells what came of those that are
    /// done by now, up to one that says `Stopped`; of all others, [`settle`](Self::settle) or a
    /// later call does.
    fn files(&mut self, files: &Files) -> Vec<Done> {
        files.each(|name, meta, data| self.file(name, meta, data, false))
    }
    /// Waits until all files are made, and tells what came of those of which nothing was told.
    /// Called before a directory is left, and at the end.
    fn settle(&mut self) -> Vec<Done> {
        Vec::new()
    }
    /// More of the file; if `more`, it goes on yet.
    fn data(&mut self, data: &[u8], more: bool) -> Done;
    /// Copies a stretch of the file inside the kernel. Returns how many bytes were copied; the rest comes as data.
    /// Returns `None` if this sink never copies so.
    ///
    /// # Errors
    /// As of [`data`](Self::data).
    fn host_range(&mut self, host_range: &HostRange) -> Done<Option<u64>> {
        let _ = host_range;
        Ok(None)
    }
    /// Zeros that take no room, where the target can; if `more`, the file goes on after them.
    fn hole(&mut self, len: u64, more: bool) -> Done {
        let mut left = len;
        while left > 0 {
            crate::interrupt::check()?;
            let part = zeros(left);
            left -= part.len() as u64;
            self.data(part, more || left > 0)?;
        }
        Ok(())
    }
    /// The rest of the file does not come: takes away what there is of it.
    ///
    /// # Errors
    /// If something of it stays.
    fn broken(&mut self) -> Done;
    /// An extended attribute of what is made next.
    fn xattr(&mut self, name: &[u8], value: &[u8]);
    /// Makes one more name of a node that was made.
    fn link(&mut self, name: &[u8], meta: &Meta) -> Done;
    /// Makes a symlink.
    fn symlink(&mut self, name: &[u8], meta: &Meta, target: &[u8]) -> Done;
    /// Makes a fifo, socket or device.
    fn special(&mut self, name: &[u8], meta: &Meta) -> Done;
}

/// Runs a copy: `source` in this thread, the sink in this one or, in time, in
/// one of its own, up to `budget`. Each batch is told to `progress`: files ended, bytes.
///
/// # Errors
/// What stopped it: of the sink, or else of the source. Failures of single
/// files are reported to `tally`.
pub(crate) fn run(
    source: impl FnOnce(&mut Outlet<'_, '_>) -> Done,
    sink: &mut dyn Sink,
    budget: &mut Option<Budget>,
    tally: &mut Tally,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Done {
    let pump = Pump {
        sink,
        tally,
        progress,
        skip: Skip::No,
        host_copied: 0,
    };
    std::thread::scope(|scope| {
        let mut outlet = Outlet {
            scope,
            batch: Batch::new(),
            sink: outlet::Writer::Here(pump, 0),
            budget,
            takes_ranges: true,
        };
        let read = source(&mut outlet);
        // What was read is worth writing, whatever ended the reading.
        outlet.finish().and(read)
    })
}

/// What is passed over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Skip {
    No,
    /// The rest of a file.
    File,
    /// A directory, this many deep.
    Dirs(u64),
}

/// Gives batches to a sink.
struct Pump<'a> {
    sink: &'a mut dyn Sink,
    tally: &'a mut Tally,
    progress: &'a mut (dyn FnMut(u64, u64) + Send),
    skip: Skip,
    /// Bytes that the kernel copied and that progress does not show yet.
    host_copied: u64,
}

impl Pump<'_> {
    /// Empties the batches that come, and gives them back.
    fn run(mut self, ready: &Receiver<Batch>, back: &SyncSender<Batch>) -> Done {
        while let Ok(batch) = ready.recv() {
            let back = back.clone();
            let loan = Arc::new(Loan { batch, back });
            self.batch(&loan.batch, Some(&loan))?;
        }
        self.settle()
    }

    /// Writes what is in a batch, which is empty then.
    fn empty(&mut self, batch: &mut Batch) -> Done {
        let written = self.batch(batch, None);
        *batch = std::mem::take(batch).emptied();
        written
    }

    /// What is under way is done.
    fn settle(&mut self) -> Done {
        let mut all = self.sink.settle().into_iter();
        all.try_for_each(|done| self.tally.take(done))
    }

    /// Writes a batch. Whole files in a row are one request if it may be kept for a while, on
    /// loan.
    fn batch(&mut self, batch: &Batch, loan: Option<&Arc<Loan>>) -> Done {
        let (mut files, mut bytes) = (0, 0);
        let mut at = 0;
        while let Some(item) = batch.items.get(at) {
            let row = match self.skip {
                Skip::No => batch.whole_files(at),
                _ => 0,
            };
            if let Some(loan) = loan.filter(|_| row > 1) {
                let range = at..at + row;
                at = range.end;
                files += row as u64;
                bytes += batch.content(range.clone());
                let loan = Arc::clone(loan);
                for done in self.sink.files(&Files { loan, range }) {
                    self.tally.take(done)?;
                }
                continue;
            }
            bytes += batch.content(at..at + 1);
            at += 1;
            files += u64::from(matches!(
                item,
                Item::File(.., false) | Item::More(_, false) | Item::Hole(_, false)
            ));
            if matches!(item, Item::Leave) {
                self.settle()?;
            }
            let done = self.item(batch, item);
            self.tally.take(done)?;
        }
        bytes += std::mem::take(&mut self.host_copied);
        (self.progress)(files, bytes);
        Ok(())
    }

    fn item(&mut self, batch: &Batch, item: &Item) -> Done {
        if self.skips(item) {
            return Ok(());
        }
        let sink = &mut *self.sink;
        match item {
            Item::Enter(name, meta) => {
                let entered = sink.enter(batch.get(*name), meta);
                if entered.is_err() {
                    self.skip = Skip::Dirs(1);
                }
                entered
            }
            Item::Leave => sink.leave(),
            Item::File(name, meta, data, more) => {
                let made = sink.file(batch.get(*name), meta, batch.get(*data), *more);
                self.after_data(made, *more)
            }
            Item::More(data, more) => {
                let written = sink.data(batch.get(*data), *more);
                self.after_data(written, *more)
            }
            Item::Hole(len, more) => {
                let made = sink.hole(*len, *more);
                self.after_data(made, *more)
            }
            Item::HostRange(host_range, told) => self.host_range(host_range, told),
            Item::Broken => sink.broken(),
            Item::Symlink(name, meta, target) => {
                sink.symlink(batch.get(*name), meta, batch.get(*target))
            }
            Item::Special(name, meta) => sink.special(batch.get(*name), meta),
            Item::Link(name, meta) => sink.link(batch.get(*name), meta),
            Item::Xattr(name, value) => {
                sink.xattr(batch.get(*name), batch.get(*value));
                Ok(())
            }
        }
    }

    fn host_range(&mut self, host_range: &HostRange, told: &SyncSender<Option<u64>>) -> Done {
        let copied = self.sink.host_range(host_range);
        let len = copied.as_ref().copied().unwrap_or(Some(0));
        self.host_copied += len.unwrap_or(0);
        // There is room for the one answer, and the source waits for it.
        let _ = told.send(len);
        self.after_data(copied.map(drop), true)
    }

    fn after_data(&mut self, done: Done, more: bool) -> Done {
        if done.is_err() && more {
            self.skip = Skip::File;
        }
        done
    }

    fn skips(&mut self, item: &Item) -> bool {
        match (self.skip, item) {
            (Skip::File, Item::More(_, true) | Item::Hole(_, true) | Item::HostRange(..)) => true,
            (Skip::File, Item::More(_, false) | Item::Hole(_, false) | Item::Broken) => {
                self.skip = Skip::No;
                true
            }
            (Skip::No | Skip::File, _) => false,
            (Skip::Dirs(n), Item::Enter(..)) => {
                self.skip = Skip::Dirs(n + 1);
                true
            }
            (Skip::Dirs(n), Item::Leave) => {
                self.skip = if n == 1 { Skip::No } else { Skip::Dirs(n - 1) };
                true
            }
            (Skip::Dirs(_), _) => true,
        }
    }
}

#[cfg(test)]
mod tests;
