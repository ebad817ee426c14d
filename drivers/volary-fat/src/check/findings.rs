//! What a check can find, and who is told.

use volary_core::{Answer, Check, Finding, Severity};
use volary_ondisk::Findings;

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

/// Tells of findings by their codes.
pub(super) struct Reporter<'a> {
    /// The mode, the counts, and what was left.
    pub(super) all: Findings<'a, u64>,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(how: &Check, report: &'a mut dyn FnMut(&Finding) -> Answer) -> Self {
        Self {
            all: Findings::new(how, report),
        }
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
        let finding = Finding {
            code: code.name,
            severity: code.severity,
            path: at.path,
            offset: at.offset,
            message,
            repair: repair.into(),
        };
        self.all.tell_once(key, &finding)
    }

    /// Takes back that a finding was mended: it could not be.
    pub(super) fn not_mended(&mut self, code: Code, key: u64) {
        self.all.not_mended(code.name, key);
    }

    /// Returns whether a finding was told before and left.
    pub(super) fn is_left(&self, code: Code, key: u64) -> bool {
        self.all.is_left(code.name, key)
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
