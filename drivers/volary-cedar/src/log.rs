//! Log records and anchors as stored (paper, section 5.3). `commit::group` writes records,
//! `recover` replays them.
//!
//! A record is a header, a blank page, the header again, the logged pages, an
//! end, the logged pages again, the end again: the same is never in two adjacent
//! pages. The header lists where each page belongs with its checksum; the end
//! carries the header's. So what was torn is told from what was damaged since.

use crate::disk::ondisk::{
    HEADER, Header, PageType, RECORD_FIXED, RECORD_ITEM, SEQ_MAX, get_u32, get_u64, put, seal,
};
use crate::disk::volume::{Layout, RECORD_OVERHEAD};
use crate::mistakes::{Mistake, made};
use crate::name_table::page::Image;
use crate::space::delta::Delta;
use volary_core::{BlockDevice, Result};

/// Where the log begins, as an anchor has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// Grows with each writing: the copy with the greatest counts.
    pub(crate) stamp: u64,
    /// How often the volume was attached for writing.
    pub(crate) epoch: u32,
    /// Where the oldest record that is needed begins, or the next will, in
    /// pages from the start of the log.
    pub(crate) position: u32,
    /// That record's number.
    pub(crate) seq: u64,
    /// The newest record that was durable when this was written.
    pub(crate) durable: u64,
}

impl Anchor {
    pub(crate) fn encode(&self, layout: &Layout, page: u32) -> Vec<u8> {
        let header = Header {
            kind: PageType::Anchor,
            level: 0,
            count: 0,
            nonce: layout.nonce,
            page,
            epoch: self.epoch,
            seq: self.seq,
        };
        let mut out = header.page(layout.page_len());
        put(&mut out, HEADER, &self.stamp.to_le_bytes());
        put(&mut out, HEADER + 8, &self.position.to_le_bytes());
        put(&mut out, HEADER + 16, &self.durable.to_le_bytes());
        seal(&mut out);
        out
    }

    pub(crate) fn decode(layout: &Layout, page: u32, bytes: &[u8]) -> Option<Self> {
        let header = Header::read(bytes)?;
        let position = get_u32(bytes, HEADER + 8);
        let own = header.kind == PageType::Anchor
            && header.nonce == layout.nonce
            && header.page == page
            && position < layout.log_len();
        let (stamp, durable) = (get_u64(bytes, HEADER), get_u64(bytes, HEADER + 16));
        (own && stamp.max(durable) <= SEQ_MAX).then_some(Self {
            stamp,
            epoch: header.epoch,
            position,
            seq: header.seq,
            durable,
        })
    }
}

/// Returns the anchors' copies, each as it was found.
///
/// # Errors
/// Never; a copy that cannot be read is none.
pub(crate) fn read_anchors(dev: &dyn BlockDevice, layout: &Layout) -> [Option<Anchor>; 2] {
    layout.anchors().map(|page| {
        let mut bytes = vec![0; layout.page_len()];
        dev.read_at(layout.offset(page), &mut bytes).ok()?;
        Anchor::decode(layout, page, &bytes)
    })
}

/// Returns the pages of a record that logs `pages`.
pub(crate) fn record_len(pages: usize) -> u32 {
    RECORD_OVERHEAD + 2 * pages as u32
}

/// Returns where the record after one that ends at `end` begins: behind it, or at the
/// start of the log if the longest would not fit there.
pub(crate) fn next_place(layout: &Layout, end: u32) -> u32 {
    let most = if made(Mistake::NoRoomAtEnd) {
        7
    } else {
        layout.record_max()
    };
    if end + most <= layout.log_len() {
        end
    } else {
        0
    }
}

/// A record to be written: its parts, in order, and the checksum of its header.
pub(crate) struct Built {
    pub(crate) bytes: Vec<u8>,
    pub(crate) head_crc: u32,
}

/// What a record says beside its pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) epoch: u32,
    pub(crate) seq: u64,
    pub(crate) position: u32,
    /// The checksum of the header of the record before; 0 for the first.
    pub(crate) before: u32,
    /// The time of the commit, in seconds.
    pub(crate) time: i64,
}

/// Builds a record of pages and where they belong, and of what it tells of the
/// allocation map.
pub(crate) fn build(
    layout: &Layout,
    place: Place,
    pages: &[(u32, Image)],
    told: Option<&Delta>,
) -> Built {
    let header = |kind, page| Header {
        kind,
        level: 0,
        count: pages.len() as u16,
        nonce: layout.nonce,
        page,
        epoch: place.epoch,
        seq: place.seq,
    };
    let len = layout.page_len();
    let mut head = header(PageType::Head, place.position).page(len);
    put(&mut head, HEADER, &place.before.to_le_bytes());
    put(&mut head, HEADER + 8, &place.time.to_le_bytes());
    for (i, (target, image)) in pages.iter().enumerate() {
        let at = RECORD_FIXED + i * RECORD_ITEM;
        put(&mut head, at, &target.to_le_bytes());
        put(&mut head, at + 4, &crc32c::crc32c(image).to_le_bytes());
    }
    seal(&mut head);
    let head_crc = crc32c::crc32c(&head);
    let mut blank = header(PageType::Blank, place.position).page(len);
    seal(&mut blank);
    let mut end = header(PageType::End, place.position).page(len);
    put(&mut end, HEADER, &head_crc.to_le_bytes());
    Delta::put(told, &mut end);
    seal(&mut end);
    let data: Vec<&[u8]> = pages.iter().map(|(_, image)| &**image).collect();
    let data = data.concat();
    let bytes = [&head, &blank, &head, &data, &end, &data, &end]
        .map(Vec::as_slice)
        .concat();
    Built { bytes, head_crc }
}

/// A record found in the log.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) epoch: u32,
    pub(crate) seq: u64,
    pub(crate) position: u32,
    pub(crate) before: u32,
    pub(crate) head_crc: u32,
    pub(crate) time: i64,
    /// The logged pages, and where they belong.
    pub(crate) pages: Vec<(u32, Image)>,
    /// What it takes from the allocation map and frees, if it tells.
    pub(crate) told: Option<Delta>,
    /// Pages of it that were not whole, the other copy being so.
    pub(crate) damaged: u32,
}

impl Record {
    /// Returns where the record after it begins.
    pub(crate) fn next(&self, layout: &Layout) -> u32 {
        next_place(layout, self.position + record_len(self.pages.len()))
    }
}

/// The log, read whole.
pub(crate) struct LogImage<'a> {
    layout: &'a Layout,
    bytes: Vec<u8>,
}

impl<'a> LogImage<'a> {
    /// Reads the log; pages that cannot be read are zeros.
    pub(crate) fn read(dev: &dyn BlockDevice, layout: &'a Layout) -> Self {
        let bytes = crate::name_table::table::read_pages(dev, layout, layout.log, layout.log_len());
        Self { layout, bytes }
    }

    fn page(&self, at: u32) -> &[u8] {
        let len = self.layout.page_len();
        let start = at as usize * len;
        self.bytes.get(start..start + len).unwrap_or_default()
    }

    fn header(&self, at: u32, kind: PageType) -> Option<Header> {
        // Most pages are of another kind, and their checksums need no look.
        let said = Header::read_unchecked(self.page(at))?;
        let own = said.kind == kind && said.nonce == self.layout.nonce;
        own.then(|| Header::read(self.page(at))).flatten()
    }

    /// Returns the header page of the record that begins at `position`, in whichever copy is
    /// whole. One may be of a record that was there before: a write that never came.
    pub(crate) fn head(&self, position: u32) -> Option<(Header, &[u8])> {
        let copies = [position + 2, position].into_iter();
        let whole = copies.filter_map(|at| {
            let header = self.header(at, PageType::Head)?;
            let count = u32::from(header.count);
            let fits = header.page == position
                && (1..=self.layout.logged_max).contains(&count)
                && position + record_len(count as usize) <= self.layout.log_len();
            fits.then(|| (header, self.page(at)))
        });
        whole.max_by_key(|(header, _)| (header.epoch, header.seq))
    }

    /// Returns the record that begins at `position`, if it is whole but for damage that
    /// one of its copies makes good.
    pub(crate) fn record(&self, position: u32) -> Option<Record> {
        let (header, head) = self.head(position)?;
        let head_crc = crc32c::crc32c(head);
        let count = u32::from(header.count);
        let data = position + 3;
        let end = data + count;
        let ends = |at: u32| {
            let found = self.header(at, PageType::End);
            let own = found.is_some_and(|h| (h.epoch, h.seq) == (header.epoch, header.seq));
            own && get_u32(self.page(at), HEADER) == head_crc
        };
        let mut damaged = [position, position + 2]
            .iter()
            .filter(|at| self.page(**at) != head)
            .count() as u32;
        let ends = [end, end + 1 + count].map(|at| ends(at).then_some(at));
        damaged += ends.iter().filter(|end| end.is_none()).count() as u32;
        let told = Delta::get(self.page(ends.into_iter().flatten().next()?));
        let mut pages = Vec::new();
        for i in 0..count {
            let at = RECORD_FIXED + i as usize * RECORD_ITEM;
            let (target, crc) = (get_u32(head, at), get_u32(head, at + 4));
            let copies = [data + i, end + 1 + i].map(|at| self.page(at));
            let good =
                copies.map(|bytes| made(Mistake::PagesNotChecked) || crc32c::crc32c(bytes) == crc);
            damaged += good.iter().filter(|g| !**g).count() as u32;
            let image = copies.into_iter().zip(good).find(|(_, good)| *good)?.0;
            pages.push((target, Image::from(image)));
        }
        Some(Record {
            epoch: header.epoch,
            seq: header.seq,
            position,
            before: get_u32(head, HEADER),
            head_crc,
            time: get_u64(head, HEADER + 8) as i64,
            pages,
            told,
            damaged,
        })
    }

    /// Returns the records from the anchor on, up to the first that is not whole.
    pub(crate) fn chain(&self, anchor: &Anchor) -> Vec<Record> {
        let mut found: Vec<Record> = Vec::new();
        let (mut position, mut seq) = (anchor.position, anchor.seq);
        // No more records fit than the log has pages.
        while found.len() < self.layout.log_len() as usize {
            let Some(record) = self.record(position) else {
                break;
            };
            let follows = found
                .last()
                .is_none_or(|last| last.head_crc == record.before);
            let own = (record.epoch, record.seq) == (anchor.epoch, seq) && follows;
            if !own && !made(Mistake::AnyRecordFollows) {
                break;
            }
            (position, seq) = (record.next(self.layout), seq + 1);
            found.push(record);
        }
        found
    }

    /// Returns the newest record of an epoch, after number `last`, of which a header is to be
    /// found anywhere.
    pub(crate) fn newest_after(&self, epoch: u32, last: u64) -> Option<u64> {
        // Most headers are of records that are known, or of old epochs, and their
        // checksums need no look.
        let counts = |at: u32| {
            let said = Header::read_unchecked(self.page(at));
            said.is_some_and(|h| h.epoch == epoch && h.seq > last)
        };
        let heads = (0..self.layout.log_len()).filter(|at| counts(*at) || counts(*at + 2));
        let own = heads.filter_map(|at| self.head(at));
        let newer = own.filter(|(h, _)| h.epoch == epoch && h.seq > last);
        newer.map(|(h, _)| h.seq).max()
    }

    /// Returns where the log begins as its records have it: for when both anchors are
    /// lost. None if there is no record.
    pub(crate) fn guess(&self) -> Option<Anchor> {
        let all: Vec<Record> = (0..self.layout.log_len())
            .filter_map(|at| self.record(at))
            .collect();
        let newest = all.iter().max_by_key(|r| (r.epoch, r.seq))?;
        let mut first = newest;
        while let Some(before) = all.iter().find(|r| {
            r.epoch == first.epoch && r.seq + 1 == first.seq && r.head_crc == first.before
        }) {
            first = before;
        }
        Some(Anchor {
            stamp: 0,
            epoch: newest.epoch,
            position: first.position,
            seq: first.seq,
            durable: newest.seq,
        })
    }
}

/// Writes both anchors, that of `order` first, each durable before the next is
/// begun.
///
/// # Errors
/// `Io`.
pub(crate) fn write_anchors(
    dev: &dyn BlockDevice,
    layout: &Layout,
    anchor: &Anchor,
    order: [usize; 2],
) -> Result<()> {
    for copy in order {
        let page = layout.anchors().get(copy).copied().unwrap_or(layout.anchor);
        dev.write_at(layout.offset(page), &anchor.encode(layout, page))?;
        dev.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::runs::Run;
    use crate::disk::volume::Wanted;

    fn layout() -> Layout {
        let wanted = Wanted {
            page: 512,
            pages: 2000,
            table: 64,
            third: 332,
            logs_map: true,
        };
        Layout::plan(wanted, 7, 8, "").unwrap()
    }

    fn place(position: u32) -> Place {
        Place {
            epoch: 1,
            seq: 5,
            position,
            before: 0,
            time: 3,
        }
    }

    fn pages(count: u32) -> Vec<(u32, Image)> {
        (0..count)
            .map(|i| (i, vec![i as u8 + 1; 512].into()))
            .collect()
    }

    fn image(layout: &Layout, position: u32, built: &Built) -> Vec<u8> {
        let mut bytes = vec![0; layout.log_len() as usize * 512];
        let at = position as usize * 512;
        bytes[at..at + built.bytes.len()].copy_from_slice(&built.bytes);
        bytes
    }

    /// Paper, section 5.4: 7 sectors for one page, 33 typically, 83 at most seen.
    #[test]
    fn records_are_as_long_as_the_paper_says() {
        let layout = layout();
        for (logged, sectors) in [(1, 7), (14, 33), (39, 83)] {
            let most = Delta::most(512) as u32;
            let mut delta = Delta::default();
            let run = |i: u32| Run {
                start: i * 2,
                len: 1,
            };
            delta.taken.extend((0..most).map(run));
            let built = build(&layout, place(0), &pages(logged), Some(&delta));
            assert_eq!(built.bytes.len(), sectors * 512);
            let bytes = image(&layout, 0, &built);
            let log = LogImage {
                layout: &layout,
                bytes,
            };
            let record = log.record(0).unwrap();
            assert_eq!(record.pages, pages(logged));
            assert_eq!(record.told, Some(delta));
        }
    }

    #[test]
    fn the_same_is_never_in_two_adjacent_pages() {
        for n in [1, 2, 14, 39] {
            let built = build(&layout(), place(0), &pages(n), None);
            let all: Vec<_> = built.bytes.chunks(512).collect();
            assert!(all.windows(2).all(|w| w[0] != w[1]));
        }
    }

    #[test]
    fn any_two_adjacent_sectors_of_a_record_may_be_lost() {
        let layout = layout();
        let built = build(&layout, place(10), &pages(3), None);
        let good = image(&layout, 10, &built);
        for lost in 10..20 {
            let mut bytes = good.clone();
            bytes[lost * 512..(lost + 2) * 512].fill(0xee);
            let log = LogImage {
                layout: &layout,
                bytes,
            };
            let record = log.record(10).expect("the record");
            assert_eq!(record.pages, pages(3), "{lost}");
            assert!(record.damaged > 0 || lost == 10);
        }
    }

    #[test]
    fn a_record_of_which_a_page_never_came_is_none() {
        let layout = layout();
        let built = build(&layout, place(0), &pages(3), None);
        let good = image(&layout, 0, &built);
        for (a, b) in [(0, 2), (3, 7), (4, 8), (5, 9), (6, 10)] {
            let mut bytes = good.clone();
            for lost in [a, b] {
                bytes[lost * 512..(lost + 1) * 512].fill(0);
            }
            let log = LogImage {
                layout: &layout,
                bytes,
            };
            assert!(log.record(0).is_none(), "{a} and {b}");
        }
    }
}
