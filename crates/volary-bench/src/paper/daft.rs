//! The tables and figures of Guo and Chiueh, "DAFT: Disk Geometry-Aware File System Traversal".
//!
//! Volary's engine for bulk reads does each run: lists, sorts, merges, cleans. The volumes lie as the paper says, or
//! after use, and their requests take the time of models of the paper's two disks. What the paper does not give is
//! assumed, and printed below the tables.

mod aged;
mod laid;
mod layout;
mod run;

use super::on;
use super::table::{Cell, FigureKind, Table};
use anyhow::{Result, bail};
use laid::{BYTE, FILE, REQUEST, TOGETHER};
use layout::Layout;
use run::{How, run};
use std::sync::Arc;
use volary::bulk::{Cleaning, Method};
use volary_sim::Preset;

/// The tables' names. `fig2` is Figure 2, `memory` what section II.C says of little memory.
pub const TABLES: [&str; 5] = ["2", "3", "4", "fig2", "memory"];

/// Those that have times.
pub const TIMED: [&str; 4] = ["2", "4", "fig2", "memory"];

/// The paper's disks.
const DISKS: [Disk; 2] = [
    Disk {
        name: "fast disk",
        preset: Preset::ST373455LW,
        table_ii: Some(TABLE_II[0]),
        table_iv: Some(TABLE_IV[0]),
    },
    Disk {
        name: "slow disk",
        preset: Preset::DIAMONDMAX,
        table_ii: Some(TABLE_II[1]),
        table_iv: Some(TABLE_IV[1]),
    },
];
const METHODS: [Method; 3] = [Method::Vanilla, Method::DaftNm, Method::DaftM];
/// KiB of the files of the synthetic volume.
const SIZES: [u64; 3] = [4, 16, 64];
/// The paper's factors.
const TABLE_II: [[f64; 3]; 2] = [[15.5, 5.5, 2.1], [6.2, 3.9, 2.1]];
/// KiB of the longest files that are read of the volume in use.
const LIMITS: [u64; 3] = [128, 512, 1024];
const TABLE_IV: [[f64; 3]; 2] = [[6.7, 5.3, 4.4], [7.0, 5.7, 4.3]];
/// Percent of the files, fragments of each, and memory in MB, for these limits.
const TABLE_III: [[f64; 3]; 3] = [[87.9, 95.1, 97.3], [1.11, 1.21, 1.28], [84.0, 387.0, 718.0]];
/// Of the synthetic volume, directories that are read in a row, of so many: the others would take as long.
const READ: (u64, u64) = (10, 200);
const SEED: u64 = 1;
const KIB: u64 = 1 << 10;

/// A disk, and the paper's figures for it: of Tables II and IV.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Disk {
    name: &'static str,
    preset: Preset,
    table_ii: Option<[f64; 3]>,
    table_iv: Option<[f64; 3]>,
}

impl Disk {
    /// Returns a disk that the paper does not have.
    fn other(preset: Preset) -> Self {
        Self {
            name: preset.name,
            preset,
            table_ii: None,
            table_iv: None,
        }
    }
}

/// Returns the cell of a column beside the paper's figures, if it has any.
fn cell(papers: Option<[f64; 3]>, column: usize, ours: f64) -> Cell {
    let paper = papers.and_then(|all| all.get(column).copied());
    paper.map_or_else(|| Cell::ours(ours), |paper| Cell::claimed(paper, ours))
}

/// Rates in MB/s: for each disk, and for each of [`SIZES`], of Vanilla, DAFTNM and DAFTM.
#[derive(Clone, Debug, PartialEq)]
struct Rates(Vec<(Disk, [[f64; 3]; 3])>);

impl Rates {
    /// Measures all on these disks. The same at each run.
    ///
    /// # Errors
    /// If not all files were read.
    fn take(disks: &[Disk]) -> Result<Self> {
        let mut all: Vec<_> = disks.iter().map(|disk| (*disk, [[0.0; 3]; 3])).collect();
        for (number, kib) in SIZES.iter().enumerate() {
            let layout = Arc::new(layout::fresh(kib * KIB, READ.0, READ.1));
            let bytes: u64 = layout.files.iter().map(|file| file.len).sum();
            for (disk, sizes) in &mut all {
                let rates = sizes.get_mut(number).into_iter().flatten();
                for (rate, method) in rates.zip(METHODS) {
                    let (seconds, _) = run(&layout, &disk.preset, How::new(method, u64::MAX))?;
                    *rate = bytes as f64 / 1e6 / seconds;
                }
            }
        }
        Ok(Self(all))
    }

    fn table2(&self) -> Table {
        let columns = SIZES.map(|kib| format!("{kib} KiB"));
        let columns = columns.each_ref().map(String::as_str);
        let mut table = Table::new(
            "Table II: DAFTM, times as fast as Vanilla, on a volume that is not fragmented",
            "",
            &columns,
        );
        for (disk, sizes) in &self.0 {
            let rates = sizes.iter().enumerate();
            let cells =
                rates.map(|(size, [vanilla, _, daftm])| cell(disk.table_ii, size, daftm / vanilla));
            table.row(disk.name, cells.collect());
        }
        table.note(assumed());
        table.note(FAR_II);
        table
    }

    fn figure2(&self) -> Table {
        let mut table = Table::new(
            "Figure 2: rates on a volume that is not fragmented",
            "MB/s",
            &["Vanilla", "DAFTNM", "DAFTM"],
        );
        for (disk, sizes) in &self.0 {
            for (kib, rates) in SIZES.iter().zip(sizes) {
                let cells = rates.map(Cell::ours);
                table.row(format!("{}, {kib} KiB", disk.name), cells.to_vec());
            }
        }
        table.note(FIGURE);
        table.drawn_as("daft-figure-2", FigureKind::Bars)
    }
}

fn assumed() -> String {
    format!(
        "Chosen by the six figures of Table II together: {FILE} us of the processor's for each file that is opened, read and \
         closed in Vanilla, {} ns for\neach of its bytes, and {TOGETHER} records of the MFT a read. Assumed: {REQUEST} us for \
         each request of DAFT; the disks' settling, commands, bus of the\nslow one, and 512 KiB read ahead. Gap and size of \
         requests are the engine's, which probes the disk.",
        BYTE * 1000.0
    )
}

const FAR_II: &str = "\
! Slow disk, 4 KiB: at its full rate, 56 MB/s, 6.2 leaves 9 MB/s to Vanilla; on the fast disk 15.5 leaves it 8.3. So the
paper's Vanilla did not wait for either disk. The model's waits for the slow one: it goes to the MFT and back for each 64 files.";

const FIGURE: &str = "\
The text at hand has the figure's axes, not its bars. What it says of them holds: DAFTM comes close to the disk's own rate
(76 to 128 MB/s, 30 to 56) whatever the size; DAFTNM is between it and Vanilla.";

/// The volume in use.
struct Used {
    layout: Arc<Layout>,
    done: aged::Use,
}

impl Used {
    fn new(files: usize) -> Self {
        let (layout, done) = aged::aged(SEED, files);
        Self {
            layout: Arc::new(layout),
            done,
        }
    }

    fn assumed(&self) -> String {
        format!(
            "Assumed: {} files in directories of 15, filled one after the other; then files anywhere are replaced, four of \
             which are written at a\ntime by 64 KiB, and for each four of them one is appended to, until files up to 1 MiB \
             have the paper's {} fragments:\n{} were replaced and {} appended to (seed {SEED}). Free room is taken from the \
             last place on, where all of it fits. Appends, pieces\nand writers were chosen among nine settings, so that the other two figures of fragments come out.",
            self.layout.files.len(),
            aged::FRAGMENTS,
            self.done.replaced,
            self.done.appended
        )
    }

    fn table3(&self) -> Table {
        let columns = LIMITS.map(|kib| format!("up to {kib} KiB"));
        let columns = columns.each_ref().map(String::as_str);
        let mut table = Table::new("Table III: the volume in use", "", &columns);
        let layout = &self.layout;
        let all = layout.files.len() as f64;
        let percent = |limit| layout.up_to(limit).count() as f64 * 100.0 / all;
        let memory = |limit| layout.memory(limit) as f64 / 1e6;
        let ours: [(&str, &dyn Fn(u64) -> f64); 3] = [
            ("percent of files", &percent),
            ("fragments of a file", &|limit| layout.fragments(limit)),
            ("memory for all, MB", &memory),
        ];
        for ((name, ours), papers) in ours.into_iter().zip(TABLE_III) {
            let cells = papers.into_iter().zip(LIMITS);
            let cells = cells.map(|(paper, kib)| Cell::claimed(paper, ours(kib * KIB)));
            table.row(name, cells.collect());
        }
        table.note(self.assumed());
        table.note(FAR_III);
        table
    }

    /// Returns how many times as fast as Vanilla DAFTM is on a disk, with files up to a limit.
    fn factor(&self, disk: &Preset, limit: u64) -> Result<f64> {
        let [vanilla, daftm] = [Method::Vanilla, Method::DaftM]
            .map(|method| run(&self.layout, disk, How::new(method, limit)));
        Ok(vanilla?.0 / daftm?.0)
    }

    fn table4(&self, disks: &[Disk]) -> Result<Table> {
        let columns = LIMITS.map(|kib| format!("up to {kib} KiB"));
        let columns = columns.each_ref().map(String::as_str);
        let title = "Table IV: DAFTM, times as fast as Vanilla, on the volume in use";
        let mut table = Table::new(title, "", &columns);
        for disk in disks {
            let mut cells = Vec::new();
            for (column, kib) in LIMITS.iter().enumerate() {
                cells.push(cell(
                    disk.table_iv,
                    column,
                    self.factor(&disk.preset, kib * KIB)?,
                ));
            }
            table.row(disk.name, cells);
        }
        table.note(self.assumed());
        table.note(assumed());
        table.note(self.far()?);
        Ok(table)
    }

    /// Says why the factor of the shortest files on the fast disk is far from the paper's.
    fn far(&self) -> Result<String> {
        let how = |method| How::new(method, LIMITS[0] * KIB);
        let preset = Preset::ST373455LW;
        let (vanilla, _) = run(&self.layout, &preset, how(Method::Vanilla))?;
        let (_, sum) = run(&self.layout, &preset, how(Method::DaftM))?;
        let mut disk = preset.disk();
        let records = layout::RECORD * self.layout.files.len() as u64;
        for at in (0..sum.bytes + records).step_by(1 << 20) {
            disk.read(at, 1 << 20);
        }
        Ok(format!(
            "! Fast disk, up to 128 KiB: these files lie among longer ones, which are left out: DAFTM reads {:.1} GB for {:.1}. Were \
             they all in a row, it\nwould be {:.0} times as fast. The paper does not say how its volume lay; 6.7 is between the two.",
            sum.read_bytes as f64 / 1e9,
            sum.bytes as f64 / 1e9,
            vanilla * 1e6 / disk.now()
        ))
    }

    /// Returns what little memory costs on a disk: section II.C.
    fn memory(&self, disk: &Disk, limit: u64) -> Result<Table> {
        let mut table = Table::new(
            "Section II.C: DAFTM with less memory than it would take",
            "times as long",
            &["on-demand cleaning", "first fit", "first fit / cleaning"],
        );
        let with = |memory, cleaning| {
            let how = How {
                memory,
                cleaning,
                ..How::new(Method::DaftM, limit)
            };
            run(&self.layout, &disk.preset, how)
        };
        let (all, sum) = with(1 << 32, Cleaning::OnDemand)?;
        for part in [2, 4, 8] {
            let memory = sum.peak / part;
            let (cleaned, _) = with(memory, Cleaning::OnDemand)?;
            let (fitted, _) = with(memory, Cleaning::FirstFit)?;
            let cells = [cleaned / all, fitted / all, fitted / cleaned].map(Cell::ours);
            table.row(format!("1/{part} of it"), cells.to_vec());
        }
        table.note(format!(
            "Files up to {} KiB of the volume in use, on the {}; all would take {} MB, with lists and reads. The paper has no \
             figures;\nit says that on-demand cleaning is faster than first fit.",
            limit / KIB,
            disk.name,
            sum.peak / 1_000_000
        ));
        table.note(self.assumed());
        Ok(table)
    }
}

const FAR_III: &str = "\
! Memory: it depends on how far apart a file's fragments are, of which the paper tells nothing. Here what is appended goes to
another part of the disk, and files up to 128 KiB are as often appended to as long ones.";

/// Bytes of the disk that the volumes take: those of a million files of 64 KiB, and of the volume in use.
const VOLUMES: u64 = 70_000_000_000;

/// Makes one of [`TABLES`], or all; those that have times on another disk than the paper's, if one is given. The same at
/// each run.
///
/// # Errors
/// Of a disk that is too small; if not all files were read; for a name that is none of them.
pub fn tables(which: Option<&str>, disk: Option<Preset>) -> Result<Vec<Table>> {
    let Some(disk) = disk else {
        return match which {
            Some(which) => tables_on(&DISKS, &[which]),
            None => tables_on(&DISKS, &TABLES),
        };
    };
    on::holds(&disk, VOLUMES)?;
    let tables = tables_on(&[Disk::other(disk)], &on::chosen(&TIMED, which))?;
    Ok(on::moved(tables, &disk))
}

fn tables_on(disks: &[Disk], wanted: &[&str]) -> Result<Vec<Table>> {
    let needs = |names: &[&str]| wanted.iter().any(|name| names.contains(name));
    let rates = needs(&["2", "fig2"]).then(|| Rates::take(disks));
    let rates = rates.transpose()?;
    let used = needs(&["3", "4", "memory"]).then(|| Used::new(aged::FILES));
    let mut all = Vec::new();
    for name in wanted {
        all.push(match (*name, &rates, &used) {
            ("2", Some(rates), _) => rates.table2(),
            ("fig2", Some(rates), _) => rates.figure2(),
            ("3", _, Some(used)) => used.table3(),
            ("4", _, Some(used)) => used.table4(disks)?,
            ("memory", _, Some(used)) => {
                let disk = disks.last().unwrap_or(&DISKS[1]);
                used.memory(disk, LIMITS[0] * KIB)?
            }
            _ => bail!("the paper daft has the tables {}", TABLES.join(", ")),
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::chart;

    fn ours(table: &Table) -> Vec<Vec<String>> {
        let printed = |cell: &Cell| cell.ours.map_or(String::new(), |x| format!("{x:.2}"));
        let rows = table.rows.iter();
        rows.map(|row| row.cells.iter().map(printed).collect())
            .collect()
    }

    fn far(table: &Table) -> usize {
        let cells = table.rows.iter().flat_map(|row| &row.cells);
        cells.filter(|cell| cell.is_far()).count()
    }

    /// The figures of bench/README.md. The paper: DAFTM delivers nearly the disk's rate, DAFTNM is between.
    #[test]
    fn factors_of_a_fresh_volume_are_near_the_papers_and_merging_gains() {
        let rates = Rates::take(&DISKS).unwrap();
        let table = rates.table2();
        assert_eq!(
            ours(&table),
            [["15.38", "5.45", "2.07"], ["9.20", "3.54", "1.62"]]
        );
        assert_eq!(far(&table), 1);
        for ((disk, sizes), inner) in rates.0.iter().zip([76.0, 30.0]) {
            for [vanilla, daftnm, daftm] in *sizes {
                let is_between = vanilla < daftnm && daftnm < daftm * 1.01;
                assert!(is_between && daftm > inner, "{disk:?} {sizes:?}");
            }
        }
        assert_eq!(rates.figure2().rows.len(), 6);
        let (_, svg) = chart::drawn(&rates.figure2()).unwrap();
        assert!(svg.matches("<rect").count() >= 18, "{svg}");
    }

    /// A tenth of the volume of Table IV, on which seeks are shorter.
    #[test]
    fn a_volume_in_use_is_read_several_times_as_fast_and_cleaning_beats_first_fit() {
        let used = Used::new(aged::FILES / 10);
        for (disk, printed) in DISKS.iter().zip([3.67, 3.60]) {
            let found = used.factor(&disk.preset, LIMITS[0] * KIB).unwrap();
            assert!((found / printed - 1.0).abs() < 0.01, "{found}");
        }
        let table = used.memory(&DISKS[1], LIMITS[0] * KIB).unwrap();
        for row in &table.rows {
            let cells: Vec<f64> = row.cells.iter().filter_map(|cell| cell.ours).collect();
            assert!(cells[0] >= 1.0 && cells[2] >= 1.0, "{row:?}");
        }
    }
}
