//! The nodes of a manifest, found on a volume.

use crate::manifest::{Manifest, Node, join};
use crate::suite::Case;
use std::collections::VecDeque;
use volary_core::{Attr, FileKind, NodeId, escape};

/// A path of the manifest, with its node on the volume.
pub(super) struct Seen<'a> {
    pub(super) path: Vec<u8>,
    pub(super) number: usize,
    pub(super) want: &'a Node,
    pub(super) node: NodeId,
    pub(super) attr: Attr,
}

impl Seen<'_> {
    /// Returns the path in printable form.
    pub(super) fn shown(&self) -> String {
        format!("'{}'", escape(&self.path))
    }
}

/// Looks up every path of the manifest, from the root down.
pub(super) fn walk<'a>(c: &Case, manifest: &'a Manifest) -> Vec<Seen<'a>> {
    look_up(c, manifest, |_, _| true)
}

/// Like [`walk`], but of the entries of large directories (more than 100), looks up only some, and
/// those that are directories.
pub(super) fn sample<'a>(c: &Case, manifest: &'a Manifest) -> Vec<Seen<'a>> {
    look_up(c, manifest, |index, count| count <= 100 || index % 50 == 0)
}

/// Looks up paths of the manifest, from the root down. Returns the nodes that `keeps` chooses by
/// their index in a directory and the number of its entries.
fn look_up<'a>(
    c: &Case,
    manifest: &'a Manifest,
    keeps: impl Fn(usize, usize) -> bool,
) -> Vec<Seen<'a>> {
    let root = Seen {
        path: Vec::new(),
        number: 0,
        want: manifest.node(0),
        node: c.root(),
        attr: c.attr(c.root()),
    };
    let mut all = vec![root];
    let mut dirs = VecDeque::from([(Vec::new(), c.root())]);
    while let Some((path, node)) = dirs.pop_front() {
        let names = manifest.names(&path);
        let count = names.len();
        for (index, name) in names.iter().enumerate() {
            let below = join(&path, name);
            let number = manifest.find(&below).expect("in the manifest");
            let want = manifest.node(number);
            let (is_kept, is_dir) = (keeps(index, count), want.kind == FileKind::Dir);
            if !is_kept && !is_dir {
                continue;
            }
            let entry = c.lookup(node, name);
            let entry = entry.unwrap_or_else(|e| panic!("lookup of '{}': {e}", escape(&below)));
            if is_dir {
                dirs.push_back((below.clone(), entry.node));
            }
            if is_kept {
                all.push(Seen {
                    path: below,
                    number,
                    want,
                    node: entry.node,
                    attr: entry.attr,
                });
            }
        }
    }
    all
}

/// Returns the nodes of one kind.
pub(super) fn of_kind<'a, 'b>(
    all: &'a [Seen<'b>],
    kind: FileKind,
) -> impl Iterator<Item = &'a Seen<'b>> {
    all.iter().filter(move |seen| seen.want.kind == kind)
}

/// Returns the regular files.
pub(super) fn files<'a, 'b>(all: &'a [Seen<'b>]) -> impl Iterator<Item = &'a Seen<'b>> {
    of_kind(all, FileKind::File)
}

/// Returns the directories whose entries the manifest lists in full.
pub(super) fn dirs<'a, 'b>(all: &'a [Seen<'b>]) -> impl Iterator<Item = &'a Seen<'b>> {
    of_kind(all, FileKind::Dir).filter(|seen| seen.want.listed)
}
