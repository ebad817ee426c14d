//! [`Births`]: the generations of nodes that were recently seen.
//!
//! Asking for a generation takes a system call of its own. But a number that comes with the same
//! time of birth as before is the same node, because a node that reuses the number is born later.
//! This holds only if the time of birth was already past when the generation was asked for: the
//! clock of file systems stands still for some milliseconds between two ticks.

use parking_lot::Mutex;
use rustix::fs::{Statx, StatxFlags};
use rustix::time::{ClockId, clock_gettime};
use std::fmt;

/// The number of places. A node that is seen replaces another one in its place.
const PLACES: u64 = 1 << 14;
/// A node's birth is surely past once it is this many nanoseconds ago, by the clock of file
/// systems.
const PAST: i128 = 20_000_000;

/// A change is surely past once it is this many nanoseconds ago. ext4 with small inodes counts
/// whole seconds.
const SETTLED: i128 = 2_000_000_000;

/// A moment by the clock of file systems, in nanoseconds since 1970.
#[derive(Clone, Copy)]
pub(crate) struct Moment(i128);

impl Moment {
    pub(crate) fn now() -> Self {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Self::at(now.tv_sec, now.tv_nsec)
    }

    /// Returns when a node was last changed.
    pub(crate) fn changed(stat: &Statx) -> Self {
        Self::at(stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec.into())
    }

    /// Returns whether the moment is so long ago that any further change gets a later time.
    pub(crate) fn is_past(self) -> bool {
        Self::now().0 - self.0 >= SETTLED
    }

    fn at(secs: i64, nanos: i64) -> Self {
        Self(i128::from(secs) * 1_000_000_000 + i128::from(nanos))
    }
}

/// Generations, by number and time of birth.
pub(crate) struct Births(Box<[Mutex<Seen>]>);

#[derive(Clone, Copy, Default)]
struct Seen {
    ino: u64,
    birth: i128,
    generation: u32,
}

impl Births {
    pub(crate) fn new() -> Self {
        Self((0..PLACES).map(|_| Mutex::default()).collect())
    }

    /// Returns the generation of a node that was already seen.
    pub(crate) fn generation(&self, stat: &Statx) -> Option<u32> {
        let birth = birth(stat)?;
        let seen = *self.place(stat.stx_ino)?.lock();
        let is_same = seen.ino == stat.stx_ino && seen.birth == birth;
        is_same.then_some(seen.generation)
    }

    /// Returns whether something is known of the node with this number.
    pub(crate) fn has(&self, ino: u64) -> bool {
        self.place(ino).is_some_and(|place| place.lock().ino == ino)
    }

    /// Notes the generation of a node, which was asked for at `asked` or later. Ignores a node born
    /// at about that time or later, because the generation may belong to the number's former node.
    pub(crate) fn note(&self, stat: &Statx, generation: u32, asked: Moment) {
        let (Some(birth), Some(place)) = (birth(stat), self.place(stat.stx_ino)) else {
            return;
        };
        if asked.0 - birth >= PAST {
            *place.lock() = Seen {
                ino: stat.stx_ino,
                birth,
                generation,
            };
        }
    }

    fn place(&self, ino: u64) -> Option<&Mutex<Seen>> {
        let at = usize::try_from(ino % PLACES).ok()?;
        self.0.get(at)
    }
}

impl fmt::Debug for Births {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Births")
    }
}

/// Returns the time of birth. `None` if the host does not tell it. Also `None` if its nanoseconds
/// are 0: the volume may keep whole seconds only.
fn birth(stat: &Statx) -> Option<i128> {
    let time = &stat.stx_btime;
    let is_told = stat.stx_mask & StatxFlags::BTIME.bits() != 0 && time.tv_nsec != 0;
    is_told.then(|| Moment::at(time.tv_sec, time.tv_nsec.into()).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a node of this machine's root, as if it were born at `birth`.
    fn node(ino: u64, birth: i64) -> Statx {
        let mut stat = crate::kernel::stat::look(rustix::fs::CWD, b".").unwrap();
        stat.stx_mask |= StatxFlags::BTIME.bits();
        stat.stx_ino = ino;
        (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec) = (birth, 5);
        stat
    }

    #[test]
    fn a_number_is_known_with_its_time_of_birth_alone() {
        let births = Births::new();
        births.note(&node(9, 1000), 7, Moment::now());
        assert!(births.has(9) && !births.has(10));
        assert_eq!(births.generation(&node(9, 1000)), Some(7));
        assert_eq!(births.generation(&node(9, 1001)), None);
        assert_eq!(births.generation(&node(10, 1000)), None);
        births.note(&node(9 + PLACES, 1000), 8, Moment::now());
        assert!(!births.has(9));
        assert_eq!(births.generation(&node(9, 1000)), None);
    }

    #[test]
    fn who_was_just_born_may_have_a_namesake_soon() {
        let (births, new) = (Births::new(), node(9, 1000));
        let born = birth(&new).unwrap();
        births.note(&new, 7, Moment(born + PAST - 1));
        assert_eq!(births.generation(&new), None);
        // Asking earlier than the birth may give the generation of the number's former node.
        births.note(&new, 7, Moment(born - 1));
        assert_eq!(births.generation(&new), None);
        births.note(&new, 7, Moment(born + PAST));
        assert_eq!(births.generation(&new), Some(7));
    }

    #[test]
    fn a_change_is_past_when_the_next_one_has_a_later_second() {
        let now = Moment::now();
        assert!(!now.is_past() && !Moment(now.0 - SETTLED / 2).is_past());
        assert!(Moment(now.0 - SETTLED).is_past());
    }

    #[test]
    fn without_times_of_birth_nothing_is_known() {
        let (births, mut stat) = (Births::new(), node(9, 1000));
        stat.stx_mask &= !StatxFlags::BTIME.bits();
        births.note(&stat, 7, Moment::now());
        assert_eq!(births.generation(&stat), None);
        // As on a volume with small inodes, which keep whole seconds.
        let mut stat = node(9, 1000);
        stat.stx_btime.tv_nsec = 0;
        births.note(&stat, 7, Moment::now());
        assert_eq!(births.generation(&stat), None);
    }
}
