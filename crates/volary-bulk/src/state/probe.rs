//! Measures a device to choose the gap to read over, the size of requests, and their number at a
//! time.

use crate::interface::options::Clock;
use crate::interface::source::Source;
use crate::listing::list::{List, Piece};
use crate::state::part::{Run, Tuned};
use std::time::Duration;
use volary_core::BlockDevice;

/// Values that are right for most devices, and nearly right for the others.
const UNASKED: Tuned = Tuned {
    gap: 64 << 10,
    request: 512 << 10,
    depth: 4,
    moves: false,
};

/// With fewer bytes to read than this, a probe does not pay.
const WORTH_ASKING: u64 = 16 << 20;

/// The reads of a probe, as length and count: small ones, far apart, and large ones.
const SMALL: (usize, usize) = (4 << 10, 8);
const LARGE: (usize, usize) = (1 << 20, 4);

/// The number of slow small reads after which a device is known to seek.
const SLOW: usize = 3;

/// A device with this access time seeks.
const MOVES: Duration = Duration::from_micros(1500);

/// Returns whether a device seeks: a few reads, far apart, are all slow. The device must bypass
/// caches, which would answer fast. False if it cannot be read.
pub fn moves(device: &dyn BlockDevice, clock: &Clock) -> bool {
    let size = device.geometry().size;
    let mut buf = vec![0; SMALL.0];
    (1..=SLOW as u64).all(|i| {
        let at = size / 1000 * (i * 618 % 1000) / SMALL.0 as u64 * SMALL.0 as u64;
        let before = clock();
        device.read_at(at, &mut buf).is_ok() && clock().saturating_sub(before) >= MOVES
    })
}

/// Probes the device, unless the user has set all values.
pub(crate) fn tuned(run: &Run<'_>, source: &Source, list: &List) -> Tuned {
    let options = run.options;
    let asks = options.gap.is_none() || options.request.is_none() || options.depth.is_none();
    let found = source.device.as_deref().filter(|_| asks);
    let found = found.and_then(|device| ask(run, device, &list.pieces));
    let found = found.unwrap_or(UNASKED);
    let most = run.shares.reads / 4;
    Tuned {
        gap: options.gap.unwrap_or(found.gap),
        request: options.request.unwrap_or(found.request).clamp(512, most),
        depth: options.depth.unwrap_or(found.depth),
        moves: found.moves,
    }
}

/// Probes a device. Returns `None` if that does not pay, if there is no clock, or if a read fails.
fn ask(run: &Run<'_>, device: &dyn BlockDevice, pieces: &[Piece]) -> Option<Tuned> {
    let clock = run.options.clock.as_ref()?;
    let bytes: u64 = pieces.iter().map(|p| u64::from(p.len)).sum();
    if bytes < WORTH_ASKING {
        return None;
    }
    // Nothing is read yet, so the memory is free.
    let mut buf = run.reads.try_buffer(LARGE.0 as u64)?;
    let size = device.geometry().size;
    let mut time = |at: u64, len: usize| -> Option<Duration> {
        let at = at.min(size.checked_sub(len as u64)?);
        let before = clock();
        device.read_at(at, buf.bytes.get_mut(..len)?).ok()?;
        Some(clock().saturating_sub(before))
    };
    // Steps through the list by the golden ratio, which gives places that are far apart and in no
    // order.
    let place = |i: usize| pieces.get(i * pieces.len() * 618 / 1000 % pieces.len());
    let mut small = Vec::with_capacity(SMALL.1);
    for i in 1..=SMALL.1 {
        small.push(time(place(i)?.at, SMALL.0)?);
        if i == SLOW && small.iter().all(|time| *time >= MOVES) {
            // Further probing would cost what it saves; the arm is in place for a large read now.
            let large = time(place(i)?.at + SMALL.0 as u64, LARGE.0)?;
            let found = median(small)?;
            return Some(tune(found, found.saturating_add(large)));
        }
    }
    let large = (11..11 + LARGE.1).map(|i| time(place(i)?.at, LARGE.0));
    Some(tune(median(small)?, median(large.collect::<Option<_>>()?)?))
}

fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// Chooses values by the access time and the time of a large read.
fn tune(small: Duration, large: Duration) -> Tuned {
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX).max(1);
    let transfer = nanos(large.saturating_sub(small));
    // The bytes that the device transfers in the time of another request.
    let gap = (LARGE.0 as u64).saturating_mul(nanos(small)) / transfer;
    Tuned {
        gap: gap.clamp(16 << 10, 512 << 10),
        request: UNASKED.request,
        depth: if small >= MOVES { 2 } else { UNASKED.depth },
        moves: small >= MOVES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_seeks_has_a_wide_gap_and_few_requests() {
        let micros = Duration::from_micros;
        let disk = tune(micros(8_000), micros(27_000));
        assert!((400 << 10..=512 << 10).contains(&disk.gap), "{disk:?}");
        assert_eq!(disk.depth, 2);
        let flash = tune(micros(30), micros(900));
        assert!((20 << 10..64 << 10).contains(&flash.gap), "{flash:?}");
        assert_eq!(flash.depth, 4);
    }
}
