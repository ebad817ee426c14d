//! The measurements in McKusick, Joy, Leffler and Fabry, "A Fast File System for UNIX" (1984): Table 1, the
//! space that block sizes waste; Tables 2a and 2b, the rates of the old and the new file system.

mod host;
mod rates;
mod volume;
mod waste;

pub use host::Rate;
pub use rates::{Row, Rows, rows};
pub use waste::{Layout, TABLE, lengths, synthetic, table1};

use super::table::Table;
use anyhow::Result;
use std::path::Path;

/// The tables' names.
pub const TABLES: [&str; 3] = ["1", "2a", "2b"];

/// Makes one of [`TABLES`], or all; Table 1 of a tree, if one is given.
///
/// # Errors
/// Of the tree; of volumes.
pub fn tables(which: Option<&str>, tree: Option<&Path>) -> Result<Vec<Table>> {
    let is_wanted = |table: &str| which.is_none_or(|which| which == table);
    let mut tables = Vec::new();
    if is_wanted("1") {
        tables.push(table1(tree)?);
    }
    if is_wanted("2a") || is_wanted("2b") {
        let rows = rows()?;
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
