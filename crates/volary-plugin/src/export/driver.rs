//! A driver, and what a table of it leads to.

use super::told::Told;
use crate::abi::VolaryTable;
use parking_lot::RwLock;
use volary_core::{Attach, Fs, Result, Time, Watch};

/// What a driver is opened with.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// What the user wrote after the plug-in's name.
    pub config: &'a str,
    /// How to attach. Options of a format are in `config`.
    pub attach: &'a Attach,
    /// The time, for what is made now.
    pub now: Time,
}

/// A driver that a library exports.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// The name by which a user asks for it, if the library has several. The first one is it
    /// without a name.
    pub name: &'static str,
    /// Opens a volume.
    pub open: fn(&Opening<'_>) -> Result<Fs>,
}

/// An exported driver: what a table's `fs` leads to.
pub(super) struct Exported {
    pub(super) driver: Driver,
    pub(super) config: Vec<u8>,
    pub(super) table: VolaryTable,
    pub(super) attached: RwLock<Option<Attached>>,
}

pub(super) struct Attached {
    pub(super) fs: Fs,
    pub(super) told: Told,
    /// Kept for as long as the volume.
    pub(super) _watch: Option<Watch>,
}
