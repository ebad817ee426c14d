//! Table 1: the space that block sizes waste, measured on volumes that volary makes and fills.

use super::volume::{Kind, Volume, length};
use crate::paper::table::{Cell, Table};
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Files of the synthetic distribution.
const FILES: u32 = 2000;
/// Most files of one volume: the old file system has inode numbers of 16 bits.
const EACH: usize = 50_000;

/// How files are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One after the other.
    Packed,
    /// Each from a border of so many bytes on.
    Aligned(u64),
    /// The file system of the time before, with blocks of so many bytes.
    Old(u64),
    /// FFS with blocks and fragments of so many bytes.
    Fast(u64, u64),
}

/// A line of the table: what it is called, and how much the paper says is wasted, in percent of
/// the data. Of its own organisation it says in words that fragments of 1024 and 512 bytes waste
/// "about the same" as blocks of that size did.
pub const TABLE: [(Layout, Option<f64>); 11] = [
    (Layout::Packed, Some(0.0)),
    (Layout::Aligned(512), Some(4.2)),
    (Layout::Old(512), Some(6.9)),
    (Layout::Old(1024), Some(11.8)),
    (Layout::Old(2048), Some(22.4)),
    (Layout::Old(4096), Some(45.6)),
    (Layout::Fast(4096, 512), Some(6.9)),
    (Layout::Fast(4096, 1024), Some(11.8)),
    (Layout::Fast(8192, 1024), None),
    (Layout::Fast(16_384, 2048), None),
    (Layout::Fast(32_768, 4096), None),
];

impl Layout {
    fn words(self) -> String {
        match self {
            Self::Packed => "data only, no separation between files".into(),
            Self::Aligned(unit) => format!("data only, each file starts on {unit} byte boundary"),
            Self::Old(block) => format!("data + inodes, {block} byte block UNIX file system"),
            Self::Fast(block, fragment) => format!("data + inodes, FFS {block}/{fragment}"),
        }
    }

    /// Returns bytes that a file of `len` bytes takes.
    pub fn used(self, len: u64) -> u64 {
        let up = |unit: u64| len.div_ceil(unit) * unit;
        match self {
            Self::Packed => len,
            Self::Aligned(unit) => up(unit),
            Self::Old(block) => up(block) + indirect(len, block, 10) * block + 64,
            Self::Fast(block, fragment) => {
                // Only a file without indirect blocks ends in fragments.
                let unit = if len > 12 * block { block } else { fragment };
                up(unit) + indirect(len, block, 12) * block + 128
            }
        }
    }

    /// Returns bytes of an inode.
    fn inode(self) -> u64 {
        match self {
            Self::Packed | Self::Aligned(_) => 0,
            Self::Old(_) => 64,
            Self::Fast(..) => 128,
        }
    }

    /// Returns bytes that files of these lengths take on volumes that are made for them and filled: what `df` counts, and
    /// their inodes. `None` where volary makes no such volume.
    ///
    /// # Errors
    /// Of a volume.
    pub fn measured(self, files: &[u64]) -> Result<Option<u64>> {
        let mut all = 0;
        for files in files.chunks(EACH) {
            let count = files.len() as u64;
            let computed: u64 = files.iter().map(|&len| self.used(len)).sum();
            // Room for inodes and directories, and for what is never given away.
            let size = (computed / 4 * 5 + count * 1024 + (16 << 20)).next_multiple_of(1 << 20);
            let (format, block, options) = match self {
                Self::Old(512) => ("v7", 512, format!("inodes={}", count + 1000)),
                Self::Old(block @ (1024 | 2048)) => (
                    "sysv",
                    block,
                    format!("block={block},inodes={}", count + 1000),
                ),
                Self::Fast(block, fragment) => {
                    let density = (size / (count + 2000)).next_power_of_two() / 2;
                    let density = density.max(fragment);
                    (
                        "ffs1",
                        block,
                        format!("block={block},fragment={fragment},density={density}"),
                    )
                }
                _ => return Ok(None),
            };
            let kind = Kind {
                format,
                options: &options,
                size,
                block,
            };
            all += Volume::make(&kind)?.used_by(files)? + count * self.inode();
        }
        Ok(Some(all))
    }
}

/// Returns indirect blocks of a file, with `direct` pointers in the inode and others of four bytes.
fn indirect(len: u64, block: u64, direct: u64) -> u64 {
    let each = block / 4;
    let mut rest = len.div_ceil(block).saturating_sub(direct);
    let (mut all, mut span) = (0, each);
    while rest > 0 {
        let here = rest.min(span);
        let mut level = here;
        let mut below = span;
        while below > 1 {
            level = level.div_ceil(each);
            all += level;
            below /= each;
        }
        rest -= here;
        span = span.saturating_mul(each);
    }
    all
}

/// Returns lengths of the files below a directory of the host; those with several names once. What cannot
/// be looked at is passed over.
///
/// # Errors
/// If the directory itself cannot be listed, or holds no bytes.
pub fn lengths(tree: &Path) -> Result<Vec<u64>> {
    let (mut files, mut known) = (Vec::new(), HashSet::new());
    let first = fs::read_dir(tree).with_context(|| tree.display().to_string())?;
    let mut todo = vec![first];
    while let Some(dir) = todo.pop() {
        for entry in dir.flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                todo.extend(fs::read_dir(entry.path()));
            } else if meta.is_file() && known.insert((meta.dev(), meta.ino())) {
                files.push(meta.len());
            }
        }
    }
    let bytes: u64 = files.iter().sum();
    anyhow::ensure!(bytes > 0, "{} holds no files", tree.display());
    Ok(files)
}

/// Returns lengths that are distributed as those of the paper's users seem to have been.
pub fn synthetic() -> Vec<u64> {
    let part = |i: u32| (f64::from(i) + 0.5) / f64::from(FILES);
    (0..FILES).map(|i| length(part(i))).collect()
}

/// Returns what files waste, in percent of their data.
fn percent(used: u64, data: u64) -> f64 {
    (used as f64 - data as f64) * 100.0 / data.max(1) as f64
}

/// Makes the table of a tree, or of lengths distributed as the paper's.
///
/// # Errors
/// As [`lengths`]; of volumes.
pub fn table1(tree: Option<&Path>) -> Result<Table> {
    let (files, of) = match tree {
        Some(tree) => (lengths(tree)?, tree.display().to_string()),
        None => (synthetic(), "a distribution that fits the paper's".into()),
    };
    let data: u64 = files.iter().sum();
    let title = format!(
        "Table 1: space that {} files of {} bytes on the average waste on volumes that were filled with them, of\n{of}",
        files.len(),
        data / files.len() as u64,
    );
    let columns = ["space used, MiB", "% waste", "by formula"];
    let mut table = Table::new(title, "organization", &columns);
    for (layout, paper) in TABLE {
        let computed: u64 = files.iter().map(|&len| layout.used(len)).sum();
        let measured = layout.measured(&files)?;
        let used = measured.unwrap_or(computed);
        let mark = if measured.is_some() { "" } else { " *" };
        let waste = Cell {
            paper,
            ..Cell::ours(percent(used, data))
        };
        let mib = used as f64 / f64::from(1 << 20);
        let cells = vec![Cell::ours(mib), waste, Cell::ours(percent(computed, data))];
        table.row(format!("{}{mark}", layout.words()), cells);
    }
    table.note(NOTES);
    Ok(table)
}

/// What stands below the table.
const NOTES: &str = "\
* By formula: no file system, or one that volary does not make (old ones have blocks of 512 to 2048 bytes).
Old file systems: v7 with blocks of 512 bytes, sysv with longer ones; FFS: ffs1. Counted: blocks that statfs says are
taken, indirect ones too, and an inode for each file (64 bytes, FFS 128). Not counted: directories, the free-space reserve.
Of FFS the paper says that fragments of 512 and 1024 bytes waste about as much as blocks of that size did.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::table::Row;

    #[test]
    fn the_waste_comes_near_to_the_paper() {
        let files = synthetic();
        let data: u64 = files.iter().sum();
        let waste = |layout: Layout| {
            let computed = files.iter().map(|&len| layout.used(len)).sum();
            percent(computed, data)
        };
        for (layout, paper) in TABLE {
            if let Some(paper) = paper {
                let ours = waste(layout);
                assert!((ours - paper).abs() <= 1.6, "{layout:?}: {ours} ({paper})");
            }
        }
        // Large blocks cost no more than their fragments.
        let (fast, old) = (Layout::Fast(4096, 512), Layout::Old(4096));
        assert!(waste(fast) * 5.0 < waste(old));
    }

    #[test]
    fn indirect_blocks_are_counted() {
        assert_eq!(indirect(12 * 4096, 4096, 12), 0);
        assert_eq!(indirect(12 * 4096 + 1, 4096, 12), 1);
        assert_eq!(indirect((12 + 1024) * 4096, 4096, 12), 1);
        assert_eq!(indirect((12 + 1024) * 4096 + 1, 4096, 12), 3);
        assert_eq!(indirect((12 + 1024 + 1025) * 4096, 4096, 12), 4);
    }

    /// Each figure of the table without a tree; what volumes use is what the formula says.
    #[test]
    fn the_table_is_the_same_at_each_run() {
        let table = table1(None).expect("a table");
        let figure = |cell: &Cell| {
            cell.ours
                .map_or(String::new(), |ours| format!(" {ours:.1}"))
        };
        let line = |row: &Row| {
            let figures: String = row.cells.iter().map(figure).collect();
            format!("{}:{figures}", row.name)
        };
        let lines: Vec<String> = table.rows.iter().map(line).collect();
        assert_eq!(lines, HELD);
        let files = synthetic();
        for layout in [Layout::Old(512), Layout::Old(2048), Layout::Fast(4096, 512)] {
            let computed: u64 = files.iter().map(|&len| layout.used(len)).sum();
            assert_eq!(layout.measured(&files).expect("a volume"), Some(computed));
        }
    }

    const HELD: [&str; 11] = [
        "data only, no separation between files *: 11.1 0.0 0.0",
        "data only, each file starts on 512 byte boundary *: 11.6 4.4 4.4",
        "data + inodes, 512 byte block UNIX file system: 11.9 7.7 7.7",
        "data + inodes, 1024 byte block UNIX file system: 12.4 12.0 12.0",
        "data + inodes, 2048 byte block UNIX file system: 13.5 21.9 21.9",
        "data + inodes, 4096 byte block UNIX file system *: 16.2 45.8 45.8",
        "data + inodes, FFS 4096/512: 12.0 8.1 8.1",
        "data + inodes, FFS 4096/1024: 12.5 12.7 12.7",
        "data + inodes, FFS 8192/1024: 12.5 12.5 12.5",
        "data + inodes, FFS 16384/2048: 13.6 22.3 22.3",
        "data + inodes, FFS 32768/4096: 16.2 46.5 46.5",
    ];

    #[test]
    fn the_table_of_a_tree_is_of_its_files() {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/paper");
        let table = table1(Some(&tree)).expect("a table");
        assert!(table.title.contains("src/paper"), "{}", table.title);
        assert!(table1(Some(&tree.join("none"))).is_err());
    }
}
