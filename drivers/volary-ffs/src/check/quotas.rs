//! Compares the usage in the quota files with what users and groups really use (`quotacheck`).

use super::findings::{Findings, finding};
use super::inodes::Inodes;
use super::lost::{attached, within_room};
use super::plan::Plan;
use crate::inodes::blocks::Reader;
use crate::quota::{Counts, QuotaFile};
use std::sync::Arc;
use volary_core::{BlockDevice, Finding, Kind, QuotaOf, Result, Severity, Time};

/// Compares the quotas, if all inodes are known.
///
/// # Errors
/// `Interrupted`; `Io`.
pub(super) fn check(
    reader: Reader<'_>,
    inodes: &Inodes,
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) -> Result<()> {
    if inodes.is_partial {
        return Ok(());
    }
    for of in QuotaOf::ALL {
        match one(reader, of, findings, plan) {
            // The other phases report a damaged quota file.
            Err(e) if e == Kind::Corrupt || e == Kind::Stale => {}
            result => result?,
        }
    }
    Ok(())
}

fn one(
    reader: Reader<'_>,
    of: QuotaOf,
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) -> Result<()> {
    let Some(file) = QuotaFile::find(&reader, of)? else {
        return Ok(());
    };
    findings.progress("quotas", 0, 0)?;
    let at = reader.inode(file.ino.into())?.at;
    let differing = Counts::read(&reader, of)?.differing(&reader, &file)?;
    for (id, ([blocks, inodes], [counted_blocks, counted_inodes])) in differing {
        let message = format!(
            "{} {id} has taken {counted_blocks} sectors and {counted_inodes} inodes; \
             its quota says {blocks} and {inodes}",
            of.word()
        );
        plan.quotas |= findings.tell(&Finding {
            code: "quota",
            path: Some(format!("/{}", file.form.file_name(of)).into_bytes()),
            ..finding(Severity::Crash, at, message)
        });
    }
    Ok(())
}

/// Counts the quotas again on a volume without other errors, if there is room for the counts.
/// Returns how many sectors were written.
///
/// # Errors
/// `Corrupt`; `Io`.
pub(super) fn mend(dev: &Arc<dyn BlockDevice>, now: Time) -> Result<u64> {
    attached(dev, now, |attached, cx| within_room(attached.recount(cx)))
}
