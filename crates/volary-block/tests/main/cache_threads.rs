//! The cache under many threads.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use volary_block::{Cache, CacheOptions, MemDevice, Recorder, Stage};
use volary_core::{BlockDevice, Geometry, Result};

/// A generator of numbers: xorshift64.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

const THREADS: u64 = 4;
const SECTORS: u64 = 4096;
const STEPS: u64 = 6000;

/// Each thread owns every fourth sector, so that all share every page, and
/// every fourth stretch of 64 KiB behind those, where it writes directly.
fn work(cache: &Cache, me: u64) {
    let mut numbers = Numbers(me + 0x9e37_79b9_7f4a_7c15);
    let mut mine = vec![0_u8; SECTORS as usize];
    let mut large = [0_u8; 8];
    let mut buf = vec![0; 64 << 10];
    for step in 0..STEPS {
        let sector = numbers.below(SECTORS / THREADS) * THREADS + me;
        let at = sector * 512;
        let value = step as u8;
        match numbers.below(8) {
            0..3 => {
                let stage = Stage(numbers.below(4) as u8);
                cache.write(at, &[value; 512], stage).unwrap();
                mine[sector as usize] = value;
            }
            3 => {
                cache.update(at, 512, Stage(1), |b| b.fill(value)).unwrap();
                mine[sector as usize] = value;
            }
            4 => {
                cache.write_direct(at, &[value; 512]).unwrap();
                mine[sector as usize] = value;
            }
            5 => {
                let i = numbers.below(8);
                let at = SECTORS * 512 + (i * THREADS + me) * (64 << 10);
                cache.read(at, &mut buf).unwrap();
                assert!(
                    buf.iter().all(|b| *b == large[i as usize]),
                    "thread {me}, step {step}"
                );
                buf.fill(value);
                cache.write_direct(at, &buf).unwrap();
                large[i as usize] = value;
            }
            _ => {
                cache.read(at, &mut buf[..512]).unwrap();
                let expected = mine[sector as usize];
                let right = buf[..512].iter().all(|b| *b == expected);
                assert!(right, "thread {me}, step {step}: sector {sector}");
            }
        }
        if step % 400 == me * 100 {
            cache.commit().unwrap();
        }
    }
    for sector in (me..SECTORS).step_by(THREADS as usize) {
        cache
            .view(sector * 512, 512, |b| {
                assert_eq!(b[0], mine[sector as usize]);
            })
            .unwrap();
    }
}

#[test]
fn threads_that_share_every_page_do_not_lose_each_others_writes() {
    let size = SECTORS * 512 + 8 * THREADS * (64 << 10);
    let dev = Arc::new(MemDevice::new(size));
    let options = CacheOptions {
        memory: 1 << 20,
        io_size: 64 << 10,
    };
    let cache = Cache::new(dev.clone(), options);
    std::thread::scope(|s| {
        for me in 0..THREADS {
            let cache = &cache;
            s.spawn(move || work(cache, me));
        }
    });
    cache.commit().unwrap();
    assert_eq!((cache.dirty(), cache.held()), (0, 0));
    let mut all = vec![0; size as usize];
    cache.read(0, &mut all).unwrap();
    assert!(dev.to_vec() == all);
    cache.drop_range(0, u64::MAX);
    assert_eq!(cache.used(), 0, "every page is accounted for");
}

#[test]
fn what_follows_in_a_later_stage_is_never_on_the_device_first() {
    let dev = Arc::new(MemDevice::new(1 << 20));
    let options = CacheOptions {
        memory: 64 << 10,
        io_size: 4096,
    };
    let cache = Cache::new(dev.clone(), options);
    let done = AtomicBool::new(false);
    let number = |at: u64| {
        let mut b = [0; 8];
        dev.read_at(at, &mut b).unwrap();
        u64::from_le_bytes(b)
    };
    std::thread::scope(|s| {
        s.spawn(|| {
            for n in 1..30_000_u64 {
                cache.write(512 << 10, &n.to_le_bytes(), Stage(1)).unwrap();
                cache.write(0, &n.to_le_bytes(), Stage(2)).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        s.spawn(|| {
            while !done.load(Ordering::Acquire) {
                cache.commit().unwrap();
                let later = number(0);
                assert!(number(512 << 10) >= later);
            }
        });
    });
}

/// A device whose requests at some place wait for a signal.
struct Slow {
    mem: MemDevice,
    from: u64,
    waiting: AtomicU64,
    open: Mutex<bool>,
    opened: Condvar,
}

impl Slow {
    fn new(from: u64) -> Self {
        Self {
            mem: MemDevice::new(16 << 20),
            from,
            waiting: AtomicU64::new(0),
            open: Mutex::new(false),
            opened: Condvar::new(),
        }
    }
    fn pass(&self, offset: u64) {
        if offset >= self.from {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let mut open = self.open.lock();
            while !*open {
                self.opened.wait(&mut open);
            }
        }
    }
    fn wait_for(&self, waiting: u64) {
        while self.waiting.load(Ordering::SeqCst) < waiting {
            std::thread::yield_now();
        }
    }
    fn open(&self) {
        *self.open.lock() = true;
        self.opened.notify_all();
    }
}

impl BlockDevice for Slow {
    fn geometry(&self) -> Geometry {
        self.mem.geometry()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.pass(offset);
        self.mem.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.pass(offset);
        self.mem.write_at(offset, data)
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn readers_and_writers_of_other_places_do_not_wait_for_a_slow_device() {
    let slow = Arc::new(Slow::new(8 << 20));
    let cache = Cache::new(slow.clone(), CacheOptions::default());
    cache.write(12 << 20, &[1; 512], Stage(1)).unwrap();
    std::thread::scope(|s| {
        s.spawn(|| cache.read(8 << 20, &mut [0; 100]).unwrap());
        s.spawn(|| cache.read(9 << 20, &mut vec![0; 1 << 20]).unwrap());
        s.spawn(|| cache.write_direct(10 << 20, &[1; 4096]).unwrap());
        slow.wait_for(3);
        cache.read(0, &mut vec![0; 1 << 20]).unwrap();
        cache.write(1 << 20, &[1; 5000], Stage::DATA).unwrap();
        cache.write_direct(2 << 20, &[1; 4096]).unwrap();
        cache.view((8 << 20) + (1 << 19), 0, |_| ()).unwrap();
        slow.open();
    });
    cache.commit().unwrap();
}

#[test]
fn readers_and_writers_do_not_wait_for_a_commit_not_even_of_the_same_sector() {
    let slow = Arc::new(Slow::new(8 << 20));
    let cache = Cache::new(slow.clone(), CacheOptions::default());
    cache.write(8 << 20, &[1; 512], Stage(1)).unwrap();
    std::thread::scope(|s| {
        s.spawn(|| cache.commit().unwrap());
        slow.wait_for(1);
        cache.view(8 << 20, 1, |b| assert_eq!(b[0], 1)).unwrap();
        cache.write(8 << 20, &[2; 512], Stage(1)).unwrap();
        cache.write_direct(1 << 20, &[1; 4096]).unwrap();
        slow.open();
    });
    assert_eq!(cache.held(), 512, "written again while it was on its way");
    let mut b = [0; 1];
    slow.mem.read_at(8 << 20, &mut b).unwrap();
    assert_eq!(b, [1], "what was committed is what was there when it began");
}

#[test]
fn a_missing_page_is_read_once_however_many_want_it() {
    let slow = Arc::new(Slow::new(8 << 20));
    let recorder = Arc::new(Recorder::counting(slow.clone()));
    let cache = Cache::new(recorder.clone(), CacheOptions::default());
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| cache.view(9 << 20, 100, |_| ()).unwrap());
        }
        slow.wait_for(1);
        slow.open();
    });
    assert_eq!(recorder.counts().reads, 1);
}

#[test]
fn a_direct_write_waits_for_what_is_on_its_way_to_the_same_place() {
    let slow = Arc::new(Slow::new(8 << 20));
    let cache = Cache::new(slow.clone(), CacheOptions::default());
    cache.write(8 << 20, &[1; 512], Stage(1)).unwrap();
    std::thread::scope(|s| {
        s.spawn(|| cache.commit().unwrap());
        slow.wait_for(1);
        s.spawn(|| cache.write_direct(8 << 20, &[2; 4096]).unwrap());
        for _ in 0..2000 {
            std::thread::yield_now();
            assert_eq!(slow.waiting.load(Ordering::SeqCst), 1, "overtaken");
        }
        slow.open();
    });
    let mut b = [0; 1];
    slow.mem.read_at(8 << 20, &mut b).unwrap();
    assert_eq!(b, [2]);
    assert_eq!(cache.dirty(), 0);
}
