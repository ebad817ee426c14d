//! Batches: items, and the bytes that they speak of.

use crate::failure::Done;
use crate::host_range::HostRange;
use crate::links::Link;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use volary_core::{FileKind, NodeId, Time};

/// Bytes that one thread copies before the sink gets its own.
pub(super) const ALONE: usize = 8 << 20;

/// Batches that are on their way at most.
pub(super) const BATCHES: usize = 4;

/// Bytes in a batch: few enough to stay in a processor's cache between the
/// read and the write, and so many that the host writes them for less: it uses larger pieces of
/// memory of long requests.
pub(crate) const BATCH_LEN: usize = 1 << 20;

/// Parts of a long file begin at multiples of this, in bytes.
pub(super) const STEP: u64 = 64 << 10;

/// Items in a batch, at most: empty files take no bytes.
pub(super) const ITEMS_MAX: usize = 512;

/// What holes are filled with, where they cannot be kept.
pub(super) static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Returns `len` zeros, at most 64 KiB of them.
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
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    pub(super) const fn len(self) -> u64 {
        (self.end - self.start) as u64
    }
}

#[derive(Debug)]
pub(super) enum Item {
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
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) used: usize,
    pub(super) items: Vec<Item>,
}

impl Batch {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; BATCH_LEN],
            used: 0,
            items: Vec::with_capacity(ITEMS_MAX),
        }
    }

    /// Empties the batch and keeps its buffers.
    pub(super) fn emptied(mut self) -> Self {
        self.used = 0;
        self.items.clear();
        self
    }

    pub(super) fn get(&self, span: Span) -> &[u8] {
        self.bytes.get(span.start..span.end).unwrap_or_default()
    }

    /// Returns how many items from this one on are whole files of which there is nothing but names,
    /// attributes and bytes.
    pub(super) fn whole_files(&self, at: usize) -> usize {
        let items = self.items.get(at..).unwrap_or_default().iter();
        let whole = items.take_while(|item| match item {
            Item::File(_, meta, _, more) => !more && meta.link.is_none() && !meta.has_xattrs,
            _ => false,
        });
        whole.count()
    }

    /// Returns bytes of content of these items.
    pub(super) fn content(&self, items: Range<usize>) -> u64 {
        let items = self.items.get(items).unwrap_or_default().iter();
        let len = |item: &Item| match item {
            Item::File(.., data, _) | Item::More(data, _) => (data.end - data.start) as u64,
            _ => 0,
        };
        items.map(len).sum()
    }
}

/// A batch on loan from the source, to which it goes back, empty, when nobody has it any more.
pub(super) struct Loan {
    pub(super) batch: Batch,
    pub(super) back: SyncSender<Batch>,
}

impl Drop for Loan {
    fn drop(&mut self) {
        // The source may have ended: then it wants no more.
        let _ = self.back.send(std::mem::take(&mut self.batch).emptied());
    }
}

/// Whole files of one directory, one after the other in a batch.
pub(crate) struct Files {
    pub(super) loan: Arc<Loan>,
    /// Which items.
    pub(super) range: Range<usize>,
}

impl Files {
    /// Returns how many files these are.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// Splits them into parts of `len` files; the last may be shorter.
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
    matches!(done, Err(failure) if failure.stops())
}
