//! The findings of a check: reporting them, counting them, and deciding which to mend.
//!
//! The rules of [`CheckMode`], the same for every format:
//!
//! | finding | `Look` | `Preen` | `Mend` | `Ask` |
//! |---|---|---|---|---|
//! | a note | told | told | told | told |
//! | no repair | told | told | told | told |
//! | left by a crash | told | mended | mended | mended if the answer is yes |
//! | damage | told | told; nothing at all is mended | mended | mended if the answer is yes |
//!
//! Notes are not counted, as nothing is wrong. A note is never mended, whatever the answer is.
//!
//! A check runs in rounds, since a repair can uncover further damage. A check continues in one of
//! two ways:
//!
//! - A check that mends each finding separately reports with [`tell_once`](Findings::tell_once),
//!   which does not repeat a finding that was told and left.
//! - A check that rebuilds structures calls [`again`](Findings::again). A later round's findings
//!   follow from the repairs of the first, and nobody is told of them.
//!
//! Preening stops at damage. A driver that reports all findings before it writes asks
//! [`stops`](Findings::stops) in between. If that is true, it writes nothing.
//! [`stops`](Findings::stops) in between, and writes nothing then.

use std::collections::HashSet;
use std::hash::Hash;
use volary_core::{Answer, Check, CheckMode, Finding, Severity};

/// The most findings of one code that are told: there can be one for each entry or block.
const EACH_MAX: u64 = 1000;

/// Reports findings, counts them, and decides which are to be mended. `K` is a key that
/// distinguishes findings of one code.
pub struct Findings<'a, K = ()> {
    mode: CheckMode,
    report: &'a mut dyn FnMut(&Finding) -> Answer,
    each_max: u64,
    is_quiet: bool,
    /// Codes, and how many findings each had in all.
    told: Vec<(&'static str, u64)>,
    /// Codes and keys of findings that were told and left.
    left: HashSet<(&'static str, K)>,
    /// Number of findings, without notes.
    pub found: u64,
    /// How many of these are damage.
    pub damage: u64,
    /// How many of these are to be mended.
    pub accepted: u64,
}

impl<'a, K: Eq + Hash> Findings<'a, K> {
    /// Returns the findings of a check with the options `how`. Calls `report` for each; it also
    /// answers.
    pub fn new(how: &Check, report: &'a mut dyn FnMut(&Finding) -> Answer) -> Self {
        Self::with_mode(how.mode, report)
    }

    /// Returns the findings of a check in this mode.
    pub fn with_mode(mode: CheckMode, report: &'a mut dyn FnMut(&Finding) -> Answer) -> Self {
        Self {
            mode,
            report,
            each_max: EACH_MAX,
            is_quiet: false,
            told: Vec::new(),
            left: HashSet::new(),
            found: 0,
            damage: 0,
            accepted: 0,
        }
    }

    /// Returns the mode of the check.
    pub fn mode(&self) -> CheckMode {
        self.mode
    }

    /// Returns whether the mode allows any repair.
    pub fn mends(&self) -> bool {
        self.mode != CheckMode::Look
    }

    /// Returns whether the mode allows repairs of damage.
    pub fn mends_damage(&self) -> bool {
        matches!(self.mode, CheckMode::Mend | CheckMode::Ask)
    }

    /// Returns whether preening has found damage: the check must then write nothing.
    pub fn stops(&self) -> bool {
        self.mode == CheckMode::Preen && self.damage > 0
    }

    /// Counts a finding, and tells of it unless a thousand of its code were told before. Returns
    /// whether to mend it. A finding that is not told is mended like others, except in
    /// [`CheckMode::Ask`], as nobody has said yes.
    pub fn tell(&mut self, finding: &Finding) -> bool {
        self.found += u64::from(finding.severity > Severity::Note);
        self.damage += u64::from(finding.severity > Severity::Crash);
        let is_told = !self.is_quiet && self.count(finding.code) <= self.each_max;
        let answer = match is_told {
            true => (self.report)(finding),
            false => Answer::No,
        };
        let is_accepted = self.wants(finding, answer);
        self.accepted += u64::from(is_accepted);
        is_accepted
    }

    /// Decides whether to mend a finding, by the table at the head of this module.
    fn wants(&self, finding: &Finding, answer: Answer) -> bool {
        if finding.severity == Severity::Note || finding.repair.is_empty() {
            return false;
        }
        match self.mode {
            CheckMode::Look => false,
            CheckMode::Preen => finding.severity == Severity::Crash,
            CheckMode::Mend => true,
            CheckMode::Ask => answer == Answer::Yes,
        }
    }

    /// Counts a finding of a code, and returns how many of it there were.
    fn count(&mut self, code: &'static str) -> u64 {
        if let Some((_, count)) = self.told.iter_mut().find(|told| told.0 == code) {
            *count += 1;
            return *count;
        }
        self.told.push((code, 1));
        1
    }

    /// As [`tell`](Self::tell). But returns false at once if a finding with the same code and key
    /// was told before and left.
    pub fn tell_once(&mut self, key: K, finding: &Finding) -> bool {
        let matter = (finding.code, key);
        if self.left.contains(&matter) {
            return false;
        }
        let is_accepted = self.tell(finding);
        if !is_accepted {
            self.left.insert(matter);
        }
        is_accepted
    }

    /// Returns whether a finding was told before and left.
    pub fn is_left(&self, code: &'static str, key: K) -> bool {
        self.left.contains(&(code, key))
    }

    /// Takes back the acceptance of a finding that could not be mended. It counts as left, so that
    /// [`tell_once`](Self::tell_once) does not tell it again.
    pub fn not_mended(&mut self, code: &'static str, key: K) {
        self.accepted = self.accepted.saturating_sub(1);
        self.left.insert((code, key));
    }

    /// Begins a silent round, and resets the counts. If the user was asked, everything found in it
    /// is mended: it follows from repairs that the user agreed to.
    pub fn again(&mut self) {
        self.is_quiet = true;
        if self.mode == CheckMode::Ask {
            self.mode = CheckMode::Mend;
        }
        (self.found, self.damage, self.accepted) = (0, 0, 0);
    }
}

/// Returns a finding at a byte offset, without a repair. The caller sets its code:
/// `Finding { code: "size", ..finding(Severity::Damage, at, words) }`.
pub fn finding(severity: Severity, offset: u64, message: impl Into<String>) -> Finding {
    Finding {
        code: Default::default(),
        severity,
        path: None,
        offset: Some(offset),
        message: message.into(),
        repair: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [CheckMode; 4] = [
        CheckMode::Look,
        CheckMode::Preen,
        CheckMode::Mend,
        CheckMode::Ask,
    ];

    fn finding(severity: Severity, repair: &str) -> Finding {
        Finding {
            code: "code",
            severity,
            path: None,
            offset: None,
            message: "it is wrong".into(),
            repair: repair.into(),
        }
    }

    /// Reports one finding; returns whether it is mended, and the counts.
    fn one(mode: CheckMode, answer: Answer, finding: &Finding) -> (bool, [u64; 3]) {
        let mut report = |_: &Finding| answer;
        let mut findings = Findings::<()>::with_mode(mode, &mut report);
        let is_mended = findings.tell(finding);
        (
            is_mended,
            [findings.found, findings.damage, findings.accepted],
        )
    }

    #[test]
    fn each_mode_mends_what_the_table_says() {
        use Answer::{No, Yes};
        let crash = finding(Severity::Crash, "mends it");
        let damage = finding(Severity::Damage, "mends it");
        // Look, Preen, Mend, Ask.
        let all = |f: &Finding, answer| MODES.map(|mode| one(mode, answer, f).0);
        assert_eq!(all(&crash, No), [false, true, true, false]);
        assert_eq!(all(&crash, Yes), [false, true, true, true]);
        assert_eq!(all(&damage, No), [false, false, true, false]);
        assert_eq!(all(&damage, Yes), [false, false, true, true]);
    }

    #[test]
    fn notes_are_neither_counted_nor_mended() {
        for mode in MODES {
            let note = finding(Severity::Note, "mends it");
            assert_eq!(one(mode, Answer::Yes, &note), (false, [0, 0, 0]));
        }
    }

    #[test]
    fn what_has_no_repair_is_left() {
        for mode in MODES {
            let damage = finding(Severity::Damage, "");
            assert_eq!(one(mode, Answer::Yes, &damage), (false, [1, 1, 0]));
            let crash = finding(Severity::Crash, "");
            assert_eq!(one(mode, Answer::Yes, &crash), (false, [1, 0, 0]));
        }
    }

    #[test]
    fn preening_stops_at_damage_alone() {
        for mode in MODES {
            let mut report = |_: &Finding| Answer::Yes;
            let mut findings = Findings::<()>::with_mode(mode, &mut report);
            findings.tell(&finding(Severity::Crash, "mends it"));
            assert!(!findings.stops());
            findings.tell(&finding(Severity::Damage, ""));
            assert_eq!(findings.stops(), mode == CheckMode::Preen);
        }
    }

    #[test]
    fn what_was_left_is_not_told_again() {
        let mut told = 0;
        let mut report = |_: &Finding| {
            told += 1;
            Answer::No
        };
        let mut findings = Findings::with_mode(CheckMode::Ask, &mut report);
        let crash = finding(Severity::Crash, "mends it");
        for _ in 0..3 {
            assert!(!findings.tell_once(1, &crash));
        }
        assert!(findings.is_left("code", 1) && !findings.is_left("code", 2));
        assert!(!findings.tell_once(2, &crash));
        assert_eq!((findings.found, told), (2, 2));
    }

    #[test]
    fn what_was_mended_can_come_again() {
        let mut report = |_: &Finding| Answer::Yes;
        let mut findings = Findings::with_mode(CheckMode::Mend, &mut report);
        let crash = finding(Severity::Crash, "mends it");
        assert!(findings.tell_once(1, &crash) && findings.tell_once(1, &crash));
        findings.not_mended("code", 1);
        assert!(!findings.tell_once(1, &crash));
        assert_eq!((findings.found, findings.accepted), (2, 1));
    }

    #[test]
    fn many_findings_of_one_code_are_counted_and_mended_untold() {
        for (mode, accepted) in [(CheckMode::Mend, 5), (CheckMode::Ask, 2)] {
            let mut told = 0;
            let mut report = |_: &Finding| {
                told += 1;
                Answer::Yes
            };
            let mut findings = Findings::<()>::with_mode(mode, &mut report);
            findings.each_max = 2;
            for _ in 0..5 {
                findings.tell(&finding(Severity::Damage, "mends it"));
            }
            assert_eq!((findings.found, findings.accepted), (5, accepted));
            assert_eq!(told, 2);
        }
    }

    #[test]
    fn another_round_is_quiet_and_mends_what_follows() {
        let mut told = 0;
        let mut report = |_: &Finding| {
            told += 1;
            Answer::Yes
        };
        let mut findings = Findings::<()>::with_mode(CheckMode::Ask, &mut report);
        findings.tell(&finding(Severity::Damage, "mends it"));
        findings.again();
        assert_eq!((findings.found, findings.accepted), (0, 0));
        assert!(findings.tell(&finding(Severity::Damage, "mends it")));
        assert_eq!((findings.found, findings.damage, told), (1, 1, 1));
    }
}
