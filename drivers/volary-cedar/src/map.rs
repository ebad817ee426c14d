//! What lies where.

use crate::core::Core;
use crate::entry::{Entry, Place};
use crate::info::LOOK;
use crate::page::Image;
use crate::recover::open;
use crate::runs::Run;
use crate::walk::{Lost, Visitor};
use std::sync::Arc;
use volary_core::{BlockDevice, Error, MapCell, Result, VolumeMap};

/// Most cells that a map has, whatever is asked for.
const CELLS_MAX: usize = 1 << 20;

/// Maps the volume into at most `cells` cells. Damage is passed over.
///
/// # Errors
/// As [`Format::map`](volary_core::Format::map).
pub(crate) fn map(dev: Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
    let (mut core, _) = open(dev, &LOOK)?;
    let page = u64::from(core.layout.page);
    let size = core.layout.offset(core.layout.pages);
    let cells = cells.clamp(1, CELLS_MAX) as u64;
    let cell_len = size.div_ceil(cells).max(page).next_multiple_of(page);
    let mut map = VolumeMap {
        cell_len,
        cells: vec![MapCell::default(); size.div_ceil(cell_len) as usize],
        breaks: 0,
    };
    let mut all = Files::default();
    core.walk(&mut all)?;
    for runs in files(&mut core, &all.heads) {
        map.breaks += runs.len().saturating_sub(1) as u64;
        for run in &runs {
            match runs.len() {
                1 => add(&mut map, page, *run, |c| &mut c.file),
                _ => add(&mut map, page, *run, |c| &mut c.broken),
            }
        }
    }
    let free: Vec<Run> = core.vam.free_runs().collect();
    for run in free {
        add(&mut map, page, run, |c| &mut c.free);
    }
    fill(&mut map, size);
    Ok(map)
}

/// The heads of files.
#[derive(Default)]
struct Files {
    heads: Vec<crate::entry::Head>,
}

impl Visitor for Files {
    fn page(&mut self, _: u32, _: &Image) -> Result<()> {
        Ok(())
    }

    fn cell(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if let (Some(_), Some(Entry::Head(head))) = (Place::of_key(key), Entry::decode(value)) {
            self.heads.push(head);
        }
        Ok(())
    }

    fn bad(&mut self, _: Lost, _: Error) -> Result<()> {
        Ok(())
    }
}

fn files(core: &mut Core, heads: &[crate::entry::Head]) -> Vec<Vec<Run>> {
    let runs = heads.iter().filter_map(|head| core.runs(head).ok());
    runs.map(|r| r.0).filter(|r| !r.is_empty()).collect()
}

/// Adds a run to the cells that it touches.
fn add(map: &mut VolumeMap, page: u64, run: Run, of: fn(&mut MapCell) -> &mut u64) {
    let (mut at, end) = (
        u64::from(run.start) * page,
        (u64::from(run.start) + u64::from(run.len)) * page,
    );
    while at < end {
        let cell = at / map.cell_len;
        let to = ((cell + 1) * map.cell_len).min(end);
        if let Some(cell) = map.cells.get_mut(cell as usize) {
            *of(cell) += to - at;
        }
        at = to;
    }
}

/// What is of no file and not free is the format's own.
fn fill(map: &mut VolumeMap, size: u64) {
    let len = map.cell_len;
    for (i, cell) in map.cells.iter_mut().enumerate() {
        let whole = (size - i as u64 * len).min(len);
        cell.system = whole.saturating_sub(cell.file + cell.broken + cell.free);
    }
}
