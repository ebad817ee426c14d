//! `volary du`, `volary df`: how much room things take.

use crate::exit::{Done, Exit, Fail};
use crate::out::{self, List};
use crate::row::{self, Descent};
use crate::volumes::{self, At, AttachArgs, Tally, Use, Volumes};
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use volary::{Attr, FileKind, Session};

/// Shows how much room directories take, with all that is below.
#[derive(clap::Args, Debug)]
#[command(
    disable_help_flag = true,
    after_help = "\
Examples:
  volary du -h disk.img:/
  volary du -s disk.img:/docs disk.img:/README.txt"
)]
pub(crate) struct Du {
    /// VOLUME or VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    /// Only the sum of each place
    #[arg(short, long)]
    summarize: bool,
    /// Files too
    #[arg(short, long)]
    all: bool,
    /// Sizes as 1.5K, 64M; else in units of 1024 bytes
    #[arg(short = 'h', long)]
    human_readable: bool,
    /// In bytes
    #[arg(short, long, conflicts_with = "human_readable")]
    bytes: bool,
    /// Lengths of files, not the room that they take
    #[arg(long)]
    apparent_size: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    #[command(flatten)]
    attach: AttachArgs,
}

#[derive(Serialize)]
struct UsedJson {
    path: String,
    bytes: u64,
}

/// What prints a line: a place, its room in bytes.
type Print<'a> = dyn FnMut(&At, u64) -> Done + 'a;

impl Du {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mut out = out::out();
        let mut list = if self.json {
            Some(List::begin(&mut out)?)
        } else {
            None
        };
        let mut tally = Tally::default();
        let exit = volumes::for_each(&self.places, &self.attach, Use::Look, |session, at| {
            let print: &mut Print<'_> = &mut |at, bytes| match &mut list {
                Some(list) => {
                    let path = volary::escape(&at.path).to_string();
                    list.push(&mut out, &UsedJson { path, bytes })
                }
                None => Ok(writeln!(out, "{}\t{at}", self.figure(bytes))?),
            };
            self.sum(session, at, print, &mut |fail| tally.take(Err(fail)))
        })?;
        if let Some(list) = list {
            list.end(&mut out)?;
        }
        out::end(out)?;
        Ok(if exit == Exit::Done {
            tally.exit()
        } else {
            exit
        })
    }

    fn figure(&self, bytes: u64) -> String {
        match (self.human_readable, self.bytes) {
            (true, _) => out::human(bytes),
            (_, true) => bytes.to_string(),
            _ => bytes.div_ceil(1024).to_string(),
        }
    }

    /// Adds up a place and all below it, and prints what is asked for: a directory after what is in
    /// it.
    fn sum(
        &self,
        session: &Session,
        at: &At,
        print: &mut Print<'_>,
        failed: &mut dyn FnMut(Fail) -> Done,
    ) -> Done {
        let mut attr = volumes::find_itself(session, at)?.attr;
        let mut descent = Descent::new(session, at);
        let mut open = Vec::new();
        loop {
            self.close(&mut open, descent.depth(), print)?;
            open.push(Sum {
                at: descent.at().clone(),
                is_dir: attr.kind == FileKind::Dir,
                bytes: self.room(&attr),
            });
            if attr.kind == FileKind::Dir {
                descent.enter(&attr, failed, &mut |_, rows| {
                    row::sort(rows);
                    Ok(())
                })?;
            }
            match descent.next() {
                Some(row) => attr = row.attr,
                None => return self.close(&mut open, 0, print),
            }
        }
    }

    /// Ends the sums that lie `depth` deep or deeper: prints them, and adds each to the one above.
    fn close(&self, open: &mut Vec<Sum>, depth: usize, print: &mut Print<'_>) -> Done {
        while open.len() > depth
            && let Some(sum) = open.pop()
        {
            if open.is_empty() || !self.summarize && (sum.is_dir || self.all) {
                print(&sum.at, sum.bytes)?;
            }
            if let Some(above) = open.last_mut() {
                above.bytes = above.bytes.saturating_add(sum.bytes);
            }
        }
        Ok(())
    }

    fn room(&self, attr: &Attr) -> u64 {
        match self.apparent_size {
            true => attr.size,
            false => attr.allocated,
        }
    }
}

/// The room of a node and of what was met below it, in bytes.
struct Sum {
    at: At,
    is_dir: bool,
    bytes: u64,
}

/// Shows how full volumes are.
#[derive(clap::Args, Debug)]
#[command(
    disable_help_flag = true,
    after_help = "\
Examples:
  volary df -h disk.img
  volary df --json disk.img unix.img"
)]
pub(crate) struct Df {
    /// The volumes
    #[arg(required = true, value_name = "VOLUME")]
    volumes: Vec<OsString>,
    /// Sizes as 1.5K, 64M; else in units of 1024 bytes
    #[arg(short = 'h', long)]
    human_readable: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    #[command(flatten)]
    attach: AttachArgs,
}

#[derive(Serialize)]
struct FullJson {
    volume: String,
    size: u64,
    used: u64,
    available: u64,
    block_size: u32,
}

impl Df {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let places = At::parse_all(&self.volumes)?;
        let mut found = Vec::new();
        for at in &places {
            // One after the other: two partitions of an image are two volumes.
            found.push(Volumes::run(&self.attach, |volumes| {
                let session = volumes.session(&at.source, Use::Look)?;
                let fs = session.statfs().map_err(|e| Fail::at(&at.source, &e))?;
                Ok(FullJson {
                    volume: at.source.to_string(),
                    size: fs.size,
                    used: fs.size.saturating_sub(fs.free),
                    available: fs.available,
                    block_size: fs.block_size,
                })
            })?);
        }
        let mut out = out::out();
        if self.json {
            out::json(&mut out, &found)?;
        } else {
            out.write_all(self.table(&found).as_bytes())?;
        }
        out::end(out)?;
        Ok(Exit::Done)
    }

    fn table(&self, found: &[FullJson]) -> String {
        let size = |n: u64| {
            if self.human_readable {
                out::human(n)
            } else {
                n.div_ceil(1024).to_string()
            }
        };
        let head = if self.human_readable {
            "Size"
        } else {
            "1K-blocks"
        };
        let mut rows = vec![
            ["Volume", head, "Used", "Available", "Use%"]
                .map(String::from)
                .to_vec(),
        ];
        for fs in found {
            let all = u128::from(fs.used) + u128::from(fs.available);
            let percent = if all == 0 {
                0
            } else {
                (u128::from(fs.used) * 100).div_ceil(all)
            };
            rows.push(vec![
                fs.volume.clone(),
                size(fs.size),
                size(fs.used),
                size(fs.available),
                format!("{percent}%"),
            ]);
        }
        out::columns(&rows, &[false, true, true, true, true])
    }
}
