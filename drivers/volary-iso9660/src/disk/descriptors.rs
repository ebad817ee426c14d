//! The volume's descriptors.

use crate::disk::ondisk::{BootRecord, DESCRIPTORS, SECTOR, STANDARD_ID, VolumeDescriptor, kind};
use volary_core::{BlockDevice, Error, Kind, Result};
use zerocopy::FromBytes;

/// The most descriptors that are read.
const DESCRIPTORS_MAX: u64 = 64;

/// The descriptors of a volume.
pub(crate) struct Descriptors {
    pub(crate) primary: VolumeDescriptor,
    /// The supplementary one with Unicode names, and its level.
    pub(crate) joliet: Option<(VolumeDescriptor, u8)>,
    /// The sector of El Torito's boot catalog.
    pub(crate) boot_catalog: Option<u32>,
    /// All descriptors found, as sector and type.
    pub(crate) found: Vec<(u64, u8)>,
}

impl Descriptors {
    /// Reads the descriptors.
    ///
    /// # Errors
    /// `Corrupt` if there is no primary one; `Io`.
    pub(crate) fn read(dev: &dyn BlockDevice) -> Result<Self> {
        let (mut primary, mut joliet, mut boot_catalog) = (None, None, None);
        let mut found = Vec::new();
        for sector in DESCRIPTORS..DESCRIPTORS + DESCRIPTORS_MAX {
            let Some(bytes) = sector_of(dev, sector)? else {
                break;
            };
            let Ok(descriptor) = VolumeDescriptor::read_from_bytes(&bytes) else {
                break;
            };
            if descriptor.standard_identifier != STANDARD_ID {
                break;
            }
            found.push((sector, descriptor.kind));
            match descriptor.kind {
                kind::PRIMARY if primary.is_none() => primary = Some(descriptor),
                kind::SUPPLEMENTARY => {
                    let level = joliet_level(&descriptor.escape_sequences);
                    joliet = joliet.or(level.map(|level| (descriptor, level)));
                }
                kind::BOOT => boot_catalog = boot_catalog.or(catalog(&bytes)),
                kind::TERMINATOR => break,
                _ => {}
            }
        }
        let missing = || {
            let at = DESCRIPTORS * SECTOR;
            Error::corrupt("volume descriptors", at, "none", "a primary one")
        };
        Ok(Self {
            primary: primary.ok_or_else(missing)?,
            joliet,
            boot_catalog,
            found,
        })
    }
}

/// Returns a sector, if it is wholly on the device.
fn sector_of(dev: &dyn BlockDevice, sector: u64) -> Result<Option<Vec<u8>>> {
    let at = sector * SECTOR;
    if at + SECTOR > dev.geometry().size {
        return Ok(None);
    }
    let mut bytes = vec![0; SECTOR as usize];
    dev.read_at(at, &mut bytes)?;
    Ok(Some(bytes))
}

/// Returns the primary volume descriptor, if there is a valid one.
pub(crate) fn looks_like(dev: &dyn BlockDevice) -> Result<Option<VolumeDescriptor>> {
    match Descriptors::read(dev) {
        Ok(descriptors) => Ok(Some(descriptors.primary)),
        Err(e) if e == Kind::Corrupt => Ok(None),
        Err(e) => Err(e),
    }
}

/// Returns the level of Joliet's escape sequences: UCS-2 in levels 1 to 3.
fn joliet_level(escapes: &[u8; 32]) -> Option<u8> {
    match escapes {
        [0x25, 0x2f, 0x40, ..] => Some(1),
        [0x25, 0x2f, 0x43, ..] => Some(2),
        [0x25, 0x2f, 0x45, ..] => Some(3),
        _ => None,
    }
}

fn catalog(bytes: &[u8]) -> Option<u32> {
    let record = BootRecord::read_from_bytes(bytes).ok()?;
    let is_el_torito = record
        .boot_system_identifier
        .starts_with(b"EL TORITO SPECIFICATION");
    is_el_torito.then(|| record.boot_catalog.get())
}
