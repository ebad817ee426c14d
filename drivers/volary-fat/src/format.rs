//! The format: what there is to do with a FAT volume.

use crate::look::dump::DUMP_TOPICS;
use crate::look::info::label_text;
use crate::make::MAKE_OPTIONS;
use crate::names::codepage::CodePage;
use crate::options::MOUNT_OPTIONS;
use crate::volume::layout::{FatKind, Layout};
use std::fmt::Write;
use std::sync::Arc;
use volary_core::{
    Abilities, Answer, Attach, BlockDevice, Check, CheckReport, Fact, Finding, Format, Fs, Kind,
    Make, OptionSpec, Probe, Progress, Replica, Result, Tune, VolumeMap, unknown_kind,
};

/// FAT12, FAT16 and FAT32.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fat;

/// The format.
pub static FAT: Fat = Fat;

impl Format for Fat {
    fn name(&self) -> &'static str {
        "fat"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["fat12", "fat16", "fat32"]
    }

    fn abilities(&self) -> Abilities {
        Abilities::ALL
    }

    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
        match Layout::read(dev) {
            Ok(layout) => Ok(Some(Probe {
                kind: layout.kind.name(),
                label: layout.label.as_ref().and_then(label_of),
            })),
            Err(e) if e == Kind::Io => Err(e),
            Err(_) => Ok(claimed_kind(dev)?.map(|kind| Probe { kind, label: None })),
        }
    }

    fn replica(&self, dev: &dyn BlockDevice) -> Result<Option<Replica>> {
        crate::volume::replica::find(dev)
    }

    fn replica_option(&self) -> Option<&'static str> {
        Some("boot")
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
        crate::attached::fs::attach(dev, how)
    }

    fn make(&self, dev: Arc<dyn BlockDevice>, kind: &str, how: &Make) -> Result<Vec<Fact>> {
        let kinds = [FatKind::Fat12, FatKind::Fat16, FatKind::Fat32];
        match kinds.into_iter().find(|k| k.name() == kind) {
            Some(kind) => crate::make::make(dev.as_ref(), kind, how),
            None => Err(unknown_kind(self, kind)),
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
        crate::look::info::info(dev.as_ref())
    }

    fn dump_topics(&self) -> &'static [OptionSpec] {
        DUMP_TOPICS
    }

    fn dump(&self, dev: Arc<dyn BlockDevice>, what: &[String], out: &mut dyn Write) -> Result<()> {
        crate::look::dump::dump(dev.as_ref(), what, out)
    }

    fn map(&self, dev: Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
        crate::look::map::map(dev.as_ref(), cells)
    }

    fn tune(
        &self,
        dev: Arc<dyn BlockDevice>,
        how: &Tune,
        progress: &dyn Progress,
    ) -> Result<Vec<Fact>> {
        crate::tune::run(&dev, how, progress)
    }

    fn mark_bad(&self, dev: Arc<dyn BlockDevice>, sectors: &[u64]) -> Result<Vec<Fact>> {
        crate::tune::badsect::mark(&dev, sectors)
    }
}

/// Returns the kind that a boot sector claims by `BS_FilSysType`, whatever else is wrong
/// with it: attaching then says what.
fn claimed_kind(dev: &dyn BlockDevice) -> Result<Option<&'static str>> {
    let mut sector = [0; 512];
    if dev.geometry().size < 512 {
        return Ok(None);
    }
    dev.read_at(0, &mut sector)?;
    let claims = |at: usize, name: &[u8; 8]| sector.get(at..at + 8) == Some(name);
    let is_signed = sector.ends_with(&[0x55, 0xaa]);
    let claims = [
        (82, b"FAT32   ", "fat32"),
        (54, b"FAT16   ", "fat16"),
        (54, b"FAT12   ", "fat12"),
    ]
    .into_iter()
    .find(|(at, name, _)| is_signed && claims(*at, name));
    Ok(claims.map(|(_, _, kind)| kind))
}

/// Returns a label of the boot sector, unless it stands for none.
fn label_of(label: &[u8; 11]) -> Option<String> {
    let page = CodePage::new(CodePage::DEFAULT).ok()?;
    label_text(*label, &page)
}
