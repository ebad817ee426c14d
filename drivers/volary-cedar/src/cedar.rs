//! The format: what there is to do with a Cedar volume.

use crate::attached::fs::local;
use crate::attached::operations::Attached;
use crate::attached::options::MOUNT_OPTIONS;
use crate::look::dump::DUMP_TOPICS;
use crate::look::roots::{at_start, replica};
use crate::make::MAKE_OPTIONS;
use crate::remote::attached::CachedFs;
use std::fmt::Write;
use std::sync::Arc;
use volary_core::{
    Abilities, Answer, Attach, BlockDevice, Check, CheckReport, Error, Fact, Finding, Format, Fs,
    Kind, Make, OptionSpec, Probe, Progress, Remote, Replica, Result, Tune, VolumeMap, escape,
    unknown_kind,
};

/// Cedar's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cedar;

/// The format.
pub static CEDAR: Cedar = Cedar;

impl Format for Cedar {
    fn name(&self) -> &'static str {
        "cedar"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["cedar"]
    }

    fn abilities(&self) -> Abilities {
        let shows = Abilities::CHECK.and(Abilities::MEND).and(Abilities::MAP);
        shows.and(Abilities::MAKE).and(Abilities::TUNE)
    }

    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
        let roots = at_start(dev)?;
        let mut layouts = roots.iter();
        let label = |l: &str| (!l.is_empty()).then(|| l.to_owned());
        Ok(layouts.next().map(|found| Probe {
            kind: "cedar",
            label: found.as_ref().ok().and_then(|l| label(&l.label)),
        }))
    }

    fn replica(&self, dev: &dyn BlockDevice) -> Result<Option<Replica>> {
        replica(dev)
    }

    fn attach_options(&self) -> &'static [OptionSpec] {
        MOUNT_OPTIONS
    }

    fn make_options(&self) -> &'static [OptionSpec] {
        MAKE_OPTIONS
    }

    fn check_options(&self) -> &'static [OptionSpec] {
        crate::check::OPTIONS
    }

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        attach(dev, how, None)
    }

    fn attach_over(&self, dev: Arc<dyn BlockDevice>, how: &Attach, remote: Remote) -> Result<Fs> {
        attach(dev, how, Some(remote))
    }

    fn make(&self, dev: Arc<dyn BlockDevice>, kind: &str, how: &Make) -> Result<Vec<Fact>> {
        match kind {
            "cedar" => crate::make::make(&dev, how),
            _ => Err(unknown_kind(self, kind)),
        }
    }

    fn check(
        &self,
        dev: Arc<dyn BlockDevice>,
        how: &Check,
        report: &mut dyn FnMut(&Finding) -> Answer,
        progress: &dyn Progress,
    ) -> Result<CheckReport> {
        crate::check::run(dev, how, report, progress)
    }

    fn info(&self, dev: Arc<dyn BlockDevice>) -> Result<Vec<Fact>> {
        crate::look::info::info(dev)
    }

    fn dump_topics(&self) -> &'static [OptionSpec] {
        DUMP_TOPICS
    }

    fn dump(&self, dev: Arc<dyn BlockDevice>, what: &[String], out: &mut dyn Write) -> Result<()> {
        crate::look::dump::dump(&*dev, what, out)
    }

    fn map(&self, dev: Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
        crate::look::map::map(dev, cells)
    }

    fn tune(
        &self,
        dev: Arc<dyn BlockDevice>,
        how: &Tune,
        _progress: &dyn Progress,
    ) -> Result<Vec<Fact>> {
        crate::look::tune::tune(&*dev, how)
    }

    fn mark_bad(&self, _dev: Arc<dyn BlockDevice>, _sectors: &[u64]) -> Result<Vec<Fact>> {
        Err(volary_core::Error::note(
            volary_core::Kind::Unsupported,
            "a cedar volume has no list of bad sectors: metadata is there twice",
        ))
    }
}

/// Attaches the volume on a device, with its remote if it has one and that is named.
///
/// # Errors
/// As [`Format::attach_over`](volary_core::Format::attach_over).
fn attach(dev: Arc<dyn BlockDevice>, how: &Attach, remote: Option<Remote>) -> Result<Fs> {
    let attached = Attached::new(dev, how)?;
    let layout = &attached.files.core.layout;
    if let Some(remote) = remote.as_ref().filter(|r| r.name != layout.remote) {
        let own = match layout.has_remote() {
            true => format!("keeps files of '{}'", escape(layout.remote.as_bytes())),
            false => "was made without a remote".into(),
        };
        let words = format!("option 'remote' is '{}': the volume {own}", remote.name);
        return Err(Error::note(Kind::Invalid, words));
    }
    let has_remote = layout.has_remote();
    let local = local(attached)?;
    match has_remote {
        true => Ok(Arc::new(CachedFs::new(local, remote)?)),
        false => Ok(Arc::new(local)),
    }
}
