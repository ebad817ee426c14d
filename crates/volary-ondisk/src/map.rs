//! The map of what lies where, for [`Format::map`](volary_core::Format::map).
//!
//! Every byte has one use. A driver reports the use of stretches. If two stretches of a damaged
//! volume share bytes, the first one gets them, and a cell never counts more bytes than it has. At
//! the end the driver names the use of everything that was not reported:
//!
//! - free, if the driver knows only what is in use (ISO 9660);
//! - lost, if it knows the free space (FFS);
//! - the format's own, if it knows both files and free space (Cedar).

use volary_core::{MapCell, VolumeMap};

/// The most cells of a map, whatever the caller asks for.
pub const CELLS_MAX: usize = 1 << 20;

/// What a stretch of a volume is used for: the fields of [`MapCell`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The format's own structures.
    System,
    /// A directory.
    Dir,
    /// A file that lies in one run.
    File,
    /// A file that lies in several runs.
    Broken,
    /// Marked bad.
    Bad,
    /// Nothing.
    Free,
    /// In use, but not reachable by any path.
    Lost,
}

impl Use {
    /// All uses.
    pub const ALL: [Self; 7] = [
        Self::System,
        Self::Dir,
        Self::File,
        Self::Broken,
        Self::Bad,
        Self::Free,
        Self::Lost,
    ];

    /// Returns the count of a cell for this use.
    pub fn of(self, cell: &mut MapCell) -> &mut u64 {
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

/// A map that is being built. Its memory depends on the number of cells alone.
#[derive(Clone, Debug)]
pub struct MapBuilder {
    size: u64,
    map: VolumeMap,
    /// A union-find structure over cells. A cell that is not full points to itself. A full one
    /// points to a later cell, but not past the next that is not full.
    /// [`with_room`](Self::with_room) follows and shortens these chains.
    room: Vec<u32>,
}

impl MapBuilder {
    /// Begins the map of a volume of `size` bytes. It has at most `cells` cells, each of whole
    /// units (sectors, blocks, pages) of `unit` bytes.
    pub fn new(size: u64, unit: u64, cells: usize) -> Self {
        let (cells, unit) = (cells.clamp(1, CELLS_MAX) as u64, unit.max(1));
        let len = size.div_ceil(cells).max(unit);
        let cell_len = len.checked_next_multiple_of(unit).unwrap_or(len);
        let count = usize::try_from(size.div_ceil(cell_len)).unwrap_or(CELLS_MAX);
        Self {
            size,
            room: (0..=u32::try_from(count).unwrap_or(u32::MAX)).collect(),
            map: VolumeMap {
                cell_len,
                cells: vec![MapCell::default(); count],
                breaks: 0,
            },
        }
    }

    /// Assigns the use `what` to `len` bytes from `at` on, as far as they are within the volume and
    /// have no use yet.
    ///
    /// Skips full cells. So the work depends on the number of stretches and cells alone, even if
    /// stretches are reported many times.
    pub fn add(&mut self, at: u64, len: u64, what: Use) {
        let cell_len = self.map.cell_len;
        let end = at.saturating_add(len).min(self.size);
        let mut index = self.with_room(usize::try_from(at / cell_len).unwrap_or(usize::MAX));
        while let Some(cell) = self.map.cells.get_mut(index) {
            let start = index as u64 * cell_len;
            if at >= end || start >= end {
                break;
            }
            let next = start.saturating_add(cell_len).min(self.size);
            let left = (next - start).saturating_sub(used(cell));
            let n = (next.min(end) - start.max(at)).min(left);
            *what.of(cell) += n;
            if n == left
                && let Some(room) = self.room.get_mut(index)
            {
                *room += 1;
            }
            index = self.with_room(index + 1);
        }
    }

    /// Returns the first cell from `index` on that is not full.
    fn with_room(&mut self, index: usize) -> usize {
        let next = |room: &[u32], at: usize| room.get(at).map_or(at, |&next| next as usize);
        let mut found = index;
        while next(&self.room, found) != found {
            found = next(&self.room, found);
        }
        // Shortens the path for later calls.
        let mut at = index;
        while at != found {
            let after = next(&self.room, at);
            if let Some(room) = self.room.get_mut(at) {
                *room = found as u32;
            }
            at = after;
        }
        found
    }

    /// Changes the use of `len` bytes from `at` on to `to`, as far as it was `from`.
    pub fn change(&mut self, at: u64, len: u64, from: Use, to: Use) {
        self.each_cell(at, len, |cell, n, _| {
            let n = n.min(*from.of(cell));
            *from.of(cell) -= n;
            *to.of(cell) += n;
        });
    }

    /// Counts runs of file data that do not continue the file's previous run.
    pub fn add_breaks(&mut self, breaks: u64) {
        self.map.breaks = self.map.breaks.saturating_add(breaks);
    }

    /// Calls `change` for each cell of a range, with the number of the range's bytes in it, and its
    /// length.
    fn each_cell(&mut self, at: u64, len: u64, mut change: impl FnMut(&mut MapCell, u64, u64)) {
        let cell_len = self.map.cell_len;
        let end = at.saturating_add(len).min(self.size);
        let first = usize::try_from(at / cell_len).unwrap_or(usize::MAX);
        let mut start = at - at % cell_len;
        for cell in self.map.cells.iter_mut().skip(first) {
            if at >= end || start >= end {
                break;
            }
            let next = start.saturating_add(cell_len).min(self.size);
            change(cell, next.min(end) - start.max(at), next - start);
            start = next;
        }
    }

    /// Ends the map. Bytes without a use get the use `rest`.
    pub fn finish(mut self, rest: Use) -> VolumeMap {
        self.each_cell(0, self.size, |cell, _, len| {
            *rest.of(cell) += len.saturating_sub(used(cell));
        });
        self.map
    }
}

/// Returns how many bytes of a cell have a use.
fn used(cell: &MapCell) -> u64 {
    let MapCell {
        system,
        dir,
        file,
        broken,
        bad,
        free,
        lost,
    } = cell;
    system + dir + file + broken + bad + free + lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cells_are_of_whole_units() {
        for (size, unit, cells, cell_len, count) in [
            (1000, 100, 3, 400, 3),
            (1000, 100, 1000, 100, 10),
            (1000, 512, 10, 512, 2),
            (1000, 100, 0, 1000, 1),
            (0, 100, 10, 100, 0),
            (5, 0, 2, 3, 2),
        ] {
            let map = MapBuilder::new(size, unit, cells).finish(Use::Free);
            assert_eq!((map.cell_len, map.cells.len()), (cell_len, count), "{size}");
        }
    }

    #[test]
    fn no_map_has_too_many_cells() {
        for size in [u64::MAX, 1 << 40] {
            let map = MapBuilder::new(size, 512, usize::MAX).finish(Use::Free);
            assert!(map.cells.len() <= CELLS_MAX);
        }
    }

    #[test]
    fn a_stretch_is_spread_over_the_cells_that_it_touches() {
        let mut map = MapBuilder::new(1000, 100, 4);
        map.add(250, 500, Use::File);
        let map = map.finish(Use::Free);
        let files: Vec<u64> = map.cells.iter().map(|cell| cell.file).collect();
        let free: Vec<u64> = map.cells.iter().map(|cell| cell.free).collect();
        assert_eq!(files, [50, 300, 150, 0]);
        assert_eq!(free, [250, 0, 150, 100]);
    }

    #[test]
    fn only_what_is_lost_is_found() {
        let mut map = MapBuilder::new(300, 100, 3);
        map.add(0, 200, Use::Lost);
        map.change(150, 150, Use::Lost, Use::Dir);
        let map = map.finish(Use::System);
        let all: Vec<_> = map
            .cells
            .iter()
            .map(|c| (c.lost, c.dir, c.system))
            .collect();
        assert_eq!(all, [(100, 0, 0), (50, 50, 0), (0, 0, 100)]);
    }

    #[test]
    fn what_lies_outside_is_passed_over() {
        let mut map = MapBuilder::new(1000, 100, 4);
        map.add(1000, 1, Use::File);
        map.add(1001, 50, Use::File);
        map.add(u64::MAX, u64::MAX, Use::File);
        map.add(999, u64::MAX, Use::File);
        map.add_breaks(u64::MAX);
        map.add_breaks(1);
        let map = map.finish(Use::Free);
        assert_eq!(map.cells.iter().map(|cell| cell.file).sum::<u64>(), 1);
        assert_eq!(map.breaks, u64::MAX);
    }

    #[test]
    fn cells_that_are_full_are_passed_over() {
        let count = 1000;
        let mut map = MapBuilder::new(count * 100, 100, count as usize);
        for _ in 0..3 {
            map.add(0, count * 100, Use::File);
        }
        // One step skips all of them.
        assert_eq!(map.room.first(), Some(&(count as u32)));
        map.add(0, count * 100, Use::Dir);
        let map = map.finish(Use::Free);
        assert!(
            map.cells
                .iter()
                .all(|cell| cell.file == 100 && cell.dir == 0)
        );
    }

    proptest! {
        #[test]
        fn every_byte_has_one_use(
            size in 0..5000_u64,
            unit in 1..600_u64,
            cells in 0..50_usize,
            said in prop::collection::vec((0..6000_u64, 0..6000_u64, 0..7_usize), 0..30),
            rest in 0..7_usize,
        ) {
            let mut map = MapBuilder::new(size, unit, cells);
            for (at, len, what) in said {
                map.add(at, len, Use::ALL[what]);
            }
            let map = map.finish(Use::ALL[rest]);
            let mut left = size;
            for cell in &map.cells {
                let len = map.cell_len.min(left);
                prop_assert_eq!(used(cell), len);
                left -= len;
            }
            prop_assert_eq!(left, 0);
        }
    }
}
