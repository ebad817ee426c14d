//! Compares the bitmaps with what was found in use.

use super::record_bits::RecordBits;
use super::records::{All, RESERVED};
use crate::disk::ondisk::number;
use crate::files::bitmap::each_used;
use crate::store::Store;
use volary_core::{Finding, Result};
use volary_ondisk::reporter::{Reporter, damage};

/// Checks both bitmaps.
///
/// # Errors
/// `Interrupted`; `Io`.
pub(super) fn check(
    store: &Store,
    all: &All,
    bits: &RecordBits<'_>,
    findings: &mut Reporter<'_>,
) -> Result<()> {
    clusters(store, all, findings)?;
    records(store, all, bits, findings)
}

fn clusters(store: &Store, all: &All, findings: &mut Reporter<'_>) -> Result<()> {
    let (mut both, mut lost, mut first) = (0u64, 0u64, None);
    let there = store.volume().there();
    each_used(store.mft(), &mut |start, count| {
        findings.progress("bitmap", start, there)?;
        let mut own = 0u64;
        all.clusters.gaps(start, count, |gap, count| {
            own = own.saturating_add(count);
            first = first.or(Some(gap));
        });
        lost = lost.saturating_add(own);
        both = both.saturating_add(count.saturating_sub(own));
        Ok(())
    })?;
    let at = store.mft().record_at(number::BITMAP).unwrap_or(0);
    let missing = all.taken.saturating_sub(both);
    if missing > 0 {
        let words = format!("{missing} clusters in use are marked as free");
        findings.tell(&Finding {
            code: "bitmap",
            ..damage(at, words)
        });
    }
    // If some metadata could not be read, the clusters may belong to it.
    if let Some(first) = first.filter(|_| !all.is_partial && !all.is_crossed) {
        let words =
            format!("{lost} clusters are marked as in use that are nobody's, the first {first}");
        findings.tell(&Finding {
            code: "bitmap",
            ..damage(at, words)
        });
    }
    Ok(())
}

fn records(
    store: &Store,
    all: &All,
    bits: &RecordBits<'_>,
    findings: &mut Reporter<'_>,
) -> Result<()> {
    let count = store.mft().count();
    let at = store.mft().record_at(number::MFT).unwrap_or(0);
    let (mut missing, mut lost) = (0u64, 0u64);
    for number in (0..count).filter(|number| !RESERVED.contains(number)) {
        if number % 4096 == 0 {
            findings.progress("records", number, count)?;
        }
        match (bits.has(number), all.records.has(number)) {
            (false, true) => missing += 1,
            (true, false) => lost += 1,
            _ => {}
        }
    }
    if missing > 0 {
        let words = format!("{missing} records in use are marked as free");
        findings.tell(&Finding {
            code: "record-bitmap",
            ..damage(at, words)
        });
    }
    if lost > 0 && !all.is_partial {
        let words = format!("{lost} records are marked as in use that are not");
        findings.tell(&Finding {
            code: "record-bitmap",
            ..damage(at, words)
        });
    }
    Ok(())
}
