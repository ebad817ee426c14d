//! Making an empty volume (`mkfs`).
//!
//! All is planned and checked before the first byte is written. The superblock is cleared first and
//! written last: a make that was stopped leaves no volume rather than half of one.

use crate::attached::commit::mark;
use crate::change::alloc::{store_lists, store_totals, write_list};
use crate::disk::dir;
use crate::disk::inode::{Inode, kept};
use crate::disk::ondisk::{
    BAD_INO, BLOCKS_MAX, FS_MAGIC, INODE_LEN, INODES_FROM, ISIZE, MAGIC, NICINOD, Order, ROOT_INO,
    SUPER_AT, SUPER_LEN, TYPE, Variant,
};
use crate::disk::volume::Volume;
use crate::look::info;
use crate::options;
use std::sync::Arc;
use volary_block::{Cache, CacheOptions, Stage};
use volary_core::{BlockDevice, Error, Fact, Kind, Make, Options, Result, Time};

/// Bytes of the volume for each inode.
const DENSITY: u64 = 2048;
/// How blocks follow each other in the free list, unless the user says otherwise.
const INTERLEAVE: (u64, u64) = (1, 500);
/// Bytes at the start that are cleared: where other formats are known by what lies there.
const CLEARED: u64 = 256 << 10;

/// What is to be made.
struct Plan {
    volume: Volume,
    /// Blocks that are given in turn are so far apart, in cylinders of so many.
    interleave: (u64, u64),
    label: Vec<u8>,
    pack: Vec<u8>,
    now: Time,
}

/// Makes an empty volume over the whole device: flushed when it returns.
///
/// # Errors
/// `Invalid` for an option, or for a device that is too small or too large: nothing is
/// written then. `ReadOnly`; `Io`.
pub(crate) fn make(dev: &Arc<dyn BlockDevice>, variant: Variant, how: &Make) -> Result<Vec<Fact>> {
    let geometry = dev.geometry();
    let plan = Plan::new(geometry.size, variant, how)?;
    if geometry.read_only {
        return Err(Error::note(Kind::ReadOnly, "the device is read-only"));
    }
    plan.write(dev)?;
    info::info(&**dev)
}

fn invalid(words: impl Into<String>) -> Error {
    Error::note(Kind::Invalid, words)
}

impl Plan {
    fn new(size: u64, variant: Variant, how: &Make) -> Result<Self> {
        let options = &how.options;
        options.check_known(options::MAKE)?;
        let order = order(options, variant)?;
        let bsize = block(options, variant)?;
        let blocks = size / bsize;
        if blocks > BLOCKS_MAX {
            let most = BLOCKS_MAX * bsize;
            let words = format!("the device has {size} bytes; such a volume has {most} at most");
            return Err(invalid(words));
        }
        let per_block = bsize / INODE_LEN as u64;
        let most = u64::from(u16::MAX) / per_block * per_block;
        let inodes = options
            .number("inodes")?
            .unwrap_or((size / DENSITY).min(most));
        if inodes > most {
            return Err(invalid(format!("inodes={inodes} is more than {most}")));
        }
        let first = INODES_FROM + inodes.max(per_block).div_ceil(per_block);
        // The root's block at least.
        if first + 1 > blocks {
            let words =
                format!("a device of {size} bytes is too small for {first} blocks of inodes");
            return Err(invalid(words));
        }
        let volume = volume(variant, order, bsize, first, blocks);
        Ok(Self {
            volume,
            interleave: interleave(options)?,
            label: name(how.label.as_deref().unwrap_or_default(), "label")?,
            pack: name(options.get("pack").unwrap_or_default(), "pack")?,
            now: kept(how.now),
        })
    }

    fn write(&self, dev: &Arc<dyn BlockDevice>) -> Result<()> {
        let (volume, size) = (&self.volume, dev.geometry().size);
        dev.zero(SUPER_AT, SUPER_LEN as u64)?;
        dev.flush()?;
        dev.zero(0, CLEARED.min(size))?;
        dev.zero(0, volume.first * volume.bsize)?;
        let cache = Cache::new(dev.clone(), CacheOptions::default());
        let free = write_list(&cache, volume, &self.turns())?;
        self.root(&cache)?;
        cache.commit()?;
        let mut head = volume.head.clone();
        self.superblock(&mut head, &free);
        cache.write(SUPER_AT, &head, Stage::DATA)?;
        cache.commit()
    }

    /// Returns the free blocks, in the order in which they are to be taken: within each cylinder, every
    /// m-th, then those that were passed over.
    fn turns(&self) -> Vec<u32> {
        let (step, cylinder) = self.interleave;
        let end = usize::try_from(cylinder).unwrap_or(0);
        let mut is_taken = vec![false; end];
        let (mut order, mut at) = (Vec::new(), 0);
        while order.len() < end {
            while is_taken.get(at).copied().unwrap_or(false) {
                at = (at + 1) % end;
            }
            if let Some(taken) = is_taken.get_mut(at) {
                *taken = true;
            }
            order.push(at as u64);
            at = (at + usize::try_from(step).unwrap_or(1)) % end;
        }
        // The root has the first block of data.
        let free = self.volume.first + 1..self.volume.blocks;
        let cylinders = free.start / cylinder..free.end.div_ceil(cylinder);
        let all = cylinders.flat_map(|c| order.iter().map(move |at| c * cylinder + at));
        all.filter(|block| free.contains(block))
            .filter_map(|block| u32::try_from(block).ok())
            .collect()
    }

    /// Writes the root and the file of bad blocks.
    fn root(&self, cache: &Cache) -> Result<()> {
        let volume = &self.volume;
        let first = u32::try_from(volume.first).unwrap_or(0);
        let mut root = Inode::free(volume, ROOT_INO, 0);
        (root.mode, root.nlink, root.size) = (0o040_755, 2, 32);
        if let Some(address) = root.addr.first_mut() {
            *address = first;
        }
        let mut bad = Inode::free(volume, BAD_INO, 0);
        bad.mode = 0o100_000;
        for inode in [&mut root, &mut bad] {
            inode.times = [self.now; 3];
            cache.write(inode.at, &inode.bytes(volume), Stage::DATA)?;
        }
        let mut block = vec![0; volume.block_len()];
        let dots = [&b"."[..], b".."].map(|name| dir::bytes(volume, ROOT_INO, name));
        if let Some(room) = block.get_mut(..32) {
            room.copy_from_slice(dots.as_flattened());
        }
        cache.write(volume.first * volume.bsize, &block, Stage::DATA)
    }

    fn superblock(&self, head: &mut [u8], free: &[u32]) {
        let (volume, order) = (&self.volume, self.volume.order);
        let fields = volume.variant.fields();
        let most = ROOT_INO + NICINOD as u32;
        let inodes: Vec<u32> = (ROOT_INO + 1..=volume.inodes.min(most)).rev().collect();
        store_lists(volume, head, free, &inodes);
        let blocks = volume.blocks - volume.first - 1;
        store_totals(volume, head, blocks, (volume.inodes - ROOT_INO).into());
        if volume.variant == Variant::V7 {
            let (step, cylinder) = self.interleave;
            for (at, n) in [(0, step), (2, cylinder)] {
                let n = u16::try_from(n).unwrap_or(0);
                order.put16(head, fields.interleave + at, n);
            }
        }
        for (at, text) in [(fields.fname, &self.label), (fields.fpack, &self.pack)] {
            if let Some(room) = head.get_mut(at..at + text.len()) {
                room.copy_from_slice(text);
            }
        }
        mark(volume, head, true, self.now);
    }
}

/// Returns a volume of that shape, with a superblock that says no more than that.
fn volume(variant: Variant, order: Order, bsize: u64, first: u64, blocks: u64) -> Volume {
    let mut head = vec![0; SUPER_LEN];
    order.put16(&mut head, ISIZE, u16::try_from(first).unwrap_or(0));
    let fsize = u32::try_from(blocks).unwrap_or(0);
    order.put32(&mut head, variant.fields().fsize, fsize);
    if variant == Variant::SysV {
        order.put32(&mut head, MAGIC, FS_MAGIC);
        order.put32(&mut head, TYPE, (bsize / 256).trailing_zeros());
    }
    Volume::of_head(head, variant, order, bsize)
}

fn order(options: &Options, variant: Variant) -> Result<Order> {
    let all = [
        ("pdp", Order::Pdp),
        ("little", Order::Little),
        ("big", Order::Big),
    ];
    let chosen = options.choice("order", &all)?;
    match (variant, chosen) {
        (Variant::V7, None) => Ok(Order::Pdp),
        (Variant::SysV, None) => Ok(Order::Little),
        (Variant::V7, Some(Order::Big)) => {
            Err(invalid("a v7 volume has order=pdp or order=little"))
        }
        (Variant::SysV, Some(Order::Pdp)) => {
            Err(invalid("a sysv volume has order=little or order=big"))
        }
        (_, Some(order)) => Ok(order),
    }
}

fn block(options: &Options, variant: Variant) -> Result<u64> {
    match (variant, options.number("block")?) {
        (Variant::V7, None | Some(512)) => Ok(512),
        (Variant::V7, Some(n)) => Err(invalid(format!(
            "block={n}: a v7 volume has blocks of 512 bytes; sysv has longer ones"
        ))),
        (Variant::SysV, None) => Ok(1024),
        (Variant::SysV, Some(n @ (512 | 1024 | 2048))) => Ok(n),
        (Variant::SysV, Some(n)) => Err(invalid(format!(
            "block={n}: a sysv volume has blocks of 512, 1024 or 2048 bytes"
        ))),
    }
}

fn interleave(options: &Options) -> Result<(u64, u64)> {
    let Some(text) = options.get("interleave") else {
        return Ok(INTERLEAVE);
    };
    let numbers = text.split_once('/').and_then(|(step, cylinder)| {
        let step: u64 = step.parse().ok()?;
        Some((step, cylinder.parse().ok()?))
    });
    numbers
        .filter(|&(step, cylinder)| (1..=500).contains(&cylinder) && (1..=cylinder).contains(&step))
        .ok_or_else(|| {
            let words = format!("interleave={text}: M/N with N up to 500, M up to N, as 3/500");
            invalid(words)
        })
}

/// Returns a name of six bytes at most, as the superblock keeps it.
pub(crate) fn name(text: &str, what: &str) -> Result<Vec<u8>> {
    let bytes = text.as_bytes();
    if bytes.len() > 6 || !bytes.iter().all(|b| (0x20..0x7f).contains(b)) {
        return Err(invalid(format!(
            "a {what} has six ASCII characters at most"
        )));
    }
    Ok(bytes.to_vec())
}
