//! Putting bad blocks aside: they become content of inode 1, as the Seventh Edition's mkfs has it,
//! so that nothing else is put there.

use crate::attached::commit::mark;
use crate::attached::operations::{Attached, LOOK_MEMORY, cache};
use crate::change::alloc::{each_free, store_lists, store_totals, write_list};
use crate::disk::blocks::{Reader, Walker};
use crate::disk::inode::Inode;
use crate::disk::ondisk::{BAD_INO, DIRECT, SUPER_AT};
use crate::disk::volume::Volume;
use std::collections::BTreeSet;
use std::sync::Arc;
use volary_block::Stage;
use volary_core::{Attach, BlockDevice, Error, Fact, Kind, Result, Time};

/// Puts the blocks aside that hold these sectors of 512 bytes.
///
/// # Errors
/// `Invalid` for a sector that holds no data; `Busy` for one that holds what is a file's; nothing is
/// done then. `ReadOnly` for a volume that takes no changes, with why; `NoSpace`; `Corrupt`; `Io`.
pub(crate) fn mark_bad(dev: Arc<dyn BlockDevice>, sectors: &[u64]) -> Result<Vec<Fact>> {
    let attached = Attached::new(dev.clone(), &Attach::default())?;
    attached.check_writable()?;
    let volume = &attached.volume;
    let cache = cache(dev, LOOK_MEMORY);
    let reader = Reader {
        cache: &cache,
        volume,
    };
    let inode = reader.inode_as_it_is(BAD_INO.into())?;
    let mut bad = there(&reader, &inode)?;
    let known = bad.len();
    let mut wanted = BTreeSet::new();
    for &sector in sectors {
        let block = block_of(volume, sector)?;
        if !bad.contains(&block) {
            wanted.insert(block);
        }
    }
    let mut free = Vec::new();
    each_free(&reader, &mut |block| {
        free.push(block);
        Ok(())
    })?;
    let before = free.len();
    free.retain(|block| !wanted.contains(block));
    if before - free.len() != wanted.len() {
        let words = "a sector is of what a file holds; nothing was put aside";
        return Err(Error::note(Kind::Busy, words));
    }
    bad.extend(&wanted);
    put_aside(&reader, inode, &bad, free)?;
    Ok(vec![
        Fact::number("sectors given", sectors.len() as u64, ""),
        Fact::number("blocks put aside", wanted.len() as u64, ""),
        Fact::number("there before", known as u64, ""),
    ])
}

/// Returns the block that a sector is in, if it is one for data.
fn block_of(volume: &Volume, sector: u64) -> Result<u32> {
    let block = sector.saturating_mul(512) / volume.bsize;
    let data = volume.data();
    match u32::try_from(block) {
        Ok(number) if data.contains(&block) => Ok(number),
        _ => {
            let words = format!(
                "sector {sector} is in none of the blocks for data: {} to {}",
                data.start,
                data.end - 1
            );
            Err(Error::note(Kind::Invalid, words))
        }
    }
}

/// Returns the blocks that are aside already.
fn there(reader: &Reader<'_>, inode: &Inode) -> Result<Vec<u32>> {
    let mut walker = Walker::new(*reader, inode);
    let mut all = Vec::new();
    for lbn in 0..most(reader.volume) {
        let (block, _) = walker.next(lbn)?;
        if block != 0 {
            all.push(block);
        }
    }
    Ok(all)
}

/// Returns blocks that can be aside: those that one indirect block leads to.
fn most(volume: &Volume) -> u64 {
    DIRECT as u64 + volume.pointers()
}

/// Writes inode 1 and the free list anew. What a power cut leaves is mended as after other cuts:
/// the list is made anew of what no inode has.
fn put_aside(reader: &Reader<'_>, old: Inode, bad: &[u32], mut free: Vec<u32>) -> Result<()> {
    let (cache, volume) = (reader.cache, reader.volume);
    if bad.len() as u64 > most(volume) {
        return Err(Error::note(
            Kind::NoSpace,
            "there is no room for more bad blocks",
        ));
    }
    let mut head = volume.head.clone();
    let time = Time::from_secs(
        volume
            .order
            .get32(&head, volume.variant.fields().time)
            .into(),
    );
    mark(volume, &mut head, false, time);
    cache.write(SUPER_AT, &head, Stage::DATA)?;
    cache.commit()?;
    let mut inode = old;
    let (direct, rest) = bad.split_at(bad.len().min(DIRECT));
    for (to, from) in inode.addr.iter_mut().zip(direct) {
        *to = *from;
    }
    if !rest.is_empty()
        && let Some(address) = inode.addr.get_mut(DIRECT)
    {
        if *address == 0 {
            *address = free.pop().ok_or(Kind::NoSpace)?;
        }
        let mut bytes = vec![0; volume.block_len()];
        for (i, block) in rest.iter().enumerate() {
            volume.order.put32(&mut bytes, 4 * i, *block);
        }
        let at = u64::from(*address) * volume.bsize;
        cache.write(at, &bytes, Stage::DATA)?;
    }
    inode.mode = 0o100_000;
    inode.size = bad.len() as u64 * volume.bsize;
    cache.write(inode.at, &inode.bytes(volume), Stage::DATA)?;
    cache.commit()?;
    let list = write_list(cache, volume, &free)?;
    let inodes: Vec<u32> = volume.inode_list().into_iter().map(u32::from).collect();
    store_lists(volume, &mut head, &list, &inodes);
    let (_, inodes) = volume.totals();
    store_totals(volume, &mut head, free.len() as u64, inodes.into());
    mark(volume, &mut head, true, time);
    cache.write(SUPER_AT, &head, Stage::DATA)?;
    cache.commit()
}
