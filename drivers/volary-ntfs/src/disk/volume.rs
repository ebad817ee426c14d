//! The checked boot sector.

use crate::disk::ondisk::{BOOT_LEN, Boot, STRIDE};
use volary_core::{BlockDevice, Error, Replica, Result};
use zerocopy::FromBytes;

/// The largest cluster, in bytes.
const CLUSTER_MAX: u64 = 2 << 20;
/// The largest record and the largest index block, in bytes.
const RECORD_MAX: u64 = 4096;
const INDEX_MAX: u64 = 64 << 10;

/// A volume, as its checked boot sector describes it.
#[derive(Clone, Copy)]
pub(crate) struct Volume {
    /// The boot sector as it is stored.
    pub(crate) boot: Boot,
    /// The size of a sector, in bytes.
    pub(crate) sector: u64,
    /// The size of a cluster, in bytes.
    pub(crate) cluster: u64,
    /// The number of sectors. The replica of the boot sector comes after them.
    pub(crate) sectors: u64,
    /// The number of clusters.
    pub(crate) clusters: u64,
    /// The size of a record, in bytes.
    pub(crate) record: usize,
    /// The size of an index block, in bytes.
    pub(crate) index: usize,
    /// The first cluster of the `$MFT`, and of its mirror.
    pub(crate) mft: u64,
    pub(crate) mirror: u64,
    /// The size of the device, in bytes.
    pub(crate) device: u64,
}

/// Reads a boot sector as it is stored. `None` if it is not one of NTFS.
///
/// # Errors
/// `Io`.
pub(crate) fn look(dev: &dyn BlockDevice, at: u64) -> Result<Option<Boot>> {
    let end = at.saturating_add(BOOT_LEN as u64);
    if dev.geometry().size < end {
        return Ok(None);
    }
    let mut bytes = [0; BOOT_LEN];
    dev.read_at(at, &mut bytes)?;
    let boot = Boot::read_from_prefix(&bytes).ok().map(|(boot, _)| boot);
    let is_signed = bytes.ends_with(&[0x55, 0xaa]);
    Ok(boot.filter(|boot| is_signed && boot.oem_id == *b"NTFS    "))
}

/// Returns a size in bytes. `stored` is a number of clusters or, if negative, the negated exponent
/// of a power of two.
fn size_of(stored: i8, cluster: u64) -> Option<u64> {
    match u64::try_from(stored) {
        Ok(clusters) => clusters.checked_mul(cluster),
        Err(_) => 1u64.checked_shl(stored.unsigned_abs().into()),
    }
}

impl Volume {
    /// Reads and checks the boot sector.
    ///
    /// # Errors
    /// `Corrupt`, naming the first invalid field; `Io`.
    pub(crate) fn read(dev: &dyn BlockDevice) -> Result<Self> {
        let none = || bad("oem_id", 0x3, "another", "NTFS, and 55 aa at the end");
        let boot = look(dev, 0)?.ok_or_else(none)?;
        Self::of(boot, dev.geometry().size)
    }

    /// Checks a boot sector.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn of(boot: Boot, device: u64) -> Result<Self> {
        let sector = u64::from(boot.bytes_per_sector.get());
        if !sector.is_power_of_two() || !(512..=4096).contains(&sector) {
            let expected = "512, 1024, 2048 or 4096";
            return Err(bad("bytes_per_sector", 0xb, sector, expected));
        }
        let cluster = cluster(boot.sectors_per_cluster, sector).ok_or_else(|| {
            let found = boot.sectors_per_cluster;
            bad("sectors_per_cluster", 0xd, found, "clusters of up to 2 MiB")
        })?;
        let ranged = |stored, most| {
            size_of(stored, cluster)
                .filter(|size| size.is_power_of_two() && (STRIDE as u64..=most).contains(size))
        };
        let record = ranged(boot.clusters_per_record, RECORD_MAX).ok_or_else(|| {
            let found = boot.clusters_per_record;
            bad("clusters_per_record", 0x40, found, "512 to 4096 bytes")
        })?;
        let index = ranged(boot.clusters_per_index, INDEX_MAX).ok_or_else(|| {
            let found = boot.clusters_per_index;
            bad("clusters_per_index", 0x44, found, "512 to 65536 bytes")
        })?;
        let sectors = boot.total_sectors.get();
        let size = sectors.checked_mul(sector).filter(|size| *size < 1 << 62);
        let size =
            size.ok_or_else(|| bad("total_sectors", 0x28, sectors, "less than 2^62 bytes"))?;
        let volume = Self {
            boot,
            sector,
            cluster,
            sectors,
            clusters: size / cluster,
            record: record as usize,
            index: index as usize,
            mft: boot.mft_lcn.get(),
            mirror: boot.mirror_lcn.get(),
            device,
        };
        if volume.mft >= volume.clusters {
            return Err(bad("mft_lcn", 0x30, volume.mft, "a cluster of the volume"));
        }
        Ok(volume)
    }

    /// Returns the number of clusters on the device, which may be smaller than the volume claims to
    /// be.
    pub(crate) fn there(&self) -> u64 {
        self.clusters.min(self.device / self.cluster)
    }

    /// Returns the size of the volume in bytes, including the replica of the boot sector.
    pub(crate) fn size(&self) -> u64 {
        self.sectors.saturating_add(1).saturating_mul(self.sector)
    }
}

fn cluster(stored: u8, sector: u64) -> Option<u64> {
    let sectors = match stored {
        0..=0x80 => u64::from(stored),
        // The negated exponent of a power of two.
        _ => 1u64.checked_shl(stored.wrapping_neg().into())?,
    };
    let cluster = sectors.checked_mul(sector)?;
    (cluster.is_power_of_two() && cluster <= CLUSTER_MAX).then_some(cluster)
}

/// Looks for a replica of an invalid boot sector. It is in the last sector of the device, which may
/// have 512 to 4096 bytes. Returns `None` if the boot sector is valid.
///
/// # Errors
/// `Io`.
pub(crate) fn replica(dev: &dyn BlockDevice) -> Result<Option<Replica>> {
    if Volume::read(dev).is_ok() {
        return Ok(None);
    }
    let device = dev.geometry().size;
    for sector in [512, 1024, 2048, 4096] {
        let at = device.saturating_sub(sector) / sector * sector;
        let Some(boot) = look(dev, at)?.filter(|_| at > 0) else {
            continue;
        };
        let volume = Volume::of(boot, device).ok();
        let Some(volume) = volume.filter(|volume| volume.size() <= device) else {
            continue;
        };
        let mut bytes = vec![0; BOOT_LEN];
        dev.read_at(at, &mut bytes)?;
        return Ok(Some(Replica {
            kind: "ntfs",
            what: "boot sector",
            at,
            home: 0,
            bytes,
            is_confirmed: is_confirmed(dev, &volume),
        }));
    }
    Ok(None)
}

/// Returns whether there is a record at the start of the `$MFT` or of its mirror.
fn is_confirmed(dev: &dyn BlockDevice, volume: &Volume) -> bool {
    [volume.mft, volume.mirror].iter().any(|first| {
        let mut magic = [0; 4];
        let at = first.saturating_mul(volume.cluster);
        dev.read_at(at, &mut magic).is_ok() && magic == *b"FILE"
    })
}

/// Returns the error for a damaged field of the boot sector.
fn bad(field: &'static str, at: u64, found: impl std::fmt::Display, expected: &str) -> Error {
    Error::corrupt(field, at, format!("{found}"), expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_clusters_or_powers_of_two() {
        assert_eq!(cluster(8, 512), Some(4096));
        assert_eq!(cluster(0x80, 512), Some(64 << 10));
        assert_eq!(cluster(0xf4, 512), Some(2 << 20));
        assert_eq!(cluster(0xf3, 512), None);
        assert_eq!((cluster(0, 512), cluster(3, 512)), (None, None));
        assert_eq!(size_of(-10, 4096), Some(1024));
        assert_eq!(size_of(1, 4096), Some(4096));
        assert_eq!(size_of(-128, 512), None);
    }
}
