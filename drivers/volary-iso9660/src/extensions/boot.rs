//! El Torito: the boot images of a volume.

use crate::disk::ondisk::{BootEntry, SECTOR, SectionHeader, ValidationEntry};
use volary_block::Cache;
use volary_core::{Kind, Result};
use zerocopy::FromBytes;

/// A boot image.
pub(crate) struct BootImage {
    pub(crate) platform: u8,
    pub(crate) bootable: bool,
    pub(crate) media: u8,
    /// Its first sector, in sectors of 2048 bytes.
    pub(crate) sector: u32,
    /// The sectors of 512 bytes that are loaded.
    pub(crate) count: u16,
}

/// A boot catalog.
pub(crate) struct Catalog {
    pub(crate) id: String,
    /// Whether its validation entry is valid.
    pub(crate) is_valid: bool,
    pub(crate) images: Vec<BootImage>,
}

const BOOTABLE: u8 = 0x88;
const NOT_BOOTABLE: u8 = 0;
const SECTION: u8 = 0x90;
const LAST_SECTION: u8 = 0x91;
const EXTENSION: u8 = 0x44;

impl Catalog {
    /// Reads the catalog at a sector. Entries past that sector are ignored.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn read(cache: &Cache, sector: u32) -> Result<Option<Self>> {
        let mut bytes = vec![0; SECTOR as usize];
        match cache.read(u64::from(sector) * SECTOR, &mut bytes) {
            Err(e) if e == Kind::Invalid => return Ok(None),
            read => read?,
        }
        let (entries, _) = bytes.as_chunks::<32>();
        let Some((first, entries)) = entries.split_first() else {
            return Ok(None);
        };
        let Ok(validation) = ValidationEntry::read_from_bytes(first) else {
            return Ok(None);
        };
        let (words, _) = first.as_chunks::<2>();
        let sum = words.iter().fold(0u16, |sum, word| {
            sum.wrapping_add(u16::from_le_bytes(*word))
        });
        let is_valid = validation.header_id == 1 && validation.key == [0x55, 0xaa] && sum == 0;
        Ok(Some(Self {
            id: crate::disk::names::text(&validation.id_string),
            is_valid,
            images: images(entries, validation.platform_id),
        }))
    }
}

fn images(entries: &[[u8; 32]], platform: u8) -> Vec<BootImage> {
    let mut images = Vec::new();
    let mut platform = platform;
    // The default entry comes first, alone. Sections follow it.
    let mut left = 1;
    for bytes in entries {
        let Ok(entry) = BootEntry::read_from_bytes(bytes) else {
            break;
        };
        match entry.boot_indicator {
            EXTENSION => {}
            SECTION | LAST_SECTION => {
                let Ok(header) = SectionHeader::read_from_bytes(bytes) else {
                    break;
                };
                platform = header.platform_id;
                left = header.entries.get();
            }
            BOOTABLE | NOT_BOOTABLE if left > 0 && entry.load_rba.get() > 0 => {
                left -= 1;
                images.push(BootImage {
                    platform,
                    bootable: entry.boot_indicator == BOOTABLE,
                    media: entry.boot_media_type & 0x0f,
                    sector: entry.load_rba.get(),
                    count: entry.sector_count.get(),
                });
            }
            _ => break,
        }
    }
    images
}

impl BootImage {
    /// Returns a description in words.
    pub(crate) fn words(&self) -> String {
        let platform = match self.platform {
            0 => "80x86 BIOS".into(),
            1 => "PowerPC".into(),
            2 => "Mac".into(),
            0xef => "UEFI".into(),
            other => format!("platform {other:#x}"),
        };
        let media = match self.media {
            0 => "no emulation",
            1 => "as a diskette of 1.2M",
            2 => "as a diskette of 1.44M",
            3 => "as a diskette of 2.88M",
            4 => "as a hard disk",
            _ => "unknown emulation",
        };
        let not = if self.bootable { "" } else { ", not bootable" };
        format!(
            "{platform}, {media}, sector {}, {} x 512 bytes{not}",
            self.sector, self.count
        )
    }
}
