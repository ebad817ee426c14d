//! Structures exactly as stored; `FORMAT.md` has the byte tables.
//!
//! Every metadata page begins with the same header and carries the checksum of
//! the whole page, so that a page that was torn, misdirected, or is of another
//! volume is told from one that is right.

use volary_core::Time;

/// Least bytes in a page.
pub(crate) const PAGE_MIN: usize = 512;
/// Most bytes in a page.
pub(crate) const PAGE_MAX: usize = 65_536;
/// Bytes of the header of a metadata page.
pub(crate) const HEADER: usize = 40;
/// The first four bytes of every metadata page: `CdFs`.
pub(crate) const MAGIC: u32 = 0x7346_6443;
/// The version of the format.
pub(crate) const VERSION: u32 = 1;
/// The version of the format of volumes with checksums of data.
pub(crate) const VERSION_SUMS: u32 = 2;
/// The version of the format of volumes that keep files of a remote: it has a word of features.
pub(crate) const VERSION_REMOTE: u32 = 3;
/// The version of the format of volumes that log their allocation map.
pub(crate) const VERSION_MAP: u32 = 4;
/// The feature of checksums of data.
pub(crate) const FEATURE_SUMS: u32 = 1;
/// The feature of files of a remote.
pub(crate) const FEATURE_REMOTE: u32 = 2;
/// The feature of a logged allocation map.
pub(crate) const FEATURE_MAP: u32 = 4;
/// The feature of files in any number of pieces: their runs go on under the leader's page.
pub(crate) const FEATURE_CHAINS: u32 = 8;
/// Bytes of a label.
pub(crate) const LABEL_MAX: usize = 63;
/// Most bytes of the name of a remote.
pub(crate) const REMOTE_MAX: usize = 255;
/// Bytes of the fixed part of a record's header page, the page's header with it.
pub(crate) const RECORD_FIXED: usize = 56;
/// Bytes that a record's header page has for each page of the record.
pub(crate) const RECORD_ITEM: usize = 8;
/// The greatest number of a record, and stamp of an anchor, that is believed: no volume comes to it.
pub(crate) const SEQ_MAX: u64 = u64::MAX >> 1;
/// Bytes of a leader's fixed part, the page's header with it.
pub(crate) const LEADER_FIXED: usize = 64;

const AT_CRC: usize = 32;

/// What a metadata page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PageType {
    /// The volume's parameters, in three copies.
    Root = 1,
    /// Where the log begins, in two copies.
    Anchor = 2,
    /// A page of the file name table.
    Table = 3,
    /// The first page of a file.
    Leader = 4,
    /// A part of the saved allocation map.
    Map = 5,
    /// The header of a log record.
    Head = 6,
    /// The page between the two headers.
    Blank = 7,
    /// The end of a log record.
    End = 8,
}

/// The header of a metadata page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// What the page is.
    pub kind: PageType,
    /// Height above the leaves, for pages of the name table.
    pub level: u8,
    /// How many cells, items or runs follow.
    pub count: u16,
    /// The volume's own number, so that pages of another volume are not believed.
    pub nonce: u64,
    /// The page's own number.
    pub page: u32,
    /// How often the volume was attached for writing when it was written.
    pub epoch: u32,
    /// The log record with which it was written.
    pub seq: u64,
}

/// Returns the two bytes at `at`; 0 past the end.
pub(crate) fn get_u16(bytes: &[u8], at: usize) -> u16 {
    let found = bytes.get(at..).and_then(|b| b.first_chunk());
    found.map_or(0, |b| u16::from_le_bytes(*b))
}

/// Returns the four bytes at `at`; 0 past the end.
pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|b| b.first_chunk());
    found.map_or(0, |b| u32::from_le_bytes(*b))
}

/// Returns the eight bytes at `at`; 0 past the end.
pub(crate) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|b| b.first_chunk());
    found.map_or(0, |b| u64::from_le_bytes(*b))
}

/// Puts bytes at `at`; what is past the end of the page is not put.
pub(crate) fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(to) = page.get_mut(at..at + bytes.len()) {
        to.copy_from_slice(bytes);
    }
}

/// Puts a time: seconds in eight bytes, nanoseconds in four.
pub(crate) fn put_time(page: &mut [u8], at: usize, time: Time) {
    put(page, at, &time.secs.to_le_bytes());
    put(page, at + 8, &time.nanos.to_le_bytes());
}

/// Returns the time at `at`.
pub(crate) fn get_time(bytes: &[u8], at: usize) -> Time {
    Time::new(get_u64(bytes, at) as i64, get_u32(bytes, at + 8))
}

impl PageType {
    fn of(code: u8) -> Option<Self> {
        let all = [
            Self::Root,
            Self::Anchor,
            Self::Table,
            Self::Leader,
            Self::Map,
            Self::Head,
            Self::Blank,
            Self::End,
        ];
        all.into_iter().find(|k| *k as u8 == code)
    }
}

impl Header {
    /// Returns a page of `len` bytes that begins with this header, to be filled and
    /// [`seal`]ed.
    pub(crate) fn page(&self, len: usize) -> Vec<u8> {
        let mut page = vec![0; len];
        self.write(&mut page);
        page
    }

    /// Writes the header over that of a page. The checksum is then wrong.
    pub(crate) fn write(&self, page: &mut [u8]) {
        put(page, 0, &MAGIC.to_le_bytes());
        put(page, 4, &[self.kind as u8, self.level]);
        put(page, 6, &self.count.to_le_bytes());
        put(page, 8, &self.nonce.to_le_bytes());
        put(page, 16, &self.page.to_le_bytes());
        put(page, 20, &self.epoch.to_le_bytes());
        put(page, 24, &self.seq.to_le_bytes());
    }

    /// Returns the header of a page, if the page is a metadata page and whole.
    pub(crate) fn read(page: &[u8]) -> Option<Self> {
        let whole = get_u32(page, 0) == MAGIC && get_u32(page, AT_CRC) == checksum(page);
        whole.then(|| Self::read_unchecked(page)).flatten()
    }

    /// Returns the header of a page whose checksum is not looked at. None also for a number that no
    /// volume comes to.
    pub(crate) fn read_unchecked(page: &[u8]) -> Option<Self> {
        let header = Self {
            kind: PageType::of(*page.get(4)?)?,
            level: *page.get(5)?,
            count: get_u16(page, 6),
            nonce: get_u64(page, 8),
            page: get_u32(page, 16),
            epoch: get_u32(page, 20),
            seq: get_u64(page, 24),
        };
        (header.seq <= SEQ_MAX).then_some(header)
    }
}

/// Returns the checksum of a page: CRC-32C of all its bytes, its own taken as zero.
fn checksum(page: &[u8]) -> u32 {
    let (before, rest) = page.split_at(AT_CRC.min(page.len()));
    let crc = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
    crc32c::crc32c_append(crc, rest.get(4..).unwrap_or_default())
}

/// Puts the checksum into a page.
pub fn seal(page: &mut [u8]) {
    let crc = checksum(page);
    put(page, AT_CRC, &crc.to_le_bytes());
}

/// Puts epoch and record number into a page, and the checksum.
pub(crate) fn stamp(page: &mut [u8], epoch: u32, seq: u64) {
    put(page, 20, &epoch.to_le_bytes());
    put(page, 24, &seq.to_le_bytes());
    seal(page);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Vec<u8> {
        let header = Header {
            kind: PageType::Table,
            level: 2,
            count: 7,
            nonce: 0x0123_4567_89ab_cdef,
            page: 9,
            epoch: 3,
            seq: 77,
        };
        let mut page = header.page(PAGE_MIN);
        seal(&mut page);
        assert_eq!(Header::read(&page), Some(header));
        page
    }

    #[test]
    fn any_changed_bit_of_a_page_is_seen() {
        let good = page();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::read(&bad), None, "bit {bit}");
        }
    }

    #[test]
    fn a_page_stamped_anew_is_whole() {
        let mut page = page();
        stamp(&mut page, 4, 78);
        let header = Header::read(&page).unwrap();
        assert_eq!((header.epoch, header.seq), (4, 78));
    }
}
