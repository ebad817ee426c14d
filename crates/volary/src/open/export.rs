//! NFS exports as volumes.

use crate::opened::told;
use volary_core::{Attach, Fs, Result};
use volary_nfs_client::{Location, NfsOptions};

/// Attaches an export.
///
/// # Errors
/// As [`attach`](volary_nfs_client::attach) and [`with`](NfsOptions::with).
pub(super) fn open_export(location: &Location, how: &Attach) -> Result<Fs> {
    let how = told(how, &[])?;
    let options = NfsOptions {
        read_only: how.read_only,
        memory: how.memory,
        ..NfsOptions::default()
    };
    volary_nfs_client::attach(location, &options.with(location, &how.options)?)
}
