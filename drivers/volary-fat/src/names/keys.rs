//! What a record is found by: hashes of the names that lead to it.

use crate::names::hash::hash_bytes;
use crate::names::record::{Long, Record};
use crate::names::style::{Names, Style};
use crate::volume::ondisk::Short;

/// Buffers for names, kept over many records.
#[derive(Default)]
pub(crate) struct Scratch {
    name: Vec<u8>,
    folded: Vec<u8>,
}

impl Names {
    /// Gives `f` the hashes of the names that lead to a record: the one that is shown
    /// and, for a long one, the short one beside it.
    pub(crate) fn each_hash(
        &self,
        record: &Record<'_>,
        scratch: &mut Scratch,
        mut f: impl FnMut(u32),
    ) {
        let Scratch { name, folded } = scratch;
        self.show(record, name);
        self.fold(name, folded);
        let hash = hash_bytes(folded) as u32;
        f(hash);
        if self.has_alias(record) {
            self.fold_short(&record.short.DIR_Name, name, folded);
            let alias = hash_bytes(folded) as u32;
            if alias != hash {
                f(alias);
            }
        }
    }

    /// Sets the folded form of a short name, and returns it.
    pub(crate) fn folded_short<'a>(&self, short: &Short, scratch: &'a mut Scratch) -> &'a [u8] {
        let Scratch { name, folded } = scratch;
        self.fold_short(short, name, folded);
        folded
    }

    /// Returns whether a record can be found by its short name beside the one shown.
    fn has_alias(&self, record: &Record<'_>) -> bool {
        self.style == Style::Long && matches!(record.long, Long::Vfat(_))
    }

    /// Returns whether `folded` is a name of the record.
    pub(crate) fn leads_to(
        &self,
        record: &Record<'_>,
        folded: &[u8],
        scratch: &mut Scratch,
    ) -> bool {
        let Scratch { name, folded: own } = scratch;
        self.show(record, name);
        self.fold(name, own);
        if own == folded {
            return true;
        }
        if !self.has_alias(record) {
            return false;
        }
        self.fold_short(&record.short.DIR_Name, name, own);
        own == folded
    }
}
