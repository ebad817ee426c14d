//! Whole trees in the order in which they lie, one file after the other.

use crate::error::{Failure, run};
use crate::facts::stat;
use crate::own::Own;
use ignore::overrides::{Override, OverrideBuilder};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use volary::bulk::{Consumer, File, Options, Part, Shuffle};
use volary::{Attr, FileKind, Kind, Vol, escape};

/// What is handed over at once, in bytes and in files.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_FILES: usize = 256;
/// How often it is looked whether the user interrupts.
const LOOK: Duration = Duration::from_millis(100);

/// Which files, and in which order.
pub(crate) struct How {
    pub(crate) paths: Vec<Vec<u8>>,
    pub(crate) shuffle: Option<Shuffle>,
    pub(crate) memory: Option<u64>,
    pub(crate) include: Vec<String>,
    pub(crate) exclude: Vec<String>,
    /// Of how many shares which one.
    pub(crate) shard: Option<(u64, u64)>,
    /// Larger files are told of as failed.
    pub(crate) largest: u64,
}

/// A file, or why there is none.
enum Item {
    File {
        path: Vec<u8>,
        attr: Attr,
        bytes: Vec<u8>,
    },
    Failed {
        path: Vec<u8>,
        failure: Failure,
    },
}

/// A bulk read under way.
struct Running {
    batches: Receiver<Vec<Item>>,
    ready: VecDeque<Item>,
    is_awaited: Arc<AtomicBool>,
    run: Option<JoinHandle<Result<(), Failure>>>,
}

impl Running {
    /// Returns what comes next: `None` in the inner place at the end, in the outer if nothing came for a while.
    fn next(&mut self) -> Result<Option<Option<Item>>, Failure> {
        if let Some(item) = self.ready.pop_front() {
            return Ok(Some(Some(item)));
        }
        self.is_awaited.store(true, Ordering::Relaxed);
        let came = self.batches.recv_timeout(LOOK);
        self.is_awaited.store(false, Ordering::Relaxed);
        match came {
            Ok(batch) => {
                self.ready = batch.into();
                Ok(self.ready.pop_front().map(Some))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let Some(run) = self.run.take() else {
                    return Ok(Some(None));
                };
                let died = || Failure::new(Kind::Io, "the thread that reads has panicked");
                run.join().map_err(|_| died())??;
                Ok(Some(None))
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // With nobody to take files, the run stops at the next one.
        let (_, none) = sync_channel(0);
        self.batches = none;
        if let Some(run) = self.run.take() {
            let _ = run.join();
        }
    }
}

/// Files of a tree: `(path, stat, bytes)`, or `(path, None, error)`.
#[pyclass(frozen, module = "volary._volary")]
pub(crate) struct Bulk(Own<Running>);

impl Bulk {
    /// Begins to read.
    ///
    /// # Errors
    /// `Invalid` for a pattern that is none.
    pub(crate) fn begin(vol: &Vol, how: How) -> Result<Self, Failure> {
        let (sender, batches) = sync_channel(1);
        let is_awaited = Arc::new(AtomicBool::new(false));
        let sink = Sink {
            include: globs(&how.include)?,
            exclude: globs(&how.exclude)?,
            shard: how.shard,
            largest: how.largest,
            sender,
            is_awaited: Arc::clone(&is_awaited),
            gathered: Mutex::default(),
        };
        let options = Options {
            memory: how.memory.unwrap_or(Options::MEMORY),
            shuffle: how.shuffle,
            clock: Some(stopwatch()),
            ..Options::default()
        };
        let read = vol.bulk(how.paths).options(options);
        let thread = std::thread::Builder::new().name("volary-bulk".into());
        let run = thread.spawn(move || {
            let ran = read.run(&sink);
            sink.send_rest();
            ran.map(drop).map_err(Failure::from)
        });
        let run = run.map_err(|e| {
            let words = format!("cannot start a thread: {e}");
            Failure::new(Kind::Io, words)
        })?;
        Ok(Self(Own::new(Running {
            batches,
            ready: VecDeque::new(),
            is_awaited,
            run: Some(run),
        })))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the run is timed by the host's clock"
)]
fn stopwatch() -> volary::bulk::Clock {
    let begin = Instant::now();
    Arc::new(move || begin.elapsed())
}

#[pymethods]
impl Bulk {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        loop {
            let came = run(py, || {
                // Closed, it has come to its end.
                let next =
                    |running: Option<&mut Running>| running.map_or(Ok(Some(None)), Running::next);
                self.0.with_any(next)
            })?;
            match came {
                Some(item) => return item.map(|item| item.told(py)).transpose(),
                None => py.check_signals()?,
            }
        }
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.take()));
    }
}

impl Item {
    fn told(self, py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        let (path, attr, what) = match self {
            Self::File { path, attr, bytes } => {
                let attr = stat(py, &attr)?.into_any();
                (path, attr, PyBytes::new(py, &bytes).into_any())
            }
            Self::Failed { path, failure } => {
                let e = failure.raised(py).into_value(py).into_bound(py);
                (path, py.None().into_bound(py), e.into_any())
            }
        };
        (PyBytes::new(py, &path), attr, what).into_pyobject(py)
    }
}

/// Takes what the engine delivers.
struct Sink {
    include: Option<Override>,
    exclude: Option<Override>,
    shard: Option<(u64, u64)>,
    largest: u64,
    sender: SyncSender<Vec<Item>>,
    is_awaited: Arc<AtomicBool>,
    gathered: Mutex<Gathered>,
}

#[derive(Default)]
struct Gathered {
    items: Vec<Item>,
    bytes: usize,
    /// A large file, of which more comes.
    begun: Option<Vec<u8>>,
}

impl Gathered {
    fn add(&mut self, item: Item) {
        if let Item::File { bytes, .. } = &item {
            self.bytes += bytes.len();
        }
        self.items.push(item);
    }
}

impl Sink {
    fn add_part(&self, file: &File<'_>, part: Part<'_>) {
        let mut gathered = self.gathered.lock();
        let whole = match part {
            Part::Node => return,
            Part::Whole(bytes) => bytes.to_vec(),
            Part::Begin => {
                gathered.begun = Some(Vec::new());
                return;
            }
            Part::Chunk { bytes, .. } => {
                self.go_on(&mut gathered, file, bytes.len() as u64, |begun| {
                    begun.extend_from_slice(bytes);
                });
                return;
            }
            Part::Hole(range) => {
                self.go_on(&mut gathered, file, range.len, |begun| {
                    let len = begun.len() + usize::try_from(range.len).unwrap_or(0);
                    begun.resize(len, 0);
                });
                return;
            }
            Part::End => match gathered.begun.take() {
                Some(bytes) => bytes,
                // What did not fit has been told of.
                None => return,
            },
            Part::Failed(e) => {
                gathered.begun = None;
                let failure = failed(file, e.kind(), &e.to_string());
                gathered.add(failure);
                return;
            }
        };
        let item = match file.attr {
            Some(attr) => Item::File {
                path: file.path.to_vec(),
                attr: *attr,
                bytes: whole,
            },
            None => failed(file, Kind::Corrupt, "its attributes cannot be read"),
        };
        gathered.add(item);
    }

    /// Adds to a large file, if it may be as large.
    fn go_on(
        &self,
        gathered: &mut Gathered,
        file: &File<'_>,
        more: u64,
        add: impl FnOnce(&mut Vec<u8>),
    ) {
        let Some(begun) = &mut gathered.begun else {
            return;
        };
        let fits = begun.len() as u64 + more <= self.largest
            && usize::try_from(more).is_ok_and(|more| begun.try_reserve(more).is_ok());
        if fits {
            add(begun);
        } else {
            gathered.begun = None;
            let failure = self.too_large(file);
            gathered.add(failure);
        }
    }

    fn too_large(&self, file: &File<'_>) -> Item {
        let words = format!("larger than {} bytes, or than memory", self.largest);
        failed(file, Kind::TooBig, &words)
    }

    /// Hands over what was gathered.
    fn send(&self) -> ControlFlow<()> {
        let gathered = {
            let mut gathered = self.gathered.lock();
            gathered.bytes = 0;
            std::mem::take(&mut gathered.items)
        };
        match gathered.is_empty() || self.sender.send(gathered).is_ok() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    fn send_rest(&self) {
        // Nobody has to want it.
        let _ = self.send();
    }
}

fn failed(file: &File<'_>, kind: Kind, words: &str) -> Item {
    Item::Failed {
        path: file.path.to_vec(),
        failure: Failure::new(kind, format!("cannot read {}: {words}", escape(file.path))),
    }
}

impl Consumer for Sink {
    fn wants(&self, file: &File<'_>) -> bool {
        let Some(attr) = file.attr else { return true };
        let is_dir = attr.kind == FileKind::Dir;
        let fits = |globs: &Override| globs.matched(relative(file.path), is_dir).is_whitelist();
        if self.exclude.as_ref().is_some_and(fits) {
            return false;
        }
        if is_dir {
            return true;
        }
        let is_ours = |(index, count)| share_of(file.path) % count == index;
        let is_wanted = attr.kind == FileKind::File
            && self.include.as_ref().is_none_or(fits)
            && self.shard.is_none_or(is_ours);
        if is_wanted && attr.size > self.largest {
            let failure = self.too_large(file);
            self.gathered.lock().add(failure);
            return false;
        }
        is_wanted
    }

    fn take(&self, file: &File<'_>, part: Part<'_>) -> ControlFlow<()> {
        self.add_part(file, part);
        let is_due = {
            let gathered = self.gathered.lock();
            gathered.bytes >= BATCH_BYTES || gathered.items.len() >= BATCH_FILES
        };
        match is_due || self.is_awaited.load(Ordering::Relaxed) {
            true => self.send(),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Returns a number that a path decides, the same in every process (FNV-1a, and its halves mixed).
fn share_of(path: &[u8]) -> u64 {
    let hash = path.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^ (hash >> 32)
}

fn relative(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path)))
}

/// Returns patterns as a .gitignore has them.
///
/// # Errors
/// `Invalid` for what is no pattern.
fn globs(patterns: &[String]) -> Result<Option<Override>, Failure> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut builder = OverrideBuilder::new("/");
    for pattern in patterns {
        // An exclamation mark would turn the meaning around.
        let literal = match pattern.strip_prefix('!') {
            Some(rest) => format!("\\!{rest}"),
            None => pattern.clone(),
        };
        builder.add(&literal).map_err(|e| {
            let words = format!("'{}' is no pattern: {e}", escape(pattern.as_bytes()));
            Failure::new(Kind::Invalid, words)
        })?;
    }
    let built = builder.build();
    built
        .map(Some)
        .map_err(|e| Failure::new(Kind::Invalid, e.to_string()))
}
