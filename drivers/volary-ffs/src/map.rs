//! What lies where.

use crate::attached::{LOOK_MEMORY, cache};
use crate::blocks::{Block, Reader};
use crate::cg::Group;
use crate::inode::Inode;
use crate::scan::{Visitor, scan};
use crate::superblock::Found;
use crate::volume::Volume;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, FileKind, Kind, MapCell, Result, VolumeMap};

/// Most cells that a map has, whatever is asked for.
const CELLS_MAX: usize = 1 << 20;

/// Maps the volume into at most `cells` cells. Damage is passed over.
///
/// # Errors
/// As [`Volume::new`]; `Io`.
pub(crate) fn map(dev: Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
    let volume = Volume::new(Found::choose(&*dev, None)?, dev.geometry().size)?;
    let size = volume.size * volume.fsize;
    let cache = cache(dev, LOOK_MEMORY);
    let reader = Reader {
        cache: &cache,
        volume: &volume,
    };
    let cells = cells.clamp(1, CELLS_MAX) as u64;
    let len = size
        .div_ceil(cells)
        .max(volume.fsize)
        .next_multiple_of(volume.fsize);
    let count = usize::try_from(size.div_ceil(len)).unwrap_or(0);
    let mut drawing = Drawing {
        reader,
        size,
        left: volume.size.saturating_mul(4),
        map: VolumeMap {
            cell_len: len,
            cells: vec![MapCell::default(); count],
            breaks: 0,
        },
    };
    drawing.system();
    scan(&reader, &mut drawing)?;
    Ok(drawing.end())
}

struct Drawing<'a> {
    reader: Reader<'a>,
    size: u64,
    /// Fragments that may still be drawn: damage can make files share what they have.
    left: u64,
    map: VolumeMap,
}

type Part = fn(&mut MapCell) -> &mut u64;

impl Drawing<'_> {
    fn volume(&self) -> &Volume {
        self.reader.volume
    }

    /// What cylinder groups and summaries take.
    fn system(&mut self) {
        let volume = self.volume().clone();
        for group in 0..volume.ncg {
            let (first, end) = reserved(&volume, group);
            self.add(first, end - first, |cell| &mut cell.system);
        }
        let summaries = volume.cssize.div_ceil(volume.fsize);
        self.add(volume.csaddr, summaries, |cell| &mut cell.system);
    }

    /// Adds fragments to the cells that they lie in.
    fn add(&mut self, first: u64, count: u64, of: Part) {
        let (cell_len, fsize) = (self.map.cell_len, self.volume().fsize);
        let (mut at, end) = (first * fsize, ((first + count) * fsize).min(self.size));
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

    /// What is used by nothing is free, or lost where the group's map says that it is used.
    fn free(&mut self, number: u64, group: &Group) {
        let (base, mut at) = (self.volume().base(number), 0);
        while at < group.fragments {
            let free = group.is_free(at);
            let same = (at..group.fragments).take_while(|&i| group.is_free(i) == free);
            let count = same.count() as u64;
            if free {
                self.add(base + at, count, |cell| &mut cell.free);
            }
            at += count;
        }
    }

    /// Tells of each block of an inode, as far as its pointers make sense and there is
    /// anything left to draw.
    fn blocks(&mut self, inode: &Inode, each: &mut dyn FnMut(&mut Self, Block)) -> Result<()> {
        let reader = self.reader;
        let all = reader.blocks(inode, &mut |block| {
            let left = self.left.checked_sub(block.fragments);
            self.left = left.ok_or_else(|| Error::from(Kind::Corrupt))?;
            each(self, block);
            Ok(())
        });
        match all {
            Err(e) if e != Kind::Corrupt => Err(e),
            _ => Ok(()),
        }
    }

    /// How often a file's data do not go on where they ended.
    fn breaks(&mut self, inode: &Inode) -> Result<u64> {
        let (mut breaks, mut next) = (0, None);
        self.blocks(inode, &mut |_, block| {
            if block.is_data {
                breaks += u64::from(next.is_some_and(|next| next != block.first));
                next = Some(block.first + block.fragments);
            }
        })?;
        Ok(breaks)
    }

    fn end(mut self) -> VolumeMap {
        let mut left = self.size;
        for cell in &mut self.map.cells {
            let len = left.min(self.map.cell_len);
            left -= len;
            cell.lost = len.saturating_sub(used(cell));
        }
        self.map
    }
}

/// The fragments of a group that hold no data: from its superblock, in the first group from
/// the begin of the volume, to its first data block.
pub(crate) fn reserved(volume: &Volume, group: u64) -> (u64, u64) {
    let start = volume.start(group);
    let first = if group == 0 { 0 } else { start + volume.sblkno };
    let end = volume.end(group);
    (first.min(end), (start + volume.dblkno).min(end))
}

fn used(cell: &MapCell) -> u64 {
    cell.system + cell.dir + cell.file + cell.broken + cell.free
}

impl Visitor for Drawing<'_> {
    fn group(&mut self, number: u64, group: &Result<Group>) -> Result<()> {
        if let Ok(group) = group {
            self.free(number, group);
        }
        Ok(())
    }

    fn inode(&mut self, inode: Inode, used: Option<bool>) -> Result<()> {
        if inode.kind().is_none() || used == Some(false) || inode.is_snapshot(self.volume()) {
            return Ok(());
        }
        let Ok(inode) = inode.check(self.reader.volume) else {
            return Ok(());
        };
        let breaks = self.breaks(&inode)?;
        let of: Part = match inode.kind() {
            Some(FileKind::Dir) => |cell| &mut cell.dir,
            _ if breaks > 0 => |cell| &mut cell.broken,
            _ => |cell| &mut cell.file,
        };
        if inode.kind() == Some(FileKind::File) {
            self.map.breaks += breaks;
        }
        self.blocks(&inode, &mut |drawing, block| {
            drawing.add(block.first, block.fragments, of);
        })
    }
}
