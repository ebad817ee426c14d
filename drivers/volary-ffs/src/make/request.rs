//! The user's request, with each option checked by itself.

use super::geometry::Geometry;
use crate::disk::hash::Hashes;
use crate::disk::ondisk::Order;
use crate::parameters::values::{invalid, label, small};
use volary_core::{Make, OptionSpec, Options, Result};

const fn spec(name: &'static str, value: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, value, help }
}

/// The options of `newfs`.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    spec(
        "block",
        "SIZE",
        "bytes of a block, 4096 to 65536 (default: 4096 below 20 MiB, 8192 below 1 GiB, 16384)",
    ),
    spec(
        "fragment",
        "SIZE",
        "bytes of a fragment: a block, or a half, fourth or eighth of one (default: an eighth)",
    ),
    spec(
        "density",
        "SIZE",
        "bytes of the volume for each inode (default: four fragments)",
    ),
    spec(
        "group",
        "NUMBER",
        "fragments of a cylinder group (default: as many as its maps have room for, in at least \
         four groups)",
    ),
    spec("minfree", "PERCENT", "kept free for root (default 10)"),
    spec(
        "optim",
        "time|space",
        "what is saved where room is short (default: time, space below 8 percent kept free)",
    ),
    spec(
        "maxcontig",
        "NUMBER",
        "blocks that are put in a row (default: 64k's worth)",
    ),
    spec(
        "maxbpg",
        "NUMBER",
        "blocks that a file takes of a group before it goes to another (default: as an indirect \
         block has pointers)",
    ),
    spec(
        "rotdelay",
        "MS",
        "time to begin a transfer, for blocks in a row (ffs1; default 0)",
    ),
    spec(
        "rps",
        "NUMBER",
        "revolutions of the disk a second (ffs1; default 60)",
    ),
    spec(
        "nsect",
        "NUMBER",
        "sectors of a track, for disks whose blocks come under the heads at known times (ffs1; \
         with ntrak)",
    ),
    spec("ntrak", "NUMBER", "tracks of a cylinder (ffs1; with nsect)"),
    spec(
        "cpg",
        "NUMBER",
        "cylinders of a group, in place of group= (ffs1; default 16, or as many as fit)",
    ),
    spec(
        "interleave",
        "NUMBER",
        "sectors that pass from one to that with the next number (ffs1; default 1)",
    ),
    spec(
        "trackskew",
        "NUMBER",
        "sectors by which a track begins later than the one before (ffs1; default 0)",
    ),
    spec(
        "nrpos",
        "NUMBER",
        "rotational positions that are told apart (ffs1; default 8)",
    ),
    spec(
        "avgfilesize",
        "SIZE",
        "what files are expected to have (default 16k)",
    ),
    spec(
        "avgfpdir",
        "NUMBER",
        "files expected in a directory (default 64)",
    ),
    spec(
        "quota",
        "",
        "counts what users and groups take, so that 'volary quota' can bound it",
    ),
    spec(
        "hashes",
        "",
        "keeps FreeBSD's check hashes of superblocks, groups and inodes (ffs2); device numbers are \
         FreeBSD's then",
    ),
    spec("order", "little|big", "byte order (default little)"),
    spec(
        "old",
        "",
        "4.3BSD's format: owners of 16 bits, entries without types (ffs1)",
    ),
];

/// The format to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Bsd43,
    Ufs1,
    Ufs2,
}

/// The user's request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) what: What,
    pub(super) order: Order,
    pub(super) bsize: u64,
    pub(super) fsize: u64,
    pub(super) density: u64,
    pub(super) group: Option<u64>,
    pub(super) minfree: i32,
    pub(super) optim: i32,
    pub(super) maxcontig: i32,
    pub(super) maxbpg: i32,
    pub(super) rotdelay: i32,
    pub(super) rps: i32,
    pub(super) geometry: Option<Geometry>,
    pub(super) avgfilesize: u32,
    pub(super) avgfpdir: u32,
    pub(super) quota: bool,
    pub(super) hashes: Hashes,
    pub(super) label: Vec<u8>,
}

impl Request {
    /// Reads the options.
    ///
    /// # Errors
    /// `Invalid`.
    pub(super) fn new(is_ufs2: bool, size: u64, how: &Make) -> Result<Self> {
        let options = &how.options;
        options.check_known(OPTIONS)?;
        let what = match (is_ufs2, options.flag("old", false)?) {
            (true, true) => return Err(invalid("option 'old' is for ffs1")),
            (true, false) => What::Ufs2,
            (false, true) => What::Bsd43,
            (false, false) => What::Ufs1,
        };
        let (bsize, fsize) = sizes(options, size)?;
        let minfree = small(options, "minfree", 0..=99)?.unwrap_or(10);
        let by_room = if minfree < 8 { 1 } else { 0 };
        let pointer = if is_ufs2 { 8 } else { 4 };
        // At most 65536 each, because the block's size has been checked.
        let in_row = i32::try_from(65_536 / bsize).unwrap_or(1).max(1);
        let pointers = i32::try_from(bsize / pointer).unwrap_or(1);
        let orders = [("little", Order::Little), ("big", Order::Big)];
        Ok(Self {
            what,
            order: options.choice("order", &orders)?.unwrap_or(Order::Little),
            bsize,
            fsize,
            density: options.number("density")?.unwrap_or(4 * fsize).max(1),
            group: options.number("group")?,
            minfree,
            optim: options
                .choice("optim", &[("time", 0), ("space", 1)])?
                .unwrap_or(by_room),
            maxcontig: small(options, "maxcontig", 1..=1 << 20)?.unwrap_or(in_row),
            maxbpg: small(options, "maxbpg", 1..=1 << 30)?.unwrap_or(pointers),
            rotdelay: small(options, "rotdelay", 0..=1000)?.unwrap_or(0),
            rps: small(options, "rps", 1..=10_000)?.unwrap_or(60),
            geometry: geometry(options, is_ufs2)?,
            avgfilesize: small(options, "avgfilesize", 1..=1 << 30)?
                .unwrap_or(16_384)
                .cast_unsigned(),
            avgfpdir: small(options, "avgfpdir", 1..=1 << 30)?
                .unwrap_or(64)
                .cast_unsigned(),
            quota: options.flag("quota", false)?,
            hashes: hashes(options, is_ufs2)?,
            label: match how.label.as_deref().unwrap_or_default() {
                "" => Vec::new(),
                _ if what == What::Bsd43 => {
                    return Err(invalid("4.3BSD's format keeps no label"));
                }
                text => label(text)?,
            },
        })
    }

    /// Returns the fragments of a block.
    pub(super) fn frag(&self) -> u64 {
        self.bsize / self.fsize
    }
}

/// Returns which check hashes are to be kept.
fn hashes(options: &Options, is_ufs2: bool) -> Result<Hashes> {
    match (options.flag("hashes", false)?, is_ufs2) {
        (true, false) => Err(invalid("option 'hashes' is for ffs2")),
        (true, true) => Ok(Hashes::all()),
        (false, _) => Ok(Hashes::default()),
    }
}

/// Returns the disk's geometry, if the options describe one.
fn geometry(options: &Options, is_ufs2: bool) -> Result<Option<Geometry>> {
    let geometry = Geometry::new(options)?;
    if geometry.is_some() && is_ufs2 {
        return Err(invalid("ffs2 knows no disks' geometry: ffs1 does"));
    }
    if geometry.is_some() && options.get("group").is_some() {
        let words = "a group is of cpg= cylinders or of group= fragments, not both";
        return Err(invalid(words));
    }
    Ok(geometry)
}

/// Returns the sizes of a block and of a fragment.
fn sizes(options: &Options, size: u64) -> Result<(u64, u64)> {
    let by_size = match size >> 20 {
        0..20 => 4096,
        20..1024 => 8192,
        _ => 16_384,
    };
    let bsize = options.number("block")?;
    let asked = options.number("fragment")?;
    let bsize = bsize.unwrap_or_else(|| by_size.max(asked.unwrap_or(0)));
    if !bsize.is_power_of_two() || !(4096..=65_536).contains(&bsize) {
        return Err(invalid(format!(
            "block={bsize}: a power of two, 4096 to 65536"
        )));
    }
    let fsize = asked.unwrap_or(bsize / 8);
    let least = bsize / 8;
    if !fsize.is_power_of_two() || !(least..=bsize).contains(&fsize) {
        return Err(invalid(format!(
            "fragment={fsize}: a power of two, {least} to {bsize}"
        )));
    }
    Ok((bsize, fsize))
}
