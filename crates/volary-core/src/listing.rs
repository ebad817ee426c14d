//! Listings for layers that show entries in another way than they are below.

use crate::{Attr, Cookie, Ctx, DirBuf, DirEntry, FileKind, Fs, NodeId, OpenId, Result};

/// An entry as a layer shows it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The node that it leads to.
    pub node: NodeId,
    /// What that is.
    pub kind: FileKind,
    /// Its name.
    pub name: Vec<u8>,
    /// The node's attributes, where they are known.
    pub attr: Option<Attr>,
}

impl Shown {
    /// Returns an entry under another name.
    pub fn renamed(entry: &DirEntry<'_>, name: Vec<u8>) -> Self {
        Self {
            node: entry.node,
            kind: entry.kind,
            name,
            attr: entry.attr,
        }
    }
}

/// How many entries are asked for at a time, and bytes of names.
const ENTRIES: usize = 64;
const NAMES: usize = 16 << 10;

/// Does [`FileSystem::readdir`](crate::FileSystem::readdir) below, with each
/// entry as `show` has it; `None` leaves one out. Places stay what they are below.
/// [`Layer::shown`](crate::Layer::shown) does it for a layer that need not keep more.
///
/// # Errors
/// Of the listing below and of `show`.
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
        // A listing that gives nothing and does not end would be one for ever.
        if end || some.is_empty() {
            return Ok(end);
        }
        cx.check_cancel()?;
    }
}
