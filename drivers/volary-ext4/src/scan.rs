//! Goes through all groups and all inodes in use, whatever damage there is.

use crate::extents::{Below, Node};
use crate::indirect::{Pointers, direct};
use crate::inode::Inode;
use crate::ondisk::{group, iflag, incompat};
use crate::run::{MapBlock, Run, Spot};
use crate::store::{Group, Store};
use volary_core::{Error, FileKind, Kind, Result};
use volary_ondisk::Ranges;

/// The inode that holds blocks for descriptors to come, which each group counts itself.
const RESIZE_INO: u32 = 7;
/// The inode of bad blocks.
pub(crate) const BAD_INO: u32 = 1;

/// Receives what a scan meets. An error ends the scan.
pub(crate) trait Visitor {
    /// Begins a group: once before its structures, once before its inodes.
    fn group(&mut self, number: u32) -> Result<()> {
        let _ = number;
        Ok(())
    }
    /// Takes blocks of the volume's own structures.
    fn system(&mut self, first: u64, count: u64);
    /// Takes an inode in use; `is_orphan` if it has no names, but was not freed.
    fn inode(&mut self, inode: &Inode, is_orphan: bool) -> Result<()>;
    /// Takes blocks of the inode's data, or, with `is_map`, of its extent tree or pointers. Returns
    /// false if another inode has them already.
    fn blocks(&mut self, inode: &Inode, first: u64, count: u64, is_map: bool) -> Result<bool>;
    /// Ends an inode, after its blocks.
    fn end(&mut self, inode: &Inode, is_whole: bool) -> Result<()> {
        let _ = (inode, is_whole);
        Ok(())
    }
    /// Takes damage. The scan passes over what it hides.
    fn bad(&mut self, what: Damaged, e: Error) -> Result<()>;
}

/// The structure that is damaged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Damaged {
    /// A group's descriptor.
    Group,
    /// An inode, or the table that it is in.
    Inode,
    /// The map of an inode's blocks.
    Map,
}

impl Store {
    /// Returns the blocks of a group that the volume itself has, as runs.
    pub(crate) fn system_of(&self, number: u32, group: Option<&Group>) -> Vec<(u64, u64)> {
        let volume = &self.volume;
        let start = volume.group_start(number);
        let per = volume.descs_per_block();
        let blocks = u64::from(volume.groups).div_ceil(per);
        let meta = match volume.has_incompat(incompat::META_BG) {
            true => u64::from(volume.raw.s_first_meta_bg.get()).min(blocks),
            false => blocks,
        };
        let reserved = u64::from(volume.raw.s_reserved_gdt_blocks.get());
        let mut all = Vec::new();
        let has_super = volume.has_super(number);
        if has_super {
            let first = match number {
                // With blocks of 1 KiB and clusters, the superblock is not in the first block.
                0 => volume.super_block().max(start),
                _ => start,
            };
            let more = if meta > 0 || blocks == meta {
                meta + reserved
            } else {
                0
            };
            all.push((first, 1 + more));
        }
        let place = u64::from(number) % per;
        let is_of_meta = u64::from(number) / per >= meta;
        let last = (per - 1).min(u64::from(volume.groups - 1) - (u64::from(number) - place));
        if is_of_meta && (place < 2 || place == per - 1 || place == last && last < 2) {
            let own = match place {
                0 => volume.desc_block(number),
                _ => start + u64::from(has_super),
            };
            all.push((own, 1));
        }
        if let Some(group) = group {
            let table = u64::from(volume.inodes_per_group) * volume.inode_size as u64;
            all.push((group.block_bitmap, 1));
            all.push((group.inode_bitmap, 1));
            all.push((group.inode_table, table.div_ceil(volume.block)));
        }
        if number == 0 && volume.has_incompat(incompat::MMP) {
            all.push((volume.raw.s_mmp_block.get(), 1));
        }
        all
    }

    /// Goes through everything.
    ///
    /// # Errors
    /// Of `visitor`; `Io`.
    pub(crate) fn scan(&self, visitor: &mut dyn Visitor) -> Result<()> {
        let (mut groups, mut tables) = (Vec::new(), Ranges::default());
        let is_there = |number: &u32| self.volume.group_start(*number) < self.volume.there();
        // A volume may claim groups past the end of the device; nothing can be read there.
        for number in (0..self.volume.groups).take_while(is_there) {
            visitor.group(number)?;
            let group = self.scanned_group(number, &mut tables, visitor)?;
            for (first, count) in self.system_of(number, group.as_ref()) {
                visitor.system(first, count);
            }
            groups.extend(group.map(|group| (number, group)));
        }
        for (number, group) in groups {
            visitor.group(number)?;
            self.scan_group(number, &group, visitor)?;
        }
        Ok(())
    }

    /// Returns a group, by a replica of its descriptor if need be. Tells of damage.
    fn scanned_group(
        &self,
        number: u32,
        tables: &mut Ranges,
        visitor: &mut dyn Visitor,
    ) -> Result<Option<Group>> {
        let own = self.own_group(number);
        let is_own = own.is_ok();
        if let Err(e) = own {
            told(visitor, Damaged::Group, e)?;
        }
        let taken = self.group(number).and_then(|group| {
            self.take_table(&group, tables)?;
            Ok(group)
        });
        match taken {
            Ok(group) => Ok(Some(group)),
            Err(e) if is_own => told(visitor, Damaged::Group, e).map(|()| None),
            // It was told.
            Err(_) => Ok(None),
        }
    }

    /// Notes where the inodes of a group are. So there are no more of them than the device has room
    /// for.
    ///
    /// # Errors
    /// `Corrupt` for blocks that another group has its inodes in.
    fn take_table(&self, group: &Group, tables: &mut Ranges) -> Result<()> {
        let bytes = u64::from(self.volume.inodes_per_group) * self.volume.inode_size as u64;
        let blocks = bytes.div_ceil(self.volume.block);
        if tables.take(group.inode_table, blocks) {
            return Ok(());
        }
        let found = group.inode_table.to_string();
        let expected = "blocks that no other group has its inodes in";
        Err(Error::corrupt("bg_inode_table", group.at, found, expected))
    }

    /// Returns the bitmap of a group's inodes; none where it was never written, and where it is damaged.
    fn inode_bits(&self, group: &Group) -> Option<Vec<u8>> {
        let is_there = !group.has(group::INODE_UNINIT);
        let read = is_there.then(|| self.block("bg_inode_bitmap", group.at, group.inode_bitmap));
        read?.ok()
    }

    fn scan_group(&self, number: u32, group: &Group, visitor: &mut dyn Visitor) -> Result<()> {
        let bits = self.inode_bits(group).unwrap_or_default();
        for index in 0..self.inodes_used_in(number, group) {
            let ino = number * self.volume.inodes_per_group + index + 1;
            let read = self.inode_in(group, index);
            let inode = match read.and_then(|at| self.inode_unchecked(ino, at)) {
                Ok(inode) => inode,
                Err(e) => {
                    // The table goes on in blocks that are not there either.
                    told(visitor, Damaged::Inode, e)?;
                    return Ok(());
                }
            };
            let has_bit = bit(&bits, index.into());
            let has_mode = inode.head.i_mode.get() != 0;
            let has_links = inode.head.i_links_count.get() != 0;
            let is_own = self.volume.is_hidden(ino);
            if !(has_links || has_bit && has_mode) {
                continue;
            }
            if ino == RESIZE_INO {
                // What its pointers lead to are the blocks that groups count themselves.
                let roots = self.indirect_roots(&inode);
                for root in roots.iter().filter(|root| root.block != 0) {
                    visitor.system(root.block, 1);
                }
                continue;
            }
            if let Err(e) = self.verify_inode(&inode) {
                told(visitor, Damaged::Inode, e)?;
                continue;
            }
            self.scan_inode(&inode, !has_links && !is_own, visitor)?;
        }
        Ok(())
    }

    fn scan_inode(&self, inode: &Inode, is_orphan: bool, visitor: &mut dyn Visitor) -> Result<()> {
        let is_bad = inode.ino == BAD_INO;
        if !is_bad && let Err(e) = inode.known_kind() {
            return told(visitor, Damaged::Inode, e);
        }
        visitor.inode(inode, is_orphan)?;
        let has_blocks = matches!(
            inode.kind(),
            Some(FileKind::File | FileKind::Dir | FileKind::Symlink)
        );
        let is_inline = inode.has(iflag::INLINE_DATA) || inode.is_short_link(&self.volume);
        let mut walk = Walk {
            store: self,
            inode,
            visitor,
            is_whole: true,
            left: self.volume.there().saturating_add(16),
        };
        if (has_blocks || is_bad) && !is_inline {
            match inode.has(iflag::EXTENTS) {
                true => walk.extents()?,
                false => walk.pointers()?,
            }
        }
        let is_whole = walk.is_whole;
        visitor.end(inode, is_whole)
    }
}

/// Returns whether a bit is set.
pub(crate) fn bit(bits: &[u8], index: u64) -> bool {
    let byte = usize::try_from(index / 8).ok().and_then(|at| bits.get(at));
    byte.is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

fn told(visitor: &mut dyn Visitor, what: Damaged, e: Error) -> Result<()> {
    match e.kind() {
        Kind::Io | Kind::Interrupted => Err(e),
        _ => visitor.bad(what, e),
    }
}

/// Goes through the map of an inode.
struct Walk<'a, 'v> {
    store: &'a Store,
    inode: &'a Inode,
    visitor: &'v mut dyn Visitor,
    is_whole: bool,
    /// Runs that may still come: an inode cannot have more than the volume has blocks.
    left: u64,
}

impl Walk<'_, '_> {
    fn bad(&mut self, e: Error) -> Result<()> {
        self.is_whole = false;
        told(self.visitor, Damaged::Map, e)
    }

    /// Blocks that the map names; true if they are the inode's alone.
    fn take(&mut self, first: u64, count: u64, is_map: bool) -> Result<bool> {
        let at = self.inode.at;
        let Some(left) = self.left.checked_sub(1) else {
            self.is_whole = false;
            return Ok(false);
        };
        self.left = left;
        if let Err(e) = self.store.check_blocks("i_block", at, first, count) {
            self.bad(e)?;
            return Ok(false);
        }
        let is_own = self.visitor.blocks(self.inode, first, count, is_map)?;
        self.is_whole &= is_own;
        Ok(is_own)
    }

    fn extents(&mut self) -> Result<()> {
        match self.store.extent_root(self.inode) {
            Ok(root) => self.node(&root, 0, 1 << 32),
            Err(e) => self.bad(e),
        }
    }

    fn node(&mut self, node: &Node, first: u64, end: u64) -> Result<()> {
        let all = match node.below(self.inode, first, end) {
            Ok(all) => all,
            Err(e) => return self.bad(e),
        };
        for one in all {
            match one {
                Below::Run(run) => self.run(run)?,
                Below::Node(place) => {
                    if !self.take(place.block, 1, true)? {
                        continue;
                    }
                    match self.store.extent_node(self.inode, &place, self.inode.at) {
                        Ok(below) => self.node(&below, place.first, place.end)?,
                        Err(e) => self.bad(e)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn run(&mut self, run: Run) -> Result<()> {
        if let Spot::Data(at) | Spot::Unwritten(at) = run.spot {
            self.take(at, run.len, false)?;
        }
        Ok(())
    }

    fn pointers(&mut self) -> Result<()> {
        self.runs(&Pointers::of(self.inode), direct(), 0)?;
        for root in self.store.indirect_roots(self.inode) {
            self.indirect(root)?;
        }
        Ok(())
    }

    fn runs(&mut self, pointers: &Pointers, count: usize, first: u64) -> Result<()> {
        let mut index = 0;
        while index < count {
            let run = pointers.run(index, count, first + index as u64);
            self.run(run)?;
            index += usize::try_from(run.len.max(1)).unwrap_or(usize::MAX);
        }
        Ok(())
    }

    fn indirect(&mut self, place: MapBlock) -> Result<()> {
        if place.block == 0 || !self.take(place.block, 1, true)? {
            return Ok(());
        }
        let pointers = match self.store.pointers(self.inode, &place) {
            Ok(pointers) => pointers,
            Err(e) => return self.bad(e),
        };
        let count = self.store.volume.block / 4;
        if place.depth == 0 {
            return self.runs(&pointers, usize::try_from(count).unwrap_or(0), place.first);
        }
        for index in 0..count {
            let block = pointers.get(usize::try_from(index).unwrap_or(usize::MAX));
            if block != 0 {
                self.indirect(self.store.below_pointer(&place, index, block))?;
            }
        }
        Ok(())
    }
}
