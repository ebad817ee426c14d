//! FreeBSD's check hashes of UFS2: of superblocks, of cylinder groups' heads with their maps, and
//! of inodes in use. The hash is a CRC-32C that starts from all ones and is not inverted at the
//! end. The hash field itself counts as 0.

use crate::disk::ondisk::{
    CK_CYLGRP, CK_INODE, CK_SUPERBLOCK, CK_SUPPORTED, Order, Stored, Superblock, sb,
};
use crate::disk::superblock::Found;
use volary_core::{Error, Result};

/// Byte offsets of `cg_ckhash` and `di_ckhash`.
const CG_CKHASH: usize = 132;
const DI_CKHASH: usize = 244;

/// Which structures of a volume have check hashes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hashes {
    /// Bits of `fs_metackhash`.
    pub(crate) bits: u32,
    /// Structures with a wrong hash are accepted. A check sets this, because it reports wrong
    /// hashes itself.
    pub(crate) is_lenient: bool,
}

impl Hashes {
    /// Returns the hashes that a superblock says are kept.
    pub(crate) fn of(found: &Found) -> Self {
        Self {
            bits: found.kept_hashes(),
            is_lenient: false,
        }
    }

    /// Returns all known hashes.
    pub(crate) fn all() -> Self {
        Self {
            bits: CK_SUPPORTED,
            is_lenient: false,
        }
    }

    fn has(self, what: u32) -> bool {
        self.bits & what != 0
    }

    /// Stores the hash in a superblock's bytes, which are to stand at byte `at`. Also stores that
    /// place, if the superblock has a field for it.
    pub(crate) fn seal_superblock(self, order: Order, at: u64, bytes: &mut [u8]) {
        if !self.has(CK_SUPERBLOCK) {
            return;
        }
        if i64::get(order, bytes, sb::SBLOCKACTUALLOC) != 0 {
            let at = i64::try_from(at).unwrap_or(0);
            at.put(order, bytes, sb::SBLOCKACTUALLOC);
        }
        seal(order, bytes, sb::CKHASH);
    }

    /// Stores a group's hash in its bytes.
    pub(crate) fn seal_group(self, order: Order, bytes: &mut [u8]) {
        if self.has(CK_CYLGRP) {
            seal(order, bytes, CG_CKHASH);
        }
    }

    /// Returns whether a group's hash is right. It is if none is kept.
    pub(crate) fn is_group_right(self, order: Order, bytes: &[u8]) -> bool {
        !self.has(CK_CYLGRP) || is_right(order, bytes, CG_CKHASH)
    }

    /// Checks a group's hash, unless wrong ones are accepted.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_group(self, order: Order, at: u64, bytes: &[u8]) -> Result<()> {
        match self.is_lenient || self.is_group_right(order, bytes) {
            true => Ok(()),
            false => Err(wrong("cg_ckhash", order, at, bytes, CG_CKHASH)),
        }
    }

    /// Stores an inode's hash in its bytes. The hash of a free inode does not matter.
    pub(crate) fn seal_inode(self, order: Order, bytes: &mut [u8]) {
        if self.has(CK_INODE) && is_in_use(order, bytes) {
            seal(order, bytes, DI_CKHASH);
        }
    }

    /// Returns whether an inode's hash is right. It is if none is kept.
    pub(crate) fn is_inode_right(self, order: Order, bytes: &[u8]) -> bool {
        !self.has(CK_INODE) || !is_in_use(order, bytes) || is_right(order, bytes, DI_CKHASH)
    }

    /// Checks an inode's hash, unless wrong ones are accepted.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_inode(self, order: Order, at: u64, bytes: &[u8]) -> Result<()> {
        match self.is_lenient || self.is_inode_right(order, bytes) {
            true => Ok(()),
            false => Err(wrong("di_ckhash", order, at, bytes, DI_CKHASH)),
        }
    }
}

/// Stores the hash in the bytes of a new superblock.
pub(crate) fn seal_made(raw: &Superblock, order: Order, bytes: &mut [u8]) {
    let len = usize::try_from(raw.fs_sbsize).unwrap_or(0);
    if let Some(bytes) = bytes.get_mut(..len) {
        seal(order, bytes, sb::CKHASH);
    }
}

/// Returns whether a superblock's hash is right. It is if none is kept.
pub(crate) fn is_superblock_right(found: &Found) -> bool {
    let is_kept = Hashes::of(found).has(CK_SUPERBLOCK);
    !is_kept || is_right(found.order, &found.bytes, sb::CKHASH)
}

/// Checks a superblock's hash.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn check_superblock(found: &Found) -> Result<()> {
    match is_superblock_right(found) {
        true => Ok(()),
        false => {
            let (order, bytes) = (found.order, &found.bytes);
            Err(wrong("fs_ckhash", order, found.at, bytes, sb::CKHASH))
        }
    }
}

fn is_in_use(order: Order, bytes: &[u8]) -> bool {
    u16::get(order, bytes, 0) != 0
}

/// Returns the error for the hash in the field at byte `field` of a structure at byte `at` of the
/// device.
fn wrong(name: &'static str, order: Order, at: u64, bytes: &[u8], field: usize) -> Error {
    let found = format!("{:#x}", u32::get(order, bytes, field));
    let expected = format!("{:#x}; fsck makes it anew", hash(bytes, field));
    Error::corrupt(name, at.saturating_add(field as u64), found, expected)
}

fn seal(order: Order, bytes: &mut [u8], field: usize) {
    hash(bytes, field).put(order, bytes, field);
}

fn is_right(order: Order, bytes: &[u8], field: usize) -> bool {
    u32::get(order, bytes, field) == hash(bytes, field)
}

/// Returns the hash of a structure whose hash field is at byte `field`.
fn hash(bytes: &[u8], field: usize) -> u32 {
    let before = bytes.get(..field).unwrap_or(bytes);
    let after = bytes.get(field + 4..).unwrap_or_default();
    let parts = [before, &[0; 4], after];
    !parts
        .iter()
        .fold(0, |sum, part| crc32c::crc32c_append(sum, part))
}
