//! Servers: volary beside Samba, nfs-ganesha and libfuse's `passthrough_ll`,
//! each serving one directory of the host to one client program.

use super::finding::{Finding, Row};
use super::task::Options;
use crate::needs;
use crate::served::{Clients, Place, Start, clients::Phases, ours, rivals};
use anyhow::Result;

/// Small files, of 4 KiB each.
const FILES: &str = "1000";
/// Length of the large file.
const MEBIBYTES: &str = "256";

/// A row of [`PHASES`].
macro_rules! phase {
    ($phase:literal, $words:literal, $aim:literal) => {
        (
            $phase,
            [
                concat!("smb: ", $words),
                concat!("nfs: ", $words),
                concat!("fuse: ", $words),
            ],
            $aim,
        )
    };
}

/// A phase as the clients print it, what it is called by each protocol, and how
/// many times as fast volary should be by SMB and NFS.
pub(crate) const PHASES: [(&str, [&str; 3], f64); 7] = [
    phase!("create", "create 1000", 1.5),
    phase!("stat", "stat 1000", 1.5),
    phase!("list", "list 10 times", 1.5),
    phase!("read", "read 1000", 1.5),
    phase!("unlink", "remove 1000", 1.5),
    phase!("large-write", "write 256 MiB", 1.0),
    phase!("large-read", "read 256 MiB", 1.0),
];
/// Of the mounts: `passthrough_ll` is a kernel's calls passed on, and as fast as
/// that can be.
const FUSE_AIM: f64 = 1.0;
const SMB: usize = 0;
const NFS: usize = 1;
const FUSE: usize = 2;

/// Runs the comparison; `told` hears of each row as soon as it is there.
///
/// # Errors
/// If it is not run by root (Samba, nfs-ganesha and the namespace want it), or if a program
/// fails.
pub fn run(options: &Options, told: &mut dyn FnMut(&Finding)) -> Result<Vec<Finding>> {
    let place = Place::new(options.dir.as_deref())?;
    let clients = Clients::compile(&place)?;
    let mut rows = Vec::new();
    for pair in &pairs(&place, &clients, options) {
        let names = PHASES.map(|(_, names, _)| names[pair.protocol]);
        if !names.iter().any(|name| options.wants(name)) {
            continue;
        }
        let (ours, theirs) = match alternate(&place, pair, options.rounds) {
            Ok(phases) => phases,
            Err(e) => {
                let (rival, why) = (pair.rival, needs::lacking(e)?);
                let missing = Finding::missing(rival, why);
                told(&missing);
                rows.push(missing);
                continue;
            }
        };
        for ((phase, _, aim), name) in PHASES.iter().zip(names) {
            if !options.wants(name) {
                continue;
            }
            let (ours, theirs) = (ours.of(phase)?, theirs.of(phase)?);
            let row = Finding::Row(Row {
                task: name.into(),
                rival: pair.rival.into(),
                ours,
                theirs,
                ratio: theirs.median / ours.median,
                aim: if pair.protocol == FUSE {
                    FUSE_AIM
                } else {
                    *aim
                },
                memory_aim: None,
            });
            told(&row);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// volary and a rival, by one protocol.
struct Pair<'a> {
    /// Its place among the names of a phase.
    protocol: usize,
    rival: &'static str,
    ours: Start<'a>,
    theirs: Start<'a>,
}

fn pairs<'a>(place: &'a Place, clients: &'a Clients, options: &'a Options) -> [Pair<'a>; 5] {
    let volary = options.volary.as_path();
    let passthrough = place.path("passthrough_ll");
    [
        Pair {
            protocol: SMB,
            rival: "samba, both plain",
            ours: Box::new(move |dir| ours::smb(volary, dir, clients, "none")),
            theirs: Box::new(move |dir| rivals::samba(&place.path("samba"), dir, clients, false)),
        },
        Pair {
            protocol: SMB,
            rival: "samba, both signed",
            ours: Box::new(move |dir| ours::smb(volary, dir, clients, "signed")),
            theirs: Box::new(move |dir| rivals::samba(&place.path("samba"), dir, clients, true)),
        },
        Pair {
            protocol: SMB,
            rival: "samba, ours signed",
            ours: Box::new(move |dir| ours::smb(volary, dir, clients, "signed")),
            theirs: Box::new(move |dir| rivals::samba(&place.path("samba"), dir, clients, false)),
        },
        Pair {
            protocol: NFS,
            rival: "nfs-ganesha",
            ours: Box::new(move |dir| ours::nfs(volary, dir, clients)),
            theirs: Box::new(move |dir| rivals::ganesha(&place.path("ganesha"), dir, clients)),
        },
        Pair {
            protocol: FUSE,
            rival: "passthrough_ll",
            ours: Box::new(move |dir| ours::fuse(volary, dir, &place.path("ours"), clients)),
            theirs: Box::new(move |dir| {
                rivals::passthrough(&passthrough, dir, &place.path("theirs"), clients)
            }),
        },
    ]
}

/// Runs both alternately, once to warm up and `rounds` times to count; each
/// server on a new directory. The rival begins: if it is not here, that is told at once.
fn alternate(place: &Place, pair: &Pair<'_>, rounds: usize) -> Result<(Phases, Phases)> {
    let (mut ours, mut theirs) = (Phases::default(), Phases::default());
    for round in 0..=rounds.max(1) {
        for (start, phases) in [(&pair.theirs, &mut theirs), (&pair.ours, &mut ours)] {
            let dir = place.served()?;
            let (server, client) = start(dir.path())?;
            let costs = client.run(&["peers", FILES, MEBIBYTES])?;
            drop(server);
            if round > 0 {
                phases.add(costs);
            }
        }
    }
    Ok((ours, theirs))
}
