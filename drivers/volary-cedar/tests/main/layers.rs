//! The suite under a layer that changes nothing.

use crate::volumes::shape;
use std::sync::Arc;
use volary_core::{Fs, Layer};
use volary_testkit::Suite;

struct Nothing(Fs);

impl Layer for Nothing {
    fn below(&self) -> &Fs {
        &self.0
    }
}

#[test]
fn a_layer_that_changes_nothing_is_not_noticed() {
    let shape = shape(16 << 20);
    Suite::new(shape.name(), move || shape.fresh())
        .under("a layer that changes nothing", |fs| Arc::new(Nothing(fs)))
        .run();
}
