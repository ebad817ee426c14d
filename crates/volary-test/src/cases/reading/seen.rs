//! The nodes of a manifest, found on a volume.

use crate::manifest::{Manifest, Node, join};
use crate::suite::Case;
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

/// Like [`walk`], but of the entries of large directories (more than 100), keeps only some.
pub(super) fn sample<'a>(c: &Case, manifest: &'a Manifest) -> Vec<Seen<'a>> {
    let mut all = walk(c, manifest);
    let mut index = 0;
    all.retain(|seen| {
        index += 1;
        let (dir, _) = crate::manifest::split(&seen.path);
        manifest.names(dir).len() <= 100 || index % 50 == 0
    });
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
