//! Mending: recovery, then each repair as a change.

use super::problem::Fix;
use super::salvage::salvage;
use crate::core::{Core, Takes};
use crate::entry::{Entry, Far, Head, Part, Place, ROOT_UID};
use crate::recover::{How, open};
use crate::runs::Runs;
use crate::table::{Pair, judge, read_pages, write_copy};
use std::sync::Arc;
use volary_core::{BlockDevice, FileKind, Kind, Result, Time};

/// How a volume is opened to be mended.
const MEND: How = How {
    read_only: false,
    ..crate::info::LOOK
};

/// Makes repairs.
///
/// # Errors
/// `Io`, `NoSpace`, `Corrupt` for what contradicts itself too much to be changed.
pub(super) fn mend(dev: Arc<dyn BlockDevice>, now: Time, fixes: &[Fix]) -> Result<()> {
    let (mut core, _) = open(dev, &MEND)?;
    // What is in use by files that are not right yet must not be given out.
    core.begin()?;
    core.distrust_map();
    if fixes.contains(&Fix::Salvage) {
        // What else there is to mend is seen once that is done.
        salvage(&mut core, now)?;
        return core.leave(now);
    }
    for fix in fixes {
        match apply(&mut core, fix, now) {
            // What an earlier repair took away needs none.
            Err(e) if e == Kind::Stale => {}
            other => other?,
        }
    }
    core.commit(now)?;
    let vam = match core.rebuild_map() {
        Ok(vam) => vam,
        Err(_) => core.rebuild_map_as_far_as_it_goes()?,
    };
    core.map_saved &= vam == core.vam;
    core.vam = vam;
    core.leave(now)
}

fn apply(core: &mut Core, fix: &Fix, now: Time) -> Result<()> {
    match fix {
        // Opening was it.
        Fix::Recover | Fix::Salvage => Ok(()),
        // The map is built anew at the end, and saved in place of the wrong one,
        // which may be of the same commit.
        Fix::Map => {
            core.map_saved = false;
            core.map_slot = 1 - core.map_slot;
            Ok(())
        }
        Fix::Root => core.change(now, |c| c.make_root(now, 0o755, 0, 0)),
        Fix::Roots => write_roots(core),
        Fix::Copy(copy, index) => write_other(core, *copy, *index),
        Fix::Leader(uid) => {
            let runs = core.runs_of_uid(*uid)?;
            core.change(now, |c| {
                c.set_leader(*uid, None, &runs);
                Ok(())
            })
        }
        Fix::Nameless(uid) => core.let_go(*uid, now),
        Fix::Remove(key) => core.change(now, |c| c.remove(key).map(drop)),
        Fix::Put(key, value) => core.change(now, |c| c.put(key, value)),
        Fix::Links(uid, links) => with_head(core, *uid, now, |_, head| {
            head.nlink = *links;
            Ok(())
        }),
        Fix::Empty(uid) => with_head(core, *uid, now, empty),
        Fix::Size(uid) => with_head(core, *uid, now, resize),
        Fix::Sums(uid) => with_head(core, *uid, now, |core, head| core.set_sums(head, None)),
        Fix::Own(uid) => with_head(core, *uid, now, make_own),
        Fix::Away(uid) => with_head(core, *uid, now, |core, head| make_away(core, head, now)),
        Fix::Adopt(key) => core.change(now, |c| adopt(c, key, now)),
    }
}

fn write_roots(core: &Core) -> Result<()> {
    let dev = core.cache.device();
    for page in core.layout.roots() {
        dev.write_at(core.layout.offset(page), &core.layout.encode(page))?;
        dev.flush()?;
    }
    Ok(())
}

/// Writes a copy of a page from the other, unless recovery did already.
fn write_other(core: &Core, copy: usize, index: u32) -> Result<()> {
    let (dev, layout) = (core.cache.device(), &core.layout);
    let a = read_pages(&**dev, layout, layout.table_a + index, 1);
    let b = read_pages(&**dev, layout, layout.table_b + index, 1);
    if let Pair::Half(image, bad) = judge(&a, &b, layout, index)
        && bad == copy
    {
        write_copy(&**dev, layout, copy, index, &image)?;
    }
    core.cache.flush()
}

fn with_head(
    core: &mut Core,
    uid: u64,
    now: Time,
    change: impl Fn(&mut Core, &mut Head) -> Result<()>,
) -> Result<()> {
    debug_assert!(core.takes == Takes::Changes);
    core.change(now, |c| {
        let (place, mut head) = c.home(uid)?;
        change(c, &mut head)?;
        head.touch(now, false);
        c.keep(&place, head)
    })
}

/// Takes the content away without a look at it: the map is built anew after.
///
/// A file of the remote is fetched again; if it is lost which one it is, it is the volume's
/// own then.
fn empty(core: &mut Core, head: &mut Head) -> Result<()> {
    let path = match head.is_link() {
        true => core.parts(head, Part::Target).unwrap_or_default(),
        false => Vec::new(),
    };
    let was_link = head.is_link();
    // What of its runs is another's stays; what is nobody's is seen in the next round.
    core.hand_runs_over(head)?;
    for part in Part::ALL {
        core.set_parts(head, part, &[])?;
    }
    match &mut head.far {
        Some(far) if !was_link || !path.is_empty() => far.whole = false,
        _ => (head.far, head.size) = (None, 0),
    }
    match path.is_empty() {
        true => Ok(()),
        false => core.set_parts(head, Part::Target, &path),
    }
}

/// Turns a node into one of the remote that was never seen.
fn make_away(core: &mut Core, head: &mut Head, now: Time) -> Result<()> {
    core.hand_runs_over(head)?;
    core.set_parts(head, Part::Sums, &[])?;
    head.far = Some(Far::never_seen(now));
    Ok(())
}

/// Turns a remote's node into one of the volume's own; content that is not here is lost.
fn make_own(core: &mut Core, head: &mut Head) -> Result<()> {
    if head.is_away() {
        head.size = 0;
        core.hand_runs_over(head)?;
    }
    if head.kind != FileKind::Symlink {
        core.set_parts(head, Part::Target, &[])?;
    }
    head.far = None;
    Ok(())
}

/// Makes the size what the pages can hold, or cuts off pages that it does not need.
fn resize(core: &mut Core, head: &mut Head) -> Result<()> {
    let mut runs = core.runs(head)?;
    let room = u64::from(runs.pages().saturating_sub(1)) * u64::from(core.layout.page);
    let old = runs.leader();
    match &mut head.far {
        // What is left of a file of the remote is not kept.
        Some(far) => {
            far.whole = false;
            runs.0.clear();
        }
        None => {
            head.size = head.size.min(room);
            runs.cut(core.pages_for(head.size));
        }
    }
    let kept = Runs(runs.0.clone());
    core.set_sums(head, None)?;
    core.set_runs(head, old, &kept)
}

/// Moves an entry into the root.
fn adopt(core: &mut Core, key: &[u8], now: Time) -> Result<()> {
    let value = core.get(key)?.ok_or(Kind::Stale)?;
    let mut entry = Entry::decode(&value).ok_or(Kind::Stale)?;
    if let Entry::Head(head) = &mut entry {
        head.line = 0;
    }
    core.remove(key)?;
    let name = format!("lost.{:x}", entry.uid());
    let place = Place::new(ROOT_UID, name.as_bytes());
    core.put_entry(&place, &entry)?;
    core.touch(ROOT_UID, now, true)
}
