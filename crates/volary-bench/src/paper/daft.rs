//! Table II of Guo and Chiueh, "DAFT: Disk Geometry-Aware File System Traversal", on models of the
//! paper's two disks: the speedup of reading files in disk order over reading them one by one.
//!
//! The paper gives the layout: a thousand directories of a thousand files, in order. What it does not give is
//! assumed, and printed below the table.

use anyhow::Result;
use std::io::Write;
use volary_sim::Timed;
use volary_sim::hard::{HardDisk, Model};

/// Directories of the volume, and files in each.
const DIRS: u64 = 1000;
const FILES: u64 = 1000;
/// Every n-th directory is read; the others would take as long.
const SAMPLED: u64 = 20;
/// Bytes of an MFT record, and where the MFT begins: NTFS reserves room for it.
const RECORD: u64 = 1 << 10;
const MFT: u64 = 3_200_000_000;
const MIB: u64 = 1 << 20;

/// What the paper does not say.
const ASSUMED: &str = "Assumed: 450 us of the processor's for each file that is opened, read and closed, and 6 ns for \
    each of its bytes; 60 us for each request of DAFTNM; 64 records of the MFT a read; the disks' settling, \
    commands, bus of the slow one, and 512 KiB read ahead.";
/// Host time in microseconds: for a file in Vanilla, for a byte of it, for a request of DAFTNM.
const FILE: f64 = 450.0;
const BYTE: f64 = 0.006;
const REQUEST: f64 = 60.0;
/// Records of the MFT that NTFS reads at a time.
const RECORDS: u64 = 64;

/// Files of one length on one disk.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The disk.
    pub disk: &'static str,
    /// KiB of each file.
    pub kib: u64,
    /// The paper's factor: DAFTM over Vanilla.
    pub paper: f64,
    /// Ours.
    pub daftm: f64,
    /// DAFTNM over Vanilla, which the paper shows in a figure.
    pub daftnm: f64,
}

/// All rows.
pub fn rows() -> Vec<Row> {
    let disks = [
        ("fast", Model::FAST, [15.5, 5.5, 2.1]),
        ("slow", Model::SLOW, [6.2, 3.9, 2.1]),
    ];
    let mut rows = Vec::new();
    for (disk, model, papers) in disks {
        for (kib, paper) in [4, 16, 64].into_iter().zip(papers) {
            let set = Set {
                model,
                len: kib << 10,
            };
            let vanilla = set.vanilla();
            rows.push(Row {
                disk,
                kib,
                paper,
                daftm: vanilla / set.daft(MIB, 0.0),
                daftnm: vanilla / set.daft(set.len, REQUEST),
            });
        }
    }
    rows
}

/// A volume of files of one length.
struct Set {
    model: Model,
    len: u64,
}

impl Set {
    /// Where the data of a directory's files begin: the MFT lies among them.
    fn data(&self, dir: u64) -> u64 {
        let at = dir * FILES * self.len;
        if at < MFT {
            at
        } else {
            at + DIRS * FILES * RECORD
        }
    }

    /// Where the records of a directory's files begin.
    fn records(dir: u64) -> u64 {
        MFT + dir * FILES * RECORD
    }

    fn dirs() -> impl Iterator<Item = u64> {
        (0..DIRS).step_by(SAMPLED as usize)
    }

    /// Returns the time of opening and reading files one by one.
    fn vanilla(&self) -> f64 {
        let mut disk = HardDisk::new(self.model);
        for dir in Self::dirs() {
            for file in 0..FILES {
                if file % RECORDS == 0 {
                    disk.read(Self::records(dir) + file * RECORD, RECORDS * RECORD);
                }
                disk.wait(FILE);
                disk.read(self.data(dir) + file * self.len, self.len);
                disk.wait(BYTE * self.len as f64);
            }
        }
        disk.now()
    }

    /// Returns the time of reading all records, and then all data in disk order, with requests of this length.
    fn daft(&self, request: u64, each: f64) -> f64 {
        let mut disk = HardDisk::new(self.model);
        // The sampled directories stand for all.
        let sampled = DIRS / SAMPLED * FILES * RECORD;
        for at in (0..sampled).step_by(MIB as usize) {
            disk.read(MFT + at, MIB.min(sampled - at));
        }
        for dir in Self::dirs() {
            let all = FILES * self.len;
            for at in (0..all).step_by(request as usize) {
                disk.read(self.data(dir) + at, request.min(all - at));
                disk.wait(each);
            }
        }
        disk.now()
    }
}

/// Prints the table.
///
/// # Errors
/// Of writing.
pub fn table2(out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "Table II on models of the paper's disks: times as fast as files one by one (Vanilla)\n"
    )?;
    writeln!(
        out,
        "{:<6} {:>6} {:>14} {:>8} {:>12} {:>8}",
        "disk", "KiB", "DAFTM, paper", "DAFTM", "DAFTM/paper", "DAFTNM"
    )?;
    for row in rows() {
        writeln!(
            out,
            "{:<6} {:>6} {:>14.1} {:>8.1} {:>12.2} {:>8.1}",
            row.disk,
            row.kib,
            row.paper,
            row.daftm,
            row.daftm / row.paper,
            row.daftnm
        )?;
    }
    writeln!(out, "\n{ASSUMED}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_factor_is_near_the_papers_and_merging_gains() {
        let rows = rows();
        for row in &rows {
            let ratio = row.daftm / row.paper;
            assert!((0.65..1.5).contains(&ratio), "{ratio} of {row:?}");
            assert!(1.0 < row.daftnm && row.daftnm < row.daftm, "{row:?}");
        }
        // As in the paper: the speedup falls with the length, and is largest on the fast disk.
        for pair in rows.windows(2).filter(|pair| pair[0].disk == pair[1].disk) {
            assert!(pair[0].daftm > pair[1].daftm, "{pair:?}");
        }
        assert!(rows[0].daftm > rows[3].daftm);
    }
}
