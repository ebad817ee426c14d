//! Devices without moving parts: each request has a latency, and bytes are transferred at a rate.

use crate::models::spinning::Timed;

/// A device's parameters. Times are in microseconds, rates in bytes per microsecond, which are
/// MB/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flash {
    /// The time from the start of a read to its first byte.
    pub read_latency: f64,
    /// The time from the start of a write until it is accepted.
    pub write_latency: f64,
    /// The rate of reads.
    pub reads: f64,
    /// The rate of writes.
    pub writes: f64,
    /// How many requests may have their latencies at the same time.
    pub queue: usize,
}

impl Flash {
    /// An SD card of speed class A1, in round figures. All are assumed but its 1,500 reads and 500
    /// writes per second.
    pub const CARD: Self = Self {
        read_latency: 660.0,
        write_latency: 2_000.0,
        reads: 90.0,
        writes: 20.0,
        queue: 1,
    };

    /// A SATA SSD, in round figures, all assumed.
    pub const SATA: Self = Self {
        read_latency: 90.0,
        write_latency: 60.0,
        reads: 540.0,
        writes: 500.0,
        queue: 32,
    };

    /// An NVMe SSD of the fourth generation, in round figures, all assumed.
    pub const NVME: Self = Self {
        read_latency: 60.0,
        write_latency: 20.0,
        reads: 6_500.0,
        writes: 5_000.0,
        queue: 256,
    };

    /// An object store in the same region, with one connection for each request, in round figures,
    /// all assumed.
    pub const OBJECTS: Self = Self {
        read_latency: 25_000.0,
        write_latency: 40_000.0,
        reads: 90.0,
        writes: 90.0,
        queue: 64,
    };
}

/// A device, and the time that its requests have taken.
#[derive(Clone, Debug)]
pub struct FlashDisk {
    model: Flash,
    now: f64,
}

impl FlashDisk {
    /// Returns a device at time 0.
    pub fn new(model: Flash) -> Self {
        Self { model, now: 0.0 }
    }
}

impl Timed for FlashDisk {
    fn now(&self) -> f64 {
        self.now
    }

    fn wait(&mut self, time: f64) {
        self.now += time;
    }

    fn read(&mut self, _: u64, len: u64) {
        self.now += self.model.read_latency + len as f64 / self.model.reads;
    }

    fn write(&mut self, _: u64, len: u64) {
        self.now += self.model.write_latency + len as f64 / self.model.writes;
    }

    /// Performs reads in groups as large as the queue; each group has one latency.
    fn read_all(&mut self, reads: &[(u64, u64)]) {
        for some in reads.chunks(self.model.queue.max(1)) {
            let bytes: u64 = some.iter().map(|(_, len)| len).sum();
            self.read(0, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_a_queue_pass_together_and_bytes_do_not() {
        let model = Flash::SATA;
        let reads: Vec<(u64, u64)> = (0..64).map(|i| (i * 999_424, 54_000)).collect();
        let (mut one, mut all) = (FlashDisk::new(model), FlashDisk::new(model));
        reads.iter().for_each(|(at, len)| one.read(*at, *len));
        all.read_all(&reads);
        let bytes = 64.0 * 100.0;
        assert!((one.now() - 64.0 * model.read_latency - bytes).abs() < 1e-6);
        assert!((all.now() - 2.0 * model.read_latency - bytes).abs() < 1e-6);
        all.wait(5.0);
        all.write(0, 500);
        assert!((all.now() - one.now() + 62.0 * 90.0 - 66.0).abs() < 1e-6);
    }
}
