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

use super::on;
use super::table::Table;
use anyhow::{Result, bail};
use volary_sim::Preset;

/// The tables' names. 5.4 is the section on group commit.
pub const TABLES: [&str; 5] = ["2", "3", "4", "5", "5.4"];

/// Those that have times.
pub const TIMED: [&str; 2] = ["2", "5"];

/// Makes one of [`TABLES`], or all; those that have times on another disk than the paper's, if one is given. The same at
/// each run.
///
/// # Errors
/// Of a disk that is too small; of volumes; for a name that is none of them.
pub fn tables(which: Option<&str>, disk: Option<Preset>) -> Result<Vec<Table>> {
    if let Some(disk) = disk {
        on::holds(&disk, Preset::T300.capacity())?;
        let tables = on::chosen(&TIMED, which).into_iter();
        let tables = tables.map(|name| match name {
            "2" => times::table_on(&disk),
            _ => bandwidth::table(Some(&disk)),
        });
        return Ok(on::moved(tables.collect::<Result<_>>()?, &disk));
    }
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
            ("5", _) => bandwidth::table(None)?,
            ("5.4", _) => commit::table()?,
            _ => bail!("the paper cedar has the tables {}", TABLES.join(", ")),
        });
    }
    Ok(all)
}
