//! The memory of this process, as Linux counts it. Others in the process take and give back memory
//! meanwhile, so who measures does so [again](least).

mod held;

pub(crate) use held::{Used, takes_little, takes_no_more};

use parking_lot::{Mutex, MutexGuard};
use std::fs;
use std::time::Duration;

/// One measures at a time: a peak begins anew for the whole process.
static TURN: Mutex<()> = Mutex::new(());
/// The longest wait for one's turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pauses before each try of [`least`], in milliseconds.
const PAUSES: [u64; 6] = [0, 20, 100, 300, 1000, 2000];

/// The process's memory since a moment.
pub(crate) struct Watch {
    peak: u64,
    kept: u64,
    _turn: MutexGuard<'static, ()>,
}

impl Watch {
    /// Begins to watch.
    ///
    /// # Errors
    /// Why memory cannot be measured here.
    pub(crate) fn begin() -> Result<Self, &'static str> {
        let turn = TURN.try_lock_for(PATIENCE);
        let turn = turn.ok_or("another case measures memory")?;
        // Makes the most memory in use that in use now.
        let reset = fs::write("/proc/self/clear_refs", "5");
        reset.map_err(|_| "the system does not tell the most memory in use")?;
        let missing = "the system does not tell the memory in use";
        Ok(Self {
            peak: now(PEAK).ok_or(missing)?,
            kept: now(KEPT).ok_or(missing)?,
            _turn: turn,
        })
    }

    /// Returns by how many bytes the most memory in use exceeds that at the beginning.
    pub(crate) fn peak(&self) -> u64 {
        now(PEAK).unwrap_or(0).saturating_sub(self.peak)
    }

    /// Returns by how many bytes the memory in use, without mapped files, exceeds that at the
    /// beginning.
    pub(crate) fn kept(&self) -> u64 {
        now(KEPT).unwrap_or(0).saturating_sub(self.kept)
    }
}

const PEAK: &str = "VmHWM:";
const KEPT: &str = "RssAnon:";

/// Returns a number of bytes that the kernel keeps of this process.
fn now(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Measures up to six times, until it is at most `most`, and returns the least.
///
/// # Errors
/// Those of `measure`.
pub(crate) fn least<E>(most: u64, mut measure: impl FnMut() -> Result<u64, E>) -> Result<u64, E> {
    let mut least = u64::MAX;
    for pause in PAUSES {
        std::thread::park_timeout(Duration::from_millis(pause));
        least = least.min(measure()?);
        if least <= most {
            break;
        }
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_and_given_back_shows_in_the_peak_alone() {
        const LEN: u64 = 64 << 20;
        let grown = || {
            let watch = Watch::begin()?;
            drop(std::hint::black_box(vec![1_u8; LEN as usize]));
            Ok::<_, &str>((watch.peak(), watch.kept()))
        };
        let (peak, _) = grown().expect("Linux");
        assert!(peak > LEN / 2, "{peak}");
        let kept = least(LEN / 2, || grown().map(|(_, kept)| kept));
        assert!(kept.expect("Linux") <= LEN / 2);
    }
}
