//! Prints structures as they are stored.

use crate::attributes::form::{Ea, eas};
use crate::attributes::security::Owned;
use crate::directory::dir::Directory;
use crate::directory::index::{Entries, Index};
use crate::disk::names::wtf8;
use crate::disk::ondisk::{aflag, kind, number};
use crate::files::bitmap::each_used;
use crate::files::node::{NameOf, Node};
use crate::files::stream::{Content, Stream};
use crate::look::info::look;
use crate::mft::record::{Attr, Body, Record};
use crate::mft::records::Mft;
use crate::scan::{Scan, Visitor};
use crate::store::Store;
use std::fmt::Write;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Kind, OptionSpec, Result, escape};
use volary_ondisk::dump::{Asked, Out, number as parse_number};

pub(crate) const TOPICS: &[OptionSpec] = &[
    OptionSpec {
        name: "boot",
        value: "",
        help: "the boot sector",
    },
    OptionSpec {
        name: "record",
        value: "[WHICH]",
        help: "a record of the master file table with its attributes, by its number or a path; the root directory's without",
    },
    OptionSpec {
        name: "list",
        value: "WHICH",
        help: "the attribute list of a file, by its record or path",
    },
    OptionSpec {
        name: "runs",
        value: "WHICH",
        help: "where the clusters of a file lie, by its record or path",
    },
    OptionSpec {
        name: "index",
        value: "[WHICH]",
        help: "the index of a directory, block by block, by its record or path; the root's without",
    },
    OptionSpec {
        name: "security",
        value: "WHICH",
        help: "the security descriptor of a file, by its record or path",
    },
    OptionSpec {
        name: "upcase",
        value: "",
        help: "units whose upper-case form is another",
    },
    OptionSpec {
        name: "bitmap",
        value: "",
        help: "stretches of clusters in use",
    },
];

/// The most lines that one dump prints.
const LINES_MAX: usize = 1 << 20;

/// Prints one structure.
///
/// # Errors
/// `Invalid` for an unknown topic; `NotFound`; `Corrupt`; `Io`.
pub(crate) fn dump(dev: &Arc<dyn BlockDevice>, what: &[String], out: &mut dyn Write) -> Result<()> {
    let asked = Asked::new(TOPICS, what)?;
    let store = look(dev)?;
    let which = |asked: &Asked<'_>| which(&store, asked.word());
    let lines = match asked.topic {
        "boot" => boot(&store),
        "record" => record(&store, which(&asked)?)?,
        "list" => list(&store, which(&asked)?)?,
        "runs" => runs(&store, which(&asked)?)?,
        "index" => index(&store, which(&asked)?)?,
        "security" => security(&store, which(&asked)?)?,
        "upcase" => upcase(&store)?,
        _ => bitmap(&store)?,
    };
    Out::new(out).lines(&lines)
}

/// Returns the number of the record that a word names, by number or by path.
fn which(store: &Store, word: Option<&str>) -> Result<u64> {
    let Some(word) = word else {
        return Ok(number::ROOT);
    };
    let Some(path) = word.strip_prefix('/') else {
        return parse_number(word).ok_or_else(|| {
            let words = format!(
                "'{}' is no number, and no path from /",
                escape(word.as_bytes())
            );
            Error::note(Kind::Invalid, words)
        });
    };
    let mut at = number::ROOT;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let dir = node(store, at)?;
        let found = store.find(&Directory::of(store.mft(), &dir)?, name.as_bytes())?;
        at = found.ok_or(Kind::NotFound)?.to.number;
    }
    Ok(at)
}

fn none(store: &Store, number: u64) -> Error {
    let records = store.mft().count();
    let words = format!(
        "record {number} is not in use, or goes on from another; there are {records} records"
    );
    Error::note(Kind::NotFound, words)
}

fn node(store: &Store, number: u64) -> Result<Node> {
    Node::of(store.mft(), number).map_err(|e| match e.kind() {
        Kind::Stale => none(store, number),
        _ => e,
    })
}

fn line(key: &str, value: impl std::fmt::Display) -> String {
    format!("  {key:<24} {value}")
}

fn push(lines: &mut Vec<String>, line: String) {
    match lines.len().cmp(&LINES_MAX) {
        std::cmp::Ordering::Less => lines.push(line),
        std::cmp::Ordering::Equal => lines.push("and more".into()),
        std::cmp::Ordering::Greater => {}
    }
}

fn boot(store: &Store) -> Vec<String> {
    let boot = &store.volume().boot;
    vec![
        line("oem_id", format!("\"{}\"", escape(&boot.oem_id))),
        line("bytes_per_sector", boot.bytes_per_sector.get()),
        line("sectors_per_cluster", boot.sectors_per_cluster),
        line("total_sectors", boot.total_sectors.get()),
        line("mft_lcn", boot.mft_lcn.get()),
        line("mftmirr_lcn", boot.mirror_lcn.get()),
        line("clusters_per_record", boot.clusters_per_record),
        line("clusters_per_index", boot.clusters_per_index),
        line("serial", format!("{:016x}", boot.serial.get())),
        line("checksum", format!("{:#010x}", boot.checksum.get())),
    ]
}

fn name_of_kind(kind: u32) -> &'static str {
    match kind {
        kind::STANDARD_INFORMATION => "$STANDARD_INFORMATION",
        kind::ATTRIBUTE_LIST => "$ATTRIBUTE_LIST",
        kind::FILE_NAME => "$FILE_NAME",
        0x40 => "$OBJECT_ID",
        kind::SECURITY_DESCRIPTOR => "$SECURITY_DESCRIPTOR",
        kind::VOLUME_NAME => "$VOLUME_NAME",
        kind::VOLUME_INFORMATION => "$VOLUME_INFORMATION",
        kind::DATA => "$DATA",
        kind::INDEX_ROOT => "$INDEX_ROOT",
        kind::INDEX_ALLOCATION => "$INDEX_ALLOCATION",
        kind::BITMAP => "$BITMAP",
        kind::REPARSE_POINT => "$REPARSE_POINT",
        0xd0 => "$EA_INFORMATION",
        kind::EA => "$EA",
        0x100 => "$LOGGED_UTILITY_STREAM",
        _ => "unknown",
    }
}

fn record(store: &Store, number: u64) -> Result<Vec<String>> {
    let record = store.mft().record(number).map_err(|e| match e.kind() {
        Kind::Stale => none(store, number),
        _ => e,
    })?;
    let head = &record.head;
    let mut lines = vec![
        format!("record {number}, at byte {}", record.at),
        line("lsn", head.lsn.get()),
        line("sequence number", head.sequence.get()),
        line("link count", head.links.get()),
        line("flags", format!("{:#x}", head.flags.get())),
        line(
            "bytes in use",
            format!("{} of {}", head.in_use.get(), head.allocated.get()),
        ),
        line("next attribute id", head.next_id.get()),
    ];
    if let Some(base) = record.base() {
        lines.push(line(
            "goes on from record",
            format!("{} of sequence {}", base.number, base.sequence),
        ));
    }
    for attr in &record.attrs {
        attribute(&record, attr, &mut lines);
    }
    Ok(lines)
}

/// The names of the flags for how data are stored.
const WAYS: [(u16, &str); 3] = [
    (aflag::COMPRESSION, "compressed"),
    (aflag::ENCRYPTED, "encrypted"),
    (aflag::SPARSE, "sparse"),
];

fn attribute(record: &Record, attr: &Attr, lines: &mut Vec<String>) {
    let name = wtf8(&record.name_of(attr));
    let name = match name.is_empty() {
        true => String::new(),
        false => format!(" \"{}\"", escape(&name)),
    };
    let ways = WAYS.iter().filter(|way| attr.flags & way.0 != 0);
    let ways: String = ways.map(|way| format!(", {}", way.1)).collect();
    let body = match &attr.body {
        Body::Here(range) => format!("{} bytes in the record", range.len()),
        Body::Mapped(map) => format!(
            "clusters {} to {}, {} of {} bytes, {} written",
            map.first,
            map.end.saturating_sub(1),
            map.size,
            map.allocated,
            map.initialized
        ),
    };
    let (kind, id) = (name_of_kind(attr.kind), attr.id);
    let number = attr.kind;
    push(
        lines,
        format!("{kind} ({number:#x}){name}, id {id}: {body}{ways}"),
    );
    if let Some(value) = record.value(attr) {
        value_of(attr.kind, value, lines);
    }
}

fn value_of(kind: u32, value: &[u8], lines: &mut Vec<String>) {
    match kind {
        kind::FILE_NAME => {
            if let Some(name) = NameOf::of(value) {
                let shown = wtf8(&name.name);
                let (shown, parent) = (escape(&shown), name.parent.number);
                let words = format!(
                    "\"{shown}\", of namespace {}, in record {parent}",
                    name.space
                );
                push(lines, line("name", words));
            }
        }
        kind::EA => {
            for Ea { name, value } in eas(value) {
                let words = format!("{}: {} bytes", escape(name), value.len());
                push(lines, line("extended attribute", words));
            }
        }
        _ => push(lines, line("value", hex(value.get(..64).unwrap_or(value)))),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn list(store: &Store, number: u64) -> Result<Vec<String>> {
    let node = node(store, number)?;
    let Some(list) = &node.list else {
        return Ok(vec![
            "no attribute list: all attributes are in the record".into(),
        ]);
    };
    let mut lines = Vec::new();
    for one in list {
        let name = wtf8(&one.name);
        let words = format!(
            "{} \"{}\" from cluster {}, in record {}, id {}",
            name_of_kind(one.kind),
            escape(&name),
            one.lowest,
            one.reference.number,
            one.id
        );
        push(&mut lines, words);
    }
    Ok(lines)
}

fn runs(store: &Store, number: u64) -> Result<Vec<String>> {
    struct Lines<'a>(&'a Mft, Vec<String>);
    impl Visitor for Lines<'_> {
        fn stream(&mut self, _: &Node, kind: u32, name: &[u16], stream: &Stream) -> Result<()> {
            let shown = wtf8(name);
            push(
                &mut self.1,
                format!("{} \"{}\"", name_of_kind(kind), escape(&shown)),
            );
            let Content::Mapped(mapped) = &stream.content else {
                return Ok(());
            };
            stream.each_run(self.0, None, 0..mapped.end, |run| {
                let range = format!("{:>10} to {:<10}", run.first, run.end().saturating_sub(1));
                push(
                    &mut self.1,
                    match run.place {
                        Some(place) => format!("{range} at {place}"),
                        None => format!("{range} hole"),
                    },
                );
                Ok(())
            })
        }
        fn bad(&mut self, _: u64, _: &'static str, e: Error) -> Result<()> {
            Err(e)
        }
    }
    let mut lines = Lines(store.mft(), Vec::new());
    let record = node(store, number)?.record;
    Scan::new(store.mft(), &mut lines).node(record)?;
    if lines.1.is_empty() {
        lines.1.push("all that it has is in its record".into());
    }
    Ok(lines.1)
}

fn index(store: &Store, number: u64) -> Result<Vec<String>> {
    let node = node(store, number)?;
    let dir = Directory::of(store.mft(), &node)?;
    let index = dir.index();
    let mut lines = Vec::new();
    for block in 0..=index.blocks() {
        if lines.len() >= LINES_MAX {
            break;
        }
        let title = match block.checked_sub(1) {
            None => "root".into(),
            Some(block) => format!("block {block}"),
        };
        match index.entries_of(store.mft(), block) {
            Ok(Some(entries)) => {
                push(&mut lines, format!("{title}, at byte {}", entries.at));
                entries_in(index, &entries, &mut lines)?;
            }
            Ok(None) => push(&mut lines, format!("{title}, not in use")),
            Err(e) => push(&mut lines, format!("{title}: {e}")),
        }
    }
    Ok(lines)
}

fn entries_in(index: &Index, entries: &Entries, lines: &mut Vec<String>) -> Result<()> {
    let mut at = entries.start();
    while let Some(entry) = entries.entry(at)? {
        let below = match entry.below().map(|vcn| (vcn, index.block_of(vcn))) {
            None => String::new(),
            Some((_, Some(block))) => format!(", below block {block}"),
            Some((vcn, None)) => format!(", below {vcn}, which is no block"),
        };
        let words = match NameOf::of(entry.key()) {
            _ if entry.is_last() => format!("  {at:>6} end{below}"),
            Some(name) => {
                let shown = wtf8(&name.name);
                let number = crate::disk::ondisk::Reference::from(entry.raw.reference.get()).number;
                format!(
                    "  {at:>6} record {number:<10} \"{}\"{below}",
                    escape(&shown)
                )
            }
            None => format!("  {at:>6} no name{below}"),
        };
        push(lines, words);
        at = entry.end;
    }
    Ok(())
}

fn security(store: &Store, number: u64) -> Result<Vec<String>> {
    let node = node(store, number)?;
    let id = node.security_id()?;
    let own = store.secure().descriptor(store.mft(), &node)?;
    let own = own.ok_or_else(|| Error::note(Kind::NotFound, "the file has no descriptor"))?;
    let owned = Owned::of(&own);
    let number = |number: Option<u32>| number.map_or_else(|| "none".into(), |n: u32| n.to_string());
    Ok(vec![
        line("id", number(id)),
        line("uid", number(owned.uid)),
        line("gid", number(owned.gid)),
        line(
            "mode",
            owned
                .mode
                .map_or_else(|| "none".into(), |mode| format!("{mode:o}")),
        ),
        line("descriptor", hex(&own)),
    ])
}

fn upcase(store: &Store) -> Result<Vec<String>> {
    let table = store.upcase()?;
    let all = (0..=u16::MAX).map(|unit| (unit, table.unit(unit)));
    let changed = all.filter(|(unit, upper)| unit != upper);
    Ok(changed
        .map(|(unit, upper)| format!("{unit:04x} {upper:04x}"))
        .collect())
}

fn bitmap(store: &Store) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    each_used(store.mft(), &mut |first, count| {
        let last = first.saturating_add(count).saturating_sub(1);
        push(
            &mut lines,
            format!("{first:>12} to {last:<12} {count} clusters"),
        );
        Ok(())
    })?;
    Ok(lines)
}
