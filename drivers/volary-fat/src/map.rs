//! What lies where (`map`), in memory that does not grow with the volume but
//! by the number of its directories.

use crate::volume::Layout;
use crate::walk::{Run, Walker};
use std::collections::HashSet;
use volary_core::{BlockDevice, MapCell, Result, VolumeMap};

/// Most cells that a map has, whatever is asked for.
const CELLS_MAX: usize = 1 << 20;

/// What a stretch of a volume is used for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    System,
    Dir,
    File,
    Broken,
    Bad,
    Free,
    Lost,
}

impl Use {
    /// The place of its bytes in a cell.
    fn of(self, cell: &mut MapCell) -> &mut u64 {
        match self {
            Self::System => &mut cell.system,
            Self::Dir => &mut cell.dir,
            Self::File => &mut cell.file,
            Self::Broken => &mut cell.broken,
            Self::Bad => &mut cell.bad,
            Self::Free => &mut cell.free,
            Self::Lost => &mut cell.lost,
        }
    }
}

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
    let mut dirs = HashSet::new();
    walker.tree(&mut |_, record| {
        let first = record.short.first_cluster(layout.is_fat32());
        let dir = record.short.is_dir();
        // A directory that several entries claim is one.
        if !record.short.is_label() && (!dir || dirs.insert(first)) {
            drawing.chain(&walker, first, dir);
        }
        true
    });
    Ok(drawing.map)
}

struct Drawing<'a> {
    layout: &'a Layout,
    map: VolumeMap,
}

impl<'a> Drawing<'a> {
    fn new(layout: &'a Layout, cells: usize) -> Self {
        let sector = u64::from(layout.sector_len);
        let size = u64::from(layout.total_sectors) * sector;
        let cells = cells.clamp(1, CELLS_MAX) as u64;
        let cell_len = size.div_ceil(cells).next_multiple_of(sector).max(sector);
        let count = usize::try_from(size.div_ceil(cell_len)).unwrap_or(CELLS_MAX);
        let mut drawing = Self {
            layout,
            map: VolumeMap {
                cell_len,
                cells: vec![MapCell::default(); count],
                breaks: 0,
            },
        };
        let data = layout.cluster_offset(2);
        drawing.add(0, data, Use::System);
        // What is left over at the end is no whole cluster.
        let end = layout.cluster_offset(layout.last_cluster() + 1);
        drawing.add(end, size.saturating_sub(end), Use::System);
        drawing
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

    /// A chain that a path leads to: its clusters are no longer lost.
    fn chain(&mut self, walker: &Walker<'_>, first: u32, dir: bool) {
        if !self.layout.is_cluster(first) {
            return;
        }
        let mut count = 0_u64;
        // Damage ends a chain; what comes before it counts.
        let _ = walker.runs(first, &mut |_| {
            count += 1;
            true
        });
        let what = match (dir, count) {
            (true, _) => Use::Dir,
            (false, 0 | 1) => Use::File,
            (false, _) => Use::Broken,
        };
        if !dir {
            self.map.breaks += count.saturating_sub(1);
        }
        let _ = walker.runs(first, &mut |run| {
            self.take_lost(run, what);
            true
        });
    }

    fn add_run(&mut self, run: Run, what: Use) {
        let at = self.layout.cluster_offset(run.first);
        self.add(
            at,
            u64::from(run.len) * u64::from(self.layout.cluster_len),
            what,
        );
    }

    fn add(&mut self, at: u64, len: u64, what: Use) {
        self.each_cell(at, len, |cell, n| *what.of(cell) += n);
    }

    /// Gives bytes that are lost another use; what is not lost stays.
    fn take_lost(&mut self, run: Run, what: Use) {
        let at = self.layout.cluster_offset(run.first);
        let len = u64::from(run.len) * u64::from(self.layout.cluster_len);
        self.each_cell(at, len, |cell, n| {
            let n = n.min(cell.lost);
            cell.lost -= n;
            *what.of(cell) += n;
        });
    }

    /// Calls `change` for each cell of a range, with the bytes in it.
    fn each_cell(&mut self, at: u64, len: u64, mut change: impl FnMut(&mut MapCell, u64)) {
        let cell_len = self.map.cell_len;
        let (mut at, end) = (at, at.saturating_add(len));
        let first = usize::try_from(at / cell_len).unwrap_or(usize::MAX);
        for cell in self.map.cells.iter_mut().skip(first) {
            if at >= end {
                break;
            }
            let next = ((at / cell_len + 1) * cell_len).min(end);
            change(cell, next - at);
            at = next;
        }
    }
}

#[cfg(test)]
mod tests;
