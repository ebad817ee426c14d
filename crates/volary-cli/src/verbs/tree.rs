//! `volary tree`.

use crate::exit::{Done, Exit};
use crate::out::{self, List, Out};
use crate::row::{self, NodeJson, Seen};
use crate::volumes::{self, At, AttachArgs, Tally, Use, Volumes};
use std::ffi::OsString;
use std::io::Write;
use volary::{Attr, FileKind, Session};

/// Draws what is in a directory and below.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary tree disk.img
  volary tree -L 2 disk.img:/docs
  volary tree --json disk.img:/docs")]
pub(crate) struct Tree {
    /// Where to begin: VOLUME or VOLUME:/path
    #[arg(value_name = "PLACE")]
    place: OsString,
    /// Names that begin with a dot too
    #[arg(short, long)]
    all: bool,
    /// How deep to go
    #[arg(short = 'L', long, value_name = "LEVELS")]
    level: Option<usize>,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

impl Tree {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let at = At::parse(&self.place)?;
        Volumes::run(&self.attach, |volumes| {
            let session = volumes.session(&at.source, Use::Look)?;
            let top = volumes::find(&session, &at)?;
            let mut drawing = Drawing {
                how: self,
                session,
                out: out::out(),
                tally: Tally::default(),
                seen: Seen::default(),
                dirs: 0,
                files: 0,
            };
            if self.json {
                drawing.json(&at)?;
            } else {
                writeln!(drawing.out, "{at}")?;
                drawing.branches(&at, &top.attr, "", 0)?;
                writeln!(
                    drawing.out,
                    "\n{} directories, {} files",
                    drawing.dirs, drawing.files
                )?;
            }
            out::end(drawing.out)?;
            Ok(drawing.tally.exit())
        })
    }

    fn shows(&self, name: &[u8], depth: usize) -> bool {
        let is_hidden = !self.all && name.starts_with(b".");
        (depth == 0 || !is_hidden) && self.level.is_none_or(|max| depth <= max)
    }
}

struct Drawing<'a> {
    how: &'a Tree,
    session: Session,
    out: Out,
    tally: Tally,
    seen: Seen,
    dirs: u64,
    files: u64,
}

impl Drawing<'_> {
    fn json(&mut self, at: &At) -> Done {
        let mut list = List::begin(&mut self.out)?;
        let Self {
            how,
            session,
            out,
            tally,
            ..
        } = self;
        row::descend(
            session,
            at,
            &mut |at, attr, depth| {
                if !how.shows(at.name(), depth) {
                    return Ok(());
                }
                let target = row::target(session, attr);
                list.push(
                    out,
                    &NodeJson::new(&at.path, at.name(), attr, target.as_deref()),
                )
            },
            &mut |fail| tally.take(Err(fail)),
        )?;
        list.end(&mut self.out)
    }

    /// What is in a directory, with `stem` before each line. As deep as a path
    /// can be: [`Seen`] sees to it.
    fn branches(&mut self, at: &At, dir: &Attr, stem: &str, depth: usize) -> Done {
        if dir.kind != FileKind::Dir || self.how.level.is_some_and(|max| depth >= max) {
            return Ok(());
        }
        if let Err(fail) = self.seen.enter(at, dir) {
            return self.tally.take(Err(fail));
        }
        let tally = &mut self.tally;
        let mut rows = row::sorted(&self.session, dir, at, &mut |fail| tally.take(Err(fail)))?;
        rows.retain(|r| self.how.shows(&r.name, depth + 1));
        let count = rows.len();
        for (i, row) in rows.iter().enumerate() {
            let is_last = i + 1 == count;
            let (branch, space) = if is_last {
                ("└── ", "    ")
            } else {
                ("├── ", "│   ")
            };
            write!(self.out, "{stem}{branch}{}", volary::escape(&row.name))?;
            if let Some(target) = row::target(&self.session, &row.attr) {
                write!(self.out, " -> {}", volary::escape(&target))?;
            }
            self.out.write_all(b"\n")?;
            if row.attr.kind == FileKind::Dir {
                self.dirs += 1;
                let stem = format!("{stem}{space}");
                self.branches(&at.join(&row.name), &row.attr, &stem, depth + 1)?;
            } else {
                self.files += 1;
            }
        }
        Ok(())
    }
}
