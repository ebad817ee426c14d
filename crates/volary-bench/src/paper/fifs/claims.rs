//! What the paper's text says of its graphs, as factors, beside ours.

use super::build;
use super::media::LARGE;
use super::media::{self, Timed, Times};
use crate::paper::table::{Cell, Table};

/// What the paper says of a factor.
#[derive(Clone, Copy, Debug)]
enum Said {
    Exactly(f64),
    /// A range; outside it, its nearer end is compared.
    Between(f64, f64),
    /// No number: the claim's words have it.
    InWords,
}

/// A factor: the phases' time on one medium over that on another, on the host and in the guest.
struct Claim {
    words: &'static str,
    phases: &'static [&'static str],
    said: Said,
    host: Option<[&'static str; 2]>,
    guest: Option<[&'static str; 2]>,
    /// Why ours may be another.
    why: &'static str,
}

const READ_WHY: &str = "\
! Read: one of 256 KB took the paper's directory 4.7 ms and FSWIN32 27, one of 8 KB 0.07 and 1.1; divide ours by 32 and 1024.
Copies from memory have become faster than calls between processes: the smaller the reads, the more the calls are of all. In the
guest calls go through an emulated processor and network as well, copies do not.";
const LARGE_WORDS: &str = "\
Where the paper has no number: its writes went to a disk, beside which a call was little; ours go to memory. Its FSNFS wrote 8 KB
a call, and kNFSnc read 4 KB; both take here a call for each read and write, and so as long. Four threads hand requests to each
other on few processors.";
const WRITE_WHY: &str = "\
! Write: a call of 8 KB took 6.6 ms on the paper's network alone. Here that is memory, and FSNFS's second call is seen.";
const KNFS_WHY: &str = "\
! kNFS: both read what is in the kernel's memory; a few milliseconds in an emulator differ by as much.";
const DELETE_WHY: &str = "\
! Delete: the paper's directory was on a disk, where removing takes longer than asking for it. Here it is in memory: microseconds,
beside which an open, a close and their attributes, which SMB needs to remove, are all of the time.";
const SMALL_WORDS: &str = "\
Where the paper has no number: FSNFS takes a call of SMB and those of NFS for what kNFSnc asks at once. The paper could not tell
why that made reading far slower and writing little; here it makes all slower alike.";
const FSNFS_WHY: &str = "\
! FSNFS: kNFS answers much from the kernel's memory, and FSNFS asks two servers for each. The paper does not say whether its
factor is of kNFS or kNFSnc. Its programs took the most of its total; here 21 files are compiled of 209.";
const APP_WHY: &str = "\
! Not 2 to 4: a name or a file costs a mount calls of some tens of microseconds, and the guest calls through an emulated network,
where each directory in memory takes a few. The paper's directory was on a disk. Below 2 the programs' start is most of it.";
const CONSTANT_WHY: &str = "\
! Dearest and cheapest: what FSWIN32 adds is one or more calls a file, and a file that is made takes more of them than one opened.";

const READ: &[&str] = &["sequential-read"];
const WRITE: &[&str] = &["sequential-write"];
const SMALL: &[&str] = &["create", "read", "write", "write-sync"];

const FSWIN32_DIRECTLY: Option<[&str; 2]> = Some([media::FSWIN32, media::DIRECTORY]);
const CIFS_DIRECTLY: Option<[&str; 2]> = Some([media::CIFS_NC, media::DIRECTORY]);
const MOUNT_DIRECTLY: Option<[&str; 2]> = Some([media::FUSE_4, media::DIRECTORY]);
const FUSE_THREADS: Option<[&str; 2]> = Some([media::FUSE_4, media::FUSE_1]);
const FSNFS_THREADS: Option<[&str; 2]> = Some([media::FSNFS_4, media::FSNFS_1]);
const FSNFS_NC: Option<[&str; 2]> = Some([media::FSNFS_NC, media::KNFS_NC]);
const FSNFS: Option<[&str; 2]> = Some([media::FSNFS_NC, media::KNFS]);

/// Returns the claims of the paper's text about each figure.
fn claims(figure: &str) -> Vec<Claim> {
    match figure {
        "5-1" => large(5.8, "write, FSNFS / kNFSnc: well over 1", Said::InWords),
        "5-2" => large(16.0, "write, FSNFS / kNFSnc", Said::Between(1.0, 1.1)),
        "5-3" => small(),
        "5-4" => vec![
            app("copy", &["copy"]),
            app("unpack", &["unpack"]),
            app("attributes", &["attributes"]),
            app("compare", &["compare"]),
            kernel("attributes, FSNFS / kNFS", &["attributes"], 1.6, FSNFS),
            kernel("attributes, FSNFS / kNFSnc", &["attributes"], 1.6, FSNFS_NC),
        ],
        "5-5" => vec![
            app("pack", &["pack"]),
            app("remove", &["remove"]),
            Claim {
                words: "total, FSWIN32 / NTFS: not much over 1",
                phases: &[build::TOTAL],
                said: Said::InWords,
                host: MOUNT_DIRECTLY,
                guest: CIFS_DIRECTLY,
                why: "",
            },
            kernel("total, FSNFS / kNFS", &[build::TOTAL], 1.3, FSNFS),
            kernel("total, FSNFS / kNFSnc", &[build::TOTAL], 1.3, FSNFS_NC),
        ],
        _ => Vec::new(),
    }
}

/// Of a large file, which FSWIN32 reads so many times as slowly.
fn large(read: f64, write: &'static str, said: Said) -> Vec<Claim> {
    let in_words = |words, phases, host, guest| Claim {
        words,
        phases,
        said: Said::InWords,
        host,
        guest,
        why: "",
    };
    vec![
        Claim {
            words: "read, FSWIN32 / NTFS",
            phases: READ,
            said: Said::Exactly(read),
            host: FSWIN32_DIRECTLY,
            guest: CIFS_DIRECTLY,
            why: READ_WHY,
        },
        in_words(
            "write, FSWIN32 / NTFS: little over 1",
            WRITE,
            FSWIN32_DIRECTLY,
            CIFS_DIRECTLY,
        ),
        in_words(
            "all, FSWIN32-4 / FSWIN32-1: slightly over 1",
            &LARGE,
            FUSE_THREADS,
            None,
        ),
        in_words(
            "all, FSNFS-4 / FSNFS-1: slightly over 1",
            &LARGE,
            FSNFS_THREADS,
            None,
        ),
        in_words("read, FSNFS / kNFSnc: under 1", READ, None, FSNFS_NC),
        Claim {
            words: write,
            phases: WRITE,
            said,
            host: None,
            guest: FSNFS_NC,
            why: WRITE_WHY,
        },
        Claim {
            words: "read, kNFS / NTFS",
            phases: READ,
            said: Said::Exactly(1.0),
            host: None,
            guest: Some([media::KNFS, media::DIRECTORY]),
            why: KNFS_WHY,
        },
    ]
}

/// Of small files.
fn small() -> Vec<Claim> {
    let over = |words, phases| Claim {
        words,
        phases,
        said: Said::InWords,
        host: None,
        guest: FSNFS_NC,
        why: "",
    };
    vec![
        Claim {
            words: "delete, FSWIN32 / NTFS",
            phases: &["delete"],
            said: Said::Exactly(1.0),
            host: FSWIN32_DIRECTLY,
            guest: CIFS_DIRECTLY,
            why: DELETE_WHY,
        },
        over("all, FSNFS / kNFSnc: over 1", SMALL),
        over("read, FSNFS / kNFSnc: far over 1", &["read"]),
        over("write, FSNFS / kNFSnc: little over 1", &["write"]),
        over("delete, FSNFS / kNFSnc: little over 1", &["delete"]),
    ]
}

/// Returns what the application benchmark takes by FSNFS, over what it takes by the kernel's client, in the guest.
fn kernel(
    words: &'static str,
    phases: &'static [&'static str],
    paper: f64,
    guest: Option<[&'static str; 2]>,
) -> Claim {
    Claim {
        words,
        phases,
        said: Said::Exactly(paper),
        host: None,
        guest,
        why: FSNFS_WHY,
    }
}

/// Returns a phase of the application benchmark that takes little of the processor.
fn app(phase: &'static str, phases: &'static [&'static str]) -> Claim {
    Claim {
        words: phase,
        phases,
        said: Said::Between(2.0, 4.0),
        host: MOUNT_DIRECTLY,
        guest: CIFS_DIRECTLY,
        why: APP_WHY,
    }
}

impl Claim {
    /// Returns ours beside what is said.
    fn cell(&self, times: &[Timed], media: Option<[&str; 2]>) -> Cell {
        let ours = media.and_then(|[over, under]| {
            Some(sum(times, over, self.phases)? / sum(times, under, self.phases)?)
        });
        let Some(ours) = ours else {
            return Cell::default();
        };
        match self.said {
            Said::Exactly(paper) => Cell::claimed(paper, ours),
            Said::Between(least, most) if (least..=most).contains(&ours) => Cell::ours(ours),
            Said::Between(least, most) => Cell::claimed(ours.clamp(least, most), ours),
            Said::InWords => Cell::ours(ours),
        }
    }

    /// Returns the claim's name; a range has no other place.
    fn name(&self) -> String {
        match self.said {
            Said::Between(least, most) => format!("{}: {least} to {most}", self.words),
            _ => self.words.to_owned(),
        }
    }
}

/// Returns the seconds of these phases on a medium; those that its client has not are left out.
fn sum(times: &[Timed], medium: &str, phases: &[&str]) -> Option<f64> {
    let one = times.iter().find(|one| one.name == medium)?;
    let all: Vec<f64> = phases
        .iter()
        .filter_map(|phase| one.phases.median(phase))
        .collect();
    (!all.is_empty()).then(|| all.iter().sum())
}

/// Returns what the paper's text says of a figure, beside ours.
pub(super) fn tables(figure: &str, times: &Times) -> Vec<Table> {
    let title = format!("Figure {figure}: what the paper's text says of it");
    let mut table = Table::new(title, "times as long", &["host", "guest"]);
    let mut why: Vec<&str> = Vec::new();
    for claim in claims(figure) {
        let cells = vec![
            claim.cell(&times.host, claim.host),
            claim.cell(&times.guest, claim.guest),
        ];
        if cells.iter().any(Cell::is_far) && !why.contains(&claim.why) {
            why.push(claim.why);
        }
        table.row(claim.name(), cells);
    }
    match figure {
        "5-1" | "5-2" => table.note(LARGE_WORDS),
        "5-3" => table.note(SMALL_WORDS),
        _ => {}
    }
    why.into_iter().for_each(|words| table.note(words));
    let mut all = vec![table];
    if figure == "5-3" {
        all.push(dearer(times));
    }
    all
}

/// Returns how much dearer FSWIN32 makes each file: the paper has it constant, but for deletion.
fn dearer(times: &Times) -> Table {
    let title = "Figure 5-3: what FSWIN32 adds to the time of a file";
    let mut table = Table::new(title, "ms", &["host", "guest"]);
    let media = [
        (&times.host, FSWIN32_DIRECTLY),
        (&times.guest, CIFS_DIRECTLY),
    ];
    let more = |phase: &str| {
        media.map(|(times, media)| {
            let [over, under] = media?;
            // Milliseconds of one of 1000 files.
            Some(sum(times, over, &[phase])? - sum(times, under, &[phase])?)
        })
    };
    let mut most = [Extremes::default(); 2];
    for phase in SMALL {
        let cells = more(phase);
        for (extremes, more) in most.iter_mut().zip(cells) {
            extremes.add(more);
        }
        table.row(
            *phase,
            cells
                .map(|more| more.map_or_else(Cell::default, Cell::ours))
                .to_vec(),
        );
    }
    let spread = most.map(|extremes| match extremes.ratio() {
        Some(ratio) => Cell::claimed(1.0, ratio),
        None => Cell::default(),
    });
    let is_far = spread.iter().any(Cell::is_far);
    let delete =
        more("delete").map(|more| more.map_or_else(Cell::default, |ms| Cell::new(0.0, ms)));
    table.row("delete", delete.to_vec());
    table.row("dearest / cheapest but delete", spread.to_vec());
    if is_far {
        table.note(CONSTANT_WHY);
    }
    table
}

/// The least and the most of some figures.
#[derive(Clone, Copy, Default)]
struct Extremes(Option<(f64, f64)>);

impl Extremes {
    fn add(&mut self, figure: Option<f64>) {
        let Some(figure) = figure else { return };
        let (least, most) = self.0.unwrap_or((figure, figure));
        self.0 = Some((least.min(figure), most.max(figure)));
    }

    /// Returns the most over the least, if both are over 0.
    fn ratio(self) -> Option<f64> {
        let (least, most) = self.0?;
        (least > 0.0).then(|| most / least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(name: &'static str, seconds: f64) -> Timed {
        let costs = [
            "sequential-read",
            "copy",
            "create",
            "read",
            "write",
            "delete",
        ];
        Timed::new(
            name,
            [costs.map(|phase| (phase.to_owned(), seconds)).to_vec()],
        )
    }

    fn cell<'a>(tables: &'a [Table], row: &str, column: usize) -> &'a Cell {
        let rows = tables.iter().flat_map(|table| &table.rows);
        let mut rows = rows.filter(|one| one.name.starts_with(row));
        &rows.next().unwrap().cells[column]
    }

    #[test]
    fn a_factor_stands_beside_the_papers_and_is_explained_if_it_is_far() {
        let mut times = Times {
            host: vec![timed(media::DIRECTORY, 1.0), timed(media::FSWIN32, 6.0)],
            ..Times::default()
        };
        let near = tables("5-1", &times);
        let read = cell(&near, "read, FSWIN32", 0);
        assert_eq!((read.paper, read.ours), (Some(5.8), Some(6.0)));
        assert!(!near[0].notes.contains(&READ_WHY.to_owned()));
        assert_eq!(
            *cell(&near, "read, FSWIN32", 1),
            Cell::default(),
            "no guest"
        );
        times.host[1] = timed(media::FSWIN32, 60.0);
        let far = tables("5-1", &times);
        assert!(cell(&far, "read, FSWIN32", 0).is_far());
        assert!(far[0].notes.contains(&READ_WHY.to_owned()));
    }

    #[test]
    fn a_range_is_compared_by_its_nearer_end() {
        let copy = |seconds| {
            let times = Times {
                host: vec![timed(media::DIRECTORY, 1.0), timed(media::FUSE_4, seconds)],
                ..Times::default()
            };
            *cell(&tables("5-4", &times), "copy: 2 to 4", 0)
        };
        assert_eq!(copy(3.0), Cell::ours(3.0));
        assert_eq!(copy(8.0), Cell::claimed(4.0, 8.0));
        assert_eq!(copy(1.0).ratio(), Some(0.5));
    }

    #[test]
    fn every_number_of_the_paper_has_an_explanation() {
        for claim in super::super::TABLES.into_iter().flat_map(claims) {
            let is_said = !matches!(claim.said, Said::InWords);
            assert!(!is_said || claim.why.starts_with("! "), "{}", claim.words);
        }
    }

    #[test]
    fn what_fswin32_adds_to_a_file_is_a_difference() {
        let times = Times {
            host: vec![timed(media::DIRECTORY, 1.0), timed(media::FSWIN32, 3.5)],
            ..Times::default()
        };
        let tables = tables("5-3", &times);
        assert_eq!(*cell(&tables[1..], "create", 0), Cell::ours(2.5));
        assert_eq!(
            *cell(&tables[1..], "write-sync", 0),
            Cell::default(),
            "no such call"
        );
        assert_eq!(cell(&tables[1..], "dearest", 0).ratio(), Some(1.0));
        assert_eq!(cell(&tables[1..], "delete", 0).paper, Some(0.0));
    }
}
