//! CFS's column of Table 2: the time of its operations on the same disk.

use super::cfs::Volume;
use super::machine::LARGE;
use anyhow::Result;
use volary_sim::Preset;
use volary_sim::rng::Rng;
use volary_sim::seek::Drive;

const DRIVE: Drive = Drive::TRIDENT;
/// Small files that are made before any is measured, and those that are measured.
const BEFORE: usize = 1000;
const MADE: usize = 400;
const LARGES: usize = 48;
const READS: usize = 400;
/// Bytes of a small file, as in FSD's column.
const SMALL: usize = 400;
/// Sectors that are taken of a volume that is moderately full.
const HALF: u64 = DRIVE.track * DRIVE.heads * DRIVE.cylinders / 2;

/// Times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Times {
    pub(super) small_create: f64,
    pub(super) large_create: f64,
    pub(super) open: f64,
    pub(super) read: f64,
    pub(super) small_delete: f64,
    pub(super) large_delete: f64,
    pub(super) page: f64,
    pub(super) recovery: f64,
}

struct Timing {
    on: Volume,
    rng: Rng,
}

impl Timing {
    /// Returns what operations take on the disk, on the average; it may have turned anywhere before each.
    fn mean(
        &mut self,
        times: usize,
        mut act: impl FnMut(&mut Volume, &mut Rng, usize) -> Result<()>,
    ) -> Result<f64> {
        let mut all = 0.0;
        for i in 0..times {
            self.on.wait(self.rng.below(100_000) as f64);
            let before = self.on.now();
            act(&mut self.on, &mut self.rng, i)?;
            all += self.on.now() - before;
        }
        Ok(all / times as f64)
    }
}

fn small(i: usize) -> String {
    format!("Benchmark>Small{i:04}.bcd")
}

fn large(i: usize) -> String {
    format!("Benchmark>Large{i:02}.bcd")
}

/// Returns a volume that is half full, and how many files it has. Half of them have less than 4,000 bytes, and together 8 %
/// of the sectors (section 5.6).
fn half_full(disk: &Preset) -> Result<(Volume, usize)> {
    let mut on = Volume::make(disk)?;
    let (mut rng, mut taken, mut files) = (Rng::new(2), 0, 0);
    while taken < HALF {
        let len = match rng.below(2) {
            0 => 1 + rng.below(4000),
            _ => 4000 + rng.below(44_000),
        };
        on.create(&format!("Full>File{files:05}"), &vec![0; len as usize])?;
        taken += 2 + len.div_ceil(512);
        files += 1;
    }
    Ok((on, files))
}

/// Measures all on a disk.
///
/// # Errors
/// Of the volume.
pub(super) fn times(disk: &Preset) -> Result<Times> {
    let (on, others) = half_full(disk)?;
    let rng = Rng::new(1);
    let mut timing = Timing { on, rng };
    for i in 0..BEFORE {
        timing.on.create(&small(i), &[7; SMALL])?;
    }
    let content = vec![0; LARGE as usize];
    let mut times = Times {
        small_create: timing.mean(MADE, |on, _, i| on.create(&small(BEFORE + i), &[7; SMALL]))?,
        large_create: timing.mean(LARGES, |on, _, i| on.create(&large(i), &content))?,
        ..Times::default()
    };
    times.reads(&mut timing)?;
    times.large_delete = timing.mean(LARGES, |on, _, i| on.delete(&large(i)))?;
    times.small_delete = timing.mean(MADE, |on, _, i| on.delete(&small(BEFORE + i)))?;
    let before = timing.on.now();
    let found = timing.on.scavenge((DRIVE.track * DRIVE.heads) as usize)?;
    times.recovery = timing.on.now() - before;
    anyhow::ensure!(found == others + BEFORE, "{found} files were found");
    Ok(times)
}

impl Times {
    /// Measures what only reads, of files anywhere among the small ones. The name table is in memory, as it is for FSD.
    fn reads(&mut self, timing: &mut Timing) -> Result<()> {
        let files = BEFORE + MADE;
        timing.on.list("Benchmark>Small")?;
        self.open = timing.mean(READS, |on, rng, _| {
            on.open(&small(rng.index(files))).map(|_| ())
        })?;
        self.read = timing.mean(READS, |on, rng, _| {
            let open = on.open(&small(rng.index(files)))?;
            on.read_page(&open, 0).map(|_| ())
        })?;
        let mut opens = Vec::new();
        for i in 0..LARGES {
            opens.push(timing.on.open(&large(i))?);
        }
        self.page = timing.mean(READS, |on, rng, _| {
            let open = &opens[rng.index(LARGES)];
            on.read_page(open, rng.below(LARGE / 512)).map(|_| ())
        })?;
        Ok(())
    }
}
