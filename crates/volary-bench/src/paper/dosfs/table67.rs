//! Tables 6 and 7: Mach 2.5 on the Gateway and on the DECstation.

use super::machine::Machine;
use super::runs::{Programs, again, andrew, cells, copy_and_delete, uncached};
use super::systems::{Any, DOSFS25, UFS_DEC, UFS25};
use super::table3;
use super::table5::{andrew_rows, small_table, stones};
use crate::paper::table::Table;
use anyhow::Result;

/// The large file.
const LEN: u64 = 7 << 20;

/// The programs of the Andrew benchmark on the DECstation.
const PROGRAMS: Programs = Programs {
    each: 60_000.0,
    compile: 2_700_000.0,
};

/// Runs Table 6 on `gateway`, which has Mach 2.5.
///
/// # Errors
/// Of volumes.
pub(super) fn table6(gateway: Machine) -> Result<Table> {
    let mut table = Table::new(
        "Table 6: Mach 2.5 on the Gateway",
        "test",
        &["FFS", "DosFs", "DosFs / FFS"],
    );
    let mut ours = Vec::new();
    for system in [UFS25, DOSFS25] {
        let mut any = Any::unix(gateway, system)?;
        let [read, written] = again(&mut any, 16)?;
        let [large, _] = uncached(&mut any, LEN)?;
        let [copied, removed] = copy_and_delete(&mut any, 16 << 10)?;
        ours.push([read, written, large / 1e3, copied, removed]);
    }
    let paper = [
        ("read 16 KB, MB/s", [14.6, 21.0]),
        ("write 16 KB, MB/s", [0.5, 19.3]),
        ("read 7 MB, MB/s", [1.2, 1.4]),
        ("copy Windows, s", [118.0, 60.0]),
        ("delete Windows, s", [9.8, 2.7]),
    ];
    for (number, (name, paper)) in paper.into_iter().enumerate() {
        let ours: Vec<Option<f64>> = ours.iter().map(|all| all.get(number).copied()).collect();
        table.row(name, cells(&paper.map(Some), &ours, &[(1, 0)]));
    }
    Ok(table)
}

/// The paper's figures of Ousterhout's tests in Table 7: FFS, DosFs.
const PAPER: [(&str, [f64; 2]); 13] = [
    ("open \"foo\", ms", [0.20, 0.23]),
    ("open \"a/b/foo\", ms", [0.26, 0.31]),
    ("open longpath, ms", [0.39, 0.43]),
    ("crtdel 0 KB, ms", [3.0, 3.0]),
    ("crtdel 10 KB, ms", [69.0, 60.0]),
    ("crtdel 100 KB, ms", [257.0, 173.0]),
    ("read 1 KB, MB/s", [4.6, 5.1]),
    ("read 8 KB, MB/s", [17.5, 17.5]),
    ("read 100 KB, MB/s", [7.9, 8.5]),
    ("read 7 MB, MB/s", [2.0, 2.6]),
    ("write 1 KB, MB/s", [4.7, 4.5]),
    ("write 8 KB, MB/s", [16.9, 17.1]),
    ("write 100 KB, MB/s", [0.7, 15.2]),
];

/// Runs Table 7 on `decstation`. Returns it, and the table of DosFs with and without large requests.
///
/// # Errors
/// Of volumes.
pub(super) fn table7(decstation: Machine) -> Result<[Table; 2]> {
    let mut table = Table::new(
        "Table 7: Mach 2.5 on the DECstation",
        "test",
        &["FFS", "DosFs", "FFS / DosFs"],
    );
    let (mut columns, mut phases) = (Vec::new(), Vec::new());
    for system in [UFS_DEC, DOSFS25] {
        let mut any = Any::unix(decstation, system)?;
        let mut column = table3::column(&mut any)?;
        // Before the writes.
        column.insert(9, uncached(&mut any, LEN)?[0] / 1e3);
        columns.push(column);
        phases.push(andrew(&mut any, PROGRAMS)?);
    }
    for (number, (name, paper)) in PAPER.into_iter().enumerate() {
        let ours: Vec<Option<f64>> = columns
            .iter()
            .map(|column| column.get(number).copied())
            .collect();
        table.row(name, cells(&paper.map(Some), &ours, &[(0, 1)]));
    }
    let stones = stones(decstation, UFS_DEC, DOSFS25)?;
    let [ffs, dosfs, _] = stones;
    let paper = [[103.0, 121.0], [324.0, 278.0], [563.0, 496.0]];
    for (number, (paper, ours)) in paper.iter().zip(ffs.iter().zip(dosfs)).enumerate() {
        let ours = [Some(*ours.0), Some(ours.1)];
        table.row(
            format!("Iostone-{}, s", number + 1),
            cells(&paper.map(Some), &ours, &[(0, 1)]),
        );
    }
    let paper = [[0.5, 7.0, 5.0, 7.0, 52.0], [0.5, 6.0, 5.0, 7.0, 52.0]];
    if let [ffs, dosfs] = phases[..] {
        andrew_rows(&mut table, paper, [ffs, dosfs], 0);
    }
    let paper = [[121.0, 117.0], [278.0, 264.0], [496.0, 471.0]];
    let small = small_table(
        "Table 7, in brackets: DosFs without large I/O",
        paper,
        stones,
    );
    Ok([table, small])
}
