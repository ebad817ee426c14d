//! The buffer that `readdir` fills.

use crate::{Attr, Cookie, Extent, FileKind, Name, NodeId, Result};

/// Room for some entries of a directory. The caller sets the bounds; the driver pushes entries
/// until the buffer is full or there are no more.
#[derive(Debug, Default)]
pub struct DirBuf {
    entries: Vec<Slot>,
    names: Vec<u8>,
    entries_max: usize,
    names_max: usize,
    want_attr: bool,
    numbers_do: bool,
    /// Extents are wanted for files of at most this size.
    extents_of: Option<u64>,
    extents: Vec<Extent>,
}

/// The most extents that a buffer holds, for all its entries together.
const EXTENTS_MAX: usize = 8192;

#[derive(Debug)]
struct Slot {
    next: Cookie,
    node: NodeId,
    kind: FileKind,
    name_end: usize,
    attr: Option<Attr>,
    extents: Option<std::ops::Range<usize>>,
}

/// One entry out of a [`DirBuf`].
#[derive(Clone, Copy, Debug)]
pub struct DirEntry<'a> {
    /// The cookie of the place just after this entry.
    pub next: Cookie,
    /// The node it leads to. With [`numbers_do`](DirBuf::numbers_do), only its `ino` is sure.
    pub node: NodeId,
    /// The node's kind.
    pub kind: FileKind,
    /// Its name.
    pub name: &'a [u8],
    /// The node's attributes, if they were wanted and cost nothing.
    pub attr: Option<Attr>,
    /// The file's extents, if they were wanted and cost nothing.
    pub extents: Option<&'a [Extent]>,
}

impl DirBuf {
    /// Makes room for `entries_max` entries whose names sum to at most `names_max` bytes. With
    /// `want_attr`, attributes are wanted too.
    pub fn new(entries_max: usize, names_max: usize, want_attr: bool) -> Self {
        Self {
            entries_max,
            names_max,
            want_attr,
            ..Self::default()
        }
    }

    /// Declares that the caller needs only names, kinds and the numbers of nodes (`node.ino`). A
    /// driver that would have to read each node for its generation may then give 0 instead. It may
    /// also list entries whose nodes turn out to be gone or no part of the volume. Has no effect if
    /// attributes are wanted.
    #[must_use]
    pub fn numbers_do(mut self) -> Self {
        self.numbers_do = true;
        self
    }

    /// Asks for the extents of files of at most `size_max` bytes, if the driver has them at hand.
    /// Has no effect unless attributes are wanted.
    #[must_use]
    pub fn with_extents(mut self, size_max: u64) -> Self {
        self.extents_of = self.want_attr.then_some(size_max);
        self
    }

    /// Returns whether the extents of a file of this size are wanted.
    pub fn wants_extents(&self, size: u64) -> bool {
        self.extents_of.is_some_and(|most| size <= most)
    }

    /// Sets the extents of the last entry, if it leads to `node`. `fill` adds what
    /// [`extents`](crate::FileSystem::extents) returns for the whole file. If it fails, or adds too
    /// many, the entry has no extents.
    pub fn set_extents(&mut self, node: NodeId, fill: impl FnOnce(&mut Vec<Extent>) -> Result<()>) {
        let last = self.entries.last_mut().filter(|s| s.node == node);
        let Some(last) = last else { return };
        let start = self.extents.len();
        let filled = fill(&mut self.extents);
        match filled {
            Ok(()) if self.extents.len() <= EXTENTS_MAX => {
                last.extents = Some(start..self.extents.len());
            }
            _ => self.extents.truncate(start),
        }
    }

    /// Returns whether whole node ids are wanted.
    pub fn wants_ids(&self) -> bool {
        self.want_attr || !self.numbers_do
    }

    /// Returns whether attributes are wanted.
    pub fn wants_attr(&self) -> bool {
        self.want_attr
    }

    /// Adds an entry. Returns false if there is no room; the driver must then push it again next
    /// time. The first entry always fits.
    ///
    /// Skips a name that is no valid [`Name`] and returns true. Nobody could look it up, and it
    /// could lead a caller that joins paths astray.
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
            extents: None,
        });
        true
    }

    /// Returns the entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = DirEntry<'_>> {
        (0..self.entries.len()).filter_map(|index| self.get(index))
    }

    /// Returns the entry of this number, from 0.
    pub fn get(&self, index: usize) -> Option<DirEntry<'_>> {
        let s = self.entries.get(index)?;
        let before = index.checked_sub(1).and_then(|i| self.entries.get(i));
        let start = before.map_or(0, |s| s.name_end);
        let extents = s.extents.clone();
        Some(DirEntry {
            next: s.next,
            node: s.node,
            kind: s.kind,
            name: self.names.get(start..s.name_end)?,
            attr: s.attr,
            extents: extents.and_then(|range| self.extents.get(range)),
        })
    }

    /// Changes the attributes of all entries but the first `first`: for a layer that shows them
    /// differently.
    pub fn change_attrs(&mut self, first: usize, mut change: impl FnMut(&mut Attr)) {
        let attrs = self.entries.iter_mut().skip(first);
        attrs.filter_map(|s| s.attr.as_mut()).for_each(&mut change);
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the cookie of the place after the last entry.
    pub fn last_cookie(&self) -> Option<Cookie> {
        self.entries.last().map(|s| s.next)
    }

    /// Removes all entries and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.names.clear();
        self.extents.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Place};

    fn extent(offset: u64) -> Extent {
        Extent {
            offset,
            len: 1,
            place: Place::Hole,
        }
    }

    #[test]
    fn extents_are_those_of_the_last_entry_and_not_after_an_error() {
        let mut buf = DirBuf::new(10, 100, true).with_extents(5);
        assert!(buf.wants_extents(5) && !buf.wants_extents(6));
        assert!(!DirBuf::new(1, 1, false).with_extents(5).wants_extents(1));
        let node = |ino| NodeId::new(ino, 0).unwrap();
        for ino in 1..=4 {
            buf.push(Cookie(ino), node(ino), FileKind::File, &[b'a'; 2], None);
            match ino {
                1 => buf.set_extents(node(9), |_| panic!("not the last one")),
                2 => buf.set_extents(node(2), |all| {
                    all.push(extent(2));
                    Err(Kind::Io.into())
                }),
                3 => buf.set_extents(node(3), |all| {
                    all.push(extent(3));
                    Ok(())
                }),
                _ => buf.set_extents(node(4), |all| {
                    all.resize(EXTENTS_MAX + 1, extent(4));
                    Ok(())
                }),
            }
        }
        let found: Vec<_> = buf.iter().map(|e| e.extents.map(<[_]>::to_vec)).collect();
        assert_eq!(found, [None, None, Some(vec![extent(3)]), None]);
        assert!(buf.iter().all(|e| e.name == b"aa"));
    }
}
