//! Building the name table anew when pages of it are lost in both copies: from
//! the pages that nothing leads to any more, from what else is known of the nodes
//! that were in them, and from leaders.
//!
//! The new table is written to pages that are not in use; then one log record
//! has its root. So a cut leaves the old table or the new one.

use crate::change::files::Files;
use crate::change::nodes::new_head;
use crate::disk::leader::Leader;
use crate::disk::ondisk::{HEADER, Header, stamp};
use crate::disk::runs::{RUN, Runs};
use crate::disk::sums::Sums;
use crate::name_table::entry::{
    Entry, Head, NOWHERE, Part, Place, ROOT_NAME, ROOT_UID, dir_prefix, part_of_key, place_key,
    place_of_key,
};
use crate::name_table::page::{self, Cell};
use crate::name_table::table::{read_pages, write_home};
use crate::space::vam::Vam;
use crate::tree::btree::Tree;
use crate::tree::walk::{Lost, Visitor, runs_of_cell};
use std::collections::{BTreeMap, BTreeSet};
use volary_core::{Error, FileKind, Kind, Result, Time};

/// Pages of the data areas that are read at a time.
const READ: u32 = 256;

/// All cells of the table.
type Cells = BTreeMap<Vec<u8>, Vec<u8>>;

/// Builds the name table anew.
///
/// # Errors
/// `NoSpace` if it has too few pages that are not in use; `Io`.
pub(super) fn salvage(files: &mut Files, now: Time) -> Result<()> {
    let mut found = Reached::default();
    Tree::of(&mut files.core).walk(&mut found)?;
    let Reached {
        mut cells,
        mut pages,
        lost,
    } = found;
    if lost.is_empty() {
        return Err(Kind::Stale.into());
    }
    pages.extend(take_orphans(files, &pages, &lost, &mut cells));
    revive(files, &mut cells, now)?;
    build(files, &cells, &pages, now)
}

/// What the root still leads to.
#[derive(Default)]
struct Reached {
    cells: Cells,
    pages: BTreeSet<u32>,
    lost: Vec<Lost>,
}

impl Visitor for Reached {
    fn page(&mut self, index: u32, _: &page::Image) -> Result<()> {
        self.pages.insert(index);
        Ok(())
    }

    fn cell(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.cells.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn bad(&mut self, lost: Lost, _: Error) -> Result<()> {
        self.lost.push(lost);
        Ok(())
    }
}

/// Takes the cells of leaves that nothing leads to, where their keys were lost.
/// Some of these leaves are of long ago: what a newer one spans, an older one
/// does not add to. Gives the pages that were of use.
fn take_orphans(
    files: &mut Files,
    reached: &BTreeSet<u32>,
    lost: &[Lost],
    cells: &mut Cells,
) -> Vec<u32> {
    let mut leaves = Vec::new();
    for index in (0..files.core.layout.table_len).filter(|i| !reached.contains(i)) {
        let Ok(image) = files.core.page(index) else {
            continue;
        };
        files.core.table.forget(index);
        if let Some(header) = Header::read(&image).filter(|_| page::level(&image) == 0) {
            let cells = page::cells(&image).map(|(k, v)| (k.to_vec(), v.to_vec()));
            let cells: Vec<(Vec<u8>, Vec<u8>)> = cells.collect();
            leaves.push((header.epoch, header.seq, index, cells));
        }
    }
    leaves.sort_by_key(|(epoch, seq, ..)| std::cmp::Reverse((*epoch, *seq)));
    let (mut spans, mut used) = (Vec::<(Vec<u8>, Vec<u8>)>::new(), Vec::new());
    for (_, _, index, leaf) in leaves {
        let Some((first, last)) = leaf.first().zip(leaf.last()) else {
            continue;
        };
        let span = (first.0.clone(), last.0.clone());
        let mut taken = false;
        for (key, value) in leaf {
            let is_lost = lost.iter().any(|l| l.has(&key));
            let is_old = spans.iter().any(|(a, b)| (a..=b).contains(&&key));
            if is_lost && !is_old && !cells.contains_key(&key) {
                cells.insert(key, value);
                taken = true;
            }
        }
        spans.push(span);
        used.extend(taken.then_some(index));
    }
    used
}

/// Adds heads that are lost, as far as anything tells of them.
fn revive(files: &Files, cells: &mut Cells, now: Time) -> Result<()> {
    let mut vam = Vam::empty(&files.core.layout);
    let owned = owned(files, cells);
    for (key, value) in &*cells {
        // Runs whose head is lost are looked at with their leader.
        if part_of_key(key).is_some_and(|(of, kind, _)| !owned.contains(&(of, kind))) {
            continue;
        }
        for run in runs_of_cell(key, value) {
            vam.mark(run.start, run.len, true);
        }
    }
    let mut leaders = leaders(files, &vam)?;
    let heads: BTreeSet<u64> = cells
        .iter()
        .filter(|(key, _)| Place::of_key(key).is_some())
        .filter_map(|(_, value)| match Entry::decode(value)? {
            Entry::Head(head) => Some(head.uid),
            Entry::Link(..) => None,
        })
        .collect();
    leaders.retain(|uid, _| !heads.contains(uid));
    let mut places: BTreeMap<u64, (u32, Place)> = BTreeMap::new();
    for (key, value) in &*cells {
        let place = place_of_key(key).zip(Place::decode(value));
        if let Some(((uid, number), place)) = place.filter(|((uid, _), _)| !heads.contains(uid)) {
            places.entry(uid).or_insert((number, place));
        }
    }
    if !heads.contains(&ROOT_UID) {
        places.insert(ROOT_UID, (0, Place::new(NOWHERE, ROOT_NAME)));
    }
    for uid in leaders.keys() {
        let name = format!("lost.{uid:x}");
        let place = Place::new(ROOT_UID, name.as_bytes());
        places.entry(*uid).or_insert((0, place));
    }
    for (uid, (number, place)) in places {
        let Some(mut head) = head_of(files, cells, uid, leaders.get(&uid), &mut vam, now) else {
            continue;
        };
        (head.number, head.next_number) = (number, number.saturating_add(1));
        cells.insert(place_key(uid, number), place.encode());
        cells.insert(place.key(), Entry::Head(head).encode());
    }
    Ok(())
}

/// Returns what the parts of runs of all heads that are there are kept under.
fn owned(files: &Files, cells: &Cells) -> BTreeSet<(u64, u8)> {
    let heads = cells.iter().filter_map(|(key, value)| {
        Place::of_key(key)?;
        match Entry::decode(value)? {
            Entry::Head(head) => Some(head),
            Entry::Link(..) => None,
        }
    });
    heads
        .map(|head| files.core.layout.parts_under(&head, Part::Runs))
        .collect()
}

/// Returns the head of a node, as its leader, its parts or what is in it tell; none if
/// nothing does. The rest of it, the mode with it, is lost.
fn head_of(
    files: &Files,
    cells: &Cells,
    uid: u64,
    leader: Option<&Leader>,
    vam: &mut Vam,
    now: Time,
) -> Option<Head> {
    let mut probe = new_head(uid, FileKind::File, now);
    probe.runs = leader.map_or_else(Vec::new, |leader| leader.preamble.clone());
    let parts = |part: Part| -> Vec<&[u8]> {
        let (of, kind) = files.core.layout.parts_under(&probe, part);
        let own = |key: &[u8]| part_of_key(key).is_some_and(|p| (p.0, p.1) == (of, kind));
        let from = crate::name_table::entry::part_key(of, kind, 0);
        let all = cells.range(from..).take_while(|(key, _)| own(key));
        all.map(|(_, value)| value.as_slice()).collect()
    };
    let inside = dir_prefix(uid);
    let has_names = cells
        .range(inside.clone()..)
        .next()
        .is_some_and(|(key, _)| key.starts_with(&inside));
    let target = parts(Part::Target);
    let runs = leader.and_then(|leader| runs_of(files, leader, &parts(Part::Runs).concat(), vam));
    let kind = match (has_names || uid == ROOT_UID, target.is_empty(), &runs) {
        (true, ..) => FileKind::Dir,
        (_, false, _) => FileKind::Symlink,
        (_, _, Some(_)) => FileKind::File,
        _ => return None,
    };
    let mut head = new_head(uid, kind, now);
    head.mode = if kind == FileKind::Dir { 0o700 } else { 0o600 };
    head.nlink = if kind == FileKind::Dir { 2 } else { 1 };
    head.size = target.iter().map(|t| t.len() as u64).sum();
    for part in [Part::Target, Part::Xattrs] {
        head.set_parts_of(part, parts(part).len() as u16);
    }
    if let Some(runs) = runs.filter(|_| kind == FileKind::File) {
        let in_head = files.core.layout.runs_in_head().min(runs.0.len());
        head.set_parts_of(Part::Runs, parts(Part::Runs).len() as u16);
        head.size = u64::from(runs.pages().saturating_sub(1)) * u64::from(files.core.layout.page);
        head.runs = runs.0.get(..in_head)?.to_vec();
        let sums = parts(Part::Sums);
        let known = Sums::decode(&sums.concat(), files.core.layout.page);
        if let Some(known) = known.filter(|s| files.core.layout.pages_for(s.len()) == runs.pages())
        {
            // The file was sealed: they end where it did.
            head.size = known.len();
            head.set_parts_of(Part::Sums, sums.len() as u16);
        }
    }
    Some(head)
}

/// Returns the runs of a file by its leader and its parts, if they are all there and
/// no other file has their pages.
fn runs_of(files: &Files, leader: &Leader, parts: &[u8], vam: &mut Vam) -> Option<Runs> {
    let in_head = files
        .core
        .layout
        .runs_in_head()
        .min(leader.runs_len as usize);
    let mut runs = Runs(leader.preamble.get(..in_head)?.to_vec());
    runs.0.extend(Runs::decode(parts));
    let whole = runs.checksum() == leader.runs_crc && parts.len().is_multiple_of(RUN);
    let layout = &files.core.layout;
    let own = |v: &Vam| {
        let good = |r: &crate::disk::runs::Run| layout.is_data_run(r.start, r.len) && v.is_free(*r);
        runs.0.iter().all(good)
    };
    if !whole || !own(vam) {
        return None;
    }
    runs.0.iter().for_each(|r| vam.mark(r.start, r.len, true));
    Some(runs)
}

/// Returns the leaders on pages that no file is known to have, the newest of each node.
fn leaders(files: &Files, vam: &Vam) -> Result<BTreeMap<u64, Leader>> {
    let (layout, dev) = (&files.core.layout, files.core.cache.device());
    let mut found: BTreeMap<u64, ((u32, u64), Leader)> = BTreeMap::new();
    for run in vam.free_runs() {
        let end = run.start + run.len;
        for first in (run.start..end).step_by(READ as usize) {
            let count = READ.min(end - first);
            let bytes = read_pages(&**dev, layout, first, count);
            for (at, bytes) in (first..).zip(bytes.chunks(layout.page_len())) {
                let leader = Leader::decode(layout, at, bytes).zip(Header::read(bytes));
                let Some((leader, header)) = leader else {
                    continue;
                };
                let age = (header.epoch, header.seq);
                let newest = found.get(&leader.uid).is_none_or(|(old, _)| *old < age);
                let is_first = leader.preamble.first().is_some_and(|r| r.start == at);
                if newest && is_first && leader.uid != ROOT_UID {
                    found.insert(leader.uid, (age, leader));
                }
            }
        }
    }
    Ok(found.into_iter().map(|(uid, (_, l))| (uid, l)).collect())
}

/// Writes a table of these cells to pages other than `used`, and has the root
/// lead to it.
fn build(files: &mut Files, cells: &Cells, used: &BTreeSet<u32>, now: Time) -> Result<()> {
    let len = files.core.layout.page_len();
    let mut free = (1..files.core.layout.table_len).filter(|i| !used.contains(i));
    let mut below: Vec<Cell<'_>> = cells.iter().map(|(k, v)| (k.into(), v.into())).collect();
    let (mut level, mut pages) = (0, Vec::new());
    loop {
        let groups = grouped(below, len - HEADER);
        if let [only] = &groups[..] {
            let root = page::build(0, level, files.core.layout.nonce, len, only);
            return replace(files, pages, &root, now);
        }
        below = Vec::new();
        for mut group in groups {
            let index = free.next().ok_or_else(|| {
                let words = "the name table has no room to be built anew";
                Error::note(Kind::NoSpace, words)
            })?;
            let least = group.first().map(|c| c.0.clone()).unwrap_or_default();
            if let Some(first) = group.first_mut().filter(|_| level > 0) {
                first.0 = (&[]).into();
            }
            let mut image =
                page::build(index, level, files.core.layout.nonce, len, &group).to_vec();
            stamp(&mut image, files.core.log.epoch(), files.core.log.seq());
            pages.push((index, image.into()));
            below.push((least, index.to_le_bytes().to_vec().into()));
        }
        if let Some(first) = below.first_mut() {
            first.0 = (&[]).into();
        }
        level += 1;
    }
}

/// Cells by the page, each page nearly full.
fn grouped(cells: Vec<Cell<'_>>, room: usize) -> Vec<Vec<Cell<'_>>> {
    let (mut out, mut left) = (vec![Vec::new()], room);
    for cell in cells {
        let len = page::CELL + cell.0.len() + cell.1.len();
        if len > left {
            out.push(Vec::new());
            left = room;
        }
        left = left.saturating_sub(len);
        if let Some(last) = out.last_mut() {
            last.push(cell);
        }
    }
    out
}

/// Writes the new pages before the root that leads to them.
fn replace(
    files: &mut Files,
    mut pages: Vec<(u32, page::Image)>,
    root: &page::Image,
    now: Time,
) -> Result<()> {
    pages.sort_by_key(|(index, _)| *index);
    write_home(&files.core.cache, &files.core.layout, &pages)?;
    files.core.cache.flush()?;
    for index in 1..files.core.layout.table_len {
        files.core.table.forget(index);
    }
    files.change(now, |c| {
        c.core.txn.put_page(0, root.clone());
        Ok(())
    })?;
    files.core.commit(now)?;
    let vam = Tree::of(&mut files.core).rebuild_map_as_far_as_it_goes()?;
    files.core.map.replace(vam);
    files.core.map.outdate();
    Ok(())
}
