//! `volary stat`, `volary readlink`: what is known of a node.

use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::out::{self, List};
use crate::row::{self, NodeJson};
use crate::volumes::{self, At, AttachArgs, Use};
use std::ffi::OsString;
use std::io::Write;
use volary::{Attr, FileKind};

/// Shows all that is known of files and directories.
///
/// Times are in UTC.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary stat disk.img:/README.txt
  volary stat --json disk.img:/docs")]
pub(crate) struct Stat {
    /// VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    /// What a symlink leads to, not the symlink
    #[arg(short = 'L', long)]
    dereference: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

impl Stat {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mut out = out::out();
        let mut list = if self.json {
            Some(List::begin(&mut out)?)
        } else {
            None
        };
        let exit = volumes::for_each(&self.places, &self.attach, Use::Look, |session, at| {
            let find = if self.dereference {
                volumes::find
            } else {
                volumes::find_itself
            };
            let attr = find(session, at)?.attr;
            let target = row::target(session, &attr);
            match &mut list {
                None => Ok(out.write_all(text(at, &attr, target.as_deref()).as_bytes())?),
                Some(list) => list.push(
                    &mut out,
                    &NodeJson::new(&at.path, at.name(), &attr, target.as_deref()),
                ),
            }
        })?;
        if let Some(list) = list {
            list.end(&mut out)?;
        }
        out::end(out)?;
        Ok(exit)
    }
}

fn text(at: &At, attr: &Attr, target: Option<&[u8]>) -> String {
    let letters = row::mode_letters(attr);
    let letters = String::from_utf8_lossy(&letters);
    let arrow = target
        .map(|t| format!(" -> {}", volary::escape(t)))
        .unwrap_or_default();
    let mut rows = vec![
        ["  File:", &format!("{at}{arrow}")]
            .map(String::from)
            .to_vec(),
        vec!["  Kind:".into(), row::kind_word(attr.kind).into()],
        vec![
            "  Size:".into(),
            format!("{} bytes, {} on the volume", attr.size, attr.allocated),
        ],
        vec!["  Mode:".into(), format!("{:04o} ({letters})", attr.mode)],
        vec!["  Owner:".into(), format!("{}:{}", attr.uid, attr.gid)],
        vec!["  Links:".into(), attr.nlink.to_string()],
        vec![
            "  Node:".into(),
            format!("{}, generation {}", attr.node.ino, attr.node.generation),
        ],
    ];
    if matches!(attr.kind, FileKind::CharDevice | FileKind::BlockDevice) {
        let numbers = format!("{}, {}", row::major(attr.rdev), row::minor(attr.rdev));
        rows.push(vec!["  Device:".into(), numbers]);
    }
    if let Some(dos) = attr.dos {
        rows.push(vec!["  DOS:".into(), row::dos_letters(dos)]);
    }
    let times = [
        ("  Accessed:", Some(attr.atime)),
        ("  Modified:", Some(attr.mtime)),
        ("  Changed:", Some(attr.ctime)),
        ("  Born:", attr.btime),
    ];
    for (key, time) in times {
        if let Some(time) = time {
            rows.push(vec![key.into(), format!("{} UTC", clock::to_second(time))]);
        }
    }
    out::columns(&rows, &[])
}

/// Prints what symlinks hold.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  volary readlink unix.img:/link")]
pub(crate) struct Readlink {
    /// VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    #[command(flatten)]
    attach: AttachArgs,
}

impl Readlink {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mut out = out::out();
        let exit = volumes::for_each(&self.places, &self.attach, Use::Look, |session, at| {
            let found = volumes::find_itself(session, at)?;
            if found.attr.kind != FileKind::Symlink {
                return Err(Fail::new(Exit::Failed, format!("{at}: not a symlink")));
            }
            let target = session.readlink(found.node).map_err(|e| Fail::at(at, &e))?;
            Ok(writeln!(out, "{}", volary::escape(&target))?)
        })?;
        out::end(out)?;
        Ok(exit)
    }
}
