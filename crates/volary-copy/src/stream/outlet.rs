//! The outlet into which a source puts what it reads.

use super::batch::{ALONE, BATCH_LEN, BATCHES, Batch, ITEMS_MAX, Item, Meta, STEP, Span};
use super::pump::Pump;
use crate::nodes::host_range::HostRange;
use crate::told::failure::{Done, Failure, Why};
use crate::told::observer::Observer;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// The next piece of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The first bytes of `room`, this many, were filled.
    Data(usize),
    /// A hole of this length; nothing was written to `room`.
    Hole(u64),
    End,
}

/// The content of a file, in pieces.
pub(crate) trait Pieces {
    /// Returns the piece that begins at `offset`.
    ///
    /// # Errors
    /// If the rest cannot be read.
    fn next(&mut self, offset: u64, room: &mut [u8]) -> Done<Piece>;
    /// Called when everything was read.
    ///
    /// # Errors
    /// If the content that was read is no copy after all.
    fn ended(&mut self) -> Done {
        Ok(())
    }
    /// Returns the stretch that begins at `offset`, if it is long and lies in a file of the host.
    fn host_range(&mut self, offset: u64) -> Option<HostRange> {
        let _ = offset;
        None
    }
    /// Reports how many bytes of the last stretch were copied.
    fn copied(&mut self, copied: u64) {
        let _ = copied;
    }
    /// Returns the number of bytes without holes, if it is known.
    fn data_len(&mut self) -> Option<u64> {
        None
    }
    /// Returns the name of the content, for messages.
    fn place(&self) -> String {
        "what is read".into()
    }
}

/// A function that returns the number of bytes read; 0 at the end.
impl<F: FnMut(u64, &mut [u8]) -> Done<usize>> Pieces for F {
    fn next(&mut self, offset: u64, room: &mut [u8]) -> Done<Piece> {
        Ok(match self(offset, room)? {
            0 => Piece::End,
            n => Piece::Data(n),
        })
    }
}

/// How many more bytes may be copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    left: u64,
    max: u64,
}

impl Budget {
    pub(crate) const fn new(max: u64) -> Self {
        Self { left: max, max }
    }

    /// # Errors
    /// `TooMuch` if `len` exceeds the budget.
    fn check(&self, len: u64, content: &dyn Pieces) -> Done {
        if len <= self.left {
            return Ok(());
        }
        Err(Failure::new(content.place(), Why::TooMuch(self.max)))
    }
}

/// The outlet of a source: it gathers items in batches for the sink.
pub(crate) struct Outlet<'scope, 'env> {
    pub(super) scope: &'scope Scope<'scope, 'env>,
    pub(super) batch: Batch,
    pub(super) sink: Writer<'scope, 'env>,
    pub(super) budget: &'env mut Option<Budget>,
    /// Whether the sink may let the host copy stretches.
    pub(super) takes_ranges: bool,
    pub(super) observer: &'env dyn Observer,
}

/// Who empties the batches.
pub(super) enum Writer<'scope, 'env> {
    /// The source's own thread, which has sent this many bytes so far.
    Here(Pump<'env>, usize),
    /// A separate thread.
    There {
        full: SyncSender<Batch>,
        empty: Receiver<Batch>,
        thread: ScopedJoinHandle<'scope, Done>,
    },
    /// Nobody any more: the sink ended with this result.
    Ended(Done),
}

/// Returns the failure of a sink that has ended. It is not reported, as the sink has reported why.
fn ended() -> Failure {
    Failure::new("", Why::Told)
}

impl Outlet<'_, '_> {
    /// Makes room for one more item of `len` bytes.
    fn room(&mut self, len: usize) -> Done {
        let fits = self.batch.items.len() < ITEMS_MAX && BATCH_LEN - self.batch.used >= len;
        if fits { Ok(()) } else { self.send() }
    }

    fn send(&mut self) -> Done {
        self.observer.check()?;
        match &mut self.sink {
            Writer::Here(pump, sent) => {
                *sent += self.batch.used;
                let goes_on = *sent >= ALONE;
                let written = pump.empty(&mut self.batch);
                if written.is_err() {
                    self.sink = Writer::Ended(written);
                    return Err(ended());
                }
                if goes_on { self.part() } else { Ok(()) }
            }
            Writer::There { full, empty, .. } => {
                let next = empty.recv().map_err(|_| ended())?;
                let batch = std::mem::replace(&mut self.batch, next);
                full.send(batch).map_err(|_| ended())
            }
            Writer::Ended(_) => Err(ended()),
        }
    }

    /// Gives the sink its own thread.
    fn part(&mut self) -> Done {
        let sink = std::mem::replace(&mut self.sink, Writer::Ended(Ok(())));
        let Writer::Here(pump, _) = sink else {
            self.sink = sink;
            return Ok(());
        };
        let (full, ready) = sync_channel(BATCHES);
        let (back, empty) = sync_channel(BATCHES);
        for _ in 1..BATCHES {
            // The channel has room for all of them, and its receiver exists.
            let _ = back.send(Batch::new());
        }
        let thread = Builder::new()
            .name("writer".into())
            .spawn_scoped(self.scope, move || pump.run(&ready, &back))
            .map_err(|e| Failure::host("thread", e).stopping())?;
        self.sink = Writer::There {
            full,
            empty,
            thread,
        };
        Ok(())
    }

    /// Sends the rest, and returns the sink's result.
    pub(super) fn finish(mut self) -> Done {
        match self.sink {
            Writer::Here(mut pump, _) => pump.empty(&mut self.batch),
            Writer::There { full, thread, .. } => {
                // If this fails, the thread has ended, and `join` returns why.
                let _ = full.send(self.batch);
                drop(full);
                let died = |_| Err(Failure::words("", "writer died"));
                thread.join().unwrap_or_else(died)
            }
            Writer::Ended(done) => done,
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Span {
        let start = self.batch.used;
        let end = start + bytes.len();
        if let Some(room) = self.batch.bytes.get_mut(start..end) {
            room.copy_from_slice(bytes);
        }
        self.batch.used = end;
        Span { start, end }
    }

    /// Adds a directory; the items up to [`leave`](Self::leave) are in it.
    pub(crate) fn enter(&mut self, name: &[u8], meta: Meta) -> Done {
        self.room(name.len())?;
        let name = self.put(name);
        self.batch.items.push(Item::Enter(name, meta));
        Ok(())
    }

    /// Ends a directory.
    pub(crate) fn leave(&mut self) -> Done {
        self.room(0)?;
        self.batch.items.push(Item::Leave);
        Ok(())
    }

    /// Adds a symlink.
    pub(crate) fn symlink(&mut self, name: &[u8], meta: Meta, target: &[u8]) -> Done {
        self.room(name.len() + target.len())?;
        let (name, target) = (self.put(name), self.put(target));
        self.batch.items.push(Item::Symlink(name, meta, target));
        Ok(())
    }

    /// Adds a fifo, socket or device.
    pub(crate) fn special(&mut self, name: &[u8], meta: Meta) -> Done {
        self.room(name.len())?;
        let name = self.put(name);
        self.batch.items.push(Item::Special(name, meta));
        Ok(())
    }

    /// Adds another name of a node that the sink has made.
    pub(crate) fn link(&mut self, name: &[u8], meta: Meta) -> Done {
        self.room(name.len())?;
        let name = self.put(name);
        self.batch.items.push(Item::Link(name, meta));
        Ok(())
    }

    /// Adds an extended attribute of the next node. Name and value together must fit into a batch.
    pub(crate) fn xattr(&mut self, name: &[u8], value: &[u8]) -> Done {
        self.room(name.len() + value.len())?;
        let (name, value) = (self.put(name), self.put(value));
        self.batch.items.push(Item::Xattr(name, value));
        Ok(())
    }

    /// Discards the attributes that were sent for the next file, as it does not come.
    pub(crate) fn nothing(&mut self) {
        self.batch.items.push(Item::Broken);
    }

    /// Adds a file.
    ///
    /// # Errors
    /// Those of `content`; the sink then removes what it has written of the file. `TooMuch` if the
    /// file exceeds the budget; if its length without holes is known, before anything is read.
    pub(crate) fn file(&mut self, name: &[u8], meta: Meta, content: &mut dyn Pieces) -> Done {
        if let Some(budget) = *self.budget
            && let Some(len) = content.data_len()
        {
            budget.check(len, content)?;
        }
        let len = meta.len.unwrap_or(u64::MAX);
        let first = usize::try_from(len).unwrap_or(BATCH_LEN).min(BATCH_LEN / 2);
        self.room(name.len() + first)?;
        let before = self.batch.used;
        let name = self.put(name);
        let (data, next) = match self.stretch(0, len, content) {
            Ok(read) => read,
            Err(fail) => {
                self.batch.used = before;
                self.nothing();
                return Err(fail);
            }
        };
        let offset = data.len();
        let more = !matches!(next, Next::End);
        self.batch.items.push(Item::File(name, meta, data, more));
        let done = self.rest(offset, len, next, content);
        if done.is_err() {
            self.batch.items.push(Item::Broken);
        }
        done
    }

    /// Adds what follows the first `offset` bytes of a file of `len` bytes.
    fn rest(
        &mut self,
        mut offset: u64,
        len: u64,
        mut next: Next,
        content: &mut dyn Pieces,
    ) -> Done {
        loop {
            match next {
                Next::End => return Ok(()),
                Next::More => self.send()?,
                Next::HostRange(host_range) => offset += self.host_range(host_range, content)?,
                Next::Hole(hole) => {
                    offset = offset.saturating_add(hole).min(len);
                    let more = offset < len;
                    if !more {
                        content.ended()?;
                    }
                    self.room(0)?;
                    self.batch.items.push(Item::Hole(hole, more));
                    if !more {
                        return Ok(());
                    }
                }
            }
            let (data, after) = self.stretch(offset, len, content)?;
            offset += data.len();
            next = after;
            // Sends no empty data between two holes.
            let is_end = matches!(next, Next::End);
            if data.len() > 0 || is_end {
                self.batch.items.push(Item::More(data, !is_end));
            }
        }
    }

    /// Reads into the rest of the batch, up to a hole, and returns what comes next. Later parts
    /// then begin at a multiple of [`STEP`], which volumes can read and write without a copy.
    fn stretch(&mut self, offset: u64, len: u64, content: &mut dyn Pieces) -> Done<(Span, Next)> {
        let start = self.batch.used;
        let room = (BATCH_LEN - start) as u64;
        let mut end = len.min(offset.saturating_add(room));
        if end < len && end / STEP * STEP > offset {
            end = end / STEP * STEP;
        }
        let limit = start + usize::try_from(end.saturating_sub(offset)).unwrap_or(0);
        let mut next = if end < len { Next::More } else { Next::End };
        while self.batch.used < limit {
            let at = offset + (self.batch.used - start) as u64;
            if let Some(host_range) = content.host_range(at).filter(|_| self.takes_ranges) {
                next = Next::HostRange(host_range);
                break;
            }
            let room = self.batch.bytes.get_mut(self.batch.used..limit);
            match content.next(at, room.unwrap_or_default())? {
                Piece::Data(n) => {
                    self.spend(n as u64, content)?;
                    self.batch.used += n;
                }
                Piece::Hole(n) => {
                    next = Next::Hole(n);
                    break;
                }
                Piece::End => {
                    next = Next::End;
                    break;
                }
            }
        }
        if matches!(next, Next::End) {
            content.ended()?;
        }
        let span = Span {
            start,
            end: self.batch.used,
        };
        Ok((span, next))
    }

    /// Sends the batch, and lets the sink copy a stretch. Returns how many bytes it copied.
    fn host_range(&mut self, host_range: HostRange, content: &mut dyn Pieces) -> Done<u64> {
        let (tell, told) = sync_channel(1);
        self.batch.items.push(Item::HostRange(host_range, tell));
        self.send()?;
        // Without an answer, the sink has skipped the file.
        let copied = told.recv().unwrap_or(Some(0));
        self.takes_ranges = copied.is_some();
        let copied = copied.unwrap_or(0);
        content.copied(copied);
        self.spend(copied, content)
    }

    /// Counts bytes that were read against the budget.
    fn spend(&mut self, len: u64, content: &dyn Pieces) -> Done<u64> {
        if let Some(budget) = self.budget {
            budget.check(len, content)?;
            budget.left -= len;
        }
        Ok(len)
    }
}

/// What follows a stretch of content.
#[derive(Debug)]
enum Next {
    More,
    Hole(u64),
    HostRange(HostRange),
    End,
}
