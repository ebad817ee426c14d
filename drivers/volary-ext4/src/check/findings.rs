//! Findings: what is told, and how often. Nothing is mended yet.

use volary_core::{Answer, Error, Finding, Progress, Severity};

/// Findings of one code that are told; more are counted only.
const TOLD_MAX: u64 = 100;

/// Tells findings, and counts them.
pub(crate) struct Findings<'a> {
    report: &'a mut dyn FnMut(&Finding) -> Answer,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) found: u64,
    told: std::collections::BTreeMap<&'static str, u64>,
}

/// One finding.
pub(crate) struct What {
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) offset: Option<u64>,
    pub(crate) message: String,
}

impl What {
    pub(crate) fn damage(code: &'static str, offset: u64, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Damage,
            path: None,
            offset: Some(offset),
            message: message.into(),
        }
    }

    pub(crate) fn with_severity(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    pub(crate) fn at(self, path: Vec<u8>) -> Self {
        Self {
            path: Some(path),
            ..self
        }
    }

    /// Damage that something came upon.
    pub(crate) fn of(code: &'static str, e: &Error) -> Self {
        let offset = e.as_corrupt().map(|corrupt| corrupt.offset);
        Self {
            offset,
            ..Self::damage(code, 0, e.to_string())
        }
    }
}

impl<'a> Findings<'a> {
    pub(crate) fn new(
        report: &'a mut dyn FnMut(&Finding) -> Answer,
        progress: &'a dyn Progress,
    ) -> Self {
        Self {
            report,
            progress,
            found: 0,
            told: std::collections::BTreeMap::new(),
        }
    }

    /// Tells one.
    pub(crate) fn tell(&mut self, what: What) {
        self.found += u64::from(what.severity > Severity::Note);
        let told = self.told.entry(what.code).or_default();
        *told += 1;
        if *told > TOLD_MAX {
            return;
        }
        (self.report)(&Finding {
            code: what.code,
            severity: what.severity,
            path: what.path,
            offset: what.offset,
            message: what.message,
            repair: String::new(),
        });
    }

    /// Says of which kinds there were more than were told.
    pub(crate) fn end(&mut self) {
        let more: Vec<_> = self
            .told
            .iter()
            .map(|(code, told)| (*code, *told))
            .collect();
        for (code, told) in more.into_iter().filter(|(_, told)| *told > TOLD_MAX) {
            (self.report)(&Finding {
                code,
                severity: Severity::Note,
                path: None,
                offset: None,
                message: format!("{} more of these", told - TOLD_MAX),
                repair: String::new(),
            });
        }
    }
}
