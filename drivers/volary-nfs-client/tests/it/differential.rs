//! Random operations on an export and on the model, every answer compared.

use crate::served::Served;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Caps, Ctx, Entry, FileKind, Fs, Kind, Layer, Name, NodeId, Result, SetAttr};
use volary_nfs_client::NfsOptions;
use volary_testkit::Fresh;
use volary_testkit::diff::{Diff, NAMES, Rules, Times};

/// What a server of ours does not make is not asked for.
struct NoDevices(Fs);

impl Layer for NoDevices {
    fn below(&self) -> &Fs {
        &self.0
    }

    fn caps(&self) -> Caps {
        self.0.caps().without(Caps::DEVICES | Caps::HOLES)
    }

    fn mknod(
        &self,
        _: &Ctx<'_>,
        _: NodeId,
        _: Name<'_>,
        _: FileKind,
        _: u64,
        _: &SetAttr,
    ) -> Result<Entry> {
        Err(Kind::Unsupported.into())
    }
}

fn run(name: &str, options: &NfsOptions, seeds: u64) {
    let options = options.clone();
    let make = move || {
        let served = Served::mem();
        let export = served.attach(&options).expect("the export");
        Fresh::new(Arc::new(NoDevices(export))).keeping(served)
    };
    let rules = Rules {
        names: NAMES.iter().map(ToString::to_string).collect(),
        times: Times::None,
        ..Rules::default()
    };
    Diff::new(name, make).rules(rules).run(0, seeds);
}

#[test]
fn the_model_equals_an_export() {
    run("nfs export", &NfsOptions::default(), 20);
}

#[test]
fn the_model_equals_an_export_with_hardly_any_memory() {
    let options = NfsOptions {
        cache: Duration::ZERO,
        memory: 0,
        ..NfsOptions::default()
    };
    run("nfs export, short of memory", &options, 20);
}
