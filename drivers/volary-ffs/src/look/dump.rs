//! Prints structures as stored.

use crate::directory::dir::{DAMAGE_MAX, Dir};
use crate::disk::cache::{LOOK_MEMORY, cache};
use crate::disk::ondisk::{Field, Ufs1Dinode, Ufs2Dinode};
use crate::disk::superblock::Found;
use crate::disk::volume::{Variant, Volume};
use crate::groups::cg::Group;
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use crate::inodes::xattr;
use std::fmt;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, FileKind, Kind, OptionSpec, Result, escape};
use volary_ondisk::dump::{Asked, Out};

pub(crate) const TOPICS: &[OptionSpec] = &[
    OptionSpec {
        name: "superblock",
        value: "[SECTOR]",
        help: "the superblock's fields; those of the replica at a sector of 512 bytes",
    },
    OptionSpec {
        name: "superblocks",
        value: "",
        help: "all superblocks that are found on the device, the replicas among them",
    },
    OptionSpec {
        name: "group",
        value: "NUMBER",
        help: "the head of a cylinder group",
    },
    OptionSpec {
        name: "bitmap",
        value: "NUMBER",
        help: "a cylinder group's inodes in use and its free fragments",
    },
    OptionSpec {
        name: "inode",
        value: "NUMBER",
        help: "an inode's fields, where its content lies, its extended attributes",
    },
    OptionSpec {
        name: "directory",
        value: "INODE",
        help: "the entries of a directory, free room among them",
    },
];

/// Prints one structure.
///
/// # Errors
/// `Invalid` for an unknown topic; `NotFound`; `Corrupt`; `Io`.
pub(crate) fn dump(
    dev: Arc<dyn BlockDevice>,
    what: &[String],
    out: &mut dyn fmt::Write,
) -> Result<()> {
    let asked = Asked::new(TOPICS, what)?;
    let mut out = Out::new(out);
    let lines = match asked.topic {
        "superblock" => superblock(&match asked.number()? {
            None => Found::choose(&*dev, None)?,
            Some(sector) => Found::at_sector(&*dev, sector)?,
        }),
        "superblocks" => return superblocks(&*dev, &mut out),
        "group" => with(dev, |reader| group(reader, asked.needed()?))?,
        "bitmap" => with(dev, |reader| bitmap(reader, asked.needed()?))?,
        "inode" => with(dev, |reader| inode(reader, asked.needed()?))?,
        _ => {
            let ino = asked.needed()?;
            return with(dev, |reader| directory(reader, ino, &mut out));
        }
    };
    out.lines(&lines)
}

fn with<T>(dev: Arc<dyn BlockDevice>, act: impl FnOnce(&Reader<'_>) -> Result<T>) -> Result<T> {
    let volume = Volume::new(Found::choose(&*dev, None)?, dev.geometry().size)?;
    let cache = cache(dev, LOOK_MEMORY);
    act(&Reader {
        cache: &cache,
        volume: &volume,
    })
}

fn fields(at: u64, fields: Vec<Field>) -> impl Iterator<Item = String> {
    let line = move |(name, within, value): Field| {
        format!("{:#010x} {name:<20} {value}", at + within as u64)
    };
    fields.into_iter().map(line)
}

fn superblock(found: &Found) -> Vec<String> {
    let head = format!("superblock at byte {}, {}", found.at, found.order.word());
    let mut lines = vec![head];
    lines.extend(fields(found.at, found.raw.fields()));
    lines
}

fn superblocks(dev: &dyn BlockDevice, out: &mut Out<'_>) -> Result<()> {
    Found::search(dev, 0..dev.geometry().size, &mut |found| {
        let (at, order) = (found.at, found.order.word());
        let kind = if found.is_ufs2 { "UFS2" } else { "UFS1" };
        let good = match Volume::new(found, dev.geometry().size) {
            Ok(_) => "good".to_owned(),
            Err(e) => e.to_string(),
        };
        let sector = at / 512;
        out.line(format_args!("sector {sector:>10} {kind} {order} {good}"))?;
        Ok(true)
    })
}

fn read_group(reader: &Reader<'_>, number: u64) -> Result<Group> {
    if number >= reader.volume.ncg {
        let words = format!("the volume has groups 0 to {}", reader.volume.ncg - 1);
        return Err(Error::note(Kind::NotFound, words));
    }
    Group::read(reader, number)
}

fn group(reader: &Reader<'_>, number: u64) -> Result<Vec<String>> {
    let group = read_group(reader, number)?;
    let mut lines = vec![format!("cylinder group {number} at byte {}", group.at)];
    lines.extend(fields(group.at, group.raw.fields()));
    Ok(lines)
}

fn bitmap(reader: &Reader<'_>, number: u64) -> Result<Vec<String>> {
    let (group, volume) = (read_group(reader, number)?, reader.volume);
    let used = ranges(volume.ipg, number * volume.ipg, |i| group.is_used(i));
    let free = ranges(group.fragments, volume.base(number), |i| group.is_free(i));
    Ok(vec![
        format!("inodes in use: {used}"),
        format!("free fragments: {free}"),
    ])
}

/// Returns the numbers that satisfy `holds`, counted from `first`, as text: `3-9, 12`.
fn ranges(count: u64, first: u64, holds: impl Fn(u64) -> bool) -> String {
    let mut words = Vec::new();
    let mut begin = None;
    for i in 0..=count {
        match (begin, i < count && holds(i)) {
            (None, true) => begin = Some(i),
            (Some(from), false) => {
                words.push(match i - from {
                    1 => format!("{}", first + from),
                    _ => format!("{}-{}", first + from, first + i - 1),
                });
                begin = None;
            }
            _ => {}
        }
    }
    words.join(", ")
}

fn read_inode(reader: &Reader<'_>, ino: u64) -> Result<Inode> {
    reader.inode_as_it_is(ino).map_err(|e| {
        if e != Kind::Stale {
            return e;
        }
        let words = format!("the volume has inodes 0 to {}", reader.volume.inodes() - 1);
        Error::note(Kind::NotFound, words)
    })
}

/// Most runs of an inode that are printed.
const RUNS_MAX: usize = 10_000;

fn inode(reader: &Reader<'_>, ino: u64) -> Result<Vec<String>> {
    let inode = read_inode(reader, ino)?;
    let volume = reader.volume;
    let mut lines = vec![format!("inode {ino} at byte {}", inode.at)];
    let stored = match volume.variant {
        Variant::Ufs2 => Ufs2Dinode::read(volume.order, &inode.bytes).fields(),
        _ => Ufs1Dinode::read(volume.order, &inode.bytes).fields(),
    };
    lines.extend(fields(inode.at, stored));
    let inode = match inode.check(volume) {
        Ok(inode) => inode,
        Err(e) => {
            lines.push(e.to_string());
            return Ok(lines);
        }
    };
    if inode.kind() == Some(FileKind::Symlink) {
        lines.push(match reader.target(&inode) {
            Ok(target) => format!("target {}", escape(&target)),
            Err(e) => e.to_string(),
        });
    }
    if inode.has_blocks(volume) && !inode.is_snapshot(volume) {
        runs(reader, &inode, &mut lines);
    }
    match xattr::all(reader, &inode) {
        Ok(all) => lines.extend(all.iter().map(|xattr| {
            format!(
                "attribute {} \"{}\"",
                escape(&xattr.name),
                escape(&xattr.value)
            )
        })),
        Err(e) => lines.push(e.to_string()),
    }
    Ok(lines)
}

fn runs(reader: &Reader<'_>, inode: &Inode, lines: &mut Vec<String>) {
    let mut left = RUNS_MAX;
    let all = reader.runs(inode, 0, inode.size, &mut |run| {
        left = left
            .checked_sub(1)
            .ok_or_else(|| Error::note(Kind::TooBig, "and more"))?;
        lines.push(match run.place {
            None => format!("content {} +{} hole", run.offset, run.len),
            Some(place) => format!("content {} +{} at byte {place}", run.offset, run.len),
        });
        Ok(())
    });
    if let Err(e) = all {
        lines.push(e.to_string());
    }
}

fn directory(reader: &Reader<'_>, ino: u64, out: &mut Out<'_>) -> Result<()> {
    let inode = read_inode(reader, ino)?.check(reader.volume)?;
    let mut dir = Dir::new(*reader, &inode)
        .map_err(|_| Error::note(Kind::NotFound, format!("inode {ino} is no directory")))?;
    let (mut at, mut damaged) = (0, 0);
    while damaged < DAMAGE_MAX {
        let line = match dir.entry(at) {
            Ok(None) => return Ok(()),
            Ok(Some(entry)) => {
                at = entry.end;
                let kind = entry
                    .kind
                    .map_or(String::new(), |kind| format!(" {kind:?}"));
                let length = entry.end - entry.at;
                match entry.ino {
                    0 => format!("{:>8} length {length} free", entry.at),
                    ino => format!(
                        "{:>8} length {length} inode {ino}{kind} \"{}\"",
                        entry.at,
                        escape(entry.name)
                    ),
                }
            }
            Err(e) if e == Kind::Corrupt => {
                at = Dir::next_chunk(at);
                damaged += 1;
                e.to_string()
            }
            Err(e) => return Err(e),
        };
        out.line(format_args!("{line}"))?;
    }
    Ok(())
}
