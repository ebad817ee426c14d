//! The checked superblock, which the rest of the driver trusts.

use crate::disk::hash::Hashes;
use crate::disk::ondisk::{
    FS_42INODEFMTS, FS_42POSTBLFMT, FS_44INODEFMT, Order, SBLOCKSIZE, Superblock, UFS_NDADDR,
    Ufs1Dinode, Ufs2Dinode,
};
use crate::disk::superblock::Found;
use volary_core::Result;

/// Which of the three formats a volume has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// 4.2 and 4.3BSD: owners of 16 bits, entries without types.
    Bsd43,
    Ufs1,
    Ufs2,
}

/// A volume. Lengths and addresses are in fragments, as in the format.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub(crate) found: Found,
    pub(crate) order: Order,
    pub(crate) variant: Variant,
    /// Bytes of a block and of a fragment, and fragments of a block.
    pub(crate) bsize: u64,
    pub(crate) fsize: u64,
    pub(crate) frag: u64,
    /// Fragments of the volume, and how many of them are for data.
    pub(crate) size: u64,
    pub(crate) dsize: u64,
    /// The number of cylinder groups, and the inodes and fragments of each.
    pub(crate) ncg: u64,
    pub(crate) ipg: u64,
    pub(crate) fpg: u64,
    /// Where the superblock, head, inodes and data begin in a cylinder group.
    pub(crate) sblkno: u64,
    pub(crate) cblkno: u64,
    pub(crate) iblkno: u64,
    pub(crate) dblkno: u64,
    /// Bytes of a cylinder group's head with its maps.
    pub(crate) cgsize: u64,
    /// Where the summaries of cylinder groups lie, and how long they are in bytes.
    pub(crate) csaddr: u64,
    pub(crate) cssize: u64,
    /// Directories, free blocks, free inodes and free fragments, as stored in the superblock.
    pub(crate) total: [u64; 4],
    /// Pointers of an indirect block.
    pub(crate) nindir: u64,
    /// The length from which on a symlink's target is in a block.
    pub(crate) symlink_max: u64,
    /// Whether FreeBSD made it, and wrote its device numbers.
    pub(crate) is_freebsd: bool,
    /// Which check hashes FreeBSD keeps.
    pub(crate) hashes: Hashes,
    /// Whether entries have types. On 4.3BSD, the name's length takes that byte too.
    pub(crate) has_types: bool,
}

/// The longest and the shortest block and the shortest fragment, in bytes.
const MAXBSIZE: i64 = 65_536;
const MINBSIZE: i64 = 4096;
const MINFSIZE: i64 = 512;

impl Volume {
    /// Checks a superblock on a device of `device` bytes.
    ///
    /// # Errors
    /// `Corrupt`, naming the first field that is out of its range.
    pub(crate) fn new(found: Found, device: u64) -> Result<Self> {
        check_sizes(&found)?;
        let raw = &found.raw;
        let (bsize, fsize) = (number(raw.fs_bsize.into()), number(raw.fs_fsize.into()));
        let is_new = found.is_ufs2 || found.has_new_fields();
        let variant = match (found.is_ufs2, raw.fs_old_inodefmt) {
            (true, _) => Variant::Ufs2,
            (false, FS_44INODEFMT) => Variant::Ufs1,
            // Without these fields, rotational tables may stand there.
            (false, format) if is_new && !FS_42INODEFMTS.contains(&format) => {
                let expected = format!("{FS_44INODEFMT}, 0 or -1");
                return Err(found.bad("fs_old_inodefmt", expected));
            }
            (false, _) => Variant::Bsd43,
        };
        let (size, dsize, csaddr, total) = match is_new {
            true => {
                let [ndir, nbfree, nifree, nffree, _] = raw.fs_cstotal;
                let total = [ndir, nbfree, nifree, nffree];
                (raw.fs_size, raw.fs_dsize, raw.fs_csaddr, total)
            }
            false => (
                raw.fs_old_size.into(),
                raw.fs_old_dsize.into(),
                raw.fs_old_csaddr.into(),
                raw.fs_old_cstotal.map(i64::from),
            ),
        };
        let pointers = bsize / if found.is_ufs2 { 8 } else { 4 };
        let short = if found.is_ufs2 { 120 } else { 60 };
        let volume = Self {
            order: found.order,
            variant,
            bsize,
            fsize,
            frag: bsize / fsize,
            size: number(size),
            dsize: number(dsize),
            ncg: raw.fs_ncg.into(),
            ipg: raw.fs_ipg.into(),
            fpg: number(raw.fs_fpg.into()),
            sblkno: number(raw.fs_sblkno.into()),
            cblkno: number(raw.fs_cblkno.into()),
            iblkno: number(raw.fs_iblkno.into()),
            dblkno: number(raw.fs_dblkno.into()),
            cgsize: number(raw.fs_cgsize.into()),
            csaddr: number(csaddr),
            cssize: number(raw.fs_cssize.into()),
            total: total.map(number),
            nindir: pointers,
            symlink_max: match variant {
                Variant::Bsd43 => 0,
                _ => number(raw.fs_maxsymlinklen.into()).min(short),
            },
            is_freebsd: found.is_freebsd(),
            hashes: Hashes::of(&found),
            has_types: variant != Variant::Bsd43 && raw.fs_maxsymlinklen > 0,
            found,
        };
        volume.check_groups()?;
        volume.check_layout(is_new, device)?;
        Ok(volume)
    }

    /// Checks the number of cylinder groups, and the layout of each.
    fn check_groups(&self) -> Result<()> {
        let bad = |name, expected: String| Err(self.found.bad(name, expected));
        if self.ncg == 0 {
            return bad("fs_ncg", "at least 1".into());
        }
        if self.fpg == 0 || !self.fpg.is_multiple_of(self.frag) {
            return bad("fs_fpg", format!("a multiple of {}", self.frag));
        }
        if self.ipg == 0 || !self.ipg.is_multiple_of(self.inopb()) {
            return bad("fs_ipg", format!("a multiple of {}", self.inopb()));
        }
        if self.ncg.saturating_mul(self.ipg) > u32::MAX.into() {
            return bad(
                "fs_ncg",
                format!("at most {}", u64::from(u32::MAX) / self.ipg),
            );
        }
        let inodes = self.ipg / self.inopb() * self.frag;
        let ends = [
            ("fs_cblkno", self.sblkno, self.cblkno, 1),
            ("fs_iblkno", self.cblkno, self.iblkno, 1),
            ("fs_dblkno", self.iblkno, self.dblkno, inodes),
        ];
        for (name, before, at, least) in ends {
            if at < before.saturating_add(least) || at >= self.fpg {
                let from = before.saturating_add(least);
                return bad(name, format!("{from} to {}", self.fpg - 1));
            }
        }
        if self.skew_max().saturating_add(self.dblkno) > self.fpg {
            let most = self.fpg - self.dblkno;
            return bad(
                "fs_old_cgoffset",
                format!("cylinder groups begin at most {most} in"),
            );
        }
        Ok(())
    }

    /// Checks all lengths, and that the volume fits on the device.
    fn check_layout(&self, is_new: bool, device: u64) -> Result<()> {
        let name = |new, old| if is_new { new } else { old };
        let bad = |name, expected: String| Err(self.found.bad(name, expected));
        let groups = self.size.div_ceil(self.fpg);
        if self.size == 0 || groups != self.ncg {
            let (least, most) = (
                (self.ncg - 1).saturating_mul(self.fpg),
                self.ncg.saturating_mul(self.fpg),
            );
            let expected = format!(
                "{} to {most} for {} groups",
                least.saturating_add(1),
                self.ncg
            );
            return bad(name("fs_size", "fs_old_size"), expected);
        }
        if self.size > device / self.fsize {
            let expected = format!("at most {}, the device's size", device / self.fsize);
            return bad(name("fs_size", "fs_old_size"), expected);
        }
        if self.dsize > self.size {
            return bad(
                name("fs_dsize", "fs_old_dsize"),
                format!("at most {}", self.size),
            );
        }
        let head = if self.is_42_groups() { 984 } else { 168 };
        let maps = head + self.ipg.div_ceil(8) + self.fpg.div_ceil(8);
        if self.cgsize < maps || self.cgsize > self.bsize {
            return bad("fs_cgsize", format!("{maps} to {}", self.bsize));
        }
        if self.cssize < self.ncg * 16 {
            return bad("fs_cssize", format!("at least {}", self.ncg * 16));
        }
        let end = self.csaddr.saturating_add(self.cssize.div_ceil(self.fsize));
        if self.csaddr == 0 || end > self.size {
            return bad(
                name("fs_csaddr", "fs_old_csaddr"),
                format!("1 to {}", self.size),
            );
        }
        if !(0..100).contains(&self.found.raw.fs_minfree) {
            return bad("fs_minfree", "0 to 99".into());
        }
        Ok(())
    }

    /// Returns the bytes of an inode.
    pub(crate) fn inode_size(&self) -> u64 {
        match self.variant {
            Variant::Ufs2 => Ufs2Dinode::SIZE as u64,
            _ => Ufs1Dinode::SIZE as u64,
        }
    }

    /// Returns the number of inodes in a block.
    pub(crate) fn inopb(&self) -> u64 {
        self.bsize / self.inode_size()
    }

    /// Returns the number of inodes, used or not.
    pub(crate) fn inodes(&self) -> u64 {
        self.ncg * self.ipg
    }

    /// Returns whether the cylinder groups have 4.2BSD's form.
    pub(crate) fn is_42_groups(&self) -> bool {
        self.variant == Variant::Bsd43 && self.found.raw.fs_old_postblformat == FS_42POSTBLFMT
    }

    /// Returns the first fragment of a cylinder group (`cgbase`).
    pub(crate) fn base(&self, group: u64) -> u64 {
        group * self.fpg
    }

    /// Returns how far into a group its structures begin. UFS1 lets them spiral down the disk pack,
    /// so that no single platter holds them all (section 3.1 of the paper).
    fn skew(&self, group: u64) -> u64 {
        if self.variant == Variant::Ufs2 {
            return 0;
        }
        let (offset, mask) = self.spiral();
        offset * (group & mask)
    }

    /// Returns `fs_old_cgoffset`, and the bits of a group's number that count.
    fn spiral(&self) -> (u64, u64) {
        let raw = &self.found.raw;
        let mask = !raw.fs_old_cgmask.cast_unsigned();
        (number(raw.fs_old_cgoffset.into()), mask.into())
    }

    /// Returns the largest skew of any group.
    fn skew_max(&self) -> u64 {
        let (offset, mask) = self.spiral();
        match self.variant {
            Variant::Ufs2 => 0,
            _ => offset.saturating_mul(mask.min(self.ncg - 1)),
        }
    }

    /// Returns where a group's structures begin (`cgstart`).
    pub(crate) fn start(&self, group: u64) -> u64 {
        self.base(group) + self.skew(group)
    }

    /// Returns the first fragment after a group.
    pub(crate) fn end(&self, group: u64) -> u64 {
        self.size.min(self.base(group + 1))
    }

    /// Returns where a group's head stands, in bytes.
    pub(crate) fn head_at(&self, group: u64) -> u64 {
        (self.start(group) + self.cblkno) * self.fsize
    }

    /// Returns where an inode stands, in bytes; `None` for a number that no inode has, or one that
    /// is past the end of a short last group.
    pub(crate) fn inode_at(&self, ino: u64) -> Option<u64> {
        if ino >= self.inodes() {
            return None;
        }
        let (group, index) = (ino / self.ipg, ino % self.ipg);
        let block = self.start(group) + self.iblkno + index / self.inopb() * self.frag;
        let at = block * self.fsize + index % self.inopb() * self.inode_size();
        (at + self.inode_size() <= self.size * self.fsize).then_some(at)
    }

    /// Returns the longest file that block pointers reach, in bytes.
    pub(crate) fn size_max(&self) -> u64 {
        let n = self.nindir;
        let blocks = UFS_NDADDR + n + n * n + n.saturating_mul(n * n);
        blocks.saturating_mul(self.bsize).min(i64::MAX as u64)
    }

    /// Returns the free bytes, and how many bytes are reserved for root.
    pub(crate) fn free(&self) -> (u64, u64) {
        let [_, blocks, _, fragments] = self.total;
        let free = blocks.saturating_mul(self.frag).saturating_add(fragments);
        (
            free.min(self.size) * self.fsize,
            self.reserve(self.minfree()) * self.fsize,
        )
    }

    /// Returns the cylinder group that a fragment is in.
    pub(crate) fn group_of(&self, fragment: u64) -> u64 {
        (fragment / self.fpg).min(self.ncg - 1)
    }

    /// Returns the longest run that the summary of clusters counts; 0 where none is kept.
    pub(crate) fn contigsumsize(&self) -> u64 {
        match self.is_42_groups() {
            true => 0,
            false => number(self.found.raw.fs_contigsumsize.into()).min(64),
        }
    }

    /// Returns the cylinder and the rotational position of a fragment of a group (`cbtocylno`,
    /// `cbtorpos`). Returns `None` if the volume has no disk geometry.
    pub(crate) fn position(&self, fragment: u64) -> Option<(usize, usize)> {
        if self.variant == Variant::Ufs2 {
            return None;
        }
        let raw = &self.found.raw;
        let field = |n: i32| number(n.into());
        let positions = match self.is_42_groups() {
            true => crate::disk::ondisk::ocg::POSITIONS as u64,
            false => field(raw.fs_old_nrpos),
        };
        let sector = fragment.saturating_mul(field(raw.fs_old_nspf));
        let (spc, nsect) = (field(raw.fs_old_spc), field(raw.fs_old_nsect));
        let cylinder = sector.checked_div(spc)?;
        let within = sector % spc;
        let track = within.checked_div(nsect)?;
        let skewed =
            track * field(raw.fs_old_trackskew) + within % nsect * field(raw.fs_old_interleave);
        // 4.2BSD has neither skew nor spare sectors.
        let (angle, circle) = match self.is_42_groups() {
            true => (within % nsect, nsect),
            false => (skewed % nsect, field(raw.fs_old_npsect)),
        };
        let position = (angle * positions).checked_div(circle)?;
        let is_one = cylinder < field(raw.fs_old_cpg) && position < positions;
        is_one.then_some((cylinder as usize, position as usize))
    }

    /// Returns the percentage reserved for root.
    pub(crate) fn minfree(&self) -> u64 {
        number(self.found.raw.fs_minfree.into())
    }

    /// Returns the fragments that `minfree` percent reserve for root.
    pub(crate) fn reserve(&self, minfree: u64) -> u64 {
        self.dsize / 100 * minfree + self.dsize % 100 * minfree / 100
    }

    /// Returns `fs_flags`, from the field that the format uses.
    pub(crate) fn flags(&self) -> u32 {
        match self.found.is_ufs2 || self.found.has_new_fields() {
            true => self.found.raw.fs_flags,
            false => self.found.raw.fs_old_flags.into(),
        }
    }

    /// Returns whether the superblock lists this inode as a snapshot.
    pub(crate) fn has_snapshot(&self, ino: u32) -> bool {
        let is_kept = self.found.is_ufs2 || self.found.has_new_fields();
        is_kept && self.found.raw.fs_snapinum.contains(&ino)
    }

    /// Returns the range of fragments of a group that hold no data. It begins at the group's
    /// superblock, in the first group at the start of the volume, and ends at the first data block.
    pub(crate) fn reserved(&self, group: u64) -> (u64, u64) {
        let start = self.start(group);
        let first = if group == 0 { 0 } else { start + self.sblkno };
        let end = self.end(group);
        (first.min(end), (start + self.dblkno).min(end))
    }

    /// Returns where each group's replica of the superblock stands, in bytes.
    pub(crate) fn replica_at(&self, group: u64) -> u64 {
        (self.start(group) + self.sblkno) * self.fsize
    }
}

/// Returns a number. Negative ones become 0, which the checks refuse where it matters.
fn number(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// Checks the sizes of blocks and fragments, and fields derived from them.
fn check_sizes(found: &Found) -> Result<()> {
    let raw = &found.raw;
    let (bsize, fsize) = (i64::from(raw.fs_bsize), i64::from(raw.fs_fsize));
    let is_power = |n: i64| n > 0 && n & (n - 1) == 0;
    if !is_power(bsize) || !(MINBSIZE..=MAXBSIZE).contains(&bsize) {
        return Err(found.bad("fs_bsize", "a power of two, 4096 to 65536"));
    }
    if !is_power(fsize) || !(MINFSIZE.max(bsize / 8)..=bsize).contains(&fsize) {
        let least = MINFSIZE.max(bsize / 8);
        return Err(found.bad("fs_fsize", format!("a power of two, {least} to {bsize}")));
    }
    let inode = if found.is_ufs2 { 256 } else { 128 };
    let pointer = if found.is_ufs2 { 8 } else { 4 };
    let shift = |n: i64| i64::from(n.trailing_zeros());
    let derived = [
        ("fs_frag", raw.fs_frag.into(), bsize / fsize),
        ("fs_bmask", raw.fs_bmask.into(), -bsize),
        ("fs_fmask", raw.fs_fmask.into(), -fsize),
        ("fs_bshift", raw.fs_bshift.into(), shift(bsize)),
        ("fs_fshift", raw.fs_fshift.into(), shift(fsize)),
        (
            "fs_fragshift",
            raw.fs_fragshift.into(),
            shift(bsize / fsize),
        ),
        ("fs_nindir", raw.fs_nindir.into(), bsize / pointer),
        ("fs_inopb", i64::from(raw.fs_inopb), bsize / inode),
    ];
    if let Some((name, _, expected)) = derived.into_iter().find(|(_, is, want)| is != want) {
        return Err(found.bad(name, expected.to_string()));
    }
    let (sbsize, most) = (i64::from(raw.fs_sbsize), fsize.max(SBLOCKSIZE as i64));
    if !(Superblock::SIZE as i64..=most).contains(&sbsize) {
        return Err(found.bad("fs_sbsize", format!("1376 to {most}")));
    }
    Ok(())
}
