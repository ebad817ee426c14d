//! Mending: recovery, then each repair as a change.

use super::problem::Fix;
use super::salvage::salvage;
use crate::change::files::Files;
use crate::change::nodes::Nodes;
use crate::change::sealing::Sealing;
use crate::change::versions::Versions;
use crate::commit::core::Takes;
use crate::disk::runs::Runs;
use crate::name_table::entry::{Entry, Far, Head, Part, Place, ROOT_UID};
use crate::name_table::table::{Pair, judge, read_pages, write_copy};
use crate::recover::{How, open};
use crate::tree::btree::Tree;
use std::sync::Arc;
use volary_core::{BlockDevice, FileKind, Kind, Result, Time};

/// How a volume is opened to be mended.
const MEND: How = How {
    read_only: false,
    ..crate::look::info::LOOK
};

/// Makes repairs.
///
/// # Errors
/// `Io`, `NoSpace`, `Corrupt` for what contradicts itself too much to be changed.
pub(super) fn mend(dev: Arc<dyn BlockDevice>, now: Time, fixes: &[Fix]) -> Result<()> {
    let (mut files, _) = open(dev, &MEND)?;
    // What is in use by files that are not right yet must not be given out.
    files.core.begin()?;
    files.core.map.distrust();
    if fixes.contains(&Fix::Salvage) {
        // What else there is to mend is seen once that is done.
        salvage(&mut files, now)?;
        return files.core.leave(now);
    }
    for fix in fixes {
        match apply(&mut files, fix, now) {
            // What an earlier repair took away needs none.
            Err(e) if e == Kind::Stale => {}
            other => other?,
        }
    }
    files.core.commit(now)?;
    let vam = match Tree::of(&mut files.core).rebuild_map() {
        Ok(vam) => vam,
        Err(_) => Tree::of(&mut files.core).rebuild_map_as_far_as_it_goes()?,
    };
    files.core.map.replace(vam);
    files.core.leave(now)
}

fn apply(files: &mut Files, fix: &Fix, now: Time) -> Result<()> {
    match fix {
        // Opening was it.
        Fix::Recover | Fix::Salvage => Ok(()),
        // The map is built anew at the end, and saved in place of the wrong one,
        // which may be of the same commit.
        Fix::Map => {
            files.core.map.discard_saved();
            Ok(())
        }
        Fix::Root => files.change(now, |c| Nodes::of(c).make_root(now, 0o755, 0, 0)),
        Fix::Roots => write_roots(files),
        Fix::Copy(copy, index) => write_other(files, *copy, *index),
        Fix::Leader(uid) => {
            let runs = Nodes::of(files).runs_of_uid(*uid)?;
            files.change(now, |c| {
                c.core.txn.set_leader(&c.core.layout, *uid, None, &runs);
                Ok(())
            })
        }
        Fix::Nameless(uid) => Versions::of(files).let_go(*uid, now),
        Fix::Remove(key) => files.change(now, |c| Tree::of(&mut c.core).remove(key).map(drop)),
        Fix::Put(key, value) => files.change(now, |c| Tree::of(&mut c.core).put(key, value)),
        Fix::Links(uid, links) => with_head(files, *uid, now, |_, head| {
            head.nlink = *links;
            Ok(())
        }),
        Fix::Empty(uid) => with_head(files, *uid, now, empty),
        Fix::Size(uid) => with_head(files, *uid, now, resize),
        Fix::Sums(uid) => with_head(files, *uid, now, |files, head| {
            Sealing::of(files).set_sums(head, None)
        }),
        Fix::Own(uid) => with_head(files, *uid, now, make_own),
        Fix::Away(uid) => with_head(files, *uid, now, |files, head| make_away(files, head, now)),
        Fix::Adopt(key) => files.change(now, |c| adopt(c, key, now)),
    }
}

fn write_roots(files: &Files) -> Result<()> {
    let dev = files.core.cache.device();
    for page in files.core.layout.roots() {
        dev.write_at(
            files.core.layout.offset(page),
            &files.core.layout.encode(page),
        )?;
        dev.flush()?;
    }
    Ok(())
}

/// Writes a copy of a page from the other, unless recovery did already.
fn write_other(files: &Files, copy: usize, index: u32) -> Result<()> {
    let (dev, layout) = (files.core.cache.device(), &files.core.layout);
    let a = read_pages(&**dev, layout, layout.table_a + index, 1);
    let b = read_pages(&**dev, layout, layout.table_b + index, 1);
    if let Pair::Half(image, bad) = judge(&a, &b, layout, index)
        && bad == copy
    {
        write_copy(&**dev, layout, copy, index, &image)?;
    }
    files.core.cache.flush()
}

fn with_head(
    files: &mut Files,
    uid: u64,
    now: Time,
    change: impl Fn(&mut Files, &mut Head) -> Result<()>,
) -> Result<()> {
    debug_assert!(files.core.takes == Takes::Changes);
    files.change(now, |c| {
        let (place, mut head) = Nodes::of(c).home(uid)?;
        change(c, &mut head)?;
        head.touch(now, false);
        Nodes::of(c).keep(&place, head)
    })
}

/// Takes the content away without a look at it: the map is built anew after.
///
/// A file of the remote is fetched again; if it is lost which one it is, it is the volume's
/// own then.
fn empty(files: &mut Files, head: &mut Head) -> Result<()> {
    let path = match head.is_link() {
        true => Nodes::of(files)
            .parts(head, Part::Target)
            .unwrap_or_default(),
        false => Vec::new(),
    };
    let was_link = head.is_link();
    // What of its runs is another's stays; what is nobody's is seen in the next round.
    Nodes::of(files).hand_runs_over(head)?;
    for part in Part::ALL {
        Nodes::of(files).set_parts(head, part, &[])?;
    }
    match &mut head.far {
        Some(far) if !was_link || !path.is_empty() => far.whole = false,
        _ => (head.far, head.size) = (None, 0),
    }
    match path.is_empty() {
        true => Ok(()),
        false => Nodes::of(files).set_parts(head, Part::Target, &path),
    }
}

/// Turns a node into one of the remote that was never seen.
fn make_away(files: &mut Files, head: &mut Head, now: Time) -> Result<()> {
    Nodes::of(files).hand_runs_over(head)?;
    Nodes::of(files).set_parts(head, Part::Sums, &[])?;
    head.far = Some(Far::never_seen(now));
    Ok(())
}

/// Turns a remote's node into one of the volume's own; content that is not here is lost.
fn make_own(files: &mut Files, head: &mut Head) -> Result<()> {
    if head.is_away() {
        head.size = 0;
        Nodes::of(files).hand_runs_over(head)?;
    }
    if head.kind != FileKind::Symlink {
        Nodes::of(files).set_parts(head, Part::Target, &[])?;
    }
    head.far = None;
    Ok(())
}

/// Makes the size what the pages can hold, or cuts off pages that it does not need.
fn resize(files: &mut Files, head: &mut Head) -> Result<()> {
    let mut runs = Nodes::of(files).runs(head)?;
    let room = u64::from(runs.pages().saturating_sub(1)) * u64::from(files.core.layout.page);
    let old = runs.leader();
    match &mut head.far {
        // What is left of a file of the remote is not kept.
        Some(far) => {
            far.whole = false;
            runs.0.clear();
        }
        None => {
            head.size = head.size.min(room);
            runs.cut(files.core.layout.pages_for(head.size));
        }
    }
    let kept = Runs(runs.0.clone());
    Sealing::of(files).set_sums(head, None)?;
    Nodes::of(files).set_runs(head, old, &kept)
}

/// Moves an entry into the root.
fn adopt(files: &mut Files, key: &[u8], now: Time) -> Result<()> {
    let value = Tree::of(&mut files.core).get(key)?.ok_or(Kind::Stale)?;
    let mut entry = Entry::decode(&value).ok_or(Kind::Stale)?;
    if let Entry::Head(head) = &mut entry {
        head.line = 0;
    }
    Tree::of(&mut files.core).remove(key)?;
    let name = format!("lost.{:x}", entry.uid());
    let place = Place::new(ROOT_UID, name.as_bytes());
    Nodes::of(files).put_entry(&place, &entry)?;
    Nodes::of(files).touch(ROOT_UID, now, true)
}
