//! Reports of a check that mends nothing: findings, and progress.

use crate::findings::{Findings, finding};
use volary_core::{Answer, Check, Error, Finding, Kind, Progress, Replica, Result, Severity};

/// Reports findings and progress.
pub struct Reporter<'a> {
    findings: Findings<'a>,
    progress: &'a dyn Progress,
}

impl<'a> Reporter<'a> {
    /// Returns a reporter for a check with these options. Calls `report` with each finding.
    pub fn new(
        how: &Check,
        report: &'a mut dyn FnMut(&Finding) -> Answer,
        progress: &'a dyn Progress,
    ) -> Self {
        Self {
            findings: Findings::new(how, report),
            progress,
        }
    }

    /// Reports a finding.
    pub fn tell(&mut self, finding: &Finding) {
        self.findings.tell(finding);
    }

    /// Returns the number of findings, without notes.
    pub fn found(&self) -> u64 {
        self.findings.found
    }

    /// Reports progress.
    ///
    /// # Errors
    /// `Interrupted`.
    pub fn progress(&self, what: &'static str, done: u64, total: u64) -> Result<()> {
        self.progress.progress(what, done, total)
    }
}

/// Returns a finding of damage. The caller sets its code.
pub fn damage(offset: u64, message: impl Into<String>) -> Finding {
    finding(Severity::Damage, offset, message)
}

/// Returns a finding for the error with which an operation failed. The caller sets its code.
pub fn met(e: &Error) -> Finding {
    Finding {
        offset: e.as_corrupt().map(|corrupt| corrupt.offset),
        ..damage(0, e.to_string())
    }
}

/// Returns a finding for a damaged primary superblock or boot sector if the check uses a replica
/// instead. The caller sets its code.
pub fn instead(replica: &Replica) -> Finding {
    let Replica { what, home, at, .. } = replica;
    let words = format!("the {what} makes no sense; the check goes by its replica at byte {at}");
    damage(*home, words)
}

/// Returns whether an error ends a check: `Io`, or `Interrupted` by the caller.
pub fn ends(e: &Error) -> bool {
    matches!(e.kind(), Kind::Io | Kind::Interrupted)
}
