//! What lies where.

use crate::change::files::Files;
use crate::change::nodes::Nodes;
use crate::disk::runs::Run;
use crate::look::info::LOOK;
use crate::name_table::entry::{Entry, Place};
use crate::name_table::page::Image;
use crate::recover::open;
use crate::tree::btree::Tree;
use crate::tree::walk::{Lost, Visitor};
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Result, VolumeMap};
use volary_ondisk::map::{MapBuilder, Use};

/// Maps the volume into at most `cells` cells. Damage is passed over.
///
/// # Errors
/// As [`Format::map`](volary_core::Format::map).
pub(crate) fn map(dev: Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
    let (mut files, _) = open(dev, &LOOK)?;
    let page = u64::from(files.core.layout.page);
    let size = files.core.layout.offset(files.core.layout.pages);
    let mut map = MapBuilder::new(size, page, cells);
    let mut add = |run: Run, what| {
        map.add(u64::from(run.start) * page, u64::from(run.len) * page, what);
    };
    let mut all = Heads::default();
    Tree::of(&mut files.core).walk(&mut all)?;
    let mut breaks = 0;
    for runs in runs_of(&mut files, &all.heads) {
        breaks += runs.len().saturating_sub(1) as u64;
        let what = match runs.len() {
            1 => Use::File,
            _ => Use::Broken,
        };
        runs.iter().for_each(|run| add(*run, what));
    }
    files
        .core
        .map
        .vam()
        .free_runs()
        .for_each(|run| add(run, Use::Free));
    map.add_breaks(breaks);
    // What is of no file and not free is the format's own.
    Ok(map.finish(Use::System))
}

/// The heads of files.
#[derive(Default)]
struct Heads {
    heads: Vec<crate::name_table::entry::Head>,
}

impl Visitor for Heads {
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

fn runs_of(files: &mut Files, heads: &[crate::name_table::entry::Head]) -> Vec<Vec<Run>> {
    let runs = heads
        .iter()
        .filter_map(|head| Nodes::of(files).runs(head).ok());
    runs.map(|r| r.0).filter(|r| !r.is_empty()).collect()
}
