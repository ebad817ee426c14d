//! The benchmarks of Almeida, "FIFS: A Framework for Implementing User-Mode
//! File Systems in Windows NT" (USENIX Windows NT Symposium 1999), section 5: a
//! directory of the host used directly, and through volary's servers, as the
//! paper uses NTFS directly and through FSWIN32.
//!
//! The paper's figures are graphs; where its text gives figures, they are
//! printed beside ours. Its `zip` is `tar` here.

mod build;

use crate::served::clients::Phases;
use crate::served::{Client, Clients, Place, Started, ours};
use anyhow::Result;
use std::io::Write;
use std::path::Path;

/// How the directory is reached.
const MEDIA: [&str; 4] = ["directly", "FUSE", "SMB", "NFS"];
/// How often each is run; the median counts.
const ROUNDS: usize = 3;

/// The paper's three benchmarks, as tables of seconds.
///
/// # Errors
/// If it is not run by root, if a compiler or a client's library is missing, or
/// if a program fails.
pub fn run(volary: &Path, out: &mut dyn Write) -> Result<()> {
    let place = Place::new(None)?;
    let clients = Clients::compile(&place)?;
    let bench = Bench {
        place: &place,
        clients: &clients,
        volary,
    };
    let large = [
        "sequential-write",
        "sequential-read",
        "random-write",
        "random-read",
        "read-again",
    ];
    for (figure, step, paper) in [
        (
            "Figure 5-1",
            "256",
            "reading 0.87 s against 0.15 s directly, 5.8 x",
        ),
        (
            "Figure 5-2",
            "8",
            "reading 1.14 s against 0.07 s directly, 16 x",
        ),
    ] {
        writeln!(out, "{figure}: a file of 8 MB, {step} KB at a time (ms)")?;
        writeln!(out, "  the paper, through FSWIN32: {paper}")?;
        bench.table(&["large", step], &large, out)?;
    }
    let small = ["create", "read", "write", "write-sync", "delete"];
    writeln!(out, "Figure 5-3: 1000 files of 1 KB in 10 directories (ms)")?;
    writeln!(
        out,
        "  the paper: all but deletion dearer by a constant amount a file"
    )?;
    bench.table(&["small"], &small, out)?;
    writeln!(
        out,
        "Figures 5-4 and 5-5: building a tree of 209 files (ms)"
    )?;
    writeln!(
        out,
        "  the paper: what is not compiling takes 2 to 4 times as long; a mount is needed"
    )?;
    bench.build(out)
}

struct Bench<'a> {
    place: &'a Place,
    clients: &'a Clients,
    volary: &'a Path,
}

impl Bench<'_> {
    /// Starts what reaches `dir` in this way.
    fn start(&self, medium: &str, dir: &Path) -> Result<Started> {
        match medium {
            "FUSE" => ours::fuse(self.volary, dir, &self.place.path("mounted"), self.clients),
            "SMB" => ours::smb(self.volary, dir, self.clients, "signed"),
            "NFS" => ours::nfs(self.volary, dir, self.clients),
            _ => Ok((Box::new(()), self.clients.posix(dir)?)),
        }
    }

    fn median_of(
        &self,
        medium: &str,
        work: impl Fn(Client, &Path) -> Result<Vec<(String, f64)>>,
    ) -> Result<Phases> {
        let mut phases = Phases::default();
        for round in 0..=ROUNDS {
            let dir = self.place.served()?;
            let (server, client) = self.start(medium, dir.path())?;
            let costs = work(client, dir.path())?;
            drop(server);
            // The first round warms up.
            if round > 0 {
                phases.add(costs);
            }
        }
        Ok(phases)
    }

    fn table(&self, what: &[&str], rows: &[&str], out: &mut dyn Write) -> Result<()> {
        let mut media = Vec::new();
        for medium in MEDIA {
            media.push(self.median_of(medium, |client, _| client.run(what))?);
        }
        print(&MEDIA, &media, rows, out)
    }

    fn build(&self, out: &mut dyn Write) -> Result<()> {
        let archive = build::archive(self.place)?;
        let mut media = Vec::new();
        for medium in ["directly", "FUSE"] {
            let mounted = self.place.path("mounted");
            media.push(self.median_of(medium, |_, dir| {
                let dir = if medium == "FUSE" { &mounted } else { dir };
                build::run(dir, &archive)
            })?);
        }
        print(&["directly", "FUSE"], &media, &build::PHASES, out)
    }
}

/// Milliseconds, and in brackets how many times those of the first column.
fn print(names: &[&str], media: &[Phases], rows: &[&str], out: &mut dyn Write) -> Result<()> {
    write!(out, "  {:18}", "")?;
    for name in names {
        write!(out, "{name:>18}")?;
    }
    writeln!(out)?;
    for row in rows {
        write!(out, "  {row:18}")?;
        let first = media
            .first()
            .and_then(|phases| phases.of(row).ok().map(|all| all.median));
        for phases in media {
            let text = match (phases.of(row).ok().map(|all| all.median), first) {
                (Some(cost), Some(first)) => {
                    format!("{:.1} ({:.1} x)", cost * 1e3, cost / first)
                }
                // The client has no such call.
                _ => "-".to_owned(),
            };
            write!(out, "{text:>18}")?;
        }
        writeln!(out)?;
    }
    writeln!(out)?;
    Ok(())
}
