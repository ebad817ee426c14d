//! The format.

use crate::attached::{Attached, OPTIONS};
use crate::fs::Ext4Fs;
use crate::{check, dump, info, make, map, replica, volume};
use std::fmt;
use std::sync::Arc;
use volary_core::{
    Answer, Attach, BlockDevice, Check, CheckReport, Fact, Finding, Format, Fs, Make, OptionSpec,
    Probe, Progress, Replica, Result, Tune, VolumeMap,
};

/// ext2, ext3 and ext4, for reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ext4;

/// The format.
pub const EXT4: Ext4 = Ext4;

impl Format for Ext4 {
    fn name(&self) -> &'static str {
        "ext4"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["ext4", "ext3", "ext2"]
    }

    fn is_made(&self) -> bool {
        false
    }

    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
        let Some(raw) = volume::look(dev)?.filter(volume::is_likely) else {
            return Ok(None);
        };
        let label = info::text(&raw.s_volume_name);
        Ok(Some(Probe {
            kind: volume::kind_of(&raw),
            label: Some(label).filter(|label| !label.is_empty()),
        }))
    }

    fn replica(&self, dev: &dyn BlockDevice) -> Result<Option<Replica>> {
        replica::find(dev)
    }

    fn attach_options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn make_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    fn check_options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        Ok(Arc::new(Ext4Fs(Attached::new(&dev, how)?)))
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
