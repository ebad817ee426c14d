//! How the volume is laid out.

use super::geometry::Geometry;
use super::request::{Request, What};
use crate::disk::ondisk::SBLOCKSIZE;
use crate::parameters::values::invalid;
use volary_core::Result;

/// Groups that a volume has at least, unless it is too small for them.
const GROUPS_MIN: u64 = 4;
/// `sizeof(struct cg)`, as its `CGSIZE` counts it.
const CG_SIZE: u64 = 176;

/// The layout, counted in fragments as the format does.
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
    /// `Invalid` if it is too small or too large, or a group cannot be as asked for.
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

    /// How large groups are.
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

    /// Fragments of a group that is as long as was asked for, or as can be.
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

    /// Fragments of a group of whole cylinders, and of whole blocks.
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

    /// Groups in which half is data, at least.
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

    /// Returns whether a group's maps fit in a block, and in UFS1 its counts in 16 bits.
    fn maps_fit(&self) -> bool {
        let counts = self.ipg.max(self.fpg / self.request.frag());
        let counted = self.request.what == What::Ufs2 || counts <= 0x7fff;
        self.cgsize <= self.request.bsize && counted
    }

    /// What follows from the length of a group.
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

    /// How many groups, and what is left for data.
    fn end(&mut self) -> Result<()> {
        let (fsize, frag) = (self.request.fsize, self.request.frag());
        self.ncg = self.size.div_ceil(self.fpg);
        // A last group without room for data is none.
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

    /// No group's structures begin farther in.
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

    /// Cylinders of so many fragments of a group.
    pub(super) fn cylinders(&self, fragments: u64) -> u64 {
        let disk = self.request.geometry.as_ref();
        disk.map_or(1, |disk| disk.cylinders(fragments, self.request.fsize))
    }

    /// Cylinders of the volume: `fs_old_ncyl`. Without a geometry, a group is one.
    pub(super) fn all_cylinders(&self) -> u64 {
        let disk = self.request.geometry.as_ref();
        disk.map_or(self.ncg, |disk| {
            disk.cylinders(self.size, self.request.fsize)
        })
    }

    /// Returns what a group's head says of its cylinders: `cg_ncyl`. 4.3BSD's and 4.4BSD's newfs and fsck
    /// want `fs_ncyl % fs_cpg` of the last group, even where that is 0.
    pub(super) fn cylinders_of(&self, group: u64) -> u64 {
        let is_last = group + 1 == self.ncg;
        match self.request.what {
            What::Bsd43 if is_last => self.all_cylinders() % self.cylinders(self.fpg),
            What::Bsd43 => self.cylinders(self.fpg),
            _ => self.cylinders(self.fragments(group)),
        }
    }

    /// Rotational positions that are told apart.
    pub(super) fn positions(&self) -> u64 {
        self.request.geometry.as_ref().map_or(1, |disk| disk.nrpos)
    }

    /// Returns where the summaries are: at the first data of the first group.
    pub(super) fn csaddr(&self) -> u64 {
        self.dblkno
    }

    /// Returns where the root directory is: in the first whole block after them.
    pub(super) fn root(&self) -> u64 {
        let after = self.csaddr() + self.cssize / self.request.fsize;
        after.next_multiple_of(self.request.frag())
    }

    /// Fragments of a group.
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
