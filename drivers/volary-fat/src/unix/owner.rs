//! Who owns what: the mount's three ownership options (paper, section 3.1),
//! and the table of owners behind the UNIX extension.

use crate::volume::ondisk::Short;
use std::collections::HashMap;
use volary_core::{Kind, Result};

/// Who owns what has no owner of its own, and what modes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ownership {
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Permission bits that files do not have.
    pub fmask: u32,
    /// Permission bits that directories do not have.
    pub dmask: u32,
    /// Bits to take from modes that stand on the disk, of files. 0 unless a
    /// mask was asked for: the mounter's umask is not one.
    pub disk_fmask: u32,
    /// The same of directories.
    pub disk_dmask: u32,
}

impl Ownership {
    /// Returns the mode of a node without one: all bits but the mask's, and none that
    /// allow writing for a file with the read-only attribute. (On a directory
    /// that attribute forbids nothing, as in DOS.)
    pub(crate) fn mode(&self, dir: bool, read_only: bool) -> u32 {
        if dir {
            0o777 & !self.dmask
        } else if read_only {
            0o555 & !self.fmask
        } else {
            0o777 & !self.fmask
        }
    }

    /// Returns a mode from the disk, less what the mount takes away.
    pub(crate) fn masked(&self, dir: bool, mode: u32) -> u32 {
        mode & !if dir {
            self.disk_dmask
        } else {
            self.disk_fmask
        }
    }
}

/// The hidden system file in the root directory that holds the table.
pub(crate) const TABLE_NAME: Short = *b"VOLARY  OWN";
/// Length of the table's head in bytes.
pub(crate) const HEAD_LEN: usize = 16;
/// Length of a row: user and group.
pub(crate) const ROW_LEN: usize = 8;
/// Longest table: every index but 0.
pub(crate) const TABLE_LEN_MAX: usize = HEAD_LEN + ROW_LEN * crate::unix::today::OWNER_MAX as usize;

const MAGIC: [u8; 8] = *b"VOLARYOW";
const VERSION: u32 = 1;

/// The table of owners: index n of an entry's extension is its n-th row.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnerTable {
    rows: Vec<(u32, u32)>,
    index: HashMap<(u32, u32), u16>,
}

impl OwnerTable {
    /// Returns an empty table's bytes.
    pub(crate) fn head() -> [u8; HEAD_LEN] {
        let mut head = [0; HEAD_LEN];
        for (to, from) in head
            .iter_mut()
            .zip(MAGIC.into_iter().chain(VERSION.to_le_bytes()))
        {
            *to = from;
        }
        head
    }

    /// Returns the table in a file's content, or `None` if it is none. Rows past
    /// the largest index and a row that is cut off are passed over.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (head, rows) = bytes.split_at_checked(HEAD_LEN)?;
        if head != Self::head() {
            return None;
        }
        let mut table = Self::default();
        let (rows, _) = rows.as_chunks::<ROW_LEN>();
        for row in rows.iter().take(crate::unix::today::OWNER_MAX.into()) {
            let [a, b, c, d, e, f, g, h] = *row;
            table.push(
                u32::from_le_bytes([a, b, c, d]),
                u32::from_le_bytes([e, f, g, h]),
            );
        }
        Some(table)
    }

    /// Returns the pair of an index, if there is such a row.
    pub(crate) fn get(&self, index: u16) -> Option<(u32, u32)> {
        self.rows.get(usize::from(index).checked_sub(1)?).copied()
    }

    /// Returns the index of a pair, if it has a row.
    pub(crate) fn find(&self, uid: u32, gid: u32) -> Option<u16> {
        self.index.get(&(uid, gid)).copied()
    }

    /// Adds a row for a pair that has none and gives its index. The row's
    /// bytes are [`row`](Self::row), its place [`offset`](Self::offset).
    ///
    /// # Errors
    /// `NoSpace` if all 2047 are taken.
    pub(crate) fn add(&mut self, uid: u32, gid: u32) -> Result<u16> {
        if self.rows.len() >= crate::unix::today::OWNER_MAX.into() {
            return Err(Kind::NoSpace.into());
        }
        Ok(self.push(uid, gid))
    }

    fn push(&mut self, uid: u32, gid: u32) -> u16 {
        self.rows.push((uid, gid));
        // At most OWNER_MAX rows.
        let index = self.rows.len() as u16;
        self.index.entry((uid, gid)).or_insert(index);
        index
    }

    /// Takes the last row away again, when it could not be written.
    pub(crate) fn pop(&mut self) {
        let index = self.rows.len() as u16;
        if let Some(pair) = self.rows.pop()
            && self.index.get(&pair) == Some(&index)
        {
            self.index.remove(&pair);
        }
    }

    /// Returns how many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns where the row of an index, which is not 0, stands in the file.
    pub(crate) fn offset(index: u16) -> u64 {
        HEAD_LEN as u64 + u64::from(index.saturating_sub(1)) * ROW_LEN as u64
    }

    /// Returns a row as it is stored.
    pub(crate) fn row(uid: u32, gid: u32) -> [u8; ROW_LEN] {
        let mut row = [0; ROW_LEN];
        let bytes = uid.to_le_bytes().into_iter().chain(gid.to_le_bytes());
        for (to, from) in row.iter_mut().zip(bytes) {
            *to = from;
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_comes_back_from_its_bytes() {
        let mut table = OwnerTable::default();
        let mut bytes = OwnerTable::head().to_vec();
        for (uid, gid) in [(0, 0), (1000, 1000), (u32::MAX, 7)] {
            let index = table.add(uid, gid).unwrap();
            assert_eq!(bytes.len() as u64, OwnerTable::offset(index));
            bytes.extend(OwnerTable::row(uid, gid));
        }
        assert_eq!(bytes.len() as u64, OwnerTable::offset(4));
        bytes.extend([1, 2, 3]);
        let back = OwnerTable::parse(&bytes).unwrap();
        assert_eq!(back.len(), 3);
        assert_eq!(back.get(3), Some((u32::MAX, 7)));
        assert_eq!(back.find(1000, 1000), Some(2));
        assert_eq!((back.get(0), back.get(4)), (None, None));
    }

    #[test]
    fn what_is_no_table_is_told() {
        assert!(OwnerTable::parse(b"").is_none());
        assert!(OwnerTable::parse(&[0; 64]).is_none());
        assert!(OwnerTable::parse(&OwnerTable::head()).unwrap().len() == 0);
    }

    #[test]
    fn a_full_table_says_so_and_a_row_can_be_taken_back() {
        let mut table = OwnerTable::default();
        for uid in 0..2047 {
            table.add(uid, 0).unwrap();
        }
        assert_eq!(table.add(5000, 0).unwrap_err(), Kind::NoSpace);
        assert_eq!(OwnerTable::offset(2048) as usize, TABLE_LEN_MAX);
        table.pop();
        assert_eq!(
            (table.find(2046, 0), table.find(2045, 0)),
            (None, Some(2046))
        );
    }

    #[test]
    fn masks_take_bits_away() {
        let own = Ownership {
            uid: 0,
            gid: 0,
            fmask: 0o133,
            dmask: 0o022,
            disk_fmask: 0o6111,
            disk_dmask: 0,
        };
        assert_eq!(own.mode(false, false), 0o644);
        assert_eq!(own.mode(false, true), 0o444);
        assert_eq!(own.mode(true, true), 0o755);
        assert_eq!(own.masked(false, 0o4755), 0o644);
        assert_eq!(own.masked(true, 0o2755), 0o2755);
    }
}
