//! Reading before it is asked for, in the order in which things lie.

use volary_block::Cache;
use volary_core::Ctx;

/// Bytes that are read ahead for one hint, at most.
pub const AHEAD_MAX: u64 = 8 << 20;

/// Gaps that are read over.
const GAP: u64 = 64 << 10;

/// A stretch of the device: where it begins, and its length, in bytes.
pub type Stretch = (u64, u64);

/// Reads stretches into the cache, sorted, up to [`AHEAD_MAX`] bytes in all. Those that are near each
/// other are read as one. Stops once the caller has lost interest.
pub fn read_sorted(cx: &Ctx<'_>, cache: &Cache, mut stretches: Vec<Stretch>) {
    stretches.sort_unstable();
    let mut left = AHEAD_MAX;
    let mut whole: Option<Stretch> = None;
    for (at, len) in stretches {
        whole = match whole {
            Some((start, end)) if at <= end.saturating_add(GAP) => {
                Some((start, end.max(at.saturating_add(len))))
            }
            before => {
                read(cx, cache, before, &mut left);
                Some((at, at.saturating_add(len)))
            }
        };
    }
    read(cx, cache, whole, &mut left);
}

/// Reads from a start to an end.
fn read(cx: &Ctx<'_>, cache: &Cache, ends: Option<Stretch>, left: &mut u64) {
    let Some((start, end)) = ends else { return };
    let len = (end - start).min(*left);
    if len > 0 && cx.check_cancel().is_ok() {
        *left -= len;
        cache.prefetch(start, len);
    }
}
