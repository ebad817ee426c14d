//! Figures 2–4 as tables.

use super::cost::{
    FAT16_ENTRY, FFS_FIXED_60MB, FFS_FIXED_FLOPPY, Ffs, dosfs_dir, dosfs_metadata, ffs_dir,
};
use crate::paper::table::{Cell, FigureKind, Table};

/// Fragment and cluster of the figures, in bytes.
const UNIT: u64 = 512;
/// Files in a directory in Figures 2 and 3.
const PER_DIR: u64 = 20;
/// Bytes in a name.
const NAME_LEN: u64 = 12;

/// FFS as in the figures, on 60 MB.
fn ffs(files: u64) -> Ffs {
    Ffs {
        fragment: UNIT,
        files_in_dir: PER_DIR,
        name_len: NAME_LEN,
        files,
        fixed: FFS_FIXED_60MB,
    }
}

/// Returns what FFS pays more than DosFs for each file, in bytes.
fn ffs_over_dosfs(len: u64, files: u64) -> f64 {
    ffs(files).metadata(len) - dosfs_metadata(len, UNIT, PER_DIR, FAT16_ENTRY)
}

/// A name, and what makes its table.
type Named = (&'static str, fn() -> Table);

/// The figures by name, and what comes before them.
pub(super) const FIGURES: [Named; 4] = [
    ("fixed", fixed),
    ("fig2", figure2),
    ("fig3", figure3),
    ("fig4", figure4),
];

fn fixed() -> Table {
    let title = "Paid before the first file (the paper's figures for FFS; ours for the FAT, the paper's beside them)";
    let mut table = Table::new(title, "", &["FFS, KB", "one FAT, KB"]);
    let kb = |n: u64| (n / 1024) as f64;
    let fat12 = (1440_u64 * 3).div_ceil(2).div_ceil(1024) as f64;
    let fat16 = kb((60 << 20) / 2048 * 2);
    for (name, ffs, paper, fat) in [
        ("floppy, 1 KB clusters", FFS_FIXED_FLOPPY, 2.0, fat12),
        ("60 MB, 2 KB clusters", FFS_FIXED_60MB, 64.0, fat16),
    ] {
        table.row(name, vec![Cell::paper(kb(ffs)), Cell::new(paper, fat)]);
    }
    table
}

fn figure2() -> Table {
    let lens = [512, 4 << 10, 16 << 10, 64 << 10];
    let counts = [100, 500, 1000, 2000, 4000, 6000, 8000, 10_000];
    let title = format!(
        "Figure 2: metadata of FFS over DosFs, bytes for each file, by the number of files\n(fragments and clusters of {UNIT} \
         bytes, {PER_DIR} files in a directory, 60 MB)"
    );
    let columns = lens.map(|len| format!("{len} bytes"));
    let columns = columns.each_ref().map(String::as_str);
    let mut table = Table::new(title, "files", &columns);
    for files in counts {
        // No more than the disk holds.
        let cell = |len: u64| match files * len <= 60 << 20 {
            true => Cell::ours(ffs_over_dosfs(len, files)),
            false => Cell::default(),
        };
        table.row(files.to_string(), lens.map(cell).to_vec());
    }
    table.note(
        "As in the paper, what is fixed in FFS is shared by more files as they grow in number.",
    );
    table.drawn_as("dosfs-figure-2", FigureKind::Lines)
}

fn figure3() -> Table {
    let lens = [
        1, 4, 16, 32, 48, 49, 64, 128, 512, 1024, 4096, 4144, 4145, 8192, 16_384,
    ];
    let title = format!(
        "Figure 3: metadata for each file in bytes, by the size of the file (6,000 files, {PER_DIR} in a directory)"
    );
    let mut table = Table::new(title, "KB", &["FFS", "DosFs 512", "DosFs 4096"]);
    for kb in lens {
        let len = kb << 10;
        let dosfs = |cluster| dosfs_metadata(len, cluster, PER_DIR, FAT16_ENTRY);
        let cells = [ffs(6000).metadata(len), dosfs(UNIT), dosfs(4096)].map(Cell::ours);
        table.row(kb.to_string(), cells.to_vec());
    }
    table.note(
        "The ramps are FFS's indirect blocks. The paper puts the first at 64 KB; with 4.3BSD's twelve direct blocks of 4 KB it is \
         at 48. Its \"DosFs costs still grow at half the speed\" (2 bytes a cluster against 4 a block) is true of clusters of 4 KB, \
         the last column; with 512-byte clusters the FAT grows four times as fast as FFS's lists.",
    );
    table.drawn_as("dosfs-figure-3", FigureKind::Lines)
}

fn figure4() -> Table {
    let title = format!(
        "Figure 4: a file's share of its directory in bytes, by the files in it (names of {NAME_LEN})"
    );
    let mut table = Table::new(title, "files", &["FFS", "DosFs", "difference"]);
    for files in [1, 2, 4, 8, 10, 16, 20, 25, 32, 50, 64, 100, 200, 500, 1000] {
        let (a, b) = (ffs_dir(files, UNIT, NAME_LEN), dosfs_dir(files, UNIT));
        table.row(files.to_string(), [a, b, b - a].map(Cell::ours).to_vec());
    }
    table.note("As in the paper, FFS's directories are the smaller: 20 bytes an entry in the end, against 32.");
    table.drawn_as("dosfs-figure-4", FigureKind::Lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::chart;

    #[test]
    fn ffs_costs_more_for_small_files_whatever_their_number() {
        for files in [100, 1000, 10_000] {
            assert!(ffs_over_dosfs(4096, files) > 0.0);
        }
        assert!(ffs_over_dosfs(4096, 100) > ffs_over_dosfs(4096, 10_000));
    }

    #[test]
    fn what_is_printed_of_growth_is_true() {
        let ffs = |len| ffs(6000).metadata(len);
        let fat = |len, cluster| dosfs_metadata(len, cluster, PER_DIR, FAT16_ENTRY);
        let (from, to) = (5 << 20, 13 << 20);
        let lists = super::super::cost::indirect(to) - super::super::cost::indirect(from);
        assert_eq!((fat(to, 4096) - fat(from, 4096)).round() as u64, lists / 2);
        assert_eq!((fat(to, 512) - fat(from, 512)).round() as u64, lists * 4);
        assert!(ffs(49 << 10) - ffs(48 << 10) >= 4096.0);
    }

    /// Each figure that is printed, at the ends of the axes and where lines bend.
    #[test]
    fn the_figures_are_the_same_at_each_run() {
        let row = |table: &Table, name: &str| {
            let row = table.rows.iter().find(|row| row.name == name).unwrap();
            let ours = row
                .cells
                .iter()
                .map(|cell| cell.ours.unwrap_or(-1.0).round());
            ours.collect::<Vec<f64>>()
        };
        let all = FIGURES.map(|(_, figure)| figure());
        let found = [
            row(&all[0], "floppy, 1 KB clusters"),
            row(&all[0], "60 MB, 2 KB clusters"),
            row(&all[1], "100"),
            row(&all[1], "10000"),
            row(&all[2], "48"),
            row(&all[2], "49"),
            row(&all[2], "16384"),
            row(&all[3], "1"),
            row(&all[3], "1000"),
        ];
        assert_eq!(found, HELD);
        let drawn = all.iter().filter_map(chart::drawn);
        let names: Vec<_> = drawn.map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["dosfs-figure-2", "dosfs-figure-3", "dosfs-figure-4"]
        );
    }

    /// -1 stands for none of ours.
    const HELD: [&[f64]; 9] = [
        &[-1.0, 3.0],
        &[-1.0, 60.0],
        &[14_101.0, 14_087.0, 14_042.0, 17_958.0],
        &[241.0, 227.0, -1.0, -1.0],
        &[399.0, 243.0, 229.0],
        &[4_496.0, 247.0, 231.0],
        &[24_963.0, 65_587.0, 8_397.0],
        &[512.0, 512.0, 0.0],
        &[20.0, 32.0, 12.0],
    ];
}
