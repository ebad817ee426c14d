//! `$UpCase`: the table of upper case, and the order of names.

use crate::disk::ondisk::{kind, number};
use crate::files::node::Node;
use crate::mft::records::Mft;
use std::cmp::Ordering;
use std::sync::OnceLock;
use volary_core::{Error, Kind, Result};

/// The number of units in the table.
const UNITS: usize = 1 << 16;

/// The table of upper case.
pub(crate) struct Upcase(Vec<u16>);

impl Upcase {
    /// The length of the table, in bytes.
    pub(crate) const LEN: u64 = 2 * UNITS as u64;

    /// Returns the table that a value holds, or `None` if its length is wrong.
    pub(crate) fn of(value: &[u8]) -> Option<Self> {
        (value.len() as u64 == Self::LEN).then(|| Self(crate::disk::names::units(value)))
    }

    /// Returns the upper-case form of a unit.
    pub(crate) fn unit(&self, unit: u16) -> u16 {
        self.0.get(usize::from(unit)).copied().unwrap_or(unit)
    }

    /// Compares names without regard to case.
    pub(crate) fn folded(&self, a: &[u16], b: &[u16]) -> Ordering {
        let a = a.iter().map(|unit| self.unit(*unit));
        a.cmp(b.iter().map(|unit| self.unit(*unit)))
    }

    /// Compares names in the order of directories: first without regard to case, then with it.
    pub(crate) fn full(&self, a: &[u16], b: &[u16]) -> Ordering {
        self.folded(a, b).then_with(|| a.cmp(b))
    }
}

/// The order of names on a volume. Its table is read when it is first needed.
#[derive(Default)]
pub(crate) struct Collation {
    table: OnceLock<Upcase>,
}

impl Collation {
    /// Returns the volume's table of upper case.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn upcase(&self, mft: &Mft) -> Result<&Upcase> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let node = Node::of(mft, number::UPCASE).map_err(|e| match e.kind() {
            Kind::Stale => {
                let at = mft.record_at(number::UPCASE).unwrap_or(0);
                Error::corrupt("$UpCase", at, "a record that is not in use", "a table")
            }
            _ => e,
        })?;
        let value = node.value(mft, kind::DATA, "$UpCase", Upcase::LEN)?;
        let table = value.and_then(|value| Upcase::of(&value));
        let table = table.ok_or_else(|| {
            Error::corrupt("$UpCase", node.record.at, "another table", "65536 units")
        })?;
        Ok(self.table.get_or_init(|| table))
    }
}
