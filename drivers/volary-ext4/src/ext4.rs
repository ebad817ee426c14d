//! The format.

use crate::attached::fs::Ext4Fs;
use crate::attached::open::OPTIONS;
use crate::attached::operations::Attached;
use crate::check;
use crate::disk::{replica, volume};
use crate::look::{dump, info, map};
use std::fmt;
use std::sync::Arc;
use volary_core::{
    Abilities, Answer, Attach, BlockDevice, Check, CheckReport, Fact, Finding, Format, Fs,
    OptionSpec, Others, Probe, Progress, Replica, Result, VolumeMap,
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

    fn abilities(&self) -> Abilities {
        Abilities::CHECK.and(Abilities::MAP)
    }

    fn others(&self) -> Others {
        Others {
            make: Some("mke2fs"),
            change: Some("tune2fs and e2fsck"),
        }
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

    fn check_options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        Ok(Arc::new(Ext4Fs(Attached::new(&dev, how)?)))
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
}
