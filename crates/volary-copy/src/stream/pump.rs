//! Sinks, and the pump that feeds them batches.

use super::batch::{Batch, Files, Item, Loan, Meta, zeros};
use crate::nodes::host_range::HostRange;
use crate::told::failure::{Done, Failure};
use crate::told::observer::Observer;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

/// The target of a copy. Each name is a single name in the directory that was entered last. A node
/// that fails is left out and the copy goes on, unless the failure ends the copy.
pub(crate) trait Sink: Send {
    /// Called between the zeros that fill a hole.
    ///
    /// # Errors
    /// `Stopped` if the copy must stop.
    fn check(&self) -> Done {
        Ok(())
    }
    /// Makes a directory, or uses an existing one, and enters it.
    fn enter(&mut self, name: &[u8], meta: &Meta) -> Done;
    /// Leaves the directory.
    fn leave(&mut self) -> Done;
    /// Makes a file that begins with `data`; if `more`, more content follows.
    fn file(&mut self, name: &[u8], meta: &Meta, data: &[u8], more: bool) -> Done;
    /// Makes whole files as [`file`](Self::file) does, perhaps after it has returned. Returns the
    /// results of finished files, up to the first that ends the copy. Later calls and
    /// [`settle`](Self::settle) return the others.
    fn files(&mut self, files: &Files) -> Vec<Done> {
        files.each(|name, meta, data| self.file(name, meta, data, false))
    }
    /// Waits until all files are made. Returns the results that no call has returned yet.
    /// Called before a directory is left, and at the end.
    fn settle(&mut self) -> Vec<Done> {
        Vec::new()
    }
    /// Appends `data` to the file; if `more`, more content follows.
    fn data(&mut self, data: &[u8], more: bool) -> Done;
    /// Copies a stretch of the file inside the kernel. Returns how many bytes were copied; the rest
    /// comes as data. Returns `None` if this sink can never do that.
    ///
    /// # Errors
    /// As of [`data`](Self::data).
    fn host_range(&mut self, host_range: &HostRange) -> Done<Option<u64>> {
        let _ = host_range;
        Ok(None)
    }
    /// Appends a hole, or zeros if the target has no holes; if `more`, more content follows.
    fn hole(&mut self, len: u64, more: bool) -> Done {
        let mut left = len;
        while left > 0 {
            self.check()?;
            let part = zeros(left);
            left -= part.len() as u64;
            self.data(part, more || left > 0)?;
        }
        Ok(())
    }
    /// Removes the file, whose rest cannot be read.
    ///
    /// # Errors
    /// If the incomplete file could not be removed.
    fn broken(&mut self) -> Done;
    /// Keeps an extended attribute for what is made next.
    fn xattr(&mut self, name: &[u8], value: &[u8]);
    /// Makes another name of a node that was made before.
    fn link(&mut self, name: &[u8], meta: &Meta) -> Done;
    /// Makes a symlink.
    fn symlink(&mut self, name: &[u8], meta: &Meta, target: &[u8]) -> Done;
    /// Makes a fifo, socket or device.
    fn special(&mut self, name: &[u8], meta: &Meta) -> Done;
}

/// The results of a copy so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The first failure to write.
    pub(crate) first: Option<Failure>,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// What is skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Skip {
    No,
    /// The rest of a file.
    File,
    /// A directory, this many deep.
    Dirs(u64),
}

/// Feeds batches to a sink.
pub(super) struct Pump<'a> {
    pub(super) sink: &'a mut dyn Sink,
    pub(super) tally: &'a mut Tally,
    pub(super) observer: &'a dyn Observer,
    pub(super) skip: Skip,
    /// Bytes that the kernel copied and that were not reported yet.
    pub(super) host_copied: u64,
}

impl Pump<'_> {
    /// Writes the batches from `ready`, and returns each to `back`.
    pub(super) fn run(mut self, ready: &Receiver<Batch>, back: &SyncSender<Batch>) -> Done {
        while let Ok(batch) = ready.recv() {
            let back = back.clone();
            let loan = Arc::new(Loan { batch, back });
            self.batch(&loan.batch, Some(&loan))?;
        }
        self.settle()
    }

    /// Writes a batch, and empties it.
    pub(super) fn empty(&mut self, batch: &mut Batch) -> Done {
        let written = self.batch(batch, None);
        *batch = std::mem::take(batch).emptied();
        written
    }

    /// Waits for the sink, and handles its results.
    pub(super) fn settle(&mut self) -> Done {
        let mut all = self.sink.settle().into_iter();
        all.try_for_each(|done| self.take(done))
    }

    /// Reports a failure to write.
    ///
    /// # Errors
    /// If the failure ends the copy.
    fn take(&mut self, done: Done) -> Done {
        match done {
            Err(failure) if !failure.stops() => {
                self.observer.failed(&failure);
                self.tally.first.get_or_insert(failure);
                Ok(())
            }
            done => done,
        }
    }

    /// Writes a batch. Passes consecutive whole files to the sink together if it may keep the batch
    /// for a while, on loan.
    pub(super) fn batch(&mut self, batch: &Batch, loan: Option<&Arc<Loan>>) -> Done {
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
                    self.take(done)?;
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
            self.take(done)?;
        }
        bytes += std::mem::take(&mut self.host_copied);
        self.tally.files += files;
        self.tally.bytes += bytes;
        self.observer.copied(files, bytes);
        Ok(())
    }

    pub(super) fn item(&mut self, batch: &Batch, item: &Item) -> Done {
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

    pub(super) fn host_range(
        &mut self,
        host_range: &HostRange,
        told: &SyncSender<Option<u64>>,
    ) -> Done {
        let copied = self.sink.host_range(host_range);
        let len = copied.as_ref().copied().unwrap_or(Some(0));
        self.host_copied += len.unwrap_or(0);
        // The channel has room for the one answer, and the source waits for it.
        let _ = told.send(len);
        self.after_data(copied.map(drop), true)
    }

    pub(super) fn after_data(&mut self, done: Done, more: bool) -> Done {
        if done.is_err() && more {
            self.skip = Skip::File;
        }
        done
    }

    pub(super) fn skips(&mut self, item: &Item) -> bool {
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
