//! Layers that change nothing are not noticed: the conformance suite under each.

use crate::{Rig, n};
use std::sync::Arc;
use volary_core::{Fs, SetAttr, Time};
use volary_layers::{Count, Fault, IdMap, Subtree, Trace};
use volary_mem::{Mem, MemOptions};
use volary_testkit::Suite;

fn holds_under(name: &str, layer: fn(Fs) -> Fs) {
    let make = || Mem::attach(MemOptions::sized(8 << 20), Time::EPOCH).unwrap();
    Suite::new("mem", make).under(name, layer).run();
}

#[test]
fn the_suite_holds_under_count() {
    holds_under("count", |fs| Arc::new(Count::new(fs)));
}

#[test]
fn the_suite_holds_under_trace() {
    holds_under("trace", |fs| Arc::new(Trace::new(fs, Arc::new(|_| {}))));
}

#[test]
fn the_suite_holds_under_faults_that_never_come() {
    holds_under("fault", |fs| {
        Arc::new(Fault::parse(fs, "any%0,ioctl@1000000").unwrap())
    });
}

#[test]
fn the_suite_holds_in_a_subtree() {
    holds_under("subtree", |fs| {
        let rig = Rig::over(fs.clone());
        let set = SetAttr::default();
        fs.mkdir(&rig.cx(), fs.root(), n("top"), &set).unwrap();
        Arc::new(Subtree::new(fs, b"/top").unwrap())
    });
}

#[test]
fn the_suite_holds_with_all_ids_moved() {
    holds_under("idmap", |fs| {
        let words = "u:0:100000:100000,g:0:200000:100000,squash:7:7";
        Arc::new(IdMap::parse(fs, words).unwrap())
    });
}
