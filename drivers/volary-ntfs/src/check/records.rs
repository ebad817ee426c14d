//! Checks records and their attributes: the owners of clusters, and how records refer to each
//! other.

use super::record_bits::RecordBits;
use crate::attributes::form::{Form, Wsl};
use crate::attributes::secure::shared;
use crate::disk::names::wtf8;
use crate::disk::ondisk::{Reference, aflag, kind, number, rflag};
use crate::files::node::{NameOf, Node};
use crate::files::stream::{Content, Stream};
use crate::mft::record::Record;
use crate::scan::Visitor;
use crate::store::Store;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use volary_core::{Error, FileKind, Finding, Kind, Result};
use volary_ondisk::reporter::{Reporter, damage, ends, met};
use volary_ondisk::{Bits, Ranges};

/// The records that NTFS reserves, between its own files and the first ordinary file.
pub(super) const RESERVED: std::ops::Range<u64> = 12..24;

/// What is known about a base record.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) sequence: u16,
    pub(super) is_dir: bool,
    pub(super) at: u64,
    /// The names in its record: the sum of their hashes, and their number.
    own: (u64, u32),
    /// The same for the entries that directories have for it.
    listed: (u64, u32),
    /// The first directory found with an entry for it; 0 if there is none.
    pub(super) parent: u64,
}

/// What the check knows about the volume.
#[derive(Default)]
pub(super) struct All {
    /// The clusters that runs use, and their number.
    pub(super) clusters: Ranges,
    pub(super) taken: u64,
    pub(super) nodes: BTreeMap<u64, Seen>,
    /// The records in use: base records and extension records.
    pub(super) records: Bits,
    pub(super) files: u64,
    pub(super) dirs: u64,
    /// Whether some metadata could not be read. Clusters that seem to have no owner may belong to
    /// it.
    pub(super) is_partial: bool,
    /// Whether a run is missing from `clusters`, because another file owns a part of it.
    pub(super) is_crossed: bool,
}

impl All {
    /// Notes an entry of a directory. Returns what is known about its file, or `None` if the record
    /// is not in use.
    pub(super) fn list(&mut self, dir: u64, to: Reference, name: &NameOf) -> Option<Seen> {
        let seen = self.nodes.get_mut(&to.number)?;
        if seen.sequence != to.sequence {
            return None;
        }
        add(&mut seen.listed, dir, name);
        if seen.parent == 0 {
            seen.parent = dir;
        }
        Some(*seen)
    }
}

impl Seen {
    /// Returns whether directories have exactly the names in its record.
    pub(super) fn is_named_as_listed(&self) -> bool {
        self.own == self.listed
    }

    pub(super) fn counts(&self) -> (u32, u32) {
        (self.own.1, self.listed.1)
    }
}

/// Adds a name to a sum that does not depend on the order of the names.
fn add(sum: &mut (u64, u32), dir: u64, name: &NameOf) {
    let mut hasher = DefaultHasher::new();
    (dir, &name.name, name.space).hash(&mut hasher);
    sum.0 = sum.0.wrapping_add(hasher.finish());
    sum.1 = sum.1.saturating_add(1);
}

/// The check of all records.
pub(super) struct Records<'a, 'f> {
    store: &'a Store,
    bits: &'a RecordBits<'a>,
    findings: &'a mut Reporter<'f>,
    all: All,
    /// Extension records that were found, with their base record and place; then those that
    /// attribute lists name.
    extensions: BTreeMap<u64, (u64, u64)>,
    listed: BTreeSet<u64>,
    /// The security ids in use, each with one record that has it.
    ids: BTreeMap<u32, u64>,
}

impl<'a, 'f> Records<'a, 'f> {
    pub(super) fn new(
        store: &'a Store,
        bits: &'a RecordBits<'a>,
        findings: &'a mut Reporter<'f>,
    ) -> Self {
        Self {
            store,
            bits,
            findings,
            all: All::default(),
            extensions: BTreeMap::new(),
            listed: BTreeSet::new(),
            ids: BTreeMap::new(),
        }
    }

    /// Ends the check of records: compares the extension records with the attribute lists, and
    /// checks the descriptors.
    pub(super) fn seen(mut self) -> Result<All> {
        for (number, (base, at)) in &self.extensions {
            if !self.listed.contains(number) && !self.all.is_partial {
                let words =
                    format!("record {number} goes on from record {base}, whose list lacks it");
                self.findings.tell(&Finding {
                    code: "extension",
                    ..damage(*at, words)
                });
            }
        }
        self.descriptors()?;
        Ok(self.all)
    }

    /// Checks that each security id has a descriptor.
    fn descriptors(&mut self) -> Result<()> {
        for (id, number) in std::mem::take(&mut self.ids) {
            let words = match shared(self.store.mft(), id) {
                Ok(Some(_)) => continue,
                Ok(None) => "is not in $Secure".to_owned(),
                Err(e) if ends(&e) => return Err(e),
                Err(e) => e.to_string(),
            };
            let at = self.store.mft().record_at(number).unwrap_or(0);
            let words = format!("record {number}: the security descriptor {id} {words}");
            self.findings.tell(&Finding {
                code: "security",
                ..damage(at, words)
            });
        }
        Ok(())
    }

    fn tell(&mut self, code: &'static str, at: u64, number: u64, words: &str) {
        self.findings.tell(&Finding {
            code,
            ..damage(at, format!("record {number}: {words}"))
        });
    }

    /// Checks what a record says about itself, and that its attributes' ids differ.
    fn record(&mut self, record: &Record) {
        self.all.records.insert(record.number);
        let mut ids = BTreeSet::new();
        for attr in &record.attrs {
            if !ids.insert(attr.id) {
                let words = format!("two attributes have the id {}", attr.id);
                self.tell("attribute-id", record.at_of(attr), record.number, &words);
            }
        }
        let flags = record.head.flags.get();
        if flags & !rflag::KNOWN != 0 {
            let words = format!("it has flags that are not known, {flags:#x}");
            self.tell("record", record.at, record.number, &words);
        }
        if record
            .told_number()
            .is_some_and(|told| told != record.number as u32)
        {
            let words = "it says that it is another";
            self.tell("record-number", record.at, record.number, words);
        }
    }

    /// Checks that an attribute list names every attribute, and only attributes that exist.
    fn list(&mut self, node: &Node) -> Result<()> {
        let Some(list) = &node.list else {
            return Ok(());
        };
        let own = node
            .record
            .attrs
            .iter()
            .filter(|attr| attr.kind != kind::ATTRIBUTE_LIST);
        let all = list
            .iter()
            .map(|one| (one.kind, one.id, one.reference.number));
        let all: HashSet<_> = all.collect();
        for attr in own {
            if !all.contains(&(attr.kind, attr.id, node.number())) {
                let words = format!("its attribute list lacks attribute {:#x}", attr.kind);
                self.tell(
                    "attribute-list",
                    node.record.at_of(attr),
                    node.number(),
                    &words,
                );
            }
        }
        let mut last: Option<(Reference, Vec<(u32, u16)>)> = None;
        for one in list {
            self.listed.insert(one.reference.number);
            let is_read = last.as_ref().is_some_and(|(of, _)| *of == one.reference);
            if !is_read {
                let ids = match node.held(self.store.mft(), one) {
                    Err(e) if ends(&e) => return Err(e),
                    Err(e) => {
                        self.bad(node.number(), "attribute-list", e)?;
                        continue;
                    }
                    Ok(held) => held.attrs.iter().map(|attr| (attr.kind, attr.id)).collect(),
                };
                last = Some((one.reference, ids));
            }
            let is_there = last
                .as_ref()
                .is_some_and(|(_, ids)| ids.contains(&(one.kind, one.id)));
            if !is_there {
                let to = one.reference.number;
                let words = format!(
                    "its list has attribute {:#x} in record {to}, which lacks it",
                    one.kind
                );
                self.tell("attribute-list", node.record.at, node.number(), &words);
            }
        }
        Ok(())
    }

    /// Notes the names, and checks the link count.
    fn names(&mut self, node: &Node, seen: &mut Seen) -> Result<()> {
        let names = match node.names(self.store.mft()) {
            Err(e) if ends(&e) => return Err(e),
            Err(e) => return self.bad(node.number(), "name", e),
            Ok(names) => names,
        };
        for name in &names {
            add(&mut seen.own, name.parent.number, name);
        }
        let told = usize::from(node.record.head.links.get());
        if told != names.len() {
            let words = format!("it has {} names, says {told}", names.len());
            self.tell("links", node.record.at, node.number(), &words);
        }
        Ok(())
    }

    /// Marks the clusters of a stream as used. Returns how many there are, and the cluster of the
    /// stream at which its runs end. Returns `None` for a resident stream or damaged runs.
    fn take(&mut self, node: &Node, stream: &Stream) -> Result<Option<(u64, u64)>> {
        let Content::Mapped(mapped) = &stream.content else {
            return Ok(None);
        };
        let (mut taken, mut crossed, mut end) = (0u64, None, 0u64);
        let all = &mut self.all;
        let walked = stream.each_run(self.store.mft(), None, 0..mapped.end, |run| {
            end = run.end();
            let Some(place) = run.place else {
                return Ok(());
            };
            match all.clusters.take(place, run.len) {
                true => all.taken = all.taken.saturating_add(run.len),
                false => crossed = crossed.or(Some((place, run.len))),
            }
            taken = taken.saturating_add(run.len);
            Ok(())
        });
        if let Some((first, count)) = crossed {
            all.is_crossed = true;
            let words = format!("of the {count} clusters at {first} some are another's too");
            self.tell("cross-link", stream.at, node.number(), &words);
        }
        match walked {
            Err(e) if ends(&e) => Err(e),
            Err(e) => {
                self.bad(node.number(), "runs", e)?;
                Ok(None)
            }
            Ok(()) => Ok(Some((taken, end))),
        }
    }
}

impl Visitor for Records<'_, '_> {
    fn at(&mut self, number: u64, records: u64) -> Result<()> {
        match number % 64 {
            0 => self.findings.progress("records", number, records),
            _ => Ok(()),
        }
    }

    fn extension(&mut self, record: &Record) -> Result<()> {
        self.record(record);
        let base = record.base().map_or(0, |base| base.number);
        self.extensions.insert(record.number, (base, record.at));
        Ok(())
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        let (number, at) = (node.number(), node.record.at);
        self.record(&node.record);
        let mut seen = Seen {
            sequence: node.record.head.sequence.get(),
            is_dir: node.is_dir(),
            at,
            own: (0, 0),
            listed: (0, 0),
            parent: 0,
        };
        self.list(node)?;
        if !RESERVED.contains(&number) {
            self.names(node, &mut seen)?;
            match node.security_id() {
                Ok(Some(id)) if id != 0 => {
                    self.ids.entry(id).or_insert(number);
                }
                Ok(_) => {}
                Err(e) => self.bad(number, "record", e)?,
            }
            let wsl = Wsl::read(self.store.mft(), node).unwrap_or_default();
            match Form::of(self.store.mft(), node, &wsl).map(|form| form.kind()) {
                Err(e) if ends(&e) => return Err(e),
                Err(e) => self.bad(number, "reparse", e)?,
                Ok(FileKind::Dir) => self.all.dirs += 1,
                Ok(_) if number >= number::FIRST_USER => self.all.files += 1,
                Ok(_) => {}
            }
        }
        self.all.nodes.insert(number, seen);
        Ok(())
    }

    fn stream(&mut self, node: &Node, kind: u32, name: &[u16], stream: &Stream) -> Result<()> {
        let Some((taken, end)) = self.take(node, stream)? else {
            return Ok(());
        };
        let Content::Mapped(mapped) = &stream.content else {
            return Ok(());
        };
        let shown = wtf8(name);
        let words = |what: String| {
            format!(
                "attribute {kind:#x} \"{}\" {what}",
                volary_core::escape(&shown)
            )
        };
        if end < mapped.end {
            let words = words(format!("has {} clusters, runs of {end}", mapped.end));
            self.tell("size", stream.at, node.number(), &words);
        }
        let cluster = self.store.volume().cluster;
        let has_holes = stream.flags & (aflag::COMPRESSION | aflag::SPARSE) != 0;
        let bytes = taken.saturating_mul(cluster);
        // `$BadClus` has a hole of the whole volume's size, and gives that as its allocated size.
        if has_holes && bytes != stream.taken && node.number() != number::BAD {
            let words = words(format!("takes {bytes} bytes, says {}", stream.taken));
            self.tell("size", stream.at, node.number(), &words);
        }
        Ok(())
    }

    fn bad(&mut self, number: u64, code: &'static str, e: Error) -> Result<()> {
        if e == Kind::Corrupt && code == "record" && !self.bits.has(number) {
            return Ok(());
        }
        self.all.is_partial = true;
        self.findings.tell(&Finding { code, ..met(&e) });
        Ok(())
    }
}
