//! `volary cat`, `volary sha256sum`: what is in files.

use crate::exit::{Done, Exit, Fail};
use crate::out::{self, List, Out};
use crate::row;
use crate::volumes::{self, At, AttachArgs, Tally, Use};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::io::Write;
use volary::{FileKind, Kind, Mode, NodeId, Session};

/// Prints files.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary cat disk.img:/README.txt
  volary cat disk.img:/README.txt disk.img:/docs/a.txt | wc -c")]
pub(crate) struct Cat {
    /// The files: VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    #[command(flatten)]
    attach: AttachArgs,
}

impl Cat {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mut out = out::Raw;
        volumes::for_each(&self.places, &self.attach, Use::Look, |session, at| {
            let found = volumes::find(session, at)?;
            read_whole(session, found.node, at, &mut |bytes| {
                Ok(out.write_all(bytes)?)
            })
        })
    }
}

/// Bytes that are read at once.
const STRETCH: usize = 1 << 20;

/// Reads a file from its beginning to its end.
///
/// # Errors
/// In one line; of `each`.
pub(crate) fn read_whole(
    session: &Session,
    node: NodeId,
    at: &At,
    each: &mut dyn FnMut(&[u8]) -> Done,
) -> Done {
    let fail = |e: volary::Error| Fail::at(at, &e);
    let attr = session.getattr(node).map_err(fail)?;
    if attr.kind == FileKind::Dir {
        return Err(fail(Kind::IsDir.into()));
    }
    let open = session.open(node, Mode::Read).map_err(fail)?;
    let len = usize::try_from(attr.size)
        .unwrap_or(STRETCH)
        .clamp(1, STRETCH);
    let mut buffer = vec![0; len];
    let mut offset = 0;
    let result = loop {
        let read = session.read(open, offset, &mut buffer).map_err(fail);
        let step = match read {
            Ok(0) => break Ok(()),
            Ok(n) => each(buffer.get(..n).unwrap_or_default()).map(|()| n),
            Err(e) => Err(e),
        };
        match step.and_then(|n| crate::interrupt::check().map(|()| n)) {
            Ok(n) => offset += n as u64,
            Err(e) => break Err(e),
        }
    };
    let closed = session.close(open).map_err(fail);
    result.and(closed)
}

/// Prints SHA-256 sums of files, in the form of sha256sum.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary sha256sum disk.img:/README.txt
  volary sha256sum -r disk.img:/docs
  volary sha256sum -r --json disk.img:/")]
pub(crate) struct Sha256sum {
    /// The files: VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    /// All files in directories and below
    #[arg(short, long)]
    recursive: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

#[derive(Serialize)]
struct SumJson {
    path: String,
    sha256: String,
    size: u64,
}

impl Sha256sum {
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
            if !self.recursive {
                let found = volumes::find(session, at)?;
                return sum(session, found.node, at, &mut out, &mut list);
            }
            row::descend(
                session,
                at,
                &mut |at, attr, _| match attr.kind {
                    FileKind::File => sum(session, attr.node, at, &mut out, &mut list),
                    _ => Ok(()),
                },
                &mut |fail| tally.take(Err(fail)),
            )
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
}

fn sum(session: &Session, node: NodeId, at: &At, out: &mut Out, list: &mut Option<List>) -> Done {
    let mut hash = Sha256::new();
    let mut size = 0;
    read_whole(session, node, at, &mut |bytes| {
        hash.update(bytes);
        size += bytes.len() as u64;
        Ok(())
    })?;
    let sha256: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    match list {
        None => Ok(writeln!(out, "{sha256}  {at}")?),
        Some(list) => list.push(
            out,
            &SumJson {
                path: volary::escape(&at.path).to_string(),
                sha256,
                size,
            },
        ),
    }
}
