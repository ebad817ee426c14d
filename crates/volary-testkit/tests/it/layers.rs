//! Layers that change nothing that the suite asks for must not be noticed by
//! it; the read-only layer must make a read-only volume.

use crate::conformance::{lacking, model};
use std::sync::Arc;
use volary_core::{Cancel, Create, Cred, Ctx, Fs, Name, SetAttr, Time};
use volary_layers::{Count, IdMap, IdRules, ReadOnly, Subtree, Trace};
use volary_testkit::Suite;
use volary_testkit::diff::Diff;

type MakeLayer = fn(Fs) -> Fs;

const TRANSPARENT: &[(&str, MakeLayer)] = &[
    ("count", count),
    ("trace", trace),
    ("idmap to the same", same_ids),
    ("idmap to others and back", ids_and_back),
    ("subtree of the root", subtree_of_root),
    ("subtree of a directory", subtree_of_directory),
];

fn count(below: Fs) -> Fs {
    Arc::new(Count::new(below))
}

fn trace(below: Fs) -> Fs {
    Arc::new(Trace::new(below, Arc::new(|_: &str| {})))
}

fn same_ids(below: Fs) -> Fs {
    Arc::new(IdMap::new(below, IdRules::default(), IdRules::default()))
}

fn ids_and_back(below: Fs) -> Fs {
    let there = IdMap::parse(below, "u:5000:0:2000,g:7000:0:2000").expect("rules");
    let back = IdMap::parse(Arc::new(there), "u:0:5000:2000,g:0:7000:2000").expect("rules");
    Arc::new(back)
}

fn subtree_of_root(below: Fs) -> Fs {
    Arc::new(Subtree::new(below, b"/").expect("the root"))
}

fn at_start<T>(act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    act(&Ctx {
        cred: &cred,
        now: Time::from_secs(1_700_000_000),
        cancel: &cancel,
    })
}

fn subtree_of_directory(below: Fs) -> Fs {
    let name = Name::new(b"inside").expect("a name");
    let set = SetAttr::owned(0o755, 0, 0);
    at_start(|cx| below.mkdir(cx, below.root(), name, &set)).expect("mkdir");
    Arc::new(Subtree::new(below, b"inside").expect("the directory"))
}

#[test]
fn transparent_layers_are_not_noticed_by_the_suite() {
    for &(name, layer) in TRANSPARENT {
        Suite::new("mem", || model(lacking(0)))
            .under(name, layer)
            .run();
    }
}

#[test]
fn transparent_layers_are_not_noticed_by_random_operations() {
    for &(name, layer) in TRANSPARENT {
        Diff::new(format!("mem under {name}"), move || {
            layer(model(lacking(0)))
        })
        .run(100, 10);
    }
}

#[test]
fn the_read_only_layer_makes_a_read_only_volume() {
    Suite::new("mem under readonly", || {
        let below = model(lacking(0));
        at_start(|cx| {
            let (root, name) = (below.root(), Name::new(b"f").expect("a name"));
            let set = SetAttr::owned(0o644, 0, 0);
            let (_, open) = below
                .create(cx, root, name, Create::New, &set)
                .expect("create");
            below.write(cx, open, Some(0), b"content").expect("write");
            below.close(cx, open).expect("close");
            let name = Name::new(b"d").expect("a name");
            below.mkdir(cx, root, name, &set).expect("mkdir");
        });
        Arc::new(ReadOnly::new(below)) as Fs
    })
    .run();
}
