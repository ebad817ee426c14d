//! The paper's file systems, as volary makes them.

use super::kernel::{Kernel, System};
use super::machine::Machine;
use super::msdos::Dos;
use super::today::Today;
use super::volume::Made;
use crate::workload::Files;
use anyhow::Result;

/// The columns of Tables 3 and 5.
pub(super) const SYSTEMS: [&str; 6] = [
    "MS-DOS",
    "FFS",
    "DosFs",
    "FFS / DosFs",
    "MS-DOS / DosFs",
    "volary today",
];

/// Bytes of the paper's MS-DOS partition, the first of the disk; FFS is behind it.
const PARTITION: u64 = 60 << 20;

/// What FAT16 is made with: clusters of 2 KB, and 40 % full.
pub(super) const FAT: Made = Made {
    format: "fat16",
    options: "cluster=2048",
    size: PARTITION,
    full: 40,
};

/// FFS as on the paper's Gateway, in 4.3BSD's format; the volume is smaller than the paper's, which is on the rest of the disk.
pub(super) const FFS: Made = Made {
    format: "ffs1",
    options: "block=4096,fragment=512,old,nsect=54,ntrak=8,rps=60,rotdelay=4,maxcontig=1,minfree=10",
    size: 2 * PARTITION,
    full: 60,
};

/// Where the last of these volumes ends on the disk.
pub(super) const END: u64 = PARTITION + FFS.size;

/// FFS as on the paper's DECstation, optimised for files in a row.
pub(super) const FFS_DEC: Made = Made {
    format: "ffs1",
    options: "block=8192,fragment=1024,old,nsect=80,ntrak=13,rps=90,rotdelay=0,maxcontig=16,minfree=10",
    size: PARTITION,
    full: 0,
};

/// FFS of the same block and fragment with what volary does today: blocks in a row.
pub(super) const FFS_TODAY: Made = Made {
    options: "block=4096,fragment=512",
    ..FFS
};

/// DosFs.
pub(super) const DOSFS: System = System {
    made: FAT,
    base: 0,
    block: 2048,
    unit: 2048,
    io: 16 << 10,
    holds_fat: true,
    reads_ahead: true,
    caches_names: true,
    starts_full: false,
    waits: [1, 0],
};

/// DosFs under Mach 2.5.
pub(super) const DOSFS25: System = System {
    waits: [1, 1],
    ..DOSFS
};

/// 4.3BSD's FFS under Mach 3.0.
pub(super) const UFS: System = System {
    made: FFS,
    base: PARTITION,
    block: 4096,
    unit: 512,
    io: 4096,
    holds_fat: false,
    reads_ahead: true,
    caches_names: true,
    starts_full: false,
    waits: [1, 1],
};

/// The same under Mach 2.5.
pub(super) const UFS25: System = System {
    starts_full: true,
    waits: [1, 2],
    ..UFS
};

/// On the DECstation.
pub(super) const UFS_DEC: System = System {
    made: FFS_DEC,
    block: 8192,
    unit: 1024,
    io: 8192,
    ..UFS25
};

/// A system that is measured.
pub(super) enum Any {
    Unix(Box<Kernel>),
    Dos(Box<Dos>),
    Today(Box<Today>),
}

impl Any {
    /// Returns one with the paper's UNIX.
    ///
    /// # Errors
    /// Of the driver.
    pub(super) fn unix(machine: Machine, system: System) -> Result<Self> {
        Ok(Self::Unix(Box::new(Kernel::new(machine, system)?)))
    }

    /// Returns MS-DOS.
    ///
    /// # Errors
    /// Of the driver.
    pub(super) fn dos(machine: Machine) -> Result<Self> {
        Ok(Self::Dos(Box::new(Dos::new(machine, &FAT)?)))
    }

    /// Returns volary of today.
    ///
    /// # Errors
    /// Of the driver.
    pub(super) fn today(machine: Machine, made: &Made) -> Result<Self> {
        Ok(Self::Today(Box::new(Today::new(machine, made)?)))
    }

    /// Returns its files.
    pub(super) fn files(&mut self) -> &mut dyn Files {
        match self {
            Self::Unix(unix) => &mut **unix,
            Self::Dos(dos) => &mut **dos,
            Self::Today(today) => &mut **today,
        }
    }

    /// Returns microseconds since the beginning.
    pub(super) fn now(&self) -> f64 {
        match self {
            Self::Unix(unix) => unix.now(),
            Self::Dos(dos) => dos.now(),
            Self::Today(today) => today.now(),
        }
    }

    /// Writes everything to the disk and empties the cache, if there is one.
    ///
    /// # Errors
    /// Of the volume.
    pub(super) fn remount(&mut self) -> Result<()> {
        match self {
            Self::Unix(unix) => unix.remount(),
            Self::Dos(_) => Ok(()),
            Self::Today(today) => today.remount(),
        }
    }

    /// Returns the time that something takes.
    ///
    /// # Errors
    /// Of what is done.
    pub(super) fn time(&mut self, does: impl FnOnce(&mut dyn Files) -> Result<()>) -> Result<f64> {
        let begun = self.now();
        does(self.files())?;
        Ok(self.now() - begun)
    }
}
