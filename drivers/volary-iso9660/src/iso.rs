//! The format, as the rest of the project calls it.

use crate::attached::fs::Iso9660Fs;
use crate::attached::operations::{Attached, OPTIONS};
use crate::check;
use crate::disk::{descriptors, names};
use crate::look::{dump, info, map};
use std::fmt;
use std::sync::Arc;
use volary_core::{
    Abilities, Answer, Attach, BlockDevice, Check, CheckReport, Fact, Finding, Format, Fs,
    OptionSpec, Others, Probe, Progress, Result, VolumeMap,
};

/// ISO 9660, read-only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Iso9660;

/// The format, for lists of formats.
pub const ISO9660: Iso9660 = Iso9660;

impl Format for Iso9660 {
    fn name(&self) -> &'static str {
        "iso9660"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["iso9660"]
    }

    fn abilities(&self) -> Abilities {
        Abilities::CHECK.and(Abilities::MAP)
    }

    fn others(&self) -> Others {
        Others {
            make: Some("xorriso or genisoimage"),
            change: None,
        }
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

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        Ok(Arc::new(Iso9660Fs(Attached::new(dev, how)?)))
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
}
