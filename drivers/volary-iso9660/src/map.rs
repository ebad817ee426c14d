//! What lies where.

use crate::attached::cache;
use crate::dir::{Found, Reader, Stretch};
use crate::info::LOOK_MEMORY;
use crate::node::{Entry, Nodes, Owner};
use crate::volume::{Descriptors, Names, Volume};
use crate::walk::{Place, Visitor, walk};
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Kind, MapCell, Result, VolumeMap};

/// Most cells that a map has, whatever is asked for.
const CELLS_MAX: usize = 1 << 20;

/// Maps the volume into at most `cells` cells. Damage is passed over; data that
/// several files share count once for each, up to the cell's length.
///
/// # Errors
/// As [`Volume::new`].
pub(crate) fn map(dev: Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
    let size = dev.geometry().size;
    let descriptors = Descriptors::read(&*dev)?;
    let cache = cache(dev, LOOK_MEMORY);
    let volume = Volume::new(&cache, &descriptors, Names::Auto)?;
    let nodes = Nodes {
        reader: Reader {
            cache: &cache,
            volume: &volume,
        },
        owner: Owner::default(),
        links: None,
    };
    let cells = cells.clamp(1, CELLS_MAX) as u64;
    let len = size
        .div_ceil(cells)
        .max(volume.block)
        .next_multiple_of(volume.block);
    let count = usize::try_from(size.div_ceil(len)).unwrap_or(0);
    let mut drawing = Drawing {
        size,
        block: volume.block,
        map: VolumeMap {
            cell_len: len,
            cells: vec![MapCell::default(); count],
            breaks: 0,
        },
    };
    drawing.add(0, volume.root.min(size), |cell| &mut cell.system);
    walk(&nodes, &mut drawing)?;
    Ok(drawing.end())
}

struct Drawing {
    size: u64,
    block: u64,
    map: VolumeMap,
}

impl Drawing {
    fn add(&mut self, start: u64, len: u64, of: fn(&mut MapCell) -> &mut u64) {
        let cell_len = self.map.cell_len;
        let end = start
            .saturating_add(len.next_multiple_of(self.block))
            .min(self.size);
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
    cell.system + cell.dir + cell.file + cell.broken
}

impl Visitor for Drawing {
    fn dir(&mut self, _: &Place<'_>, stretch: Stretch) -> Result<()> {
        self.add(stretch.start, stretch.len, |cell| &mut cell.dir);
        Ok(())
    }

    fn record(&mut self, _: &Place<'_>, found: &Found) -> Result<()> {
        if found.record.is_dir() {
            return Ok(());
        }
        let pairs = found.sections.windows(2);
        let breaks = pairs.filter(|pair| matches!(pair, [a, b] if a.end() != b.start));
        let breaks = breaks.count() as u64;
        self.map.breaks += breaks;
        for section in &found.sections {
            self.add(section.start, section.len, |cell| &mut cell.file);
        }
        Ok(())
    }

    fn entry(&mut self, _: &Place<'_>, _: &Entry) -> Result<()> {
        Ok(())
    }

    fn bad(&mut self, _: &Place<'_>, e: Error) -> Result<()> {
        if e == Kind::Io { Err(e) } else { Ok(()) }
    }
}
