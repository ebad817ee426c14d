//! The measurements in McKusick, Joy, Leffler and Fabry, "A Fast File System for UNIX" (1984): Table 1, the
//! space that block sizes waste; Tables 2a and 2b, the rates of the old and the new file system.

mod host;
mod rates;
mod volume;
mod waste;

pub use host::Rate;
pub use rates::{Row, Rows, rows};
pub use waste::{Layout, TABLE, lengths, synthetic, table1};

use anyhow::Result;
use std::io::Write;
use std::path::Path;

/// Prints a table (`1`, `2a` or `2b`), or all; Table 1 of a tree, if one is given.
///
/// # Errors
/// Of the tree; of volumes; of writing.
pub fn tables(which: Option<&str>, tree: Option<&Path>, out: &mut dyn Write) -> Result<()> {
    let is_wanted = |table: &str| which.is_none_or(|which| which == table);
    if is_wanted("1") {
        table1(tree, out)?;
    }
    if is_wanted("2a") || is_wanted("2b") {
        let rows = rows()?;
        if is_wanted("2a") {
            if which.is_none() {
                writeln!(out)?;
            }
            rates::table2a(&rows, out)?;
        }
        if is_wanted("2b") {
            if which.is_none() {
                writeln!(out)?;
            }
            rates::table2b(&rows, out)?;
        }
        rates::notes(&rows, out)?;
        if is_wanted("2a") {
            writeln!(out, "\n{}", rates::FAR)?;
        }
    }
    Ok(())
}
