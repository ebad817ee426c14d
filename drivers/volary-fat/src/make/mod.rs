//! Making a volume (`mkfs`).
//!
//! All is planned and checked before the first byte is written. The boot
//! sector is cleared first and written last, so that a make that was stopped
//! leaves no volume rather than half of one.

mod boot;
mod plan;
mod program;
mod request;
mod tables;
mod write;

pub use request::{MAKE_OPTIONS, label};

use crate::look::info::layout_facts;
use crate::volume::layout::FatKind;
use plan::Plan;
use request::Request;
use volary_core::{BlockDevice, Error, Fact, Kind, Make, Result};

/// Makes an empty volume over the whole device: flushed when it returns.
///
/// # Errors
/// `Invalid` for an option, or for a device that is too small or too large
/// for the kind: nothing is written then. `ReadOnly`; `Io`.
pub fn make(dev: &dyn BlockDevice, kind: FatKind, how: &Make) -> Result<Vec<Fact>> {
    let geometry = dev.geometry();
    let request = Request::new(how)?;
    let plan = Plan::new(&geometry, kind, &request)?;
    if geometry.read_only {
        return Err(Error::note(Kind::ReadOnly, "the device is read-only"));
    }
    let layout = boot::layout(&plan)?;
    write::write(dev, &plan, &layout)?;
    Ok(layout_facts(&layout))
}

#[cfg(test)]
mod tests;
