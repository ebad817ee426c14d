//! Cases for volumes that are only read: everything that they answer is held to a manifest.

mod attributes;
mod bytes;
mod claims;
mod ends;
mod listing;
mod names;
mod opens;
mod refusals;
mod threads;

use crate::manifest::{Manifest, Node, join};
use crate::suite::{Case, CaseSpec};
use volary_core::{Attr, FileKind, NodeId, escape};

/// Returns all, in the order in which they run.
pub(crate) fn all() -> impl Iterator<Item = &'static CaseSpec> {
    [
        names::CASES,
        attributes::CASES,
        listing::CASES,
        bytes::CASES,
        opens::CASES,
        claims::CASES,
        refusals::CASES,
        threads::CASES,
        ends::CASES,
    ]
    .into_iter()
    .flatten()
}

/// A path of the manifest, as the volume has it.
struct Seen<'a> {
    path: Vec<u8>,
    number: usize,
    want: &'a Node,
    node: NodeId,
    attr: Attr,
}

impl Seen<'_> {
    /// Returns the path in a form that can be printed.
    fn shown(&self) -> String {
        format!("'{}'", escape(&self.path))
    }
}

/// Finds every path of the manifest by lookups from the root.
fn walk<'a>(c: &Case, manifest: &'a Manifest) -> Vec<Seen<'a>> {
    let root = Seen {
        path: Vec::new(),
        number: 0,
        want: manifest.node(0),
        node: c.root(),
        attr: c.attr(c.root()),
    };
    let mut all = vec![root];
    let mut next = 0;
    while let Some(dir) = all.get(next) {
        let (path, node) = (dir.path.clone(), dir.node);
        for name in manifest.names(&path) {
            let below = join(&path, name);
            let entry = c.lookup(node, name);
            let entry = entry.unwrap_or_else(|e| panic!("lookup of '{}': {e}", escape(&below)));
            let number = manifest.find(&below).expect("in the manifest");
            all.push(Seen {
                path: below,
                number,
                want: manifest.node(number),
                node: entry.node,
                attr: entry.attr,
            });
        }
        next += 1;
    }
    all
}

/// Thins out large directories: every fiftieth of those with more than a hundred entries.
fn sample<'a>(c: &Case, manifest: &'a Manifest) -> Vec<Seen<'a>> {
    let mut all = walk(c, manifest);
    let mut index = 0;
    all.retain(|seen| {
        index += 1;
        let (dir, _) = crate::manifest::split(&seen.path);
        manifest.names(dir).len() <= 100 || index % 50 == 0
    });
    all
}

/// Returns those of a kind.
fn of_kind<'a, 'b>(all: &'a [Seen<'b>], kind: FileKind) -> impl Iterator<Item = &'a Seen<'b>> {
    all.iter().filter(move |seen| seen.want.kind == kind)
}

/// Returns the files whose bytes are worth reading in detail.
fn files<'a, 'b>(all: &'a [Seen<'b>]) -> impl Iterator<Item = &'a Seen<'b>> {
    of_kind(all, FileKind::File)
}

/// Returns the directories whose entries are all known.
fn dirs<'a, 'b>(all: &'a [Seen<'b>]) -> impl Iterator<Item = &'a Seen<'b>> {
    of_kind(all, FileKind::Dir).filter(|seen| seen.want.listed)
}
