//! The measurements in McKusick, Joy, Leffler and Fabry, "A Fast File System for UNIX" (1984): Table 1, the
//! space that block sizes waste; Tables 2a and 2b, the rates of the old and the new file system.

mod host;
mod rates;
mod volume;
mod waste;

pub use host::Rate;
pub use rates::{Row, Rows, rows};
pub use waste::{Layout, TABLE, lengths, synthetic, table1};

use super::on;
use super::table::Table;
use anyhow::Result;
use std::path::Path;
use volary_sim::Preset;

/// The tables' names.
pub const TABLES: [&str; 3] = ["1", "2a", "2b"];

/// Those that have times.
pub const TIMED: [&str; 2] = ["2a", "2b"];

/// Makes one of [`TABLES`], or all; Table 1 of a tree, if one is given; those that have times, on another disk than the
/// paper's, if one is given.
///
/// # Errors
/// Of a disk that is too small; of the tree; of volumes.
pub fn tables(
    which: Option<&str>,
    tree: Option<&Path>,
    disk: Option<Preset>,
) -> Result<Vec<Table>> {
    if let Some(disk) = disk {
        on::holds(&disk, rates::SIZE)?;
        return Ok(on::moved(timed(which, disk)?, &disk));
    }
    let is_wanted = |table: &str| which.is_none_or(|which| which == table);
    let mut tables = Vec::new();
    if is_wanted("1") {
        tables.push(table1(tree)?);
    }
    tables.extend(timed(which, Preset::CAPRICORN)?);
    Ok(tables)
}

/// Makes one of [`TIMED`], or all, on a disk.
fn timed(which: Option<&str>, disk: Preset) -> Result<Vec<Table>> {
    let is_wanted = |table: &str| which.is_none_or(|which| which == table);
    let mut tables = Vec::new();
    if is_wanted("2a") || is_wanted("2b") {
        let rows = rows(disk)?;
        if is_wanted("2a") {
            tables.push(rates::table2a(&rows));
        }
        if is_wanted("2b") {
            tables.push(rates::table2b(&rows));
        }
        // Once, below the last of them.
        if let Some(last) = tables.last_mut() {
            last.note(rates::notes(&rows));
        }
    }
    Ok(tables)
}
