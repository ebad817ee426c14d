//! Finding the copies of the root, whatever the size of pages is.

use crate::ondisk::{HEADER, Header, MAGIC, PAGE_MAX, PAGE_MIN, PageType, get_u32};
use crate::volume::{Checked, Layout};
use std::cmp::Reverse;
use volary_core::{BlockDevice, Kind, Replica, Result};

/// Where a root has the size of pages.
const AT_PAGE: usize = HEADER + 4;

/// A copy of the root as it was read: its page, and what it says.
pub(crate) type RootCopy = (u32, Option<Checked<Layout>>);

/// Reads the copies of the root: those at the start by each page size, the one
/// at the end by what they say, or by each page size if they say nothing.
///
/// # Errors
/// `Io` if none can be read.
pub(crate) fn read_roots(dev: &dyn BlockDevice) -> Result<Vec<RootCopy>> {
    let size = dev.geometry().size;
    let mut copies = Vec::new();
    let mut failure = None;
    let sizes = (PAGE_MIN.ilog2()..=PAGE_MAX.ilog2()).map(|shift| 1_u64 << shift);
    for page in sizes {
        for at in [0, 2, (size / page).saturating_sub(1)] {
            if (at + 1) * page > size {
                continue;
            }
            let mut bytes = vec![0; PAGE_MIN];
            let read = dev.read_at(at * page, &mut bytes).and_then(|()| {
                // Most places have no root, which its first bytes say.
                if may_be_root(&bytes, page) {
                    bytes.resize(page as usize, 0);
                    dev.read_at(at * page, &mut bytes)?;
                }
                Ok(())
            });
            if let Err(e) = read {
                failure = Some(e);
                continue;
            }
            let decoded = Layout::decode(&bytes);
            let fits = |l: &Layout| u64::from(l.page) == page && l.roots().contains(&(at as u32));
            match decoded {
                Some(Ok(layout)) if !fits(&layout) => {}
                None => {}
                some => copies.push((at as u32, some)),
            }
        }
    }
    match (copies.is_empty(), failure) {
        (true, Some(e)) => Err(e),
        _ => Ok(copies),
    }
}

/// What the copies of the root at the start say, whole or not: by these a volume is recognised, if
/// the device begins as one. What is put over a volume may leave copies, but not the beginning;
/// a root that was torn while it was written has that still.
///
/// # Errors
/// As [`read_roots`].
pub(crate) fn at_start(dev: &dyn BlockDevice) -> Result<Vec<Checked<Layout>>> {
    if !begins_as_root(dev) {
        return Ok(Vec::new());
    }
    let copies = read_roots(dev)?.into_iter().filter(|(at, _)| *at <= 2);
    Ok(copies.filter_map(|(_, said)| said).collect())
}

/// Whether the device begins as a root does, or its beginning cannot be read.
fn begins_as_root(dev: &dyn BlockDevice) -> bool {
    let mut start = vec![0; PAGE_MIN];
    if let Err(e) = dev.read_at(0, &mut start) {
        return e == Kind::Io;
    }
    let header = Header::read_unchecked(&start).filter(|_| get_u32(&start, 0) == MAGIC);
    header.is_some_and(|header| header.kind == PageType::Root)
}

/// The newest of the other copies, to go by where the volume is not recognised by one at the start.
///
/// # Errors
/// As [`read_roots`].
pub(crate) fn replica(dev: &dyn BlockDevice) -> Result<Option<Replica>> {
    if at_start(dev)?.iter().any(|said| said.is_ok()) {
        return Ok(None);
    }
    let whole = read_roots(dev)?.into_iter();
    let whole = whole.filter_map(|(at, said)| Some((at, said?.ok()?)));
    let fitting = whole.filter(|(_, layout)| layout.offset(layout.pages) <= dev.geometry().size);
    // Of those that are as new, the first.
    let newest = fitting.min_by_key(|(at, layout)| (Reverse(layout.version), *at));
    Ok(newest.map(|(at, layout)| Replica {
        kind: "cedar",
        what: "root",
        at: layout.offset(at),
        home: 0,
        bytes: layout.encode(0),
    }))
}

/// What the first two copies of the root say, if both are whole and say the same. Then the
/// third says nothing newer: whoever changes them writes it last.
pub(crate) fn agreed(dev: &dyn BlockDevice) -> Option<Layout> {
    let mut start = vec![0; PAGE_MIN];
    dev.read_at(0, &mut start).ok()?;
    let page = get_u32(&start, AT_PAGE) as usize;
    if !(PAGE_MIN..=PAGE_MAX).contains(&page) || !may_be_root(&start, page as u64) {
        return None;
    }
    let mut copies = vec![0; 3 * page];
    dev.read_at(0, &mut copies).ok()?;
    let copy = |at: usize| {
        let bytes = copies.get(at * page..(at + 1) * page)?;
        let layout = Layout::decode(bytes)?.ok()?;
        let fits = layout.page_len() == page && layout.roots().contains(&(at as u32));
        fits.then_some(layout)
    };
    copy(0).filter(|first| copy(2).as_ref() == Some(first))
}

/// Whether a page that begins so may be a root in a volume of this page size.
fn may_be_root(start: &[u8], page: u64) -> bool {
    let own = u64::from(get_u32(start, AT_PAGE));
    let sizes = PAGE_MIN as u64..=PAGE_MAX as u64;
    let header = Header::read_unchecked(start);
    header.is_some_and(|h| h.kind == PageType::Root) && (own == page || !sizes.contains(&own))
}
