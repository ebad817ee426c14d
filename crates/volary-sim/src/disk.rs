//! Disks that share what they have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes in a sector: what a disk writes whole or not at all. A structure that
/// is larger is torn at the borders of these.
pub const SECTOR: usize = 512;

/// The content of a sector, shared by all disks and tapes that have it.
#[derive(Clone, Debug)]
pub struct Sector(Arc<Content>);

#[derive(Debug)]
struct Content {
    bytes: Box<[u8]>,
    hash: u64,
}

impl Sector {
    /// The first [`SECTOR`] bytes of `bytes`, with zeros if there are fewer.
    pub fn new(bytes: &[u8]) -> Self {
        let mut whole = vec![0; SECTOR];
        for (to, from) in whole.iter_mut().zip(bytes) {
            *to = *from;
        }
        let hash = hash(&whole);
        let bytes = whole.into_boxed_slice();
        Self(Arc::new(Content { bytes, hash }))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Puts what it has, as sector `number`, into what was read from byte `offset` on.
    pub(crate) fn lay_over(&self, number: u64, offset: u64, buf: &mut [u8]) {
        let start = number * SECTOR as u64;
        let skip = offset.saturating_sub(start) as usize;
        let at = start.saturating_sub(offset) as usize;
        let bytes = self.bytes().get(skip..).unwrap_or_default();
        let room = buf.get_mut(at..).unwrap_or_default();
        let len = bytes.len().min(room.len());
        if let (Some(to), Some(from)) = (room.get_mut(..len), bytes.get(..len)) {
            to.copy_from_slice(from);
        }
    }
}

impl PartialEq for Sector {
    fn eq(&self, other: &Self) -> bool {
        self.0.hash == other.0.hash && self.0.bytes == other.0.bytes
    }
}

/// A disk: an image that many have, and the sectors that this one has instead.
/// A copy costs as much as those.
#[derive(Clone, Debug)]
pub struct Disk {
    base: Arc<Vec<u8>>,
    over: BTreeMap<u64, Sector>,
    hash: u64,
}

impl Disk {
    /// A disk with this image; cut to whole sectors.
    pub fn new(mut image: Vec<u8>) -> Self {
        image.truncate(image.len() / SECTOR * SECTOR);
        Self {
            base: Arc::new(image),
            over: BTreeMap::new(),
            hash: 0,
        }
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.base.len() as u64
    }

    /// Its number of sectors.
    pub fn sectors(&self) -> u64 {
        (self.base.len() / SECTOR) as u64
    }

    /// A number that is the same for disks of one image with the same content,
    /// and hardly ever for others.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Its whole content.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = self.base.to_vec();
        self.read(0, &mut all);
        all
    }

    /// The same disk, with an image of its own: copies are cheap again.
    #[must_use]
    pub fn rebased(&self) -> Self {
        Self::new(self.to_vec())
    }

    fn base_of(&self, number: u64) -> &[u8] {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let at = at.saturating_mul(SECTOR);
        self.base
            .get(at..at.saturating_add(SECTOR))
            .unwrap_or_default()
    }

    /// The content of a sector.
    pub fn sector(&self, number: u64) -> Sector {
        match self.over.get(&number) {
            Some(sector) => sector.clone(),
            None => Sector::new(self.base_of(number)),
        }
    }

    /// Fills `buf` from byte `offset` on; what is past the end stays.
    pub fn read(&self, offset: u64, buf: &mut [u8]) {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let base = self.base.get(from..).unwrap_or_default();
        let len = base.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..len), base.get(..len)) {
            to.copy_from_slice(from);
        }
        let end = offset.saturating_add(buf.len() as u64);
        let sector = SECTOR as u64;
        for (number, content) in self.over.range(offset / sector..end.div_ceil(sector)) {
            content.lay_over(*number, offset, buf);
        }
    }

    /// Gives a sector another content. Past the end nothing happens.
    pub fn put(&mut self, number: u64, content: Sector) {
        if number >= self.sectors() {
            return;
        }
        let same = self.base_of(number) == content.bytes();
        let old = if same {
            self.over.remove(&number)
        } else {
            self.hash ^= place(number, content.0.hash);
            self.over.insert(number, content)
        };
        if let Some(old) = old {
            self.hash ^= place(number, old.0.hash);
        }
    }

    /// The sectors that a write of `parts` from byte `offset` on gives another
    /// content, or the same anew: numbers and contents.
    pub fn written(&self, offset: u64, parts: &[&[u8]]) -> Vec<(u64, Sector)> {
        let len: usize = parts.iter().map(|p| p.len()).sum();
        let sector = SECTOR as u64;
        let (first, end) = (offset / sector, (offset + len as u64).div_ceil(sector));
        let mut bytes = vec![0; (end - first) as usize * SECTOR];
        self.read(first * sector, &mut bytes);
        let at = (offset - first * sector) as usize;
        let new = parts.iter().flat_map(|p| p.iter());
        for (to, byte) in bytes.iter_mut().skip(at).zip(new) {
            *to = *byte;
        }
        (first..end)
            .zip(bytes.chunks(SECTOR).map(Sector::new))
            .collect()
    }
}

/// FNV-1a over words, mixed at the end.
fn hash(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mix(hash)
}

/// What a sector adds to a disk's hash.
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
    fn a_write_gives_whole_sectors_with_what_was_around() {
        let disk = Disk::new(vec![7; 4 * SECTOR]);
        let written = disk.written(SECTOR as u64 - 2, &[&[1, 2], &[3]]);
        let numbers: Vec<u64> = written.iter().map(|w| w.0).collect();
        assert_eq!(numbers, [0, 1]);
        assert_eq!(written[0].1.bytes()[SECTOR - 3..], [7, 1, 2]);
        assert_eq!(written[1].1.bytes()[..2], [3, 7]);
    }
}
