//! Maps what the volume's areas are used for.

use crate::disk::cache::{LOOK_MEMORY, cache};
use crate::disk::descriptors::Descriptors;
use crate::disk::volume::{Stretch, Volume};
use crate::extensions::choice::Names;
use crate::tree::dir::{Found, Reader};
use crate::tree::node::{Entry, Nodes, Owner};
use crate::tree::walk::{Place, Visitor, walk};
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Kind, Result, VolumeMap};
use volary_ondisk::map::{MapBuilder, Use};

/// Maps the volume into at most `cells` cells. Damaged structures are skipped. Data that several
/// files share count once for each, up to the cell's length.
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
        cancel: None,
    };
    let mut drawing = Drawing {
        block: volume.block,
        map: MapBuilder::new(size, volume.block, cells),
    };
    drawing.map.add(0, volume.root.min(size), Use::System);
    walk(&nodes, &mut drawing)?;
    // What nothing uses is free.
    Ok(drawing.map.finish(Use::Free))
}

struct Drawing {
    block: u64,
    map: MapBuilder,
}

impl Drawing {
    /// Draws a range with its use, up to the end of its last block.
    fn add(&mut self, start: u64, len: u64, what: Use) {
        let len = len.checked_next_multiple_of(self.block).unwrap_or(len);
        self.map.add(start, len, what);
    }
}

impl Visitor for Drawing {
    fn dir(&mut self, _: &Place<'_>, stretch: Stretch) -> Result<()> {
        self.add(stretch.start, stretch.len, Use::Dir);
        Ok(())
    }

    fn record(&mut self, _: &Place<'_>, found: &Found) -> Result<()> {
        if found.record.is_dir() {
            return Ok(());
        }
        let pairs = found.sections.windows(2);
        let breaks = pairs.filter(|pair| matches!(pair, [a, b] if a.end() != b.start));
        let breaks = breaks.count() as u64;
        self.map.add_breaks(breaks);
        let what = match breaks {
            0 => Use::File,
            _ => Use::Broken,
        };
        for section in &found.sections {
            self.add(section.start, section.len, what);
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
