//! The format.

use crate::attached::fs::V7Fs;
use crate::attached::operations::Attached;
use crate::disk::ondisk::Variant;
use crate::disk::volume::Volume;
use crate::look::{dump, info, map};
use crate::{badsect, check, make, options, tune};
use std::fmt;
use std::sync::Arc;
use volary_core::{
    Abilities, Answer, Attach, BlockDevice, Check, CheckReport, Fact, Finding, Format, Fs, Make,
    OptionSpec, Probe, Progress, Result, Tune, VolumeMap, unknown_kind,
};

/// The UNIX file system of the Seventh Edition and of System V.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnixV7;

/// The format.
pub const V7: UnixV7 = UnixV7;

impl Format for UnixV7 {
    fn name(&self) -> &'static str {
        "v7"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["v7", "sysv"]
    }

    fn abilities(&self) -> Abilities {
        Abilities::ALL
    }

    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
        let found = Volume::find(dev)?;
        Ok(found.map(|volume| Probe {
            kind: volume.kind(),
            label: volume.text(volume.variant.fields().fname),
        }))
    }

    fn attach_options(&self) -> &'static [OptionSpec] {
        options::ATTACH
    }

    fn make_options(&self) -> &'static [OptionSpec] {
        options::MAKE
    }

    fn check_options(&self) -> &'static [OptionSpec] {
        options::CHECK
    }

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        Ok(Arc::new(V7Fs(Attached::new(dev, how)?)))
    }

    fn make(&self, dev: Arc<dyn BlockDevice>, kind: &str, how: &Make) -> Result<Vec<Fact>> {
        let variant = match kind {
            "v7" => Variant::V7,
            "sysv" => Variant::SysV,
            _ => return Err(unknown_kind(self, kind)),
        };
        make::make(&dev, variant, how)
    }

    fn check(
        &self,
        dev: Arc<dyn BlockDevice>,
        how: &Check,
        report: &mut dyn FnMut(&Finding) -> Answer,
        progress: &dyn Progress,
    ) -> Result<CheckReport> {
        how.options.check_known(options::CHECK)?;
        check::check(dev, how, report, progress)
    }

    fn info(&self, dev: Arc<dyn BlockDevice>) -> Result<Vec<Fact>> {
        info::info(&*dev)
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

    fn tune(&self, dev: Arc<dyn BlockDevice>, how: &Tune, _: &dyn Progress) -> Result<Vec<Fact>> {
        tune::tune(&dev, how)
    }

    fn mark_bad(&self, dev: Arc<dyn BlockDevice>, sectors: &[u64]) -> Result<Vec<Fact>> {
        badsect::mark_bad(dev, sectors)
    }
}
