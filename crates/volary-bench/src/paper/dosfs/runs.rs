//! What is done with each system, and how long it takes.

use super::kernel::System;
use super::machine::Machine;
use super::systems::Any;
use crate::paper::table::Cell;
use crate::workload::{self, Again, Iostone, Mix, Tree};
use anyhow::Result;

/// Bytes of a call of the tests that read and write.
pub(super) const CALL: u64 = 16 << 10;
/// Bytes of a call of `crtdel`: assumed; and under MS-DOS, where each sector that is written for itself costs a turn: chosen for
/// the paper's 100 KB in 3,671 ms.
const CREATED: u64 = 2 << 10;
const CREATED_DOS: u64 = 512;
/// Paths of the `open` test; how long the paper's long one is, it does not say.
pub(super) const PATHS: [&str; 3] = ["foo.x", "a/b/foo.x", "a/b/c/d/e/foo.x"];

/// Opens each of the paths again and again; returns milliseconds for one.
///
/// # Errors
/// Of the system.
pub(super) fn opens(any: &mut Any) -> Result<[f64; 3]> {
    const TIMES: usize = 10;
    for dir in ["a", "a/b", "a/b/c", "a/b/c/d", "a/b/c/d/e"] {
        any.files().mkdir(dir)?;
    }
    let mut all = [0.0; 3];
    for (path, took) in PATHS.iter().zip(&mut all) {
        workload::write_new(any.files(), path, 1024, CALL)?;
        let time = any.time(|files| {
            for _ in 0..TIMES {
                files.open(path)?;
                files.close(path)?;
            }
            Ok(())
        })?;
        *took = time / TIMES as f64 / 1e3;
    }
    Ok(all)
}

/// Makes, writes and removes a file again and again; returns milliseconds for one.
///
/// # Errors
/// Of the system.
pub(super) fn crtdel(any: &mut Any, kib: u64) -> Result<f64> {
    const TIMES: usize = 20;
    let unit = if matches!(any, Any::Dos(_)) {
        CREATED_DOS
    } else {
        CREATED
    };
    let mut run = |times| {
        let again = Again {
            path: "crtdel.x",
            len: kib << 10,
            unit,
            times,
        };
        any.time(|files| again.create_and_delete(files))
    };
    run(4)?;
    Ok(run(TIMES)? / TIMES as f64 / 1e3)
}

/// Reads and writes a file again and again; returns MB/s.
///
/// # Errors
/// Of the system.
pub(super) fn again(any: &mut Any, kib: u64) -> Result<[f64; 2]> {
    const TIMES: usize = 50;
    let (path, len) = ("again.x", kib << 10);
    workload::write_new(any.files(), path, len, CALL)?;
    any.files().sync()?;
    any.files().open(path)?;
    let again = Again {
        path,
        len,
        unit: CALL,
        times: TIMES,
    };
    // Twice before it counts.
    Again { times: 2, ..again }.read(any.files())?;
    let read = any.time(|files| again.read(files))?;
    let written = any.time(|files| again.write(files))?;
    any.files().close(path)?;
    any.files().unlink(path)?;
    any.files().sync()?;
    Ok([read, written].map(|time| len as f64 * TIMES as f64 / time))
}

/// Writes a file that is new, down to the disk, and reads it with nothing in memory; returns KB/s: read, written.
///
/// # Errors
/// Of the system.
pub(super) fn uncached(any: &mut Any, len: u64) -> Result<[f64; 2]> {
    let written = any.time(|files| {
        workload::write_new(files, "large.x", len, CALL)?;
        files.sync()
    })?;
    any.remount()?;
    let read = any.time(|files| workload::read_whole(files, "large.x", len, CALL))?;
    Ok([read, written].map(|time| len as f64 * 1e3 / time))
}

/// Returns the Windows 3.1 directory: 240 files, as MS-DOS' 11 s of deleting them suggest (46 ms each: an entry and two FATs), and
/// 8 MB. Assumed.
pub(super) fn windows() -> Tree {
    workload::with_lengths("win", 2, 240, 8_000_000)
}

/// Copies and removes the Windows tree from a cold cache. Returns seconds.
///
/// # Errors
/// Of the system.
pub(super) fn copy_and_delete(any: &mut Any, unit: u64) -> Result<[f64; 2]> {
    let tree = windows();
    workload::make(any.files(), &tree)?;
    any.remount()?;
    let copied = any.time(|files| workload::copy(files, &tree, "win", "copy", unit, 0.0))?;
    any.remount()?;
    let removed = any.time(|files| workload::remove(files, &tree))?;
    any.files().sync()?;
    Ok([copied, removed].map(|time| time / 1e6))
}

/// The files of an Iostone instance: 404, of 5 MB. The paper says how many there are of one sector, of 4 to 16 KB and above; the
/// lengths are assumed. Each of the long ones is opened a fifth as often as another.
pub(super) const STONE: [Mix; 4] = [
    mix(192, 512, 487),
    mix(160, 2048, 406),
    mix(40, 8192, 101),
    mix(12, 360 << 10, 6),
];

const fn mix(files: usize, len: u64, chosen: u64) -> Mix {
    Mix { files, len, chosen }
}

/// Runs several instances of Iostone. Returns seconds. The number of opens is fitted to FFS' 233 s.
///
/// # Errors
/// Of the system.
pub(super) fn iostone(any: &mut Any, instances: usize) -> Result<f64> {
    let stone = Iostone {
        mix: &STONE,
        instances,
        opened: 10_200,
        read_of_three: 2,
    };
    stone.prepare(any.files())?;
    any.remount()?;
    Ok(any.time(|files| stone.run(files))? / 1e6)
}

/// Runs one, two and three instances on new volumes.
///
/// # Errors
/// Of the systems.
pub(super) fn iostones(machine: Machine, system: System) -> Result<[f64; 3]> {
    let mut all = [0.0; 3];
    for (instances, took) in (1..).zip(&mut all) {
        *took = iostone(&mut Any::unix(machine, system)?, instances)?;
    }
    Ok(all)
}

/// What the programs of the Andrew benchmark take of the processor, in microseconds: each of those that it starts for a file,
/// and a compilation. Assumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Programs {
    pub(super) each: f64,
    pub(super) compile: f64,
}

/// Runs the five phases; returns seconds: directories made, files copied, looked at, read twice, compiled.
///
/// # Errors
/// Of the system.
pub(super) fn andrew(any: &mut Any, programs: Programs) -> Result<[f64; 5]> {
    // Howard and others: 70 files of 200 KB; 17 are compiled.
    let tree = workload::with_lengths("src", 4, 70, 200_000);
    let only_files = Tree {
        dirs: Vec::new(),
        files: tree
            .files
            .iter()
            .map(|(path, len)| (path.replacen("src", "dst", 1), *len))
            .collect(),
    };
    workload::make(any.files(), &tree)?;
    any.remount()?;
    let dirs = any.time(|files| {
        for dir in &tree.dirs {
            files.compute(programs.each)?;
            files.mkdir(&dir.replacen("src", "dst", 1))?;
        }
        Ok(())
    })?;
    let from = Tree {
        dirs: Vec::new(),
        ..tree.clone()
    };
    let copied =
        any.time(|files| workload::copy(files, &from, "src", "dst", CALL, programs.each))?;
    let looked = any.time(|files| workload::stat_all(files, &only_files, programs.each))?;
    let read = any.time(|files| {
        workload::read_all(files, &only_files, programs.each)?;
        workload::read_all(files, &only_files, programs.each)
    })?;
    let compiled = any.time(|files| {
        for (path, len) in only_files.files.iter().step_by(4) {
            files.compute(programs.compile)?;
            workload::read_whole(files, path, *len, CALL)?;
            // What the passes of the compiler leave for each other, and the object.
            for name in ["cpp", "asm"] {
                let name = format!("dst/{name}.x");
                workload::write_new(files, &name, 3 * len, 4096)?;
                workload::read_whole(files, &name, 3 * len, 4096)?;
                files.unlink(&name)?;
            }
            workload::write_new(files, &path.replace("file", "obj"), *len, 4096)?;
        }
        Ok(())
    })?;
    Ok([dirs, copied, looked, read, compiled].map(|time| time / 1e6))
}

/// Returns the cells of systems in a row of a table, and behind them the ratios between them: (which, by which).
pub(super) fn cells(
    paper: &[Option<f64>],
    ours: &[Option<f64>],
    ratios: &[(usize, usize)],
) -> Vec<Cell> {
    let both = paper.iter().zip(ours);
    let mut cells: Vec<Cell> = both
        .map(|(paper, ours)| Cell {
            paper: *paper,
            ours: *ours,
            is_claimed: false,
        })
        .collect();
    for (one, other) in ratios {
        let ratio = |of: &[Option<f64>]| Some(of.get(*one).copied()?? / of.get(*other).copied()??);
        cells.push(Cell {
            paper: ratio(paper),
            ours: ratio(ours),
            is_claimed: true,
        });
    }
    cells
}
