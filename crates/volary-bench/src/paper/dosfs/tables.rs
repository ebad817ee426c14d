//! The paper's tables, and what stands below those that have times.

use super::machine::{DECSTATION, GATEWAY, GATEWAY25, Machine, Machines};
use super::{figures, systems, table2, table3, table4, table5, table67};
use crate::paper::on;
use crate::paper::table::Table;
use anyhow::Result;
use volary_sim::Preset;
use volary_sim::buffered::Buffered;

/// The tables' names. `fixed` is what is paid before the first file.
pub const TABLES: [&str; 10] = [
    "2", "fixed", "fig2", "fig3", "fig4", "3", "4", "5", "6", "7",
];

/// Those that have times.
pub const TIMED: [&str; 5] = ["3", "4", "5", "6", "7"];

/// Returns one of [`TABLES`], or all; those that have times on another disk than the paper's, if one is given.
///
/// # Errors
/// Of a disk that is too small; of volumes.
pub fn tables(which: Option<&str>, disk: Option<Preset>) -> Result<Vec<Table>> {
    let Some(disk) = disk else {
        return papers(which);
    };
    on::holds(&disk, systems::END)?;
    let machines = Machines::new(Some(disk));
    let mut tables = Vec::new();
    for name in on::chosen(&TIMED, which) {
        tables.extend(timed(name, &machines)?);
    }
    Ok(on::moved(tables, &disk))
}

/// Returns the tables of a name that have times.
fn timed(name: &str, machines: &Machines) -> Result<Vec<Table>> {
    Ok(match name {
        "3" => vec![table3::table(machines.gateway)?],
        "4" => vec![table4::table(machines)?, table4::without(machines.gateway)?],
        "5" => table5::tables(machines)?.into(),
        "6" => vec![table67::table6(machines.gateway25)?],
        _ => table67::table7(machines.decstation)?.into(),
    })
}

/// Returns the notes of the tables of a name.
fn notes(name: &str) -> Vec<Vec<String>> {
    let own = |notes: &str| vec![notes.to_owned()];
    match name {
        "3" => vec![vec![processor(&GATEWAY), NOTES3.into()]],
        "4" => vec![vec![requests(&GATEWAY), NOTES4.into()], own(NOTES_WITHOUT)],
        "5" => vec![own(NOTES5), own(NOTES_SMALL)],
        "6" => vec![vec![processor(&GATEWAY25), NOTES6.into()]],
        _ => vec![
            vec![processor(&DECSTATION), NOTES7.into()],
            own(NOTES_SMALL),
        ],
    }
}

/// Returns one of [`TABLES`], or all, on the paper's disks.
fn papers(which: Option<&str>) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    let is_wanted = |table: &str| which.is_none_or(|which| which == table);
    if is_wanted("2") {
        tables.push(table2::table()?);
    }
    for (name, figure) in figures::FIGURES {
        if is_wanted(name) {
            tables.push(figure());
        }
    }
    let machines = Machines::new(None);
    for name in on::chosen(&TIMED, which) {
        let noted = timed(name, &machines)?.into_iter().zip(notes(name));
        tables.extend(noted.map(|(mut table, notes)| {
            notes.into_iter().for_each(|note| table.note(note));
            table
        }));
    }
    Ok(tables)
}

/// Returns what is fitted of a machine's processor.
fn processor(machine: &Machine) -> String {
    let Machine {
        name,
        call: [read, write],
        kib: [r, w],
        buffer,
        open,
        component,
        ..
    } = machine;
    format!(
        "{name}: a call that reads takes {read:.0} us and {r:.0} a KiB, one that writes {write:.0} and {w:.0}, {buffer:.0} for each buffer; an open {open:.0} and {component:.0} a component.",
    )
}

/// Returns what is fitted and assumed of requests.
fn requests(machine: &Machine) -> String {
    let disk = Buffered::MAXTOR400;
    format!(
        "Disk: {:.0} ms a command, {:.2} MB/s on the bus (by the raw disk's 1.5 MB/s at 16 KB). Processor: {:.1} ms between requests (by dd's 1.2 MB/s), {:.0} MB/s to move what is read \
         (the paper's memory bandwidth).",
        disk.command / 1e3,
        disk.bus,
        machine.request / 1e3,
        machine.memory,
    )
}

const NOTES3: &str = "\
Fitted: the processor, to 1 and 100 KB of DosFs, 100 KB read of FFS, and \"foo\" and \"a/b/foo\" of each system; 3 ms \
to make and remove a file, to crtdel 0 KB; to crtdel 10 KB, that a file that has grown is written through when it is \
closed (its inode, or entry), and on FFS once more when it is removed; to crtdel 100 KB of MS-DOS, that it writes \
single sectors. Chosen with crtdel 100 KB of DosFs in view: 2 KB a call. All else follows. Assumed: longpath has six \
components; 0.2 ms to find a free block. Today: volary on FAT16.
! read 1 KB, write 1 KB: the paper's 0.1 MB/s of MS-DOS stand for 0.05 to 0.15; ours are a turn of 16.7 ms for a KB.
! read 100 KB: the paper's 1.2 of MS-DOS is the best of all that it tried; here a turn is lost each time that the file \
is begun anew. It reads 5 MB at 1.2, too (Table 4).
! write 8 KB: the paper's DosFs makes 3.7 MB/s, where the line through its 1.3 at 1 KB and its 7.4 at 16 KB has 5.6. \
MS-DOS alone is as in the paper.";

const NOTES4: &str = "\
Why FFS is slow: between its blocks lie two others (rotdelay 4 ms), 4.9 ms. A block crosses the bus (2.2 ms), the next \
request is made (1.1), the command begins (2.0): 5.3 ms, too late by 0.4. So each block of 4 KB costs a turn and the \
gap: 24.1 ms, 170 KB/s. That the turn is lost is chosen, by what is assumed of the disk: it reads ahead in sequence \
only, sends what it has read after it has read it, and takes 2 ms a command (1.5 to 2.5 give the same). If one of \
these were otherwise, the block would be caught, and FFS read at 515 KB/s: there is nothing between. Chosen for DosFs' \
850 KB/s: Mach 3.0's server reads nothing ahead of large requests. Assumed: it waits until a buffer is written that \
makes room; the disk's buffer; indirect blocks are in memory. Today: volary with 1.3 MB of memory, its own requests \
and its own layout.
NFS: calls of 8 KB over the paper's 860 KB/s, and a time for each that is fitted to FFS' 749; the server has the \
DECstation's disk. Only that both systems are alike is claimed: the paper's client reads at half of our rate, and it \
does not say why.";

const NOTES_WITHOUT: &str = "\
Section 5 says that reading takes 30 % longer without read-ahead, and gives 480 and 340 KB/s, which are 41 %. Assumed: \
to search a directory in memory takes 5 us.";

const NOTES5: &str = "\
Fitted: how many files Iostone opens (10,200), to FFS' 233 s. Chosen with DosFs' 287 s without large I/O in view: its \
12 long files are opened a fifth as often as others. Assumed: its lengths; the Windows tree (8 MB; 240 files, by \
MS-DOS' 11 s for deleting them); Andrew's 70 files of 200 KB, 80 ms for each program and 2.2 s for each compilation; \
MS-DOS holds 15 sectors, and copies 64 KB at a time.
Andrew's programs take most of its time, the same for both; the paper calls it its least controlled test, as they are \
paged in from elsewhere on the same disk.
! Iostone-1: MS-DOS is 16 % over its figure, DosFs 8 % under. Most of MS-DOS' time goes into a directory of 404 entries, \
read by sectors for each open; 15 sectors in memory or 20 make no difference, with 50 it takes 238 s (the paper: 300 with \
a cache).
! copy Windows: no tree fits Table 4 and these figures. At 170 and 178 KB/s FFS copies 6.6 MB in 76 s at most. They \
take DosFs 25 s of its 58 at 850 and 382; what it does in the other 33 would have to cost FFS nothing. MS-DOS to DosFs \
is off for the same reason: MS-DOS is as in the paper.
! delete Windows: DosFs waits for no write, and a file costs the processor's 2.9 ms, most of it fitted to crtdel; the \
paper's 1.2 s are 5 ms a file. FFS and its write are as in the paper.";

const NOTES_SMALL: &str = "\
! Iostone-1, Iostone-2, Iostone-3: the paper's large files lay \"very scattered\" when instances wrote them in turns, \
and large requests were worth less and less. Volary's allocator keeps room behind files that grow: they lie in a row.";

const NOTES6: &str = "\
Fitted: the processor, to 16 KB read and written. From the paper: FFS starts to write a full block that goes on from \
the one before. Chosen: 0.4 ms between requests, with which FFS catches its next block, by its 0.5 MB/s written; \
reading ahead of large requests, by DosFs' 1.4 MB/s. Assumed: 20 MB/s to move what is read; Mach 2.5 waits for what \
Mach 3.0 does not when a file is removed (FFS: inode and directory; DosFs: the entry).
! read 7 MB: the paper's FFS reads at 1.2 MB/s here, and at 0.17 with Mach 3.0 (Table 4). Of blocks with gaps of two a \
disk of 1.6 MB/s gives no more than 0.55, whatever the kernel: that file must have lain in a row. DosFs is as in the \
paper.";

const NOTES7: &str = "\
Fitted: the processor, to DosFs' opens and its 1 and 8 KB. Iostone is that of Table 5. FFS is laid out for files in a \
row, in blocks of 8 KB (assumed). Assumed: 0.4 ms between requests; 60 ms for each program of Andrew, 2.7 s for a \
compilation. That 100 KB are read at half of the rate of 8 KB puzzles the paper, too; both systems are alike in that.
! crtdel 10 KB, crtdel 100 KB: the paper's DosFs takes 5.4 and 15.6 turns of the disk, none of them for 0 KB. Ours \
takes the two writes that section 5 gives it, and FFS the same and what its data cost that is written at once. What \
the others are, the paper does not say.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::table::{Cell, Row};

    /// Returns the tables' lines but for notes, of which each row that is far from the paper must have one, and no other.
    fn lines(which: &[&str]) -> Vec<String> {
        let mut all = Vec::new();
        for table in which
            .iter()
            .flat_map(|which| tables(Some(which), None).unwrap())
        {
            for row in table
                .rows
                .iter()
                .filter(|row| row.cells.iter().any(|cell| cell.is_far()))
            {
                let name = row.name.split(',').next().unwrap();
                let explained = table.notes.iter().flat_map(|note| note.lines());
                let mut explained = explained.filter(|line| line.starts_with("! "));
                assert!(
                    explained.any(|line| line.contains(name)),
                    "{name} is not explained"
                );
            }
            for line in table
                .notes
                .iter()
                .flat_map(|note| note.lines())
                .filter(|line| line.starts_with("! "))
            {
                let names = line.trim_start_matches("! ").split(':').next().unwrap();
                let is_far = |row: &Row| {
                    names.contains(row.name.split(',').next().unwrap())
                        && row.cells.iter().any(Cell::is_far)
                };
                assert!(table.rows.iter().any(is_far), "nothing to explain: {line}");
            }
            let mut out = Vec::new();
            let plain = Table {
                notes: Vec::new(),
                ..table
            };
            plain.print(&mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            all.extend(text.lines().skip(4).map(str::to_owned));
        }
        all
    }

    /// Each figure that is printed, to the last digit, on all machines.
    fn holds(which: &[&str], held: &str) {
        let found = lines(which).join("\n");
        assert_eq!(found, held, "{found}");
    }

    #[test]
    fn tables_3_and_4_are_the_same_at_each_run() {
        holds(&["3", "4"], include_str!("held/34.txt").trim_end());
    }

    #[test]
    fn table_5_is_the_same_at_each_run() {
        holds(&["5"], include_str!("held/5.txt").trim_end());
    }

    #[test]
    fn tables_6_and_7_are_the_same_at_each_run() {
        holds(&["6", "7"], include_str!("held/67.txt").trim_end());
    }
}
