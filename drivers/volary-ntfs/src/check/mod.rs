//! Checks a volume. Nothing is repaired, because the driver only reads. May use all rooms but
//! `attached`.

mod boot;
mod maps;
mod names;
mod path;
mod record_bits;
mod records;
mod tree;

use crate::disk::volume::{self, Volume};
use crate::look::info::LOOK_MEMORY;
use crate::scan::Scan;
use crate::state;
use crate::store::Store;
use record_bits::RecordBits;
use records::Records;
use std::sync::Arc;
use volary_block::ByReplica;
use volary_core::{
    Answer, BlockDevice, Check, CheckReport, Fact, Finding, Progress, Result, Severity,
};
use volary_ondisk::reporter::{Reporter, damage, ends, instead, met};

/// Checks the whole volume, and reports contradictions.
///
/// # Errors
/// `Invalid` for an unknown option; `Corrupt` if the volume cannot be opened; `Interrupted`; `Io`.
pub(crate) fn check(
    dev: &Arc<dyn BlockDevice>,
    check: &Check,
    report: &mut dyn FnMut(&Finding) -> Answer,
    progress: &dyn Progress,
) -> Result<CheckReport> {
    check.options.check_known(&[])?;
    let mut findings = Reporter::new(check, report, progress);
    let replica = volume::replica(&**dev)?;
    if let Some(replica) = &replica {
        findings.tell(&Finding {
            code: "boot",
            ..instead(replica)
        });
    }
    let dev = ByReplica::laid(dev.clone(), replica.as_ref());
    let volume = Volume::read(&*dev)?;
    let store = Store::open(dev.clone(), volume, LOOK_MEMORY)?;
    head(&store, &mut findings)?;
    boot::check(&*dev, &store, &mut findings)?;
    let bits = RecordBits::of(store.mft());
    let mut records = Records::new(&store, &bits, &mut findings);
    Scan::new(store.mft(), &mut records).volume()?;
    let mut seen = records.seen()?;
    names::check(&store, &mut seen, &mut findings)?;
    maps::check(&store, &seen, &bits, &mut findings)?;
    Ok(CheckReport {
        found: findings.found(),
        mended: 0,
        written: 0,
        facts: vec![
            Fact::number("files", seen.files, ""),
            Fact::number("directories", seen.dirs, ""),
        ],
    })
}

/// Checks what concerns the volume as a whole: its size, its state, and the table of upper case.
fn head(store: &Store, findings: &mut Reporter<'_>) -> Result<()> {
    let volume = store.volume();
    if volume.size() > volume.device {
        let message = format!(
            "the volume has {} bytes, the device {}",
            volume.size(),
            volume.device
        );
        findings.tell(&Finding {
            code: "truncated",
            ..damage(0x28, message)
        });
    }
    if let Some(words) = state::not_clean(store.mft()) {
        findings.tell(&Finding {
            code: "not-clean",
            severity: Severity::Note,
            ..damage(0, words)
        });
    }
    match store.upcase() {
        Err(e) if ends(&e) => return Err(e),
        Err(e) => findings.tell(&Finding {
            code: "upcase",
            ..met(&e)
        }),
        Ok(_) => {}
    }
    Ok(())
}
