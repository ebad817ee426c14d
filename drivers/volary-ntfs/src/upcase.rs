//! `$UpCase`: which units are one where upper and lower case are the same, and the order of names.

use crate::ondisk::{kind, number};
use crate::store::Store;
use std::cmp::Ordering;
use volary_core::{Error, Kind, Result};

/// Units of the table.
const UNITS: usize = 1 << 16;

/// The table.
pub(crate) struct Upcase(Vec<u16>);

impl Upcase {
    /// Returns the upper-case form of a unit.
    pub(crate) fn unit(&self, unit: u16) -> u16 {
        self.0.get(usize::from(unit)).copied().unwrap_or(unit)
    }

    /// Compares names without regard to case.
    pub(crate) fn folded(&self, a: &[u16], b: &[u16]) -> Ordering {
        let a = a.iter().map(|unit| self.unit(*unit));
        a.cmp(b.iter().map(|unit| self.unit(*unit)))
    }

    /// Compares names as directories are sorted: without regard to case first, then with it.
    pub(crate) fn full(&self, a: &[u16], b: &[u16]) -> Ordering {
        self.folded(a, b).then_with(|| a.cmp(b))
    }
}

impl Store {
    /// Returns the volume's table.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn upcase(&self) -> Result<&Upcase> {
        if let Some(table) = self.upcase.get() {
            return Ok(table);
        }
        let node = self.node_of(number::UPCASE).map_err(|e| match e.kind() {
            Kind::Stale => {
                let at = self.record_at(number::UPCASE).unwrap_or(0);
                Error::corrupt("$UpCase", at, "a record that is not in use", "a table")
            }
            _ => e,
        })?;
        let most = 2 * UNITS as u64;
        let value = self.value(&node, (kind::DATA, "$UpCase"), most)?;
        let value = value.filter(|value| value.len() == 2 * UNITS);
        let value = value.ok_or_else(|| {
            Error::corrupt("$UpCase", node.record.at, "another table", "65536 units")
        })?;
        Ok(self
            .upcase
            .get_or_init(|| Upcase(crate::names::units(&value))))
    }
}
