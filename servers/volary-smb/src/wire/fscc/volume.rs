//! Information about a volume (MS-FSCC 2.5).

use crate::wire::{Out, utf16};

/// The information about a volume for all levels.
#[derive(Clone, Debug, Default)]
pub(crate) struct VolumeFacts {
    /// The time of creation, as a FILETIME.
    pub(crate) created: u64,
    pub(crate) serial: u32,
    /// The label, in UTF-16LE.
    pub(crate) label: Vec<u8>,
    /// The length of an allocation unit, in bytes. A sector has 512.
    pub(crate) unit: u32,
    /// Sizes, in units.
    pub(crate) total: u64,
    pub(crate) available: u64,
    pub(crate) free: u64,
    /// `FILE_CASE_SENSITIVE_SEARCH` and others.
    pub(crate) attributes: u32,
    /// The longest name, in UTF-16 units.
    pub(crate) name_max: u32,
    /// A unique id of the volume.
    pub(crate) id: [u8; 16],
    pub(crate) read_only: bool,
}

const SECTOR: u32 = 512;
/// The name of the format. Clients use it to detect features.
const FORMAT: &str = "NTFS";

pub(crate) fn volume(out: &mut Out, facts: &VolumeFacts) {
    out.u64(facts.created)
        .u32(facts.serial)
        .len32(facts.label.len());
    out.u8(0).u8(0).bytes(&facts.label);
}

pub(crate) fn size(out: &mut Out, facts: &VolumeFacts) {
    out.u64(facts.total).u64(facts.available);
    out.u32(facts.unit / SECTOR).u32(SECTOR);
}

pub(crate) fn full_size(out: &mut Out, facts: &VolumeFacts) {
    out.u64(facts.total).u64(facts.available).u64(facts.free);
    out.u32(facts.unit / SECTOR).u32(SECTOR);
}

/// Appends a device: a mounted disk, perhaps read-only.
pub(crate) fn device(out: &mut Out, facts: &VolumeFacts) {
    const DISK: u32 = 7;
    const MOUNTED: u32 = 0x20;
    const READ_ONLY: u32 = 0x2;
    out.u32(DISK);
    out.u32(MOUNTED | if facts.read_only { READ_ONLY } else { 0 });
}

pub(crate) fn attributes(out: &mut Out, facts: &VolumeFacts) {
    let format = utf16(FORMAT);
    out.u32(facts.attributes).u32(facts.name_max);
    out.len32(format.len()).bytes(&format);
}

/// Appends that there are no quotas.
pub(crate) fn control(out: &mut Out) {
    out.zeros(24).u64(u64::MAX).u64(u64::MAX).u32(0).u32(0);
}

pub(crate) fn object_id(out: &mut Out, facts: &VolumeFacts) {
    out.bytes(&facts.id).zeros(48);
}

/// Appends `FileFsSectorSizeInformation`: aligned sectors of 512 bytes.
pub(crate) fn sector_size(out: &mut Out) {
    const ALIGNED_DEVICE: u32 = 1;
    const PARTITION_ALIGNED: u32 = 2;
    out.u32(SECTOR).u32(SECTOR).u32(SECTOR).u32(SECTOR);
    out.u32(ALIGNED_DEVICE | PARTITION_ALIGNED).u32(0).u32(0);
}
