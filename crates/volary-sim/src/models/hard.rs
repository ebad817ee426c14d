//! A hard disk from the years since 2000 in virtual time. It has zones, a seek curve, rotation, a
//! segment that is read ahead, and a queue that it reorders.
//!
//! The position on the platters is a byte's offset. The rate falls linearly from the outer edge to
//! the inner one. Tracks are skewed so that a read across a border between them continues at the
//! same rate.

use crate::models::spinning::{Timed, rotational_delay};

/// A hard disk's parameters. Times are in microseconds, rates in bytes per microsecond, which are
/// MB/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// The capacity of the disk, in bytes.
    pub capacity: u64,
    /// The rate at the outer edge, where offsets begin.
    pub outer: f64,
    /// The rate at the inner edge.
    pub inner: f64,
    /// The time of one revolution.
    pub revolution: f64,
    /// The mean time of a random access: command, seek and half a revolution.
    pub access: f64,
    /// The time of the shortest seek.
    pub settle: f64,
    /// The overhead of a command.
    pub command: f64,
    /// The rate of the bus.
    pub bus: f64,
    /// How many bytes are read ahead after a request.
    pub segment: u64,
    /// How many requests the disk chooses the next one from.
    pub queue: usize,
}

impl Model {
    /// The fast disk of the DAFT paper, a Seagate ST373455LW on Ultra 320 SCSI. Capacity,
    /// revolutions, rates, access and bus are from the paper's Table I. Assumed: settle, command,
    /// segment, queue.
    pub const FAST: Self = Self {
        capacity: 73_000_000_000,
        outer: 128.0,
        inner: 76.0,
        revolution: 4_000.0,
        access: 5_800.0,
        settle: 300.0,
        command: 50.0,
        bus: 320.0,
        segment: 512 << 10,
        queue: 32,
    };

    /// The slow disk of the DAFT paper, a Maxtor 6Y160P0 on parallel ATA. Capacity, revolutions,
    /// rates and access are from the paper's Table I. Assumed: settle, command, bus, segment, and a
    /// queue, though it has none.
    pub const SLOW: Self = Self {
        capacity: 163_000_000_000,
        outer: 56.0,
        inner: 30.0,
        revolution: 60e6 / 7_200.0,
        access: 19_800.0,
        settle: 800.0,
        command: 100.0,
        bus: 100.0,
        segment: 512 << 10,
        queue: 32,
    };

    /// A disk of 8 TB and 7,200 revolutions per minute as sold today, in round figures, all
    /// assumed.
    pub const TODAY: Self = Self {
        capacity: 8_000_000_000_000,
        outer: 250.0,
        inner: 120.0,
        revolution: 60e6 / 7_200.0,
        access: 12_700.0,
        settle: 500.0,
        command: 50.0,
        bus: 600.0,
        segment: 2 << 20,
        queue: 32,
    };

    /// Returns the time of a sequential read from the outer edge to `offset`.
    fn passed(&self, offset: f64) -> f64 {
        // The integral of 1 / rate, where the rate has a constant slope.
        -(-offset * self.slope() / self.outer).ln_1p() / self.slope()
    }

    /// Returns the offset that a sequential read reaches in this time: the inverse of `passed`.
    fn reached(&self, passed: f64) -> f64 {
        -(-passed * self.slope()).exp_m1() * self.outer / self.slope()
    }

    /// Returns by how much the rate falls per byte.
    fn slope(&self) -> f64 {
        // A disk of constant rate gets a tiny slope, to avoid a division by zero.
        ((self.outer - self.inner) / self.capacity as f64).max(1e-18)
    }

    fn queued(&self, offset: u64, len: u64) -> Queued {
        let passed = self.passed(offset as f64);
        Queued {
            offset,
            len,
            passed,
        }
    }

    /// Returns the time in which `len` bytes from `offset` on pass under the head.
    pub fn transfer(&self, offset: u64, len: u64) -> f64 {
        self.passed((offset + len) as f64) - self.passed(offset as f64)
    }

    /// Returns the time of a seek; 0 within a track.
    pub fn seek(&self, from: u64, to: u64) -> f64 {
        let distance = from.abs_diff(to) as f64;
        let rate = self.outer - self.slope() * from as f64;
        if distance < rate * self.revolution {
            return 0.0;
        }
        // For two random positions, the mean of the square root of their distance is 8/15 of that
        // of the capacity.
        let mean = self.access - self.command - self.revolution / 2.0 - self.settle;
        self.settle + mean * 15.0 / 8.0 * (distance / self.capacity as f64).sqrt()
    }
}

/// A disk and its state: time, position of the arm, content of the segment.
#[derive(Clone, Debug)]
pub struct HardDisk {
    model: Model,
    now: f64,
    /// The head's position at time `since`; it has read ahead from there.
    head: u64,
    since: f64,
    /// Bytes that the segment holds, or will receive as the head reads ahead.
    segment: std::ops::Range<u64>,
}

/// A read in the queue.
struct Queued {
    offset: u64,
    len: u64,
    /// [`Model::passed`] of the offset.
    passed: f64,
}

/// The timing of a read, and the disk's state after it.
struct Served {
    /// When its first byte is read: the disk chooses the request with the earliest.
    begins: f64,
    ends: f64,
    /// The disk's state after the read.
    head: u64,
    since: f64,
    from: u64,
}

impl HardDisk {
    /// Returns a disk at time 0, with its arm at the outer edge and an empty segment.
    pub fn new(model: Model) -> Self {
        Self {
            model,
            now: 0.0,
            head: 0,
            since: 0.0,
            segment: 0..0,
        }
    }

    /// Returns the head's position at `time`: it reads ahead until the segment is full.
    fn head_at(&self, time: f64) -> u64 {
        let passed = self.model.passed(self.head as f64) + (time - self.since).max(0.0);
        let place = self.model.reached(passed) as u64;
        place.min(self.segment.end).max(self.head)
    }

    /// Returns the rotational delay until `offset` passes under the head.
    fn turn(&self, time: f64, offset: u64) -> f64 {
        self.turn_to(time, self.model.passed(offset as f64))
    }

    /// Returns the rotational delay until a place passes under the head; a sequential read reaches
    /// that place in `passed`.
    fn turn_to(&self, time: f64, passed: f64) -> f64 {
        rotational_delay(time, passed, self.model.revolution)
    }

    /// Returns whether the byte at `offset` is in the segment, or will be once it is read ahead.
    fn is_ahead(&self, head: u64, offset: u64) -> bool {
        self.segment.contains(&offset) || (offset == self.segment.end && offset == head)
    }

    /// Returns the index of the read whose first byte comes soonest, if the disk starts it at
    /// `time`.
    fn soonest(&self, time: f64, reads: &[Queued]) -> Option<usize> {
        let head = self.head_at(time);
        let (mut soonest, mut best) = ((!reads.is_empty()).then_some(0), f64::INFINITY);
        for (number, read) in reads.iter().enumerate() {
            let begins = match self.is_ahead(head, read.offset) {
                true => self.served(time, read.offset, read.len).begins,
                false => {
                    let there = time + self.model.seek(head, read.offset);
                    if there >= best {
                        continue;
                    }
                    there + self.turn_to(there, read.passed)
                }
            };
            if begins < best {
                (soonest, best) = (Some(number), begins);
            }
        }
        soonest
    }

    /// Returns the timing of a read that the disk starts at `time`.
    fn served(&self, time: f64, offset: u64, len: u64) -> Served {
        let (model, end) = (&self.model, offset + len);
        let sent = time + len as f64 / model.bus;
        let head = self.head_at(time);
        if self.is_ahead(head, offset) {
            let (since, at) = match head == self.segment.end {
                // The segment is full: the head waits until the place where it stopped comes round.
                true => (time + self.turn(time, head), head),
                false => (self.since, self.head),
            };
            let read = match end > at {
                true => since + model.transfer(at, end - at),
                false => since,
            };
            // The head may already be past the end of the request, and stays there.
            let begins = if offset < at { time } else { since.max(time) };
            let (head, since) = if end > at { (end, read) } else { (at, since) };
            return Served {
                begins,
                ends: if end <= self.head_at(time) {
                    sent
                } else {
                    read.max(sent)
                },
                head,
                since,
                from: self.segment.start.max(end.saturating_sub(model.segment)),
            };
        }
        let there = time + model.seek(head, offset);
        let begins = there + self.turn(there, offset);
        let read = begins + model.transfer(offset, len);
        Served {
            begins,
            ends: read.max(sent),
            head: end,
            since: read,
            from: offset,
        }
    }

    /// Performs a read that the disk starts at `time`.
    fn serve(&mut self, time: f64, offset: u64, len: u64) {
        let served = self.served(time, offset, len);
        self.now = served.ends;
        (self.head, self.since) = (served.head, served.since);
        self.segment = served.from..(offset + len + self.model.segment).min(self.model.capacity);
    }
}

impl Timed for HardDisk {
    fn now(&self) -> f64 {
        self.now
    }

    fn wait(&mut self, time: f64) {
        self.now += time;
    }

    fn read(&mut self, offset: u64, len: u64) {
        self.serve(self.now + self.model.command, offset, len);
    }

    fn write(&mut self, offset: u64, len: u64) {
        let time = self.now + self.model.command;
        // A write discards what was read ahead.
        (self.head, self.since) = (self.head_at(time), time);
        self.segment = 0..0;
        self.serve(time, offset, len);
        self.segment = 0..0;
    }

    /// Serves the queued command whose first byte comes soonest next. Command overhead passes while
    /// another command is served.
    fn read_all(&mut self, reads: &[(u64, u64)]) {
        let mut held: Vec<Queued> = Vec::with_capacity(self.model.queue.max(1));
        let mut coming = reads.iter().copied();
        let mut time = self.now + self.model.command;
        loop {
            let room = self.model.queue.max(1) - held.len();
            held.extend(
                coming
                    .by_ref()
                    .take(room)
                    .map(|(offset, len)| self.model.queued(offset, len)),
            );
            let Some(next) = self.soonest(time, &held) else {
                return;
            };
            let Queued { offset, len, .. } = held.remove(next);
            self.serve(time, offset, len);
            time = self.now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const ALL: [Model; 3] = [Model::FAST, Model::SLOW, Model::TODAY];
    const PAGE: u64 = 4096;

    fn near(found: f64, stated: f64, percent: f64) {
        let off = (found / stated - 1.0).abs() * 100.0;
        assert!(off < percent, "{found} is {off:.2} % off {stated}");
    }

    /// Returns the total time of reads, one by one.
    fn time(model: Model, reads: impl IntoIterator<Item = (u64, u64)>) -> f64 {
        let mut disk = HardDisk::new(model);
        for (offset, len) in reads {
            disk.read(offset, len);
        }
        disk.now()
    }

    #[test]
    fn in_sequence_it_reads_at_the_rate_of_the_zone() {
        const LEN: u64 = 64 << 20;
        for model in ALL {
            for (from, rate) in [
                (0, model.outer),
                (model.capacity / 2, (model.outer + model.inner) / 2.0),
                (model.capacity - LEN, model.inner),
            ] {
                for request in [64 << 10, 1 << 20] {
                    let reads = (from..from + LEN).step_by(request as usize);
                    let first = time(model, [(from, 512)]);
                    let all = time(model, reads.map(|at| (at, request)));
                    near(LEN as f64 / (all - first), rate, 1.0);
                }
            }
        }
    }

    #[test]
    fn small_requests_in_sequence_cost_their_commands_and_no_turn() {
        for model in ALL {
            let all = time(model, (0..4096).map(|i| (i * PAGE, PAGE)));
            let each = (all / 4096.0) / (model.command + PAGE as f64 / model.bus);
            let rate = PAGE as f64 * 4096.0 / all / model.outer;
            // The slower of the two decides: the commands or the platter.
            assert!(each < 1.05 || rate > 0.95, "{model:?}: {each} {rate}");
        }
    }

    #[test]
    fn a_random_access_takes_what_is_stated() {
        for model in ALL {
            let mut rng = Rng::new(1);
            let places = (0..20_000).map(|_| (rng.below(model.capacity - PAGE), PAGE));
            near(time(model, places) / 20_000.0, model.access, 2.0);
        }
    }

    #[test]
    fn a_queue_is_served_faster_than_one_after_the_other() {
        for model in ALL {
            let mut rng = Rng::new(1);
            let places: Vec<_> = (0..2_000).map(|_| (rng.below(700 << 20), PAGE)).collect();
            let mut disk = HardDisk::new(model);
            disk.read_all(&places);
            let alone = time(model, places.iter().copied());
            let gain = alone / disk.now();
            assert!((2.0..6.0).contains(&gain), "{model:?}: {gain}");
        }
    }

    #[test]
    fn a_small_gap_costs_no_more_than_to_read_it() {
        for model in ALL {
            let with_gaps = time(model, (0..1000).map(|i| ((i * 64) << 10, 32 << 10)));
            let all = time(model, (0..1000).map(|i| ((i * 64) << 10, 64 << 10)));
            near(with_gaps, all, 2.0);
        }
    }

    #[test]
    fn what_is_in_the_segment_is_sent_at_the_rate_of_the_bus() {
        let model = Model::TODAY;
        let mut disk = HardDisk::new(model);
        disk.read(0, PAGE);
        disk.wait(1e6);
        let before = disk.now();
        disk.read(PAGE, 1 << 20);
        let sent = model.command + (1 << 20) as f64 / model.bus;
        near(disk.now() - before, sent, 0.1);
        // It has stopped at the end of the segment: to continue, it waits for a part of a turn.
        let before = disk.now();
        disk.read(PAGE + (1 << 20), 4 << 20);
        assert!(disk.now() - before < model.revolution + model.transfer(0, 4 << 20));
        disk.write(0, PAGE);
        let before = disk.now();
        disk.read(PAGE, PAGE);
        assert!(
            disk.now() - before > model.revolution * 0.9,
            "it reads again"
        );
    }
}
