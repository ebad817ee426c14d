//! The boot sector, its copy, and the marks and the label in it.

use super::disk::{Disk, Rank};
use super::findings::{self as code, Reporter, Where};
use super::mend::Mender;
use super::volume::Volume;
use crate::volume::layout::{FatKind, Layout};
use crate::volume::ondisk::{STATE_DIRTY, STATE_ERROR, tail_offset};
use volary_core::{BlockDevice, CheckMode, Error, Kind, Result};

/// Bytes of a boot sector that are compared.
const LEN: usize = 512;
/// Where the copy is by custom, in sectors.
const BACKUP: u64 = 6;
/// Length of a boot sector's fields; after them comes code.
const FIELDS: usize = 90;
/// The label in the boot sector's tail: where, and how long.
const LABEL_AT: usize = 7;
const LABEL_LEN: usize = 11;
/// No label, in the boot sector.
const NO_NAME: [u8; LABEL_LEN] = *b"NO NAME    ";

/// A boot sector that can be gone by.
#[derive(Clone, Debug)]
pub(super) struct Boot {
    pub(super) layout: Layout,
    /// Byte offset of the copy that is to be written over the first one.
    pub(super) restore: Option<u64>,
}

/// Returns all boot sectors that can be gone by, the best one first: the first one, and
/// the copy where it says something else.
///
/// # Errors
/// As [`Layout::read`], if there is none.
pub(super) fn candidates(dev: &dyn BlockDevice) -> Result<Vec<Boot>> {
    let size = dev.geometry().size;
    let main = Layout::read(dev);
    if let Err(e) = &main
        && !matches!(e.kind(), Kind::Corrupt | Kind::Io)
    {
        return Err(Error::note(e.kind(), e.to_string()));
    }
    let mut places: Vec<u64> = [512, 1024, 2048, 4096].map(|s| s * BACKUP).to_vec();
    if let Ok(layout) = &main {
        places.clear();
        if let Some(sector) = layout.backup_sector {
            places.push(u64::from(sector) * u64::from(layout.sector_len));
        }
    }
    let mut all = Vec::new();
    let main_error = match main {
        Ok(layout) => {
            all.push(Boot {
                layout,
                restore: None,
            });
            None
        }
        Err(e) => Some(e),
    };
    for place in places {
        let mut sector = [0; LEN];
        if place + LEN as u64 > size || dev.read_at(place, &mut sector).is_err() {
            continue;
        }
        let Ok(layout) = Layout::parse(&sector, size) else {
            continue;
        };
        let here = layout.is_fat32() && u64::from(layout.sector_len) * BACKUP == place;
        let same = all
            .first()
            .is_some_and(|b: &Boot| same_place(&b.layout, &layout));
        if (here || main_error.is_none()) && !same && layout.is_fat32() {
            all.push(Boot {
                layout,
                restore: Some(place),
            });
        }
    }
    match main_error {
        Some(e) if all.is_empty() => Err(e),
        _ => Ok(all),
    }
}

/// Returns the boot sector at a sector of 512 bytes that the user names. It is to be restored
/// unless the first one says the same.
///
/// # Errors
/// As [`Layout::read_at`].
pub(super) fn at_sector(dev: &dyn BlockDevice, sector: u64) -> Result<Boot> {
    let layout = Layout::read_at(dev, sector)?;
    let same = Layout::read(dev).is_ok_and(|main| same_place(&main, &layout));
    Ok(Boot {
        layout,
        restore: (!same).then_some(sector * 512),
    })
}

/// Returns whether two layouts put everything in the same place.
fn same_place(a: &Layout, b: &Layout) -> bool {
    let strip = |l: &Layout| Layout {
        media: 0,
        serial: None,
        label: None,
        oem: [0; 8],
        state: 0,
        fsinfo_sector: None,
        backup_sector: None,
        ..l.clone()
    };
    strip(a) == strip(b)
}

/// Tells of a boot sector that is to be restored, and restores it.
///
/// # Errors
/// `Io`, also if it cannot be read and is not to be restored.
pub(super) fn restore(boot: &Boot, disk: &mut Disk, reporter: &mut Reporter<'_>) -> Result<()> {
    let Some(place) = boot.restore else {
        return Ok(());
    };
    let words = format!("the boot sector is damaged; its copy at byte {place} fits the volume");
    let at = Where::offset(0);
    let told = reporter.tell(code::BOOT_SECTOR, 0, at, words, "restores it from the copy");
    // What only looks, or refuses all, sees the rest as it would be then.
    if told || reporter.all.mode() != CheckMode::Ask {
        let mut sector = [0; LEN];
        disk.read(place, &mut sector)?;
        return disk.edit(0, &sector, Rank::Early);
    }
    // Without it there is nothing to keep the marks in, if it cannot be read.
    disk.read(0, &mut [0; LEN])
}

/// Mends the boot sector, its copy and its marks.
pub(super) struct BootSector<'m, 'a, 'r> {
    mender: &'m mut Mender<'a, 'r>,
}

impl<'m, 'a, 'r> BootSector<'m, 'a, 'r> {
    pub(super) fn new(mender: &'m mut Mender<'a, 'r>) -> Self {
        Self { mender }
    }

    /// Looks at what the boot sector says besides the layout.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn mend(&mut self) -> Result<()> {
        self.label_copy()?;
        self.backup()
    }

    /// Looks at the media descriptor, which the FAT's first entry repeats.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn media(&mut self) -> Result<()> {
        let media = self.mender.vol.layout.media;
        if is_media(media) {
            return Ok(());
        }
        let head = self.mender.vol.fat.get(0)?.to_le_bytes()[0];
        let new = if is_media(head) { head } else { 0xf8 };
        let words = format!("BPB_Media is {media:#04x}, which is none");
        let at = Where::offset(21);
        if self.mender.reporter.tell(
            code::BOOT_MEDIA,
            0,
            at,
            words,
            format!("sets it to {new:#04x}"),
        ) {
            self.put_boot(21, &[new])?;
            self.mender.vol.layout.media = new;
        }
        Ok(())
    }

    /// Changes bytes of the boot sector and of its copy.
    fn put_boot(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if let Some(place) = self.backup_place() {
            match self.mender.vol.disk.edit(place + offset, bytes, Rank::Late) {
                // It is made anew after that.
                Err(e) if e == Kind::Io => {}
                done => done?,
            }
        }
        self.mender.vol.disk.edit(offset, bytes, Rank::Late)
    }

    /// The label in the boot sector, and in its copy, is that in the root
    /// directory.
    fn label_copy(&mut self) -> Result<()> {
        let Some(have) = self.boot_label(0)? else {
            return Ok(());
        };
        let root = self.mender.dir(0);
        let want = match self.mender.walk.label {
            Some(slot) => {
                let mut name = self.mender.vol.entry(&root, slot)?.DIR_Name;
                crate::names::short::unhide_first(&mut name);
                name
            }
            None => NO_NAME,
        };
        let second = match self.backup_place() {
            Some(place) => self.boot_label(place).or_else(none_if_lost)?,
            None => None,
        };
        if have == want && second.is_none_or(|label| label == want) {
            return Ok(());
        }
        let offset = tail_offset(self.mender.vol.layout.is_fat32()) as u64 + LABEL_AT as u64;
        let words = "the label in the boot sector is not that in the root directory".into();
        let at = Where::offset(offset);
        if self.mender.reporter.tell(
            code::LABEL,
            0,
            at,
            words,
            "copies that in the root directory",
        ) {
            self.put_boot(offset, &want)?;
        }
        Ok(())
    }

    fn backup_place(&self) -> Option<u64> {
        let sector = self.mender.vol.layout.backup_sector?;
        Some(u64::from(sector) * u64::from(self.mender.vol.layout.sector_len))
    }

    /// Returns the label in the boot sector at a byte, if it has one.
    fn boot_label(&mut self, place: u64) -> Result<Option<[u8; LABEL_LEN]>> {
        let at = tail_offset(self.mender.vol.layout.is_fat32()) as u64;
        let mut tail = [0; LABEL_AT + LABEL_LEN];
        self.mender.vol.disk.read(place + at, &mut tail)?;
        let [_, _, signature, _, _, _, _, label @ ..] = tail;
        Ok((signature == 0x29).then_some(label))
    }

    /// The copy of a FAT32 boot sector is the same but for the marks, and for
    /// the label, which was looked at.
    fn backup(&mut self) -> Result<()> {
        let Some(place) = self.backup_place() else {
            return Ok(());
        };
        let second = self.boot_label(place).or_else(none_if_lost)?;
        let labels = (self.boot_label(0)?, second);
        let (mut main, mut copy) = ([0; LEN], [0; LEN]);
        self.mender.vol.disk.read(0, &mut main)?;
        if let Err(e) = self.mender.vol.disk.read(place, &mut copy)
            && e != Kind::Io
        {
            return Err(e);
        }
        if let Some(state) = main.get_mut(state_offset(true)) {
            *state = 0;
        }
        let whole = main;
        for sector in [&mut main, &mut copy] {
            if let Some(state) = sector.get_mut(state_offset(true)) {
                *state = 0;
            }
            if labels.0.is_some() && labels.1.is_some() {
                let from = tail_offset(true) + LABEL_AT;
                if let Some(label) = sector.get_mut(from..from + LABEL_LEN) {
                    label.fill(0);
                }
            }
        }
        let same = main.get(..FIELDS) == copy.get(..FIELDS) && main.get(510..) == copy.get(510..);
        if same {
            return Ok(());
        }
        let words = "the copy of the boot sector differs from it".into();
        let at = Where::offset(place);
        if self.mender.reporter.tell(
            code::BOOT_BACKUP,
            0,
            at,
            words,
            "copies the boot sector again",
        ) {
            self.mender.vol.disk.edit(place, &whole, Rank::Last)?;
        }
        Ok(())
    }

    /// The marks of a volume that was not cleanly left, which go last of all.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn marks(&mut self) -> Result<()> {
        let marks = Marks::read(self.mender.vol)?;
        let at = || Where::offset(state_offset(true) as u64);
        if marks.error {
            let words = "marked as a volume whose disk has failed".into();
            if self
                .mender
                .reporter
                .tell(code::ERROR_MARK, 0, at(), words, "takes the mark away")
            {
                Marks {
                    error: false,
                    ..Marks::read(self.mender.vol)?
                }
                .write(self.mender.vol)?;
            }
        }
        if marks.dirty {
            let words = "marked as not cleanly left".into();
            if self
                .mender
                .reporter
                .tell(code::DIRTY, 0, at(), words, "takes the mark away")
            {
                Marks {
                    dirty: false,
                    ..Marks::read(self.mender.vol)?
                }
                .write(self.mender.vol)?;
            }
        }
        Ok(())
    }
}

/// Returns what cannot be read says nothing.
fn none_if_lost<T>(e: Error) -> Result<Option<T>> {
    match e.kind() {
        Kind::Io => Ok(None),
        _ => Err(e),
    }
}

/// Returns whether a byte is a media descriptor.
pub(super) fn is_media(media: u8) -> bool {
    media == 0xf0 || media >= 0xf8
}

/// Returns where the boot sector keeps its marks.
pub(super) fn state_offset(fat32: bool) -> usize {
    tail_offset(fat32) + 1
}

/// The marks in the boot sector and in the FAT together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) dirty: bool,
    pub(super) error: bool,
}

impl Marks {
    /// Reads them.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn read(vol: &mut Volume) -> Result<Self> {
        let mut state = [0];
        if vol.layout.serial.is_some() {
            let at = state_offset(vol.layout.is_fat32()) as u64;
            vol.disk.read(at, &mut state)?;
        }
        let (clean, whole) = fat_bits(vol.layout.kind);
        let value = vol.fat.get(1)?;
        Ok(Self {
            dirty: state[0] & STATE_DIRTY != 0 || value & clean != clean,
            error: state[0] & STATE_ERROR != 0 || value & whole != whole,
        })
    }

    /// Sets them, in memory.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn write(self, vol: &mut Volume) -> Result<()> {
        if vol.layout.serial.is_some() {
            let at = state_offset(vol.layout.is_fat32()) as u64;
            let mut state = [0];
            vol.disk.read(at, &mut state)?;
            let bit = |on: bool, bit: u8| if on { bit } else { 0 };
            let new = state[0] & !(STATE_DIRTY | STATE_ERROR)
                | bit(self.dirty, STATE_DIRTY)
                | bit(self.error, STATE_ERROR);
            if new != state[0] {
                vol.disk.edit(at, &[new], Rank::Last)?;
            }
        }
        let (clean, whole) = fat_bits(vol.layout.kind);
        let old = vol.fat.get(1)?;
        let bit = |on: bool, bit: u32| if on { 0 } else { bit };
        let new = old & !(clean | whole) | bit(self.dirty, clean) | bit(self.error, whole);
        vol.fat.set(1, new)
    }
}

/// Returns the bits of FAT\[1\] that say "clean" and "no error"; FAT12 has none.
pub(super) const fn fat_bits(kind: FatKind) -> (u32, u32) {
    use crate::volume::ondisk::{CLEAN_SHUT_16, CLEAN_SHUT_32, NO_HARD_ERR_16, NO_HARD_ERR_32};
    match kind {
        FatKind::Fat12 => (0, 0),
        FatKind::Fat16 => (CLEAN_SHUT_16, NO_HARD_ERR_16),
        FatKind::Fat32 => (CLEAN_SHUT_32, NO_HARD_ERR_32),
    }
}
