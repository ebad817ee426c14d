//! Structures as they are stored, for people.

use crate::attached::operations::{LOOK_MEMORY, cache};
use crate::change::alloc::{chunk, each_free};
use crate::disk::blocks::Reader;
use crate::disk::dir;
use crate::disk::inode::Inode;
use crate::disk::ondisk::{ISIZE, MAGIC, STATE, SUPER_AT, TYPE, Variant, di};
use crate::disk::volume::Volume;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use volary_core::{BlockDevice, OptionSpec, Result, escape};
use volary_ondisk::dump::{Asked, Out};

const fn topic(name: &'static str, value: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, value, help }
}

pub(crate) const TOPICS: &[OptionSpec] = &[
    topic("superblock", "", "the superblock"),
    topic("free", "[BLOCK]", "the free list, or one block of it"),
    topic("inode", "NUMBER", "an inode"),
    topic(
        "directory",
        "NUMBER",
        "the entries of a directory, by its inode",
    ),
];

/// Prints a structure.
///
/// # Errors
/// `Invalid` for an unknown topic; `Corrupt`; `Stale`; `NotDir`; `Io`.
pub(crate) fn dump(
    dev: Arc<dyn BlockDevice>,
    what: &[String],
    out: &mut dyn fmt::Write,
) -> Result<()> {
    let asked = Asked::new(TOPICS, what)?;
    let mut out = Out::new(out);
    let volume = Volume::new(&*dev, None)?;
    let cache = cache(dev, LOOK_MEMORY);
    let reader = Reader {
        cache: &cache,
        volume: &volume,
    };
    match asked.topic {
        "superblock" => superblock(&volume, &mut out),
        "free" => match asked.number()? {
            Some(block) => {
                let list = chunk(&reader, block)?;
                out.line(format_args!("{} blocks: {list:?}", list.len()))
            }
            None => free(&reader, &mut out),
        },
        "inode" => inode(&reader.inode_as_it_is(asked.needed()?)?, &mut out),
        _ => directory(&reader, &reader.inode_as_it_is(asked.needed()?)?, &mut out),
    }
}

fn superblock(volume: &Volume, out: &mut Out<'_>) -> Result<()> {
    let (order, fields) = (volume.order, volume.variant.fields());
    let head = &volume.head;
    let at = |place: usize| SUPER_AT + place as u64;
    let mut line = |place: usize, name: &str, value: String| {
        out.line(format_args!("{:#x} {name:<8} {value}", at(place)))
    };
    let short = |place| order.get16(head, place).to_string();
    let long = |place| order.get32(head, place).to_string();
    let byte = |place: usize| head.get(place).copied().unwrap_or(0).to_string();
    line(ISIZE, "s_isize", short(ISIZE))?;
    line(fields.fsize, "s_fsize", long(fields.fsize))?;
    line(fields.nfree, "s_nfree", short(fields.nfree))?;
    line(fields.free, "s_free", format!("{:?}", volume.free_list()))?;
    line(fields.ninode, "s_ninode", short(fields.ninode))?;
    line(
        fields.inode,
        "s_inode",
        format!("{:?}", volume.inode_list()),
    )?;
    for (i, name) in ["s_flock", "s_ilock", "s_fmod", "s_ronly"]
        .iter()
        .enumerate()
    {
        line(fields.flags + i, name, byte(fields.flags + i))?;
    }
    line(fields.time, "s_time", long(fields.time))?;
    line(fields.tfree, "s_tfree", long(fields.tfree))?;
    line(fields.tinode, "s_tinode", short(fields.tinode))?;
    for (place, name) in [(fields.fname, "s_fname"), (fields.fpack, "s_fpack")] {
        line(place, name, volume.text(place).unwrap_or_default())?;
    }
    match volume.variant {
        Variant::V7 => {
            line(fields.interleave, "s_m", short(fields.interleave))?;
            line(fields.interleave + 2, "s_n", short(fields.interleave + 2))
        }
        Variant::SysV => {
            let hex = |place| format!("{:#x}", order.get32(head, place));
            line(STATE, "s_state", hex(STATE))?;
            line(MAGIC, "s_magic", hex(MAGIC))?;
            line(TYPE, "s_type", long(TYPE))
        }
    }
}

fn free(reader: &Reader<'_>, out: &mut Out<'_>) -> Result<()> {
    let mut line = Vec::new();
    each_free(reader, &mut |block| {
        line.push(block.to_string());
        if line.len() == 10 {
            out.line(format_args!("{}", line.join(" ")))?;
            line.clear();
        }
        Ok(())
    })?;
    match line.is_empty() {
        true => Ok(()),
        false => out.line(format_args!("{}", line.join(" "))),
    }
}

fn inode(inode: &Inode, out: &mut Out<'_>) -> Result<()> {
    let mut line = |place: usize, name: &str, value: String| {
        let at = inode.at + place as u64;
        out.line(format_args!("{at:#x} {name:<8} {value}"))
    };
    line(di::MODE, "di_mode", format!("{:#o}", inode.mode))?;
    line(di::NLINK, "di_nlink", inode.nlink.to_string())?;
    line(di::UID, "di_uid", inode.uid.to_string())?;
    line(di::GID, "di_gid", inode.gid.to_string())?;
    line(di::SIZE, "di_size", inode.size.to_string())?;
    for (i, block) in inode.addr.iter().enumerate() {
        line(di::ADDR + 3 * i, "di_addr", block.to_string())?;
    }
    line(di::GEN, "di_gen", inode.generation.to_string())?;
    let places = [di::ATIME, di::MTIME, di::CTIME];
    let names = ["di_atime", "di_mtime", "di_ctime"];
    for ((place, name), time) in places.into_iter().zip(names).zip(inode.times) {
        line(place, name, time.secs.to_string())?;
    }
    Ok(())
}

fn directory(reader: &Reader<'_>, dir: &Inode, out: &mut Out<'_>) -> Result<()> {
    let dir = dir.clone().check(reader.volume)?;
    dir::entries(reader, &dir, 0, &mut |entry| {
        let name = escape(entry.name);
        out.line(format_args!("{:#x} {} {name}", entry.at, entry.ino))?;
        Ok(ControlFlow::Continue(()))
    })
}
