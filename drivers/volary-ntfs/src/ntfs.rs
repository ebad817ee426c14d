//! The implementation of `Format`.

use crate::attached::fs::NtfsFs;
use crate::attached::operations::{Attached, OPTIONS};
use crate::check;
use crate::disk::volume;
use crate::look::{dump, info, map};
use std::fmt;
use std::sync::Arc;
use volary_core::{
    Abilities, Answer, Attach, BlockDevice, Check, CheckReport, Fact, Finding, Format, Fs,
    OptionSpec, Others, Probe, Progress, Replica, Result, VolumeMap,
};

/// The NTFS format, for reading.
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

    fn abilities(&self) -> Abilities {
        Abilities::CHECK.and(Abilities::MAP)
    }

    fn others(&self) -> Others {
        Others {
            make: Some("mkntfs"),
            change: Some("ntfs-3g and Windows"),
        }
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

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        Ok(Arc::new(NtfsFs(Attached::new(&dev, how)?)))
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
