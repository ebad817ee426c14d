//! What the cache asks of the device: how often, how much, in which order.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use volary_block::{Cache, CacheOptions, MemDevice, PAGE, Recorder, Request, Stage};
use volary_core::{BlockDevice, Geometry, Kind, Read, Result};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Returns a cache with requests of 64 KiB over a device of 16 MiB with content.
fn cache(memory: u64) -> (Arc<Recorder>, Cache) {
    let bytes: Vec<u8> = (0..16 * MIB).map(|i| (i / 7) as u8).collect();
    over(Arc::new(MemDevice::from_vec(bytes)), memory)
}

fn over(dev: Arc<dyn BlockDevice>, memory: u64) -> (Arc<Recorder>, Cache) {
    let recorder = Arc::new(Recorder::new(dev));
    let options = CacheOptions {
        memory,
        io_size: 64 << 10,
    };
    (recorder.clone(), Cache::new(recorder, options))
}

/// Returns the lengths of the requests, in KiB: reads positive, writes negative.
fn sizes(requests: &[Request]) -> Vec<i64> {
    let size = |r: &Request| match r {
        Request::Read { len, .. } => (len / KIB) as i64,
        Request::Write { data, .. } => -((data.len() as u64 / KIB) as i64),
        Request::Flush | Request::Discard { .. } => 0,
    };
    requests.iter().map(size).collect()
}

#[test]
fn a_large_read_is_one_request_for_each_stretch_at_any_alignment() {
    for offset in [0, MIB + 512, 2 * MIB + 3] {
        let (rec, cache) = cache(MIB);
        let mut buf = vec![0; 256 << 10];
        cache.read(offset, &mut buf).unwrap();
        assert_eq!(sizes(&rec.take()), [64; 4], "at {offset}");
        assert!(
            buf.iter()
                .enumerate()
                .all(|(i, b)| *b == ((offset + i as u64) / 7) as u8)
        );
    }
}

#[test]
fn small_reads_in_sequence_read_ahead_up_to_the_io_size() {
    let (rec, cache) = cache(MIB);
    let mut b = [0; 1000];
    for at in (MIB..MIB + 512 * KIB).step_by(1000) {
        cache.read(at, &mut b).unwrap();
        assert_eq!(b[999], ((at + 999) / 7) as u8);
    }
    assert_eq!(sizes(&rec.take())[..8], [4, 8, 16, 32, 64, 64, 64, 64]);
}

#[test]
fn reads_of_half_the_io_size_in_sequence_cost_one_request_a_stretch() {
    let (rec, cache) = cache(MIB);
    let mut b = vec![0; 32 << 10];
    for i in 0..16 {
        cache.read(i * 32 * KIB, &mut b).unwrap();
    }
    assert_eq!(sizes(&rec.take())[..5], [32, 64, 64, 64, 64]);
}

#[test]
fn reads_here_and_there_do_not_read_ahead() {
    let (rec, cache) = cache(MIB);
    for i in 0..20 {
        cache.view(i * 37 * 16 * KIB, 512, |_| ()).unwrap();
    }
    assert_eq!(sizes(&rec.take()), [4; 20]);
}

#[test]
fn neighbouring_dirty_pages_leave_in_one_request_a_stretch() {
    let (rec, cache) = cache(4 * MIB);
    for i in (0..64).rev() {
        cache
            .write(MIB + i * 4 * KIB, &[7; PAGE], Stage(1))
            .unwrap();
    }
    cache.write(8 * MIB + 512, &[7; 1024], Stage(1)).unwrap();
    cache.commit().unwrap();
    assert_eq!(sizes(&rec.take()), [-64, -64, -64, -64, -1, 0]);
    cache.commit().unwrap();
    assert_eq!(rec.requests(), [], "nothing to do, nothing asked");
}

#[test]
fn whole_sectors_are_written_without_a_read_and_parts_with_one() {
    let (rec, cache) = cache(MIB);
    cache.write(5 * 512, &[9; 1024], Stage::DATA).unwrap();
    assert_eq!(rec.requests(), []);
    cache.write(9 * 512 + 100, &[9; 5], Stage::DATA).unwrap();
    assert_eq!(sizes(&rec.take()), [4]);
    let mut b = [0; 600];
    cache.read(9 * 512, &mut b).unwrap();
    assert_eq!(
        b[99..106],
        [
            ((9 * 512 + 99) / 7) as u8,
            9,
            9,
            9,
            9,
            9,
            ((9 * 512 + 105) / 7) as u8
        ]
    );
}

#[test]
fn stages_are_flushed_one_after_the_other() {
    let (rec, cache) = cache(MIB);
    for (i, stage) in [4, 0, 1, 9].into_iter().enumerate() {
        cache
            .write(i as u64 * 512, &[stage; 512], Stage(stage))
            .unwrap();
    }
    assert_eq!((cache.dirty(), cache.held()), (2048, 1536));
    cache.commit().unwrap();
    let order: Vec<Option<u8>> = rec
        .take()
        .iter()
        .map(|r| match r {
            Request::Write { data, .. } => Some(data[0]),
            _ => None,
        })
        .collect();
    let flush = None;
    assert_eq!(
        order,
        [Some(0), flush, Some(1), flush, Some(4), Some(9), flush]
    );
    assert_eq!((cache.dirty(), cache.held()), (0, 0));
}

#[test]
fn memory_stays_in_its_bound_whatever_is_read_or_written() {
    let bound = 512 * KIB;
    let (rec, cache) = cache(bound);
    let mut b = [0; PAGE];
    for i in 0..4096_u64 {
        let at = i * 7919 % 4096 * PAGE as u64;
        match i % 3 {
            0 => cache.read(at, &mut b).unwrap(),
            1 => cache.view(at, 1, |_| ()).unwrap(),
            _ => cache.write(at, &b, Stage::DATA).unwrap(),
        }
        assert!(cache.used() <= bound, "{} after {i}", cache.used());
    }
    assert!(rec.counts().write_bytes > 0);
    assert_eq!(rec.counts().flushes, 0);
}

#[test]
fn pages_of_later_stages_stay_past_the_bound_until_the_commit() {
    let bound = 256 * KIB;
    let (rec, cache) = cache(bound);
    for i in 0..256 {
        cache.write(i * 8192, &[3; 100], Stage(1)).unwrap();
    }
    assert_eq!(rec.counts().writes, 0);
    assert_eq!(cache.held(), 256 * 512);
    assert!(cache.used() >= MIB);
    cache.commit().unwrap();
    cache.read(8 * MIB, &mut [0; PAGE]).unwrap();
    assert!(cache.used() <= bound);
}

#[test]
fn pages_in_use_are_not_evicted_by_those_used_once() {
    let (rec, cache) = cache(MIB);
    for i in 0..2000 {
        cache.view(0, 512, |_| ()).unwrap();
        cache
            .view(64 * KIB + i * 4096 * 5 % (15 * MIB), 512, |_| ())
            .unwrap();
    }
    let first = |r: &&Request| matches!(r, Request::Read { offset: 0, .. });
    assert!(rec.take().iter().filter(first).count() < 50);
}

#[test]
fn a_direct_write_is_one_request_a_stretch_and_is_seen_at_once() {
    let (rec, cache) = cache(MIB);
    cache.view(MIB, 512, |_| ()).unwrap();
    cache.write(MIB + 64 * KIB, &[1; 512], Stage(2)).unwrap();
    rec.take();
    cache.write_direct(MIB, &vec![5; 128 << 10]).unwrap();
    assert_eq!(sizes(&rec.take()), [-64, -64]);
    assert_eq!(cache.dirty(), 0);
    let mut b = vec![0; 128 << 10];
    cache.read(MIB, &mut b).unwrap();
    assert!(b.iter().all(|&b| b == 5));
    cache.commit().unwrap();
    assert!(rec.take().ends_with(&[Request::Flush]));
}

#[test]
fn the_ragged_ends_of_a_direct_write_keep_what_is_beside_them() {
    let (_, cache) = cache(MIB);
    cache.write_direct(1000, &[1; 3000]).unwrap();
    cache.write_direct(100, &[2; 50]).unwrap();
    cache.commit().unwrap();
    let mut b = vec![0; 4200];
    cache.device().read_at(0, &mut b).unwrap();
    for (i, b) in b.into_iter().enumerate() {
        let expected = match i {
            100..150 => 2,
            1000..4000 => 1,
            _ => (i / 7) as u8,
        };
        assert_eq!(b, expected, "at {i}");
    }
}

#[test]
fn prefetched_pages_are_read_once() {
    let (rec, cache) = cache(MIB);
    cache.prefetch(MIB + 5, 128 * KIB);
    assert_eq!(sizes(&rec.take()), [64, 64, 4]);
    cache.read(MIB + 5, &mut vec![0; 128 << 10]).unwrap();
    cache.prefetch(MIB + 5, 128 * KIB);
    cache.prefetch(16 * MIB - 10, u64::MAX);
    assert_eq!(sizes(&rec.take()), [4]);
}

#[test]
fn dropped_ranges_are_never_written() {
    let (rec, cache) = cache(4 * MIB);
    cache.write(MIB, &vec![1; 1 << 20], Stage::DATA).unwrap();
    cache.write(MIB, &[1; 700], Stage(1)).unwrap();
    cache.drop_range(MIB + 100, 2 * MIB);
    assert_eq!(cache.dirty(), 512);
    cache.drop_range(0, u64::MAX);
    assert_eq!((cache.dirty(), cache.held(), cache.used()), (0, 0, 0));
    cache.commit().unwrap();
    assert_eq!(rec.counts().writes, 0);
}

#[test]
fn a_device_that_ends_within_a_sector_is_used_to_its_last_byte() {
    let (_, cache) = over(Arc::new(MemDevice::new(10_000)), MIB);
    cache.write(9_000, &[1; 1000], Stage::DATA).unwrap();
    cache.write_direct(9_900, &[2; 100]).unwrap();
    cache.update(9_999, 1, Stage(1), |b| b[0] = 3).unwrap();
    cache.commit().unwrap();
    let mut b = [0; 1000];
    cache.device().read_at(9_000, &mut b).unwrap();
    assert_eq!((b[899], b[900], b[999]), (1, 2, 3));
    assert!(cache.read(9_999, &mut [0; 2]).is_err());
    assert!(cache.view(4000, 200, |_| ()).is_err());
}

/// A device that says that it keeps what it was given.
struct Keeping(Arc<Recorder>);

impl BlockDevice for Keeping {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.0.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.write_at(offset, data)
    }
    fn flush(&self) -> Result<()> {
        self.0.flush()
    }
    fn is_cached(&self) -> bool {
        true
    }
}

#[test]
fn a_long_write_past_the_cache_is_in_long_requests_to_a_device_that_keeps_it() {
    let (rec, other) = cache(MIB);
    let data = vec![7; 2 << 20];
    other.write_direct(MIB, &data).unwrap();
    assert_eq!(sizes(&rec.take()), [-64; 32]);
    let cache = Cache::new(Arc::new(Keeping(rec.clone())), CacheOptions::default());
    cache.write_direct(MIB, &data).unwrap();
    assert_eq!(sizes(&rec.take()), [-1024, -1024]);
}

#[test]
fn over_a_device_that_keeps_it_content_takes_no_pages() {
    let (rec, other) = cache(MIB);
    assert_eq!(other.direct_from(), other.io_size());
    let keeping = Arc::new(Keeping(rec.clone()));
    let cache = Cache::new(keeping, CacheOptions::default());
    assert_eq!(cache.direct_from(), PAGE);
    let mut buf = vec![0; 3 * PAGE];
    for _ in 0..2 {
        cache.read_once(MIB, &mut buf).unwrap();
        assert_eq!(sizes(&rec.take()), [12]);
        assert_eq!(cache.used(), 0);
    }
    // What is in the cache counts, and the rest is read around it.
    let middle = MIB + PAGE as u64;
    cache.write(middle, &[0xee; PAGE], Stage(1)).unwrap();
    cache.read_once(MIB, &mut buf).unwrap();
    assert_eq!(sizes(&rec.take()), [4, 4]);
    assert!(buf[PAGE..2 * PAGE].iter().all(|&b| b == 0xee));
    assert_eq!(buf[2 * PAGE], ((middle + PAGE as u64) / 7) as u8);
    // Less than a page is read ahead and kept, as ever.
    cache.read_once(2 * MIB, &mut buf[..100]).unwrap();
    assert_eq!(sizes(&rec.take()), [4]);
    assert_eq!(cache.used(), 2 * PAGE as u64);
}

/// A device that counts what it is asked for at once, and cannot read its second mebibyte while `is_bad`.
struct Batches {
    below: MemDevice,
    sizes: Mutex<Vec<usize>>,
    is_bad: AtomicBool,
}

impl BlockDevice for Batches {
    fn geometry(&self) -> Geometry {
        self.below.geometry()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match offset / MIB == 1 && self.is_bad.load(Ordering::Relaxed) {
            true => Err(Kind::Io.into()),
            false => self.below.read_at(offset, buf),
        }
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.below.write_at(offset, data)
    }
    fn flush(&self) -> Result<()> {
        self.below.flush()
    }
    fn read_batch(&self, reads: &mut [Read<'_>]) {
        self.sizes.lock().push(reads.len());
        for read in reads {
            read.result = self.read_at(read.offset, read.buf);
        }
    }
}

#[test]
fn stretches_are_asked_for_at_once_and_one_that_fails_is_read_later() {
    let dev = Arc::new(Batches {
        below: MemDevice::from_vec(vec![9; 16 << 20]),
        sizes: Mutex::default(),
        is_bad: AtomicBool::new(true),
    });
    let cache = Cache::new(dev.clone(), CacheOptions::default());
    let ranges = (0..10).map(|i| (i * MIB + 5, 100)).collect();
    cache.prefetch_all(ranges, &|| true);
    // What is there already is not asked for; nor is anything once the caller has had enough.
    cache.prefetch_each(vec![(0, 100), (11 * MIB, 1)], &|| true);
    cache.prefetch_each(vec![(12 * MIB, 1)], &|| false);
    assert_eq!(*dev.sizes.lock(), [10, 1]);
    dev.is_bad.store(false, Ordering::Relaxed);
    let mut byte = [0];
    cache.read(MIB + 5, &mut byte).unwrap();
    assert_eq!(byte, [9]);
}
