//! A volume: names, headers, pages, and the map of those that are free.

use super::disk::{Disk, Done, Label, Type};
use super::header::{self, Header, Run};
use super::table::Table;
use anyhow::{Context, Result, ensure};
use volary_sim::{Preset, SECTOR};

/// Where the name table's file begins, and the sectors that it may have.
pub(super) const TABLE: (u64, usize) = (4, 16_000);
/// Bytes that a program reads or writes at a time.
const REQUEST: usize = 4096;
/// What all names begin with: directories are a part of names.
const DIR: &str = "<Cedar>";
/// Versions that are kept, unless a file says otherwise.
const KEEP: u16 = 1;

/// A volume as large as a Trident.
pub(crate) struct Volume {
    pub(super) disk: Disk,
    pub(super) table: Table,
    /// The map: a hint, which is kept in memory as long as the volume is used.
    pub(super) is_free: Vec<bool>,
    /// No sector before this one is free.
    pub(super) lowest: usize,
    pub(super) next_uid: u32,
}

/// A header's place, and the uid that its label has.
#[derive(Clone, Copy)]
pub(super) struct HeaderPlace {
    pub(super) uid: u32,
    pub(super) at: u64,
}

/// A file that is open.
pub(crate) struct Open {
    header: Header,
}

impl Volume {
    /// Makes an empty volume on a disk.
    ///
    /// # Errors
    /// Of the disk.
    pub(crate) fn make(disk: &Preset) -> Result<Self> {
        let mut disk = Disk::new(disk);
        let table = Table::make(&mut disk, TABLE.0, TABLE.1)?;
        let mut is_free = vec![true; disk.sectors() as usize];
        is_free[..TABLE.0 as usize + TABLE.1].fill(false);
        Ok(Self {
            disk,
            table,
            is_free,
            lowest: 0,
            next_uid: super::table::UID + 1,
        })
    }

    pub(crate) fn done(&self) -> Done {
        self.disk.done()
    }

    /// Returns microseconds since the beginning.
    pub(crate) fn now(&self) -> f64 {
        self.disk.now()
    }

    /// Lets time pass, in microseconds.
    pub(crate) fn wait(&mut self, time: f64) {
        self.disk.wait(time);
    }

    /// Empties the caches, but for the map, which a clean shutdown has saved.
    ///
    /// # Errors
    /// Of the disk.
    pub(crate) fn again(&mut self) -> Result<()> {
        self.table = Table::open(&mut self.disk, TABLE.0, TABLE.1)?;
        Ok(())
    }

    /// Makes the next version of a file with so many bytes, and removes versions that are not kept.
    ///
    /// # Errors
    /// Of the disk; of a volume that is full.
    pub(crate) fn create(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let before = self.versions(name)?;
        let version = before.last().map_or(1, |(version, _)| version + 1);
        let uid = self.next_uid;
        self.next_uid += 1;
        let pages = bytes.len().div_ceil(SECTOR) as u64;
        let runs = self.take(header::SECTORS as u64 + pages)?;
        self.claim(uid, &runs)?;
        let mut header = Header {
            uid,
            version,
            keep: KEEP,
            len: 0,
            made: (self.disk.now() / 1000.0) as u64,
            name: full(name),
            runs,
        };
        self.write_header(&header)?;
        let value = value_of(&header)?;
        self.table
            .put(&mut self.disk, &key(name, version), &value)?;
        self.write_data(&header, bytes)?;
        header.len = bytes.len() as u64;
        self.write_header(&header)?;
        let keep = usize::from(KEEP);
        let gone = (before.len() + 1).saturating_sub(keep);
        for (version, place) in before.into_iter().take(gone) {
            self.remove(name, version, place)?;
        }
        Ok(())
    }

    /// Removes the newest version of a file.
    ///
    /// # Errors
    /// Of the disk; if there is none.
    pub(crate) fn delete(&mut self, name: &str) -> Result<()> {
        let (version, place) = self.newest(name)?;
        self.remove(name, version, place)
    }

    /// Opens the newest version of a file: its label is computed, and its header read.
    ///
    /// # Errors
    /// Of the disk; if there is none.
    pub(crate) fn open(&mut self, name: &str) -> Result<Open> {
        let (_, place) = self.newest(name)?;
        let header = self.read_header(place)?;
        Ok(Open { header })
    }

    /// Reads all of a file.
    ///
    /// # Errors
    /// Of the disk.
    pub(crate) fn read(&mut self, open: &Open) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        for (first, label, sectors) in open.header.requests() {
            let mut bytes = vec![0; sectors * SECTOR];
            self.disk.read(first, label, &mut bytes)?;
            all.extend(bytes);
        }
        all.truncate(open.header.len as usize);
        Ok(all)
    }

    /// Reads a page of a file.
    ///
    /// # Errors
    /// Of the disk; if the file does not have it.
    pub(crate) fn read_page(&mut self, open: &Open, page: u64) -> Result<Vec<u8>> {
        let at = open.header.sector(page).context("no such page")?;
        let label = open.header.label(page as usize);
        let mut bytes = vec![0; SECTOR];
        self.disk.read(at, label, &mut bytes)?;
        Ok(bytes)
    }

    /// Lists the files with their properties: for each the header is read.
    ///
    /// # Errors
    /// Of the disk.
    pub(crate) fn list(&mut self, prefix: &str) -> Result<Vec<(String, u64)>> {
        let entries = self.table.all(&mut self.disk, &full(prefix))?;
        let mut all = Vec::with_capacity(entries.len());
        for (_, value) in entries {
            let header = self.read_header(place(&value)?)?;
            let name = String::from_utf8_lossy(&header.name);
            let name = name.strip_prefix(DIR).unwrap_or(&name);
            all.push((name.to_string(), header.len));
        }
        Ok(all)
    }

    fn newest(&mut self, name: &str) -> Result<(u16, HeaderPlace)> {
        let last = self.versions(name)?.pop();
        last.with_context(|| format!("{name} is not there"))
    }

    /// Returns the versions of a file: the number, and the place of the header.
    fn versions(&mut self, name: &str) -> Result<Vec<(u16, HeaderPlace)>> {
        let mut prefix = full(name);
        prefix.push(0);
        let entries = self.table.all(&mut self.disk, &prefix)?;
        let version = |(key, value): (Vec<u8>, Vec<u8>)| {
            let number = key.last_chunk().context("a key without a version")?;
            Ok((u16::from_be_bytes(*number), place(&value)?))
        };
        entries.into_iter().map(version).collect()
    }

    /// Takes sectors that the map says are free, in a row if it can be. Their labels are looked at: what is not
    /// free after all is left alone.
    fn take(&mut self, count: u64) -> Result<Vec<Run>> {
        loop {
            let runs = self.look(count).context("the volume is full")?;
            let mut are_free = true;
            for run in &runs {
                let labels = self.disk.labels(run.first, run.len as usize)?;
                let marks = labels.iter().zip(&mut self.is_free[run.first as usize..]);
                for (label, is_free) in marks {
                    *is_free = false;
                    are_free &= *label == Label::FREE;
                }
            }
            if are_free {
                return Ok(runs);
            }
        }
    }

    /// Returns the first row that is long enough, or the first sectors that are enough together.
    fn look(&mut self, count: u64) -> Option<Vec<Run>> {
        let (mut pieces, mut sum) = (Vec::new(), 0);
        let below = self.is_free[self.lowest..].iter();
        self.lowest += below.take_while(|is_free| !**is_free).count();
        let mut at = self.lowest;
        while at < self.is_free.len() {
            let len = self.is_free[at..].iter().take(count as usize);
            let len = len.take_while(|is_free| **is_free).count() as u64;
            let run = Run {
                first: at as u64,
                len,
            };
            if len == count {
                return Some(vec![run]);
            }
            let has_header = !pieces.is_empty() || len >= header::SECTORS as u64;
            if len > 0 && sum < count && has_header {
                let len = len.min(count - sum);
                pieces.push(Run { len, ..run });
                sum += len;
            }
            at += len as usize + 1;
        }
        (sum == count).then_some(pieces)
    }

    /// Writes the labels of a new file: of the header, and then of the data.
    fn claim(&mut self, uid: u32, runs: &[Run]) -> Result<()> {
        for piece in pieces(uid, runs) {
            self.disk
                .write_labels(piece.first, piece.label, piece.sectors)?;
        }
        Ok(())
    }

    fn write_header(&mut self, header: &Header) -> Result<()> {
        let bytes = header.encode()?;
        self.disk
            .write(header.place()?, header_label(header.uid), &bytes)
    }

    fn write_data(&mut self, header: &Header, bytes: &[u8]) -> Result<()> {
        let mut from = 0;
        for (first, label, sectors) in header.requests() {
            let mut part = bytes[from..bytes.len().min(from + sectors * SECTOR)].to_vec();
            from += part.len();
            part.resize(sectors * SECTOR, 0);
            self.disk.write(first, label, &part)?;
        }
        Ok(())
    }

    pub(super) fn read_header(&mut self, place: HeaderPlace) -> Result<Header> {
        let mut bytes = vec![0; header::SECTORS * SECTOR];
        self.disk
            .read(place.at, header_label(place.uid), &mut bytes)?;
        self.disk.pause();
        Header::decode(&bytes)
    }

    /// Takes the name out and makes the labels free.
    fn remove(&mut self, name: &str, version: u16, place: HeaderPlace) -> Result<()> {
        let header = self.read_header(place)?;
        self.table.remove(&mut self.disk, &key(name, version))?;
        for piece in pieces(header.uid, &header.runs) {
            self.disk
                .write_labels(piece.first, Label::FREE, piece.sectors)?;
            self.is_free[piece.first as usize..][..piece.sectors].fill(true);
            self.lowest = self.lowest.min(piece.first as usize);
        }
        Ok(())
    }
}

/// Returns the name in full.
pub(super) fn full(name: &str) -> Vec<u8> {
    format!("{DIR}{name}").into_bytes()
}

/// Returns what stands in the name table for a version.
pub(super) fn key_of(full: &[u8], version: u16) -> Vec<u8> {
    let mut key = full.to_vec();
    key.push(0);
    key.extend(version.to_be_bytes());
    key
}

fn key(name: &str, version: u16) -> Vec<u8> {
    key_of(&full(name), version)
}

/// Returns what an entry of the name table says: keep, uid and place.
pub(super) fn value_of(header: &Header) -> Result<Vec<u8>> {
    let mut value = header.keep.to_le_bytes().to_vec();
    value.extend(header.uid.to_le_bytes());
    value.extend((header.place()? as u32).to_le_bytes());
    Ok(value)
}

/// Returns the place of a header, from an entry of the name table.
fn place(value: &[u8]) -> Result<HeaderPlace> {
    let (_, rest) = value
        .split_first_chunk::<2>()
        .context("an entry that ends")?;
    let (uid, rest) = rest.split_first_chunk().context("an entry that ends")?;
    let at: [u8; 4] = rest.try_into().context("an entry that ends")?;
    Ok(HeaderPlace {
        uid: u32::from_le_bytes(*uid),
        at: u32::from_le_bytes(at).into(),
    })
}

/// Returns the label of a header's first sector.
pub(super) fn header_label(uid: u32) -> Label {
    Label {
        uid,
        page: 0,
        of: Type::Header,
    }
}

/// Sectors in a row whose labels follow each other.
struct Piece {
    first: u64,
    label: Label,
    sectors: usize,
}

/// Returns the header and the rows of data of a file.
fn pieces(uid: u32, runs: &[Run]) -> Vec<Piece> {
    let mut all = Vec::new();
    let (mut header, mut page) = (header::SECTORS as u64, 0);
    for run in runs {
        let of_header = header.min(run.len);
        if of_header > 0 {
            let number = header::SECTORS as u64 - header;
            all.push(Piece {
                first: run.first,
                label: Label {
                    page: number as u32,
                    ..header_label(uid)
                },
                sectors: of_header as usize,
            });
            header -= of_header;
        }
        let len = run.len - of_header;
        if len > 0 {
            all.push(Piece {
                first: run.first + of_header,
                label: Label {
                    uid,
                    page,
                    of: Type::Data,
                },
                sectors: len as usize,
            });
            page += len as u32;
        }
    }
    all
}

impl Header {
    /// Returns where it is.
    fn place(&self) -> Result<u64> {
        let first = self.runs.first().context("a file that lies nowhere")?;
        ensure!(
            first.len >= header::SECTORS as u64,
            "a header in two places"
        );
        Ok(first.first)
    }

    fn label(&self, page: usize) -> Label {
        Label {
            uid: self.uid,
            page: page as u32,
            of: Type::Data,
        }
    }

    /// Returns where a page of data lies.
    fn sector(&self, page: u64) -> Option<u64> {
        let mut left = page + header::SECTORS as u64;
        for run in &self.runs {
            if left < run.len {
                return Some(run.first + left);
            }
            left -= run.len;
        }
        None
    }

    /// Returns the requests for all data: place, label, sectors.
    fn requests(&self) -> Vec<(u64, Label, usize)> {
        let most = REQUEST / SECTOR;
        let mut all = Vec::new();
        let data = pieces(self.uid, &self.runs).into_iter();
        for piece in data.filter(|piece| piece.label.of == Type::Data) {
            for from in (0..piece.sectors).step_by(most) {
                let label = self.label(piece.label.page as usize + from);
                let sectors = most.min(piece.sectors - from);
                all.push((piece.first + from as u64, label, sectors));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(i: usize) -> Vec<u8> {
        vec![i as u8; 300 + i * 37]
    }

    #[test]
    fn files_are_there_after_others_came_and_went() {
        let mut volume = Volume::make(&Preset::T300).unwrap();
        for i in 0..60 {
            volume.create(&format!("f{i:02}"), &bytes(i)).unwrap();
        }
        for i in (0..60).step_by(3) {
            volume.delete(&format!("f{i:02}")).unwrap();
        }
        volume.create("long", &[9; 60_000]).unwrap();
        volume.create("f01", &bytes(70)).unwrap();
        volume.again().unwrap();
        for i in 0..60 {
            let open = volume.open(&format!("f{i:02}"));
            assert_eq!(open.is_err(), i % 3 == 0);
            if let Ok(open) = open {
                let of = if i == 1 { 70 } else { i };
                assert_eq!(volume.read(&open).unwrap(), bytes(of));
            }
        }
        let open = volume.open("long").unwrap();
        assert_eq!(volume.read(&open).unwrap(), [9; 60_000]);
        assert_eq!(volume.read_page(&open, 100).unwrap(), [9; 512]);
        let list = volume.list("f").unwrap();
        assert_eq!(list.len(), 40);
        assert_eq!(list[0], ("f01".to_string(), bytes(70).len() as u64));
    }

    /// Paper, section 4: "this is (at least) six I/O's"; labels of header and data are written apart, and a page of
    /// the name table has two sectors here.
    #[test]
    fn a_create_is_eight_requests() {
        let mut volume = Volume::make(&Preset::T300).unwrap();
        let before = volume.done();
        volume.create("one", &[1]).unwrap();
        let done = volume.done().since(before);
        assert_eq!((done.reads, done.writes), (1, 7));
    }

    /// The map is a hint: it says too much here, and the labels are believed.
    #[test]
    fn pages_in_use_that_the_map_calls_free_are_not_taken() {
        let mut volume = Volume::make(&Preset::T300).unwrap();
        volume.create("one", &[1; 2000]).unwrap();
        volume.is_free.fill(true);
        volume.lowest = 0;
        volume.create("two", &[2; 2000]).unwrap();
        for (name, byte) in [("one", 1), ("two", 2)] {
            let open = volume.open(name).unwrap();
            assert_eq!(volume.read(&open).unwrap(), [byte; 2000]);
        }
    }
}
