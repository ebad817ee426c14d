//! Reading the root: finding its copies, whatever the size of pages is.

use crate::disk::ondisk::{HEADER, Header, MAGIC, PAGE_MAX, PAGE_MIN, PageType, get_u32};
use crate::disk::volume::{Checked, Layout};
use crate::log::read_anchors;
use crate::name_table::table::{Pair, judge};
use std::cmp::Reverse;
use volary_core::{BlockDevice, Error, Kind, Replica, Result};

/// Where a root has the size of pages.
const AT_PAGE: usize = HEADER + 4;

/// A copy of the root as it was read: its page, and what it says.
pub(crate) type RootCopy = (u32, Option<Checked<Layout>>);

impl Layout {
    /// Reads the root: of the copies that are whole, the newest.
    ///
    /// # Errors
    /// `Corrupt` if no copy is a root page, or if what it says cannot be; `Io`
    /// if none can be read.
    pub fn read(dev: &dyn BlockDevice) -> Result<Self> {
        let mut found = agreed(dev);
        let mut wrong = None;
        let copies = match found {
            Some(_) => Vec::new(),
            None => read_roots(dev)?,
        };
        for (_, decoded) in copies {
            match decoded {
                Some(Ok(l)) if found.as_ref().is_none_or(|f| l.version > f.version) => {
                    found = Some(l);
                }
                Some(Err(words)) => wrong = Some(words),
                _ => {}
            }
        }
        let size = dev.geometry().size;
        match (found, wrong) {
            (Some(layout), _) => {
                let needed = layout.offset(layout.pages);
                let fits = needed <= size;
                let short =
                    || Error::corrupt("size", 0, format!("{size} bytes"), format!("{needed}"));
                fits.then_some(layout).ok_or_else(short)
            }
            (None, Some(words)) => Err(Error::corrupt(
                "root page",
                0,
                words,
                "a volume that can be",
            )),
            (None, None) => Err(Error::corrupt(
                "root page",
                0,
                "nothing that is whole",
                "a root page",
            )),
        }
    }
}

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

/// Returns what the copies of the root at the start say, whole or not: by these a volume is recognised, if
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

/// Returns whether the device begins as a root does, or its beginning cannot be read.
fn begins_as_root(dev: &dyn BlockDevice) -> bool {
    let mut start = vec![0; PAGE_MIN];
    if let Err(e) = dev.read_at(0, &mut start) {
        return e == Kind::Io;
    }
    let header = Header::read_unchecked(&start).filter(|_| get_u32(&start, 0) == MAGIC);
    header.is_some_and(|header| header.kind == PageType::Root)
}

/// Returns the newest of the other copies, to go by where the volume is not recognised by one at the start.
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
        is_confirmed: is_there(dev, &layout),
    }))
}

/// Returns whether more of a volume than its root is there: an anchor of its log, or one of some pages of
/// its name table. Both have copies, and all carry the volume's number.
fn is_there(dev: &dyn BlockDevice, layout: &Layout) -> bool {
    // Page 0 is always there, the others once the table has grown to them.
    let len = layout.table_len;
    let indices = [0, 1, len / 3, len / 3 * 2];
    let mut places = [layout.table_a, layout.table_b]
        .into_iter()
        .flat_map(|start| indices.map(|index| (start.saturating_add(index), index)));
    read_anchors(dev, layout).iter().any(Option::is_some)
        || places.any(|(page, index)| has_table_page(dev, layout, page, index))
}

/// Returns whether a page is this one of the volume's name table. One that cannot be read is not.
fn has_table_page(dev: &dyn BlockDevice, layout: &Layout, page: u32, index: u32) -> bool {
    let mut bytes = vec![0; layout.page_len()];
    let is_read = dev.read_at(layout.offset(page), &mut bytes).is_ok();
    is_read && matches!(judge(&bytes, &bytes, layout, index), Pair::Good(_))
}

/// Returns what the first two copies of the root say, if both are whole and say the same. Then the
/// third says nothing newer: whoever changes them writes it last.
fn agreed(dev: &dyn BlockDevice) -> Option<Layout> {
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

/// Returns whether a page that begins so may be a root in a volume of this page size.
fn may_be_root(start: &[u8], page: u64) -> bool {
    let own = u64::from(get_u32(start, AT_PAGE));
    let sizes = PAGE_MIN as u64..=PAGE_MAX as u64;
    let header = Header::read_unchecked(start);
    header.is_some_and(|h| h.kind == PageType::Root) && (own == page || !sizes.contains(&own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use volary_block::MemDevice;
    use volary_core::Make;

    const SIZE: usize = 4 << 20;
    const PAGE: usize = 4096;

    /// Returns a volume, and what its root says.
    fn made() -> (Vec<u8>, Layout) {
        let mem = Arc::new(MemDevice::new(SIZE as u64));
        let dev: Arc<dyn BlockDevice> = mem.clone();
        crate::make::make(&dev, &Make::default()).unwrap();
        let layout = Layout::read(&*dev).unwrap();
        assert_eq!(layout.page_len(), PAGE);
        (mem.to_vec(), layout)
    }

    /// Returns bytes of all but the last page that are none of the volume's.
    fn foreign(image: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xa5; SIZE - PAGE];
        bytes.extend_from_slice(&image[SIZE - PAGE..]);
        bytes
    }

    fn found(bytes: Vec<u8>) -> Replica {
        replica(&MemDevice::from_vec(bytes)).unwrap().unwrap()
    }

    #[test]
    fn the_root_at_the_end_alone_is_found_but_not_confirmed() {
        let (image, layout) = made();
        let replica = found(foreign(&image));
        assert_eq!((replica.at, replica.home), ((SIZE - PAGE) as u64, 0));
        assert!(replica.bytes == layout.encode(0));
        assert!(!replica.is_confirmed);
    }

    #[test]
    fn one_anchor_or_page_of_the_name_table_confirms_a_root() {
        let (image, layout) = made();
        let [first, second] = layout.anchors();
        for page in [first, second, layout.table_a, layout.table_b] {
            let at = page as usize * PAGE;
            let mut bytes = foreign(&image);
            bytes[at..at + PAGE].copy_from_slice(&image[at..at + PAGE]);
            assert!(found(bytes.clone()).is_confirmed, "page {page}");
            // Torn, and then as a volume with another number has it.
            bytes[at + PAGE - 1] ^= 1;
            assert!(!found(bytes.clone()).is_confirmed, "page {page}");
            bytes[at + 8] ^= 1;
            crate::disk::ondisk::seal(&mut bytes[at..at + PAGE]);
            assert!(Header::read(&bytes[at..at + PAGE]).is_some());
            assert!(!found(bytes).is_confirmed, "page {page}");
        }
    }
}
