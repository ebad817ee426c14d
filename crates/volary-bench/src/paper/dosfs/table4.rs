//! Table 4: large files on the Gateway, local and over NFS; and what each optimisation does.

use super::kernel::System;
use super::machine::{Machine, Machines};
use super::runs::{cells, uncached};
use super::systems::{Any, DOSFS, FAT, FFS_TODAY, UFS, UFS_DEC};
use crate::paper::table::{Cell, Table};
use crate::workload::{self, Files};
use anyhow::Result;

/// The file.
const LEN: u64 = 5_000_000;
/// Bytes of a call over NFS, and the rate between the machines in bytes a microsecond (the paper's 860 KB/s).
const NFS: u64 = 8 << 10;
const WIRE: f64 = 0.86;
/// What a call over NFS takes besides, in microseconds: chosen for the paper's 749 KB/s written on FFS, of which calls follow each
/// other without a pause.
const CALL: f64 = 8192.0 / 0.749 - 8192.0 / WIRE;

/// Returns KB/s over NFS: read, written. `machine` is the server; it answers reads one by one, and
/// takes writes while others come.
fn over_nfs(machine: Machine, system: System) -> Result<[f64; 2]> {
    let mut server = Any::unix(machine, system)?;
    let path = "large.x";
    server.files().create(path)?;
    let each = CALL + NFS as f64 / WIRE;
    let by_call =
        |does: fn(&mut dyn Files, &str, u64, u64) -> Result<()>, server: &mut Any| -> Result<f64> {
            let mut all = 0.0;
            for at in (0..LEN).step_by(NFS as usize) {
                let len = NFS.min(LEN - at);
                let served = server.time(|files| does(files, path, at, len))?;
                server.files().compute(each)?;
                all += served;
            }
            Ok(all)
        };
    let calls = LEN.div_ceil(NFS) as f64 * each;
    let served = by_call(
        |files, path, at, len| files.write(path, at, len),
        &mut server,
    )?;
    let written = calls.max(served);
    server.files().close(path)?;
    server.remount()?;
    server.files().open(path)?;
    let read = calls
        + by_call(
            |files, path, at, len| files.read(path, at, len),
            &mut server,
        )?;
    Ok([read, written].map(|time| LEN as f64 * 1e3 / time))
}

/// Returns the table.
///
/// # Errors
/// Of volumes.
pub(super) fn table(machines: &Machines) -> Result<Table> {
    let gateway = machines.gateway;
    let names = [
        "FFS",
        "DosFs",
        "MS-DOS",
        "DosFs / FFS",
        "MS-DOS / DosFs",
        "today FFS",
        "today FAT",
    ];
    let mut table = Table::new(
        "Table 4: a file of 5 MB on the Gateway, local and over NFS",
        "KB/s",
        &names,
    );
    let [ffs, dosfs] = [UFS, DOSFS].map(|system| uncached(&mut Any::unix(gateway, system)?, LEN));
    let dos = uncached(&mut Any::dos(gateway)?, LEN)?;
    let [today_ffs, today_fat] =
        [FFS_TODAY, FAT].map(|made| uncached(&mut Any::today(gateway, &made)?, LEN));
    let (ffs, dosfs, today_ffs, today_fat) = (ffs?, dosfs?, today_ffs?, today_fat?);
    let paper = [
        ("uncached read", [170.0, 850.0, 1200.0]),
        ("uncached write", [178.0, 382.0, 624.0]),
    ];
    for (number, (name, paper)) in paper.into_iter().enumerate() {
        let of = |rates: [f64; 2]| rates.get(number).copied();
        let ours = [of(ffs), of(dosfs), of(dos)];
        let mut row = cells(&paper.map(Some), &ours, &[(1, 0), (2, 1)]);
        row.extend(
            [today_ffs, today_fat].map(|rates| of(rates).map_or_else(Cell::default, Cell::ours)),
        );
        table.row(name, row);
    }
    let nfs = |system| over_nfs(machines.decstation, system);
    let (ffs, dosfs) = (nfs(UFS_DEC)?, nfs(DOSFS)?);
    for (number, (name, paper)) in [("NFS read", [377.0, 379.0]), ("NFS write", [749.0, 749.0])]
        .into_iter()
        .enumerate()
    {
        let [a, b] = [ffs, dosfs].map(|rates| rates.get(number).copied());
        table.row(
            name,
            cells(
                &[Some(paper[0]), Some(paper[1]), None],
                &[a, b, None],
                &[(1, 0)],
            ),
        );
    }
    Ok(table)
}

/// Returns what sections 5 and 7 say of DosFs without an optimisation.
///
/// # Errors
/// Of volumes.
pub(super) fn without(gateway: Machine) -> Result<Table> {
    let small = System {
        io: DOSFS.unit,
        ..DOSFS
    };
    let read_by = |system: System, unit: u64| -> Result<f64> {
        let mut any = Any::unix(gateway, system)?;
        workload::write_new(any.files(), "large.x", LEN, 16 << 10)?;
        any.remount()?;
        let time = any.time(|files| workload::read_whole(files, "large.x", LEN, unit))?;
        Ok(LEN as f64 * 1e3 / time)
    };
    let open = |caches_names: bool| -> Result<f64> {
        let mut any = Any::unix(
            gateway,
            System {
                caches_names,
                ..DOSFS
            },
        )?;
        let [short, long, _] = super::runs::opens(&mut any)?;
        Ok((long - short) / 2.0 * 1e3)
    };
    let mut table = Table::new(
        "Sections 5 and 7: DosFs without one of its optimisations",
        "a file of 5 MB is read, KB/s",
        &["", "of all"],
    );
    let all = read_by(DOSFS, 16 << 10)?;
    let large = read_by(small, 2 << 10)?;
    let ahead = read_by(
        System {
            reads_ahead: false,
            ..small
        },
        2 << 10,
    )?;
    table.row("all, 16 KB at a time", vec![Cell::new(850.0, all)]);
    table.row(
        "without large I/O, 2 KB at a time",
        vec![
            Cell::new(480.0, large),
            Cell::claimed(480.0 / 850.0, large / all),
        ],
    );
    table.row(
        "and without read-ahead",
        vec![
            Cell::new(340.0, ahead),
            Cell::claimed(340.0 / 480.0, ahead / large),
        ],
    );
    let names = open(false)? / open(true)?;
    table.row(
        "a component without the name cache, times",
        vec![Cell::default(), Cell::claimed(1.15, names)],
    );
    table.note(
        "The last column: of the rate of the row above; of the name cache, how many times as long.",
    );
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::dosfs::machine::GATEWAY;
    use volary_sim::Preset;
    use volary_sim::buffered::{Ahead, Buffered};
    use volary_sim::preset::Timing;

    /// Returns FFS' rate on another disk.
    fn rate(disk: Buffered) -> f64 {
        let machine = Machine {
            disk: Preset::new("other", "", Timing::Buffered(disk)),
            ..GATEWAY
        };
        let mut any = Any::unix(machine, UFS).unwrap();
        uncached(&mut any, 1_000_000).unwrap()[0]
    }

    /// Returns a disk that takes so long for a command, with a bus that makes 16 KB at a time 1.5 MB/s.
    fn with(command: f64) -> Buffered {
        Buffered {
            command,
            bus: 16_384.0 / (16_384.0 / 1.5 - command),
            ..Buffered::MAXTOR400
        }
    }

    /// What is printed of FFS' lost turns: what they hang on, and what they do not.
    #[test]
    fn ffs_loses_a_turn_for_each_block_unless_the_disk_reads_ahead_of_it() {
        for command in [1_500.0, 2_500.0] {
            let found = rate(with(command));
            assert!((160.0..185.0).contains(&found), "{found}");
        }
        let always = Buffered {
            ahead: Ahead::Always,
            ..Buffered::MAXTOR400
        };
        let overlaps = Buffered {
            overlaps: true,
            ..Buffered::MAXTOR400
        };
        for other in [with(1_000.0), always, overlaps] {
            let found = rate(other);
            assert!((400.0..550.0).contains(&found), "{found}");
        }
    }
}
