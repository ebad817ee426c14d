//! The conformance suite, through the server.

use crate::served::{Served, config, now};
use std::net::Ipv4Addr;
use std::sync::Arc;
use tempfile::TempDir;
use volary_block::MemDevice;
use volary_core::{Attach, Cred, Format, Fs, Make};
use volary_fat::FAT;
use volary_host::HostOptions;
use volary_mem::{Mem, MemOptions};
use volary_session::{Volume, VolumeOptions};
use volary_smb::User;
use volary_testkit::smb::{Client, Remote, shown, through};
use volary_testkit::{Fresh, Suite};

/// Returns a share of it, served for one case.
fn served(fs: Fs) -> Fresh {
    let mut config = config();
    config.users = vec![User::with_password("tester", "pass", Cred::root())];
    let caps = shown(fs.caps());
    config.shares[0].volume = Volume::new(fs, VolumeOptions::new("share", now));
    let served = Served::new(config);
    let address = (Ipv4Addr::LOCALHOST, served.port).into();
    let client = Client::connect(address, "tester", "pass", "share", [7; 16]);
    let (client, _) = client.expect("a client");
    Fresh::new(Arc::new(Remote::new(client, caps))).keeping(served)
}

fn suite(name: &str, make: impl Fn() -> Fresh + Send + Sync + 'static) -> Suite {
    through(Suite::new(name, make))
}

#[test]
fn a_volume_in_memory_keeps_its_word() {
    suite("mem through smb", || {
        served(Mem::attach(MemOptions::default(), now()).expect("a volume"))
    })
    .run();
}

#[test]
fn a_fat_volume_keeps_its_word() {
    suite("fat through smb", || {
        let dev = Arc::new(MemDevice::new(64 << 20));
        let make = Make {
            now: now(),
            ..Make::default()
        };
        FAT.make(dev.clone(), "fat32", &make).expect("a volume");
        served(FAT.attach(dev, &Attach::default()).expect("a volume"))
    })
    .run();
}

#[test]
fn a_directory_of_the_host_keeps_its_word() {
    suite("host through smb", || {
        let dir = TempDir::new().expect("a directory");
        let fs = volary_host::attach(dir.path(), &HostOptions::default());
        served(fs.expect("a volume")).keeping(dir)
    })
    .leave_out("statfs_notices_what_is_written_and_removed", OTHERS)
    .leave_out("room_comes_back_with_the_last_open", OTHERS)
    .leave_out("room_comes_back_when_all_is_removed", OTHERS)
    .run();
}

const OTHERS: &str = "others write to the file system meanwhile";
