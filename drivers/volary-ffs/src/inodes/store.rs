//! Stores inodes: the reverse of parsing them.

use crate::disk::ondisk::{Order, Stored, UFS1_DB, UFS2_DB};
use crate::disk::volume::{Variant, Volume};
use crate::inodes::inode::Inode;
use volary_core::Time;

/// What an inode stores in the place of block pointers.
pub(crate) enum Instead<'a> {
    /// A short symlink's target.
    Target(&'a [u8]),
    /// A device's number.
    Device(u64),
}

/// Returns the resolution of time stamps in nanoseconds: a second on 4.3BSD.
pub(crate) fn time_step(variant: Variant) -> u64 {
    match variant {
        Variant::Bsd43 => 1_000_000_000,
        _ => 1,
    }
}

/// Returns a time as the variant stores it: rounded down, and clamped to its range.
pub(crate) fn kept(variant: Variant, time: Time) -> Time {
    if variant == Variant::Ufs2 {
        return time;
    }
    let secs = time.secs.clamp(i32::MIN.into(), i32::MAX.into());
    let whole = secs == time.secs;
    Time::new(secs, if whole { time.nanos } else { 0 }).round_down(time_step(variant))
}

impl Inode {
    /// Returns a free inode with this generation.
    pub(crate) fn free(volume: &Volume, ino: u32, at: u64, generation: u32) -> Self {
        let len = usize::try_from(volume.inode_size()).unwrap_or(0);
        let mut inode = Self::parse(volume, ino, at, &vec![0; len]);
        inode.generation = generation;
        inode.store(volume);
        inode
    }

    /// Stores the fields in the bytes.
    pub(crate) fn store(&mut self, volume: &Volume) {
        let mut bytes = self.bytes;
        self.mode.put(volume.order, &mut bytes, 0);
        self.nlink.put(volume.order, &mut bytes, 2);
        match volume.variant {
            Variant::Ufs2 => self.store_ufs2(volume.order, &mut bytes),
            variant => self.store_ufs1(volume.order, variant, &mut bytes),
        }
        volume.hashes.seal_inode(volume.order, &mut bytes);
        self.bytes = bytes;
    }

    fn store_ufs1(&self, order: Order, variant: Variant, bytes: &mut [u8]) {
        let short = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
        let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        self.size.put(order, bytes, 8);
        for (time, at) in self.times.iter().zip([16, 24, 32]) {
            i32::try_from(time.secs).unwrap_or(0).put(order, bytes, at);
            time.nanos.put(order, bytes, at + 4);
        }
        if variant == Variant::Bsd43 {
            [short(self.uid), short(self.gid)].put(order, bytes, 4);
        } else {
            [self.uid, self.gid].put(order, bytes, 112);
        }
        self.db.map(small).put(order, bytes, UFS1_DB);
        self.ib.map(small).put(order, bytes, UFS1_DB + 48);
        self.flags.put(order, bytes, 100);
        small(self.blocks).put(order, bytes, 104);
        self.generation.put(order, bytes, 108);
    }

    fn store_ufs2(&self, order: Order, bytes: &mut [u8]) {
        [self.uid, self.gid].put(order, bytes, 4);
        self.size.put(order, bytes, 16);
        self.blocks.put(order, bytes, 24);
        let [atime, mtime, ctime] = self.times;
        let birth = self.birth.unwrap_or(Time::EPOCH);
        [atime, mtime, ctime, birth]
            .map(|time| time.secs)
            .put(order, bytes, 32);
        [mtime, atime, ctime, birth]
            .map(|time| time.nanos)
            .put(order, bytes, 64);
        self.generation.put(order, bytes, 80);
        self.flags.put(order, bytes, 88);
        self.extsize.put(order, bytes, 92);
        self.extb.put(order, bytes, 96);
        self.db.put(order, bytes, UFS2_DB);
        self.ib.put(order, bytes, UFS2_DB + 96);
    }

    /// Stores something in the place of the block pointers.
    pub(crate) fn put_instead(&mut self, volume: &Volume, what: &Instead<'_>) {
        self.store(volume);
        let db = match volume.variant {
            Variant::Ufs2 => UFS2_DB,
            _ => UFS1_DB,
        };
        match what {
            Instead::Target(target) => {
                if let Some(room) = self.bytes.get_mut(db..db + target.len()) {
                    room.copy_from_slice(target);
                }
            }
            Instead::Device(number) if volume.variant == Variant::Ufs2 => {
                number.put(volume.order, &mut self.bytes, db);
            }
            Instead::Device(number) => {
                let number = u32::try_from(*number).unwrap_or(0);
                number.put(volume.order, &mut self.bytes, db);
            }
        }
        *self = Self::parse(volume, self.ino, self.at, &self.bytes);
    }
}
