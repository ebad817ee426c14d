//! Telling what was found, and whether it is to be mended.

use volary_core::{Answer, Check, CheckMode, Finding, Progress, Result, Severity};
pub(super) use volary_ondisk::findings::finding;

/// What mending does, by code.
const REPAIRS: &[(&str, &str)] = &[
    (
        "dirty",
        "it is marked as cleanly left when nothing else is wrong",
    ),
    ("inode", "it becomes what it likely was; a free one, free"),
    ("root", "it is made anew"),
    ("size", "it ends where its blocks end"),
    ("bad-block", "the address becomes a hole"),
    ("beyond-end", "the address is taken away"),
    (
        "duplicate-block",
        "it gets a copy of its own; a hole, if there is no room",
    ),
    ("dots", "they are made anew"),
    ("name", "the entry is taken out"),
    ("padding", "they become zeros"),
    ("same-name", "the second is taken out"),
    ("unallocated", "the entry is taken out"),
    ("twice", "one of the names is taken out"),
    ("circle", "one of the names is taken out"),
    (
        "unconnected",
        "it is freed by -p, or gets a name in lost+found",
    ),
    (
        "unreferenced",
        "it is freed by -p, or gets a name in lost+found",
    ),
    ("link-count", "they are counted"),
    ("free-list", "it is made anew"),
    ("inode-list", "it is made anew"),
    ("totals", "they are counted anew"),
];

pub(super) struct Findings<'a> {
    /// The mode and the counts. Of the first round of mending only, anybody is told.
    pub(super) all: volary_ondisk::Findings<'a>,
    /// Whether the volume was in use when it was left: only then can a power cut of ours have left
    /// what nobody named.
    pub(super) was_in_use: bool,
    progress: &'a dyn Progress,
}

impl<'a> Findings<'a> {
    pub(super) fn new(
        how: &Check,
        was_in_use: bool,
        report: &'a mut dyn FnMut(&Finding) -> Answer,
        progress: &'a dyn Progress,
    ) -> Self {
        Self {
            all: volary_ondisk::Findings::new(how, report),
            was_in_use,
            progress,
        }
    }

    /// Returns whether inodes without a name are freed rather than named.
    pub(super) fn frees_unreferenced(&self) -> bool {
        self.all.mode() == CheckMode::Preen
    }

    /// Returns how bad it is what a cut of ours can leave, and nothing else should.
    pub(super) fn severity(&self) -> Severity {
        match self.was_in_use {
            true => Severity::Crash,
            false => Severity::Damage,
        }
    }

    /// # Errors
    /// `Interrupted`.
    pub(super) fn progress(&self, what: &'static str, done: u64, total: u64) -> Result<()> {
        self.progress.progress(what, done, total)
    }

    /// Tells of a finding, and what mends it; whether it is to be mended.
    pub(super) fn tell(&mut self, finding: &Finding) -> bool {
        let repair = REPAIRS.iter().find(|(code, _)| *code == finding.code);
        let words = repair.map(|(_, words)| *words).unwrap_or_default();
        self.all.tell(&Finding {
            repair: words.to_owned(),
            ..finding.clone()
        })
    }
}
