//! What lies where (`map`), in memory that grows by a bit for each cluster in use, and by the number
//! of directories.

use crate::look::walk::{Run, Walker};
use crate::volume::layout::Layout;
use volary_core::{BlockDevice, Result, VolumeMap};
use volary_ondisk::Bits;
use volary_ondisk::map::{MapBuilder, Use};

/// Maps the volume into at most `cells` cells. Damage is passed over; where
/// several files claim a cluster, the figures of its cell are near, not exact.
///
/// # Errors
/// As [`Layout::read`]; `Io` if the FAT cannot be read.
pub fn map(dev: &dyn BlockDevice, cells: usize) -> Result<VolumeMap> {
    let layout = Layout::read(dev)?;
    let mut drawing = Drawing::new(&layout, cells);
    let walker = Walker::new(dev, &layout);
    drawing.fat(&walker)?;
    drawing.chain(&walker, layout.root_cluster, true);
    walker.tree(&mut |_, record| {
        if !record.short.is_label() {
            let first = record.short.first_cluster(layout.is_fat32());
            drawing.chain(&walker, first, record.short.is_dir());
        }
        true
    });
    Ok(drawing.map.finish(Use::System))
}

struct Drawing<'a> {
    layout: &'a Layout,
    map: MapBuilder,
    /// Clusters that a path leads to.
    met: Bits,
}

impl<'a> Drawing<'a> {
    fn new(layout: &'a Layout, cells: usize) -> Self {
        let sector = u64::from(layout.sector_len);
        let size = u64::from(layout.total_sectors) * sector;
        let mut map = MapBuilder::new(size, sector, cells);
        map.add(0, layout.cluster_offset(2), Use::System);
        // What is left over at the end is no whole cluster.
        let end = layout.cluster_offset(layout.last_cluster() + 1);
        map.add(end, size.saturating_sub(end), Use::System);
        Self {
            layout,
            map,
            met: Bits::default(),
        }
    }

    /// Everything that the FAT alone says; what is in use is lost until a
    /// path leads to it.
    fn fat(&mut self, walker: &Walker<'_>) -> Result<()> {
        let kind = self.layout.kind;
        let mut run = Run { first: 2, len: 0 };
        let mut run_use = Use::Free;
        walker.values(|first, len, value| {
            let this = if value == 0 {
                Use::Free
            } else if value == kind.bad() {
                Use::Bad
            } else {
                Use::Lost
            };
            if this != run_use {
                self.add_run(run, run_use);
                run = Run { first, len: 0 };
                run_use = this;
            }
            run.len += len;
        })?;
        self.add_run(run, run_use);
        Ok(())
    }

    /// A chain that a path leads to: its clusters are no longer lost. It ends where it is damaged,
    /// and where another has gone on before.
    fn chain(&mut self, walker: &Walker<'_>, first: u32, dir: bool) {
        let (mut clusters, mut count) = (0_u64, 0_u64);
        let (mut at, mut before) = (first, None);
        while self.layout.is_cluster(at) && self.met.insert(at.into()) {
            count += u64::from(before != at.checked_sub(1));
            clusters += 1;
            before = Some(at);
            at = walker.fat_entry(at).unwrap_or(0);
        }
        let what = match (dir, count) {
            (true, _) => Use::Dir,
            (false, 0 | 1) => Use::File,
            (false, _) => Use::Broken,
        };
        if !dir {
            self.map.add_breaks(count.saturating_sub(1));
        }
        let mut run = Run { first, len: 0 };
        for _ in 0..clusters {
            run.len += 1;
            let last = run.first + run.len - 1;
            let next = walker.fat_entry(last).unwrap_or(0);
            if next != last + 1 {
                self.change_run(run, what);
                run = Run {
                    first: next,
                    len: 0,
                };
            }
        }
        if run.len > 0 {
            self.change_run(run, what);
        }
    }

    fn change_run(&mut self, run: Run, what: Use) {
        let (at, len) = self.place(run);
        self.map.change(at, len, Use::Lost, what);
    }

    fn add_run(&mut self, run: Run, what: Use) {
        let (at, len) = self.place(run);
        self.map.add(at, len, what);
    }

    /// Returns where a run lies, and how long it is, in bytes.
    fn place(&self, run: Run) -> (u64, u64) {
        let len = u64::from(run.len) * u64::from(self.layout.cluster_len);
        (self.layout.cluster_offset(run.first), len)
    }
}

#[cfg(test)]
mod tests;
