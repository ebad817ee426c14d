//! Table 2: moving data to a floppy disk.

use super::cost::{FFS_FIXED_FLOPPY, ceil, ffs_dir};
use super::dataset::{DATA_BYTES, DIRS, File, dataset};
use crate::paper::table::{Cell, Table};
use anyhow::{Context, Result};
use std::sync::Arc;
use volary::block::MemDevice;
use volary::{
    Attach, Cancel, Create, Cred, Ctx, Fs, Kind, Make, Name, NodeId, Options, SetAttr, Time,
};

/// Bytes of the floppy: 2880 sectors.
const FLOPPY: u64 = 1_474_560;

/// What the paper has for an allocation size: waste, and free space of FFS and
/// DosFs, in KB.
const PAPER: [(u64, i64, i64, i64); 4] = [
    (512, 50, 326, 422),
    (1024, 105, 273, 368),
    (2048, 220, 138, 260),
    (4096, 475, -86, 4),
];

/// One line of the table, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Allocation size.
    pub unit: u64,
    /// Allocated but not used, by files and directories.
    pub waste: u64,
    /// Free on FFS, by the formula; negative for what does not fit.
    pub ffs_free: i64,
    /// Free on the real FAT volume; negative for what did not fit.
    pub dosfs_free: i64,
}

/// Fills a floppy with clusters of `unit` bytes with the data set, and FFS's
/// formula with fragments of that size.
///
/// # Errors
/// Those of making and filling the volume, but for a lack of space.
pub fn measure(unit: u64) -> Result<Row> {
    let files = dataset();
    let fs = floppy(unit)?;
    let missing = fill(&fs, &files)?;
    let stat = call(|cx| fs.statfs(cx))?;
    let lacking: u64 = missing.iter().map(|len| ceil(*len, unit)).sum();
    let used = stat.size - stat.free + lacking;
    let entries: u64 = (0..DIRS.len())
        .map(|dir| (2 + entries_in(dir, &files)) * 32)
        .sum();
    Ok(Row {
        unit,
        waste: used - DATA_BYTES - entries,
        ffs_free: ffs_free(unit, &files),
        dosfs_free: if lacking == 0 {
            stat.free as i64
        } else {
            -(lacking as i64)
        },
    })
}

/// Returns a floppy as the paper's: one FAT, 224 root entries.
fn floppy(unit: u64) -> Result<Fs> {
    let dev = Arc::new(MemDevice::new(FLOPPY));
    let how = Make {
        options: Options::parse(&format!("floppy=1440k,fats=1,cluster={unit}")),
        ..Make::default()
    };
    let format = volary::format_of("fat12")?;
    format.make(dev.clone(), "fat12", &how)?;
    Ok(format.attach(dev, &Attach::default())?)
}

fn call<R>(f: impl FnOnce(&Ctx<'_>) -> R) -> R {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    f(&Ctx {
        cred: &cred,
        now: Time::from_secs(750_000_000),
        cancel: &cancel,
    })
}

fn name(text: &str) -> Result<Name<'_>> {
    Name::new(text.as_bytes())
        .ok()
        .context("a name of the data set is none")
}

/// Unpacks the data set; gives the sizes of the files that did not fit.
fn fill(fs: &Fs, files: &[File]) -> Result<Vec<u64>> {
    let mut dirs: Vec<NodeId> = Vec::new();
    for path in DIRS {
        let (parent, last) = match path.split_once('/') {
            Some((parent, last)) => (dir_of(&dirs, parent)?, last),
            None => (fs.root(), path),
        };
        let made = call(|cx| {
            fs.mkdir(cx, parent, name(last)?, &SetAttr::default())
                .map_err(anyhow::Error::from)
        })?;
        dirs.push(made.node);
    }
    let mut missing = Vec::new();
    for file in files {
        let dir = *dirs
            .get(file.dir)
            .context("a directory of the data set is missing")?;
        if !put(fs, dir, file)? {
            missing.push(file.len);
        }
    }
    Ok(missing)
}

fn dir_of(dirs: &[NodeId], path: &str) -> Result<NodeId> {
    let at = DIRS.iter().position(|d| *d == path);
    at.and_then(|i| dirs.get(i))
        .copied()
        .context("a directory of the data set is missing")
}

/// Writes one file; false, and nothing left of it, if it does not fit.
fn put(fs: &Fs, dir: NodeId, file: &File) -> Result<bool> {
    call(|cx| {
        let at = name(&file.name)?;
        let (_, open) = fs.create(cx, dir, at, Create::New, &SetAttr::default())?;
        let written = fs.write(cx, open, Some(0), &vec![b'x'; file.len as usize]);
        fs.close(cx, open)?;
        match written {
            Ok(_) => Ok(true),
            Err(e) if e == Kind::NoSpace => {
                fs.unlink(cx, dir, at)?;
                Ok(false)
            }
            Err(e) => Err(e.into()),
        }
    })
}

/// Files and directories in a directory.
fn entries_in(dir: usize, files: &[File]) -> u64 {
    let inside = |path: &&&str| path.split_once('/').map(|p| p.0) == DIRS.get(dir).copied();
    let dirs = DIRS.iter().filter(inside).count();
    (dirs + files.iter().filter(|f| f.dir == dir).count()) as u64
}

/// Returns the floppy less the fixed cost, and each file and directory in fragments.
fn ffs_free(fragment: u64, files: &[File]) -> i64 {
    let content: u64 = files.iter().map(|f| ceil(f.len, fragment)).sum();
    let dirs: u64 = (0..DIRS.len())
        .map(|dir| {
            let n = entries_in(dir, files) + 2;
            (ffs_dir(n, fragment, 9) * n as f64).round() as u64
        })
        .sum();
    FLOPPY as i64 - (FFS_FIXED_FLOPPY + content + dirs) as i64
}

/// Returns the table.
///
/// # Errors
/// Those of [`measure`].
pub(super) fn table() -> Result<Table> {
    let columns = [
        "waste",
        "FFS free",
        "DosFs free",
        "DosFs more, %",
        "FFS cost, %",
        "DosFs cost, %",
    ];
    let title = "Table 2: 194 files, 7 directories, 978,634 bytes on a floppy of 1,474,560 (KB)";
    let mut table = Table::new(title, "allocation", &columns);
    for (unit, waste, ffs, dosfs) in PAPER {
        let row = measure(unit)?;
        let kb = |n: i64| n as f64 / 1024.0;
        let both = |ours: i64, paper: i64| Cell::new(paper as f64, kb(ours));
        // What does not fit has no share.
        let more =
            |ffs: i64, dosfs: i64| (ffs > 0).then(|| (dosfs - ffs) as f64 * 100.0 / ffs as f64);
        let cost = |free: i64| {
            let used = (FLOPPY as i64 - free) as f64;
            Cell::ours((used / DATA_BYTES as f64 - 1.0) * 100.0)
        };
        let difference = Cell {
            paper: more(ffs, dosfs),
            ours: more(row.ffs_free, row.dosfs_free),
            is_claimed: false,
        };
        let cells = vec![
            both(row.waste as i64, waste),
            both(row.ffs_free, ffs),
            both(row.dosfs_free, dosfs),
            difference,
            cost(row.ffs_free),
            cost(row.dosfs_free),
        ];
        table.row(unit.to_string(), cells);
    }
    table.note("The FAT volumes are real; FFS is the paper's formula. The sizes of the files are ours, the paper does not give them.");
    table.note(
        "Cost: bytes of the disk used, over the bytes of the data set. The paper has 16 to 36 for FFS, 6 to 23 for DosFs (512 to 2048).",
    );
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_volumes_come_near_to_the_paper() {
        for (unit, waste, ffs, dosfs) in PAPER {
            let row = measure(unit).unwrap();
            let near = |ours: i64, paper: i64| (ours / 1024 - paper).abs() <= 25;
            assert!(near(row.waste as i64, waste), "{row:?}");
            assert!(near(row.ffs_free, ffs), "{row:?}");
            assert!(near(row.dosfs_free, dosfs), "{row:?}");
            assert!(row.dosfs_free > row.ffs_free, "{row:?}");
        }
    }

    #[test]
    fn what_is_free_and_what_is_used_is_the_floppy() {
        let row = measure(512).unwrap();
        let meta = FLOPPY as i64 - row.dosfs_free - row.waste as i64 - DATA_BYTES as i64;
        // Boot sector, a FAT of 9 sectors, 224 root entries, and the directories' entries.
        let entries: u64 = (0..7).map(|d| (2 + entries_in(d, &dataset())) * 32).sum();
        assert_eq!(meta, 512 + 9 * 512 + 7168 + entries as i64);
    }

    #[test]
    fn the_table_has_a_share_only_of_what_fits() {
        let rows = table().unwrap().rows;
        assert_eq!(rows[0].cells[2].paper, Some(422.0));
        let share = rows[0].cells[3];
        assert!((share.paper.unwrap() - 29.0).abs() < 1.0 && share.ours.is_some());
        assert_eq!(rows[3].cells[3], Cell::default());
    }
}
