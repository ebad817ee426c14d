//! A tree on its way: what a source reads and a sink writes, in batches that
//! go from one thread to another and back.
//!
//! The source runs ahead of the sink by at most [`BATCHES`] batches, so the
//! memory that a copy takes does not grow with what is copied.

use crate::exit::{Done, Exit, Fail};
use crate::volumes::Tally;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use volary::{FileKind, NodeId, Time};

/// Batches that are on their way at most.
const BATCHES: usize = 4;

/// Bytes in a batch: small enough to stay in a processor's cache between the
/// read and the write, large enough for long requests.
pub(crate) const BATCH_LEN: usize = 256 << 10;

/// Parts of a long file begin at multiples of this, in bytes.
const STEP: u64 = 64 << 10;

/// Items in a batch, at most: empty files take no bytes.
const ITEMS_MAX: usize = 512;

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
}

/// A stretch of a batch's bytes.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
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
    /// The rest of the file could not be read.
    Broken,
    Symlink(Span, Meta, Span),
    /// A fifo, socket or device.
    Special(Span, Meta),
}

/// Items, and the bytes that they speak of.
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

    fn get(&self, span: Span) -> &[u8] {
        self.bytes.get(span.start..span.end).unwrap_or_default()
    }
}

/// Where a source puts what it reads.
pub(crate) struct Outlet {
    full: SyncSender<Batch>,
    empty: Receiver<Batch>,
    batch: Batch,
}

/// The sink has ended: a failure without a line, for the sink has said why.
fn ended() -> Fail {
    Fail::new(Exit::Stopped, "")
}

impl Outlet {
    /// Sees to room for one more item of `len` bytes.
    fn room(&mut self, len: usize) -> Done {
        let fits = self.batch.items.len() < ITEMS_MAX && BATCH_LEN - self.batch.used >= len;
        if fits { Ok(()) } else { self.send() }
    }

    fn send(&mut self) -> Done {
        crate::interrupt::check()?;
        let next = self.empty.recv().map_err(|_| ended())?;
        let full = std::mem::replace(&mut self.batch, next);
        self.full.send(full).map_err(|_| ended())
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

    /// A directory; what follows up to [`leave`](Self::leave) is in it.
    pub(crate) fn enter(&mut self, name: &[u8], meta: Meta) -> Done {
        self.room(name.len())?;
        let name = self.put(name);
        self.batch.items.push(Item::Enter(name, meta));
        Ok(())
    }

    /// The end of a directory.
    pub(crate) fn leave(&mut self) -> Done {
        self.room(0)?;
        self.batch.items.push(Item::Leave);
        Ok(())
    }

    /// A symlink.
    pub(crate) fn symlink(&mut self, name: &[u8], meta: Meta, target: &[u8]) -> Done {
        self.room(name.len() + target.len())?;
        let (name, target) = (self.put(name), self.put(target));
        self.batch.items.push(Item::Symlink(name, meta, target));
        Ok(())
    }

    /// A fifo, socket or device.
    pub(crate) fn special(&mut self, name: &[u8], meta: Meta) -> Done {
        self.room(name.len())?;
        let name = self.put(name);
        self.batch.items.push(Item::Special(name, meta));
        Ok(())
    }

    /// A file; `read` is given an offset and room, and gives how many bytes
    /// it put there, 0 at the end.
    ///
    /// # Errors
    /// Of `read`; what came before is taken back by the sink.
    pub(crate) fn file(
        &mut self,
        name: &[u8],
        meta: Meta,
        read: &mut dyn FnMut(u64, &mut [u8]) -> Done<usize>,
    ) -> Done {
        let len = meta.len.unwrap_or(u64::MAX);
        let first = usize::try_from(len).unwrap_or(BATCH_LEN).min(BATCH_LEN / 2);
        self.room(name.len() + first)?;
        let before = self.batch.used;
        let name = self.put(name);
        let (data, mut more) = match self.stretch(0, len, read) {
            Ok(read) => read,
            Err(fail) => {
                self.batch.used = before;
                return Err(fail);
            }
        };
        let mut offset = (data.end - data.start) as u64;
        self.batch.items.push(Item::File(name, meta, data, more));
        while more {
            self.send()?;
            let read = self.stretch(offset, len, read);
            let (data, goes_on) = match read {
                Ok(read) => read,
                Err(fail) => {
                    self.batch.items.push(Item::Broken);
                    return Err(fail);
                }
            };
            offset += (data.end - data.start) as u64;
            more = goes_on;
            self.batch.items.push(Item::More(data, more));
        }
        Ok(())
    }

    /// Reads into what is left of the batch, and tells whether more comes. What
    /// more comes then begins at a multiple of [`STEP`], which volumes read
    /// and write without a copy.
    fn stretch(
        &mut self,
        offset: u64,
        len: u64,
        read: &mut dyn FnMut(u64, &mut [u8]) -> Done<usize>,
    ) -> Done<(Span, bool)> {
        let start = self.batch.used;
        let room = (BATCH_LEN - start) as u64;
        let mut end = len.min(offset + room);
        if end < len && end / STEP * STEP > offset {
            end = end / STEP * STEP;
        }
        let limit = start + usize::try_from(end.saturating_sub(offset)).unwrap_or(0);
        while self.batch.used < limit {
            let at = offset + (self.batch.used - start) as u64;
            let room = self.batch.bytes.get_mut(self.batch.used..limit);
            let n = read(at, room.unwrap_or_default())?;
            if n == 0 {
                break;
            }
            self.batch.used += n;
        }
        let is_full = self.batch.used == limit;
        let span = Span {
            start,
            end: self.batch.used,
        };
        Ok((span, is_full && end < len))
    }
}

/// What a copy writes to. Names are one name each; a directory that is
/// entered stays the place of what follows until it is left. What fails is
/// left out and the rest goes on, but for a failure that says `Stopped`.
pub(crate) trait Sink {
    /// Makes a directory, or takes the one that is there, and goes into it.
    fn enter(&mut self, name: &[u8], meta: &Meta) -> Done;
    /// Goes back out of it.
    fn leave(&mut self) -> Done;
    /// Makes a file that begins with `data`; if `more`, it goes on.
    fn file(&mut self, name: &[u8], meta: &Meta, data: &[u8], more: bool) -> Done;
    /// More of the file; if `more`, it goes on yet.
    fn data(&mut self, data: &[u8], more: bool) -> Done;
    /// The rest of the file does not come: takes away what there is of it.
    fn broken(&mut self);
    /// Makes a symlink.
    fn symlink(&mut self, name: &[u8], meta: &Meta, target: &[u8]) -> Done;
    /// Makes a fifo, socket or device.
    fn special(&mut self, name: &[u8], meta: &Meta) -> Done;
}

/// Runs a copy: `source` in a thread of its own, the sink in this one. Each
/// batch is told to `progress`: files ended, bytes.
///
/// # Errors
/// What stopped it. Failures of single files are reported to `tally`.
pub(crate) fn run(
    source: impl FnOnce(&mut Outlet) -> Done + Send,
    sink: &mut dyn Sink,
    tally: &mut Tally,
    progress: &mut dyn FnMut(u64, u64),
) -> Done {
    let (full, ready) = sync_channel(BATCHES);
    let (back, empty) = sync_channel(BATCHES);
    for _ in 1..BATCHES {
        // There is room for all of them, and the other end is here.
        let _ = back.send(Batch::new());
    }
    let mut outlet = Outlet {
        full,
        empty,
        batch: Batch::new(),
    };
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().name("reader".into());
        let reading = move || {
            let done = source(&mut outlet);
            // What was read is worth writing, whatever ended the reading.
            let sent = outlet.full.send(outlet.batch).map_err(|_| ended());
            done.and(sent)
        };
        let reader = reader
            .spawn_scoped(scope, reading)
            .map_err(|e| Fail::host("thread", e))?;
        let mut pump = Pump {
            sink,
            tally,
            skip: Skip::No,
        };
        let mut written = Ok(());
        while let Ok(mut batch) = ready.recv() {
            written = pump.batch(&batch, progress);
            if written.is_err() {
                break;
            }
            batch.used = 0;
            batch.items.clear();
            // The source may have ended: then it wants no more.
            let _ = back.send(batch);
        }
        drop((ready, back));
        let read = reader
            .join()
            .unwrap_or_else(|_| Err(Fail::new(Exit::Failed, "reader died")));
        written.and(read)
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

struct Pump<'a> {
    sink: &'a mut dyn Sink,
    tally: &'a mut Tally,
    skip: Skip,
}

impl Pump<'_> {
    fn batch(&mut self, batch: &Batch, progress: &mut dyn FnMut(u64, u64)) -> Done {
        let (mut files, mut bytes) = (0, 0);
        for item in &batch.items {
            if let Item::File(.., data, _) | Item::More(data, _) = item {
                bytes += (data.end - data.start) as u64;
            }
            files += u64::from(matches!(item, Item::File(.., false) | Item::More(_, false)));
            let done = self.item(batch, item);
            self.tally.take(done)?;
        }
        progress(files, bytes);
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
            Item::Broken => {
                sink.broken();
                Ok(())
            }
            Item::Symlink(name, meta, target) => {
                sink.symlink(batch.get(*name), meta, batch.get(*target))
            }
            Item::Special(name, meta) => sink.special(batch.get(*name), meta),
        }
    }

    fn after_data(&mut self, done: Done, more: bool) -> Done {
        if done.is_err() && more {
            self.skip = Skip::File;
        }
        done
    }

    fn skips(&mut self, item: &Item) -> bool {
        match (self.skip, item) {
            (Skip::File, Item::More(_, true)) => true,
            (Skip::File, Item::More(_, false) | Item::Broken) => {
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
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Writes down what comes, and fails where it is told to.
    #[derive(Default)]
    struct Notes {
        text: String,
        fails_at: &'static str,
    }

    impl Notes {
        fn note(&mut self, what: &str, name: &[u8]) -> Done {
            let name = String::from_utf8_lossy(name);
            write!(self.text, "{what}{name} ").unwrap();
            if !self.fails_at.is_empty() && name == self.fails_at {
                return Err(Fail::new(Exit::Failed, ""));
            }
            Ok(())
        }
    }

    impl Sink for Notes {
        fn enter(&mut self, name: &[u8], _: &Meta) -> Done {
            self.note(">", name)
        }
        fn leave(&mut self) -> Done {
            self.note("<", b"")
        }
        fn file(&mut self, name: &[u8], _: &Meta, data: &[u8], more: bool) -> Done {
            let len = format!("={}{}", data.len(), if more { "+" } else { "" });
            self.note("", &[name, len.as_bytes()].concat())?;
            if name == self.fails_at.as_bytes() {
                return Err(Fail::new(Exit::Failed, ""));
            }
            Ok(())
        }
        fn data(&mut self, data: &[u8], more: bool) -> Done {
            self.note(
                "",
                format!("={}{}", data.len(), if more { "+" } else { "" }).as_bytes(),
            )
        }
        fn broken(&mut self) {
            self.text.push_str("broken ");
        }
        fn symlink(&mut self, name: &[u8], _: &Meta, target: &[u8]) -> Done {
            self.note("@", &[name, target].concat())
        }
        fn special(&mut self, name: &[u8], _: &Meta) -> Done {
            self.note("!", name)
        }
    }

    fn meta(len: Option<u64>) -> Meta {
        Meta {
            kind: FileKind::File,
            mode: 0,
            uid: 0,
            gid: 0,
            len,
            rdev: 0,
            atime: Time::EPOCH,
            mtime: Time::EPOCH,
            dos: None,
            node: None,
        }
    }

    fn zeros(len: u64) -> impl FnMut(u64, &mut [u8]) -> Done<usize> {
        move |offset, room| Ok((len - offset).min(room.len() as u64) as usize)
    }

    fn copy(
        fails_at: &'static str,
        source: impl FnOnce(&mut Outlet) -> Done + Send,
    ) -> (String, Done, Tally) {
        let mut notes = Notes {
            fails_at,
            ..Notes::default()
        };
        let mut tally = Tally::default();
        let done = run(source, &mut notes, &mut tally, &mut |_, _| {});
        (notes.text, done, tally)
    }

    #[test]
    fn a_tree_arrives_in_order() {
        let (text, done, _) = copy("", |to| {
            to.enter(b"d", meta(None))?;
            to.file(b"a", meta(Some(3)), &mut zeros(3))?;
            to.symlink(b"s", meta(None), b"t")?;
            to.leave()?;
            to.special(b"p", meta(None))
        });
        assert_eq!(text, ">d a=3 @st < !p ");
        assert!(done.is_ok());
    }

    #[test]
    fn files_of_every_length_arrive_whole() {
        const LEN: u64 = BATCH_LEN as u64;
        for len in [0, 1, LEN / 2, LEN - 1, LEN, LEN + 1, 10 * LEN, 10 * LEN + 7] {
            for known in [Some(len), None] {
                let (text, done, _) =
                    copy("", move |to| to.file(b"f", meta(known), &mut zeros(len)));
                let parts = text
                    .split_whitespace()
                    .map(|p| p.trim_start_matches(['f', '=']));
                let sum: u64 = parts
                    .map(|p| p.trim_end_matches('+').parse::<u64>().unwrap())
                    .sum();
                assert_eq!(sum, len, "{text}");
                assert!(done.is_ok() && !text.trim_end().ends_with('+'), "{text}");
            }
        }
    }

    #[test]
    fn a_directory_that_fails_is_passed_over_whole() {
        let (text, done, tally) = copy("d", |to| {
            to.enter(b"d", meta(None))?;
            to.enter(b"e", meta(None))?;
            to.leave()?;
            to.file(b"a", meta(Some(1)), &mut zeros(1))?;
            to.leave()?;
            to.file(b"b", meta(Some(1)), &mut zeros(1))
        });
        assert_eq!(text, ">d b=1 ");
        assert!(done.is_ok());
        assert_eq!(tally.exit(), Exit::Failed);
    }

    #[test]
    fn a_file_that_fails_is_passed_over_to_its_end() {
        let long = 3 * BATCH_LEN as u64;
        let (text, ..) = copy("a", move |to| {
            to.file(b"a", meta(Some(long)), &mut zeros(long))?;
            to.file(b"b", meta(Some(1)), &mut zeros(1))
        });
        assert!(text.starts_with("a=") && text.ends_with(" b=1 "), "{text}");
        assert_eq!(text.split_whitespace().count(), 2, "{text}");
    }

    #[test]
    fn a_read_that_fails_in_the_middle_is_told_to_the_sink() {
        let long = 3 * BATCH_LEN as u64;
        let (text, done, _) = copy("", move |to| {
            to.file(b"a", meta(Some(long)), &mut |offset, room| {
                if offset > BATCH_LEN as u64 {
                    return Err(Fail::new(Exit::Failed, "bad"));
                }
                Ok(room.len())
            })
        });
        assert!(text.ends_with("broken "), "{text}");
        assert_eq!(done.unwrap_err().line, "bad");
    }

    #[test]
    fn a_sink_that_stops_ends_the_source() {
        struct Full;
        impl Sink for Full {
            fn enter(&mut self, _: &[u8], _: &Meta) -> Done {
                Ok(())
            }
            fn leave(&mut self) -> Done {
                Ok(())
            }
            fn file(&mut self, _: &[u8], _: &Meta, _: &[u8], _: bool) -> Done {
                Err(Fail::new(Exit::Stopped, "full"))
            }
            fn data(&mut self, _: &[u8], _: bool) -> Done {
                Ok(())
            }
            fn broken(&mut self) {}
            fn symlink(&mut self, _: &[u8], _: &Meta, _: &[u8]) -> Done {
                Ok(())
            }
            fn special(&mut self, _: &[u8], _: &Meta) -> Done {
                Ok(())
            }
        }
        let endless = |to: &mut Outlet| loop {
            to.file(b"a", meta(Some(100)), &mut zeros(100))?;
        };
        let done = run(endless, &mut Full, &mut Tally::default(), &mut |_, _| {});
        assert_eq!(done.unwrap_err().line, "full");
    }
}
