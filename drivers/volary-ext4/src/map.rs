//! What lies where.

use crate::attached::open;
use crate::info::{LOOK, LOOK_MEMORY};
use crate::inode::Inode;
use crate::scan::{BAD_INO, Visitor};
use crate::store::Store;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, FileKind, MapCell, Result, VolumeMap};

/// Most cells that a map has, whatever is asked for.
const CELLS_MAX: usize = 1 << 20;

/// Maps the volume into at most `cells` cells. Damage is passed over.
///
/// # Errors
/// As attaching does.
pub(crate) fn map(dev: &Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
    let size = dev.geometry().size;
    let store = open(dev, LOOK, LOOK_MEMORY)?;
    let block = store.volume.block;
    let cells = cells.clamp(1, CELLS_MAX) as u64;
    let len = size.div_ceil(cells).max(block).next_multiple_of(block);
    let count = usize::try_from(size.div_ceil(len)).unwrap_or(0);
    let mut drawing = Drawing {
        store: &store,
        size,
        block,
        pieces: Vec::new(),
        map: VolumeMap {
            cell_len: len,
            cells: vec![MapCell::default(); count],
            breaks: 0,
        },
    };
    drawing.add(0, store.volume.super_block() * block, |cell| {
        &mut cell.system
    });
    store.scan(&mut drawing)?;
    Ok(drawing.end())
}

struct Drawing<'a> {
    store: &'a Store,
    size: u64,
    block: u64,
    /// Of the inode that is being looked at: its runs of data.
    pieces: Vec<(u64, u64)>,
    map: VolumeMap,
}

impl Drawing<'_> {
    fn add(&mut self, start: u64, len: u64, of: fn(&mut MapCell) -> &mut u64) {
        let cell_len = self.map.cell_len;
        let end = start.saturating_add(len).min(self.size);
        let mut at = start;
        while at < end {
            let next = ((at / cell_len + 1) * cell_len).min(end);
            let index = usize::try_from(at / cell_len).unwrap_or(usize::MAX);
            if let Some(cell) = self.map.cells.get_mut(index) {
                let room = cell_len.saturating_sub(used(cell));
                *of(cell) += (next - at).min(room);
            }
            at = next;
        }
    }

    fn add_blocks(&mut self, first: u64, count: u64, of: fn(&mut MapCell) -> &mut u64) {
        let (start, len) = (
            first.saturating_mul(self.block),
            count.saturating_mul(self.block),
        );
        self.add(start, len, of);
    }

    /// What is used by nothing is free.
    fn end(mut self) -> VolumeMap {
        let mut left = self.size;
        for cell in &mut self.map.cells {
            let len = left.min(self.map.cell_len);
            left -= len;
            cell.free = len.saturating_sub(used(cell));
        }
        self.map
    }
}

fn used(cell: &MapCell) -> u64 {
    cell.system + cell.dir + cell.file + cell.broken + cell.bad + cell.lost
}

impl Visitor for Drawing<'_> {
    fn system(&mut self, first: u64, count: u64) {
        self.add_blocks(first, count, |cell| &mut cell.system);
    }

    fn inode(&mut self, inode: &Inode, _: bool) -> Result<()> {
        self.pieces.clear();
        if inode.file_acl != 0 {
            self.add_blocks(inode.file_acl, 1, |cell| &mut cell.system);
        }
        Ok(())
    }

    fn blocks(&mut self, inode: &Inode, first: u64, count: u64, is_map: bool) -> Result<bool> {
        if is_map {
            self.add_blocks(first, count, |cell| &mut cell.system);
        } else if inode.ino == BAD_INO {
            self.add_blocks(first, count, |cell| &mut cell.bad);
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
        let of: fn(&mut MapCell) -> &mut u64 = match inode.kind() {
            _ if self.store.volume.is_hidden(inode.ino) => |cell| &mut cell.system,
            _ if inode.head.i_links_count.get() == 0 => |cell| &mut cell.lost,
            Some(FileKind::Dir) => |cell| &mut cell.dir,
            _ if pieces.len() > 1 => |cell| &mut cell.broken,
            _ => |cell| &mut cell.file,
        };
        if inode.kind() == Some(FileKind::File) && !self.store.volume.is_hidden(inode.ino) {
            self.map.breaks += pieces.len().saturating_sub(1) as u64;
        }
        for (first, count) in pieces {
            self.add_blocks(first, count, of);
        }
        Ok(())
    }

    fn bad(&mut self, _: &'static str, _: Option<u32>, _: Error) -> Result<()> {
        Ok(())
    }
}
