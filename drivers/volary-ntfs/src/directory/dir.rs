//! Directories: lookup and listing.

use crate::directory::index::{Entries, Index};
use crate::directory::upcase::Collation;
use crate::disk::names::{utf16, wtf8};
use crate::disk::ondisk::{Reference, number};
use crate::files::node::{NameOf, Node};
use crate::mft::records::Mft;
use std::cmp::Ordering;
use volary_core::{Cookie, Ctx, Error, Kind, Name, Result};

/// The name of a directory's index.
pub(crate) const I30: [u16; 4] = [0x24, 0x49, 0x33, 0x30];

/// The collation for names, which is also the type of the attribute that the names come from.
pub(crate) const COLLATION_FILE_NAME: u32 = 1;

/// The low bits of a cookie are the offset in an index block. The bits above them are the number of
/// the block, from 1. The number 0 stands for the root.
const PLACE_BITS: u32 = 17;

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) to: Reference,
    pub(crate) name: NameOf,
    /// The cookie of the place after the entry.
    pub(crate) end: Cookie,
}

impl Entry {
    pub(crate) fn shown(&self) -> Vec<u8> {
        wtf8(&self.name.name)
    }
}

/// A directory: an index of names.
pub(crate) struct Directory {
    index: Index,
}

impl Directory {
    /// Reads the index of a directory.
    ///
    /// # Errors
    /// `NotDir`; `Corrupt`; `Io`.
    pub(crate) fn of(mft: &Mft, node: &Node) -> Result<Self> {
        if !node.is_dir() {
            return Err(Kind::NotDir.into());
        }
        let index = Index::of(mft, node, &I30)?.ok_or_else(|| {
            let found = format!("none (record {})", node.number());
            Error::corrupt("directory", node.record.at, found, "an index of names")
        })?;
        let collation = index.root.collation.get();
        match collation {
            COLLATION_FILE_NAME => Ok(Self { index }),
            _ => {
                let found = format!("order {collation} (record {})", node.number());
                let at = node.record.at;
                Err(Error::corrupt("directory", at, found, "an index of names"))
            }
        }
    }

    /// Returns the directory's index.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Returns the number of the directory's record.
    pub(crate) fn number(&self) -> u64 {
        self.index.number
    }

    /// Returns the entry with exactly this name, or else one whose name differs only in case.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn find(
        &self,
        mft: &Mft,
        collation: &Collation,
        name: &[u8],
    ) -> Result<Option<Entry>> {
        let Some(wanted) = utf16(name) else {
            return Ok(None);
        };
        let (index, upcase) = (&self.index, collation.upcase(mft)?);
        let mut alike: Option<Entry> = None;
        let read = |entry: &crate::directory::index::Entry<'_>| {
            let name = NameOf::of(entry.key()).ok_or_else(|| bad_key(index.number, index.at))?;
            Ok(Entry {
                to: entry.raw.reference.get().into(),
                name,
                end: Cookie::START,
            })
        };
        let order = |entry: &crate::directory::index::Entry<'_>| -> Result<Ordering> {
            let found = read(entry)?;
            let order = upcase.full(&found.name.name, &wanted);
            let is_alike = order != Ordering::Equal
                && upcase.folded(&found.name.name, &wanted) == Ordering::Equal;
            // A listed name is preferred to one that only DOS sees.
            if is_alike && alike.as_ref().is_none_or(|before| before.name.is_dos()) {
                alike = Some(found);
            }
            Ok(order)
        };
        let exact = index.find(mft, order, |entry| read(entry))?;
        Ok(exact.or(alike))
    }

    /// Calls `each` for the entries from a cookie on, in stored order, without the names that only
    /// DOS sees. Returns true at the end, and false if `each` wants no more.
    ///
    /// # Errors
    /// `Invalid` for a cookie that is not the end of an entry; `Interrupted`; `Corrupt`; `Io`;
    /// those of `each`.
    pub(crate) fn list(
        &self,
        mft: &Mft,
        cx: &Ctx<'_>,
        from: Cookie,
        mut each: impl FnMut(&Entry) -> Result<bool>,
    ) -> Result<bool> {
        let index = &self.index;
        let (mut block, mut place) = (
            from.0 >> PLACE_BITS,
            (from.0 & ((1 << PLACE_BITS) - 1)) as usize,
        );
        if block > index.blocks() {
            return Err(Kind::Invalid.into());
        }
        while block <= index.blocks() {
            cx.check_cancel()?;
            if let Some(entries) = index.entries_of(mft, block)? {
                let mut at = place_in(&entries, place)?;
                while let Some(entry) = entries.entry(at)?.filter(|entry| !entry.is_last()) {
                    at = entry.end;
                    let name = NameOf::of(entry.key())
                        .ok_or_else(|| bad_key(index.number, entries.at_of(&entry)))?;
                    let entry = Entry {
                        to: entry.raw.reference.get().into(),
                        name,
                        end: Cookie(block << PLACE_BITS | entry.end as u64),
                    };
                    if !entry.name.is_dos() && !each(&entry)? {
                        return Ok(false);
                    }
                }
            } else if place != 0 {
                return Err(Kind::Invalid.into());
            }
            (block, place) = (block + 1, 0);
        }
        Ok(true)
    }
}

/// Returns whether an entry of a directory is shown. The root's entry for itself never is. The
/// volume's own files are shown only if that was asked for.
pub(crate) fn is_shown(dir: u64, to: u64, shows_system: bool) -> bool {
    match dir == number::ROOT && to < number::FIRST_USER {
        true => to != number::ROOT && shows_system,
        false => true,
    }
}

fn bad_key(number: u64, at: u64) -> Error {
    let found = format!("too few bytes (record {number})");
    Error::corrupt("index entry", at, found, "a name")
}

/// Returns the place where a listing continues: the first entry, or the end of an entry.
fn place_in(entries: &Entries, place: usize) -> Result<usize> {
    let mut at = entries.start();
    if place == 0 {
        return Ok(at);
    }
    while at < place {
        let entry = entries.entry(at)?.ok_or(Kind::Invalid)?;
        at = entry.end;
    }
    match at == place {
        true => Ok(at),
        false => Err(Kind::Invalid.into()),
    }
}

/// Returns whether an entry with this name can be looked up.
pub(crate) fn can_be_asked_for(name: &[u8]) -> bool {
    Name::new(name).is_ok()
}
