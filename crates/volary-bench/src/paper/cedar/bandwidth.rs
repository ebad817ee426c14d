//! Table 5: the part of the disk's bandwidth that a file system delivers.

use super::mounted::Mounted;
use super::rival::Fsd;
use crate::paper::ffs;
use crate::paper::table::{Cell, Table};
use anyhow::Result;
use volary_sim::Preset;

/// Bytes of the file: that of the FFS paper, from which 4.2BSD's figures are.
const FILE: usize = 8 << 20;

/// Returns percents of a disk's bandwidth: reading, writing.
fn fsd(disk: &Preset) -> Result<[f64; 2]> {
    let mut fsd = Fsd::new(disk, "")?;
    let transfer = FILE as f64 / disk.bandwidth();
    let mut percent = |act: &dyn Fn(&mut Mounted) -> Result<()>| -> Result<f64> {
        let before = fsd.on.now();
        act(&mut fsd.on)?;
        Ok(transfer * 100.0 / (fsd.on.now() - before))
    };
    let write = percent(&|on| {
        on.create("rate>Large", FILE)?;
        on.sync()
    })?;
    percent(&|on| on.again())?;
    let read = percent(&|on| on.read("rate>Large").map(|_| ()))?;
    Ok([read, write])
}

const NOTES: &str = "\
A file of 8 MiB, in requests of 4 KiB. Of the paper's second row the text at hand has nothing; that the MASSBUS was
busy for as long, and the processor for 95 %, is in the FFS paper. FSD's processor time is a Dorado's, and is not
modelled: without it no request comes too late, and our FSD loses only seeks between pieces and the commit. 4.2BSD:
the model of the FFS tables, blocks of 8 KiB on the MASSBUS (volary bench paper ffs --table 2a).";

/// Makes the table: the paper's, or that of another disk.
///
/// # Errors
/// Of the volumes.
pub(super) fn table(disk: Option<&Preset>) -> Result<Table> {
    let bsd = ffs::rows(*disk.unwrap_or(&Preset::CAPRICORN))?;
    let of = |rows: &[ffs::Row]| rows.last().map(|row| row.then);
    let mut table = Table::new(
        "Table 5: FSD and 4.2BSD in percent of the processor and of the disk's bandwidth",
        "%",
        &["FSD, CPU", "FSD, disk", "4.2BSD, CPU", "4.2BSD, disk"],
    );
    let [read, write] = fsd(disk.unwrap_or(&Preset::T300))?;
    let percent = |rate: Option<ffs::Rate>| {
        let disk = rate.map(|rate| rate.speed * 100.0 / bsd.bandwidth);
        (rate.map(|rate| rate.cpu), disk)
    };
    let cell = |paper: Option<f64>, ours: Option<f64>| Cell {
        paper,
        ours,
        is_claimed: true,
    };
    let (cpu, disk) = percent(of(&bsd.read));
    table.row(
        "read",
        vec![
            Cell::paper(27.0),
            Cell::claimed(79.0, read),
            cell(Some(54.0), cpu),
            cell(Some(47.0), disk),
        ],
    );
    let (cpu, disk) = percent(of(&bsd.write));
    table.row(
        "write",
        vec![
            Cell::default(),
            Cell::ours(write),
            cell(None, cpu),
            cell(None, disk),
        ],
    );
    table.note(NOTES);
    Ok(table)
}
