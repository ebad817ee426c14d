//! Listings for layers that show entries in another way than they are below.

use volary_core::{Attr, Cookie, Ctx, DirBuf, DirEntry, FileKind, Fs, NodeId, OpenId, Result};

/// An entry as a layer shows it.
pub(crate) struct Shown {
    pub(crate) node: NodeId,
    pub(crate) kind: FileKind,
    pub(crate) name: Vec<u8>,
    pub(crate) attr: Option<Attr>,
}

impl Shown {
    /// Returns an entry under another name.
    pub(crate) fn renamed(entry: &DirEntry<'_>, name: Vec<u8>) -> Self {
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

/// [`FileSystem::readdir`](volary_core::FileSystem::readdir) below, with each
/// entry as `show` has it; `None` leaves one out. Places stay what they are below.
///
/// # Errors
/// Of the listing below and of `show`.
pub(crate) fn mapped(
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
