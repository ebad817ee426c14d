//! Modelled disks by name.

use crate::models::buffered::{Buffered, BufferedDisk};
use crate::models::flash::{Flash, FlashDisk};
use crate::models::hard::{HardDisk, Model};
use crate::models::seek::{Drive, Turning};
use crate::models::spinning::Timed;

/// A disk with a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it is, in words.
    pub what: &'static str,
    /// How long its requests take.
    pub timing: Timing,
}

/// A model of the time that requests take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timing {
    /// An arm and a platter, without a buffer: bytes go to memory as they pass under the head.
    Unbuffered(Drive),
    /// A disk of about 1990, with a buffer.
    Buffered(Buffered),
    /// A hard disk of the years since 2000.
    Hard(Model),
    /// A device without moving parts.
    Flash(Flash),
}

/// All presets: those of the papers first.
pub static PRESETS: &[Preset] = &[
    Preset::CAPRICORN,
    Preset::T300,
    Preset::MAXTOR400,
    Preset::C2247,
    Preset::FLOPPY,
    Preset::ST373455LW,
    Preset::DIAMONDMAX,
    Preset::HDD,
    Preset::new(
        "sd",
        "SD card of speed class A1",
        Timing::Flash(Flash::CARD),
    ),
    Preset::new("sata", "SATA SSD", Timing::Flash(Flash::SATA)),
    Preset::new("nvme", "NVMe SSD", Timing::Flash(Flash::NVME)),
    Preset::new("objects", "object store", Timing::Flash(Flash::OBJECTS)),
];

impl Preset {
    /// The disk of the FFS paper.
    pub const CAPRICORN: Self = Self::new(
        "capricorn",
        "AMPEX Capricorn of the FFS paper, 3,600 revolutions a minute",
        Timing::Unbuffered(Drive::CAPRICORN),
    );

    /// The disk of the Cedar paper.
    pub const T300: Self = Self::new(
        "t300",
        "Trident T-300 of the Cedar paper, 3,600 revolutions a minute",
        Timing::Unbuffered(Drive::TRIDENT),
    );

    /// The Gateway's disk of the DosFs paper.
    pub const MAXTOR400: Self = Self::new(
        "maxtor400",
        "Maxtor of 400 MB of the DosFs paper, 3,600 revolutions a minute, SCSI",
        Timing::Buffered(Buffered::MAXTOR400),
    );

    /// The DECstation's disk of the DosFs paper.
    pub const C2247: Self = Self::new(
        "c2247",
        "HP C2247 of the DosFs paper, 5,400 revolutions a minute, SCSI",
        Timing::Buffered(Buffered::C2247),
    );

    /// The floppy disk of the DosFs paper.
    pub const FLOPPY: Self = Self::new(
        "floppy",
        "floppy of 1.44 MB, 300 revolutions a minute",
        Timing::Buffered(Buffered::FLOPPY),
    );

    /// The fast disk of the DAFT paper.
    pub const ST373455LW: Self = Self::new(
        "st373455lw",
        "Seagate of the DAFT paper, 15,000 revolutions a minute",
        Timing::Hard(Model::FAST),
    );

    /// The slow disk of the DAFT paper.
    pub const DIAMONDMAX: Self = Self::new(
        "6y160p0",
        "Maxtor of the DAFT paper, 7,200 revolutions a minute",
        Timing::Hard(Model::SLOW),
    );

    /// A hard disk of today.
    pub const HDD: Self = Self::new(
        "hdd",
        "hard disk of 8 TB as sold today, 7,200 revolutions a minute",
        Timing::Hard(Model::TODAY),
    );

    /// Makes a preset.
    pub const fn new(name: &'static str, what: &'static str, timing: Timing) -> Self {
        Self { name, what, timing }
    }

    /// Returns the disk of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Returns the capacity in bytes; devices without moving parts have no limit.
    pub const fn capacity(&self) -> u64 {
        match &self.timing {
            Timing::Unbuffered(drive) => drive.capacity(),
            Timing::Buffered(model) => model.drive.capacity(),
            Timing::Hard(model) => model.capacity,
            Timing::Flash(_) => u64::MAX,
        }
    }

    /// Returns a disk of this kind at time 0, with its arm at the first cylinder.
    pub fn disk(&self) -> Box<dyn Timed> {
        match self.timing {
            Timing::Unbuffered(drive) => Box::new(Turning::new(drive)),
            Timing::Buffered(model) => Box::new(BufferedDisk::new(model)),
            Timing::Hard(model) => Box::new(HardDisk::new(model)),
            Timing::Flash(model) => Box::new(FlashDisk::new(model)),
        }
    }

    /// Returns the sequential rate in bytes per microsecond. For a drive without a buffer, this is
    /// the rate of its tracks. For others, it is measured with requests of 64 KiB over the first 8
    /// MiB, or over a quarter of a smaller disk.
    pub fn bandwidth(&self) -> f64 {
        if let Timing::Unbuffered(drive) = self.timing {
            return (drive.track * crate::disks::disk::SECTOR as u64) as f64 / drive.revolution;
        }
        let (mut disk, step) = (self.disk(), 64 << 10);
        let bytes = (8 << 20).min(self.capacity() / 4) / step * step;
        for at in (0..bytes).step_by(step as usize) {
            disk.read(at, step);
        }
        bytes as f64 / disk.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_disk_is_found_by_its_name() {
        for preset in PRESETS {
            assert_eq!(Preset::named(preset.name), Some(preset));
            assert_eq!(preset.disk().now(), 0.0);
        }
        assert_eq!(Preset::named("drum"), None);
    }

    #[test]
    fn bandwidths_are_those_of_the_models() {
        let of = |name| (Preset::named(name).unwrap().bandwidth() * 1000.0).round();
        assert_eq!(of("capricorn"), 983.0);
        assert_eq!(of("t300"), 1167.0);
        let floppy = of("floppy");
        assert!((20.0..45.0).contains(&floppy), "{floppy}");
        assert!(of("nvme") > of("sata") && of("sata") > of("hdd"));
    }
}
