//! Inodes.

use crate::disk::csum;
use crate::disk::ondisk::{
    I_CHECKSUM_HI, I_CHECKSUM_LO, INODE_EXTRA, INODE_HEAD, InodeExtra, InodeHead, iflag, incompat,
    ro_compat,
};
use crate::disk::volume::Volume;
use std::num::NonZeroU64;
use volary_core::{Attr, Error, FileKind, Kind, NodeId, Result, Time};
use zerocopy::FromBytes;

/// An inode.
#[derive(Clone)]
pub(crate) struct Inode {
    pub(crate) ino: u32,
    /// Where it stands, in bytes.
    pub(crate) at: u64,
    pub(crate) head: InodeHead,
    /// Zeros where the inode has no such field.
    pub(crate) extra: InodeExtra,
    /// All of it.
    pub(crate) raw: Vec<u8>,
    pub(crate) size: u64,
    /// 512-byte units that it takes on the volume.
    pub(crate) sectors: u64,
    /// The block of its extended attributes, or 0.
    pub(crate) file_acl: u64,
    /// What checksums of its blocks begin with.
    pub(crate) seed: u32,
    /// Whether a fast commit wrote it.
    pub(crate) is_fast: bool,
}

/// Bytes of an inode that are summed at once: most inodes have no more.
const SUMMED_AT_ONCE: usize = 256;

impl Inode {
    /// # Errors
    /// `Corrupt` for bytes that are too few.
    pub(crate) fn of(
        volume: &Volume,
        ino: u32,
        at: u64,
        raw: Vec<u8>,
        is_fast: bool,
    ) -> Result<Self> {
        let short = || Error::corrupt("inode", at, format!("{} bytes", raw.len()), "128 or more");
        let (head, rest) = InodeHead::read_from_prefix(&raw).map_err(|_| short())?;
        let extra = extra(rest);
        let generation = u64::from(head.i_generation.get());
        let own = generation << 32 | u64::from(ino);
        Ok(Self {
            ino,
            at,
            size: size(volume, &head),
            sectors: sectors(volume, &head),
            file_acl: file_acl(volume, &head),
            seed: csum::crc32c(volume.seed, &own.to_le_bytes()),
            is_fast,
            head,
            extra,
            raw,
        })
    }

    pub(crate) fn flags(&self) -> u32 {
        self.head.i_flags.get()
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags() & flag != 0
    }

    /// Returns what it is, if its mode says so.
    pub(crate) fn kind(&self) -> Option<FileKind> {
        FileKind::from_mode(self.head.i_mode.get().into())
    }

    /// # Errors
    /// `Corrupt`.
    pub(crate) fn known_kind(&self) -> Result<FileKind> {
        self.kind().ok_or_else(|| {
            let found = format!("{:o} (inode {})", self.head.i_mode.get(), self.ino);
            Error::corrupt("i_mode", self.at, found, "a kind of file")
        })
    }

    /// Returns the checksum that is stored, and the one that there should be, as wide as the inode keeps it.
    pub(crate) fn sums(&self) -> (u32, u32) {
        // Both fields count as zeros. They are in the first bytes, which are summed at once.
        let mut start = [0; SUMMED_AT_ONCE];
        let (first, rest) = self.raw.split_at(self.raw.len().min(SUMMED_AT_ONCE));
        let start = start.get_mut(..first.len()).unwrap_or_default();
        start.copy_from_slice(first);
        let mut clear = |at: usize| start.get_mut(at..at + 2).unwrap_or_default().fill(0);
        clear(I_CHECKSUM_LO);
        let is_wide = self.raw.len() > INODE_HEAD && self.extra.i_extra_isize.get() >= 4;
        if is_wide {
            clear(I_CHECKSUM_HI);
        }
        let sum = csum::crc32c(csum::crc32c(self.seed, start), rest);
        let low = u32::from(self.head.l_i_checksum_lo.get());
        if !is_wide {
            return (low, sum & 0xffff);
        }
        let high = u32::from(self.extra.i_checksum_hi.get());
        (high << 16 | low, sum)
    }

    /// Returns the part of the inode that extended attributes are in.
    pub(crate) fn body(&self) -> &[u8] {
        let start = INODE_HEAD + usize::from(self.extra.i_extra_isize.get());
        match self.raw.len() > INODE_HEAD && start.is_multiple_of(4) {
            true => self.raw.get(start..).unwrap_or_default(),
            false => &[],
        }
    }

    /// Returns whether the target of the symlink stands in `i_block`.
    pub(crate) fn is_short_link(&self, volume: &Volume) -> bool {
        let of_acl = match self.file_acl {
            0 => 0,
            _ => volume.cluster * volume.block / 512,
        };
        self.kind() == Some(FileKind::Symlink)
            && !self.has(iflag::INLINE_DATA | iflag::EXTENTS)
            && self.size < self.head.i_block.len() as u64
            && self.sectors.saturating_sub(of_acl) == 0
    }

    /// Returns a device's number (inodes.rst: `i_block` of special files, in the old form or the new one).
    fn rdev(&self) -> u64 {
        let word = |at: usize| match self.head.i_block.get(at..at + 4) {
            Some(&[a, b, c, d]) => u64::from(u32::from_le_bytes([a, b, c, d])),
            _ => 0,
        };
        let (old, new) = (word(0), word(4));
        let (major, minor) = match old {
            0 => (new >> 8 & 0xfff, new & 0xff | new >> 12 & 0xf_ff00),
            _ => (old >> 8 & 0xff, old & 0xff),
        };
        major << 32 | minor
    }

    /// Returns what the node is known by.
    pub(crate) fn id(&self) -> NodeId {
        NodeId {
            ino: NonZeroU64::new(self.ino.into()).unwrap_or(NonZeroU64::MIN),
            generation: self.head.i_generation.get(),
        }
    }

    /// Returns the attributes.
    ///
    /// # Errors
    /// `Corrupt` for a mode that names no kind.
    pub(crate) fn attr(&self, volume: &Volume) -> Result<Attr> {
        let kind = self.known_kind()?;
        let (head, extra) = (&self.head, &self.extra);
        let two = |low: u16, high: u16| u32::from(high) << 16 | u32::from(low);
        let is_device = matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
        let version = u64::from(extra.i_version_hi.get()) << 32;
        Ok(Attr {
            node: self.id(),
            kind,
            mode: u32::from(head.i_mode.get()) & 0o7777,
            nlink: head.i_links_count.get().into(),
            uid: two(head.i_uid.get(), head.l_i_uid_high.get()),
            gid: two(head.i_gid.get(), head.l_i_gid_high.get()),
            rdev: if is_device { self.rdev() } else { 0 },
            size: self.size,
            allocated: self.allocated(),
            io_size: volume.block as u32,
            atime: time(head.i_atime.get(), extra.i_atime_extra.get()),
            mtime: time(head.i_mtime.get(), extra.i_mtime_extra.get()),
            ctime: time(head.i_ctime.get(), extra.i_ctime_extra.get()),
            btime: self.birth(),
            change: version | u64::from(head.l_i_version.get()),
            dos: None,
        })
    }

    /// Returns bytes that it takes. Data of files in their inodes counts, as Linux has it.
    fn allocated(&self) -> u64 {
        let is_file = self.kind() == Some(FileKind::File);
        let inline = match is_file && self.has(iflag::INLINE_DATA) {
            true => self.size.div_ceil(512),
            false => 0,
        };
        self.sectors.saturating_add(inline).saturating_mul(512)
    }

    fn birth(&self) -> Option<Time> {
        // Up to the end of `i_crtime`.
        let is_there = self.extra.i_extra_isize.get() >= 20;
        let (secs, extra) = (self.extra.i_crtime.get(), self.extra.i_crtime_extra.get());
        is_there.then(|| time(secs, extra))
    }

    /// Checks that what the inode holds can be read without a key, which is not on the volume.
    ///
    /// # Errors
    /// `Unsupported` for what is encrypted.
    pub(crate) fn check_clear(&self) -> Result<()> {
        if !self.has(iflag::ENCRYPT) {
            return Ok(());
        }
        let words = "it is encrypted, and what it holds cannot be read without its key";
        Err(Error::note(Kind::Unsupported, words))
    }

    /// Checks that the inode is a directory whose names can be read.
    ///
    /// # Errors
    /// `NotDir`; `Unsupported` if it is encrypted: its names are then.
    pub(crate) fn check_dir(&self) -> Result<()> {
        match self.kind() {
            Some(FileKind::Dir) => self.check_clear(),
            _ => Err(Kind::NotDir.into()),
        }
    }

    /// Checks that the volume can hold a directory of this size, which has no holes, and that a file
    /// has less than 2^63 bytes.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_size(&self, volume: &Volume) -> Result<()> {
        let most = match self.kind() {
            Some(FileKind::Dir) => volume.there().saturating_mul(volume.block),
            _ => i64::MAX.cast_unsigned(),
        };
        if self.size <= most {
            return Ok(());
        }
        let found = format!("{} (inode {})", self.size, self.ino);
        let expected = format!("at most {most}");
        Err(Error::corrupt("i_size", self.at, found, expected))
    }
}

/// Returns the fields after the first 128 bytes, as far as there are.
fn extra(rest: &[u8]) -> InodeExtra {
    let mut bytes = [0; INODE_EXTRA];
    let len = match rest {
        [low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    };
    // The length of what is there is a field that is always there.
    for (to, from) in bytes.iter_mut().zip(rest.iter().take(len.max(2))) {
        *to = *from;
    }
    zerocopy::transmute!(bytes)
}

fn size(volume: &Volume, head: &InodeHead) -> u64 {
    let is_file = FileKind::from_mode(head.i_mode.get().into()) == Some(FileKind::File);
    let low = u64::from(head.i_size_lo.get());
    match is_file || volume.has_incompat(incompat::LARGEDIR) {
        true => low | u64::from(head.i_size_high.get()) << 32,
        false => low,
    }
}

fn sectors(volume: &Volume, head: &InodeHead) -> u64 {
    let low = u64::from(head.i_blocks_lo.get());
    if !volume.has_ro(ro_compat::HUGE_FILE) {
        return low;
    }
    let all = low | u64::from(head.l_i_blocks_high.get()) << 32;
    match head.i_flags.get() & iflag::HUGE_FILE {
        0 => all,
        _ => all.saturating_mul(volume.block / 512),
    }
}

fn file_acl(volume: &Volume, head: &InodeHead) -> u64 {
    let low = u64::from(head.i_file_acl_lo.get());
    match volume.has_incompat(incompat::BITS64) {
        true => low | u64::from(head.l_i_file_acl_high.get()) << 32,
        false => low,
    }
}

/// Returns a time: two bits of the extra field go above the seconds, which have a sign; the rest are
/// nanoseconds (inodes.rst, "Inode Timestamps").
fn time(secs: u32, extra: u32) -> Time {
    let secs = i64::from(secs.cast_signed()) + (i64::from(extra & 3) << 32);
    Time::new(secs, extra >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_reach_from_1901_to_2446() {
        assert_eq!(time(0x8000_0000, 0), Time::from_secs(-0x8000_0000));
        assert_eq!(time(0x7fff_ffff, 0), Time::from_secs(0x7fff_ffff));
        assert_eq!(time(0x8000_0000, 1), Time::from_secs(0x8000_0000));
        assert_eq!(time(0x7fff_ffff, 3), Time::from_secs(0x3_7fff_ffff));
        assert_eq!(time(5, 7 << 2), Time::new(5, 7));
    }
}
