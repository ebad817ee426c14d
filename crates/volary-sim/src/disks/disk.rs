//! Disks that share common content.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Bytes in a sector, which a disk writes as a whole or not at all. A larger structure may be torn
/// at sector borders.
pub const SECTOR: usize = 512;

/// The content of a sector, shared by all disks and traces that contain it.
#[derive(Clone, Debug)]
pub struct Sector(Arc<Content>);

#[derive(Debug)]
struct Content {
    bytes: [u8; SECTOR],
    hash: u64,
}

impl Sector {
    /// Returns the first [`SECTOR`] bytes of `bytes`, padded with zeros.
    pub fn new(bytes: &[u8]) -> Self {
        let mut whole = [0; SECTOR];
        copy(&mut whole, bytes);
        let hash = hash(&whole);
        Self(Arc::new(Content { bytes: whole, hash }))
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Copies its bytes, as sector `number`, into a buffer that was read from byte `offset` on.
    pub(crate) fn lay_over(&self, number: u64, offset: u64, buf: &mut [u8]) {
        let start = number * SECTOR as u64;
        let skip = offset.saturating_sub(start) as usize;
        let at = start.saturating_sub(offset) as usize;
        let bytes = self.bytes().get(skip..).unwrap_or_default();
        copy(buf.get_mut(at..).unwrap_or_default(), bytes);
    }
}

impl PartialEq for Sector {
    fn eq(&self, other: &Self) -> bool {
        self.0.hash == other.0.hash && self.0.bytes == other.0.bytes
    }
}

/// A disk: a shared image, and the sectors in which this disk differs. The cost of a clone grows
/// with the number of those.
#[derive(Clone, Debug)]
pub struct Disk {
    base: Arc<Base>,
    over: BTreeMap<u64, Over>,
    hash: u64,
}

/// A sector that differs from the image, and its effect on the hash.
#[derive(Clone, Debug)]
struct Over {
    sector: Sector,
    change: u64,
}

/// An image that several disks share.
#[derive(Debug)]
struct Base {
    image: Vec<u8>,
    /// The image that hashes start from, if it is another one.
    first: Option<Arc<Self>>,
    /// The sectors that differ from the first image: each one's number, its contribution to hashes,
    /// and that of it and all before it.
    adds: Vec<(u64, u64, u64)>,
}

impl Base {
    fn sector(&self, number: u64) -> &[u8] {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let at = at.saturating_mul(SECTOR);
        self.image
            .get(at..at.saturating_add(SECTOR))
            .unwrap_or_default()
    }

    /// Returns the sector's contribution to hashes.
    fn add(&self, number: u64) -> u64 {
        let found = self.adds.binary_search_by_key(&number, |a| a.0);
        let found = found.ok().and_then(|at| self.adds.get(at));
        found.map_or(0, |a| a.1)
    }

    /// Returns the contribution to hashes of the sectors before this one.
    fn adds_before(&self, number: u64) -> u64 {
        let before = self.adds.partition_point(|a| a.0 < number);
        let last = before.checked_sub(1).and_then(|at| self.adds.get(at));
        last.map_or(0, |a| a.2)
    }

    /// Returns the sector's contribution if it had another content.
    fn add_of(&self, number: u64, content: &Sector) -> u64 {
        let first = self.first.as_deref().unwrap_or(self);
        match first.sector(number) == content.bytes() {
            true => 0,
            false => place(number, content.0.hash),
        }
    }
}

impl Disk {
    /// Returns a disk with this image, truncated to whole sectors.
    pub fn new(mut image: Vec<u8>) -> Self {
        image.truncate(image.len() / SECTOR * SECTOR);
        Self {
            base: Arc::new(Base {
                image,
                first: None,
                adds: Vec::new(),
            }),
            over: BTreeMap::new(),
            hash: 0,
        }
    }

    /// Returns its size in bytes.
    pub fn size(&self) -> u64 {
        self.base.image.len() as u64
    }

    /// Returns its number of sectors.
    pub fn sectors(&self) -> u64 {
        (self.base.image.len() / SECTOR) as u64
    }

    /// Returns a hash that is the same for disks of one image with the same content. It almost
    /// never is for others.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the hash of a range of sectors.
    pub(crate) fn hash_of(&self, sectors: Range<u64>) -> u64 {
        let base = self.base.adds_before(sectors.start) ^ self.base.adds_before(sectors.end);
        let over = self.over.range(sectors);
        over.fold(base, |hash, (_, over)| hash ^ over.change)
    }

    /// Returns its whole content.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = self.base.image.clone();
        self.read(0, &mut all);
        all
    }

    /// Copies the disk onto an image of its own, so that clones are cheap again.
    #[must_use]
    pub fn rebased(&self) -> Self {
        Self::new(self.to_vec())
    }

    /// Copies the disk, so that clones are cheap again, but keeps its hash.
    #[must_use]
    pub(crate) fn folded(&self) -> Self {
        let mut own: BTreeMap<u64, u64> = self.base.adds.iter().map(|a| (a.0, a.1)).collect();
        for (number, over) in &self.over {
            own.insert(*number, self.base.add(*number) ^ over.change);
        }
        own.retain(|_, add| *add != 0);
        let all = own.into_iter().scan(0, |before, (number, add)| {
            *before ^= add;
            Some((number, add, *before))
        });
        let first = self.base.first.clone();
        let base = Base {
            image: self.to_vec(),
            first: Some(first.unwrap_or_else(|| self.base.clone())),
            adds: all.collect(),
        };
        Self {
            base: Arc::new(base),
            over: BTreeMap::new(),
            hash: self.hash,
        }
    }

    /// Returns the content of a sector.
    pub fn sector(&self, number: u64) -> Sector {
        match self.over.get(&number) {
            Some(over) => over.sector.clone(),
            None => Sector::new(self.base.sector(number)),
        }
    }

    /// Fills `buf` from byte `offset` on; bytes past the end are left alone.
    pub fn read(&self, offset: u64, buf: &mut [u8]) {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        copy(buf, self.base.image.get(from..).unwrap_or_default());
        let end = offset.saturating_add(buf.len() as u64);
        let sector = SECTOR as u64;
        for (number, over) in self.over.range(offset / sector..end.div_ceil(sector)) {
            over.sector.lay_over(*number, offset, buf);
        }
    }

    /// Replaces the content of a sector. Past the end, does nothing.
    pub fn put(&mut self, number: u64, content: Sector) {
        if number >= self.sectors() {
            return;
        }
        let old = if self.base.sector(number) == content.bytes() {
            self.over.remove(&number)
        } else {
            let change = self.base.add(number) ^ self.base.add_of(number, &content);
            self.hash ^= change;
            let sector = content;
            self.over.insert(number, Over { sector, change })
        };
        self.hash ^= old.map_or(0, |old| old.change);
    }

    /// Returns the number and new content of each sector that a write of `parts` from byte `offset`
    /// on touches.
    pub fn written(&self, offset: u64, parts: &[&[u8]]) -> Vec<(u64, Sector)> {
        let len: usize = parts.iter().map(|p| p.len()).sum();
        let sector = SECTOR as u64;
        let (first, end) = (offset / sector, (offset + len as u64).div_ceil(sector));
        let mut bytes = vec![0; (end - first) as usize * SECTOR];
        self.read(first * sector, &mut bytes);
        let mut at = (offset - first * sector) as usize;
        for part in parts {
            copy(bytes.get_mut(at..).unwrap_or_default(), part);
            at += part.len();
        }
        (first..end)
            .zip(bytes.chunks(SECTOR).map(Sector::new))
            .collect()
    }
}

/// Copies as many bytes as both have.
fn copy(to: &mut [u8], from: &[u8]) {
    let len = to.len().min(from.len());
    if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
        to.copy_from_slice(from);
    }
}

/// Computes FNV-1a over words, mixed at the end.
fn hash(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mix(hash)
}

/// Returns a sector's contribution to a disk's hash.
fn place(number: u64, content: u64) -> u64 {
    mix(content ^ mix(number.wrapping_add(0x9e37_79b9_7f4a_7c15)))
}

pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_read_and_the_copy_has_its_own() {
        let old = Disk::new(vec![1; 4 * SECTOR]);
        let mut new = old.clone();
        new.put(1, Sector::new(&[2; SECTOR]));
        new.put(9, Sector::new(&[3; SECTOR]));
        let mut buf = [0; SECTOR + 20];
        new.read(SECTOR as u64 - 10, &mut buf);
        assert!(buf[..10].iter().chain(&buf[SECTOR + 10..]).all(|&b| b == 1));
        assert!(buf[10..SECTOR + 10].iter().all(|&b| b == 2));
        assert!(old.to_vec() == vec![1; 4 * SECTOR]);
        assert!(new.rebased().to_vec() == new.to_vec());
    }

    #[test]
    fn equal_disks_have_equal_hashes_however_they_came_to_be() {
        let base = Disk::new(vec![0; 8 * SECTOR]);
        let [a, b] = [1, 2].map(|n| Sector::new(&[n; SECTOR]));
        let (mut x, mut y) = (base.clone(), base.clone());
        x.put(1, a.clone());
        x.put(2, b.clone());
        y.put(2, a.clone());
        y.put(2, b.clone());
        y.put(1, a.clone());
        assert_eq!(x.hash(), y.hash());
        y.put(2, a);
        assert_ne!(x.hash(), y.hash());
        for number in [1, 2] {
            y.put(number, Sector::new(&[0; SECTOR]));
        }
        assert_eq!(y.hash(), base.hash());
    }

    #[test]
    fn a_folded_disk_is_the_same_and_its_hashes_go_on() {
        let base = Disk::new(vec![0; 8 * SECTOR]);
        let put = |disk: &Disk, number, byte| {
            let mut disk = disk.clone();
            disk.put(number, Sector::new(&[byte; SECTOR]));
            disk
        };
        let old = put(&put(&put(&base, 1, 1), 2, 2), 5, 5);
        // With the folded content, with that of the first image, and with new content.
        for (number, byte) in [(2, 2), (2, 0), (2, 3), (4, 4), (5, 0)] {
            let [plain, folded] = [old.clone(), old.folded()].map(|d| put(&d, number, byte));
            let again = put(&folded.folded(), 7, 7).folded();
            assert_eq!(again.hash(), put(&plain, 7, 7).hash());
            assert!(plain.to_vec() == folded.to_vec());
            assert_eq!(plain.hash(), folded.hash());
            assert_eq!(again.hash_of(0..8), again.hash());
            for range in [0..2, 1..3, 2..3, 3..8, 5..6] {
                assert_eq!(plain.hash_of(range.clone()), folded.hash_of(range));
            }
        }
    }

    #[test]
    fn a_write_gives_whole_sectors_with_what_was_around() {
        let disk = Disk::new(vec![7; 4 * SECTOR]);
        let written = disk.written(SECTOR as u64 - 2, &[&[1, 2], &[3]]);
        let numbers: Vec<u64> = written.iter().map(|w| w.0).collect();
        assert_eq!(numbers, [0, 1]);
        assert_eq!(written[0].1.bytes()[SECTOR - 3..], [7, 1, 2]);
        assert_eq!(written[1].1.bytes()[..2], [3, 7]);
    }
}
