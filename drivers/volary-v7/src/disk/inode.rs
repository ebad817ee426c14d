//! Inodes.

use crate::disk::ondisk::{ADDRESSES, INODE_LEN, ROOT_INO, di};
use crate::disk::volume::{DIR_MAX, Volume};
use volary_core::{Error, FileKind, Kind, NodeId, Result, Time};

/// The Seventh Edition's multiplexed devices: of characters, of blocks.
const S_IFMPC: u16 = 0o030_000;
const S_IFMPB: u16 = 0o070_000;

/// An inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    pub(crate) ino: u32,
    /// Where it stands, in bytes.
    pub(crate) at: u64,
    pub(crate) mode: u16,
    pub(crate) nlink: u16,
    pub(crate) uid: u16,
    pub(crate) gid: u16,
    pub(crate) size: u64,
    pub(crate) addr: [u32; ADDRESSES],
    pub(crate) generation: u8,
    /// Of last access, last change of content, last change.
    pub(crate) times: [Time; 3],
}

impl Inode {
    /// Returns an inode out of its bytes.
    pub(crate) fn parse(volume: &Volume, ino: u32, bytes: &[u8]) -> Self {
        let order = volume.order;
        let short = |at| order.get16(bytes, at);
        // Times are signed, as `time_t` was.
        let time = |at| Time::from_secs(order.get32(bytes, at).cast_signed().into());
        let mut addr = [0; ADDRESSES];
        for (i, address) in addr.iter_mut().enumerate() {
            *address = order.get24(bytes, di::ADDR + 3 * i);
        }
        Self {
            ino,
            at: volume.inode_at(ino),
            mode: short(di::MODE),
            nlink: short(di::NLINK),
            uid: short(di::UID),
            gid: short(di::GID),
            size: order.get32(bytes, di::SIZE).into(),
            addr,
            generation: bytes.get(di::GEN).copied().unwrap_or(0),
            times: [time(di::ATIME), time(di::MTIME), time(di::CTIME)],
        }
    }

    /// Returns its bytes.
    pub(crate) fn bytes(&self, volume: &Volume) -> [u8; INODE_LEN] {
        let (order, mut bytes) = (volume.order, [0; INODE_LEN]);
        let shorts = [self.mode, self.nlink, self.uid, self.gid];
        for (at, n) in [di::MODE, di::NLINK, di::UID, di::GID]
            .into_iter()
            .zip(shorts)
        {
            order.put16(&mut bytes, at, n);
        }
        let size = u32::try_from(self.size).unwrap_or(u32::MAX);
        order.put32(&mut bytes, di::SIZE, size);
        for (i, address) in self.addr.iter().enumerate() {
            order.put24(&mut bytes, di::ADDR + 3 * i, *address);
        }
        if let Some(byte) = bytes.get_mut(di::GEN) {
            *byte = self.generation;
        }
        for (at, time) in [di::ATIME, di::MTIME, di::CTIME]
            .into_iter()
            .zip(self.times)
        {
            let secs = i32::try_from(time.secs).unwrap_or(0);
            order.put32(&mut bytes, at, secs.cast_unsigned());
        }
        bytes
    }

    /// One that is free, of that generation.
    pub(crate) fn free(volume: &Volume, ino: u32, generation: u8) -> Self {
        Self {
            generation,
            ..Self::parse(volume, ino, &[])
        }
    }

    /// Returns what it is; none of one that is free or makes no sense.
    pub(crate) fn kind(&self) -> Option<FileKind> {
        match self.mode & 0o170_000 {
            S_IFMPC => Some(FileKind::CharDevice),
            S_IFMPB => Some(FileKind::BlockDevice),
            _ => FileKind::from_mode(self.mode.into()),
        }
    }

    /// Returns whether its addresses lead to blocks.
    pub(crate) fn has_blocks(&self) -> bool {
        use FileKind::{Dir, File, Symlink};
        matches!(self.kind(), Some(File | Dir | Symlink))
    }

    /// Refuses one that makes no sense.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check(self, volume: &Volume) -> Result<Self> {
        let ino = self.ino;
        let Some(kind) = self.kind() else {
            let found = format!("{:#o} (inode {ino})", self.mode);
            return Err(Error::corrupt("di_mode", self.at, found, "a kind of file"));
        };
        let (most, unit) = match kind {
            FileKind::Dir => (DIR_MAX.min(volume.size_max()), 16),
            _ => (volume.size_max(), 1),
        };
        if self.has_blocks() && (self.size > most || !self.size.is_multiple_of(unit)) {
            let found = format!("{} (inode {ino})", self.size);
            let expected = format!("{most} at most, in steps of {unit}");
            return Err(Error::corrupt("di_size", self.at, found, expected));
        }
        Ok(self)
    }

    /// Returns which node it is.
    ///
    /// # Errors
    /// `Stale` for inode 0.
    pub(crate) fn id(&self) -> Result<NodeId> {
        NodeId::new(self.ino.into(), self.generation.into()).ok_or_else(|| Kind::Stale.into())
    }

    /// Returns the device number: the major number in the upper 32 bits, the minor in the lower. 0 for other nodes.
    pub(crate) fn rdev(&self) -> u64 {
        use FileKind::{BlockDevice, CharDevice};
        if !matches!(self.kind(), Some(CharDevice | BlockDevice)) {
            return 0;
        }
        let number = self.addr.first().map_or(0, |&n| u64::from(n & 0xffff));
        number >> 8 << 32 | number & 0xff
    }

    /// Returns whether it is the root's.
    pub(crate) fn is_root(&self) -> bool {
        self.ino == ROOT_INO
    }
}

/// Returns a device's number as it is stored, if it fits.
pub(crate) fn dev_t(rdev: u64) -> Option<u32> {
    let (major, minor) = (rdev >> 32, rdev & 0xffff_ffff);
    let fits = major <= 0xff && minor <= 0xff;
    fits.then(|| u32::try_from(major << 8 | minor).unwrap_or(0))
}

/// Returns a time as it is kept: whole seconds, and what is out of range as the nearest.
pub(crate) fn kept(time: Time) -> Time {
    Time::from_secs(time.secs.clamp(i32::MIN.into(), i32::MAX.into()))
}
