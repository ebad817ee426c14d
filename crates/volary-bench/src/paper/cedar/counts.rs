//! Tables 3 and 4: requests to the disk.

use super::bsd::Bsd;
use super::rival::{APART, Cfs, Fsd, Rival, SMALL};
use crate::paper::table::{Cell, Table};
use anyhow::{Result, ensure};
use volary_sim::Preset;
use volary_sim::rng::Rng;

/// Small files in the tables.
const FILES: usize = 100;
/// Small files that are made before: the log has gone round then.
const BEFORE: usize = 1000;
/// How many hundreds are made; the mean counts, as a third of the log is entered now and then.
const SETS: usize = 4;

/// What a file system took for a hundred small creates, a list of a hundred files, the same list again, reads of a
/// hundred, and MakeDo.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Took {
    creates: f64,
    list: f64,
    again: f64,
    read: f64,
    makedo: f64,
}

/// The counts of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counts {
    cfs: Took,
    fsd: Took,
    bsd: Took,
}

/// Takes the counts of a new volume.
fn small_files(on: &mut dyn Rival) -> Result<Took> {
    let name = |set: usize, i: usize| format!("set{set}>Small{i:03}.bcd");
    for i in 0..BEFORE {
        on.create(&format!("before{}>Small{i:04}.bcd", i / 250), SMALL)?;
        on.wait(APART)?;
    }
    for set in 0..SETS {
        // Makes the directory, where there are such.
        on.create(&format!("set{set}>First.bcd"), SMALL)?;
        on.delete(&format!("set{set}>First.bcd"))?;
        on.wait(APART)?;
    }
    on.wait(60_000)?;
    let before = on.done();
    for set in 0..SETS {
        for i in 0..FILES {
            on.create(&name(set, i), SMALL)?;
            on.wait(APART)?;
        }
    }
    on.wait(60_000)?;
    let creates = on.done().since(before).all();
    on.again()?;
    let before = on.done();
    ensure!(on.list("set1")? == FILES, "a list that is too short");
    let list = on.done().since(before).all();
    let before = on.done();
    on.list("set1")?;
    let again = on.done().since(before).all();
    on.again()?;
    let before = on.done();
    // No two of them lie together.
    for i in (0..SETS * FILES).step_by(SETS) {
        let name = name(i / FILES, i % FILES);
        ensure!(on.read(&name)? == SMALL, "a file that is too short");
    }
    let read = on.done().since(before).all();
    Ok(Took {
        creates: creates as f64 / SETS as f64,
        list: list as f64,
        again: again as f64,
        read: read as f64,
        makedo: 0.0,
    })
}

/// Modules of the program that MakeDo makes, and interfaces that these import.
const MODULES: usize = 40;
const INTERFACES: usize = 60;
/// Interfaces that a module imports.
const IMPORTS: usize = 8;
/// Bytes of a source, an object, and an interface, on the average.
const SOURCE: u64 = 12_000;
const OBJECT: u64 = 8_000;
const INTERFACE: u64 = 6_000;

/// Makes a program anew, as MakeDo has it made: it looks at the dates of all files, and then has each module compiled. The
/// compiler reads the source and what it imports, and writes the next version of the object. Returns the requests.
fn makedo(on: &mut dyn Rival) -> Result<u64> {
    let mut rng = Rng::new(3);
    let mut len = |mean: u64| (mean / 2 + rng.below(mean)) as usize;
    let source = |i: usize| format!("make>Module{i:02}.mesa");
    let object = |i: usize| format!("make>Module{i:02}.bcd");
    let interface = |i: usize| format!("make>Interface{i:02}.bcd");
    let mut objects = Vec::new();
    for i in 0..MODULES {
        on.create(&source(i), len(SOURCE))?;
        objects.push(len(OBJECT));
        on.create(&object(i), objects[i])?;
    }
    for i in 0..INTERFACES {
        on.create(&interface(i), len(INTERFACE))?;
    }
    on.wait(60_000)?;
    on.again()?;
    let before = on.done();
    for i in 0..MODULES {
        on.look(&source(i))?;
        on.look(&object(i))?;
    }
    for i in 0..INTERFACES {
        on.look(&interface(i))?;
    }
    for (i, len) in objects.into_iter().enumerate() {
        on.forget()?;
        on.read(&source(i))?;
        for import in 0..IMPORTS {
            on.read(&interface((i * 7 + import * 13) % INTERFACES))?;
        }
        on.replace(&object(i), len)?;
        // A compilation takes longer than a commit.
        on.wait(1000)?;
    }
    on.wait(60_000)?;
    Ok(on.done().since(before).all())
}

const NOTES3: &str = "\
Small files of one page, made one each 70 ms; the mean of four hundreds after a thousand others. Each list and read
begins with nothing in memory; of 400 files each fourth is read. CFS: pages of the name table have two sectors, each
transferred by itself (\"a partial write could corrupt a name table page\"), and 256 are kept; names have some 30 bytes.
A quarter of our FSD's creates reads the block of 4 KiB in which the page lies: the driver's cache does that.
MakeDo is assumed: the dates of 40 sources, 40 objects and 60 interfaces are looked at; then for each module the source (12 KB on
the average) and eight interfaces (6 KB) are read, and the object (8 KB) is replaced. No content is kept in memory. It was
chosen in three steps, the others with ratios of 3.1 and 1.48: that of MakeDo is no test of the model.
! list: with nothing in memory our FSD reads the table's pages at five places, 64 at a time, each from both copies; with
all in memory it reads nothing. The paper does not say how much of the table was in its cache: with 3 I/Os, an odd
number, not all were of pages of the table, which are read twice.";

const NOTES4: &str = "\
4.3BSD: volary's driver of FFS, with the kernel's rules: a new inode and its directory's sector are written at once, all
other blocks when update runs each 30 s; blocks of 8 KiB are read one by one, what is not in its cache.
! list: ours are the blocks of the root and of the directory, and two of inodes; the paper's 9 are all that `time`
counts, which is also what the listing program itself reads. FSD: see Table 3.";

impl Counts {
    /// Takes them on new volumes.
    ///
    /// # Errors
    /// Of the volumes.
    pub(super) fn take() -> Result<Self> {
        let all = |on: &mut dyn Rival| -> Result<Took> {
            let small = small_files(on)?;
            let makedo = makedo(on)? as f64;
            Ok(Took { makedo, ..small })
        };
        Ok(Self {
            cfs: all(&mut Cfs::new()?)?,
            fsd: all(&mut Fsd::new(&Preset::T300, "")?)?,
            bsd: small_files(&mut Bsd::new()?)?,
        })
    }

    /// Returns Table 3.
    pub(super) fn table3(&self) -> Table {
        let mut table = Table::new(
            "Table 3: CFS to FSD in disk I/Os",
            "I/Os",
            &["CFS", "FSD", "CFS / FSD"],
        );
        let (cfs, fsd) = (self.cfs, self.fsd);
        for (name, of) in [
            (
                "100 small creates",
                [(874.0, cfs.creates), (149.0, fsd.creates)],
            ),
            ("list 100 files", [(146.0, cfs.list), (3.0, fsd.list)]),
            (
                "read 100 small files",
                [(262.0, cfs.read), (101.0, fsd.read)],
            ),
            ("MakeDo", [(1975.0, cfs.makedo), (1299.0, fsd.makedo)]),
        ] {
            table.row(name, compared(of));
        }
        table.row(
            "list them again",
            vec![Cell::ours(cfs.again), Cell::ours(fsd.again)],
        );
        table.note(NOTES3);
        table
    }

    /// Returns Table 4.
    pub(super) fn table4(&self) -> Table {
        let mut table = Table::new(
            "Table 4: FSD and 4.3BSD in disk I/Os",
            "I/Os",
            &["4.3BSD", "FSD", "4.3BSD / FSD"],
        );
        let (bsd, fsd) = (self.bsd, self.fsd);
        for (name, of) in [
            (
                "100 small creates",
                [(308.0, bsd.creates), (149.0, fsd.creates)],
            ),
            ("list 100 files", [(9.0, bsd.list), (3.0, fsd.list)]),
            (
                "read 100 small files",
                [(106.0, bsd.read), (101.0, fsd.read)],
            ),
        ] {
            table.row(name, compared(of));
        }
        table.row(
            "list them again",
            vec![Cell::ours(bsd.again), Cell::ours(fsd.again)],
        );
        table.note(NOTES4);
        table
    }
}

/// Returns three cells with the paper's figure and ours: of one system, of the other, and of the first by the second.
fn compared([a, b]: [(f64, f64); 2]) -> Vec<Cell> {
    let cell = |(paper, ours)| Cell::claimed(paper, ours);
    vec![cell(a), cell(b), cell((a.0 / b.0, a.1 / b.1))]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of bench/README.md. But for lists, all are within a quarter of the paper's.
    #[test]
    fn creates_reads_and_makedo_take_as_many_requests_as_in_the_paper() {
        let counts = Counts::take().unwrap();
        let ours = |table: &Table| -> Vec<Vec<f64>> {
            let cells = table.rows.iter().map(|row| row.cells[..2].iter());
            cells
                .map(|cells| cells.filter_map(|cell| cell.ours).collect())
                .collect()
        };
        let (three, four) = (counts.table3(), counts.table4());
        assert_eq!(
            ours(&three),
            [
                [849.5, 162.25],
                [120.0, 10.0],
                [268.0, 115.0],
                [1891.0, 1242.0],
                [100.0, 0.0]
            ]
        );
        let listed = [[4.0, 10.0], [113.0, 115.0], [0.0, 0.0]];
        assert_eq!(ours(&four), [&[[305.0, 162.25]], &listed[..]].concat());
        // Those of lists again have nothing to compare with.
        for row in three.rows.iter().chain(&four.rows) {
            let is_far = row.cells.iter().any(Cell::is_far);
            assert_eq!(is_far, row.name == "list 100 files", "{row:?}");
        }
    }
}
