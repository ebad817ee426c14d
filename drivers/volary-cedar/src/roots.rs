//! Finding the copies of the root, whatever the size of pages is.

use crate::ondisk::{HEADER, Header, PAGE_MAX, PAGE_MIN, PageType, get_u32};
use crate::volume::{Checked, Layout};
use volary_core::{BlockDevice, Result};

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
