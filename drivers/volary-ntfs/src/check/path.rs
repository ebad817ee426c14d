//! Paths for findings.

use super::records::All;
use crate::disk::names::wtf8;
use crate::disk::ondisk::number;
use crate::files::node::Node;
use crate::mft::records::Mft;

/// The most names in a path.
const NAMES_MAX: usize = 64;

/// Returns the path of a directory, or of a name in it, as far as it can be found.
pub(super) fn path(mft: &Mft, all: &All, dir: u64, name: Option<&[u8]>) -> Vec<u8> {
    let mut parts: Vec<Vec<u8>> = name.map(<[u8]>::to_vec).into_iter().collect();
    let mut at = dir;
    while at != number::ROOT && parts.len() < NAMES_MAX {
        let names = Node::of(mft, at).and_then(|node| node.names(mft));
        let Some(name) = names.ok().and_then(|names| names.into_iter().next()) else {
            break;
        };
        parts.push(wtf8(&name.name));
        at = name.parent.number;
        if !all.nodes.contains_key(&at) {
            break;
        }
    }
    let path: Vec<u8> = parts
        .iter()
        .rev()
        .flat_map(|part| [b"/", part.as_slice()].concat())
        .collect();
    if path.is_empty() { b"/".to_vec() } else { path }
}
