//! The volume, checked: the superblock is believed from here on.

use crate::disk::ondisk::{
    ADDRESSES, BLOCKS_MAX, DIRECT, FS_MAGIC, FS_OKAY, INODE_LEN, INODES_FROM, ISIZE, MAGIC,
    NICFREE, NICINOD, Order, ROOT_INO, SIZE_MAX, STATE, SUPER_AT, SUPER_LEN, TYPE, Variant, di,
};
use std::ops::Range;
use volary_core::{BlockDevice, Error, FileKind, Result};

/// 1980-01-01: System V before Release 4 has no time where Release 4 has it.
pub(crate) const JAN_1_1980: u32 = 315_532_800;

/// Longest directory that is believed, in bytes: a million names.
pub(crate) const DIR_MAX: u64 = 16 << 20;

/// A volume's shape, and its superblock as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub(crate) variant: Variant,
    pub(crate) order: Order,
    /// Bytes of a block.
    pub(crate) bsize: u64,
    /// The first block of data: `s_isize`.
    pub(crate) first: u64,
    /// Blocks: `s_fsize`.
    pub(crate) blocks: u64,
    /// Inodes.
    pub(crate) inodes: u32,
    /// The superblock.
    pub(crate) head: Vec<u8>,
}

/// The way to a block of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// Which address of the inode.
    pub(crate) slot: usize,
    /// How many indirect blocks lead there.
    pub(crate) depth: usize,
    /// Which address in each of these.
    pub(crate) at: [usize; 3],
}

impl Volume {
    /// Returns what the device holds, if that is such a volume.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn find(dev: &dyn BlockDevice) -> Result<Option<Self>> {
        let size = dev.geometry().size;
        if size < SUPER_AT + SUPER_LEN as u64 {
            return Ok(None);
        }
        let mut head = vec![0; SUPER_LEN];
        dev.read_at(SUPER_AT, &mut head)?;
        if let Some(order) = magic(&head) {
            let volume = Self::of_sysv(head, order);
            return Ok(volume.filter(|volume| volume.misfit(size).is_none()));
        }
        for order in [Order::Pdp, Order::Little] {
            let volume = Self::of_head(head.clone(), Variant::V7, order, 512);
            if volume.misfit(size).is_none() && volume.lists_fit() && volume.has_root(dev)? {
                return Ok(Some(volume));
            }
        }
        Ok(None)
    }

    /// Returns the volume that the device holds; of one that is hard to tell by its looks, with `order` it
    /// is believed.
    ///
    /// # Errors
    /// `Corrupt`, with the first field that makes no sense; `Io`.
    pub(crate) fn new(dev: &dyn BlockDevice, order: Option<Order>) -> Result<Self> {
        let size = dev.geometry().size;
        if let Some(found) = Self::find(dev)? {
            return Ok(found);
        }
        let mut head = vec![0; SUPER_LEN];
        if size < SUPER_AT + SUPER_LEN as u64 {
            return Err(Error::corrupt("device", 0, "its end", "a superblock"));
        }
        dev.read_at(SUPER_AT, &mut head)?;
        let volume = match magic(&head) {
            Some(order) => Self::of_sysv(head.clone(), order).ok_or_else(|| {
                let found = order.get32(&head, TYPE).to_string();
                let expected = "1, 2 or 3, on a volume of System V Release 4";
                Error::corrupt("s_type", SUPER_AT + TYPE as u64, found, expected)
            })?,
            None => Self::of_head(head, Variant::V7, order.unwrap_or(Order::Pdp), 512),
        };
        match volume.misfit(size) {
            Some((what, found)) => {
                let expected = "a number that fits the device and the other fields";
                Err(Error::corrupt(what, SUPER_AT, found.to_string(), expected))
            }
            None if volume.variant == Variant::SysV || order.is_some() => Ok(volume),
            None => {
                let expected = "a superblock and a root that fit each other; the option order= \
                                says that it is a volume all the same";
                Err(Error::corrupt("superblock", SUPER_AT, "none", expected))
            }
        }
    }

    fn of_sysv(head: Vec<u8>, order: Order) -> Option<Self> {
        let kind = order.get32(&head, TYPE);
        let time = order.get32(&head, Variant::SysV.fields().time);
        if !(1..=3).contains(&kind) || time < JAN_1_1980 {
            return None;
        }
        Some(Self::of_head(head, Variant::SysV, order, 256 << kind))
    }

    pub(crate) fn of_head(head: Vec<u8>, variant: Variant, order: Order, bsize: u64) -> Self {
        let first = u64::from(order.get16(&head, ISIZE));
        let per_block = bsize / INODE_LEN as u64;
        let inodes = first.saturating_sub(INODES_FROM) * per_block;
        Self {
            variant,
            order,
            bsize,
            first,
            blocks: order.get32(&head, variant.fields().fsize).into(),
            // A number in a directory has 16 bits.
            inodes: u32::try_from(inodes.min(u16::MAX.into())).unwrap_or(0),
            head,
        }
    }

    /// Returns the first field that makes no sense, and what it is.
    fn misfit(&self, size: u64) -> Option<(&'static str, u64)> {
        let fits = self.first > INODES_FROM && self.first < self.blocks;
        if !fits {
            return Some(("s_isize", self.first));
        }
        if self.blocks > BLOCKS_MAX || self.blocks * self.bsize > size {
            return Some(("s_fsize", self.blocks));
        }
        let fields = self.variant.fields();
        let nfree = self.order.get16(&self.head, fields.nfree);
        if usize::from(nfree) > NICFREE {
            return Some(("s_nfree", nfree.into()));
        }
        let ninode = self.order.get16(&self.head, fields.ninode);
        (usize::from(ninode) > NICINOD).then_some(("s_ninode", ninode.into()))
    }

    /// Returns whether the lists in the superblock hold nothing but what can be free, and flags are flags.
    fn lists_fit(&self) -> bool {
        let fields = self.variant.fields();
        let flags = self.head.get(fields.flags..fields.flags + 4);
        let free = self.free_list();
        let blocks = self.data();
        let is_free = |(i, b): (usize, &u32)| i == 0 && *b == 0 || blocks.contains(&u64::from(*b));
        let inodes = self.inode_list();
        flags.is_some_and(|flags| flags.iter().all(|&flag| flag <= 1))
            && free.iter().enumerate().all(is_free)
            && inodes.iter().all(|&ino| u32::from(ino) <= self.inodes)
    }

    /// Returns whether the root is a directory that begins with itself, twice.
    fn has_root(&self, dev: &dyn BlockDevice) -> Result<bool> {
        let mut inode = [0; INODE_LEN];
        dev.read_at(self.inode_at(ROOT_INO), &mut inode)?;
        let mode = self.order.get16(&inode, di::MODE);
        let size = u64::from(self.order.get32(&inode, di::SIZE));
        let nlink = self.order.get16(&inode, di::NLINK);
        let block = u64::from(self.order.get24(&inode, di::ADDR));
        let is_dir = FileKind::from_mode(mode.into()) == Some(FileKind::Dir);
        let fits = nlink >= 2 && size >= 32 && size.is_multiple_of(16) && size <= DIR_MAX;
        if !is_dir || !fits || !self.data().contains(&block) {
            return Ok(false);
        }
        let mut dots = [0; 32];
        dev.read_at(block * self.bsize, &mut dots)?;
        let mut expected = [0; 32];
        for (at, name) in [(0, &b"."[..]), (16, b"..")] {
            self.order.put16(&mut expected, at, 2);
            if let Some(room) = expected.get_mut(at + 2..at + 2 + name.len()) {
                room.copy_from_slice(name);
            }
        }
        Ok(dots == expected)
    }

    /// Returns the blocks that hold data.
    pub(crate) fn data(&self) -> Range<u64> {
        self.first..self.blocks
    }

    /// Returns where an inode is, in bytes.
    pub(crate) fn inode_at(&self, ino: u32) -> u64 {
        INODES_FROM * self.bsize + u64::from(ino.saturating_sub(1)) * INODE_LEN as u64
    }

    /// Returns a block's length.
    pub(crate) fn block_len(&self) -> usize {
        usize::try_from(self.bsize).unwrap_or(512)
    }

    /// Returns addresses in an indirect block.
    pub(crate) fn pointers(&self) -> u64 {
        self.bsize / 4
    }

    /// Longest file, in bytes.
    pub(crate) fn size_max(&self) -> u64 {
        let n = self.pointers();
        let blocks = DIRECT as u64 + n + n * n + n * n * n;
        SIZE_MAX.min(blocks * self.bsize)
    }

    /// Returns the way to a block of a file; none past the longest.
    pub(crate) fn path(&self, lbn: u64) -> Option<Path> {
        if lbn < DIRECT as u64 {
            return Some(Path {
                slot: usize::try_from(lbn).unwrap_or(0),
                depth: 0,
                at: [0; 3],
            });
        }
        let n = self.pointers();
        let (mut rest, mut span) = (lbn - DIRECT as u64, n);
        for depth in 1..=ADDRESSES - DIRECT {
            if rest < span {
                let mut at = [0; 3];
                for place in at.iter_mut().take(depth) {
                    span /= n;
                    *place = usize::try_from(rest / span).unwrap_or(0);
                    rest %= span;
                }
                let slot = DIRECT + depth - 1;
                return Some(Path { slot, depth, at });
            }
            rest -= span;
            span *= n;
        }
        None
    }

    /// Returns the first block of a file that an address of the inode leads to, and how many there are.
    pub(crate) fn span(&self, slot: usize) -> Range<u64> {
        let n = self.pointers();
        let (mut first, mut count) = (slot as u64, 1);
        if slot >= DIRECT {
            first = DIRECT as u64;
            count = n;
            for _ in DIRECT..slot {
                first += count;
                count *= n;
            }
        }
        first..first + count
    }

    /// `s_free`, as far as it counts.
    pub(crate) fn free_list(&self) -> Vec<u32> {
        let fields = self.variant.fields();
        let count = self.order.get16(&self.head, fields.nfree);
        let places = (0..usize::from(count).min(NICFREE)).map(|i| fields.free + 4 * i);
        places.map(|at| self.order.get32(&self.head, at)).collect()
    }

    /// `s_inode`, as far as it counts.
    pub(crate) fn inode_list(&self) -> Vec<u16> {
        let fields = self.variant.fields();
        let count = self.order.get16(&self.head, fields.ninode);
        let places = (0..usize::from(count).min(NICINOD)).map(|i| fields.inode + 2 * i);
        places.map(|at| self.order.get16(&self.head, at)).collect()
    }

    /// `s_tfree` and `s_tinode`.
    pub(crate) fn totals(&self) -> (u32, u16) {
        let fields = self.variant.fields();
        let free = self.order.get32(&self.head, fields.tfree);
        (free, self.order.get16(&self.head, fields.tinode))
    }

    /// Returns whether the superblock says that the volume was cleanly left: see `FORMAT.md`.
    pub(crate) fn is_clean(&self) -> bool {
        let fields = self.variant.fields();
        match self.variant {
            Variant::V7 => self.head.get(fields.flags + 2) == Some(&0),
            Variant::SysV => {
                let state = self.order.get32(&self.head, STATE);
                let time = self.order.get32(&self.head, fields.time);
                state.wrapping_add(time) == FS_OKAY
            }
        }
    }

    /// Returns a name in the superblock: `s_fname` or `s_fpack`.
    pub(crate) fn text(&self, at: usize) -> Option<String> {
        let bytes = self.head.get(at..at + 6)?;
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        let bytes = bytes.get(..end)?.trim_ascii_end();
        (!bytes.is_empty()).then(|| volary_core::escape(bytes).to_string())
    }

    /// Returns the volume's kind, as mkfs calls it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.variant {
            Variant::V7 => "v7",
            Variant::SysV => "sysv",
        }
    }
}

/// Returns the order of the magic number, if it is there.
fn magic(head: &[u8]) -> Option<Order> {
    let orders = [Order::Little, Order::Big];
    orders
        .into_iter()
        .find(|order| order.get32(head, MAGIC) == FS_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_spans_agree() {
        for bsize in [512, 1024, 2048] {
            let volume = Volume::of_head(vec![0; SUPER_LEN], Variant::V7, Order::Pdp, bsize);
            for slot in 0..ADDRESSES {
                let span = volume.span(slot);
                for lbn in [span.start, span.end - 1] {
                    assert_eq!(volume.path(lbn).map(|path| path.slot), Some(slot), "{lbn}");
                }
            }
            let n = volume.pointers();
            let last = volume.span(ADDRESSES - 1).end - 1;
            let path = volume.path(last).expect("a path");
            assert_eq!(path.at, [n as usize - 1; 3]);
            assert_eq!(volume.path(last + 1), None);
            let path = volume.path(10 + n + n + 1).expect("a path");
            assert_eq!((path.depth, path.at), (2, [1, 1, 0]));
        }
    }
}
