//! What cases assert about memory.

use super::{Watch, least};
use crate::reference::LARGE;
use crate::suite::Case;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use volary_core::{FileKind, NodeId};

/// The most memory for a byte of a file of [`LARGE`] bytes.
const BYTE_MAX: u64 = LARGE / 2;
/// The most memory by which a driver may grow that is asked the same again and again.
const GROWTH_MAX: u64 = 8 << 20;
/// How long it is asked so, in this thread's time: as often on a busy machine.
const BUSY: Duration = Duration::from_millis(500);
/// The same by the clock, for drivers that work in other threads.
const LONG: Duration = Duration::from_secs(1);

/// Asserts that `act` on a large file takes little memory at once. Returns `false`, with the case
/// skipped, if that cannot be measured.
#[track_caller]
pub(crate) fn takes_little(c: &Case, what: &str, act: impl Fn()) -> bool {
    let taken: Result<u64, &str> = least(BYTE_MAX, || {
        let watch = Watch::begin()?;
        act();
        Ok(watch.peak())
    });
    match taken {
        Ok(taken) => assert!(taken <= BYTE_MAX, "{what} takes {} MiB", taken >> 20),
        Err(why) => c.skip(why),
    }
    taken.is_ok()
}

/// A node that is used again and again, by its name.
pub(crate) struct Used {
    pub(crate) dir: NodeId,
    pub(crate) name: Vec<u8>,
    pub(crate) kind: FileKind,
}

/// Looks up, opens, reads and lists these nodes again and again, and asserts that the memory in use
/// stays.
#[track_caller]
pub(crate) fn takes_no_more(c: &Case, all: &[Used]) {
    let round = || all.iter().for_each(|used| use_once(c, used));
    // What is remembered of each node is taken now.
    round();
    round();
    let mut rounds = 0_u64;
    let grown: Result<u64, &str> = least(GROWTH_MAX, || {
        let watch = Watch::begin()?;
        let (busy, end) = (BUSY + now(BY_THREAD), LONG + now(BY_CLOCK));
        rounds = 0;
        while now(BY_THREAD) < busy && now(BY_CLOCK) < end && watch.kept() <= GROWTH_MAX {
            round();
            rounds += 1;
        }
        Ok(watch.kept())
    });
    match grown {
        Ok(grown) => assert!(
            grown <= GROWTH_MAX,
            "{} MiB more after {rounds} rounds over {} nodes, all of which were closed",
            grown >> 20,
            all.len()
        ),
        Err(why) => c.skip(why),
    }
}

fn use_once(c: &Case, used: &Used) {
    let node = c.find(used.dir, &used.name);
    c.attr(node);
    match used.kind {
        FileKind::File => {
            let open = c.open_to_read(node);
            c.read(open, 0, 1).expect("read");
            c.close(open);
        }
        FileKind::Dir => drop(c.list(node)),
        FileKind::Symlink => drop(c.fs().readlink(&c.cx(), node).expect("readlink")),
        _ => {}
    }
}

const BY_THREAD: ClockId = ClockId::ThreadCPUTime;
const BY_CLOCK: ClockId = ClockId::Monotonic;

fn now(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
