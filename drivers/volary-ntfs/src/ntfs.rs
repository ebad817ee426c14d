//! The format.

use crate::attached::{Attached, OPTIONS};
use crate::fs::NtfsFs;
use crate::{check, dump, info, make, map, volume};
use std::fmt;
use std::sync::Arc;
use volary_core::{
    Answer, Attach, BlockDevice, Check, CheckReport, Fact, Finding, Format, Fs, Make, OptionSpec,
    Probe, Progress, Replica, Result, Tune, VolumeMap,
};

/// NTFS, for reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ntfs;

/// The format.
pub const NTFS: Ntfs = Ntfs;

impl Format for Ntfs {
    fn name(&self) -> &'static str {
        "ntfs"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["ntfs"]
    }

    fn is_made(&self) -> bool {
        false
    }

    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
        let Some(boot) = volume::look(dev, 0)? else {
            return Ok(None);
        };
        let is_volume = volume::Volume::of(boot, dev.geometry().size).is_ok();
        Ok(is_volume.then_some(Probe {
            kind: "ntfs",
            label: None,
        }))
    }

    fn replica(&self, dev: &dyn BlockDevice) -> Result<Option<Replica>> {
        volume::replica(dev)
    }

    fn attach_options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn make_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        Ok(Arc::new(NtfsFs(Attached::new(&dev, how)?)))
    }

    fn make(&self, _: Arc<dyn BlockDevice>, _: &str, _: &Make) -> Result<Vec<Fact>> {
        Err(make::make())
    }

    fn check(
        &self,
        dev: Arc<dyn BlockDevice>,
        how: &Check,
        report: &mut dyn FnMut(&Finding) -> Answer,
        progress: &dyn Progress,
    ) -> Result<CheckReport> {
        check::check(&dev, how, report, progress)
    }

    fn info(&self, dev: Arc<dyn BlockDevice>) -> Result<Vec<Fact>> {
        info::info(&dev)
    }

    fn dump_topics(&self) -> &'static [OptionSpec] {
        dump::TOPICS
    }

    fn dump(
        &self,
        dev: Arc<dyn BlockDevice>,
        what: &[String],
        out: &mut dyn fmt::Write,
    ) -> Result<()> {
        dump::dump(&dev, what, out)
    }

    fn map(&self, dev: Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
        map::map(&dev, cells)
    }

    fn tune(&self, _: Arc<dyn BlockDevice>, _: &Tune, _: &dyn Progress) -> Result<Vec<Fact>> {
        Err(make::change())
    }

    fn mark_bad(&self, _: Arc<dyn BlockDevice>, _: &[u64]) -> Result<Vec<Fact>> {
        Err(make::change())
    }
}
