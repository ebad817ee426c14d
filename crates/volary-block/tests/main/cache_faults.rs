//! What the cache does when the device fails.

use std::sync::Arc;
use volary_block::{Cache, CacheOptions, Faulty, How, MemDevice, On, Recorder, Stage, When};
use volary_core::{BlockDevice, Kind};

const PAGE: u64 = 4096;

fn cache() -> (Arc<Faulty>, Cache) {
    let faulty = Arc::new(Faulty::new(Arc::new(MemDevice::new(4 << 20))));
    let options = CacheOptions {
        memory: 256 << 10,
        io_size: 64 << 10,
    };
    (faulty.clone(), Cache::new(faulty, options))
}

fn on_device(cache: &Cache, at: u64) -> u8 {
    let mut b = [0];
    cache.device().read_at(at, &mut b).unwrap();
    b[0]
}

#[test]
fn a_bad_sector_harms_only_those_who_need_it() {
    let (faulty, cache) = cache();
    faulty.bad_reads(PAGE + 1024..PAGE + 1536);
    let mut b = vec![0; 256 << 10];
    let e = cache.read(0, &mut b).unwrap_err();
    assert_eq!(e.as_io().unwrap().offset, PAGE + 1024);
    cache.read(0, &mut b[..PAGE as usize + 1024]).unwrap();
    cache.view(PAGE + 1536, 100, |_| ()).unwrap();
    assert_eq!(cache.view(PAGE + 1500, 100, |_| ()).unwrap_err(), Kind::Io);
    assert_eq!(
        cache.write(PAGE + 1030, &[1], Stage::DATA).unwrap_err(),
        Kind::Io
    );
    cache.write(PAGE + 1024, &[1; 512], Stage::DATA).unwrap();
    cache.view(PAGE + 1500, 100, |_| ()).unwrap();
}

#[test]
fn read_ahead_over_a_bad_sector_fails_nobody() {
    let (faulty, cache) = cache();
    faulty.bad_reads(8 * PAGE..9 * PAGE);
    for at in (0..8 * PAGE).step_by(512) {
        cache.view(at, 512, |_| ()).unwrap();
    }
}

#[test]
fn a_failed_write_stays_dirty_until_the_device_takes_it() {
    let (faulty, cache) = cache();
    cache.write(0, &[1; 512], Stage(0)).unwrap();
    cache.write(PAGE, &[2; 512], Stage(1)).unwrap();
    cache.write(2 * PAGE, &[3; 512], Stage(2)).unwrap();
    faulty.fail(On::Write, When::Nth(1), How::Full);
    faulty.fail(On::Write, When::Nth(2), How::Io);
    assert_eq!(cache.commit().unwrap_err(), Kind::Io);
    assert_eq!((cache.dirty(), cache.held()), (1024, 1024));
    assert_eq!(
        on_device(&cache, 2 * PAGE),
        0,
        "no later stage after a failure"
    );
    cache.view(PAGE, 1, |b| assert_eq!(b[0], 2)).unwrap();
    faulty.heal();
    cache.commit().unwrap();
    let bytes = [0, 1, 2].map(|i| on_device(&cache, i * PAGE));
    assert_eq!((bytes, cache.dirty()), ([1, 2, 3], 0));
}

#[test]
fn every_commit_says_so_while_a_write_cannot_be_done() {
    let (faulty, cache) = cache();
    faulty.bad_writes(0..512);
    cache.write(0, &[1; 512], Stage::DATA).unwrap();
    for _ in 0..3 {
        assert_eq!(cache.commit().unwrap_err(), Kind::Io);
        assert_eq!(cache.dirty(), 512);
    }
}

#[test]
fn a_torn_write_is_written_again_whole() {
    let (faulty, cache) = cache();
    cache.write(0, &[1; 64 << 10], Stage::DATA).unwrap();
    faulty.fail(On::Write, When::Nth(0), How::Torn(3));
    cache.commit().unwrap_err();
    assert_eq!((on_device(&cache, 1535), on_device(&cache, 1536)), (1, 0));
    cache.commit().unwrap();
    assert_eq!(on_device(&cache, 65_535), 1);
}

#[test]
fn a_failed_flush_ends_writing_for_good_and_reading_goes_on() {
    let (faulty, cache) = cache();
    cache.write(0, &[1; 512], Stage(0)).unwrap();
    cache.write(PAGE, &[2; 512], Stage(1)).unwrap();
    faulty.fail(On::Flush, When::Nth(0), How::Io);
    assert_eq!(cache.commit().unwrap_err(), Kind::Io);
    assert_eq!(on_device(&cache, PAGE), 0, "no stage after a failed flush");
    let words = cache.commit().unwrap_err().to_string();
    assert!(words.contains("earlier flush failed"), "{words}");
    assert_eq!(cache.flush().unwrap_err(), Kind::Io);
    assert_eq!(cache.write(0, &[1], Stage::DATA).unwrap_err(), Kind::Io);
    assert_eq!(cache.write_direct(0, &[1; 512]).unwrap_err(), Kind::Io);
    assert_eq!(
        cache.update(0, 1, Stage::DATA, |_| ()).unwrap_err(),
        Kind::Io
    );
    assert_eq!(cache.write_stage(Stage::DATA).unwrap_err(), Kind::Io);
    cache.view(PAGE, 1, |b| assert_eq!(b[0], 2)).unwrap();
    cache.read(1 << 20, &mut [0; 100]).unwrap();
}

#[test]
fn writes_that_find_no_room_fail_and_reads_do_not() {
    let (faulty, cache) = cache();
    faulty.fail(On::Write, When::From(0), How::Full);
    let mut refused = 0;
    for i in 0..200 {
        if let Err(e) = cache.write(i * PAGE, &[1; PAGE as usize], Stage::DATA) {
            assert_eq!(e, Kind::Io);
            refused += 1;
        }
    }
    assert_eq!(refused, 200 - 64);
    for i in 0..500 {
        cache
            .view(i * PAGE, 10, |b| assert_eq!(b[0], u8::from(i < 64)))
            .unwrap();
        assert!(cache.used() <= (256 << 10) + (64 << 10));
    }
    faulty.heal();
    cache
        .write(300 * PAGE, &[1; PAGE as usize], Stage::DATA)
        .unwrap();
    cache.commit().unwrap();
    assert_eq!(
        [0, 63, 64, 300].map(|i| on_device(&cache, i * PAGE)),
        [1, 1, 0, 1]
    );
}

#[test]
fn a_failed_direct_write_leaves_no_wrong_copies() {
    let (faulty, cache) = cache();
    cache.view(0, 10, |_| ()).unwrap();
    cache.write(PAGE, &[9; 512], Stage(1)).unwrap();
    faulty.fail(On::Write, When::Nth(0), How::Torn(1));
    assert_eq!(
        cache.write_direct(0, &[5; 2 * PAGE as usize]).unwrap_err(),
        Kind::Io
    );
    cache
        .view(0, 513, |b| assert_eq!((b[0], b[512]), (5, 0)))
        .unwrap();
    cache.view(PAGE, 1, |b| assert_eq!(b[0], 9)).unwrap();
    assert_eq!(cache.held(), 512);
}

#[test]
fn a_read_only_device_refuses_writes_and_commits_nothing() {
    struct ReadOnly(MemDevice);
    impl BlockDevice for ReadOnly {
        fn geometry(&self) -> volary_core::Geometry {
            volary_core::Geometry {
                read_only: true,
                ..self.0.geometry()
            }
        }
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> volary_core::Result<()> {
            self.0.read_at(offset, buf)
        }
        fn write_at(&self, _: u64, _: &[u8]) -> volary_core::Result<()> {
            panic!("written to")
        }
        fn flush(&self) -> volary_core::Result<()> {
            panic!("flushed")
        }
    }
    let dev = Arc::new(Recorder::new(Arc::new(ReadOnly(MemDevice::new(PAGE)))));
    let cache = Cache::new(dev, CacheOptions::default());
    assert_eq!(
        cache.write(0, &[1], Stage::DATA).unwrap_err(),
        Kind::ReadOnly
    );
    assert_eq!(
        cache.write_direct(0, &[1; 512]).unwrap_err(),
        Kind::ReadOnly
    );
    assert_eq!(
        cache.update(0, 1, Stage::DATA, |_| ()).unwrap_err(),
        Kind::ReadOnly
    );
    cache.commit().unwrap();
}
