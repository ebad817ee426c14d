//! Telling what was found.

use volary_core::{Answer, Finding, Progress, Result, Severity};

/// Findings of one code that are told one by one; there can be one for each fragment.
const EACH_MAX: u64 = 1000;

pub(super) struct Findings<'a> {
    report: &'a mut dyn FnMut(&Finding) -> Answer,
    progress: &'a dyn Progress,
    pub(super) found: u64,
    /// Code, and how often it was told.
    told: Vec<(&'static str, u64)>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(
        report: &'a mut dyn FnMut(&Finding) -> Answer,
        progress: &'a dyn Progress,
    ) -> Self {
        Self {
            report,
            progress,
            found: 0,
            told: Vec::new(),
        }
    }

    /// # Errors
    /// `Interrupted`.
    pub(super) fn progress(&self, what: &'static str, done: u64, total: u64) -> Result<()> {
        self.progress.progress(what, done, total)
    }

    /// Counts it, and tells it unless many of its code were told.
    pub(super) fn tell(&mut self, finding: &Finding) {
        self.found += u64::from(finding.severity > Severity::Note);
        let known = self.told.iter_mut().find(|told| told.0 == finding.code);
        let count = match known {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.told.push((finding.code, 1));
                1
            }
        };
        if count <= EACH_MAX {
            (self.report)(finding);
        }
    }
}

/// A finding that wants a code.
pub(super) fn finding(severity: Severity, offset: u64, message: impl Into<String>) -> Finding {
    Finding {
        code: Default::default(),
        severity,
        path: None,
        offset: Some(offset),
        message: message.into(),
        repair: String::new(),
    }
}
