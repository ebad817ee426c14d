//! Lines for the user, and the log of a command that serves. Both go to standard error, or where
//! `--log` says.
//!
//! Servers tell by `tracing` who did what. Events of one kind about one address are gathered, so
//! that no client can fill the log.
//!
//! | module | what |
//! |---|---|
//! | `entry` | one event, as a line of text or of JSON |
//! | `gather` | which events are written, and which are counted only |
//! | `place` | where lines are written |
//! | `target` | whose an event is |

mod entry;
mod gather;
mod place;
mod target;

use crate::clock;
use crate::exit::{Done, Exit, Fail, words};
use entry::Entry;
use gather::Gather;
use place::Place;
use std::borrow::Cow;
use std::io::Write;
use std::panic::PanicHookInfo;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;
use target::{OURS, REPORT};
use tracing::{Event, Level, Subscriber, error, info, warn};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

/// Longest message of a panic, in characters.
const PANIC_MAX: usize = 200;

/// The log of a command that serves.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct LogArgs {
    /// Where to log who did what: stderr, system (the system's log), or a file, which is
    /// appended to. Without it, only warnings are written, to standard error
    #[arg(long, value_name = "WHERE")]
    pub(crate) log: Option<PathBuf>,
    /// Logs lines of JSON
    #[arg(long)]
    pub(crate) log_json: bool,
}

struct Log {
    place: Mutex<Place>,
    json: bool,
    /// Events below this level are not logged.
    least: Level,
    gather: Mutex<Gather>,
    /// Something has been counted.
    counted: Condvar,
    /// A thread writes what has been counted.
    is_minded: OnceLock<()>,
}

static LOG: OnceLock<Arc<Log>> = OnceLock::new();

impl LogArgs {
    /// Begins the log: from now on all lines go there.
    ///
    /// # Errors
    /// Of a file; without a log of the system.
    pub(crate) fn begin(&self) -> Done {
        let place = match &self.log {
            None => Place::Stderr,
            Some(place) => Place::open(place).map_err(|e| {
                let shown = volary::escape(place.as_os_str().as_encoded_bytes());
                Fail::new(Exit::Failed, format!("--log {shown}: {}", words(&e)))
            })?,
        };
        let log = Arc::new(Log {
            place: Mutex::new(place),
            json: self.log_json,
            least: if self.log.is_some() {
                Level::INFO
            } else {
                Level::WARN
            },
            gather: Mutex::default(),
            counted: Condvar::new(),
            is_minded: OnceLock::new(),
        });
        let layer = Shared(Arc::clone(&log));
        let subscriber = tracing_subscriber::registry().with(layer);
        // A command begins one log.
        if tracing::subscriber::set_global_default(subscriber).is_ok() && LOG.set(log).is_ok() {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| tell_of_panic(panic, &*usual)));
        }
        Ok(())
    }
}

/// The system's log, for later.
pub(crate) struct System(Place);

impl System {
    /// Opens it, if there is one.
    pub(crate) fn open() -> Option<Self> {
        Place::system().ok().map(Self)
    }
}

/// The log goes to the system's from now on, if nothing but standard error was asked for.
pub(crate) fn to_system(system: System) {
    if let Some(log) = LOG.get() {
        let mut place = locked(&log.place);
        if matches!(*place, Place::Stderr) {
            *place = system.0;
        }
    }
}

/// Writes the counts that are left, at the end of the command.
pub(crate) fn end() {
    if let Some(log) = LOG.get() {
        let rest = locked(&log.gather).all();
        rest.iter().for_each(|entry| log.write(entry));
    }
}

/// Says one line of an error. What does something on a terminal is escaped: words of others may be in it.
pub(crate) fn warn(line: &str) {
    let line = printable(line);
    match LOG.get() {
        Some(_) => warn!(target: OURS, "{line}"),
        None => to_stderr(&format!("volary: {line}\n")),
    }
}

fn printable(line: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| c.is_control() && c != '\n';
    if !line.contains(is_unsafe) {
        return line.into();
    }
    let mut printable = String::new();
    for c in line.chars() {
        match is_unsafe(c) {
            true => printable.extend(c.escape_default()),
            false => printable.push(c),
        }
    }
    printable.into()
}

impl Fail {
    /// Says the line, if there is one.
    pub(crate) fn report(&self) {
        if !self.line.is_empty() {
            warn(&self.line);
        }
    }
}

/// Says lines of a report, each with its end.
pub(crate) fn say(lines: &str) {
    match LOG.get() {
        Some(_) => lines
            .lines()
            .for_each(|line| info!(target: REPORT, "{line}")),
        None => to_stderr(lines),
    }
}

fn to_stderr(lines: &str) {
    // Where standard error is closed there is nobody to tell.
    let _ = crate::progress::suspend(|| std::io::stderr().write_all(lines.as_bytes()));
}

/// Takes a lock, poisoned or not: a log has no state that a panic could break.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Logs where a thread panicked, and why. Whoever asks for a backtrace gets one as well.
fn tell_of_panic(panic: &PanicHookInfo<'_>, usual: &dyn Fn(&PanicHookInfo<'_>)) {
    if volary::block::catches_panic() {
        return;
    }
    let thread = thread::current();
    let thread = thread.name().unwrap_or_default();
    let at = panic
        .location()
        .map(ToString::to_string)
        .unwrap_or_default();
    let words: String = panic
        .payload_as_str()
        .unwrap_or_default()
        .chars()
        .take(PANIC_MAX)
        .collect();
    error!(target: OURS, at, thread, why = words, "panic");
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
        usual(panic);
    }
}

/// A layer of the log that all threads share.
struct Shared(Arc<Log>);

impl<S: Subscriber> Layer<S> for Shared {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let entry = Entry::of(event);
        let log = &self.0;
        if entry.target != OURS && entry.target != REPORT && entry.level > log.least {
            return;
        }
        if entry.target == REPORT {
            return log.write(&entry);
        }
        let (entries, counted) = locked(&log.gather).take(entry, clock::instant());
        entries.iter().for_each(|entry| log.write(entry));
        if counted {
            log.mind();
        }
    }
}

impl Log {
    fn write(&self, entry: &Entry) {
        let mut place = locked(&self.place);
        let line = match (&*place, self.json) {
            (_, true) => entry.json(),
            (Place::Stderr, false) => entry.plain(),
            (Place::System(_), false) => entry.words(),
            (Place::File(_), false) => entry.with_time(),
        };
        place.write(entry.level, &line);
    }

    /// Starts the thread that writes counts when they are due, unless it runs.
    fn mind(self: &Arc<Self>) {
        self.counted.notify_one();
        self.is_minded.get_or_init(|| {
            let log = Arc::clone(self);
            let thread = thread::Builder::new().name("log".into());
            // Without the thread, counts are written with the next event of their kind, or at the end.
            let _ = thread.spawn(move || log.write_what_was_counted());
        });
    }

    fn write_what_was_counted(&self) {
        let mut gather = locked(&self.gather);
        loop {
            let due = gather.due(clock::instant());
            if !due.is_empty() {
                drop(gather);
                due.iter().for_each(|entry| self.write(entry));
                gather = locked(&self.gather);
                continue;
            }
            let left = gather
                .next_due()
                .map(|at| at.saturating_duration_since(clock::instant()));
            let left = left.unwrap_or(gather::WINDOW).max(Duration::from_millis(1));
            let waited = self.counted.wait_timeout(gather, left);
            gather = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
