//! Today's alternatives, side by side with volary.

pub mod bulk;
pub mod cedar;
pub mod fat;
pub mod ffs;
mod finding;
mod folder;
mod rust_fatfs;
pub mod servers;
mod synced;
mod task;
mod trees;

pub use finding::{Bound, Finding, Missing, PerFile, Row};
pub use task::Options;

use crate::measure::Scratch;
use anyhow::{Result, bail};

/// All comparisons, by name.
pub const ALL: [&str; 5] = ["fat", "ffs", "cedar", "bulk", "servers"];

/// Runs the comparison of this name; `told` hears of each finding as soon as it is there. `scale` is for `bulk`.
///
/// # Errors
/// If there is no such comparison; if a program fails.
pub fn run(
    name: &str,
    options: &Options,
    scale: &bulk::Scale,
    told: &mut dyn FnMut(&Finding),
) -> Result<Vec<Finding>> {
    match name {
        "fat" => fat::run(options, told),
        "ffs" => ffs::run(options, told),
        "cedar" => cedar::run(options, told),
        "bulk" => bulk::run(options, scale, told),
        "servers" => servers::run(options, told),
        name => bail!("no such comparison: {name}"),
    }
}

/// Returns where a comparison puts what it makes, unless it is told.
pub(crate) fn scratch_of(name: &str) -> Scratch {
    match name {
        "bulk" => Scratch::Disk,
        _ => Scratch::Memory,
    }
}
