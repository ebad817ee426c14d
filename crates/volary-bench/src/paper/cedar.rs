//! The tables of Hagmann, "Reimplementing the Cedar File System Using Logging and Group Commit" (1987).
//!
//! FSD is volary's driver with the paper's parameters. CFS, which it replaced, is built here on a disk with labels;
//! 4.3BSD is volary's driver of its file system behind a model of the kernel's cache. All run on a simulated Trident
//! T-300, which counts requests and takes its time for each. Table 2 has beside it what the paper's scripts predict
//! (section 6).

mod bandwidth;
mod baseline;
mod bsd;
mod cfs;
mod commit;
mod counted;
mod counts;
mod machine;
mod mounted;
mod rival;
mod scripts;
mod times;

use super::table::Table;
use anyhow::{Result, bail};

/// The tables' names. 5.4 is the section on group commit.
pub const TABLES: [&str; 5] = ["2", "3", "4", "5", "5.4"];

/// Makes one of [`TABLES`], or all. The same at each run.
///
/// # Errors
/// Of volumes; for a name that is none of them.
pub fn tables(which: Option<&str>) -> Result<Vec<Table>> {
    let wanted = which.map_or(TABLES.to_vec(), |which| vec![which]);
    let mut all = Vec::new();
    let counts = match wanted.contains(&"3") || wanted.contains(&"4") {
        true => Some(counts::Counts::take()?),
        false => None,
    };
    for name in wanted {
        all.push(match (name, &counts) {
            ("2", _) => times::table()?,
            ("3", Some(counts)) => counts.table3(),
            ("4", Some(counts)) => counts.table4(),
            ("5", _) => bandwidth::table()?,
            ("5.4", _) => commit::table()?,
            _ => bail!("the paper cedar has the tables {}", TABLES.join(", ")),
        });
    }
    Ok(all)
}
