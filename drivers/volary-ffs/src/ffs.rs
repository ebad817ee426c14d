//! The format, as the rest of the project calls it.

use crate::attached::fs::FfsFs;
use crate::attached::operations::{Attached, CHECK_OPTIONS, OPTIONS, SUPERBLOCK};
use crate::disk::replica;
use crate::disk::superblock::Found;
use crate::look::{dump, info, map};
use crate::parameters::tune;
use crate::{badsect, check, make};
use std::fmt;
use std::sync::Arc;
use volary_core::{
    Abilities, Answer, Attach, BlockDevice, Check, CheckReport, Fact, Finding, Format, Fs, Make,
    OptionSpec, Probe, Progress, Replica, Result, Tune, VolumeMap, unknown_kind,
};

/// The Fast File System.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ffs;

/// The format, for lists of formats.
pub const FFS: Ffs = Ffs;

impl Format for Ffs {
    fn name(&self) -> &'static str {
        "ffs"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["ffs1", "ffs2"]
    }

    fn abilities(&self) -> Abilities {
        Abilities::ALL
    }

    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
        let found = Found::first(dev)?;
        Ok(found.map(|found| Probe {
            kind: if found.is_ufs2 { "ffs2" } else { "ffs1" },
            label: info::label(&found),
        }))
    }

    fn replica(&self, dev: &dyn BlockDevice) -> Result<Option<Replica>> {
        replica::find(dev)
    }

    fn replica_option(&self) -> Option<&'static str> {
        Some(SUPERBLOCK.name)
    }

    fn attach_options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn make_options(&self) -> &'static [OptionSpec] {
        make::OPTIONS
    }

    fn check_options(&self) -> &'static [OptionSpec] {
        CHECK_OPTIONS
    }

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        Ok(Arc::new(FfsFs(Attached::new(dev, how)?)))
    }

    fn make(&self, dev: Arc<dyn BlockDevice>, kind: &str, how: &Make) -> Result<Vec<Fact>> {
        let is_ufs2 = match kind {
            "ffs1" => false,
            "ffs2" => true,
            _ => return Err(unknown_kind(self, kind)),
        };
        make::make(&dev, is_ufs2, how)
    }

    fn check(
        &self,
        dev: Arc<dyn BlockDevice>,
        how: &Check,
        report: &mut dyn FnMut(&Finding) -> Answer,
        progress: &dyn Progress,
    ) -> Result<CheckReport> {
        how.options.check_known(CHECK_OPTIONS)?;
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

    fn tune_options(&self) -> &'static [OptionSpec] {
        tune::OPTIONS
    }

    fn tune(&self, dev: Arc<dyn BlockDevice>, how: &Tune, _: &dyn Progress) -> Result<Vec<Fact>> {
        tune::tune(&dev, how)
    }

    fn mark_bad(&self, dev: Arc<dyn BlockDevice>, sectors: &[u64]) -> Result<Vec<Fact>> {
        badsect::mark(dev, sectors)
    }
}
