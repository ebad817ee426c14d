//! Telling what was found, and whether it is to be mended.

use volary_core::{Answer, CheckMode, Finding, Progress, Result, Severity};

/// Findings of one code that are told one by one; there can be one for each fragment.
const EACH_MAX: u64 = 1000;

/// What mending does, by code. Of those that are not here, nothing can be done.
const REPAIRS: &[(&str, &str)] = &[
    (
        "dirty",
        "it is marked as cleanly left when nothing else is wrong",
    ),
    ("superblock", "the first superblock is written anew"),
    ("group", "the group's head is made anew"),
    ("root", "it is made anew"),
    ("replica", "it is written anew"),
    ("check-hash", "it is made anew"),
    ("inode", "it becomes what it likely was"),
    ("inode-map", "the map is made anew"),
    ("bad-block", "the pointer becomes a hole"),
    ("duplicate-blocks", "it gets a copy of its own"),
    (
        "shared-blocks",
        "it keeps them; what it holds may be another's",
    ),
    ("beyond-end", "the pointers are taken away"),
    ("block-count", "it is counted"),
    (
        "directory-size",
        "the size is made one, the inode freed if it holds nothing",
    ),
    ("entry", "the chunk keeps the entries that can be told"),
    (
        "hole",
        "it gets blocks, of free room; at its end, the directory ends there",
    ),
    ("flags", "it counts as a file"),
    ("attributes", "they are taken away"),
    ("dots", "they are made anew"),
    ("name", "the entry is taken out"),
    ("unallocated", "the entry is taken out"),
    ("type", "the entry is corrected"),
    ("twice", "one of the names is taken out"),
    (
        "unconnected",
        "it is freed by -p, or gets a name in lost+found",
    ),
    (
        "unreferenced",
        "it is freed by -p, or gets a name in lost+found",
    ),
    ("link-count", "they are counted"),
    ("free-map", "the map is made anew"),
    ("lost-blocks", "they are freed"),
    ("summary", "it is counted anew"),
    ("quota", "it is counted"),
    ("totals", "they are counted anew"),
];

pub(super) struct Findings<'a> {
    report: &'a mut dyn FnMut(&Finding) -> Answer,
    progress: &'a dyn Progress,
    mode: CheckMode,
    /// Whether anybody is told: of the first round of mending only.
    pub(super) is_quiet: bool,
    pub(super) found: u64,
    /// Of these, those that preening does not mend; those that are to be mended.
    pub(super) damage: u64,
    pub(super) accepted: u64,
    /// Code, and how often it was told.
    told: Vec<(&'static str, u64)>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(
        report: &'a mut dyn FnMut(&Finding) -> Answer,
        progress: &'a dyn Progress,
        mode: CheckMode,
    ) -> Self {
        Self {
            report,
            progress,
            mode,
            is_quiet: false,
            found: 0,
            damage: 0,
            accepted: 0,
            told: Vec::new(),
        }
    }

    /// Begins another round, of which nobody is told. It mends all that it finds, as the first
    /// did or was asked to.
    pub(super) fn again(&mut self) {
        self.is_quiet = true;
        if self.mode == CheckMode::Ask {
            self.mode = CheckMode::Mend;
        }
        (self.found, self.damage, self.accepted) = (0, 0, 0);
        self.told.clear();
    }

    /// Whether inodes without a name are freed rather than named.
    pub(super) fn frees_unreferenced(&self) -> bool {
        self.mode == CheckMode::Preen
    }

    /// # Errors
    /// `Interrupted`.
    pub(super) fn progress(&self, what: &'static str, done: u64, total: u64) -> Result<()> {
        self.progress.progress(what, done, total)
    }

    /// Counts it, and tells it in the same way as [`tell`](Self::tell), of what cannot be mended.
    pub(super) fn tell_only(&mut self, finding: &Finding) {
        self.found += 1;
        self.damage += 1;
        if self.count(finding.code) <= EACH_MAX && !self.is_quiet {
            (self.report)(&Finding {
                repair: String::new(),
                ..finding.clone()
            });
        }
    }

    /// Counts it, and tells it unless many of its code were told. Whether it is to be mended.
    pub(super) fn tell(&mut self, finding: &Finding) -> bool {
        let repair = REPAIRS.iter().find(|(code, _)| *code == finding.code);
        self.found += u64::from(finding.severity > Severity::Note);
        self.damage += u64::from(finding.severity > Severity::Crash);
        let answer = match self.count(finding.code) <= EACH_MAX && !self.is_quiet {
            true => {
                let mut told = finding.clone();
                if told.repair.is_empty() {
                    told.repair = repair.map_or(String::new(), |(_, words)| (*words).to_owned());
                }
                (self.report)(&told)
            }
            false => Answer::No,
        };
        let is_wanted = match self.mode {
            CheckMode::Look => false,
            CheckMode::Preen => finding.severity == Severity::Crash,
            CheckMode::Mend => finding.severity > Severity::Note,
            CheckMode::Ask => answer == Answer::Yes,
        };
        let accepted = is_wanted && repair.is_some();
        self.accepted += u64::from(accepted);
        accepted
    }

    fn count(&mut self, code: &'static str) -> u64 {
        if let Some((_, count)) = self.told.iter_mut().find(|told| told.0 == code) {
            *count += 1;
            return *count;
        }
        self.told.push((code, 1));
        1
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

/// Tells that FreeBSD's check hash of something is wrong: what a write leaves that was cut off.
/// Whether it is to be made anew.
pub(super) fn wrong_hash(findings: &mut Findings<'_>, offset: u64, what: &str) -> bool {
    let message = format!("the check hash of {what} is wrong");
    findings.tell(&Finding {
        code: "check-hash",
        ..finding(Severity::Crash, offset, message)
    })
}
