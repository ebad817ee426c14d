//! Goes through all groups and all inodes in use, whatever damage there is.

use crate::content::extents::{Below, ExtentTree, Node};
use crate::content::indirect::{Indirect, Pointers, direct};
use crate::disk::group::Group;
use crate::disk::ondisk::{group, iflag};
use crate::disk::run::{MapBlock, Run, Spot};
use crate::inodes::inode::Inode;
use crate::store::Store;
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

/// Goes through everything.
///
/// # Errors
/// Of `visitor`; `Io`.
pub(crate) fn scan(store: &Store, visitor: &mut dyn Visitor) -> Result<()> {
    let tables = Ranges::default();
    Scan {
        store,
        visitor,
        tables,
    }
    .volume()
}

/// A scan under way.
struct Scan<'a, 'v> {
    store: &'a Store,
    visitor: &'v mut dyn Visitor,
    /// Where groups have their inodes.
    tables: Ranges,
}

impl Scan<'_, '_> {
    fn volume(&mut self) -> Result<()> {
        let volume = self.store.volume();
        let mut groups = Vec::new();
        let is_there = |number: &u32| volume.group_start(*number) < volume.there();
        // A volume may claim groups past the end of the device; nothing can be read there.
        for number in (0..volume.groups).take_while(is_there) {
            self.visitor.group(number)?;
            let group = self.group(number)?;
            for (first, count) in Group::system_of(volume, number, group.as_ref()) {
                self.visitor.system(first, count);
            }
            groups.extend(group.map(|group| (number, group)));
        }
        for (number, group) in groups {
            self.visitor.group(number)?;
            self.inodes(number, &group)?;
        }
        Ok(())
    }

    /// Returns a group, by a replica of its descriptor if need be. Tells of damage.
    fn group(&mut self, number: u32) -> Result<Option<Group>> {
        let groups = self.store.groups();
        let own = groups.own_group(number);
        let is_own = own.is_ok();
        if let Err(e) = own {
            told(self.visitor, Damaged::Group, e)?;
        }
        let taken = groups.group(number).and_then(|group| {
            self.take_table(&group)?;
            Ok(group)
        });
        match taken {
            Ok(group) => Ok(Some(group)),
            Err(e) if is_own => told(self.visitor, Damaged::Group, e).map(|()| None),
            // It was told.
            Err(_) => Ok(None),
        }
    }

    /// Notes where the inodes of a group are. So there are no more of them than the device has room
    /// for.
    ///
    /// # Errors
    /// `Corrupt` for blocks that another group has its inodes in.
    fn take_table(&mut self, group: &Group) -> Result<()> {
        let volume = self.store.volume();
        let bytes = u64::from(volume.inodes_per_group) * volume.inode_size as u64;
        let blocks = bytes.div_ceil(volume.block);
        if self.tables.take(group.inode_table, blocks) {
            return Ok(());
        }
        let found = group.inode_table.to_string();
        let expected = "blocks that no other group has its inodes in";
        Err(Error::corrupt("bg_inode_table", group.at, found, expected))
    }

    /// Returns the bitmap of a group's inodes; none where it was never written, and where it is damaged.
    fn inode_bits(&self, group: &Group) -> Option<Vec<u8>> {
        let is_there = !group.has(group::INODE_UNINIT);
        let blocks = self.store.blocks();
        let read = is_there.then(|| blocks.block("bg_inode_bitmap", group.at, group.inode_bitmap));
        read?.ok()
    }

    fn inodes(&mut self, number: u32, group: &Group) -> Result<()> {
        let (volume, groups, inodes) = (
            self.store.volume(),
            self.store.groups(),
            self.store.inodes(),
        );
        let bits = self.inode_bits(group).unwrap_or_default();
        for index in 0..groups.inodes_used_in(number, group) {
            let ino = number * volume.inodes_per_group + index + 1;
            let read = groups.inode_in(group, index);
            let inode = match read.and_then(|at| inodes.unchecked(ino, at)) {
                Ok(inode) => inode,
                Err(e) => {
                    // The table goes on in blocks that are not there either.
                    told(self.visitor, Damaged::Inode, e)?;
                    return Ok(());
                }
            };
            let has_bit = bit(&bits, index.into());
            let has_mode = inode.head.i_mode.get() != 0;
            let has_links = inode.head.i_links_count.get() != 0;
            let is_own = volume.is_hidden(ino);
            if !(has_links || has_bit && has_mode) {
                continue;
            }
            if ino == RESIZE_INO {
                // What its pointers lead to are the blocks that groups count themselves.
                let roots = Indirect::new(self.store.blocks(), &inode).roots();
                for root in roots.iter().filter(|root| root.block != 0) {
                    self.visitor.system(root.block, 1);
                }
                continue;
            }
            if let Err(e) = inodes.verify(&inode) {
                told(self.visitor, Damaged::Inode, e)?;
                continue;
            }
            self.inode(&inode, !has_links && !is_own)?;
        }
        Ok(())
    }

    fn inode(&mut self, inode: &Inode, is_orphan: bool) -> Result<()> {
        let volume = self.store.volume();
        let is_bad = inode.ino == BAD_INO;
        if !is_bad && let Err(e) = inode.known_kind() {
            return told(self.visitor, Damaged::Inode, e);
        }
        self.visitor.inode(inode, is_orphan)?;
        let has_blocks = matches!(
            inode.kind(),
            Some(FileKind::File | FileKind::Dir | FileKind::Symlink)
        );
        let is_inline = inode.has(iflag::INLINE_DATA) || inode.is_short_link(volume);
        let mut walk = Walk {
            store: self.store,
            inode,
            visitor: &mut *self.visitor,
            is_whole: true,
            left: volume.there().saturating_add(16),
        };
        if (has_blocks || is_bad) && !is_inline {
            match inode.has(iflag::EXTENTS) {
                true => walk.extents()?,
                false => walk.pointers()?,
            }
        }
        let is_whole = walk.is_whole;
        self.visitor.end(inode, is_whole)
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

impl<'a> Walk<'a, '_> {
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
        if let Err(e) = self.store.blocks().check("i_block", at, first, count) {
            self.bad(e)?;
            return Ok(false);
        }
        let is_own = self.visitor.blocks(self.inode, first, count, is_map)?;
        self.is_whole &= is_own;
        Ok(is_own)
    }

    fn tree(&self) -> ExtentTree<'a> {
        ExtentTree::new(self.store.blocks(), self.inode)
    }

    fn own_pointers(&self) -> Indirect<'a> {
        Indirect::new(self.store.blocks(), self.inode)
    }

    fn extents(&mut self) -> Result<()> {
        match self.tree().root() {
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
                    match self.tree().node(&place, self.inode.at) {
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
        for root in self.own_pointers().roots() {
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
        let pointers = match self.own_pointers().pointers(&place) {
            Ok(pointers) => pointers,
            Err(e) => return self.bad(e),
        };
        let count = self.store.volume().block / 4;
        if place.depth == 0 {
            return self.runs(&pointers, usize::try_from(count).unwrap_or(0), place.first);
        }
        for index in 0..count {
            let block = pointers.get(usize::try_from(index).unwrap_or(usize::MAX));
            if block != 0 {
                let below = self.own_pointers().below(&place, index, block);
                self.indirect(below)?;
            }
        }
        Ok(())
    }
}
