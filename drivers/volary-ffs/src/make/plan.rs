//! Plans the layout of the volume.

use super::geometry::Geometry;
use super::request::{Request, What};
use crate::disk::ondisk::SBLOCKSIZE;
use crate::parameters::values::invalid;
use volary_core::Result;

/// The least number of groups, unless the volume is too small for them.
const GROUPS_MIN: u64 = 4;
/// `sizeof(struct cg)` in 4.4BSD, as its macro `CGSIZE` counts it.
const CG_SIZE: u64 = 176;

/// The layout, in fragments as in the format.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) request: Request,
    /// Where the first superblock stands, in bytes.
    pub(super) sblockloc: u64,
    pub(super) size: u64,
    pub(super) dsize: u64,
    pub(super) ncg: u64,
    pub(super) fpg: u64,
    pub(super) ipg: u64,
    pub(super) sblkno: u64,
    pub(super) cblkno: u64,
    pub(super) iblkno: u64,
    pub(super) dblkno: u64,
    pub(super) cgsize: u64,
    pub(super) cssize: u64,
    pub(super) contigsumsize: u64,
}

impl Plan {
    /// Lays out a volume on a device of `bytes` bytes.
    ///
    /// # Errors
    /// `Invalid` if the device is too small or too large, or the requested group is not possible.
    pub(super) fn new(bytes: u64, request: Request) -> Result<Self> {
        let (fsize, frag) = (request.fsize, request.frag());
        let sblockloc: u64 = if request.what == What::Ufs2 {
            65_536
        } else {
            8192
        };
        let superblock = (SBLOCKSIZE as u64).div_ceil(fsize).next_multiple_of(frag);
        let sblkno = sblockloc.div_ceil(fsize) + (SBLOCKSIZE as u64).div_ceil(fsize);
        let sblkno = sblkno.next_multiple_of(frag);
        let cblkno = sblkno + superblock;
        let iblkno = cblkno + frag;
        let maxcontig = u64::from(request.maxcontig.cast_unsigned());
        let mut plan = Self {
            sblockloc,
            size: bytes / fsize,
            dsize: 0,
            ncg: 0,
            fpg: 0,
            ipg: 0,
            sblkno,
            cblkno,
            iblkno,
            dblkno: 0,
            cgsize: 0,
            cssize: 0,
            contigsumsize: if maxcontig > 1 { maxcontig.min(16) } else { 0 },
            request,
        };
        plan.size -= plan.size % frag;
        if plan.request.what != What::Ufs2 && plan.size > u64::from(u32::MAX >> 1) {
            return Err(invalid("too large for ffs1; ffs2 has room"));
        }
        plan.groups()?;
        plan.end()?;
        Ok(plan)
    }

    /// Chooses the length of groups.
    fn groups(&mut self) -> Result<()> {
        let frag = self.request.frag();
        let fpg = match self.request.geometry.clone() {
            Some(disk) => self.group_of_cylinders(&disk)?,
            None => self.group_of_fragments()?,
        };
        self.set_group(fpg);
        let least = self.skew_max() + self.dblkno + 2 * frag;
        if least > fpg {
            let bytes = least * self.request.fsize;
            return Err(invalid(format!(
                "too small: a group takes at least {bytes} bytes"
            )));
        }
        Ok(())
    }

    /// Returns the fragments of a group of the requested length, or of the greatest possible one.
    fn group_of_fragments(&self) -> Result<u64> {
        let frag = self.request.frag();
        let most = self.largest_group();
        Ok(match self.request.group {
            Some(asked) if asked > most || !asked.is_multiple_of(frag) => {
                let words = format!("group={asked}: a multiple of {frag}, at most {most}");
                return Err(invalid(words));
            }
            Some(asked) => asked,
            None => {
                let least = self.smallest_group();
                let share = self.size.div_ceil(GROUPS_MIN).next_multiple_of(frag);
                share.max(least).min(self.size).min(most)
            }
        })
    }

    /// Returns the fragments of a group of whole cylinders and whole blocks.
    fn group_of_cylinders(&self, disk: &Geometry) -> Result<u64> {
        let (bsize, fsize) = (self.request.bsize, self.request.fsize);
        let cycle = disk.cycle(bsize);
        let fits = |cylinders: &u64| {
            let mut plan = self.clone();
            plan.set_group(disk.fragments(*cylinders, fsize));
            plan.maps_fit()
        };
        let cylinders = match disk.cpg {
            Some(asked) if !asked.is_multiple_of(cycle) => {
                return Err(invalid(format!("cpg={asked}: a multiple of {cycle}")));
            }
            Some(asked) => Some(asked).filter(fits),
            None => {
                let most = (16 / cycle).max(1);
                let all = (1..=most).rev().map(|cycles| cycles * cycle);
                all.filter(|&cylinders| cylinders > 1).find(fits)
            }
        };
        let words = "the maps of a group of such cylinders do not fit in a block: larger blocks \
                     or fragments, or a smaller cpg=, help";
        let cylinders = cylinders.ok_or_else(|| invalid(words))?;
        Ok(disk.fragments(cylinders, fsize))
    }

    /// Returns the length of a group of which at least half is data.
    fn smallest_group(&self) -> u64 {
        2 * (self.iblkno + self.request.frag()).next_power_of_two()
    }

    /// Returns the largest group whose maps fit in a block.
    fn largest_group(&self) -> u64 {
        let frag = self.request.frag();
        let (mut fits, mut too_large) = (frag, self.request.bsize * 8);
        while fits + frag < too_large {
            let middle = (fits + (too_large - fits) / 2) / frag * frag;
            let mut plan = self.clone();
            plan.set_group(middle);
            match plan.maps_fit() {
                true => fits = middle,
                false => too_large = middle,
            }
        }
        fits
    }

    /// Returns whether a group's maps fit in a block, and on UFS1 its counts in 16 bits.
    fn maps_fit(&self) -> bool {
        let counts = self.ipg.max(self.fpg / self.request.frag());
        let counted = self.request.what == What::Ufs2 || counts <= 0x7fff;
        self.cgsize <= self.request.bsize && counted
    }

    /// Sets the length of a group, and all that follows from it.
    fn set_group(&mut self, fpg: u64) {
        let (fsize, frag) = (self.request.fsize, self.request.frag());
        let inopb = self.request.bsize / self.inode_size();
        self.fpg = fpg;
        let inodes = (fpg * fsize).div_ceil(self.request.density);
        self.ipg = inodes.max(1).next_multiple_of(inopb);
        self.dblkno = self.iblkno + self.ipg / inopb * frag;
        let old = match self.request.what {
            What::Ufs2 => 0,
            _ => self.cylinders(fpg) * (4 + 2 * self.positions()),
        };
        let clusters = match self.contigsumsize {
            0 => 0,
            n => 4 * n + (fpg / frag).div_ceil(8),
        };
        let maps = self.ipg.div_ceil(8) + fpg.div_ceil(8);
        self.cgsize = (CG_SIZE + 4 + old + maps + clusters).next_multiple_of(fsize);
    }

    /// Sets the number of groups, and the fragments left for data.
    fn end(&mut self) -> Result<()> {
        let (fsize, frag) = (self.request.fsize, self.request.frag());
        self.ncg = self.size.div_ceil(self.fpg);
        // A last group without room for data is dropped.
        let last = self.size - (self.ncg - 1).min(self.ncg) * self.fpg;
        if self.ncg > 1 && last < self.skew(self.ncg - 1) + self.dblkno + frag {
            self.ncg -= 1;
            self.size = self.ncg * self.fpg;
        }
        if self.ncg.saturating_mul(self.ipg) > u64::from(u32::MAX) {
            return Err(invalid(
                "more inodes than 32 bits count; a larger density= helps",
            ));
        }
        self.cssize = (self.ncg * 16).next_multiple_of(fsize);
        let taken = self.sblkno + self.ncg * (self.dblkno - self.sblkno) + self.cssize / fsize;
        self.dsize = self.size.saturating_sub(taken);
        let first = self.fpg.min(self.size);
        if self.dblkno + self.cssize / fsize + 2 * frag > first {
            let least = (self.dblkno + self.cssize / fsize + 2 * frag) * fsize;
            return Err(invalid(format!(
                "too small: it takes at least {least} bytes"
            )));
        }
        Ok(())
    }

    /// Returns how far into a group its structures begin.
    fn skew(&self, group: u64) -> u64 {
        let (bsize, fsize) = (self.request.bsize, self.request.fsize);
        self.request.geometry.as_ref().map_or(0, |disk| {
            let (offset, bits) = disk.spiral(bsize, fsize);
            offset * (group & bits)
        })
    }

    /// Returns the largest skew of any group.
    fn skew_max(&self) -> u64 {
        let groups = self.size.div_ceil(self.fpg.max(1));
        (0..groups.min(4096))
            .map(|group| self.skew(group))
            .max()
            .unwrap_or(0)
    }

    /// Returns where a group's structures begin.
    pub(super) fn start(&self, group: u64) -> u64 {
        group * self.fpg + self.skew(group)
    }

    pub(super) fn inode_size(&self) -> u64 {
        if self.request.what == What::Ufs2 {
            256
        } else {
            128
        }
    }

    /// Returns the cylinders that this many fragments of a group take.
    pub(super) fn cylinders(&self, fragments: u64) -> u64 {
        let disk = self.request.geometry.as_ref();
        disk.map_or(1, |disk| disk.cylinders(fragments, self.request.fsize))
    }

    /// Returns the cylinders of the volume: `fs_old_ncyl`. Without a geometry, a group is one
    /// cylinder.
    pub(super) fn all_cylinders(&self) -> u64 {
        let disk = self.request.geometry.as_ref();
        disk.map_or(self.ncg, |disk| {
            disk.cylinders(self.size, self.request.fsize)
        })
    }

    /// Returns the cylinders in a group's head: `cg_ncyl`. The newfs and fsck of 4.3BSD and 4.4BSD
    /// want `fs_ncyl % fs_cpg` for the last group, even if that is 0.
    pub(super) fn cylinders_of(&self, group: u64) -> u64 {
        let is_last = group + 1 == self.ncg;
        match self.request.what {
            What::Bsd43 if is_last => self.all_cylinders() % self.cylinders(self.fpg),
            What::Bsd43 => self.cylinders(self.fpg),
            _ => self.cylinders(self.fragments(group)),
        }
    }

    /// Returns the number of rotational positions.
    pub(super) fn positions(&self) -> u64 {
        self.request.geometry.as_ref().map_or(1, |disk| disk.nrpos)
    }

    /// Returns where the summaries are: at the start of the first group's data.
    pub(super) fn csaddr(&self) -> u64 {
        self.dblkno
    }

    /// Returns where the root directory is: in the first whole block after the summaries.
    pub(super) fn root(&self) -> u64 {
        let after = self.csaddr() + self.cssize / self.request.fsize;
        after.next_multiple_of(self.request.frag())
    }

    /// Returns the fragments of a group. The last group may be shorter.
    pub(super) fn fragments(&self, group: u64) -> u64 {
        self.fpg.min(self.size - group * self.fpg)
    }

    /// Returns whether a fragment of a group is free in an empty volume.
    pub(super) fn is_free(&self, group: u64, fragment: u64) -> bool {
        let skew = self.skew(group);
        if fragment < skew + self.sblkno {
            return group > 0;
        }
        let used = match group {
            0 => self.csaddr() + self.cssize / self.request.fsize,
            _ => skew + self.dblkno,
        };
        fragment >= used && !(group == 0 && fragment == self.root())
    }
}
