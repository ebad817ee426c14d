//! Reports of findings. Nothing is mended: the driver reads only.

use volary_core::{Answer, Check, Error, Finding, Progress, Result, Severity};
use volary_ondisk::findings::finding;

/// Reports findings and progress.
pub(super) struct Findings<'a> {
    all: volary_ondisk::Findings<'a>,
    progress: &'a dyn Progress,
}

impl<'a> Findings<'a> {
    pub(super) fn new(
        how: &Check,
        report: &'a mut dyn FnMut(&Finding) -> Answer,
        progress: &'a dyn Progress,
    ) -> Self {
        Self {
            all: volary_ondisk::Findings::new(how, report),
            progress,
        }
    }

    pub(super) fn tell(&mut self, finding: &Finding) {
        self.all.tell(finding);
    }

    /// Returns the number of findings, without notes.
    pub(super) fn found(&self) -> u64 {
        self.all.found
    }

    /// # Errors
    /// `Interrupted`.
    pub(super) fn progress(&self, what: &'static str, done: u64, total: u64) -> Result<()> {
        self.progress.progress(what, done, total)
    }
}

/// Returns a finding of damage. The caller sets its code.
pub(super) fn damage(offset: u64, message: impl Into<String>) -> Finding {
    finding(Severity::Damage, offset, message)
}

/// Returns a finding of the damage that an operation failed with. The caller sets its code.
pub(super) fn met(e: &Error) -> Finding {
    Finding {
        offset: e.as_corrupt().map(|corrupt| corrupt.offset),
        ..damage(0, e.to_string())
    }
}
