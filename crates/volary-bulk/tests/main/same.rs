//! Each method on each driver delivers what an ordinary walk finds.

use crate::volumes::{Got, Laid, SHAPES, TURNS, grow, laid, made_by_others, run, run_one, session};
use volary_bulk::{Cleaning, Method, Options, Shuffle, Source, Way, Why};
use volary_host::HostOptions;
use volary_testkit::readable::Content;
use volary_testkit::volumes::as_root;

const METHODS: [Method; 3] = [Method::Vanilla, Method::DaftNm, Method::DaftM];
const MIB: u64 = 1 << 20;

/// Ways to run: each method with much memory and little, on one thread and several.
fn ways() -> Vec<Options> {
    let mut all = Vec::new();
    for method in METHODS {
        for cleaning in [Cleaning::OnDemand, Cleaning::FirstFit] {
            for (memory, workers) in [(64 * MIB, 1), (MIB, 3)] {
                all.push(Options {
                    memory,
                    method,
                    cleaning,
                    workers,
                    ..Options::default()
                });
            }
        }
    }
    let shuffle = Some(Shuffle {
        seed: 5,
        window: MIB,
    });
    all.push(Options {
        shuffle,
        ..Options::default()
    });
    all
}

fn assert_same(what: &str, content: &Content, got: &Got) {
    assert!(got.failed.is_empty(), "{what}: {:?}", got.failed);
    let names = |c: &Content| {
        c.0.keys()
            .map(|k| k.escape_ascii().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(content), names(&got.content), "{what}");
    for (path, bytes) in &content.0 {
        assert!(
            got.content.0[path] == *bytes,
            "{what}: {}",
            path.escape_ascii()
        );
    }
}

fn all_ways(laid: &Laid) {
    let content = laid.content();
    for options in ways() {
        let what = format!("{} by {options:?}", laid.name);
        let method = options.method;
        let got = run_one(options, laid);
        assert_same(&what, &content, &got);
        if method == Method::Vanilla {
            let asked = |way: &Way| *way == Way::Ordinary(Why::Asked);
            assert!(got.ways.values().all(asked), "{what}");
        }
    }
}

#[test]
fn fresh_volumes_of_ours() {
    for shape in SHAPES {
        all_ways(&laid(shape, TURNS, false));
    }
}

#[test]
fn aged_volumes_of_ours() {
    for shape in SHAPES {
        // What is left of an aged volume has to hold all of this.
        let shape = shape.long(shape.len * 3);
        all_ways(&laid(shape, TURNS, true));
    }
}

#[test]
fn volumes_that_others_make() {
    for laid in made_by_others() {
        all_ways(&laid);
    }
}

#[test]
fn files_come_from_the_device_where_the_driver_says_where_they_are() {
    for laid in SHAPES.map(|shape| laid(shape, TURNS, false)) {
        let got = run_one(Options::default(), &laid);
        assert!(
            got.summary.direct > 0 && got.summary.assembled > 0,
            "{:?}",
            got.summary
        );
        assert_eq!(got.summary.ordinary, 0, "{}: {:?}", laid.name, got.ways);
    }
}

#[test]
fn merging_saves_requests_and_reads_the_same() {
    let laid = laid(SHAPES[1], TURNS, false);
    let sum = |method| {
        let options = Options {
            method,
            ..Options::default()
        };
        run_one(options, &laid).summary
    };
    let (apart, merged) = (sum(Method::DaftNm), sum(Method::DaftM));
    assert_eq!(apart.reads, apart.fragments);
    assert_eq!(apart.bytes, merged.bytes);
    assert!(merged.reads * 10 < apart.reads, "{merged:?} {apart:?}");
}

#[test]
fn directories_of_the_host_are_read_through_the_session() {
    let dir = tempfile::tempdir().expect("a directory");
    grow(dir.path());
    let attach = || volary_host::attach(dir.path(), &HostOptions::default()).expect("attach");
    let content = as_root(|cx| Content::read(&attach(), cx)).expect("an ordinary walk");
    for options in ways() {
        let what = format!("{options:?}");
        let is_asked = options.method == Method::Vanilla;
        let session = session(attach());
        let got = run(options, &[Source::new(session.clone()).live()], &[&session]);
        assert_same(&what, &content, &got);
        let why = if is_asked { Why::Asked } else { Why::NoPlaces };
        assert!(
            got.ways.values().all(|way| *way == Way::Ordinary(why)),
            "{what}"
        );
    }
}

#[test]
fn places_are_read_and_nothing_else() {
    let laid = laid(SHAPES[4], TURNS, false);
    let places = vec![
        b"/len4096".to_vec(),
        b"/dir/turn3".to_vec(),
        b"/gone".to_vec(),
    ];
    let source = laid.source().places(places);
    let session = session(laid.attach());
    let got = run(
        Options::default(),
        &[source, laid.source().places(vec![b"/dir/len1".to_vec()])],
        &[&session, &session],
    );
    let names: Vec<_> = got
        .content
        .0
        .keys()
        .map(|k| k.escape_ascii().to_string())
        .collect();
    assert_eq!(names, ["dir/len1", "dir/turn3", "len4096"]);
    assert_eq!(got.failed.len(), 1);
    assert!(got.content.0[&b"dir/turn3"[..]] == TURNS.content(3));
}
