//! Reports what was found, and whether it is to be repaired.

use volary_core::{Answer, Check, CheckMode, Finding, Progress, Result, Severity};
pub(super) use volary_ondisk::findings::finding;

/// What a repair does, by code. A finding whose code is not here cannot be repaired.
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
    ("same-name", "the second is taken out"),
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
    /// The mode and the counts. Only the first round of repairs reports its findings.
    pub(super) all: volary_ondisk::Findings<'a>,
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

    /// Returns whether inodes without a name are freed rather than named.
    pub(super) fn frees_unreferenced(&self) -> bool {
        self.all.mode() == CheckMode::Preen
    }

    /// Reports progress.
    ///
    /// # Errors
    /// `Interrupted`.
    pub(super) fn progress(&self, what: &'static str, done: u64, total: u64) -> Result<()> {
        self.progress.progress(what, done, total)
    }

    /// Reports a finding that cannot be repaired.
    pub(super) fn tell_only(&mut self, finding: &Finding) {
        self.all.tell(&Finding {
            repair: String::new(),
            ..finding.clone()
        });
    }

    /// Reports a finding with its repair. Returns whether it is to be repaired.
    pub(super) fn tell(&mut self, finding: &Finding) -> bool {
        let repair = REPAIRS.iter().find(|(code, _)| *code == finding.code);
        let Some((_, words)) = repair.filter(|_| finding.repair.is_empty()) else {
            return self.all.tell(finding);
        };
        self.all.tell(&Finding {
            repair: (*words).to_owned(),
            ..finding.clone()
        })
    }
}

/// Reports that FreeBSD's check hash of something is wrong, as after an interrupted write. Returns
/// whether the hash is to be computed anew.
pub(super) fn wrong_hash(findings: &mut Findings<'_>, offset: u64, what: &str) -> bool {
    let message = format!("the check hash of {what} is wrong");
    findings.tell(&Finding {
        code: "check-hash",
        ..finding(Severity::Crash, offset, message)
    })
}
