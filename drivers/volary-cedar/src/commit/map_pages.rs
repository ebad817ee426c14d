//! Pages of a logged map: written to two copies, read back, and brought up to date by what records
//! tell.

use crate::disk::ondisk::{Header, PageType};
use crate::disk::runs::Run;
use crate::disk::volume::Layout;
use crate::log::Record;
use crate::mistakes::{Mistake, made};
use crate::name_table::table::read_pages;
use crate::space::delta::Delta;
use crate::space::map_home::{ALL, MapHome, pages_of_map};
use crate::space::vam::Vam;
use volary_block::Cache;
use volary_core::{Error, Result};

/// A page of the map to be written: which one, and as it is in each copy.
pub(crate) type MapPage = (u32, [Vec<u8>; 2]);

/// Pieces of a run, each with the page of the map that has it.
pub(crate) fn pieces(layout: &Layout, run: Run) -> impl Iterator<Item = (u32, Run)> + '_ {
    let end = run.start.saturating_add(run.len);
    pages_of_map(layout, run).map(move |index| {
        let first = index * layout.map_bits();
        let start = run.start.max(first);
        let len = end.min(first.saturating_add(layout.map_bits())) - start;
        (index, Run { start, len })
    })
}

/// Writes one copy of pages of the map. Not flushed.
///
/// # Errors
/// `Io`.
pub(crate) fn write_map(
    layout: &Layout,
    cache: &Cache,
    copy: usize,
    pages: &[MapPage],
) -> Result<()> {
    let dev = cache.device();
    let start = layout.maps().get(copy).copied().unwrap_or_default();
    for run in pages.chunk_by(|a, b| a.0 + 1 == b.0) {
        let Some((first, _)) = run.first() else {
            continue;
        };
        let parts: Vec<&[u8]> = run
            .iter()
            .filter_map(|(_, copies)| copies.get(copy).map(Vec::as_slice))
            .collect();
        dev.write_gather(layout.offset(start + first), &parts)?;
    }
    Ok(())
}

/// Reads pages of the map back from both copies.
///
/// # Errors
/// `Io` if any is not what was written.
pub(crate) fn read_map_back(layout: &Layout, cache: &Cache, pages: &[MapPage]) -> Result<()> {
    let mut bytes = vec![0; layout.page_len()];
    for (index, copies) in pages {
        for (start, image) in layout.maps().into_iter().zip(copies) {
            let offset = layout.offset(start + index);
            cache.device().read_at(offset, &mut bytes)?;
            if bytes != *image {
                let len = bytes.len() as u64;
                return Err(Error::io("write", offset, len, "it is not there"));
            }
        }
    }
    Ok(())
}

/// Returns the map of what is home and of what the records up to `last` tell since, and what of it
/// is due. None if it cannot be known.
pub(crate) fn logged_map(
    layout: &Layout,
    cache: &Cache,
    records: &[Record],
    last: u64,
) -> Option<(Vam, MapHome)> {
    let copies = layout
        .maps()
        .map(|first| read_pages(&**cache.device(), layout, first, layout.map_len));
    let mut home = MapHome::new(layout);
    let (mut pages, mut seqs) = (Vec::new(), Vec::new());
    let [a, b] = copies.each_ref().map(|c| c.chunks(layout.page_len()));
    for (i, (a, b)) in a.zip(b).enumerate() {
        let (bytes, seq, alike) = newer(layout, i as u32, [a, b])?;
        if seq > last {
            return None;
        }
        if !alike && let Some(due) = home.due.get_mut(i) {
            *due = ALL;
        }
        pages.push(bytes);
        seqs.push(seq);
    }
    let mut vam = Vam::of_pages(layout, &pages);
    for record in records {
        let Some(delta) = &record.told else {
            if seqs.iter().any(|seq| *seq < record.seq) {
                return None;
            }
            continue;
        };
        replay(layout, &mut vam, &seqs, record.seq, delta)?;
        for run in delta.taken.iter().chain(delta.freed.iter()) {
            home.changed(layout, run, ALL);
        }
    }
    Some((vam, home))
}

/// Returns of two copies of a page of the map the newer one that is whole, its record's
/// number, and whether the other is as new.
fn newer<'a>(layout: &Layout, index: u32, copies: [&'a [u8]; 2]) -> Option<(&'a [u8], u64, bool)> {
    let [a, b] = layout.maps().map(|first| first + index);
    let age = |bytes: &[u8], number: u32| {
        let own =
            |h: &Header| h.kind == PageType::Map && h.nonce == layout.nonce && h.page == number;
        Header::read(bytes).filter(own).map(|h| (h.epoch, h.seq))
    };
    let ages = (age(copies[0], a), age(copies[1], b));
    let alike = ages.0 == ages.1;
    match ages {
        (None, None) => None,
        (a, b) if b > a => Some((copies[1], b?.1, alike)),
        (a, _) => Some((copies[0], a?.1, alike)),
    }
}

/// Changes the map as a record tells, but for pages that have the record already.
/// None if it takes what is in use, or frees what is not.
fn replay(layout: &Layout, vam: &mut Vam, seqs: &[u64], seq: u64, delta: &Delta) -> Option<()> {
    let taken = delta.taken.iter().map(|run| (run, true));
    for (run, used) in taken.chain(delta.freed.iter().map(|run| (run, false))) {
        if !layout.is_data_run(run.start, run.len) && !layout.is_table_run(run) {
            return None;
        }
        for (index, piece) in pieces(layout, run) {
            let has = seqs.get(index as usize).is_some_and(|s| *s >= seq);
            if has && !made(Mistake::ToldTwice) {
                continue;
            }
            if !vam.is_all(piece, !used) {
                return None;
            }
            vam.mark(piece.start, piece.len, used);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cedar::CEDAR;
    use crate::space::delta::RunSet;
    use std::sync::Arc;
    use volary_block::MemDevice;
    use volary_testkit::volumes;

    #[test]
    fn records_that_contradict_the_map_are_not_believed() {
        let dev = Arc::new(MemDevice::new(2 << 20));
        volumes::make(&CEDAR, dev.clone(), "cedar", "page=512,log=186k");
        let layout = Layout::read(&*dev).unwrap();
        let tell = |taken: &[(u32, u32)], freed: &[(u32, u32)]| {
            let set = |runs: &[(u32, u32)]| {
                let mut set = RunSet::default();
                set.extend(runs.iter().map(|(start, len)| Run {
                    start: *start,
                    len: *len,
                }));
                set
            };
            let delta = Delta {
                taken: set(taken),
                freed: set(freed),
            };
            let mut vam = Vam::empty(&layout);
            replay(&layout, &mut vam, &[4, 4], 5, &delta).map(|()| vam.free())
        };
        let free = Vam::empty(&layout).free();
        assert_eq!(tell(&[(10, 5)], &[(12, 2)]), Some(free - 3));
        assert_eq!(tell(&[], &[(12, 2)]), None, "frees what is free");
        assert_eq!(tell(&[(layout.log, 1)], &[]), None, "takes of the log");
        assert_eq!(tell(&[(layout.pages - 2, 2)], &[]), None, "takes a root");
        assert_eq!(tell(&[(u32::MAX - 4, 9)], &[]), None, "past the end");
    }
}
