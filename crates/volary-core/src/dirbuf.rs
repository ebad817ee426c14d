//! What `readdir` fills.

use crate::{Attr, Cookie, FileKind, Name, NodeId};

/// Room for some entries of a directory. The caller sets the bounds, the
/// driver pushes until there is no more room or no more entries.
#[derive(Debug, Default)]
pub struct DirBuf {
    entries: Vec<Slot>,
    names: Vec<u8>,
    entries_max: usize,
    names_max: usize,
    want_attr: bool,
    numbers_do: bool,
}

#[derive(Debug)]
struct Slot {
    next: Cookie,
    node: NodeId,
    kind: FileKind,
    name_end: usize,
    attr: Option<Attr>,
}

/// One entry out of a [`DirBuf`].
#[derive(Clone, Copy, Debug)]
pub struct DirEntry<'a> {
    /// The place just after this entry.
    pub next: Cookie,
    /// The node it leads to; its number alone where that [does](DirBuf::numbers_do).
    pub node: NodeId,
    /// What that is.
    pub kind: FileKind,
    /// Its name.
    pub name: &'a [u8],
    /// Its attributes, where they were wanted and cost nothing.
    pub attr: Option<Attr>,
}

impl DirBuf {
    /// Room for `entries_max` entries whose names sum to at most `names_max`
    /// bytes; with `want_attr`, attributes are asked for as well.
    pub fn new(entries_max: usize, names_max: usize, want_attr: bool) -> Self {
        Self {
            entries_max,
            names_max,
            want_attr,
            ..Self::default()
        }
    }

    /// The same for a caller to whom names, kinds and the numbers of nodes
    /// (`node.ino`) do: a driver that would have to look at each node for its
    /// generation may give 0 in its place, and list an entry that a look would find
    /// gone, or no part of the volume. Means nothing where attributes are wanted.
    #[must_use]
    pub fn numbers_do(mut self) -> Self {
        self.numbers_do = true;
        self
    }

    /// Whether whole node ids are wanted.
    pub fn wants_ids(&self) -> bool {
        self.want_attr || !self.numbers_do
    }

    /// Whether attributes are wanted.
    pub fn wants_attr(&self) -> bool {
        self.want_attr
    }

    /// Takes an entry; false if there is no room for it, and then it must be
    /// given again next time. The first entry always fits.
    ///
    /// Passes over a name that is none (true, as if it had been taken): nobody could ask for it,
    /// and who puts paths together would be led elsewhere by it.
    pub fn push(
        &mut self,
        next: Cookie,
        node: NodeId,
        kind: FileKind,
        name: &[u8],
        attr: Option<Attr>,
    ) -> bool {
        if Name::new(name).is_err() {
            return true;
        }
        let full = self.entries.len() >= self.entries_max
            || self.names.len().saturating_add(name.len()) > self.names_max;
        if full && !self.entries.is_empty() {
            return false;
        }
        self.names.extend_from_slice(name);
        self.entries.push(Slot {
            next,
            node,
            kind,
            name_end: self.names.len(),
            attr,
        });
        true
    }

    /// The entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = DirEntry<'_>> {
        let mut start = 0;
        self.entries.iter().map(move |s| {
            let name = &self.names[start..s.name_end];
            start = s.name_end;
            DirEntry {
                next: s.next,
                node: s.node,
                kind: s.kind,
                name,
                attr: s.attr,
            }
        })
    }

    /// Changes the attributes of the entries from the `first`-th on: for a layer
    /// that shows them in another way.
    pub fn change_attrs(&mut self, first: usize, mut change: impl FnMut(&mut Attr)) {
        let attrs = self.entries.iter_mut().skip(first);
        attrs.filter_map(|s| s.attr.as_mut()).for_each(&mut change);
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The place after the last entry that it holds.
    pub fn last_cookie(&self) -> Option<Cookie> {
        self.entries.last().map(|s| s.next)
    }

    /// Empties it, keeping its room.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.names.clear();
    }
}
