//! `volary versions`: what a file held before, and how much of that is kept.

use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::out::{self, List};
use crate::volumes::{self, At, AttachArgs, Use};
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use volary::{Attr, Kind, NodeId, Session, SetXattr};

/// Shows the versions of files, and sets how many are kept.
///
/// On a Cedar volume, a file that keeps more than one version leaves what it
/// held as an older version when it is emptied or replaced. Version 3 of a file
/// is read, copied or removed as FILE!3; moved to FILE it comes back as the newest.
/// What a directory keeps is what new files in it keep.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary mkfs -t cedar --size 16M cedar.img
  volary cp disk.img:/README.txt cedar.img:/notes.txt
  volary versions --keep 5 cedar.img:/notes.txt
  volary cp disk.img:/README.txt cedar.img:/notes.txt
  volary versions cedar.img:/notes.txt
  volary mv 'cedar.img:/notes.txt!1' cedar.img:/notes.txt")]
pub(crate) struct Versions {
    /// VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    /// Keeps so many versions, with the newest
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    keep: Option<u16>,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

/// Where Cedar volumes have these.
const KEEP: &[u8] = b"user.cedar.keep";
const VERSIONS: &[u8] = b"user.cedar.versions";

#[derive(Serialize)]
struct VersionJson<'a> {
    path: String,
    version: &'a str,
    newest: bool,
    size: u64,
    modified: String,
}

impl Versions {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        if let Some(keep) = self.keep {
            return volumes::for_each(&self.places, &self.attach, Use::Change, |session, at| {
                let node = volumes::find(session, at)?.node;
                let value = keep.to_string();
                let set = session.setxattr(node, KEEP, value.as_bytes(), SetXattr::Any);
                set.map_err(|e| Fail::at(at, &e))
            });
        }
        let mut out = out::out();
        let mut list = match self.json {
            true => Some(List::begin(&mut out)?),
            false => None,
        };
        let exit = volumes::for_each(&self.places, &self.attach, Use::Look, |session, at| {
            let found = volumes::find(session, at)?;
            let numbers = numbers(session, at, found.node)?;
            let mut rows = Vec::new();
            for number in numbers.split(' ') {
                let newest = rows.is_empty();
                let place = at.with_path([&at.path, &b"!"[..], number.as_bytes()].concat());
                let attr = match newest {
                    true => found.attr,
                    false => volumes::find_itself(session, &place)?.attr,
                };
                if let Some(list) = &mut list {
                    list.push(&mut out, &json(&place, number, newest, &attr))?;
                }
                rows.push(row(&place, &attr));
            }
            if !self.json {
                out.write_all(out::columns(&rows, &[true]).as_bytes())?;
            }
            Ok(())
        })?;
        if let Some(list) = list {
            list.end(&mut out)?;
        }
        out::end(out)?;
        Ok(exit)
    }
}

/// Returns the versions that there are, the newest first.
fn numbers(session: &Session, at: &At, node: NodeId) -> Done<String> {
    match session.getxattr(node, VERSIONS) {
        Ok(value) => Ok(String::from_utf8_lossy(&value).into_owned()),
        Err(e) if e == Kind::NoXattr || e == Kind::Unsupported => {
            let words = format!("{at}: it keeps no versions; --keep has a Cedar volume keep them");
            Err(Fail::new(Exit::Failed, words))
        }
        Err(e) => Err(Fail::at(at, &e)),
    }
}

fn row(place: &At, attr: &Attr) -> Vec<String> {
    let time = format!("{} UTC", clock::to_second(attr.mtime));
    vec![attr.size.to_string(), time, place.to_string()]
}

fn json<'a>(place: &At, version: &'a str, newest: bool, attr: &Attr) -> VersionJson<'a> {
    VersionJson {
        path: volary::escape(&place.path).to_string(),
        version,
        newest,
        size: attr.size,
        modified: clock::iso(attr.mtime),
    }
}
