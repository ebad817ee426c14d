//! Table 5: Andrew, Iostone, a tar file on a floppy, the Windows tree, on the Gateway.

use super::dataset;
use super::kernel::System;
use super::machine::{Machine, Machines};
use super::runs::{Programs, andrew, cells, copy_and_delete, iostone, iostones};
use super::systems::{Any, DOSFS, FAT, SYSTEMS, UFS};
use super::volume::Made;
use crate::paper::table::{Cell, Table};
use crate::workload::{self, Tree};
use anyhow::Result;

/// What MS-DOS copies at a time: assumed.
const DOS_COPY: u64 = 64 << 10;

/// The programs of the Andrew benchmark on the Gateway.
const PROGRAMS: Programs = Programs {
    each: 80_000.0,
    compile: 2_200_000.0,
};

const FLOPPY: u64 = 1_474_560;

/// A floppy of DosFs and one of FFS, new.
const FLOPPY_FAT: System = System {
    made: Made {
        format: "fat12",
        options: "floppy=1440k,fats=1,cluster=512",
        size: FLOPPY,
        full: 0,
    },
    block: 512,
    unit: 512,
    ..DOSFS
};
const FLOPPY_FFS: System = System {
    made: Made {
        format: "ffs1",
        options: "block=4096,fragment=512,old,nsect=18,ntrak=2,rps=5,rotdelay=4,maxcontig=1,minfree=0,density=4096",
        size: FLOPPY,
        full: 0,
    },
    base: 0,
    ..UFS
};

/// Unpacks the data set of Table 2. Returns seconds.
fn unpack(any: &mut Any) -> Result<f64> {
    let dirs = dataset::DIRS.map(str::to_owned).to_vec();
    let path = |file: &dataset::File| {
        format!(
            "{}/{}",
            dirs.get(file.dir).map_or("", String::as_str),
            file.name
        )
    };
    let files = dataset::dataset()
        .iter()
        .map(|file| (path(file), file.len))
        .collect();
    let tree = Tree {
        dirs: dirs.clone(),
        files,
    };
    let time = any.time(|files| {
        workload::make(files, &tree)?;
        files.sync()
    })?;
    Ok(time / 1e6)
}

/// Returns our figures for Andrew of FFS and DosFs.
fn phases(gateway: Machine) -> Result<[[f64; 5]; 2]> {
    Ok([
        andrew(&mut Any::unix(gateway, UFS)?, PROGRAMS)?,
        andrew(&mut Any::unix(gateway, DOSFS)?, PROGRAMS)?,
    ])
}

/// Adds the rows of Andrew.
pub(super) fn andrew_rows(
    table: &mut Table,
    paper: [[f64; 5]; 2],
    ours: [[f64; 5]; 2],
    shift: usize,
) {
    for (number, phase) in ["I", "II", "III", "IV", "V"].iter().enumerate() {
        let of = |figures: [[f64; 5]; 2]| -> Vec<Option<f64>> {
            let both = figures.iter().map(|all| all.get(number).copied());
            std::iter::repeat_n(None, shift).chain(both).collect()
        };
        table.row(
            format!("Andrew, phase {phase}"),
            cells(&of(paper), &of(ours), &[(shift, shift + 1)]),
        );
    }
}

/// Returns what Iostone takes, one to three instances: FFS, DosFs, and DosFs with requests of a cluster.
pub(super) fn stones(machine: Machine, ffs: System, dosfs: System) -> Result<[[f64; 3]; 3]> {
    let small = System {
        io: dosfs.unit,
        ..dosfs
    };
    Ok([
        iostones(machine, ffs)?,
        iostones(machine, dosfs)?,
        iostones(machine, small)?,
    ])
}

/// Returns the table of Iostone on DosFs, with and without large requests: the paper's times, ours, and their ratio.
pub(super) fn small_table(
    title: &str,
    paper: [[f64; 2]; 3],
    [_, dosfs, small]: [[f64; 3]; 3],
) -> Table {
    let columns = ["DosFs", "with 2 KB a request", "2 KB / DosFs"];
    let mut table = Table::new(title, "seconds", &columns);
    for (number, paper) in paper.into_iter().enumerate() {
        let ours = [dosfs, small].map(|all| all.get(number).copied());
        table.row(
            format!("Iostone-{}", number + 1),
            cells(&paper.map(Some), &ours, &[(1, 0)]),
        );
    }
    table
}

/// Runs Table 5. Returns it, and the table of DosFs with and without large requests.
///
/// # Errors
/// Of volumes.
pub(super) fn tables(machines: &Machines) -> Result<[Table; 2]> {
    let gateway = machines.gateway;
    let mut table = Table::new(
        "Table 5: macro-benchmarks on the Gateway",
        "seconds",
        &SYSTEMS,
    );
    let paper = [[0.5, 9.0, 8.0, 12.0, 49.0], [0.5, 8.0, 6.0, 9.0, 40.0]];
    andrew_rows(&mut table, paper, phases(gateway)?, 1);
    let stones = stones(gateway, UFS, DOSFS)?;
    stone_rows(&mut table, gateway, stones)?;
    if let Some(floppy) = machines.floppy {
        floppy_row(&mut table, floppy)?;
    }
    windows_rows(&mut table, gateway)?;
    let paper = [[195.0, 287.0], [550.0, 700.0], [963.0, 983.0]];
    let small = small_table(
        "Table 5, in brackets: DosFs without large I/O",
        paper,
        stones,
    );
    Ok([table, small])
}

fn floppy_row(table: &mut Table, floppy: Machine) -> Result<()> {
    let ours = [
        None,
        Some(unpack(&mut Any::unix(floppy, FLOPPY_FFS)?)?),
        Some(unpack(&mut Any::unix(floppy, FLOPPY_FAT)?)?),
    ];
    let today = unpack(&mut Any::today(floppy, &FLOPPY_FAT.made)?)?;
    let mut row = cells(&[None, Some(187.0), Some(150.0)], &ours, &[(1, 2), (0, 2)]);
    row.push(Cell::ours(today));
    table.row("unpack a tar file to a floppy", row);
    Ok(())
}

fn stone_rows(table: &mut Table, gateway: Machine, [ffs, dosfs, _]: [[f64; 3]; 3]) -> Result<()> {
    let dos = [Some(iostone(&mut Any::dos(gateway)?, 1)?), None, None];
    let today = iostone(&mut Any::today(gateway, &FAT)?, 1)?;
    let paper = [
        [Some(996.0), Some(233.0), Some(195.0)],
        [None, Some(654.0), Some(550.0)],
        [None, Some(1089.0), Some(963.0)],
    ];
    let ours = dos.iter().zip(ffs).zip(dosfs);
    for (number, (paper, ((dos, ffs), dosfs))) in paper.iter().zip(ours).enumerate() {
        let mut row = cells(paper, &[*dos, Some(ffs), Some(dosfs)], &[(1, 2), (0, 2)]);
        if number == 0 {
            row.push(Cell::ours(today));
        }
        table.row(format!("Iostone-{}", number + 1), row);
    }
    Ok(())
}

fn windows_rows(table: &mut Table, gateway: Machine) -> Result<()> {
    let ours = [
        copy_and_delete(&mut Any::dos(gateway)?, DOS_COPY)?,
        copy_and_delete(&mut Any::unix(gateway, UFS)?, 16 << 10)?,
        copy_and_delete(&mut Any::unix(gateway, DOSFS)?, 16 << 10)?,
    ];
    let today = copy_and_delete(&mut Any::today(gateway, &FAT)?, 16 << 10)?;
    let paper = [
        ("copy Windows", [48.0, 76.0, 58.0]),
        ("delete Windows", [11.0, 5.4, 1.2]),
    ];
    for (number, (name, paper)) in paper.into_iter().enumerate() {
        let of = |times: [f64; 2]| times.get(number).copied();
        let mut row = cells(&paper.map(Some), &ours.map(of), &[(1, 2), (0, 2)]);
        row.push(of(today).map_or_else(Cell::default, Cell::ours));
        table.row(name, row);
    }
    Ok(())
}
