//! Bitmaps, against what was seen in use.

use super::records::{All, RESERVED};
use crate::ondisk::{kind, number};
use crate::store::Store;
use volary_core::{Finding, Kind, Result};
use volary_ondisk::reporter::{Reporter, damage};

/// Checks both bitmaps.
///
/// # Errors
/// `Interrupted`; `Io`.
pub(super) fn check(store: &Store, all: &All, findings: &mut Reporter<'_>) -> Result<()> {
    clusters(store, all, findings)?;
    records(store, all, findings)
}

fn clusters(store: &Store, all: &All, findings: &mut Reporter<'_>) -> Result<()> {
    let (mut both, mut lost, mut first) = (0u64, 0u64, None);
    let there = store.volume.there();
    store.each_used(&mut |start, count| {
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
    let at = store.record_at(number::BITMAP).unwrap_or(0);
    let missing = all.taken.saturating_sub(both);
    if missing > 0 {
        let words = format!("{missing} clusters in use are marked as free");
        findings.tell(&Finding {
            code: "bitmap",
            ..damage(at, words)
        });
    }
    // What could not be looked at may be whose they are.
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

fn records(store: &Store, all: &All, findings: &mut Reporter<'_>) -> Result<()> {
    let count = store.mft.records(&store.volume);
    let at = store.record_at(number::MFT).unwrap_or(0);
    let (mut missing, mut lost) = (0u64, 0u64);
    for number in (0..count).filter(|number| !RESERVED.contains(number)) {
        if number % 4096 == 0 {
            findings.progress("records", number, count)?;
        }
        match (store.is_marked(number), all.records.has(number)) {
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

impl Store {
    /// Returns whether the bitmap of records has one as in use. Where it cannot be read, all are.
    pub(super) fn is_marked(&self, number: u64) -> bool {
        let read = || {
            let bits = self.record_bits()?;
            let mut byte = [0];
            bits.read(self, number / 8, &mut byte)?;
            Ok::<_, volary_core::Error>(
                byte.first()
                    .is_some_and(|byte| byte >> (number % 8) & 1 == 1),
            )
        };
        read().unwrap_or(true)
    }

    fn record_bits(&self) -> Result<&crate::stream::Stream> {
        if let Some(bits) = self.record_bits.get() {
            return Ok(bits);
        }
        let node = self.node_of(number::MFT)?;
        let bits = self
            .stream(&node, kind::BITMAP, &[])?
            .ok_or(Kind::Corrupt)?;
        Ok(self.record_bits.get_or_init(|| bits))
    }
}
