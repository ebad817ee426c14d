//! What goes wrong with one file does not keep others back.

use crate::volumes::{Laid, SHAPES, TURNS, laid, one, run, session};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use volary_block::Faulty;
use volary_bulk::{BulkFileRead, Content, File, Files, Method, Options, Part, Source, Way, Why};
use volary_core::{Fs, Kind, Name};
use volary_testkit::turns::runs;
use volary_testkit::volumes::{as_root, attach_read_only};

/// Returns a volume, and where the first fragment of `/dir/turn3` is.
fn with_a_place() -> (Laid, u64) {
    let laid = laid(SHAPES[1], TURNS, false);
    let fs = laid.attach();
    let at = as_root(|cx| {
        let dir = fs
            .lookup(cx, fs.root(), Name::new(b"dir").unwrap())
            .unwrap();
        let file = fs
            .lookup(cx, dir.node, Name::new(b"turn3").unwrap())
            .unwrap();
        runs(&fs, cx, file.node)[2].0
    });
    (laid, at)
}

#[test]
fn a_sector_that_cannot_be_read_costs_its_file_and_no_other() {
    let (laid, at) = with_a_place();
    let mut content = laid.content();
    content.0.remove(&b"dir/turn3"[..]);
    for method in [Method::Vanilla, Method::DaftNm, Method::DaftM] {
        for workers in [1, 3] {
            let options = Options {
                method,
                workers,
                ..Options::default()
            };
            let faulty = Arc::new(Faulty::new(laid.device.clone()));
            faulty.bad_reads(at..at + 512);
            let fs: Fs = attach_read_only(laid.format, faulty.clone(), "").unwrap();
            let session = session(fs);
            let got = run(
                options,
                &[Source::new(session.clone()).on(faulty)],
                &[&session],
            );
            assert!(got.content == content, "{method:?}");
            let failed: Vec<_> = got.failed.into_iter().collect();
            assert_eq!(failed, [(b"dir/turn3".to_vec(), Kind::Io)], "{method:?}");
        }
    }
}

#[test]
fn what_only_the_engine_cannot_read_comes_the_ordinary_way() {
    let (laid, at) = with_a_place();
    let faulty = Arc::new(Faulty::new(laid.device.clone()));
    faulty.bad_reads(at..at + 1);
    let session = session(laid.attach());
    let got = run(Options::default(), &[laid.source_on(faulty)], &[&session]);
    assert!(got.content == laid.content());
    assert_eq!(got.ways[&b"dir/turn3"[..]], Way::Ordinary(Why::Unread));
}

#[test]
fn a_device_that_is_gone_fails_each_file_and_the_run_ends() {
    let (laid, _) = with_a_place();
    for memory in [1 << 20, 64 << 20] {
        let faulty = Arc::new(Faulty::new(laid.device.clone()));
        let fs = attach_read_only(laid.format, faulty.clone(), "").unwrap();
        let session = session(fs);
        faulty.bad_reads(0..u64::MAX);
        let options = Options {
            memory,
            ..Options::default()
        };
        let got = run(
            options,
            &[Source::new(session.clone()).on(faulty)],
            &[&session],
        );
        // What the driver has in its cache is still there.
        let content = laid.content().0;
        assert!(
            got.content
                .0
                .iter()
                .all(|(path, bytes)| content[path] == *bytes)
        );
        assert!(got.failed.len() > 3, "{:?}", got.failed);
    }
}

#[test]
fn a_file_that_changed_since_it_was_listed_is_read_again() {
    let shape = SHAPES[4];
    let laid = laid(shape, TURNS, false);
    let fs = volary_testkit::volumes::attach(laid.format, laid.device.clone(), "").unwrap();
    let session = session(fs.clone());
    let node = session
        .walk(b"/dir/turn0", volary_session::Follow::No)
        .unwrap()
        .node;
    let old = one(&fs, node);
    let seen = parking_lot::Mutex::new(None);
    let writer = session.clone();
    // Once all is listed and before anything is read, somebody writes.
    struct Writes<'a>(
        &'a volary_session::Session,
        volary_core::NodeId,
        &'a parking_lot::Mutex<Option<(Vec<u8>, Way)>>,
    );
    impl volary_bulk::Consumer for Writes<'_> {
        fn found(&self, _: u64, _: u64) {
            let open = self.0.open(self.1, volary_core::Mode::Write).unwrap();
            self.0.write(open, Some(5), b"NEW").unwrap();
            self.0.close(open).unwrap();
        }
        fn take(&self, file: &File<'_>, part: Part<'_>) -> ControlFlow<()> {
            if let (b"/dir/turn0", Part::Whole(bytes)) = (file.path, part) {
                *self.2.lock() = Some((bytes.to_vec(), file.way));
            }
            ControlFlow::Continue(())
        }
    }
    let source = Source::new(session.clone()).on(laid.device.clone()).live();
    let summary = BulkFileRead::new(Options::default())
        .unwrap()
        .run(&[source], &Writes(&writer, node, &seen));
    let (bytes, way) = seen.into_inner().expect("it came");
    let mut new = old;
    new[5..8].copy_from_slice(b"NEW");
    assert!(bytes == new);
    assert_eq!((way, summary.changed), (Way::Ordinary(Why::Changed), 1));
}

#[test]
fn a_consumer_that_has_enough_ends_the_run() {
    let laid = laid(SHAPES[4], TURNS, false);
    for workers in [1, 4] {
        for method in [Method::Vanilla, Method::DaftM] {
            let options = Options {
                workers,
                method,
                memory: 1 << 20,
                ..Options::default()
            };
            let count = AtomicU64::new(0);
            let take = |_: &File<'_>, part: Part<'_>| match part {
                Part::Whole(_) if count.fetch_add(1, Ordering::Relaxed) >= 2 => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            };
            let sum = BulkFileRead::new(options)
                .unwrap()
                .run(&[laid.source()], &take);
            assert!(sum.is_stopped, "{sum:?}");
            assert!(count.into_inner() < 3 + workers as u64);
        }
    }
}

#[test]
fn an_iterator_gives_the_same_and_can_be_dropped_at_any_point() {
    let laid = laid(SHAPES[4], TURNS, false);
    let content = laid.content();
    let mut files = Files::new(Options::default(), vec![laid.source()]).unwrap();
    let mut whole = 0;
    for read in files.by_ref() {
        if let Content::Whole(bytes) = read.content {
            let path = read.path.strip_prefix(b"/").unwrap();
            assert!(content.0[path] == bytes, "{}", path.escape_ascii());
            whole += 1;
        }
    }
    assert_eq!(files.summary().files, whole);
    let mut files = Files::new(Options::default(), vec![laid.source()]).unwrap();
    files.next().unwrap();
    assert!(files.summary().is_stopped);
}

#[test]
fn damaged_volumes_neither_stop_nor_outgrow_a_run() {
    for shape in SHAPES {
        let laid = laid(shape, TURNS, false);
        let whole = laid.device.to_vec();
        for seed in 0..12 {
            let mut bytes = whole.clone();
            let mut rng = volary_testkit::rng::Rng::new(seed);
            for _ in 0..200 {
                let at = rng.index(bytes.len() / 4);
                bytes[at] = rng.next_u64() as u8;
            }
            let device = Arc::new(volary_block::MemDevice::from_vec(bytes));
            let Ok(fs) = attach_read_only(shape.format(), device.clone(), "") else {
                continue;
            };
            let of = |method| {
                let session = session(fs.clone());
                let options = Options {
                    memory: 1 << 20,
                    method,
                    ..Options::default()
                };
                let take = |_: &File<'_>, _: Part<'_>| ControlFlow::Continue(());
                let source = Source::new(session).on(device.clone());
                BulkFileRead::new(options).unwrap().run(&[source], &take)
            };
            let (ordinary, merged) = (of(Method::Vanilla), of(Method::DaftM));
            let count = |s: &volary_bulk::Summary| (s.files, s.bytes, s.nodes, s.failed);
            assert_eq!(
                count(&ordinary),
                count(&merged),
                "{} seed {seed}",
                laid.name
            );
            assert!(merged.peak <= 1 << 20);
        }
    }
}
