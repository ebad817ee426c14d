//! Table 3: Ousterhout's tests on the Gateway.

use super::machine::Machine;
use super::runs::{again, cells, crtdel, opens};
use super::systems::{Any, DOSFS, FAT, SYSTEMS, UFS};
use crate::paper::table::{Cell, Table};
use anyhow::Result;

/// The paper's figures: MS-DOS, FFS, DosFs.
const PAPER: [(&str, [f64; 3]); 12] = [
    ("open \"foo\", ms", [0.50, 0.75, 0.75]),
    ("open \"a/b/foo\", ms", [0.82, 0.82, 0.82]),
    ("open longpath, ms", [1.16, 0.95, 0.95]),
    ("crtdel 0 KB, ms", [32.0, 3.0, 3.0]),
    ("crtdel 10 KB, ms", [521.0, 36.0, 20.0]),
    ("crtdel 100 KB, ms", [3671.0, 107.0, 87.0]),
    ("read 1 KB, MB/s", [0.1, 1.1, 1.1]),
    ("read 8 KB, MB/s", [0.5, 2.2, 2.5]),
    ("read 100 KB, MB/s", [1.2, 3.0, 3.3]),
    ("write 1 KB, MB/s", [0.1, 1.3, 1.3]),
    ("write 8 KB, MB/s", [0.5, 3.7, 3.7]),
    ("write 100 KB, MB/s", [0.5, 5.8, 7.4]),
];

/// Returns our column of the table for a system.
pub(super) fn column(any: &mut Any) -> Result<Vec<f64>> {
    let mut column = opens(any)?.to_vec();
    for kib in [0, 10, 100] {
        column.push(crtdel(any, kib)?);
    }
    let (mut read, mut written) = (Vec::new(), Vec::new());
    for kib in [1, 8, 100] {
        let [r, w] = again(any, kib)?;
        read.push(r);
        written.push(w);
    }
    column.extend(read);
    column.extend(written);
    Ok(column)
}

/// Runs Table 3 on `gateway`.
///
/// # Errors
/// Of volumes.
pub(super) fn table(gateway: Machine) -> Result<Table> {
    let mut columns = Vec::new();
    for mut any in [
        Any::dos(gateway)?,
        Any::unix(gateway, UFS)?,
        Any::unix(gateway, DOSFS)?,
        Any::today(gateway, &FAT)?,
    ] {
        columns.push(column(&mut any)?);
    }
    let mut table = Table::new(
        "Table 3: Ousterhout's tests on the Gateway",
        "test",
        &SYSTEMS,
    );
    for (number, (name, paper)) in PAPER.iter().enumerate() {
        let ours: Vec<Option<f64>> = columns
            .iter()
            .map(|column| column.get(number).copied())
            .collect();
        let systems = ours.get(..3).unwrap_or_default();
        let mut row = cells(&paper.map(Some), systems, &[(1, 2), (0, 2)]);
        row.push(
            ours.last()
                .copied()
                .flatten()
                .map_or_else(Cell::default, Cell::ours),
        );
        table.row(*name, row);
    }
    Ok(table)
}
