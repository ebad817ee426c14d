//! Structures as they are stored.

use crate::disk::leader::Leader;
use crate::disk::ondisk::{Header, PageType};
use crate::disk::runs::Run;
use crate::disk::volume::{Checked, Layout};
use crate::log::{LogImage, read_anchors};
use crate::look::roots::read_roots;
use crate::name_table::entry::{CHAIN, Entry, Place, is_of_runs, part_of_key, place_of_key};
use crate::name_table::page;
use crate::name_table::table::{Pair, judge, read_pages};
use crate::space::delta::Delta;
use std::fmt::{self, Write};
use volary_core::{BlockDevice, Error, Kind, OptionSpec, Result, escape};
use volary_ondisk::dump::{Asked, is_written};

/// What the dump can show.
pub(crate) const DUMP_TOPICS: &[OptionSpec] = &[
    OptionSpec {
        name: "root",
        value: "",
        help: "the copies of the root page",
    },
    OptionSpec {
        name: "anchors",
        value: "",
        help: "the two anchors: where the log begins",
    },
    OptionSpec {
        name: "log",
        value: "",
        help: "the records that recovery would replay, and the headers of all that can be told",
    },
    OptionSpec {
        name: "table",
        value: "[PAGE]",
        help: "a page of the name table in both copies; the tree's root without a page",
    },
    OptionSpec {
        name: "page",
        value: "PAGE",
        help: "the header of any page of the volume; of a leader, all",
    },
];

/// Prints one structure.
///
/// # Errors
/// `Invalid` for an unknown topic; `NotFound` for a page that is not there;
/// `Corrupt`, `Io`.
pub(crate) fn dump(dev: &dyn BlockDevice, what: &[String], out: &mut dyn Write) -> Result<()> {
    let asked = Asked::new(DUMP_TOPICS, what)?;
    let layout = Layout::read(dev)?;
    let mut text = String::new();
    let printed = match asked.topic {
        "root" => dump_roots(dev, &mut text)?,
        "anchors" => dump_anchors(dev, &layout, &mut text),
        "log" => dump_log(dev, &layout, &mut text),
        "table" => {
            let page = within(asked.number()?.unwrap_or(0), layout.table_len)?;
            dump_table(dev, &layout, page, &mut text)
        }
        _ => dump_page(
            dev,
            &layout,
            within(asked.needed()?, layout.pages)?,
            &mut text,
        ),
    };
    is_written(printed.and_then(|()| out.write_str(&text)))
}

fn within(page: u32, pages: u32) -> Result<u32> {
    match page < pages {
        true => Ok(page),
        false => Err(Error::note(
            Kind::NotFound,
            format!("no page {page}: there are {pages}"),
        )),
    }
}

fn dump_roots(dev: &dyn BlockDevice, out: &mut String) -> Result<fmt::Result> {
    let mut print = |(page, found): (u32, Option<Checked<Layout>>)| match found {
        Some(Ok(layout)) => writeln!(out, "page {page}: {layout:#?}"),
        Some(Err(words)) => writeln!(out, "page {page}: {words}"),
        None => writeln!(out, "page {page}: no root"),
    };
    Ok(read_roots(dev)?.into_iter().try_for_each(&mut print))
}

fn dump_anchors(dev: &dyn BlockDevice, layout: &Layout, out: &mut String) -> fmt::Result {
    for (page, anchor) in layout.anchors().iter().zip(read_anchors(dev, layout)) {
        match anchor {
            None => writeln!(out, "page {page}: bad")?,
            Some(a) => writeln!(
                out,
                "page {page}: stamp {}, epoch {}, record {} at {}, durable up to {}",
                a.stamp, a.epoch, a.seq, a.position, a.durable
            )?,
        }
    }
    Ok(())
}

fn dump_log(dev: &dyn BlockDevice, layout: &Layout, out: &mut String) -> fmt::Result {
    let log = LogImage::read(dev, layout);
    let newest = read_anchors(dev, layout)
        .into_iter()
        .flatten()
        .max_by_key(|a| a.stamp);
    let live = newest.map(|a| log.chain(&a)).unwrap_or_default();
    for record in &live {
        write!(
            out,
            "record {} of epoch {} at {}, {} s, {} pages",
            record.seq,
            record.epoch,
            record.position,
            record.time,
            record.pages.len()
        )?;
        if record.damaged > 0 {
            write!(out, ", {} of their copies bad", record.damaged)?;
        }
        writeln!(out)?;
        if layout.logs_map {
            dump_told(record.told.as_ref(), out)?;
        }
        for (target, image) in &record.pages {
            let kind = Header::read_unchecked(image).map(|h| h.kind);
            writeln!(out, "    {} {target}", kind.map_or("?", word))?;
        }
    }
    writeln!(out, "{} records to be replayed", live.len())?;
    for at in 0..layout.log_len() {
        if let Some((header, _)) = log.head(at)
            && !live.iter().any(|r| r.position == at)
        {
            writeln!(
                out,
                "old header at {at}: record {} of epoch {}",
                header.seq, header.epoch
            )?;
        }
    }
    Ok(())
}

/// What a record says of the allocation map.
fn dump_told(told: Option<&Delta>, out: &mut String) -> fmt::Result {
    let Some(delta) = told else {
        return writeln!(out, "    changes more of the map than it can say");
    };
    for (word, runs) in [("takes", &delta.taken), ("frees", &delta.freed)] {
        for run in runs.iter() {
            writeln!(out, "    {word} {} from {}", run.len, run.start)?;
        }
    }
    Ok(())
}

fn dump_table(dev: &dyn BlockDevice, layout: &Layout, index: u32, out: &mut String) -> fmt::Result {
    let a = read_pages(dev, layout, layout.table_a + index, 1);
    let b = read_pages(dev, layout, layout.table_b + index, 1);
    let image = match judge(&a, &b, layout, index) {
        Pair::Good(image) => image,
        Pair::Half(image, copy) => {
            writeln!(
                out,
                "copy {} is bad or old",
                ["A", "B"].get(copy).unwrap_or(&"?")
            )?;
            image
        }
        Pair::Bad(words) => return writeln!(out, "page {index}: {words}"),
    };
    if let Some(h) = Header::read(&image) {
        writeln!(
            out,
            "page {index}: level {}, {} cells, epoch {}, record {}",
            h.level, h.count, h.epoch, h.seq
        )?;
    }
    for (key, value) in page::cells(&image) {
        match page::level(&image) {
            0 => dump_cell(key, value, out)?,
            _ => writeln!(out, "    {} -> page {}", key_words(key), page::child(value))?,
        }
    }
    Ok(())
}

fn dump_cell(key: &[u8], value: &[u8], out: &mut String) -> fmt::Result {
    write!(out, "    {} = ", key_words(key))?;
    if Place::of_key(key).is_some() {
        return match Entry::decode(value) {
            Some(Entry::Head(head)) => {
                if let Some(far) = head.far {
                    let state = if far.whole { "here" } else { "away" };
                    let used = far.used.secs;
                    write!(out, "of the remote, {state}, last used {used}: ")?;
                }
                writeln!(out, "{head:?}")
            }
            Some(Entry::Link(uid, number)) => writeln!(out, "name {number} of {uid:#x}"),
            None => writeln!(out, "{} bytes that make no sense", value.len()),
        };
    }
    match (place_of_key(key), Place::decode(value), part_of_key(key)) {
        (Some(_), Some(place), _) => writeln!(out, "{}", key_words(&place.key())),
        (_, _, Some((_, kind, _))) if is_of_runs(kind) => {
            let runs: Vec<Run> = crate::disk::runs::Runs::decode(value).collect();
            writeln!(out, "{runs:?}")
        }
        _ => writeln!(out, "{} bytes", value.len()),
    }
}

fn key_words(key: &[u8]) -> String {
    if let Some(p) = Place::of_key(key) {
        return format!("{:#x}/{}!{}", p.dir, escape(&p.name), p.version);
    }
    if let Some((uid, number)) = place_of_key(key) {
        return format!("name {number} of {uid:#x}");
    }
    match part_of_key(key) {
        Some((page, CHAIN, number)) => {
            format!("part {CHAIN}.{number} of the leader in page {page}")
        }
        Some((uid, kind, number)) => format!("part {kind}.{number} of {uid:#x}"),
        None => format!("key of {} bytes", key.len()),
    }
}

fn word(kind: PageType) -> &'static str {
    match kind {
        PageType::Root => "root",
        PageType::Anchor => "anchor",
        PageType::Table => "table page",
        PageType::Leader => "leader",
        PageType::Map => "map",
        PageType::Head => "record header",
        PageType::Blank => "record blank",
        PageType::End => "record end",
    }
}

fn dump_page(dev: &dyn BlockDevice, layout: &Layout, page: u32, out: &mut String) -> fmt::Result {
    let bytes = read_pages(dev, layout, page, 1);
    match Header::read(&bytes) {
        None => writeln!(out, "page {page}: no metadata that is whole"),
        Some(h) => {
            writeln!(
                out,
                "page {page}: {} {}, epoch {}, record {}",
                word(h.kind),
                h.page,
                h.epoch,
                h.seq
            )?;
            match Leader::decode(layout, page, &bytes) {
                Some(leader) => writeln!(out, "{leader:?}"),
                None => Ok(()),
            }
        }
    }
}
