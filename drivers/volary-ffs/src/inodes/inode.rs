//! Inodes of all variants.

use crate::disk::ondisk::{SF_SNAPSHOT, UFS1_DB, UFS2_DB, Ufs1Dinode, Ufs2Dinode};
use crate::disk::volume::{Variant, Volume};
use std::ops::{Deref, DerefMut};
use volary_core::{Attr, Error, FileKind, Kind, NodeId, Result, Time};

/// The longest inode, in bytes: UFS2's.
const LEN_MAX: usize = 256;

/// An inode's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes {
    bytes: [u8; LEN_MAX],
    len: usize,
}

impl Bytes {
    fn of(bytes: &[u8]) -> Self {
        let mut all = [0; LEN_MAX];
        let len = bytes.len().min(LEN_MAX);
        for (to, from) in all.iter_mut().zip(bytes) {
            *to = *from;
        }
        Self { bytes: all, len }
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or_default()
    }
}

/// An inode.
#[derive(Clone, Debug)]
pub(crate) struct Inode {
    pub(crate) ino: u32,
    /// Its place on the device, in bytes.
    pub(crate) at: u64,
    /// The bytes as stored.
    pub(crate) bytes: Bytes,
    pub(crate) mode: u16,
    pub(crate) nlink: i16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u64,
    /// The 512-byte sectors that it takes, including indirect blocks.
    pub(crate) blocks: u64,
    pub(crate) generation: u32,
    pub(crate) flags: u32,
    /// The times of the last access, the last change of content, and the last change of the inode.
    pub(crate) times: [Time; 3],
    pub(crate) birth: Option<Time>,
    pub(crate) extsize: u32,
    pub(crate) extb: [u64; 2],
    pub(crate) db: [u64; 12],
    pub(crate) ib: [u64; 3],
}

impl Inode {
    /// Parses an inode from its bytes, as many as the variant has.
    pub(crate) fn parse(volume: &Volume, ino: u32, at: u64, bytes: &[u8]) -> Self {
        let bytes = Bytes::of(bytes);
        match volume.variant {
            Variant::Ufs2 => Self::of_ufs2(&Ufs2Dinode::read(volume.order, &bytes), ino, at, bytes),
            variant => {
                let raw = Ufs1Dinode::read(volume.order, &bytes);
                Self::of_ufs1(&raw, variant, ino, at, bytes)
            }
        }
    }

    fn of_ufs1(raw: &Ufs1Dinode, variant: Variant, ino: u32, at: u64, bytes: Bytes) -> Self {
        let [old_uid, old_gid] = raw.di_oldids.map(u32::from);
        let (uid, gid) = match variant {
            Variant::Bsd43 => (old_uid, old_gid),
            _ => (raw.di_uid, raw.di_gid),
        };
        Self {
            ino,
            at,
            bytes,
            mode: raw.di_mode,
            nlink: raw.di_nlink,
            uid,
            gid,
            size: raw.di_size,
            blocks: raw.di_blocks.into(),
            generation: raw.di_gen,
            flags: raw.di_flags,
            times: [
                time(raw.di_atime.into(), raw.di_atimensec),
                time(raw.di_mtime.into(), raw.di_mtimensec),
                time(raw.di_ctime.into(), raw.di_ctimensec),
            ],
            birth: None,
            extsize: 0,
            extb: [0; 2],
            db: raw.di_db.map(u64::from),
            ib: raw.di_ib.map(u64::from),
        }
    }

    fn of_ufs2(raw: &Ufs2Dinode, ino: u32, at: u64, bytes: Bytes) -> Self {
        let birth = time(raw.di_birthtime, raw.di_birthnsec);
        Self {
            ino,
            at,
            bytes,
            mode: raw.di_mode,
            nlink: raw.di_nlink,
            uid: raw.di_uid,
            gid: raw.di_gid,
            size: raw.di_size,
            blocks: raw.di_blocks,
            generation: raw.di_gen,
            flags: raw.di_flags,
            times: [
                time(raw.di_atime, raw.di_atimensec),
                time(raw.di_mtime, raw.di_mtimensec),
                time(raw.di_ctime, raw.di_ctimensec),
            ],
            birth: Some(birth).filter(|&birth| birth != Time::EPOCH),
            extsize: raw.di_extsize,
            extb: raw.di_extb,
            db: raw.di_db,
            ib: raw.di_ib,
        }
    }

    /// Returns its kind, if it is in use.
    pub(crate) fn kind(&self) -> Option<FileKind> {
        FileKind::from_mode(self.mode.into())
    }

    /// Returns its node id.
    ///
    /// # Errors
    /// `Stale` for inode 0, which does not exist.
    pub(crate) fn id(&self) -> Result<NodeId> {
        NodeId::new(self.ino.into(), self.generation).ok_or_else(|| Kind::Stale.into())
    }

    /// Checks the fields against the variant's limits.
    ///
    /// # Errors
    /// `Corrupt` for a wrong check hash, an invalid mode, a size beyond the reach of block
    /// pointers, or a directory larger than the volume.
    pub(crate) fn check(self, volume: &Volume) -> Result<Self> {
        volume
            .hashes
            .check_inode(volume.order, self.at, &self.bytes)?;
        if self.kind().is_none() {
            let found = format!("{:#o}", self.mode);
            let expected = "a file's, directory's, symlink's or other node's";
            return Err(Error::corrupt("di_mode", self.at, found, expected));
        }
        let (size_at, extsize_at) = match volume.variant {
            Variant::Ufs2 => (16, 92),
            _ => (8, 0),
        };
        // A directory has no holes, so it cannot be larger than the volume.
        let most = match self.kind() {
            Some(FileKind::Dir) => volume.size_max().min(volume.size * volume.fsize),
            _ => volume.size_max(),
        };
        if self.size > most {
            let expected = format!("at most {most}");
            let (at, found) = (self.at + size_at, self.size.to_string());
            return Err(Error::corrupt("di_size", at, found, expected));
        }
        if u64::from(self.extsize) > 2 * volume.bsize {
            let expected = format!("at most {}", 2 * volume.bsize);
            let (at, found) = (self.at + extsize_at, self.extsize.to_string());
            return Err(Error::corrupt("di_extsize", at, found, expected));
        }
        Ok(self)
    }

    /// Returns the bytes in the place of the block pointers.
    fn db_bytes(&self, variant: Variant) -> &[u8] {
        let range = match variant {
            Variant::Ufs2 => UFS2_DB..UFS2_DB + 120,
            _ => UFS1_DB..UFS1_DB + 60,
        };
        self.bytes.get(range).unwrap_or_default()
    }

    /// Returns the target of a short symlink, which is stored in the inode.
    pub(crate) fn short_target(&self, volume: &Volume) -> Option<Vec<u8>> {
        let room = self.db_bytes(volume.variant);
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        // As on FreeBSD: without blocks, a symlink is short whatever the superblock says.
        let no_blocks = self.blocks == 0 && volume.variant != Variant::Bsd43;
        let is_short = self.size < volume.symlink_max || no_blocks;
        let target = room.get(..size).filter(|_| is_short)?;
        Some(target.to_vec())
    }

    /// Returns the length of the text in the place of block pointers. Returns `None` if they do not
    /// look like a short symlink's target, padded with zeros.
    pub(crate) fn text_len(&self, volume: &Volume) -> Option<u64> {
        let room = self.db_bytes(volume.variant);
        let len = room
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(room.len());
        let rest = room.get(len..).unwrap_or_default();
        let is_text = len > 0 && rest.iter().all(|&byte| byte == 0);
        Some(len as u64).filter(|&len| is_text && len < volume.symlink_max)
    }

    /// Returns whether the block pointers lead to blocks. They do not for devices, fifos, sockets
    /// and short symlinks.
    pub(crate) fn has_blocks(&self, volume: &Volume) -> bool {
        match self.kind() {
            Some(FileKind::File | FileKind::Dir) => true,
            Some(FileKind::Symlink) => self.short_target(volume).is_none(),
            _ => false,
        }
    }

    /// Returns whether it is a snapshot. A snapshot's pointers lead to the volume's own blocks.
    pub(crate) fn is_snapshot(&self, volume: &Volume) -> bool {
        volume.variant != Variant::Bsd43 && self.flags & SF_SNAPSHOT != 0
    }

    /// Returns the length of block `lbn` in bytes. The last block of a small file has only a few
    /// fragments.
    pub(crate) fn block_len(&self, volume: &Volume, lbn: u64) -> u64 {
        let end = (lbn + 1).saturating_mul(volume.bsize);
        if lbn >= crate::disk::ondisk::UFS_NDADDR || self.size >= end {
            return volume.bsize;
        }
        let rest = self.size.saturating_sub(lbn * volume.bsize);
        rest.next_multiple_of(volume.fsize)
    }

    /// Returns the attributes.
    ///
    /// # Errors
    /// `Stale` for inode 0.
    pub(crate) fn attr(&self, volume: &Volume) -> Result<Attr> {
        let kind = self.kind().unwrap_or(FileKind::File);
        let [atime, mtime, ctime] = self.times;
        let is_device = matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
        let number = self.db.first().copied().unwrap_or(0);
        Ok(Attr {
            node: self.id()?,
            kind,
            mode: u32::from(self.mode) & 0o7777,
            nlink: u32::try_from(self.nlink).unwrap_or(0),
            uid: self.uid,
            gid: self.gid,
            rdev: if is_device {
                device(number, volume.is_freebsd)
            } else {
                0
            },
            size: self.size,
            allocated: self.blocks.saturating_mul(512),
            io_size: u32::try_from(volume.bsize).unwrap_or(u32::MAX),
            atime,
            mtime,
            ctime,
            btime: self.birth,
            change: 1,
            dos: None,
        })
    }
}

/// Returns the `dev_t` of a device number, which has the major number in the upper half and the
/// minor in the lower. Returns `None` if it does not fit. This is the reverse of [`device`].
pub(crate) fn dev_t(rdev: u64, is_freebsd: bool) -> Option<u64> {
    let (major, minor) = (rdev >> 32, rdev & 0xffff_ffff);
    let dev = match is_freebsd {
        true => {
            (major & 0xffff_ff00) << 32
                | (minor & 0xff00) << 24
                | (major & 0xff) << 8
                | minor & 0xffff_00ff
        }
        false => (major & 0xfff) << 8 | (minor & 0xf_ff00) << 12 | minor & 0xff,
    };
    (device(dev, is_freebsd) == rdev).then_some(dev)
}

/// Returns a time stamp. Only 4.4BSD and later keep nanoseconds, and invalid ones count as 0.
fn time(secs: i64, nanos: i32) -> Time {
    let nanos = u32::try_from(nanos).unwrap_or(0);
    Time::new(secs, if nanos < 1_000_000_000 { nanos } else { 0 })
}

/// Returns the device number of a `dev_t`: the major number in the upper half, the minor in the
/// lower. NetBSD extends 4.3BSD's form, and FreeBSD has its own.
fn device(dev: u64, is_freebsd: bool) -> u64 {
    let (major, minor) = if is_freebsd {
        (
            dev >> 32 & 0xffff_ff00 | dev >> 8 & 0xff,
            dev >> 24 & 0xff00 | dev & 0xffff_00ff,
        )
    } else {
        (dev >> 8 & 0xfff, dev >> 12 & 0xf_ff00 | dev & 0xff)
    };
    major << 32 | minor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_as_each_system_has_them() {
        assert_eq!(device(0x0801, false), 8 << 32 | 1);
        assert_eq!(device(0x0801, true), 8 << 32 | 1);
        // Both are `makedev(259, 65537)`, by NetBSD's and FreeBSD's macros.
        assert_eq!(device(0x1001_0301, false), 0x103 << 32 | 0x1_0001);
        assert_eq!(device(0x0000_0100_0001_0301, true), 0x103 << 32 | 0x1_0001);
    }

    #[test]
    fn a_device_number_comes_back_or_is_refused() {
        for rdev in [0, 1, 8 << 32 | 1, 0xfff << 32 | 0xf_ffff] {
            for is_freebsd in [false, true] {
                let dev = dev_t(rdev, is_freebsd).expect("room");
                assert_eq!(device(dev, is_freebsd), rdev);
            }
        }
        assert_eq!(dev_t(0x1000 << 32, false), None);
        assert_eq!(dev_t(0x10_0000, false), None);
        assert!(dev_t(u64::MAX, true).is_some());
    }

    #[test]
    fn nanoseconds_that_are_none_count_as_none() {
        assert_eq!(time(5, -1), Time::from_secs(5));
        assert_eq!(time(5, 1_000_000_000), Time::from_secs(5));
        assert_eq!(time(-5, 7), Time::new(-5, 7));
    }
}
