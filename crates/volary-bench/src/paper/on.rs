//! Tables on another disk than the paper's.

use super::table::Table;
use anyhow::{Result, ensure};
use volary_sim::Preset;

/// Returns those of a paper's tables that are wanted: one, or all.
pub(super) fn chosen<'a>(tables: &[&'a str], which: Option<&str>) -> Vec<&'a str> {
    let tables = tables.iter().copied();
    tables
        .filter(|table| which.is_none_or(|which| which == *table))
        .collect()
}

/// Refuses a disk that is smaller than what a paper puts on it.
///
/// # Errors
/// If the disk has fewer than `bytes`.
pub(super) fn holds(disk: &Preset, bytes: u64) -> Result<()> {
    let (name, capacity) = (disk.name, disk.capacity());
    ensure!(
        capacity >= bytes,
        "the disk {name} has {capacity} bytes, and the paper's volumes take {bytes}"
    );
    Ok(())
}

/// Says of tables on which disk they are. The paper's figures stay, to compare; nothing is marked as far from them, and what
/// explains the paper's disk goes.
pub(super) fn moved(mut tables: Vec<Table>, disk: &Preset) -> Vec<Table> {
    for table in &mut tables {
        table.title = format!("{}; on {}", table.title, disk.name);
        let cells = table.rows.iter_mut().flat_map(|row| &mut row.cells);
        cells.for_each(|cell| cell.is_claimed = false);
        table.notes.clear();
    }
    if let Some(last) = tables.last_mut() {
        last.note(format!(
            "Ours: the paper's machines, kernels and volumes with another disk, {}: {}. The paper's figures are of its own \
             disks.",
            disk.name, disk.what
        ));
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::table::Cell;

    #[test]
    fn a_table_that_is_moved_says_where_and_marks_nothing() {
        let mut table = Table::new("Table 0", "", &["rate"]);
        table.row("far", vec![Cell::claimed(1.0, 2.0)]);
        table.note("! why");
        let [table] = &moved(vec![table], &Preset::HDD)[..] else {
            panic!("one table")
        };
        assert!(table.title.ends_with("on hdd") && !table.rows[0].cells[0].is_far());
        assert!(matches!(&table.notes[..], [note] if note.contains("hdd")));
        assert!(holds(&Preset::FLOPPY, 1_474_560).is_ok());
        assert!(holds(&Preset::FLOPPY, 1_474_561).is_err());
        assert_eq!(chosen(&["1", "2"], Some("2")), ["2"]);
        assert_eq!(chosen(&["1", "2"], None).len(), 2);
    }
}
