//! What a check can find, and who is told.

use std::collections::HashSet;
use volary_core::{Answer, Check, CheckMode, Finding, Severity};

/// A kind of finding: its name in `FORMAT.md` and how bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) name: &'static str,
    pub(super) severity: Severity,
}

macro_rules! codes {
    ($($id:ident $name:literal $severity:ident;)*) => {
        $(pub(super) const $id: Code = Code { name: $name, severity: Severity::$severity };)*
        /// All codes.
        #[cfg(test)]
        const ALL: &[Code] = &[$($id),*];
    };
}

codes! {
    BOOT_SECTOR "boot-sector" Damage;
    BOOT_BACKUP "boot-backup" Damage;
    BOOT_MEDIA "boot-media" Damage;
    DIRTY "dirty" Crash;
    ERROR_MARK "error-mark" Damage;
    LABEL "label" Crash;
    FAT_CHOICE "fat-choice" Damage;
    CHAIN_COPY "chain-copy" Damage;
    FATS_DIFFER "fats-differ" Crash;
    FAT_UNREADABLE "fat-unreadable" Damage;
    FAT_HEAD "fat-head" Damage;
    FSINFO "fsinfo" Damage;
    FREE_COUNT "free-count" Crash;
    NEXT_FREE "next-free" Crash;
    ROOT_CHAIN "root-chain" Damage;
    CHAIN_START "chain-start" Damage;
    CHAIN_LINK "chain-link" Damage;
    CHAIN_LOOP "chain-loop" Damage;
    LINK_HALF "link-half" Crash;
    CROSS_LINK "cross-link" Damage;
    RENAME_TWIN "rename-twin" Crash;
    DIR_TWICE "dir-twice" Damage;
    DIR_NO_CHAIN "dir-no-chain" Damage;
    DIR_NOT_DIR "dir-not-dir" Damage;
    DIR_GARBAGE "dir-garbage" Damage;
    DIR_TOO_LONG "dir-too-long" Damage;
    DIR_UNREADABLE "dir-unreadable" Damage;
    DIR_SIZE "dir-size" Damage;
    DOT "dot" Damage;
    DOT_DOT "dot-dot" Crash;
    SIZE_SHORT "size-short" Crash;
    SIZE_ZERO "size-zero" Crash;
    SIZE_LONG "size-long" Damage;
    NO_CHAIN "no-chain" Damage;
    AFTER_END "after-end" Damage;
    AFTER_END_TORN "after-end-torn" Crash;
    LONG_ORPHAN "long-orphan" Crash;
    LONG_FIELD "long-field" Damage;
    LONG_NAME "long-name" Damage;
    SHORT_NAME "short-name" Damage;
    NT_BITS "nt-bits" Damage;
    DUPLICATE "duplicate-name" Damage;
    LABEL_PLACE "label-place" Damage;
    LABEL_DATA "label-data" Damage;
    LABEL_NAME "label-name" Damage;
    VOLUME_ID_FILE "volume-id-file" Damage;
    LOST_CHAIN "lost-chain" Crash;
    LOST_DIR "lost-dir" Crash;
    OWNER_TABLE "owner-table" Damage;
    UNIX_RESET "unix-reset" Damage;
    UNIX_CHECK "unix-check" Note;
    BAD_DATE "bad-date" Note;
}

/// Where something was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Where {
    pub(super) path: Option<Vec<u8>>,
    pub(super) offset: Option<u64>,
}

impl Where {
    /// At a byte of the device.
    pub(super) fn offset(offset: u64) -> Self {
        Self {
            path: None,
            offset: Some(offset),
        }
    }
}

/// Tells of findings and keeps the count.
pub(super) struct Reporter<'a> {
    pub(super) mode: CheckMode,
    report: &'a mut dyn FnMut(&Finding) -> Answer,
    /// Told and not to be mended: not told again.
    silent: HashSet<(&'static str, u64)>,
    pub(super) found: u64,
    pub(super) mended: u64,
    /// Damage was found that the mode does not mend.
    pub(super) refused: bool,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(how: &Check, report: &'a mut dyn FnMut(&Finding) -> Answer) -> Self {
        Self {
            mode: how.mode,
            report,
            silent: HashSet::new(),
            found: 0,
            mended: 0,
            refused: false,
        }
    }

    /// Whether anything may be mended at all.
    pub(super) fn mends(&self) -> bool {
        self.mode != CheckMode::Look
    }

    /// Whether damage may be mended.
    pub(super) fn mends_damage(&self) -> bool {
        matches!(self.mode, CheckMode::Mend | CheckMode::Ask)
    }

    /// Tells of a finding that can be mended; whether to do so. `key` tells
    /// findings of the same code apart.
    pub(super) fn tell(
        &mut self,
        code: Code,
        key: u64,
        at: Where,
        message: String,
        repair: impl Into<String>,
    ) -> bool {
        let repair = repair.into();
        let can = !repair.is_empty();
        self.put(code, key, at, message, repair, can)
    }

    /// Takes back that a finding was mended: it could not be.
    pub(super) fn not_mended(&mut self, code: Code, key: u64) {
        self.mended = self.mended.saturating_sub(1);
        self.silent.insert((code.name, key));
        self.refused |= code.severity == Severity::Damage;
    }

    /// Whether a finding was told before and left.
    pub(super) fn is_left(&self, code: Code, key: u64) -> bool {
        self.silent.contains(&(code.name, key))
    }

    fn put(
        &mut self,
        code: Code,
        key: u64,
        at: Where,
        message: String,
        repair: String,
        can: bool,
    ) -> bool {
        if self.is_left(code, key) {
            return false;
        }
        let finding = Finding {
            code: code.name,
            severity: code.severity,
            path: at.path,
            offset: at.offset,
            message,
            repair,
        };
        let answer = (self.report)(&finding);
        if code.severity == Severity::Note {
            self.silent.insert((code.name, key));
            return false;
        }
        self.found += 1;
        let mend = can
            && match self.mode {
                CheckMode::Look => false,
                CheckMode::Preen => code.severity == Severity::Crash,
                CheckMode::Mend => true,
                CheckMode::Ask => answer == Answer::Yes,
            };
        if mend {
            self.mended += 1;
        } else {
            self.silent.insert((code.name, key));
            self.refused |= code.severity == Severity::Damage;
        }
        mend
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_format_md_once() {
        let format = include_str!("../../FORMAT.md");
        for (i, code) in ALL.iter().enumerate() {
            let row = format!("| `{}` |", code.name);
            assert_eq!(format.matches(&row).count(), 1, "{row}");
            assert!(
                ALL[..i].iter().all(|c| c.name != code.name),
                "{}",
                code.name
            );
        }
    }
}
