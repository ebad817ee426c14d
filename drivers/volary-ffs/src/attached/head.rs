//! The first superblock of an attached volume, in the form in which it is written.

use crate::disk::ondisk::{FS_METACKHASH, Stored, Superblock, sb};
use crate::disk::volume::Volume;
use crate::groups::summary::Sums;
use crate::parameters::tune::Changes;
use volary_core::Time;

/// The first superblock, in the form in which it is written.
pub(crate) struct Head {
    pub(crate) at: u64,
    bytes: Vec<u8>,
}

impl Head {
    pub(crate) fn new(volume: &Volume) -> Self {
        Self {
            at: volume.found.at,
            bytes: volume.found.bytes.clone(),
        }
    }

    /// Marks the volume as cleanly left or not.
    pub(crate) fn set_clean(&mut self, volume: &Volume, clean: bool) {
        i8::from(clean).put(volume.order, &mut self.bytes, sb::CLEAN);
        0_i8.put(volume.order, &mut self.bytes, sb::FMOD);
        if volume.is_freebsd {
            // A hash that is not kept up to date must not be marked as kept.
            let kept = volume.hashes.bits;
            let flags = volume.found.raw.fs_flags & !FS_METACKHASH;
            let flags = flags | if kept == 0 { 0 } else { FS_METACKHASH };
            flags.put(volume.order, &mut self.bytes, sb::FLAGS);
            kept.put(volume.order, &mut self.bytes, sb::METACKHASH);
        }
    }

    /// Returns the bytes to write, with their check hash.
    pub(crate) fn sealed(&mut self, volume: &Volume) -> &[u8] {
        volume
            .hashes
            .seal_superblock(volume.order, self.at, &mut self.bytes);
        &self.bytes
    }

    /// Returns whether this superblock says that the volume was cleanly left.
    pub(crate) fn is_clean(&self) -> bool {
        self.bytes.get(sb::CLEAN).is_some_and(|byte| byte & 1 == 1)
    }

    /// Applies changed parameters. Returns all fields.
    pub(crate) fn change(&mut self, volume: &Volume, changes: &Changes) -> Superblock {
        let mut raw = Superblock::read(volume.order, &self.bytes);
        changes.apply(&mut raw);
        raw.write(volume.order, &mut self.bytes);
        raw
    }

    /// Stores the total of the groups' sums.
    pub(crate) fn set_total(&mut self, volume: &Volume, total: Sums) {
        put_total(volume, &mut self.bytes, total);
    }

    /// Stores the total of the groups' sums and the time.
    pub(crate) fn set_sums(&mut self, volume: &Volume, total: Sums, now: Time) {
        self.set_total(volume, total);
        if !volume.found.is_ufs2 {
            let secs = i32::try_from(now.secs).unwrap_or(0);
            secs.put(volume.order, &mut self.bytes, sb::OLD_TIME);
        }
        if volume.found.is_ufs2 || volume.found.has_new_fields() {
            now.secs.put(volume.order, &mut self.bytes, sb::TIME);
        }
    }
}

/// Stores the total of directories, free blocks, free inodes and free fragments in a superblock.
fn put_total(volume: &Volume, bytes: &mut [u8], total: Sums) {
    let small = total.map(|n| i32::try_from(n).unwrap_or(i32::MAX));
    if !volume.found.is_ufs2 {
        small.put(volume.order, bytes, sb::OLD_CSTOTAL);
    }
    if volume.found.is_ufs2 || volume.found.has_new_fields() {
        total.put(volume.order, bytes, sb::CSTOTAL);
    }
}
