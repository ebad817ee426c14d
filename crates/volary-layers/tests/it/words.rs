use crate::{Rig, memory};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use volary_core::Time;
use volary_core::{Caps, Fs, Kind, Result};
use volary_layers::{LAYERS, Nothing, Outside, Pace, Stacked, layer_by_name};
use volary_mem::{Mem, MemOptions};

/// A world that has all that layers can need.
struct World;

impl Pace for World {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn wait(&self, _: Duration) {}
}

impl Outside for World {
    fn append(&self, _: &str) -> Result<Box<dyn Write + Send>> {
        Ok(Box::new(std::io::sink()))
    }
    fn pace(&self) -> Result<Arc<dyn Pace>> {
        Ok(Arc::new(Self))
    }
    fn passphrase(&self, _: Option<&str>, _: bool) -> Result<Vec<u8>> {
        Ok(b"words".to_vec())
    }
    fn random(&self, bytes: &mut [u8]) -> Result<()> {
        bytes.fill(7);
        Ok(())
    }
}

fn stack(below: Fs, spec: &str) -> Result<Stacked> {
    let outside: Arc<dyn Outside> = Arc::new(World);
    layer_by_name(below, spec, &outside)
}

#[test]
fn every_listed_layer_can_be_had_by_its_name() {
    for layer in LAYERS {
        let below = Rig::over(memory());
        if layer.name != "crypt" {
            below.dir(below.fs.root(), "d");
        }
        let spec = match layer.name {
            "fault" => "fault=write@3:NoSpace",
            "subtree" => "subtree=/d",
            "idmap" => "idmap=u:1000:0",
            "squash" => "squash=root:65534:65534",
            "audit" => "audit=log",
            "throttle" => "throttle=ops=1000",
            "quota" => "quota=bytes=1M,nodes=10,each",
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
            "unknown layer 'rot13'; known are: readonly, count, trace, fault, subtree, idmap, \
             squash, audit, throttle, quota, casefold, munge, symlinks, dircache, crypt",
        ),
        ("readonly=yes", "layer readonly takes no argument"),
        ("subtree", "layer subtree needs an argument: subtree=PATH"),
        ("subtree=", "layer subtree needs an argument: subtree=PATH"),
        (
            "subtree=/none",
            "layer subtree: /none: no such file or directory",
        ),
        (
            "munge=below",
            "layer munge=below: the volume keeps any name as it is",
        ),
    ] {
        let e = stack(memory(), spec).err().unwrap();
        assert_eq!(e.to_string(), words);
    }
    let e = stack(memory(), "subtree=/none").err().unwrap();
    assert_eq!(e.kind(), Kind::NotFound);
}

#[test]
fn layers_that_make_no_sense_over_a_volume_are_refused_in_words() {
    let lacking = |bits| {
        let mut options = MemOptions::default();
        options.caps = options.caps.without(bits);
        Mem::attach(options, Time::EPOCH).unwrap()
    };
    for (spec, bits, words) in [
        (
            "casefold",
            Caps::CASE_SENSITIVE,
            "layer casefold: the volume finds names in any case as it is",
        ),
        (
            "symlinks",
            Caps::SYMLINKS,
            "layer symlinks: the volume has none to follow",
        ),
        (
            "quota=nodes=1,each",
            Caps::MODES,
            "layer quota: the volume keeps no owners; leave out each",
        ),
    ] {
        let e = stack(lacking(bits), spec).err().unwrap();
        assert_eq!((e.kind(), e.to_string().as_str()), (Kind::Invalid, words));
    }
}

#[test]
fn what_the_world_does_not_give_is_asked_for_in_words() {
    let nothing: Arc<dyn Outside> = Arc::new(Nothing);
    for (spec, what) in [("audit=f", "files"), ("throttle=ops=1", "a clock")] {
        let e = layer_by_name(memory(), spec, &nothing).err().unwrap();
        let words = format!("this layer needs {what}, and this program gives none");
        assert_eq!(e.to_string(), words);
    }
}
