//! What `readdir` fills.

use crate::{Attr, Cookie, Extent, FileKind, Name, NodeId, Result};

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
    /// Extents are wanted of files of at most this size.
    extents_of: Option<u64>,
    extents: Vec<Extent>,
}

/// Most extents that a buffer holds: those of all its entries.
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
    /// Where the bytes of a file lie, where that was wanted and cost nothing.
    pub extents: Option<&'a [Extent]>,
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

    /// Asks for the extents of files of at most `size_max` bytes, if the driver has them at
    /// hand. Means nothing where attributes are not wanted.
    #[must_use]
    pub fn with_extents(mut self, size_max: u64) -> Self {
        self.extents_of = self.want_attr.then_some(size_max);
        self
    }

    /// Returns whether the extents of a file of this size are wanted.
    pub fn wants_extents(&self, size: u64) -> bool {
        self.extents_of.is_some_and(|most| size <= most)
    }

    /// Notes where the bytes of the last entry lie, if that leads to `node`: `fill` adds what
    /// [`extents`](crate::FileSystem::extents) gives for all of the file. After an error, and where
    /// there are too many, it is as if they were not known.
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

    /// Changes the attributes of the entries from the `first`-th on: for a layer
    /// that shows them in another way.
    pub fn change_attrs(&mut self, first: usize, mut change: impl FnMut(&mut Attr)) {
        let attrs = self.entries.iter_mut().skip(first);
        attrs.filter_map(|s| s.attr.as_mut()).for_each(&mut change);
    }

    /// Returns how many entries it holds.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the place after the last entry that it holds.
    pub fn last_cookie(&self) -> Option<Cookie> {
        self.entries.last().map(|s| s.next)
    }

    /// Empties it, keeping its room.
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
