//! Runs: the places of an attribute's clusters, as mapping pairs give them.

use crate::disk::ondisk::Reference;
use std::ops::Range;
use volary_core::{Error, Result};

/// Consecutive clusters of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first cluster, counted in the attribute.
    pub(crate) first: u64,
    pub(crate) len: u64,
    /// The first cluster, counted on the volume; `None` for a hole.
    pub(crate) place: Option<u64>,
}

impl Run {
    pub(crate) fn end(&self) -> u64 {
        self.first.saturating_add(self.len)
    }

    /// Returns the part of the run from the cluster `from` up to `end`.
    pub(crate) fn part(&self, from: u64, end: u64) -> Self {
        let skip = from.saturating_sub(self.first);
        Self {
            first: from,
            len: self.end().min(end).saturating_sub(from),
            place: self.place.map(|place| place.saturating_add(skip)),
        }
    }
}

/// The place of some mapping pairs of an attribute: in one of its file's records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The first cluster that they map.
    pub(crate) first: u64,
    pub(crate) record: Reference,
    pub(crate) id: u16,
}

/// Reads the mapping pairs of the attribute's clusters `mapped`. `at` is the place of the pairs on
/// the device. `clusters` is the number of clusters of the volume.
///
/// # Errors
/// `Corrupt` for pairs that end too early or too late, and for runs outside of the volume.
pub(crate) fn decode(pairs: &[u8], at: u64, mapped: Range<u64>, clusters: u64) -> Result<Vec<Run>> {
    let bad = |found: String, expected: &str| Error::corrupt("mapping pairs", at, found, expected);
    let (mut runs, mut rest) = (Vec::new(), pairs);
    let (mut next, end) = (mapped.start, mapped.end);
    let mut place = 0i64;
    loop {
        let Some((head, after)) = rest.split_first() else {
            return Err(bad("no end".into(), "a zero at the end"));
        };
        if *head == 0 {
            break;
        }
        let (len, after) = number(after, head & 0xf)
            .ok_or_else(|| bad(format!("{head:#x}"), "lengths of up to 8 bytes, all there"))?;
        let (delta, after) = number(after, head >> 4)
            .ok_or_else(|| bad(format!("{head:#x}"), "places of up to 8 bytes, all there"))?;
        rest = after;
        let left = end.saturating_sub(next);
        let len = u64::try_from(len)
            .ok()
            .filter(|len| (1..=left).contains(len));
        let len = len.ok_or_else(|| {
            bad(
                format!("a run at {next}"),
                "1 cluster or more, up to the last",
            )
        })?;
        let is_hole = head >> 4 == 0;
        if !is_hole {
            place = place.saturating_add(delta);
        }
        let there = u64::try_from(place).unwrap_or(u64::MAX);
        if !is_hole && there.checked_add(len).is_none_or(|end| end > clusters) {
            let found = format!("{len} clusters at {place}");
            return Err(bad(found, &format!("inside of 0 to {clusters}")));
        }
        runs.push(Run {
            first: next,
            len,
            place: (!is_hole).then_some(there),
        });
        next = next.saturating_add(len);
    }
    match next == end {
        true => Ok(runs),
        false => Err(bad(format!("runs up to {next}"), &format!("up to {end}"))),
    }
}

/// Reads a signed number of `len` bytes.
fn number(bytes: &[u8], len: u8) -> Option<(i64, &[u8])> {
    let (own, rest) = bytes.split_at_checked(len.into())?;
    let is_negative = own.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut all = match is_negative {
        true => [0xff; 8],
        false => [0; 8],
    };
    all.get_mut(..own.len())?.copy_from_slice(own);
    Some((i64::from_le_bytes(all), rest))
}

/// Returns the run that holds a cluster. `runs` must be in order.
pub(crate) fn find(runs: &[Run], cluster: u64) -> Option<Run> {
    let after = runs.partition_point(|run| run.first <= cluster);
    let run = after.checked_sub(1).and_then(|at| runs.get(at)).copied();
    run.filter(|run| cluster < run.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_holes_and_signs_are_read() {
        let pairs = [0x21, 3, 0x10, 1, 0x01, 2, 0x11, 1, 0xf0, 0];
        let runs = decode(&pairs, 0, 10..16, 1000).unwrap();
        let run = |first, len, place| Run { first, len, place };
        let all = [
            run(10, 3, Some(0x110)),
            run(13, 2, None),
            run(15, 1, Some(0x100)),
        ];
        assert_eq!(runs, all);
        assert_eq!(find(&runs, 14), Some(all[1]));
        assert_eq!((find(&runs, 9), find(&runs, 16)), (None, None));
        assert_eq!(all[0].part(11, 12), run(11, 1, Some(0x111)));
    }

    #[test]
    fn pairs_that_contradict_are_refused() {
        for (pairs, end) in [
            (&[0x11, 1, 5][..], 1),
            (&[0x11, 2, 5, 0], 1),
            (&[0x11, 1, 5, 0], 2),
            (&[0x11, 0, 5, 0], 1),
            (&[0x11, 0xff, 5, 0], 1),
            (&[0x11, 1, 0xff, 0], 1),
            (&[0x19, 1, 5, 0], 1),
            (&[0x91, 1, 5, 0], 1),
            (&[0x88, 1], 1),
            (&[0x11, 1, 100, 0], 1),
            (&[], 0),
        ] {
            assert!(decode(pairs, 0, 0..end, 100).is_err(), "{pairs:x?}");
        }
        assert_eq!(decode(&[0], 0, 0..0, 100).unwrap(), []);
    }
}
