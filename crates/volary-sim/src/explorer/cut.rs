//! The states in which a power cut may leave the disk of a recorded run.
//!
//! A write is *in flight* from its return until the end of a flush that began after that. When
//! power fails, each sector in flight has been written or not. On disks that break the promise of
//! [`volary_core::BlockDevice`], it may also hold garbage.

use crate::disks::disk::{Disk, SECTOR, Sector, mix};
use crate::disks::trace::{Event, Moment, Trace};
use crate::rng::Rng;
use std::fmt;
use std::str::FromStr;

/// The fate of one sector in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It was not written.
    Lost,
    /// It was written.
    Kept,
    /// It holds other bytes, which nobody wrote.
    Garbage,
}

/// The fate of each sector in flight, in the order of the writes. Sectors past the end of the list
/// are lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Choice(pub Vec<Fate>);

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        self.0.iter().try_for_each(|fate| {
            f.write_str(match fate {
                Fate::Lost => "0",
                Fate::Kept => "1",
                Fate::Garbage => "g",
            })
        })
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fate = |c| match c {
            '0' => Ok(Fate::Lost),
            '1' => Ok(Fate::Kept),
            'g' => Ok(Fate::Garbage),
            _ => Err(format!("'{text}' is no choice: a row of 0, 1 and g, or -")),
        };
        match text {
            "-" => Ok(Self::default()),
            _ => text.chars().map(fate).collect::<Result<_, _>>().map(Self),
        }
    }
}

/// A point of a trace at which power may fail: after an operation has ended, before a flush took
/// effect, or at the end. Other points need not be tried: each state that they may leave is
/// possible at the next of these points too, with no more promised.
#[derive(Clone, Debug)]
pub struct CrashPoint {
    /// The number of the event at which power fails.
    pub event: usize,
    /// How far the script had come.
    pub moment: Moment,
    /// The content that is durable.
    pub durable: Disk,
    /// Sectors in flight, as written.
    pub in_flight: Vec<(u64, Sector)>,
}

impl CrashPoint {
    /// Returns the disk that a choice leaves.
    pub fn disk_after(&self, choice: &Choice) -> Disk {
        let mut disk = self.durable.clone();
        for ((number, content), fate) in self.in_flight.iter().zip(&choice.0) {
            match fate {
                Fate::Lost => {}
                Fate::Kept => disk.put(*number, content.clone()),
                Fate::Garbage => disk.put(*number, garbage(*number)),
            }
        }
        disk
    }
}

/// Returns the content of a sector that was written badly.
pub fn garbage(number: u64) -> Sector {
    let words = (0..SECTOR as u64 / 8).map(|i| mix(number << 8 ^ i ^ 0x6761_7262));
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    Sector::new(&bytes)
}

/// Returns all crash points of a trace. If the disk `lies`, a flush makes nothing durable.
pub fn crash_points(trace: &Trace, lies: bool) -> Vec<CrashPoint> {
    let mut at = CrashPoint {
        event: 0,
        moment: Moment::default(),
        durable: trace.disk.clone(),
        in_flight: Vec::new(),
    };
    let mut all = Vec::new();
    for (event, what) in trace.events.iter().enumerate() {
        at.event = event;
        at.moment.pass(what);
        match what {
            Event::Write(sectors) => at.in_flight.extend(sectors.iter().cloned()),
            Event::Ended(_) => all.push(at.clone()),
            Event::Flush => {
                all.push(at.clone());
                if !lies {
                    for (number, content) in at.in_flight.drain(..) {
                        at.durable.put(number, content);
                    }
                }
            }
            Event::Read(..) | Event::Began(_) => {}
        }
    }
    at.event = trace.events.len();
    all.push(at);
    all
}

/// How many of the choices are tried.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// With at most this many sectors in flight, all choices are tried.
    pub eager: usize,
    /// With more: each prefix, all but one or two, only one or two (pairs among at most 16), and
    /// this many random ones.
    pub random: usize,
    /// Whether sectors in flight may hold garbage: one at a time, with the others lost and with the
    /// others kept.
    pub garbage: bool,
    /// The seed of the random ones.
    pub seed: u64,
}

/// Returns the choices to try for `count` sectors in flight. Some may occur twice.
pub fn choices(count: usize, bounds: &Bounds) -> Vec<Choice> {
    let mut all = if count <= bounds.eager.min(20) {
        let subsets = 0..1u32 << count;
        subsets
            .map(|bits| choice(count, |i| bits >> i & 1 == 1))
            .collect()
    } else {
        some_of_many(count, bounds)
    };
    if bounds.garbage {
        for bad in 0..count {
            for rest in [Fate::Lost, Fate::Kept] {
                let mut fates = vec![rest; count];
                if let Some(fate) = fates.get_mut(bad) {
                    *fate = Fate::Garbage;
                }
                all.push(Choice(fates));
            }
        }
    }
    all
}

fn some_of_many(count: usize, bounds: &Bounds) -> Vec<Choice> {
    let mut all: Vec<Choice> = (0..=count).map(|n| choice(count, |i| i < n)).collect();
    for a in 0..count {
        for b in a..count {
            if a != b && (a % count.div_ceil(16) != 0 || b % count.div_ceil(16) != 0) {
                continue;
            }
            all.push(choice(count, |i| i != a && i != b));
            all.push(choice(count, |i| i == a || i == b));
        }
    }
    let mut rng = Rng::new(bounds.seed ^ count as u64);
    for _ in 0..bounds.random {
        let odds = 2 + rng.below(3);
        let invert = rng.one_in(2);
        all.push(choice(count, |_| rng.one_in(odds) != invert));
    }
    all
}

fn choice(count: usize, mut kept: impl FnMut(usize) -> bool) -> Choice {
    let fate = |i| if kept(i) { Fate::Kept } else { Fate::Lost };
    Choice((0..count).map(fate).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disks::trace::Traced;
    use std::collections::HashSet;
    use volary_core::BlockDevice;

    const FEW: Bounds = Bounds {
        eager: 3,
        random: 10,
        garbage: false,
        seed: 1,
    };

    #[test]
    fn few_sectors_give_all_subsets_and_many_a_bounded_number() {
        let all: HashSet<Choice> = choices(3, &FEW).into_iter().collect();
        assert_eq!(all.len(), 8);
        let some: HashSet<Choice> = choices(40, &FEW).into_iter().collect();
        assert!(some.len() > 120 && some.len() < 600, "{}", some.len());
        assert!(some.contains(&choice(40, |i| i < 17)));
        assert!(some.contains(&choice(40, |i| i != 39)));
        assert!(some.contains(&choice(40, |i| i == 7)));
        let bad = Bounds {
            garbage: true,
            ..FEW
        };
        assert_eq!(choices(2, &bad).len(), 4 + 4);
    }

    #[test]
    fn a_choice_reads_as_it_is_written() {
        for text in ["-", "0", "01g1"] {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
        assert!("012".parse::<Choice>().is_err());
    }

    #[test]
    fn what_was_flushed_is_there_and_the_rest_as_chosen() {
        let dev = Traced::new(Disk::new(vec![0; 8 * SECTOR]));
        dev.begin(0);
        dev.write_at(0, &[1; SECTOR]).unwrap();
        dev.flush().unwrap();
        dev.end(0);
        dev.write_at(512, &[2; 2 * SECTOR]).unwrap();
        let trace = dev.take();
        let all = crash_points(&trace, false);
        let in_flight: Vec<usize> = all.iter().map(|f| f.in_flight.len()).collect();
        assert_eq!(in_flight, [1, 0, 2]);
        let ended: Vec<usize> = all.iter().map(|f| f.moment.ended).collect();
        assert_eq!(ended, [0, 1, 1]);
        let image = all[2].disk_after(&"01".parse().unwrap()).to_vec();
        assert_eq!([0, 1, 2].map(|n| image[n * SECTOR]), [1, 0, 2]);
        assert_eq!(crash_points(&trace, true)[2].in_flight.len(), 3);
    }
}
