//! Listings for layers that show entries differently from the volume below.

use crate::{Attr, Cookie, Ctx, DirBuf, DirEntry, FileKind, Fs, NodeId, OpenId, Result};

/// An entry as a layer shows it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The node that it leads to.
    pub node: NodeId,
    /// The node's kind.
    pub kind: FileKind,
    /// Its name.
    pub name: Vec<u8>,
    /// The node's attributes, if they are known.
    pub attr: Option<Attr>,
}

impl Shown {
    /// Returns the entry under another name.
    pub fn renamed(entry: &DirEntry<'_>, name: Vec<u8>) -> Self {
        Self {
            node: entry.node,
            kind: entry.kind,
            name,
            attr: entry.attr,
        }
    }
}

/// How many entries are read at a time, and at most how many bytes of names.
const ENTRIES: usize = 64;
const NAMES: usize = 16 << 10;

/// Implements [`FileSystem::readdir`](crate::FileSystem::readdir) by a listing below. `show` maps
/// each entry, or leaves it out with `None`. Cookies stay those of the volume below. A layer that
/// keeps no state of its own implements [`Layer::shown`](crate::Layer::shown) instead.
///
/// # Errors
/// Those of the listing below and of `show`.
pub fn map_listing(
    below: &Fs,
    cx: &Ctx<'_>,
    dir: OpenId,
    from: Cookie,
    out: &mut DirBuf,
    mut show: impl FnMut(&DirEntry<'_>) -> Result<Option<Shown>>,
) -> Result<bool> {
    let mut at = from;
    loop {
        let mut some = DirBuf::new(ENTRIES, NAMES, out.wants_attr());
        let end = below.readdir(cx, dir, at, &mut some)?;
        for entry in some.iter() {
            if let Some(s) = show(&entry)?
                && !out.push(entry.next, s.node, s.kind, &s.name, s.attr)
            {
                return Ok(false);
            }
            at = entry.next;
        }
        // A listing that returns nothing and does not end would loop for ever.
        if end || some.is_empty() {
            return Ok(end);
        }
        cx.check_cancel()?;
    }
}
