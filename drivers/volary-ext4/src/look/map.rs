//! What lies where.

use crate::attached::open::open;
use crate::inodes::inode::Inode;
use crate::look::info::{LOOK, LOOK_MEMORY};
use crate::scan::{BAD_INO, Damaged, Visitor, scan};
use crate::store::Store;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, FileKind, Result, VolumeMap};
use volary_ondisk::map::{MapBuilder, Use};

/// Maps the volume into at most `cells` cells. Damage is passed over.
///
/// # Errors
/// As attaching does.
pub(crate) fn map(dev: &Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
    let store = open(dev, LOOK, LOOK_MEMORY)?;
    let block = store.volume().block;
    let mut drawing = Drawing {
        store: &store,
        pieces: Vec::new(),
        map: MapBuilder::new(dev.geometry().size, block, cells),
    };
    let before_superblock = store.volume().super_block().saturating_mul(block);
    drawing.map.add(0, before_superblock, Use::System);
    scan(&store, &mut drawing)?;
    // What is used by nothing is free.
    Ok(drawing.map.finish(Use::Free))
}

struct Drawing<'a> {
    store: &'a Store,
    /// The runs of data of the present inode.
    pieces: Vec<(u64, u64)>,
    map: MapBuilder,
}

impl Drawing<'_> {
    fn add(&mut self, first: u64, count: u64, what: Use) {
        let block = self.store.volume().block;
        let (start, len) = (first.saturating_mul(block), count.saturating_mul(block));
        self.map.add(start, len, what);
    }
}

impl Visitor for Drawing<'_> {
    fn system(&mut self, first: u64, count: u64) {
        self.add(first, count, Use::System);
    }

    fn inode(&mut self, inode: &Inode, _: bool) -> Result<()> {
        self.pieces.clear();
        if inode.file_acl != 0 {
            self.add(inode.file_acl, 1, Use::System);
        }
        Ok(())
    }

    fn blocks(&mut self, inode: &Inode, first: u64, count: u64, is_map: bool) -> Result<bool> {
        if is_map {
            self.add(first, count, Use::System);
        } else if inode.ino == BAD_INO {
            self.add(first, count, Use::Bad);
        } else {
            match self.pieces.last_mut() {
                Some((start, len)) if *start + *len == first => *len += count,
                _ => self.pieces.push((first, count)),
            }
        }
        Ok(true)
    }

    fn end(&mut self, inode: &Inode, _: bool) -> Result<()> {
        let pieces = std::mem::take(&mut self.pieces);
        let is_hidden = self.store.volume().is_hidden(inode.ino);
        let what = match inode.kind() {
            _ if is_hidden => Use::System,
            _ if inode.head.i_links_count.get() == 0 => Use::Lost,
            Some(FileKind::Dir) => Use::Dir,
            _ if pieces.len() > 1 => Use::Broken,
            _ => Use::File,
        };
        if inode.kind() == Some(FileKind::File) && !is_hidden {
            self.map.add_breaks(pieces.len().saturating_sub(1) as u64);
        }
        for (first, count) in pieces {
            self.add(first, count, what);
        }
        Ok(())
    }

    fn bad(&mut self, _: Damaged, _: Error) -> Result<()> {
        Ok(())
    }
}
