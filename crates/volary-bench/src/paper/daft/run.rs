//! Runs of the engine over a volume on a modelled disk.

use super::laid::{Laid, Platter};
use super::layout::Layout;
use anyhow::{Result, ensure};
use std::ops::ControlFlow;
use std::sync::Arc;
use volary::bulk::{
    BulkFileRead, Cleaning, Consumer, File, Method, Options, Part, Source, Summary,
};
use volary::{Cred, FileKind, Time, Volume, VolumeOptions};
use volary_sim::Preset;

/// Memory of the paper's computer, less what else is in it.
const MEMORY: u64 = 768 << 20;

/// How files are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) method: Method,
    pub(super) cleaning: Cleaning,
    pub(super) memory: u64,
    /// Longer files are left out.
    pub(super) limit: u64,
}

impl How {
    pub(super) fn new(method: Method, limit: u64) -> Self {
        Self {
            method,
            cleaning: Cleaning::OnDemand,
            memory: MEMORY,
            limit,
        }
    }
}

/// Takes files up to a length, and does nothing with them.
struct UpTo(u64);

impl Consumer for UpTo {
    fn wants(&self, file: &File<'_>) -> bool {
        file.attr
            .is_none_or(|attr| attr.kind != FileKind::File || attr.size <= self.0)
    }

    fn take(&self, _: &File<'_>, _: Part<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Reads all files. Returns the seconds that it took, and what the engine tells.
///
/// # Errors
/// If not all files were read.
pub(super) fn run(layout: &Arc<Layout>, disk: &Preset, how: How) -> Result<(f64, Summary)> {
    let disk = Platter::new(disk, disk.capacity().min(i64::MAX as u64));
    let options = VolumeOptions {
        trust: true,
        ..VolumeOptions::new("laid", || Time::EPOCH)
    };
    let volume = Volume::new(Arc::new(Laid::new(layout, &disk)), options);
    let source = Source::new(volume.session(Cred::root())).on(disk.clone());
    let clock = disk.clone();
    let engine = BulkFileRead::new(Options {
        memory: how.memory,
        method: how.method,
        cleaning: how.cleaning,
        // One thread keeps the order of requests the same.
        depth: Some(1),
        clock: Some(Arc::new(move || clock.elapsed())),
        ..Options::default()
    })?;
    let sum = engine.run(&[source], &UpTo(how.limit));
    let wanted = layout.up_to(how.limit).count() as u64;
    ensure!(
        sum.files == wanted && sum.failed == 0,
        "{} of {wanted} files were read",
        sum.files
    );
    Ok((disk.now() / 1e6, sum))
}
