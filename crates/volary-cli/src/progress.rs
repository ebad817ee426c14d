//! How far long work has come: a line on standard error, if that is a
//! terminal.

use crate::interrupt;
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::{Cell, RefCell};
use std::sync::{Mutex, PoisonError};
use volary::{Kind, Progress, Result};

/// The line that is drawn.
static DRAWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

thread_local! {
    /// This thread prints while the line is away.
    static PRINTS: Cell<bool> = const { Cell::new(false) };
}

/// Prints on the terminal while no line of progress is there.
pub(crate) fn suspend<T>(print: impl FnOnce() -> T) -> T {
    let drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match drawn {
        Some(bar) if !PRINTS.replace(true) => {
            let printed = bar.suspend(print);
            PRINTS.set(false);
            printed
        }
        _ => print(),
    }
}

/// A line is drawn from now on, or none.
fn draw(bar: Option<ProgressBar>) {
    *DRAWN.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// A line that is drawn over and over.
pub(crate) struct Bar {
    bar: Option<ProgressBar>,
    verb: &'static str,
    what: RefCell<&'static str>,
}

impl Bar {
    /// Returns a line, if there is a terminal to draw it on.
    pub(crate) fn new(verb: &'static str) -> Self {
        let bar = rustix::termios::isatty(rustix::stdio::stderr()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(ProgressStyle::default_spinner());
            bar
        });
        draw(bar.clone());
        Self {
            bar,
            verb,
            what: RefCell::new(""),
        }
    }

    /// So many files and bytes were copied.
    pub(crate) fn copied(&self, files: u64, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!(
                "{files} files, {} {}",
                HumanBytes(bytes),
                self.verb
            ));
            bar.tick();
        }
    }
}

/// A line with how many bytes of how many, how fast, and how long to go.
pub(crate) struct Stretch(Option<ProgressBar>);

impl Stretch {
    /// Returns a line, if there is a terminal to draw it on.
    pub(crate) fn new() -> Self {
        let is_seen = rustix::termios::isatty(rustix::stdio::stderr());
        let bar = is_seen.then(|| {
            let template = "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
            let style = ProgressStyle::with_template(template);
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        draw(bar.clone());
        Self(bar)
    }

    /// There are so many bytes more to come.
    pub(crate) fn longer(&self, bytes: u64) {
        if let Some(bar) = &self.0 {
            bar.inc_length(bytes);
        }
    }

    /// So many have come.
    pub(crate) fn on(&self, bytes: u64) {
        if let Some(bar) = &self.0 {
            bar.inc(bytes);
        }
    }

    /// Takes the line away.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
            draw(None);
        }
    }
}

impl Progress for Bar {
    fn progress(&self, what: &'static str, done: u64, total: u64) -> Result<()> {
        if interrupt::is_set() {
            return Err(Kind::Interrupted.into());
        }
        let Some(bar) = &self.bar else { return Ok(()) };
        if total > 0 {
            bar.set_length(total);
            if self.what.replace(what) != what {
                let style = ProgressStyle::with_template("{msg:20} {wide_bar} {pos}/{len} {eta}");
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            }
        }
        bar.set_message(what);
        bar.set_position(done);
        Ok(())
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            draw(None);
        }
    }
}
