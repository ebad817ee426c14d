//! `volary ls`.

use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::out::{self, List, Out};
use crate::row::{self, Descent, NodeJson, Row};
use crate::volumes::{At, AttachArgs, Tally, Use, Volumes};
use std::cmp::Ordering;
use std::ffi::OsString;
use std::io::Write;
use volary::{Attr, FileKind, Follow, Session};

/// Lists directories.
///
/// Times are in UTC. Owners are numbers: the names of the host are not the
/// volume's.
#[derive(clap::Args, Debug)]
#[command(
    disable_help_flag = true,
    after_help = "\
Examples:
  volary ls disk.img:/
  volary ls -la disk.img:/docs
  volary ls -R --json disk.img"
)]
pub(crate) struct Ls {
    /// What to list: VOLUME or VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    /// Modes, owners, sizes and times too
    #[arg(short)]
    long: bool,
    /// Names that begin with a dot too
    #[arg(short, long)]
    all: bool,
    /// All below, too
    #[arg(short = 'R', long)]
    recursive: bool,
    /// One name a line
    #[arg(short = '1')]
    one: bool,
    /// Node numbers too
    #[arg(short, long)]
    inode: bool,
    /// Sizes as 1.5K, 64M
    #[arg(short = 'h', long)]
    human_readable: bool,
    /// Directories themselves, not what is in them
    #[arg(short, long)]
    directory: bool,
    /// Newest first
    #[arg(short = 't', conflicts_with = "by_size")]
    by_time: bool,
    /// Largest first
    #[arg(short = 'S')]
    by_size: bool,
    /// In the order in which they lie
    #[arg(short = 'U', conflicts_with_all = ["by_size", "by_time"])]
    unsorted: bool,
    /// The other way round
    #[arg(short, long)]
    reverse: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    #[command(flatten)]
    attach: AttachArgs,
}

impl Ls {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let places = At::parse_all(&self.places)?;
        let is_terminal = out::is_terminal();
        Volumes::run(&self.attach, |volumes| {
            let mut listing = Listing {
                how: self,
                out: out::out(),
                list: None,
                tally: Tally::default(),
                headed: self.recursive || places.len() > 1,
                first: true,
                width: if is_terminal && !self.one {
                    out::width()
                } else {
                    0
                },
                line: Vec::new(),
            };
            if self.json {
                listing.list = Some(List::begin(&mut listing.out)?);
            }
            for at in &places {
                let session = volumes.session(&at.source, Use::Look)?;
                let listed = listing.place(&session, at);
                listing.tally.take(listed)?;
            }
            listing.end()
        })
    }

    fn order(&self, rows: &mut Vec<Row>) {
        if !self.all {
            rows.retain(|r| !r.name.starts_with(b"."));
        }
        let by_name = |a: &Row, b: &Row| a.name.cmp(&b.name);
        let order: fn(&Row, &Row) -> Ordering = match (self.by_time, self.by_size) {
            (true, _) => |a, b| b.attr.mtime.cmp(&a.attr.mtime),
            (_, true) => |a, b| b.attr.size.cmp(&a.attr.size),
            _ => |_, _| Ordering::Equal,
        };
        if !self.unsorted {
            rows.sort_unstable_by(|a, b| order(a, b).then_with(|| by_name(a, b)));
        }
        if self.reverse {
            rows.reverse();
        }
    }
}

/// A listing on its way out.
struct Listing<'a> {
    how: &'a Ls,
    out: Out,
    /// The JSON array, if it is one.
    list: Option<List>,
    tally: Tally,
    /// Whether directories have their names above them.
    headed: bool,
    first: bool,
    /// Columns of the terminal; 0 for one name a line.
    width: usize,
    /// Kept for its room.
    line: Vec<u8>,
}

impl Listing<'_> {
    /// A place that the user named.
    fn place(&mut self, session: &Session, at: &At) -> Done {
        let follow = if self.how.long || self.how.directory {
            Follow::No
        } else {
            Follow::Yes
        };
        let top = session
            .walk(&at.path, follow)
            .map_err(|e| Fail::at(at, &e))?;
        if top.attr.kind == FileKind::Dir && !self.how.directory {
            return self.dirs(session, at, &top.attr);
        }
        let row = Row {
            name: at.path.clone(),
            attr: top.attr,
        };
        self.rows(session, &at.with_path(Vec::new()), &[row])
    }

    /// A directory and, if wanted, all below it.
    fn dirs(&mut self, session: &Session, at: &At, top: &Attr) -> Done {
        let mut descent = Descent::new(session, at);
        let mut dir = *top;
        loop {
            let mut tally = std::mem::take(&mut self.tally);
            let mut failed = |fail| tally.take(Err(fail));
            let entered = descent.enter(&dir, &mut failed, &mut |at, rows| {
                self.how.order(rows);
                self.head(at)?;
                self.rows(session, at, rows)?;
                rows.retain(|r| self.how.recursive && r.attr.kind == FileKind::Dir);
                Ok(())
            });
            self.tally = tally;
            entered?;
            match descent.next() {
                Some(row) => dir = row.attr,
                None => return Ok(()),
            }
        }
    }

    fn head(&mut self, at: &At) -> Done {
        if self.list.is_some() || !self.headed {
            return Ok(());
        }
        let gap = if std::mem::take(&mut self.first) {
            ""
        } else {
            "\n"
        };
        Ok(writeln!(self.out, "{gap}{at}:")?)
    }

    fn rows(&mut self, session: &Session, at: &At, rows: &[Row]) -> Done {
        if self.list.is_some() {
            return self.json(session, at, rows);
        }
        if self.how.long {
            return self.long(session, rows);
        }
        if self.width > 0 {
            return self.columns(rows);
        }
        for row in rows {
            self.line.clear();
            self.push_inode(&row.attr);
            out::push_name(&mut self.line, &row.name);
            self.line.push(b'\n');
            self.out.write_all(&self.line)?;
        }
        Ok(())
    }

    fn push_inode(&mut self, attr: &Attr) {
        if self.how.inode {
            out::push(&mut self.line, &format_args!("{} ", attr.node.ino));
        }
    }

    fn json(&mut self, session: &Session, at: &At, rows: &[Row]) -> Done {
        let Some(list) = &mut self.list else {
            return Ok(());
        };
        for row in rows {
            let path = if at.path.is_empty() {
                row.name.clone()
            } else {
                at.join(&row.name).path
            };
            let target = row::target(session, &row.attr);
            let json = NodeJson::new(&path, &row.name, &row.attr, target.as_deref());
            list.push(&mut self.out, &json)?;
        }
        Ok(())
    }

    fn long(&mut self, session: &Session, rows: &[Row]) -> Done {
        let width = |f: &dyn Fn(&Attr) -> usize| rows.iter().map(|r| f(&r.attr)).max().unwrap_or(0);
        let sizes = width(&|a| self.size(a).len());
        let owners = width(&|a| digits(a.uid));
        let groups = width(&|a| digits(a.gid));
        let links = width(&|a| digits(a.nlink));
        for row in rows {
            let attr = &row.attr;
            self.line.clear();
            self.push_inode(attr);
            self.line.extend_from_slice(&row::mode_letters(attr));
            let size = self.size(attr);
            let figures = format_args!(
                " {:>links$} {:>owners$} {:>groups$} {size:>sizes$} ",
                attr.nlink, attr.uid, attr.gid
            );
            out::push(&mut self.line, &figures);
            clock::push_minute(&mut self.line, attr.mtime);
            self.line.push(b' ');
            out::push_name(&mut self.line, &row.name);
            if let Some(target) = row::target(session, attr) {
                self.line.extend_from_slice(b" -> ");
                out::push_name(&mut self.line, &target);
            }
            self.line.push(b'\n');
            self.out.write_all(&self.line)?;
        }
        Ok(())
    }

    /// Returns the size, or the numbers of a device.
    fn size(&self, attr: &Attr) -> String {
        match attr.kind {
            FileKind::CharDevice | FileKind::BlockDevice => {
                format!("{}, {}", row::major(attr.rdev), row::minor(attr.rdev))
            }
            _ => out::size(attr.size, self.how.human_readable),
        }
    }

    /// Names in columns, downwards, as many columns as fit.
    fn columns(&mut self, rows: &[Row]) -> Done {
        let names: Vec<String> = rows.iter().map(|row| self.cell(row)).collect();
        let widths: Vec<usize> = names.iter().map(|n| out::cells(n)).collect();
        let widest = widths.iter().copied().max().unwrap_or(0) + 2;
        let columns = (self.width / widest).max(1);
        let lines = names.len().div_ceil(columns);
        for line in 0..lines {
            let mut text = String::new();
            for (name, width) in names.iter().zip(&widths).skip(line).step_by(lines) {
                text.push_str(name);
                text.push_str(&" ".repeat(widest - width));
            }
            writeln!(self.out, "{}", text.trim_end())?;
        }
        Ok(())
    }

    fn cell(&self, row: &Row) -> String {
        let name = volary::escape(&row.name);
        if self.how.inode {
            format!("{} {name}", row.attr.node.ino)
        } else {
            name.to_string()
        }
    }

    fn end(mut self) -> Done<Exit> {
        if let Some(list) = self.list.take() {
            list.end(&mut self.out)?;
        }
        out::end(self.out)?;
        Ok(self.tally.exit())
    }
}

/// Digits of a number.
fn digits(n: u32) -> usize {
    n.checked_ilog10().map_or(1, |d| d as usize + 1)
}
