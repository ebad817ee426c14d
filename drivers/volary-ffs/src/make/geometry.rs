//! Disks with a geometry of sectors, tracks and cylinders (sections 3.1 and 3.3 of the paper), and
//! the rotational layout tables.

use crate::disk::ondisk::{Order, SBLOCKSIZE, Stored, Superblock};
use crate::parameters::values::{invalid, small};
use volary_core::{Options, Result};

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// The geometry of a disk, which tells when its blocks pass under the heads.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    /// Sectors per track, and tracks per cylinder.
    pub(super) nsect: u64,
    pub(super) ntrak: u64,
    /// Cylinders per group, if the user gave them.
    pub(super) cpg: Option<u64>,
    /// How sectors are numbered round a track, and by how many sectors the next track is shifted.
    pub(super) interleave: u64,
    pub(super) trackskew: u64,
    /// The number of rotational positions that are distinguished.
    pub(super) nrpos: u64,
}

/// The layout tables of a superblock.
pub(super) struct Tables {
    /// `fs_postbl`, then `fs_rotbl`, which stand behind the superblock's fields.
    pub(super) bytes: Vec<u8>,
    /// The length of `fs_postbl` in bytes.
    pub(super) postblsize: usize,
}

impl Geometry {
    /// Returns the geometry, or `None` if the user gave none.
    ///
    /// # Errors
    /// `Invalid`.
    pub(super) fn new(options: &Options) -> Result<Option<Self>> {
        let number = |name, range| -> Result<Option<u64>> {
            let found = small(options, name, range)?;
            Ok(found.map(|n| n.unsigned_abs().into()))
        };
        let (nsect, ntrak) = (number("nsect", 1..=4096)?, number("ntrak", 1..=4096)?);
        let rest = ["cpg", "interleave", "trackskew", "nrpos"];
        let (nsect, ntrak) = match (nsect, ntrak) {
            (Some(nsect), Some(ntrak)) => (nsect, ntrak),
            (None, None) if rest.iter().all(|name| options.get(name).is_none()) => return Ok(None),
            _ => return Err(invalid("a disk's geometry takes both nsect= and ntrak=")),
        };
        let cpg = number("cpg", 2..=4096)?;
        let interleave = number("interleave", 1..=nsect)?;
        let trackskew = number("trackskew", 0..=nsect - 1)?;
        let nrpos = number("nrpos", 1..=nsect.min(256))?;
        Ok(Some(Self {
            nsect,
            ntrak,
            cpg,
            interleave: interleave.unwrap_or(1),
            trackskew: trackskew.unwrap_or(0),
            nrpos: nrpos.unwrap_or(nsect.min(8)),
        }))
    }

    /// Returns the sectors of a cylinder.
    pub(super) fn spc(&self) -> u64 {
        self.nsect * self.ntrak
    }

    /// Returns the number of cylinders after which the layout of blocks repeats (`fs_cpc`). This
    /// many cylinders hold a whole number of blocks.
    pub(super) fn cycle(&self, bsize: u64) -> u64 {
        let sectors = bsize / SECTOR;
        let shared = self.spc().trailing_zeros().min(sectors.trailing_zeros());
        sectors >> shared
    }

    /// Returns the fragments of `cylinders` cylinders, which must be a multiple of a cycle.
    pub(super) fn fragments(&self, cylinders: u64, fsize: u64) -> u64 {
        cylinders * self.spc() / (fsize / SECTOR)
    }

    /// Returns how many cylinders this many fragments take. The last one may be partly used.
    pub(super) fn cylinders(&self, fragments: u64, fsize: u64) -> u64 {
        (fragments * (fsize / SECTOR)).div_ceil(self.spc())
    }

    /// Returns `fs_cgoffset` in fragments, about a track's worth, and the bits of `fs_cgmask` that
    /// are 0. With these, each group's structures begin on another platter surface.
    pub(super) fn spiral(&self, bsize: u64, fsize: u64) -> (u64, u64) {
        let track = self.nsect.div_ceil(fsize / SECTOR);
        let offset = track.next_multiple_of(bsize / fsize);
        (offset, self.ntrak.next_power_of_two() - 1)
    }

    /// Returns the cylinder and the rotational position of a block of a group (`cbtocylno`,
    /// `cbtorpos`).
    pub(super) fn position(&self, block: u64, bsize: u64) -> (u64, u64) {
        let sector = block * (bsize / SECTOR);
        let (cylinder, within) = (sector / self.spc(), sector % self.spc());
        let skew = within / self.nsect * self.trackskew;
        let angle = (skew + within % self.nsect * self.interleave) % self.nsect;
        (cylinder, angle * self.nrpos / self.nsect)
    }

    /// Returns the rotational tables. The first has, for each cylinder of a cycle and each
    /// position, the first block there, or -1. The second has, for each block, how many blocks
    /// farther the next one at its position is, or 0.
    ///
    /// Returns `None` if the tables do not fit behind the superblock's fields, or a cylinder has
    /// only one track.
    pub(super) fn tables(&self, bsize: u64, order: Order) -> Option<Tables> {
        let cycle = self.cycle(bsize);
        let blocks = cycle * self.spc() / (bsize / SECTOR);
        let postblsize = usize::try_from(cycle * self.nrpos * 2).ok()?;
        let len = postblsize + usize::try_from(blocks).ok()?;
        let is_near = self.nsect <= 256 * (bsize / SECTOR);
        if self.ntrak == 1 || Superblock::SIZE + len > SBLOCKSIZE || !is_near {
            return None;
        }
        let mut bytes = vec![0; len];
        for place in 0..postblsize / 2 {
            (-1_i16).put(order, &mut bytes, 2 * place);
        }
        for block in (0..blocks).rev() {
            let (cylinder, position) = self.position(block, bsize);
            let place = usize::try_from(cylinder * self.nrpos + position).ok()?;
            let next = i16::get(order, &bytes, 2 * place);
            let this = i16::try_from(block).ok()?;
            if next >= 0 {
                let at = postblsize + usize::try_from(block).ok()?;
                u8::try_from(next - this).ok()?.put(order, &mut bytes, at);
            }
            this.put(order, &mut bytes, 2 * place);
        }
        Some(Tables { bytes, postblsize })
    }
}
