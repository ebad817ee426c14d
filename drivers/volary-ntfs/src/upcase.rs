//! `$UpCase`: which units are one where upper and lower case are the same, and the order of names.

use std::cmp::Ordering;

/// Units of the table.
const UNITS: usize = 1 << 16;

/// The table.
pub(crate) struct Upcase(Vec<u16>);

impl Upcase {
    /// Bytes of the table.
    pub(crate) const LEN: u64 = 2 * UNITS as u64;

    /// Returns the table that a value is, if it is one.
    pub(crate) fn of(value: &[u8]) -> Option<Self> {
        (value.len() as u64 == Self::LEN).then(|| Self(crate::names::units(value)))
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

    /// Compares names as directories are sorted: without regard to case first, then with it.
    pub(crate) fn full(&self, a: &[u16], b: &[u16]) -> Ordering {
        self.folded(a, b).then_with(|| a.cmp(b))
    }
}
