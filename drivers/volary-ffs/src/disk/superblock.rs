//! The superblock as stored: where it is, its byte order, and its replicas.

use crate::disk::ondisk::{
    CK_SUPERBLOCK, CK_SUPPORTED, FS_FLAGS_UPDATED, FS_METACKHASH, FS_UFS1_MAGIC, FS_UFS2_MAGIC,
    Order, SBLOCKSEARCH, SBLOCKSIZE, Stored, Superblock,
};
use std::ops::Range;
use volary_core::{BlockDevice, Error, Kind, Result};

/// Returns whether bytes have a superblock's magic, in either byte order.
fn has_magic(bytes: &[u8]) -> bool {
    let magic = |order| u32::get(order, bytes, 1372);
    let is_known = |magic| magic == FS_UFS1_MAGIC || magic == FS_UFS2_MAGIC;
    is_known(magic(Order::Little)) || is_known(magic(Order::Big))
}

/// Bytes of a device that are searched at a time.
const WINDOW: usize = 1 << 20;

/// Passes a range of the device to `each`, piece by piece with its offset, until `each` returns
/// that this is enough. Consecutive pieces overlap by the length of a superblock.
///
/// # Errors
/// `Io`; those of `each`.
pub(crate) fn windows(
    dev: &dyn BlockDevice,
    range: Range<u64>,
    each: &mut dyn FnMut(u64, &[u8]) -> Result<bool>,
) -> Result<()> {
    let size = dev.geometry().size;
    let mut window = vec![0; WINDOW + Superblock::SIZE];
    let mut start = range.start;
    while start < size.min(range.end) {
        let left = usize::try_from(size - start).unwrap_or(usize::MAX);
        let len = left.min(window.len());
        let bytes = window.get_mut(..len).unwrap_or_default();
        dev.read_at(start, bytes)?;
        if !each(start, bytes)? {
            break;
        }
        start += WINDOW as u64;
    }
    Ok(())
}

/// A superblock of which only the magic was checked.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Where it stands, in bytes.
    pub(crate) at: u64,
    pub(crate) order: Order,
    /// Whether it is UFS2's. Otherwise it is UFS1's.
    pub(crate) is_ufs2: bool,
    pub(crate) raw: Superblock,
    pub(crate) bytes: Vec<u8>,
}

impl Found {
    /// Returns the superblock at byte `at`, if the magic is there.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn read(dev: &dyn BlockDevice, at: u64) -> Result<Option<Self>> {
        let end = at.saturating_add(Superblock::SIZE as u64);
        if end > dev.geometry().size {
            return Ok(None);
        }
        let mut bytes = vec![0; Superblock::SIZE];
        dev.read_at(at, &mut bytes)?;
        let Some(mut found) = Self::parse(at, bytes) else {
            return Ok(None);
        };
        let len = found.len();
        if at.saturating_add(len as u64) <= dev.geometry().size && len > found.bytes.len() {
            found.bytes.resize(len, 0);
            dev.read_at(at, &mut found.bytes)?;
        }
        Ok(Some(found))
    }

    /// Returns whether this is UFS2's superblock, made by FreeBSD.
    pub(crate) fn is_freebsd(&self) -> bool {
        let raw = &self.raw;
        self.is_ufs2 && (raw.fs_providersize != 0 || raw.fs_sblockactualloc != 0)
    }

    /// Returns which check hashes are kept, as bits of `fs_metackhash`. The flag means something
    /// else on NetBSD.
    pub(crate) fn kept_hashes(&self) -> u32 {
        let is_kept = self.is_freebsd() && self.raw.fs_flags & FS_METACKHASH != 0;
        match is_kept {
            true => self.raw.fs_metackhash & CK_SUPPORTED,
            false => 0,
        }
    }

    /// Returns the superblock's length in bytes. It includes the bytes behind the structure if they
    /// are hashed, or have UFS1's rotational tables.
    fn len(&self) -> usize {
        let goes_on = match self.is_ufs2 {
            true => self.kept_hashes() & CK_SUPERBLOCK != 0,
            false => self.raw.fs_old_cpc > 0,
        };
        let len = usize::try_from(self.raw.fs_sbsize).unwrap_or(0);
        match goes_on {
            true => len.clamp(Superblock::SIZE, SBLOCKSIZE),
            false => Superblock::SIZE,
        }
    }

    /// Returns the superblock in bytes that were read at byte `at`, if they have the magic.
    pub(crate) fn parse(at: u64, bytes: Vec<u8>) -> Option<Self> {
        let read = |order| {
            let raw = Superblock::read(order, &bytes);
            let is_ufs2 = raw.fs_magic == FS_UFS2_MAGIC;
            let known = is_ufs2 || raw.fs_magic == FS_UFS1_MAGIC;
            known.then_some((order, is_ufs2, raw))
        };
        let (order, is_ufs2, raw) = read(Order::Little).or_else(|| read(Order::Big))?;
        Some(Self {
            at,
            order,
            is_ufs2,
            raw,
            bytes,
        })
    }

    /// Searches for the first superblock where the BSDs put it. A replica that stands at one of
    /// these places is skipped.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn first(dev: &dyn BlockDevice) -> Result<Option<Self>> {
        for at in SBLOCKSEARCH {
            let found = Self::read(dev, at)?;
            if let Some(found) = found.filter(Self::is_at_home) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns whether this is the first superblock. UFS2's says where it stands. UFS1 has a
    /// replica at byte 65536 if its blocks have that length.
    fn is_at_home(&self) -> bool {
        if self.is_ufs2 || self.has_new_fields() {
            return u64::try_from(self.raw.fs_sblockloc) == Ok(self.at);
        }
        self.at <= 8192
    }

    /// Returns where the first superblock stands, judging by this one, which may be a replica.
    pub(crate) fn home(&self) -> u64 {
        let said = u64::try_from(self.raw.fs_sblockloc).ok();
        let said = said.filter(|_| self.is_ufs2 || self.has_new_fields());
        said.filter(|at| SBLOCKSEARCH.contains(at)).unwrap_or(8192)
    }

    /// Passes each superblock in a range of the device to `each`, replicas too, until `each`
    /// returns that this is enough.
    ///
    /// # Errors
    /// `Io`; those of `each`.
    pub(crate) fn search(
        dev: &dyn BlockDevice,
        range: Range<u64>,
        each: &mut dyn FnMut(Self) -> Result<bool>,
    ) -> Result<()> {
        windows(dev, range, &mut |start, bytes| {
            for at in (0..WINDOW).step_by(512) {
                let Some(one) = bytes.get(at..at + Superblock::SIZE) else {
                    break;
                };
                if has_magic(one)
                    && let Some(found) = Self::parse(start + at as u64, one.to_vec())
                    && !each(found)?
                {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Returns the superblock at a sector that the user names.
    ///
    /// # Errors
    /// `Corrupt` if there is none; `Io`.
    pub(crate) fn at_sector(dev: &dyn BlockDevice, sector: u64) -> Result<Self> {
        let at = sector.saturating_mul(512);
        let missing = || {
            Error::corrupt(
                "fs_magic",
                at.saturating_add(1372),
                "none",
                "UFS1's or UFS2's",
            )
        };
        Self::read(dev, at)?.ok_or_else(missing)
    }

    /// Returns the superblock that an attachment uses.
    ///
    /// # Errors
    /// `Corrupt` if there is none; `Io`.
    pub(crate) fn choose(dev: &dyn BlockDevice, sector: Option<u64>) -> Result<Self> {
        if let Some(sector) = sector {
            return Self::at_sector(dev, sector);
        }
        let missing = || {
            let words = "no superblock at bytes 65536, 8192, 0 and 262144; 'volary dump VOLUME \
                         superblocks' finds replicas, -o superblock=SECTOR goes by one";
            Error::note(Kind::Corrupt, words)
        };
        Self::first(dev)?.ok_or_else(missing)
    }

    /// Returns whether UFS1's wider fields past byte 860 are valid. 4.3BSD has other data there.
    pub(crate) fn has_new_fields(&self) -> bool {
        let raw = &self.raw;
        raw.fs_old_flags & FS_FLAGS_UPDATED != 0 && raw.fs_maxbsize == raw.fs_bsize
    }

    /// Returns `Corrupt` for the field of this name.
    pub(crate) fn bad(&self, name: &'static str, expected: impl Into<String>) -> Error {
        let fields = self.raw.fields();
        let field = fields.into_iter().find(|field| field.0 == name);
        let (_, at, value) = field.unwrap_or((name, 0, "missing".into()));
        Error::corrupt(name, self.at.saturating_add(at as u64), value, expected)
    }
}
