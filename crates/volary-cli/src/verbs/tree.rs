//! `volary tree`.

use crate::exit::{Done, Exit};
use crate::out::{self, List, Out};
use crate::row::{self, Descent, NodeJson, Row};
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
                dirs: 0,
                files: 0,
            };
            if self.json {
                drawing.json(&at)?;
            } else {
                writeln!(drawing.out, "{at}")?;
                drawing.branches(&at, &top.attr)?;
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

    /// Draws what is below a directory: a line for each entry, with the branches that lead to it.
    fn branches(&mut self, at: &At, top: &Attr) -> Done {
        let session = self.session.clone();
        let mut descent = Descent::new(&session, at);
        let mut stem = Stem::default();
        let mut dir = *top;
        loop {
            self.enter(&mut descent, &dir)?;
            dir = loop {
                let Some(row) = descent.next() else {
                    return Ok(());
                };
                let branch = stem.branch(descent.depth(), descent.is_last());
                self.line(branch, &row)?;
                if row.attr.kind == FileKind::Dir {
                    break row.attr;
                }
            };
        }
    }

    /// Enters the directory where the walk stands, if the drawing goes so deep.
    fn enter(&mut self, descent: &mut Descent<'_>, dir: &Attr) -> Done {
        let depth = descent.depth();
        if dir.kind != FileKind::Dir || self.how.level.is_some_and(|max| depth >= max) {
            return Ok(());
        }
        let (how, tally) = (self.how, &mut self.tally);
        descent.enter(dir, &mut |fail| tally.take(Err(fail)), &mut |_, rows| {
            rows.retain(|row| how.shows(&row.name, depth + 1));
            row::sort(rows);
            Ok(())
        })
    }

    fn line(&mut self, branch: &str, row: &Row) -> Done {
        write!(self.out, "{branch}{}", volary::escape(&row.name))?;
        if let Some(target) = row::target(&self.session, &row.attr) {
            write!(self.out, " -> {}", volary::escape(&target))?;
        }
        self.out.write_all(b"\n")?;
        match row.attr.kind {
            FileKind::Dir => self.dirs += 1,
            _ => self.files += 1,
        }
        Ok(())
    }
}

/// The branches before a name.
#[derive(Default)]
struct Stem {
    text: String,
    /// The length of the text before the branch of each level.
    levels: Vec<usize>,
}

impl Stem {
    /// Returns the branches that lead to an entry `depth` deep, at least 1. It comes after the one
    /// that was asked for before.
    fn branch(&mut self, depth: usize, is_last: bool) -> &str {
        if depth <= self.levels.len() {
            self.levels.truncate(depth);
            let len = self.levels.pop().unwrap_or(0);
            self.text.truncate(len);
        } else if let Some(len) = self.levels.last() {
            let goes_on = self.text.get(*len..) == Some(BRANCH);
            self.text.truncate(*len);
            self.text.push_str(if goes_on { "│   " } else { "    " });
        }
        self.levels.push(self.text.len());
        self.text.push_str(if is_last { LAST } else { BRANCH });
        &self.text
    }
}

const BRANCH: &str = "├── ";
const LAST: &str = "└── ";
