//! Layers that are transparent to the cases of a suite.

use std::sync::Arc;
use volary_core::Fs;
use volary_layers::{Count, IdMap, IdRules, Subtree, Trace};

/// The name of a layer, and a function that puts it over a volume.
type Named = (&'static str, fn(Fs) -> Fs);

pub(super) const TRANSPARENT: &[Named] = &[
    ("count", |below| Arc::new(Count::new(below))),
    ("trace", |below| {
        Arc::new(Trace::new(below, Arc::new(|_: &str| {})))
    }),
    ("idmap to the same", |below| {
        Arc::new(IdMap::new(below, IdRules::default(), IdRules::default()))
    }),
    ("subtree of the root", |below| {
        Arc::new(Subtree::new(below, b"/").expect("the root"))
    }),
];
