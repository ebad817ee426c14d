//! Maps what the volume's areas are used for.

use crate::disk::cache::{LOOK_MEMORY, cache};
use crate::disk::superblock::Found;
use crate::disk::volume::Volume;
use crate::groups::cg::Group;
use crate::groups::scan::{Visitor, scan};
use crate::inodes::blocks::{Block, Reader};
use crate::inodes::inode::Inode;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, FileKind, Kind, Result, VolumeMap};
use volary_ondisk::map::{MapBuilder, Use};

/// Maps the volume into at most `cells` cells. Damaged structures are skipped.
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
    let mut drawing = Drawing {
        reader,
        left: volume.size.saturating_mul(4),
        map: MapBuilder::new(size, volume.fsize, cells),
    };
    drawing.system();
    scan(&reader, &mut drawing)?;
    // What nothing uses is lost, unless the group's map says that it is free.
    Ok(drawing.map.finish(Use::Lost))
}

struct Drawing<'a> {
    reader: Reader<'a>,
    /// Fragments that may still be drawn. Damage can make files share blocks, so the work must be
    /// bounded.
    left: u64,
    map: MapBuilder,
}

impl Drawing<'_> {
    fn volume(&self) -> &Volume {
        self.reader.volume
    }

    /// Draws what cylinder groups and summaries take.
    fn system(&mut self) {
        let volume = self.volume().clone();
        for group in 0..volume.ncg {
            let (first, end) = volume.reserved(group);
            self.add(first, end - first, Use::System);
        }
        let summaries = volume.cssize.div_ceil(volume.fsize);
        self.add(volume.csaddr, summaries, Use::System);
    }

    /// Draws fragments with their use.
    fn add(&mut self, first: u64, count: u64, what: Use) {
        let fsize = self.volume().fsize;
        self.map.add(first * fsize, count * fsize, what);
    }

    /// Draws what the group's map says is free.
    fn free(&mut self, number: u64, group: &Group) {
        let (base, mut at) = (self.volume().base(number), 0);
        while at < group.fragments {
            let free = group.is_free(at);
            let same = (at..group.fragments).take_while(|&i| group.is_free(i) == free);
            let count = same.count() as u64;
            if free {
                self.add(base + at, count, Use::Free);
            }
            at += count;
        }
    }

    /// Calls `each` for the blocks of an inode, up to the first invalid pointer or until nothing is
    /// left to draw.
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

    /// Returns the number of places where consecutive data of a file is not consecutive on the
    /// disk.
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
        let what = match inode.kind() {
            Some(FileKind::Dir) => Use::Dir,
            _ if breaks > 0 => Use::Broken,
            _ => Use::File,
        };
        if inode.kind() == Some(FileKind::File) {
            self.map.add_breaks(breaks);
        }
        self.blocks(&inode, &mut |drawing, block| {
            drawing.add(block.first, block.fragments, what);
        })
    }
}
