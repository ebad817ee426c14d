//! What lies where.

use crate::attached::operations::{LOOK_MEMORY, cache};
use crate::change::alloc::each_free;
use crate::disk::blocks::Reader;
use crate::disk::inode::Inode;
use crate::disk::ondisk::{ADDRESSES, BAD_INO};
use crate::disk::volume::Volume;
use std::ops::Range;
use std::sync::Arc;
use volary_core::{BlockDevice, FileKind, Kind, Result, VolumeMap};
use volary_ondisk::map::{MapBuilder, Use};

/// Maps the volume into at most `cells` cells. Damage is passed over.
///
/// # Errors
/// As [`Volume::new`]; `Io`.
pub(crate) fn map(dev: Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
    let volume = Volume::new(&*dev, None)?;
    let size = dev.geometry().size;
    let cache = cache(dev, LOOK_MEMORY);
    let reader = Reader {
        cache: &cache,
        volume: &volume,
    };
    let mut drawing = Drawing {
        reader,
        left: volume.blocks.saturating_mul(4),
        map: MapBuilder::new(size, volume.bsize, cells),
    };
    drawing.add(0, volume.first, Use::System);
    // What is behind the last block is of no use to the volume.
    let end = volume.blocks * volume.bsize;
    drawing.map.add(end, size.saturating_sub(end), Use::System);
    let listed = each_free(&reader, &mut |block| {
        drawing.add(block.into(), 1, Use::Free);
        Ok(())
    });
    or_damage(listed)?;
    for ino in 1..=volume.inodes {
        let inode = reader.inode_as_it_is(ino.into())?;
        drawing.inode(&inode)?;
    }
    Ok(drawing.map.finish(Use::Lost))
}

fn or_damage(result: Result<()>) -> Result<()> {
    match result {
        Err(e) if e != Kind::Corrupt => Err(e),
        _ => Ok(()),
    }
}

struct Drawing<'a> {
    reader: Reader<'a>,
    /// Blocks that may still be drawn: damage can make files share what they have.
    left: u64,
    map: MapBuilder,
}

impl Drawing<'_> {
    fn add(&mut self, first: u64, count: u64, what: Use) {
        let bsize = self.reader.volume.bsize;
        self.map.add(first * bsize, count * bsize, what);
    }

    fn inode(&mut self, inode: &Inode) -> Result<()> {
        if !inode.has_blocks() {
            return Ok(());
        }
        let mut all = Vec::new();
        for slot in 0..ADDRESSES {
            let span = self.reader.volume.span(slot);
            let block = inode.addr.get(slot).copied().unwrap_or(0);
            or_damage(self.blocks(inode, block, span, &mut all))?;
        }
        let data = all.iter().filter(|(_, is_data)| *is_data);
        let mut last = None;
        let mut breaks = 0;
        for &(block, _) in data {
            breaks += u64::from(last.is_some_and(|last| last + 1 != block));
            last = Some(block);
        }
        let what = match inode.kind() {
            _ if inode.ino == BAD_INO => Use::Bad,
            Some(FileKind::Dir) => Use::Dir,
            _ if breaks > 0 => Use::Broken,
            _ => Use::File,
        };
        if inode.kind() == Some(FileKind::File) && inode.ino != BAD_INO {
            self.map.add_breaks(breaks);
        }
        for (block, _) in all {
            self.add(block.into(), 1, what);
        }
        Ok(())
    }

    /// Collects what an address leads to, and whether it is data.
    fn blocks(
        &mut self,
        inode: &Inode,
        block: u32,
        span: Range<u64>,
        all: &mut Vec<(u32, bool)>,
    ) -> Result<()> {
        if block == 0 {
            return Ok(());
        }
        self.reader.check_address(inode, block)?;
        self.left = self.left.checked_sub(1).ok_or(Kind::Corrupt)?;
        let len = span.end - span.start;
        all.push((block, len == 1));
        if len == 1 {
            return Ok(());
        }
        let each = len / self.reader.volume.pointers();
        for (i, block) in self.reader.indirect(inode, block)?.into_iter().enumerate() {
            let start = span.start + each * i as u64;
            self.blocks(inode, block, start..start + each, all)?;
        }
        Ok(())
    }
}
