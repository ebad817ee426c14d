//! Cylinder groups: their head, and the maps of inodes and fragments behind it.

use crate::disk::ondisk::{CG_MAGIC, CG_MAGIC_AT, CgHeader, Order, Stored, ocg};
use crate::disk::volume::{Variant, Volume};
use crate::inodes::blocks::Reader;
use std::ops::Range;
use volary_core::{Error, Result};

/// A cylinder group's head that has been checked.
pub(crate) struct Group {
    /// Where it stands, in bytes.
    pub(crate) at: u64,
    pub(crate) raw: CgHeader,
    /// The head with its maps, as stored.
    pub(crate) bytes: Vec<u8>,
    /// Where the maps begin in `bytes`.
    pub(crate) iusedoff: usize,
    pub(crate) freeoff: usize,
    /// Fragments of the group.
    pub(crate) fragments: u64,
    /// How many inodes have been initialised. Those after them are free, whatever their bytes. UFS2
    /// initialises inodes when they are first needed.
    pub(crate) initialised: u64,
}

impl Group {
    /// Reads a group's head and checks it.
    ///
    /// # Errors
    /// `Corrupt`, naming the field; `Io`.
    pub(crate) fn read(reader: &Reader<'_>, group: u64) -> Result<Self> {
        let volume = reader.volume;
        let at = volume.head_at(group);
        let len = volume
            .cgsize
            .min(volume.size * volume.fsize - at.min(volume.size * volume.fsize));
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        reader.cache.read(at, &mut bytes)?;
        Self::parse(volume, group, at, bytes)
    }

    /// Checks a head, given its bytes.
    ///
    /// # Errors
    /// `Corrupt`, naming the field.
    pub(crate) fn parse(volume: &Volume, group: u64, at: u64, bytes: Vec<u8>) -> Result<Self> {
        let order = volume.order;
        let raw = CgHeader::read(order, &bytes);
        let bad = |name: &'static str, expected: String| {
            let field = raw.fields().into_iter().find(|field| field.0 == name);
            let (_, within, value) = field.unwrap_or((name, 0, "missing".into()));
            Error::corrupt(name, at + within as u64, value, expected)
        };
        let is_42 = volume.is_42_groups() && u32::get(order, &bytes, CG_MAGIC_AT) != CG_MAGIC;
        check_magic(order, at, &bytes, is_42)?;
        if u64::from(raw.cg_cgx) != group {
            return Err(bad("cg_cgx", group.to_string()));
        }
        let fragments = volume.end(group) - volume.base(group);
        if u64::from(raw.cg_ndblk) != fragments {
            return Err(bad("cg_ndblk", fragments.to_string()));
        }
        let own = (raw.cg_iusedoff, raw.cg_freeoff);
        let (iusedoff, freeoff) = if is_42 { (ocg::IUSED, ocg::FREE) } else { own };
        let head = if is_42 {
            u64::from(ocg::IUSED)
        } else {
            CgHeader::SIZE as u64
        };
        volume.hashes.check_group(order, at, &bytes)?;
        let maps = [
            ("cg_iusedoff", iusedoff, volume.ipg),
            ("cg_freeoff", freeoff, volume.fpg),
        ];
        for (name, offset, bits) in maps {
            let range = head..=(bytes.len() as u64).saturating_sub(bits.div_ceil(8));
            if !range.contains(&u64::from(offset)) {
                return Err(bad(name, format!("{} to {}", range.start(), range.end())));
            }
        }
        let len = bytes.len() as u64;
        if let Some((field, expected)) = misplaced(volume, &raw, is_42, len) {
            return Err(bad(field, expected));
        }
        let initialised = match volume.variant {
            Variant::Ufs2 => u64::from(raw.cg_initediblk),
            _ => volume.ipg,
        };
        if initialised > volume.ipg {
            return Err(bad("cg_initediblk", format!("at most {}", volume.ipg)));
        }
        Ok(Self {
            at,
            raw,
            bytes,
            iusedoff: iusedoff as usize,
            freeoff: freeoff as usize,
            fragments,
            initialised,
        })
    }

    /// Returns whether inode `index` of the group is in use.
    pub(crate) fn is_used(&self, index: u64) -> bool {
        self.bit(self.iusedoff, index)
    }

    /// Returns whether fragment `index` of the group is free.
    pub(crate) fn is_free(&self, index: u64) -> bool {
        self.bit(self.freeoff, index)
    }

    /// Returns which fragments of a block are free, a bit for each, the first one lowest. `frag` is
    /// the number of fragments in a block, 1 to 8. Those past the group's end count as taken.
    pub(crate) fn free_of(&self, block: u64, frag: u64) -> u8 {
        let first = block * frag;
        let there = self.fragments.saturating_sub(first).min(frag);
        let at = usize::try_from(first / 8).unwrap_or(usize::MAX);
        // A block's bits are in one byte, as 1, 2, 4 and 8 divide 8.
        let byte = self.bytes.get(self.freeoff.saturating_add(at)).copied();
        let mask = (1_u16 << there) - 1;
        (u16::from(byte.unwrap_or(0)) >> (first % 8) & mask) as u8
    }

    /// Returns bit `index` of a map. The lowest bit of each byte comes first.
    pub(crate) fn bit(&self, map: usize, index: u64) -> bool {
        let at = usize::try_from(index / 8).unwrap_or(usize::MAX);
        let byte = self.bytes.get(map.saturating_add(at));
        byte.is_some_and(|byte| byte >> (index % 8) & 1 == 1)
    }

    /// Returns the blocks of a range whose byte in the free map fits, in order.
    pub(crate) fn blocks_where(
        &self,
        blocks: Range<u64>,
        frag: u64,
        fits: impl Fn(u8) -> bool,
    ) -> impl Iterator<Item = u64> {
        self.marks_where(self.freeoff, blocks, 8 / frag.clamp(1, 8), fits)
    }

    /// Returns the free inodes of a range, in order.
    pub(crate) fn free_inodes(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        let all = self.marks_where(self.iusedoff, range, 8, |byte| byte != 0xff);
        all.filter(|&index| !self.is_used(index))
    }

    /// Returns the marks of a range whose byte in a map fits. A byte of the map has `each` marks.
    /// Checking whole bytes skips most marks quickly.
    fn marks_where(
        &self,
        map: usize,
        range: Range<u64>,
        each: u64,
        fits: impl Fn(u8) -> bool,
    ) -> impl Iterator<Item = u64> {
        let first = range.start / each;
        let at = |byte: u64| map.saturating_add(usize::try_from(byte).unwrap_or(usize::MAX));
        let bytes = self.bytes.get(at(first)..at(range.end.div_ceil(each)));
        let fitting = bytes.unwrap_or_default().iter().zip(first..);
        fitting
            .filter(move |(byte, _)| fits(**byte))
            .flat_map(move |(_, index)| index * each..(index + 1) * each)
            .filter(move |mark| range.contains(mark))
    }

    pub(crate) fn set_bit(&mut self, map: usize, index: u64, bit: bool) {
        let at = usize::try_from(index / 8).unwrap_or(usize::MAX);
        if let Some(byte) = self.bytes.get_mut(map.saturating_add(at)) {
            let mask = 1 << (index % 8);
            *byte = if bit { *byte | mask } else { *byte & !mask };
        }
    }

    pub(crate) fn set_used(&mut self, index: u64, used: bool) {
        self.set_bit(self.iusedoff, index, used);
    }

    pub(crate) fn set_free(&mut self, index: u64, free: bool) {
        self.set_bit(self.freeoff, index, free);
    }

    /// Counts the free blocks in the map, and the free fragments outside of them.
    pub(crate) fn count_free(&self, volume: &Volume) -> (u64, u64, [u64; 8]) {
        let (mut blocks, mut fragments, mut lengths) = (0, 0, [0; 8]);
        for block in 0..self.fragments.div_ceil(volume.frag) {
            let free = self.free_of(block, volume.frag);
            let count = u64::from(free.count_ones());
            if count == volume.frag {
                blocks += 1;
                continue;
            }
            fragments += count;
            for (_, len) in runs(free) {
                if let Some(count) = lengths.get_mut(usize::from(len)) {
                    *count += 1;
                }
            }
        }
        (blocks, fragments, lengths)
    }
}

/// Checks the magic number of a group's head, which stands elsewhere on 4.2BSD.
fn check_magic(order: Order, at: u64, bytes: &[u8], is_42: bool) -> Result<()> {
    let magic_at = if is_42 { ocg::MAGIC } else { CG_MAGIC_AT };
    let magic = u32::get(order, bytes, magic_at);
    if magic == CG_MAGIC {
        return Ok(());
    }
    let (at, found) = (at + magic_at as u64, format!("{magic:#x}"));
    let expected = format!("{CG_MAGIC:#x}");
    Err(Error::corrupt("cg_magic", at, found, expected))
}

/// Returns the field that places a map or the cluster summary over another or beyond the head's
/// end, with the expected value. Updating counts would otherwise overwrite maps.
fn misplaced(
    volume: &Volume,
    raw: &CgHeader,
    is_42: bool,
    len: u64,
) -> Option<(&'static str, String)> {
    let used_end = u64::from(raw.cg_iusedoff) + volume.ipg.div_ceil(8);
    let free_end = u64::from(raw.cg_freeoff) + volume.fpg.div_ceil(8);
    if !is_42 && used_end > u64::from(raw.cg_freeoff) {
        return Some(("cg_freeoff", format!("at least {used_end}")));
    }
    let most = volume.contigsumsize();
    if is_42 || most == 0 || raw.cg_clusteroff == 0 {
        return None;
    }
    // The sums count from length 1, so the field points 4 bytes before the first.
    let sums = u64::from(raw.cg_clustersumoff) + 4;
    let (map, blocks) = (u64::from(raw.cg_clusteroff), u64::from(raw.cg_nclusterblks));
    let blocks_max = u64::from(raw.cg_ndblk).div_ceil(volume.frag);
    if sums < free_end || sums + 4 * most > map {
        let expected = format!(
            "{} to {}",
            free_end.saturating_sub(4),
            map.saturating_sub(4)
        );
        return Some(("cg_clustersumoff", expected));
    }
    if blocks > blocks_max {
        return Some(("cg_nclusterblks", format!("at most {blocks_max}")));
    }
    let last = len.saturating_sub(blocks.div_ceil(8));
    (map > last).then(|| ("cg_clusteroff", format!("at most {last}")))
}

/// Returns the runs of set bits, each as its start and its length.
pub(crate) fn runs(bits: u8) -> impl Iterator<Item = (u8, u8)> {
    let mut rest = u16::from(bits);
    let mut at = 0;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let gap = rest.trailing_zeros();
        let len = (rest >> gap).trailing_ones();
        at += gap;
        let found = (at as u8, len as u8);
        at += len;
        rest >>= gap + len;
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn runs_of_bits() {
        let all = |bits| runs(bits).collect::<Vec<_>>();
        assert_eq!(all(0), []);
        assert_eq!(all(0xff), [(0, 8)]);
        assert_eq!(all(0b1011_0001), [(0, 1), (4, 2), (7, 1)]);
    }
}
