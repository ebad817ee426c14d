//! Attaching: recovery from the log (paper, section 5.9).
//!
//! Nothing before the last step changes the log, so that a cut before it repeats
//! the same recovery. A volume that is attached for reading is recovered in
//! memory, and nothing is written.

use crate::change::files::Files;
use crate::change::nodes::Nodes;
use crate::commit::core::{Core, Takes};
use crate::commit::log_state::LogState;
use crate::disk::leader::Leader;
use crate::disk::ondisk::{Header, PageType};
use crate::disk::runs::Runs;
use crate::disk::volume::Layout;
use crate::log::{Anchor, LogImage, Record, read_anchors};
use crate::mistakes::{Mistake, made};
use crate::name_table::page::{self, Image};
use crate::name_table::table::{Table, read_pages, write_home};
use crate::space::vam::Vam;
use crate::tree::btree::Tree;
use std::collections::BTreeMap;
use std::sync::Arc;
use volary_block::{Cache, CacheOptions};
use volary_core::{BlockDevice, Error, Kind, Result};

/// How to attach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) read_only: bool,
    /// Bytes for the cache and the name table's pages.
    pub(crate) memory: u64,
    /// Longest request, in bytes.
    pub(crate) io_size: u32,
    /// Go on although records of the log are lost, as `fsck -y` does.
    pub(crate) salvage: bool,
}

/// The smallest cache that a volume can be attached with, in bytes.
const MEMORY_MIN: u64 = 4 << 20;

/// What recovery found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// Records that were replayed.
    pub(crate) records: u64,
    /// Pages in them that one copy made good.
    pub(crate) damaged: u64,
    /// Whether the map is as it was saved and logged, and not from a walk.
    pub(crate) map_loaded: bool,
    /// Which anchors were whole.
    pub(crate) anchors: [bool; 2],
    /// Records that are known to have been durable, and are not to be had.
    pub(crate) lost: Option<String>,
    /// Why the map could not be rebuilt, for `check`.
    pub(crate) map_error: Option<String>,
}

/// The newest image of each page that the log has.
#[derive(Default)]
struct Newest {
    table: BTreeMap<u32, Image>,
    leaders: BTreeMap<u32, Image>,
}

/// Returns where the log begins, which anchors were whole, and which is the newer.
fn find_anchor(
    dev: &dyn BlockDevice,
    layout: &Layout,
    log: &LogImage<'_>,
) -> (Anchor, [bool; 2], usize) {
    let copies = read_anchors(dev, layout);
    let whole = copies.each_ref().map(Option::is_some);
    let found = match copies {
        [Some(a), Some(b)] if b.stamp > a.stamp => Some((b, 1)),
        [Some(a), _] => Some((a, 0)),
        [None, Some(b)] => Some((b, 1)),
        [None, None] => None,
    };
    match found {
        Some((anchor, newer)) => (anchor, whole, newer),
        None => (
            log.guess().unwrap_or_else(|| after_all(dev, layout)),
            whole,
            0,
        ),
    }
}

/// Returns an anchor newer than all that is in the name table, for when neither anchors
/// nor log say anything.
fn after_all(dev: &dyn BlockDevice, layout: &Layout) -> Anchor {
    let bytes = read_pages(dev, layout, layout.table_a, layout.table_len);
    let headers = bytes.chunks(layout.page_len()).filter_map(Header::read);
    let own = headers.filter(|h| h.kind == PageType::Table && h.nonce == layout.nonce);
    let (epoch, seq) = own.map(|h| (h.epoch, h.seq)).max().unwrap_or((0, 0));
    Anchor {
        stamp: 0,
        epoch: epoch.saturating_add(1),
        position: 0,
        seq: seq + 1,
        durable: seq,
    }
}

/// Returns what the log should have but has not, in words.
fn what_is_lost(log: &LogImage<'_>, anchor: &Anchor, last: u64) -> Option<String> {
    let newest = log
        .newest_after(anchor.epoch, last)
        .unwrap_or(0)
        .max(anchor.durable);
    // The newest header may be of the record that was being written: then all
    // before it are there.
    let next_is_torn = newest == last + 1 && anchor.durable <= last;
    (newest > last && !next_is_torn).then(|| {
        format!(
            "log record {} is damaged, though records up to {newest} were written",
            last + 1
        )
    })
}

/// Returns the newest image of each page in the records.
///
/// # Errors
/// `Corrupt` for a page that belongs nowhere.
fn newest(layout: &Layout, records: &[Record]) -> Result<Newest> {
    let mut out = Newest::default();
    let oldest = made(Mistake::OldestWins);
    for record in records {
        for (target, image) in &record.pages {
            let header = Header::read(image).filter(|h| h.nonce == layout.nonce);
            let kind = header.map(|h| h.kind);
            let index = target
                .checked_sub(layout.table_a)
                .filter(|i| *i < layout.table_len);
            match (index, kind) {
                (Some(index), Some(PageType::Table))
                    if header.is_some_and(|h| h.page == index)
                        && page::check(image, layout.table_len).is_ok() =>
                {
                    let there = out.table.entry(index).or_insert_with(|| image.clone());
                    if !oldest {
                        *there = image.clone();
                    }
                }
                (None, Some(PageType::Leader)) if layout.is_data(*target) => {
                    out.leaders.insert(*target, image.clone());
                }
                _ => {
                    let at = layout.offset(layout.log + record.position);
                    let found = format!("a page for {target}");
                    return Err(Error::corrupt(
                        "log record",
                        at,
                        found,
                        "pages of the name table and leaders",
                    ));
                }
            }
        }
    }
    Ok(out)
}

fn lost(layout: &Layout, words: &str) -> Error {
    let whole = "a whole log; attach with ro, or let fsck -y give up what is lost";
    Error::corrupt("log", layout.offset(layout.log), words, whole)
}

/// Attaches the volume on a device, after recovery.
///
/// # Errors
/// `Corrupt` for a root, a log or a name table that makes no sense; `Io`.
pub(crate) fn open(dev: Arc<dyn BlockDevice>, how: &How) -> Result<(Files, Recovered)> {
    let layout = Layout::read(&*dev)?;
    let log_image = LogImage::read(&*dev, &layout);
    let (anchor, anchors, newer) = find_anchor(&*dev, &layout, &log_image);
    let records = log_image.chain(&anchor);
    let last = anchor.seq.saturating_sub(1) + records.len() as u64;
    let mut recovered = Recovered {
        records: records.len() as u64,
        damaged: records.iter().map(|r| u64::from(r.damaged)).sum(),
        anchors,
        lost: what_is_lost(&log_image, &anchor, last),
        ..Recovered::default()
    };
    let read_only = how.read_only || dev.geometry().read_only;
    if let (Some(words), false, false) = (&recovered.lost, read_only, how.salvage) {
        return Err(lost(&layout, words));
    }
    let mut newest = newest(&layout, &records)?;
    let position = records.last().map_or(anchor.position, |r| r.next(&layout));
    let log = LogState::new(anchor, newer, position, last + 1);
    let memory = how.memory.max(MEMORY_MIN);
    let options = CacheOptions {
        memory: memory / 2,
        io_size: how.io_size,
    };
    let table = Table::new(memory / 4, &layout);
    let vam = Vam::empty(&layout);
    drop(log_image);
    let mut core = Core::new(layout, Cache::new(dev, options), table, vam, log);
    for (index, image) in &newest.table {
        core.table.logged(*index, image.clone(), 0);
    }
    if !read_only && !made(Mistake::LogEmptiedFirst) {
        send_home(&mut core, &newest)?;
    }
    load_map(&mut core, &records, last, how.salvage, &mut recovered)?;
    let mut files = Files::new(core);
    let wanted = wanted_leaders(&mut files, std::mem::take(&mut newest.leaders))?;
    let core = &mut files.core;
    if read_only {
        keep_leaders(core, wanted);
        return Ok((files, recovered));
    }
    core.takes = Takes::Unopened;
    if recovered.records > 0 || recovered.lost.is_some() || anchors != [true, true] {
        finish(core, &wanted)?;
        if made(Mistake::LogEmptiedFirst) {
            send_home(core, &newest)?;
        }
    }
    Ok((files, recovered))
}

/// Keeps the logged leaders of a volume that is only read: they never go home.
fn keep_leaders(core: &mut Core, leaders: BTreeMap<u32, Image>) {
    for (page, image) in leaders {
        core.leaders.logged(page, image, 0);
    }
}

/// Step 4: the replayed pages go home, to both copies.
fn send_home(core: &mut Core, newest: &Newest) -> Result<()> {
    if newest.table.is_empty() {
        return Ok(());
    }
    let pages: Vec<(u32, Image)> = newest.table.iter().map(|(i, p)| (*i, p.clone())).collect();
    write_home(&core.cache, &core.layout, &pages)?;
    core.cache.flush()?;
    core.table.came_home(0);
    Ok(())
}

/// Step 5: the map as it was saved and logged up to the last commit, or rebuilt.
fn load_map(
    core: &mut Core,
    records: &[Record],
    last: u64,
    salvage: bool,
    recovered: &mut Recovered,
) -> Result<()> {
    recovered.map_loaded = match core.layout.logs_map {
        true => load_logged(core, records, last, recovered),
        false => core.map.load_saved(&core.layout, &core.cache, last),
    };
    if recovered.map_loaded {
        return Ok(());
    }
    core.map.all_due();
    match Tree::of(core).rebuild_map() {
        Ok(vam) => core.map.replace(vam),
        Err(e) if salvage => {
            let vam = Tree::of(core).rebuild_map_as_far_as_it_goes()?;
            core.map.replace(vam);
            recovered.map_error = Some(e.to_string());
        }
        Err(e) => return Err(e),
    }
    Ok(())
}

/// Restores the logged map. Returns false where records were lost, or nothing says which is the last.
fn load_logged(core: &mut Core, records: &[Record], last: u64, recovered: &Recovered) -> bool {
    let last_is_known = recovered.anchors != [false; 2] || !records.is_empty();
    last_is_known
        && recovered.lost.is_none()
        && core
            .map
            .load_logged(&core.layout, &core.cache, records, last)
}

/// Step 6: of the logged leaders, those that the recovered name table wants as
/// they are. A page that has another use by now is not touched.
fn wanted_leaders(files: &mut Files, logged: BTreeMap<u32, Image>) -> Result<BTreeMap<u32, Image>> {
    let mut wanted = BTreeMap::new();
    for (page, image) in logged {
        let Some(leader) = Leader::decode(&files.core.layout, page, &image) else {
            continue;
        };
        let runs = match Nodes::of(files).runs_of_uid(leader.uid) {
            Ok(runs) => runs,
            Err(_) if made(Mistake::AnyLeader) => Runs::default(),
            Err(e) if matches!(e.kind(), Kind::Stale | Kind::Corrupt) => continue,
            Err(e) => return Err(e),
        };
        if made(Mistake::AnyLeader)
            || runs.leader() == Some(page)
                && leader == Leader::of(leader.uid, &runs, &files.core.layout)
        {
            wanted.insert(page, image);
        }
    }
    Ok(wanted)
}

/// Steps 6 and 7: leaders, then, last, an empty log in a new epoch.
fn finish(core: &mut Core, leaders: &BTreeMap<u32, Image>) -> Result<()> {
    for (page, image) in leaders {
        core.cache.write_direct(core.layout.offset(*page), image)?;
    }
    core.cache.flush()?;
    core.takes = Takes::Changes;
    core.start_epoch()
}
