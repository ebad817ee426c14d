//! The format.

use crate::attached::{Attached, OPTIONS};
use crate::fs::Iso9660Fs;
use crate::{check, descriptors, dump, info, make, map, names};
use std::fmt;
use std::sync::Arc;
use volary_core::{
    Answer, Attach, BlockDevice, Check, CheckReport, Fact, Finding, Format, Fs, Make, OptionSpec,
    Probe, Progress, Result, Tune, VolumeMap,
};

/// ISO 9660, for reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct Iso9660;

/// The format.
pub const ISO9660: Iso9660 = Iso9660;

impl Format for Iso9660 {
    fn name(&self) -> &'static str {
        "iso9660"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["iso9660"]
    }

    fn is_made(&self) -> bool {
        false
    }

    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
        let Some(primary) = descriptors::looks_like(dev)? else {
            return Ok(None);
        };
        let label = names::text(&primary.volume_identifier);
        Ok(Some(Probe {
            kind: "iso9660",
            label: Some(label).filter(|label| !label.is_empty()),
        }))
    }

    fn attach_options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn make_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        Ok(Arc::new(Iso9660Fs(Attached::new(dev, how)?)))
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
        how.options.check_known(&[])?;
        check::check(dev, how, report, progress)
    }

    fn info(&self, dev: Arc<dyn BlockDevice>) -> Result<Vec<Fact>> {
        info::info(dev)
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
        dump::dump(dev, what, out)
    }

    fn map(&self, dev: Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
        map::map(dev, cells)
    }

    fn tune(&self, _: Arc<dyn BlockDevice>, _: &Tune, _: &dyn Progress) -> Result<Vec<Fact>> {
        Err(make::change())
    }

    fn mark_bad(&self, _: Arc<dyn BlockDevice>, _: &[u64]) -> Result<Vec<Fact>> {
        Err(make::change())
    }
}
