//! Checks of volumes that nobody has open.

use super::error::{VolError, VolResult};
use super::options::VolOptions;
use std::ffi::OsStr;
use volary_core::{Answer, Check, CheckMode, CheckReport, Finding, Quiet, Result};

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The result in figures.
    pub report: CheckReport,
    /// All findings in order, with notes.
    pub findings: Vec<Finding>,
}

impl Checked {
    /// Returns whether no faults are left.
    pub fn is_clean(&self) -> bool {
        self.report.left() == 0
    }
}

impl VolOptions {
    /// Checks a volume that nobody has open, and mends it as far as `mode` allows.
    /// [`CheckMode::Ask`] mends nothing, as there is nobody to ask.
    ///
    /// # Errors
    /// As [`Vol::check`](crate::Vol::check); `Unsupported` if the format cannot mend;
    /// `Interrupted`.
    pub fn check(&self, source: impl AsRef<OsStr>, mode: CheckMode) -> VolResult<Checked> {
        let source = self.parsed(source.as_ref())?;
        let check = || -> Result<Checked> {
            let mode = match mode {
                CheckMode::Ask => CheckMode::Look,
                mode => mode,
            };
            let now = (self.clock)();
            let read_only = mode == CheckMode::Look;
            let device = crate::open_source(&source, read_only, now)?;
            let mut options = self.attach(read_only)?.options;
            let found = self.registry.find(device.clone(), &options)?;
            options.take(crate::TYPE_OPTION);
            let how = Check { mode, now, options };
            let mut findings = Vec::new();
            let mut hear = |finding: &Finding| {
                findings.push(finding.clone());
                Answer::Yes
            };
            let report = found.format.check(device, &how, &mut hear, &Quiet)?;
            Ok(Checked { report, findings })
        };
        check().map_err(|e| VolError::new("check", &source, e))
    }
}
