//! The checked root page: where everything lies.

use crate::disk::ondisk::{
    FEATURE_CHAINS, FEATURE_MAP, FEATURE_REMOTE, FEATURE_SUMS, HEADER, Header, LABEL_MAX, PAGE_MAX,
    PAGE_MIN, PageType, RECORD_FIXED, RECORD_ITEM, REMOTE_MAX, VERSION, VERSION_MAP,
    VERSION_REMOTE, VERSION_SUMS, get_u32, put, seal,
};
use crate::disk::runs::{Run, Runs};
use volary_core::{Error, Kind, Result};

/// Pages of a log record beside the pages that it logs: two headers, the page
/// between them, two ends.
pub(crate) const RECORD_OVERHEAD: u32 = 5;
/// Fewest pages that a record must be able to log: the largest change of an
/// ordinary operation.
pub(crate) const LOGGED_MIN: u32 = 12;
/// A third holds at least so many records of the greatest length.
pub(crate) const RECORDS_IN_THIRD: u32 = 4;
/// Fewest pages of a copy of the name table.
pub(crate) const TABLE_MIN: u32 = 16;
/// Most pages of the log: it is read into memory for recovery.
const LOG_MAX_BYTES: u64 = 64 << 20;

/// A value, or in words what is wrong with it.
pub(crate) type Checked<T> = std::result::Result<T, String>;

/// Where everything lies, in pages, and the volume's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes in a page.
    pub page: u32,
    /// Pages of the volume.
    pub pages: u32,
    /// First page of the name table's first copy.
    pub table_a: u32,
    /// First page of its second copy.
    pub table_b: u32,
    /// Pages of a copy.
    pub table_len: u32,
    /// The first anchor; the second is two pages on.
    pub anchor: u32,
    /// First page of the log.
    pub log: u32,
    /// Pages of a third of it.
    pub third: u32,
    /// Most pages that a record logs.
    pub logged_max: u32,
    /// First page of the first saved map.
    pub map: u32,
    /// Pages of a saved map.
    pub map_len: u32,
    /// Whether log records say what they change in the map. The saved maps are then
    /// copies of each other, and have a page between them at least.
    pub logs_map: bool,
    /// The volume's own number.
    pub nonce: u64,
    /// How often the root was written: the copy with the greatest counts.
    pub version: u64,
    /// When it was made, in seconds since 1970.
    pub made: u64,
    /// The volume's label.
    pub label: String,
    /// Whether checksums of data are kept.
    pub has_sums: bool,
    /// Whether runs past those in a head are kept under the leader's page, in as many
    /// parts as it takes.
    pub has_chains: bool,
    /// The remote of which files may be kept, as the user named it; none if empty.
    pub remote: String,
}

/// First page of the small files' area.
pub(crate) const DATA_START: u32 = 4;

/// What [`Layout::plan`] starts from.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Bytes in a page.
    pub page: u32,
    /// Pages of the volume.
    pub pages: u32,
    /// Pages of a copy of the name table.
    pub table: u32,
    /// Pages of a third of the log.
    pub third: u32,
    /// Whether the allocation map is logged.
    pub logs_map: bool,
}

impl Layout {
    /// Returns the layout of a new volume: the name table's copies, the log and the
    /// saved maps in its middle, files on both sides.
    ///
    /// # Errors
    /// `Invalid`, saying what does not fit.
    pub fn plan(wanted: Wanted, nonce: u64, made: u64, label: &str) -> Result<Self> {
        let Wanted {
            page,
            pages,
            table,
            third,
            logs_map,
        } = wanted;
        let map_len = pages.div_ceil(map_bits(page));
        let maps = map_len + apart(map_len, logs_map);
        let middle = u64::from(table) * 2 + 4 + u64::from(third) * 3 + u64::from(maps);
        let least = middle + u64::from(DATA_START) + 16;
        if u64::from(pages) < least {
            return Err(Error::note(
                Kind::Invalid,
                format!(
                    "too small: {pages} pages of {page} bytes, at least {least} are needed; \
                     a smaller log or name table takes fewer (-o log=, name-table=)"
                ),
            ));
        }
        let table_a = ((pages - middle as u32) / 2).max(DATA_START);
        let anchor = table_a + table;
        let log = anchor + 4;
        let map = log + 3 * third;
        let layout = Self {
            page,
            pages,
            table_a,
            table_b: map + maps,
            table_len: table,
            anchor,
            log,
            third,
            logged_max: logged_max(page, third),
            map,
            map_len,
            logs_map,
            nonce,
            version: 1,
            made,
            label: label.to_owned(),
            has_sums: false,
            has_chains: false,
            remote: String::new(),
        };
        layout
            .check()
            .map_err(|words| Error::note(Kind::Invalid, words))?;
        Ok(layout)
    }

    /// Returns whether files of a remote may be kept.
    pub fn has_remote(&self) -> bool {
        !self.remote.is_empty()
    }

    /// Returns the format's version, and, from the third on, the features.
    fn features(&self) -> (u32, u32) {
        let kept = [
            (self.has_sums, FEATURE_SUMS),
            (self.has_remote(), FEATURE_REMOTE),
            (self.logs_map, FEATURE_MAP),
            (self.has_chains, FEATURE_CHAINS),
        ];
        let features = kept
            .iter()
            .filter(|(has, _)| *has)
            .map(|(_, bit)| bit)
            .sum();
        match (self.logs_map, self.has_remote(), self.has_sums) {
            (true, _, _) => (VERSION_MAP, features),
            (false, true, _) => (VERSION_REMOTE, features),
            (false, false, true) => (VERSION_SUMS, 0),
            (false, false, false) => (VERSION, 0),
        }
    }

    /// First pages of the two saved maps.
    pub fn maps(&self) -> [u32; 2] {
        [self.map, self.map + apart(self.map_len, self.logs_map)]
    }

    /// Pages of the volume that a page of a saved map is for.
    pub fn map_bits(&self) -> u32 {
        map_bits(self.page)
    }

    /// Returns where a page of the name table's first copy is.
    pub(crate) fn table_page(&self, index: u32) -> Run {
        let start = self.table_a.saturating_add(index);
        Run { start, len: 1 }
    }

    /// Returns whether a run is of the name table's first copy.
    pub(crate) fn is_table_run(&self, run: Run) -> bool {
        let end = u64::from(run.start) + u64::from(run.len);
        run.start >= self.table_a && end <= u64::from(self.table_a) + u64::from(self.table_len)
    }

    /// Returns bytes from the start of the device to a page.
    pub fn offset(&self, page: u32) -> u64 {
        u64::from(page) * u64::from(self.page)
    }

    /// Returns bytes in a page, as a length.
    pub fn page_len(&self) -> usize {
        self.page as usize
    }

    /// Pages of the log.
    pub fn log_len(&self) -> u32 {
        self.third * 3
    }

    /// Pages of the longest record.
    pub fn record_max(&self) -> u32 {
        RECORD_OVERHEAD + 2 * self.logged_max
    }

    /// Returns the pages of the root's copies.
    pub fn roots(&self) -> [u32; 3] {
        [0, 2, self.pages - 1]
    }

    /// Returns the pages of the anchors.
    pub fn anchors(&self) -> [u32; 2] {
        [self.anchor, self.anchor + 2]
    }

    /// First page past the name table's second copy: files may lie from here on.
    pub fn middle_end(&self) -> u32 {
        self.table_b + self.table_len
    }

    /// Returns whether files may lie on a page.
    pub fn is_data(&self, page: u32) -> bool {
        (DATA_START..self.table_a).contains(&page)
            || (self.middle_end()..self.pages - 1).contains(&page)
    }

    /// Returns whether files may lie on all of a run.
    pub fn is_data_run(&self, start: u32, len: u32) -> bool {
        let end = u64::from(start) + u64::from(len);
        let inside = |from: u32, to: u32| start >= from && end <= u64::from(to);
        len > 0 && (inside(DATA_START, self.table_a) || inside(self.middle_end(), self.pages - 1))
    }

    /// Pages that files may have.
    pub fn data_pages(&self) -> u32 {
        self.table_a - DATA_START + (self.pages - 1 - self.middle_end())
    }

    /// Returns the root page.
    pub fn encode(&self, page: u32) -> Vec<u8> {
        let header = Header {
            kind: PageType::Root,
            level: 0,
            count: 0,
            nonce: self.nonce,
            page,
            epoch: 0,
            seq: self.version,
        };
        let mut out = header.page(self.page_len());
        let (version, features) = self.features();
        let fields = [
            version,
            self.page,
            self.pages,
            self.table_a,
            self.table_b,
            self.table_len,
            self.anchor,
            self.log,
            self.third,
            self.logged_max,
            self.map,
            self.map_len,
        ];
        for (i, field) in fields.iter().enumerate() {
            put(&mut out, HEADER + 4 * i, &field.to_le_bytes());
        }
        put(&mut out, AT_MADE, &self.made.to_le_bytes());
        let label = self.label.as_bytes();
        put(&mut out, AT_LABEL, &[label.len().min(LABEL_MAX) as u8]);
        put(
            &mut out,
            AT_LABEL + 1,
            label.get(..label.len().min(LABEL_MAX)).unwrap_or_default(),
        );
        if version >= VERSION_REMOTE {
            let remote = self.remote.as_bytes();
            let remote = remote.get(..REMOTE_MAX).unwrap_or(remote);
            put(&mut out, AT_FEATURES, &features.to_le_bytes());
            put(&mut out, AT_REMOTE, &[remote.len() as u8]);
            put(&mut out, AT_REMOTE + 1, remote);
        }
        seal(&mut out);
        out
    }

    /// The layout in a root page, unless the page is something else.
    ///
    /// # Errors
    /// In words, what of a root page that is whole is out of its range.
    pub fn decode(bytes: &[u8]) -> Option<Checked<Self>> {
        let header = Header::read(bytes).filter(|h| h.kind == PageType::Root)?;
        let field = |i: usize| get_u32(bytes, HEADER + 4 * i);
        let (kept, remote) = match features(bytes) {
            Ok(found) => found,
            Err(words) => return Some(Err(words)),
        };
        let label_len = bytes
            .get(AT_LABEL)
            .map_or(0, |l| usize::from(*l))
            .min(LABEL_MAX);
        let label = bytes.get(AT_LABEL + 1..AT_LABEL + 1 + label_len);
        let layout = Self {
            page: field(1),
            pages: field(2),
            table_a: field(3),
            table_b: field(4),
            table_len: field(5),
            anchor: field(6),
            log: field(7),
            third: field(8),
            logged_max: field(9),
            map: field(10),
            map_len: field(11),
            logs_map: kept & FEATURE_MAP != 0,
            nonce: header.nonce,
            version: header.seq,
            made: crate::disk::ondisk::get_u64(bytes, AT_MADE),
            label: String::from_utf8_lossy(label.unwrap_or_default()).into_owned(),
            has_sums: kept & FEATURE_SUMS != 0,
            has_chains: kept & FEATURE_CHAINS != 0,
            remote,
        };
        Some(layout.check().map(|()| layout))
    }

    /// Holds the fields to what they must be to each other.
    fn check(&self) -> Checked<()> {
        let size = self.page as usize;
        if !(PAGE_MIN..=PAGE_MAX).contains(&size) || !size.is_power_of_two() {
            return Err(format!("pages of {size} bytes"));
        }
        let sum = |parts: &[u32]| parts.iter().map(|p| u64::from(*p)).sum::<u64>();
        let middle = [
            (sum(&[self.table_a]), u64::from(DATA_START)),
            (sum(&[self.anchor]), sum(&[self.table_a, self.table_len])),
            (sum(&[self.log]), sum(&[self.anchor, 4])),
            (
                sum(&[self.map]),
                sum(&[self.log]) + 3 * u64::from(self.third),
            ),
            (
                sum(&[self.table_b]),
                sum(&[self.map, apart(self.map_len, self.logs_map), self.map_len]),
            ),
            (
                u64::from(self.pages.max(1)) - 1,
                sum(&[self.table_b, self.table_len]),
            ),
        ];
        if middle.iter().any(|(start, least)| start < least) {
            return Err("parts that overlap or lie outside of the volume".into());
        }
        let needed = self.pages.div_ceil(self.map_bits());
        if self.map_len < needed || self.logs_map && self.map_len > needed {
            return Err(format!(
                "a map of {} pages, {needed} are needed",
                self.map_len
            ));
        }
        self.check_log()
    }

    fn check_log(&self) -> Checked<()> {
        let most = logged_max(self.page, self.third);
        if !(LOGGED_MIN..=most).contains(&self.logged_max) {
            return Err(format!(
                "thirds of {} pages, which hold records of {most} logged pages; \
                 {LOGGED_MIN} are needed",
                self.third
            ));
        }
        if u64::from(self.third) * 3 * u64::from(self.page) > LOG_MAX_BYTES {
            return Err(format!("a log of more than {LOG_MAX_BYTES} bytes"));
        }
        if self.table_len < TABLE_MIN {
            return Err(format!("a name table of {} pages", self.table_len));
        }
        Ok(())
    }

    /// Largest file, in bytes.
    pub(crate) fn size_max(&self) -> u64 {
        (u64::from(self.pages) * u64::from(self.page)).max(1 << 40)
    }

    /// Pages that content of `size` bytes takes, the leader with them.
    pub(crate) fn pages_for(&self, size: u64) -> u32 {
        match size.div_ceil(u64::from(self.page)) {
            0 => 0,
            n => u32::try_from(n + 1).unwrap_or(u32::MAX),
        }
    }

    /// Cuts a range of a file's bytes into stretches of the device.
    pub(crate) fn stretches(&self, runs: &Runs, offset: u64, len: u64) -> Vec<(u64, u64)> {
        let page = u64::from(self.page);
        let mut out = Vec::new();
        let (mut at, end) = (offset, offset + len);
        while at < end {
            // The leader is page 0 of the runs.
            let Some(run) = u32::try_from(at / page + 1).ok().and_then(|p| runs.find(p)) else {
                break;
            };
            let within = at % page;
            let n = (u64::from(run.len) * page - within).min(end - at);
            out.push((self.offset(run.start) + within, n));
            at += n;
        }
        out
    }
}

const AT_MADE: usize = HEADER + 48;
const AT_LABEL: usize = HEADER + 56;
const AT_FEATURES: usize = HEADER + 120;
const AT_REMOTE: usize = HEADER + 124;

/// Returns the features that a root page has, and what remote it names.
fn features(root: &[u8]) -> Checked<(u32, String)> {
    let version = get_u32(root, HEADER);
    let (must, may) = match version {
        VERSION => return Ok((0, String::new())),
        VERSION_SUMS => return Ok((FEATURE_SUMS, String::new())),
        VERSION_REMOTE => (FEATURE_REMOTE, FEATURE_SUMS),
        VERSION_MAP => (FEATURE_MAP, FEATURE_SUMS | FEATURE_REMOTE | FEATURE_CHAINS),
        _ => {
            return Err(format!(
                "version {version}, {VERSION} to {VERSION_MAP} are known"
            ));
        }
    };
    let features = get_u32(root, AT_FEATURES);
    if features & must == 0 || features & !(must | may) != 0 {
        return Err(format!("features {features:#x} in version {version}"));
    }
    let len = root.get(AT_REMOTE).map_or(0, |len| usize::from(*len));
    let name = root.get(AT_REMOTE + 1..AT_REMOTE + 1 + len);
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    match name.filter(|name| name.is_empty() != (features & FEATURE_REMOTE != 0)) {
        Some(name) => Ok((features, name.to_owned())),
        None => Err("a remote without a name, or a name without a remote".into()),
    }
}

/// Pages that a page of a saved map is for.
fn map_bits(page: u32) -> u32 {
    (page - HEADER as u32) * 8
}

/// From the first page of a saved map to that of the other, in pages.
fn apart(map_len: u32, logs_map: bool) -> u32 {
    // A page between them, as between the copies of all else.
    if logs_map { map_len.max(2) } else { map_len }
}

/// Most pages that a record may log, for a page and a third of these sizes.
pub(crate) fn logged_max(page: u32, third: u32) -> u32 {
    let listed = (page as usize).saturating_sub(RECORD_FIXED) / RECORD_ITEM;
    let fits = (third / RECORDS_IN_THIRD).saturating_sub(RECORD_OVERHEAD) / 2;
    fits.min(listed as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let wanted = Wanted {
            page: 512,
            pages: 2000,
            table: 64,
            third: 332,
            logs_map: true,
        };
        Layout::plan(wanted, 7, 8, "name").unwrap()
    }

    #[test]
    fn a_root_says_what_was_planned() {
        let layout = layout();
        assert_eq!(layout.logged_max, 39);
        assert_eq!(Layout::decode(&layout.encode(2)), Some(Ok(layout)));
    }

    #[test]
    fn versions_of_the_format_are_told_apart() {
        for (logs_map, has_sums, has_chains, remote, version) in [
            (false, false, false, "", VERSION),
            (false, true, false, "", VERSION_SUMS),
            (false, true, false, "nfs://host/dir", VERSION_REMOTE),
            (true, false, false, "", VERSION_MAP),
            (true, true, false, "nfs://host/dir", VERSION_MAP),
            (true, false, true, "", VERSION_MAP),
        ] {
            let remote = remote.into();
            let layout = Layout {
                logs_map,
                has_sums,
                has_chains,
                remote,
                ..layout()
            };
            let root = layout.encode(0);
            assert_eq!(get_u32(&root, HEADER), version);
            assert_eq!(Layout::decode(&root), Some(Ok(layout)));
        }
    }

    #[test]
    fn fields_that_cannot_be_are_refused() {
        let good = layout();
        let changes: [fn(&mut Layout); 8] = [
            |l| l.page = 513,
            |l| l.table_a = 3,
            |l| l.anchor -= 1,
            |l| l.log -= 1,
            |l| l.third = 50,
            |l| l.map_len = 0,
            |l| l.pages = l.table_b + l.table_len,
            |l| l.logged_max = 40,
        ];
        for (i, change) in changes.iter().enumerate() {
            let mut bad = good.clone();
            change(&mut bad);
            let mut bytes = good.encode(0);
            let other = bad.encode(0);
            let n = bytes.len().min(other.len());
            bytes[..n].copy_from_slice(&other[..n]);
            seal(&mut bytes);
            assert!(matches!(Layout::decode(&bytes), Some(Err(_))), "change {i}");
        }
    }

    #[test]
    fn what_is_too_small_is_refused_with_what_is_needed() {
        let wanted = Wanted {
            page: 4096,
            pages: 100,
            table: 64,
            third: 116,
            logs_map: true,
        };
        let e = Layout::plan(wanted, 7, 8, "").unwrap_err();
        assert!(e.to_string().contains("at least"), "{e}");
    }
}
