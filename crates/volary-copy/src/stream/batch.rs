//! Batches: items, and the bytes that they refer to.

use crate::nodes::host_range::HostRange;
use crate::nodes::ids::Id;
use crate::nodes::links::Link;
use crate::told::failure::Done;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use volary_core::{FileKind, Time};

/// How many bytes one thread copies before the sink gets its own.
pub(super) const ALONE: usize = 8 << 20;

/// The most batches in flight.
pub(super) const BATCHES: usize = 4;

/// Bytes in a batch. A batch must fit into a processor's cache between read and write. But long
/// requests cost the host less, as it uses larger pieces of memory for them.
pub(crate) const BATCH_LEN: usize = 1 << 20;

/// Parts of a long file begin at multiples of this number of bytes.
pub(super) const STEP: u64 = 64 << 10;

/// The most items in a batch, as empty files take no bytes.
pub(super) const ITEMS_MAX: usize = 512;

/// The content of holes, if the target cannot keep them.
pub(super) static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Returns `len` zeros, but at most 64 KiB.
pub(crate) fn zeros(len: u64) -> &'static [u8] {
    let len = usize::try_from(len).unwrap_or(ZEROS.len());
    ZEROS.get(..len).unwrap_or(&ZEROS)
}

/// The attributes of a node that are copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    pub(crate) kind: FileKind,
    /// Permission bits: 12 bits.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Length in bytes; `None` for a stream that is read to its end.
    pub(crate) len: Option<u64>,
    pub(crate) rdev: u64,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    /// DOS attributes, if the source keeps them.
    pub(crate) dos: Option<u8>,
    /// The node; `None` for a stream that is read to its end.
    pub(crate) id: Option<Id>,
    /// The source keeps owners and modes, or options set them. Otherwise `mode` is 0666 or 0777,
    /// without the write bits if the node is read-only.
    pub(crate) keeps_modes: bool,
    /// The node has other names, which must stay names of one node.
    pub(crate) link: Option<Link>,
    /// Extended attributes were sent before it.
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
    /// A directory; the items up to its `Leave` are in it.
    Enter(Span, Meta),
    Leave,
    /// A file and the beginning of its content. If true, more follows.
    File(Span, Meta, Span, bool),
    /// More content of the file. If true, more follows.
    More(Span, bool),
    /// A hole of this length. If true, more follows.
    Hole(u64, bool),
    /// A stretch of the file that the sink lets the host copy, if it can; more follows. The answer
    /// goes to the source: the number of bytes copied, or `None` if the sink never can.
    HostRange(HostRange, SyncSender<Option<u64>>),
    /// The rest of the file could not be read.
    Broken,
    Symlink(Span, Meta, Span),
    /// A fifo, socket or device.
    Special(Span, Meta),
    /// Another name of an earlier node.
    Link(Span, Meta),
    /// Name and value of an extended attribute of the next node.
    Xattr(Span, Span),
}

/// Items, and the bytes that they refer to.
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

    /// Returns how many items from `at` on are whole files without links and extended attributes.
    pub(super) fn whole_files(&self, at: usize) -> usize {
        let items = self.items.get(at..).unwrap_or_default().iter();
        let whole = items.take_while(|item| match item {
            Item::File(_, meta, _, more) => !more && meta.link.is_none() && !meta.has_xattrs,
            _ => false,
        });
        whole.count()
    }

    /// Returns the number of content bytes of these items.
    pub(super) fn content(&self, items: Range<usize>) -> u64 {
        let items = self.items.get(items).unwrap_or_default().iter();
        let len = |item: &Item| match item {
            Item::File(.., data, _) | Item::More(data, _) => (data.end - data.start) as u64,
            _ => 0,
        };
        items.map(len).sum()
    }
}

/// A batch on loan from the source. It goes back, empty, when nobody uses it any more.
pub(super) struct Loan {
    pub(super) batch: Batch,
    pub(super) back: SyncSender<Batch>,
}

impl Drop for Loan {
    fn drop(&mut self) {
        // If the source has ended, it needs no more batches.
        let _ = self.back.send(std::mem::take(&mut self.batch).emptied());
    }
}

/// Consecutive whole files of one directory, in a batch.
pub(crate) struct Files {
    pub(super) loan: Arc<Loan>,
    /// The range of the items.
    pub(super) range: Range<usize>,
}

impl Files {
    /// Returns the number of files.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// Splits the files into parts of `len`; the last part may be shorter.
    pub(crate) fn parts(&self, len: usize) -> impl Iterator<Item = Self> {
        let starts = self.range.clone().step_by(len.max(1));
        starts.map(move |start| Self {
            loan: Arc::clone(&self.loan),
            range: start..self.range.end.min(start + len),
        })
    }

    /// Calls `make` for each file with its name, attributes and content. Returns the results, up to
    /// the first that ends the copy.
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

/// Returns whether the result ends the copy.
pub(crate) fn stops<T>(done: &Done<T>) -> bool {
    matches!(done, Err(failure) if failure.stops())
}
