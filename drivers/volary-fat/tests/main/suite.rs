//! The conformance suite on volumes of each kind.

use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{Attach, Format, Fs, Make, Options};
use volary_fat::FAT;
use volary_testkit::{Fresh, Suite};

fn attach(dev: &Arc<MemDevice>, read_only: bool, options: &str) -> Fs {
    let how = Attach {
        read_only,
        options: Options::parse(options),
        ..Attach::default()
    };
    FAT.attach(dev.clone(), &how).unwrap()
}

fn fresh(kind: &str, len: u64, options: &'static str) -> Fresh {
    let dev = Arc::new(MemDevice::new(len));
    let root_entries = if kind == "fat32" {
        ""
    } else {
        "root-entries=4096"
    };
    let make = Make {
        options: Options::parse(root_entries),
        ..Make::default()
    };
    FAT.make(dev.clone(), kind, &make).unwrap();
    let (again, read_only) = (dev.clone(), dev.clone());
    Fresh::new(attach(&dev, false, options))
        .reattach(move || attach(&again, false, options))
        .read_only(move || attach(&read_only, true, options))
}

fn suite(kind: &'static str, len: u64, options: &'static str) -> Suite {
    Suite::new(format!("{kind} {options}"), move || {
        fresh(kind, len, options)
    })
}

fn run(kind: &'static str, len: u64, options: &'static str) {
    suite(kind, len, options).run();
}

#[test]
fn fat12_holds_to_its_word() {
    run("fat12", 8 << 20, "");
}

#[test]
fn fat16_holds_to_its_word() {
    run("fat16", 32 << 20, "");
}

#[test]
fn fat32_holds_to_its_word() {
    run("fat32", 64 << 20, "");
}

#[test]
fn fat32_with_the_unix_extension_holds_to_its_word() {
    run("fat32", 64 << 20, "unix=on");
}

#[test]
fn fat16_with_the_unix_extension_holds_to_its_word() {
    run("fat16", 32 << 20, "unix=on");
}

#[test]
fn fat16_in_the_papers_layout_holds_to_its_word() {
    let small = "its device numbers have 16 bits";
    suite("fat16", 32 << 20, "unix=dosfs")
        .leave_out("fifos_sockets_and_devices_are_kept", small)
        .leave_out("mknod_over_what_is_there_is_refused", small)
        .leave_out(
            "renaming_to_a_longer_and_a_shorter_name",
            "its names have 42 bytes",
        )
        .run();
}
