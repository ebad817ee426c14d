//! What becomes of files.

use super::filter::Filter;
use super::names::Names;
use super::report::Report;
use crate::exit::{Done, Exit, Fail};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;
use volary::FileKind;
use volary::bulk::{Consumer, File, Part, Summary};

/// What is done with files. Parts of one file come on one thread, in order.
pub(super) trait Sink: Sync {
    /// Returns whether a file that the user wants is to be read: an archive needs each once.
    fn wants(&self, to: &To<'_>, file: &File<'_>) -> bool {
        let _ = (to, file);
        true
    }

    /// Takes a part. What goes wrong with one file is reported there; an error ends the run.
    ///
    /// # Errors
    /// Of what all files go to.
    fn take(&self, to: &To<'_>, file: &File<'_>, part: Part<'_>) -> Done;

    /// Ends what all files go to.
    ///
    /// # Errors
    /// Of that.
    fn end(&self, to: &To<'_>) -> Done {
        let _ = to;
        Ok(())
    }
}

/// What a sink needs of the run.
pub(super) struct To<'a> {
    pub(super) names: &'a Names,
    pub(super) report: &'a Report,
}

impl To<'_> {
    /// A file is done, and perhaps has a sum.
    ///
    /// # Errors
    /// Of standard output.
    pub(super) fn done(&self, file: &File<'_>, sum: Option<&str>) -> Done {
        self.report.done(&self.names.of(file), file, sum)
    }

    /// Something could not be done with a file.
    ///
    /// # Errors
    /// Of standard output.
    pub(super) fn failed(&self, file: &File<'_>, words: &str) -> Done {
        self.report.failed(&self.names.of(file), words)
    }
}

/// Nothing becomes of them.
pub(super) struct Nothing;

impl Sink for Nothing {
    fn take(&self, to: &To<'_>, file: &File<'_>, part: Part<'_>) -> Done {
        match part {
            Part::Whole(_) | Part::End => to.done(file, None),
            _ => Ok(()),
        }
    }
}

/// The consumer of a run.
pub(super) struct Told<'a> {
    to: To<'a>,
    filter: &'a Filter,
    sink: &'a dyn Sink,
    /// Why the run was ended.
    why: Mutex<Option<Fail>>,
}

impl<'a> Told<'a> {
    pub(super) fn new(
        names: &'a Names,
        filter: &'a Filter,
        report: &'a Report,
        sink: &'a dyn Sink,
    ) -> Self {
        Self {
            to: To { names, report },
            filter,
            sink,
            why: Mutex::default(),
        }
    }

    fn part(&self, file: &File<'_>, part: Part<'_>) -> Done {
        crate::interrupt::check()?;
        if let Part::Failed(e) = part {
            let fail = Fail::at("", e);
            let words = fail.line.trim_start_matches(": ");
            self.to.failed(file, words)?;
        }
        let is_dir = file.attr.is_some_and(|attr| attr.kind == FileKind::Dir);
        if is_dir && matches!(part, Part::Node) && !self.filter.includes_dirs() {
            return Ok(());
        }
        self.sink.take(&self.to, file, part)?;
        match part {
            Part::Whole(bytes) | Part::Chunk { bytes, .. } => {
                self.to.report.came(bytes.len() as u64);
            }
            Part::Hole(range) => self.to.report.came(range.len),
            _ => {}
        }
        Ok(())
    }

    /// The run has ended.
    ///
    /// # Errors
    /// What ended it.
    pub(super) fn end(&self, summary: &Summary) -> Done<Exit> {
        let why = self
            .why
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let ended = match why {
            Some(fail) => Err(fail),
            None => self.sink.end(&self.to),
        };
        let failed = self.to.report.end(summary)?;
        ended?;
        Ok(if failed > 0 { Exit::Failed } else { Exit::Done })
    }
}

impl Consumer for Told<'_> {
    fn wants(&self, file: &File<'_>) -> bool {
        self.filter.wants(file) && self.sink.wants(&self.to, file)
    }

    fn found(&self, _: u64, bytes: u64) {
        self.to.report.found(bytes);
    }

    fn take(&self, file: &File<'_>, part: Part<'_>) -> ControlFlow<()> {
        match self.part(file, part) {
            Ok(()) => ControlFlow::Continue(()),
            Err(fail) => {
                let mut why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
                why.get_or_insert(fail);
                ControlFlow::Break(())
            }
        }
    }
}

/// What each thread has of the large file that it is given.
pub(super) struct Begun<T>(Mutex<HashMap<ThreadId, T>>);

impl<T> Default for Begun<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Begun<T> {
    pub(super) fn put(&self, value: T) {
        self.lock().insert(std::thread::current().id(), value);
    }

    pub(super) fn take(&self) -> Option<T> {
        self.lock().remove(&std::thread::current().id())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ThreadId, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Zeros of a hole, some at a time.
///
/// # Errors
/// Of `each`.
pub(super) fn zeros(len: u64, mut each: impl FnMut(&[u8]) -> Done) -> Done {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut left = len;
    while left > 0 {
        crate::interrupt::check()?;
        let n = usize::try_from(left)
            .unwrap_or(ZEROS.len())
            .min(ZEROS.len());
        each(ZEROS.get(..n).unwrap_or_default())?;
        left -= n as u64;
    }
    Ok(())
}
