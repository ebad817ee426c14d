//! How far long work has come: a line on standard error, if that is a
//! terminal.

use crate::interrupt;
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use volary::{Kind, Progress, Result};

/// A line that is drawn over and over.
pub(crate) struct Bar {
    bar: Option<ProgressBar>,
    verb: &'static str,
    what: RefCell<&'static str>,
}

impl Bar {
    /// A line, if there is a terminal to draw it on.
    pub(crate) fn new(verb: &'static str) -> Self {
        let bar = rustix::termios::isatty(rustix::stdio::stderr()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(ProgressStyle::default_spinner());
            bar
        });
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
        }
    }
}
