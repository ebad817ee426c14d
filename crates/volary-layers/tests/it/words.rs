use crate::{Rig, memory};
use std::sync::Arc;
use volary_core::{Caps, Fs, Kind};
use volary_layers::{LAYERS, Stacked, TraceSink, layer_by_name};

fn stack(below: Fs, spec: &str) -> volary_core::Result<Stacked> {
    let quiet: TraceSink = Arc::new(|_| {});
    layer_by_name(below, spec, &quiet)
}

#[test]
fn every_listed_layer_can_be_had_by_its_name() {
    for layer in LAYERS {
        let below = Rig::over(memory());
        below.dir(below.fs.root(), "d");
        let spec = match layer.name {
            "fault" => "fault=write@3:NoSpace",
            "subtree" => "subtree=/d",
            "idmap" => "idmap=u:1000:0",
            name => name,
        };
        let stacked = stack(below.fs, spec).unwrap();
        assert_eq!(stacked.report.is_some(), layer.name == "count");
        assert_eq!(stacked.fs.caps().has(Caps::WRITE), layer.name != "readonly");
    }
}

#[test]
fn the_report_of_count_is_its_table() {
    let stacked = stack(memory(), "count").unwrap();
    let rig = Rig::over(stacked.fs);
    rig.dir(rig.fs.root(), "d");
    let table = stacked.report.unwrap()();
    assert!(
        table.lines().nth(1).unwrap().starts_with("mkdir"),
        "{table}"
    );
}

#[test]
fn what_cannot_be_had_is_refused_in_words_that_help() {
    for (spec, words) in [
        (
            "rot13",
            "unknown layer 'rot13'; known are: readonly, count, trace, fault, subtree, idmap",
        ),
        ("readonly=yes", "layer readonly takes no argument"),
        ("subtree", "layer subtree needs an argument: subtree=PATH"),
        ("subtree=", "layer subtree needs an argument: subtree=PATH"),
        (
            "subtree=/none",
            "layer subtree: /none: no such file or directory",
        ),
    ] {
        let e = stack(memory(), spec).err().unwrap();
        assert_eq!(e.to_string(), words);
    }
    let e = stack(memory(), "subtree=/none").err().unwrap();
    assert_eq!(e.kind(), Kind::NotFound);
}
