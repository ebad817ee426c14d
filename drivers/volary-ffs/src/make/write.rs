//! Writes an empty volume.

use super::geometry::Geometry;
use super::plan::Plan;
use super::request::What;
use crate::disk::hash::seal_made;
use crate::disk::ondisk::{
    CG_MAGIC, CgHeader, DIRBLKSIZ, FS_44INODEFMT, FS_FLAGS_UPDATED, FS_METACKHASH, FS_UFS1_MAGIC,
    FS_UFS2_MAGIC, SBLOCKSEARCH, SBLOCKSIZE, Stored, Superblock, Ufs1Dinode, Ufs2Dinode, VOLNAME,
};
use volary_core::{BlockDevice, Make, Result};

/// Directories, free blocks, free inodes, free fragments, free clusters.
type Sums = [u64; 5];

/// Writes the volume. It is flushed on return.
///
/// # Errors
/// `ReadOnly`; `NoSpace`; `Io`.
pub(super) fn write(dev: &dyn BlockDevice, plan: &Plan, how: &Make) -> Result<()> {
    clear(dev)?;
    dev.flush()?;
    let fsize = plan.request.fsize;
    let (mut total, mut summaries) = ([0; 5], Vec::new());
    for group in 0..plan.ncg {
        let (head, sums) = Group::new(plan, group).head(how);
        dev.write_at((plan.start(group) + plan.cblkno) * fsize, &head)?;
        inodes(dev, plan, group, how)?;
        for (total, sum) in total.iter_mut().zip(sums) {
            *total += sum;
        }
        summaries.extend(sums.iter().take(4).copied());
    }
    let mut bytes = vec![0; usize_of(plan.cssize)];
    for (i, sum) in summaries.into_iter().enumerate() {
        int(sum).put(plan.request.order, &mut bytes, 4 * i);
    }
    dev.write_at(plan.csaddr() * fsize, &bytes)?;
    dev.write_at(plan.root() * fsize, &root_content(plan))?;
    for group in 0..plan.ncg {
        let at = (plan.start(group) + plan.sblkno) * fsize;
        dev.write_at(at, &superblock(plan, total, at, how))?;
    }
    dev.flush()?;
    let first = superblock(plan, total, plan.sblockloc, how);
    dev.write_at(plan.sblockloc, &first)?;
    dev.flush()
}

/// Bytes at the end of the device that are cleared. A Cedar volume is recognised by its last page,
/// whatever its size.
const END: u64 = 128 << 10;

/// Clears where other formats have their signatures, and each possible place of a superblock.
fn clear(dev: &dyn BlockDevice) -> Result<()> {
    let size = dev.geometry().size;
    let places = SBLOCKSEARCH.map(|at| (at, SBLOCKSIZE as u64));
    let others = [(0, 96 << 10), (size.saturating_sub(END), END)];
    for (at, len) in places.into_iter().chain(others) {
        let len = len.min(size.saturating_sub(at));
        if len > 0 {
            dev.zero(at, len)?;
        }
    }
    Ok(())
}

fn usize_of(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Returns a count as stored. The plan has checked that it fits.
fn int(n: u64) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

fn long(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A cylinder group's head.
struct Group<'a> {
    plan: &'a Plan,
    number: u64,
    raw: CgHeader,
    bytes: Vec<u8>,
}

impl<'a> Group<'a> {
    fn new(plan: &'a Plan, number: u64) -> Self {
        let mut raw = CgHeader::zeroed();
        raw.cg_magic = CG_MAGIC;
        raw.cg_cgx = small(number);
        raw.cg_ndblk = small(plan.fragments(number));
        Self {
            plan,
            number,
            raw,
            bytes: vec![0; usize_of(plan.cgsize)],
        }
    }

    fn head(mut self, how: &Make) -> (Vec<u8>, Sums) {
        let plan = self.plan;
        let inopb = plan.request.bsize / plan.inode_size();
        let mut at = CgHeader::SIZE as u64;
        if plan.request.what == What::Ufs2 {
            self.raw.cg_niblk = small(plan.ipg);
            self.raw.cg_initediblk = small(plan.ipg.min(2 * inopb));
            self.raw.cg_time = how.now.secs;
        } else {
            let cylinders = plan.cylinders_of(self.number);
            self.raw.cg_old_ncyl = i16::try_from(cylinders).unwrap_or(i16::MAX);
            self.raw.cg_old_niblk = i16::try_from(plan.ipg).unwrap_or(i16::MAX);
            self.raw.cg_old_time = short_time(how);
            self.raw.cg_old_btotoff = int(at);
            let cylinders = plan.cylinders(plan.fpg);
            self.raw.cg_old_boff = int(at + 4 * cylinders);
            at += cylinders * (4 + 2 * plan.positions());
        }
        self.raw.cg_iusedoff = small(at);
        at += plan.ipg.div_ceil(8);
        self.raw.cg_freeoff = small(at);
        at += plan.fpg.div_ceil(8);
        if plan.contigsumsize > 0 {
            // The sums count from length 1. The unused place of the sum for 0 overlaps the map's
            // end.
            at = at.next_multiple_of(4);
            self.raw.cg_clustersumoff = small(at - 4);
            at += plan.contigsumsize * 4;
            self.raw.cg_clusteroff = small(at);
            at += (plan.fpg / plan.request.frag()).div_ceil(8);
            self.raw.cg_nclusterblks = small(plan.fragments(self.number) / plan.request.frag());
        }
        self.raw.cg_nextfreeoff = small(at);
        let sums = self.maps();
        let [dirs, blocks, inodes, fragments, _] = sums;
        self.raw.cg_cs = [dirs, blocks, inodes, fragments].map(int);
        self.raw.write(plan.request.order, &mut self.bytes);
        let hashes = plan.request.hashes;
        hashes.seal_group(plan.request.order, &mut self.bytes);
        (self.bytes, sums)
    }

    fn set(&mut self, map: u32, index: u64) {
        let at = usize_of(u64::from(map) + index / 8);
        if let Some(byte) = self.bytes.get_mut(at) {
            *byte |= 1 << (index % 8);
        }
    }

    /// Fills the maps, and returns the counts.
    fn maps(&mut self) -> Sums {
        let (plan, number) = (self.plan, self.number);
        // Inodes 0 and 1, and the root directory.
        let used = if number == 0 { 3 } else { 0 };
        for index in 0..used {
            self.set(self.raw.cg_iusedoff, index);
        }
        let (frag, count) = (plan.request.frag(), plan.fragments(number));
        let (mut blocks, mut fragments, mut clusters, mut in_row) = (0, 0, 0, 0);
        for block in 0..count.div_ceil(frag) {
            let range = block * frag..((block + 1) * frag).min(count);
            let mut free = 0;
            let mut run = 0;
            for fragment in range.clone() {
                if plan.is_free(number, fragment) {
                    self.set(self.raw.cg_freeoff, fragment);
                    free += 1;
                    run += 1;
                } else {
                    self.count_run(run);
                    run = 0;
                }
            }
            if free == frag {
                blocks += 1;
                in_row += 1;
                self.set_cluster(block);
                self.count_position(block);
            } else {
                self.count_run(run);
                fragments += free;
                clusters += self.count_cluster(in_row);
                in_row = 0;
            }
        }
        clusters += self.count_cluster(in_row);
        let dirs = u64::from(number == 0);
        [dirs, blocks, plan.ipg - used, fragments, clusters]
    }

    fn count_run(&mut self, run: usize) {
        if let Some(sum) = self.raw.cg_frsum.get_mut(run).filter(|_| run > 0) {
            *sum += 1;
        }
    }

    /// Counts a free block by cylinder and rotational position, as UFS1 does.
    fn count_position(&mut self, block: u64) {
        let request = &self.plan.request;
        if request.what == What::Ufs2 {
            return;
        }
        let disk = request.geometry.as_ref();
        let place = disk.map(|disk| disk.position(block, request.bsize));
        let (cylinder, position) = place.unwrap_or((0, 0));
        let positions = self.plan.positions();
        let order = request.order;
        let total = usize_of(4 * cylinder) + CgHeader::SIZE;
        let sum = i32::get(order, &self.bytes, total).saturating_add(1);
        sum.put(order, &mut self.bytes, total);
        let counts = usize::try_from(self.raw.cg_old_boff).unwrap_or(usize::MAX);
        let count = counts.saturating_add(usize_of(2 * (cylinder * positions + position)));
        let sum = i16::get(order, &self.bytes, count).saturating_add(1);
        sum.put(order, &mut self.bytes, count);
    }

    fn set_cluster(&mut self, block: u64) {
        if self.plan.contigsumsize > 0 {
            self.set(self.raw.cg_clusteroff, block);
        }
    }

    /// Adds a run of free blocks to the cluster summary. Returns how many clusters it is.
    fn count_cluster(&mut self, blocks: u64) -> u64 {
        if blocks == 0 || self.plan.contigsumsize == 0 {
            return 0;
        }
        let len = blocks.min(self.plan.contigsumsize);
        let at = usize_of(u64::from(self.raw.cg_clustersumoff) + 4 * len);
        let order = self.plan.request.order;
        let before = i32::get(order, &self.bytes, at);
        (before + 1).put(order, &mut self.bytes, at);
        1
    }
}

fn small(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Returns the time in 32-bit seconds since 1970, as UFS1 stores it.
fn short_time(how: &Make) -> i32 {
    i32::try_from(how.now.secs).unwrap_or(i32::MAX)
}

/// Writes zeros to a group's initialised inodes: on UFS1 all, on UFS2 the first ones. The first
/// group also gets the root directory's inode.
fn inodes(dev: &dyn BlockDevice, plan: &Plan, group: u64, how: &Make) -> Result<()> {
    let fsize = plan.request.fsize;
    let at = (plan.start(group) + plan.iblkno) * fsize;
    let written = match plan.request.what {
        What::Ufs2 => (2 * plan.request.bsize).min(plan.ipg * 256),
        _ => plan.ipg * 128,
    };
    dev.zero(at, written)?;
    if group == 0 {
        dev.write_at(at + 2 * plan.inode_size(), &root_inode(plan, how))?;
    }
    Ok(())
}

fn root_inode(plan: &Plan, how: &Make) -> Vec<u8> {
    let order = plan.request.order;
    let mut bytes = vec![0; usize_of(plan.inode_size())];
    let sectors = plan.request.fsize / 512;
    let generation = random(how.seed, 2);
    if plan.request.what == What::Ufs2 {
        let mut raw = Ufs2Dinode::zeroed();
        raw.di_mode = 0o40755;
        raw.di_nlink = 2;
        raw.di_blksize = small(plan.request.bsize);
        raw.di_size = DIRBLKSIZ as u64;
        raw.di_blocks = sectors;
        (raw.di_atime, raw.di_mtime, raw.di_ctime) = (how.now.secs, how.now.secs, how.now.secs);
        raw.di_birthtime = how.now.secs;
        raw.di_gen = generation;
        raw.di_db = std::array::from_fn(|i| if i == 0 { plan.root() } else { 0 });
        raw.write(order, &mut bytes);
        plan.request.hashes.seal_inode(order, &mut bytes);
    } else {
        let mut raw = Ufs1Dinode::zeroed();
        raw.di_mode = 0o40755;
        raw.di_nlink = 2;
        raw.di_size = DIRBLKSIZ as u64;
        let now = short_time(how);
        (raw.di_atime, raw.di_mtime, raw.di_ctime) = (now, now, now);
        raw.di_blocks = small(sectors);
        raw.di_gen = generation;
        raw.di_db = std::array::from_fn(|i| if i == 0 { small(plan.root()) } else { 0 });
        raw.write(order, &mut bytes);
    }
    bytes
}

/// Returns the root directory's first fragment. Both `.` and `..` lead to the root.
fn root_content(plan: &Plan) -> Vec<u8> {
    let order = plan.request.order;
    let mut bytes = vec![0; usize_of(plan.request.fsize)];
    for (at, reclen, name) in [(0, 12_u16, &b"."[..]), (12, 500, b"..")] {
        2_u32.put(order, &mut bytes, at);
        reclen.put(order, &mut bytes, at + 4);
        let len = name.len() as u8;
        if plan.request.what == What::Bsd43 {
            u16::from(len).put(order, &mut bytes, at + 6);
        } else {
            // `DT_DIR`.
            4_u8.put(order, &mut bytes, at + 6);
            len.put(order, &mut bytes, at + 7);
        }
        for (i, byte) in name.iter().enumerate() {
            byte.put(order, &mut bytes, at + 8 + i);
        }
    }
    bytes
}

/// Returns a number that depends on `seed` and `which` only, by the final mix of SplitMix64.
fn random(seed: u64, which: u64) -> u32 {
    let mut z = seed.wrapping_add(which.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z >> 33) as u32).max(1)
}

/// Returns the superblock for byte `at`.
fn superblock(plan: &Plan, total: Sums, at: u64, how: &Make) -> Vec<u8> {
    let mut raw = Superblock::zeroed();
    sizes(&mut raw, plan);
    let request = &plan.request;
    raw.fs_minfree = request.minfree;
    raw.fs_optim = request.optim;
    raw.fs_maxcontig = request.maxcontig;
    raw.fs_maxbpg = request.maxbpg;
    raw.fs_id = [how.now.secs as u32, random(how.seed, 1)];
    raw.fs_clean = 1;
    raw.fs_contigsumsize = int(plan.contigsumsize);
    raw.fs_avgfilesize = request.avgfilesize;
    raw.fs_avgfpdir = request.avgfpdir;
    if request.what != What::Ufs2 {
        old_fields(&mut raw, plan, total, how);
    }
    if request.what != What::Bsd43 {
        raw.fs_old_flags = FS_FLAGS_UPDATED;
        raw.fs_maxbsize = int(request.bsize);
        raw.fs_sblockloc = long(plan.sblockloc);
        raw.fs_cstotal = total.map(long);
        raw.fs_time = how.now.secs;
        raw.fs_size = long(plan.size);
        raw.fs_dsize = long(plan.dsize);
        raw.fs_csaddr = long(plan.csaddr());
        raw.fs_old_inodefmt = FS_44INODEFMT;
        raw.fs_maxsymlinklen = if request.what == What::Ufs2 { 120 } else { 60 };
    }
    if request.hashes.bits != 0 {
        raw.fs_flags |= FS_METACKHASH;
        raw.fs_metackhash = request.hashes.bits;
        raw.fs_sblockactualloc = long(at);
    }
    let mut bytes = vec![0; SBLOCKSIZE];
    if let Some(disk) = &request.geometry {
        geometry(&mut raw, &mut bytes, plan, disk);
    }
    raw.write(request.order, &mut bytes);
    if let Some(room) = bytes.get_mut(VOLNAME)
        && let Some(room) = room.get_mut(..request.label.len())
    {
        room.copy_from_slice(&request.label);
    }
    if request.hashes.bits != 0 {
        seal_made(&raw, request.order, &mut bytes);
    }
    bytes
}

fn sizes(raw: &mut Superblock, plan: &Plan) {
    let request = &plan.request;
    let (bsize, fsize, is_ufs2) = (request.bsize, request.fsize, request.what == What::Ufs2);
    let shift = |n: u64| n.trailing_zeros().cast_signed();
    raw.fs_magic = if is_ufs2 {
        FS_UFS2_MAGIC
    } else {
        FS_UFS1_MAGIC
    };
    (raw.fs_bsize, raw.fs_fsize, raw.fs_frag) = (int(bsize), int(fsize), int(request.frag()));
    (raw.fs_bmask, raw.fs_fmask) = (-int(bsize), -int(fsize));
    (raw.fs_bshift, raw.fs_fshift) = (shift(bsize), shift(fsize));
    raw.fs_fragshift = shift(request.frag());
    raw.fs_fsbtodb = shift(fsize / 512);
    raw.fs_sblkno = int(plan.sblkno);
    raw.fs_cblkno = int(plan.cblkno);
    raw.fs_iblkno = int(plan.iblkno);
    raw.fs_dblkno = int(plan.dblkno);
    raw.fs_ncg = small(plan.ncg);
    raw.fs_ipg = small(plan.ipg);
    raw.fs_fpg = int(plan.fpg);
    raw.fs_cgsize = int(plan.cgsize);
    raw.fs_cssize = int(plan.cssize);
    let superblock = (Superblock::SIZE as u64).next_multiple_of(fsize);
    raw.fs_sbsize = int(superblock.min(SBLOCKSIZE as u64));
    raw.fs_inopb = small(bsize / plan.inode_size());
    let n = bsize / if is_ufs2 { 8 } else { 4 };
    raw.fs_nindir = int(n);
    raw.fs_maxfilesize = (12 + n + n * n + n * n * n).saturating_mul(bsize) - 1;
    (raw.fs_qbmask, raw.fs_qfmask) = (long(bsize - 1), long(fsize - 1));
}

/// Stores the disk's geometry, with the rotational layout tables behind the fields.
fn geometry(raw: &mut Superblock, bytes: &mut [u8], plan: &Plan, disk: &Geometry) {
    let (bsize, fsize) = (plan.request.bsize, plan.request.fsize);
    (raw.fs_old_npsect, raw.fs_old_nsect) = (int(disk.nsect), int(disk.nsect));
    (raw.fs_old_ntrak, raw.fs_old_spc) = (int(disk.ntrak), int(disk.spc()));
    raw.fs_old_interleave = int(disk.interleave);
    raw.fs_old_trackskew = int(disk.trackskew);
    raw.fs_old_ncyl = int(plan.all_cylinders());
    raw.fs_old_cpg = int(disk.cylinders(plan.fpg, fsize));
    raw.fs_old_nrpos = int(disk.nrpos);
    let (offset, bits) = disk.spiral(bsize, fsize);
    (raw.fs_old_cgoffset, raw.fs_old_cgmask) = (int(offset), !int(bits));
    let Some(tables) = disk.tables(bsize, plan.request.order) else {
        return;
    };
    let end = Superblock::SIZE + tables.bytes.len();
    if let Some(room) = bytes.get_mut(Superblock::SIZE..end) {
        room.copy_from_slice(&tables.bytes);
    }
    raw.fs_old_cpc = int(disk.cycle(bsize));
    raw.fs_old_postbloff = int(Superblock::SIZE as u64);
    raw.fs_old_rotbloff = int((Superblock::SIZE + tables.postblsize) as u64);
    raw.fs_sbsize = int((end as u64).next_multiple_of(fsize).min(SBLOCKSIZE as u64));
}

/// Sets the fields that only UFS1 has. Without a geometry, which modern disks do not have, a group
/// is one cylinder of one track.
fn old_fields(raw: &mut Superblock, plan: &Plan, total: Sums, how: &Make) {
    let sectors = int(plan.request.fsize / 512);
    let [dirs, blocks, inodes, fragments, _] = total;
    raw.fs_old_cstotal = [dirs, blocks, inodes, fragments].map(int);
    raw.fs_old_cgmask = -1;
    raw.fs_old_time = short_time(how);
    raw.fs_old_size = int(plan.size);
    raw.fs_old_dsize = int(plan.dsize);
    raw.fs_old_rotdelay = plan.request.rotdelay;
    raw.fs_old_rps = plan.request.rps;
    raw.fs_old_nspf = sectors;
    raw.fs_old_interleave = 1;
    raw.fs_old_csaddr = int(plan.csaddr());
    raw.fs_old_ntrak = 1;
    let track = int(plan.fpg).saturating_mul(sectors);
    (raw.fs_old_npsect, raw.fs_old_nsect, raw.fs_old_spc) = (track, track, track);
    raw.fs_old_ncyl = int(plan.all_cylinders());
    raw.fs_old_cpg = 1;
    raw.fs_old_postblformat = 1;
    raw.fs_old_nrpos = 1;
    raw.fs_old_inodefmt = -1;
}
