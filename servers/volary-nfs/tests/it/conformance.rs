//! The conformance suite, through the server.

use crate::served::{Served, export, fat, fat_device, options, volume};
use std::sync::Arc;
use volary_core::Time;
use volary_mem::{Mem, MemOptions};
use volary_session::Volume;
use volary_testkit::nfs::{Remote, shown, through};
use volary_testkit::{Fresh, Suite};

fn suite(name: &str, volume: impl Fn() -> Arc<Volume> + Send + Sync + 'static) -> Suite {
    let make = move || {
        let served = Served::of(volume(), &export(), &options(1));
        let remote = Remote::new(served.client(), shown(served.volume.caps()));
        Fresh::new(Arc::new(remote)).keeping(served)
    };
    through(Suite::new(name, make))
}

#[test]
fn a_volume_in_memory_keeps_its_word() {
    let mem = || volume(Mem::attach(MemOptions::default(), Time::EPOCH).unwrap());
    suite("mem through nfs", mem).run();
}

#[test]
fn a_fat_volume_keeps_its_word() {
    suite("fat through nfs", || fat(fat_device(64 << 20))).run();
}
