//! Devices for `sim`: images with the timing of a modelled disk, whose changes are kept in memory.

use crate::clock;
use crate::exit::{Done, Fail};
use crate::registry::registry;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use volary::block::{MemDevice, Overlay};
use volary::{Attach, BlockDevice, Error, Kind, Opened, Result, Source};
use volary_sim::{Doings, Log, PRESETS, Preset, Spinning, Watched};

/// The disk that all images of this process are on.
#[derive(Debug)]
pub(crate) struct Modelled {
    preset: &'static Preset,
    /// Bytes of changes that an image takes.
    changes: u64,
    /// What the disk of each image does.
    logs: Mutex<Vec<Log>>,
}

static MODELLED: OnceLock<Modelled> = OnceLock::new();

/// Returns the disk of this name.
///
/// # Errors
/// If there is none, with the names that there are.
pub(crate) fn named(name: &str) -> Done<&'static Preset> {
    Preset::named(name).ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        Fail::usage(format!("--disk: {name} is none of {}", names.join(", ")))
    })
}

/// Puts all images that are opened from now on onto modelled disks, which take changes of so many bytes each. Does
/// nothing if that was done before.
pub(crate) fn begin(preset: &'static Preset, changes: u64) -> &'static Modelled {
    MODELLED.get_or_init(|| Modelled {
        preset,
        changes,
        logs: Mutex::default(),
    })
}

/// Returns whether images are on modelled disks.
pub(crate) fn is_on() -> bool {
    MODELLED.get().is_some()
}

/// [`clock::stopwatch`], or where images are on modelled disks what all of these took: for runs that are timed, and
/// devices that are probed.
pub(crate) fn stopwatch() -> volary::bulk::Clock {
    let Some(modelled) = MODELLED.get() else {
        return clock::stopwatch();
    };
    Arc::new(|| {
        let micros: f64 = modelled.all_logs().iter().map(Log::time).sum();
        Duration::from_nanos((micros * 1e3) as u64)
    })
}

/// [`volary::open_source`], or the same on a modelled disk.
///
/// # Errors
/// As there; `TooBig` for an image that is larger than the disk.
pub(crate) fn open_source(source: &Source, read_only: bool) -> Result<Arc<dyn BlockDevice>> {
    let Some(modelled) = MODELLED.get() else {
        return volary::open_source(source, read_only, clock::now());
    };
    modelled.over(volary::open_source(source, true, clock::now())?)
}

/// [`volary::open_volume`], or the same on a modelled disk.
///
/// # Errors
/// As there; `TooBig` for an image that is larger than the disk. On modelled disks `Unsupported` for changes of
/// what is no image: these would be real.
pub(crate) fn open_volume(source: &Source, how: &Attach) -> Result<Opened> {
    match source {
        Source::Image { .. } if is_on() => {
            registry().open_on(open_source(source, how.read_only)?, how, clock::now())
        }
        Source::Host { .. } | Source::Nfs(_) | Source::Scheme { .. }
            if is_on() && !how.read_only =>
        {
            let words = "is no image: sim does not change it";
            Err(Error::note(Kind::Unsupported, words))
        }
        _ => registry().open_volume(source, how, clock::now()),
    }
}

impl Modelled {
    fn over(&self, image: Arc<dyn BlockDevice>) -> Result<Arc<dyn BlockDevice>> {
        let size = image.geometry().size;
        if size > self.preset.capacity() {
            let words = format!(
                "larger than the disk {}, which has {} bytes",
                self.preset.name,
                self.preset.capacity()
            );
            return Err(Error::note(Kind::TooBig, words));
        }
        let changes = Arc::new(MemDevice::new(size));
        let overlay = Arc::new(Overlay::new(image, changes, self.changes));
        let (disk, log) = Watched::new(self.preset);
        self.all_logs().push(log);
        Ok(Arc::new(Spinning::new(overlay, disk)))
    }

    /// Returns what each disk has done so far.
    pub(crate) fn doings(&self) -> Vec<Doings> {
        self.all_logs().iter().map(Log::doings).collect()
    }

    fn all_logs(&self) -> MutexGuard<'_, Vec<Log>> {
        // A list is whole whoever panicked.
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
