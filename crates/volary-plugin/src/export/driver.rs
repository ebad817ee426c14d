//! A driver, and the state behind its table.

use super::told::Told;
use crate::abi::VolaryTable;
use parking_lot::RwLock;
use volary_core::{Attach, Fs, Result, Time, Watch};

/// The arguments for opening a volume.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// The text that the user wrote after the plug-in's name.
    pub config: &'a str,
    /// How to attach. Options of a format are in `config`.
    pub attach: &'a Attach,
    /// The current time, for new time stamps.
    pub now: Time,
}

/// A driver that a library exports.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// The name by which a user asks for it, if the library has several. The first one is the
    /// default.
    pub name: &'static str,
    /// Opens a volume.
    pub open: fn(&Opening<'_>) -> Result<Fs>,
}

/// An exported driver, to which a table's `fs` points.
pub(super) struct Exported {
    pub(super) driver: Driver,
    pub(super) config: Vec<u8>,
    pub(super) table: VolaryTable,
    pub(super) attached: RwLock<Option<Attached>>,
}

pub(super) struct Attached {
    pub(super) fs: Fs,
    pub(super) told: Told,
    /// Watches the volume as long as it is attached.
    pub(super) _watch: Option<Watch>,
}
