//! How often the kernel has to ask.

use crate::mount::{Mount, volume};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use volary_core::Caps;
use volary_fuse::{MountOptions, RequestKind};
use volary_mem::MemOptions;

/// Returns a volume like most disk formats: without extended attributes.
fn plain() -> MemOptions {
    let mut mem = MemOptions::sized(64 << 20);
    mem.caps = mem.caps.without(Caps::XATTRS);
    mem
}

#[test]
fn a_small_new_file_takes_four_requests_and_a_look_at_its_directory() {
    let Some(mount) = Mount::of(plain(), &MountOptions::default()) else {
        return;
    };
    let write = |n: u32| {
        let mut file = File::create_new(mount.at(&format!("file{n}"))).unwrap();
        file.write_all(&[1; 4096]).unwrap();
    };
    write(0);
    let counts = mount.mounted.counts();
    let before = counts.waited_for();
    for n in 1..=100 {
        write(n);
    }
    let files = mount.mounted.counts().of(RequestKind::Create);
    assert_eq!(files, 101);
    // The kernel closes a file a moment after its last user has: what is left
    // of the one before may come late.
    let asked = counts.waited_for() - before;
    assert!(
        asked <= 5 * 100 + 5,
        "{asked} requests: {:?}",
        counts.seen()
    );
    assert_eq!(counts.of(RequestKind::Flush), 0);
    assert_eq!(counts.of(RequestKind::GetXattr), 0);
}

#[test]
fn what_was_read_once_is_not_asked_for_again() {
    let Some(mount) = Mount::of(plain(), &MountOptions::default()) else {
        return;
    };
    fs::write(mount.at("file"), [7; 100_000]).unwrap();
    fs::read(mount.at("file")).unwrap();
    let reads = mount.mounted.counts().of(RequestKind::Read);
    for _ in 0..10 {
        assert_eq!(fs::read(mount.at("file")).unwrap().len(), 100_000);
    }
    assert_eq!(mount.mounted.counts().of(RequestKind::Read), reads);
}

#[test]
fn a_listing_brings_the_attributes_along() {
    // They are there before the mount is: no news of them is on its way to the
    // kernel while it lists.
    let volume = volume(plain());
    let other = volume.session(volary_core::Cred::root());
    for n in 0..500 {
        let set = volary_core::SetAttr::mode(0o644);
        let name = format!("file{n}");
        let kind = volary_core::FileKind::File;
        other
            .mknod(other.root(), name.as_bytes(), kind, 0, &set)
            .unwrap();
    }
    let Some(mount) = Mount::of_volume(volume, &MountOptions::default()) else {
        return;
    };
    let sizes = fs::read_dir(mount.mounted.path()).unwrap();
    let count = sizes
        .filter(|entry| entry.as_ref().unwrap().metadata().unwrap().size() == 0)
        .count();
    assert_eq!(count, 500);
    let looked_up = mount.mounted.counts().of(RequestKind::Lookup);
    assert!(looked_up < 50, "{looked_up} names were looked up");
}

#[test]
fn large_writes_and_reads_are_passed_on_in_large_pieces() {
    let Some(mount) = Mount::of(plain(), &MountOptions::default()) else {
        return;
    };
    let data = vec![3; 8 << 20];
    fs::write(mount.at("file"), &data).unwrap();
    let writes = mount.mounted.counts().of(RequestKind::Write);
    assert!(writes <= 16, "{writes} writes of 8 MiB");
    let file = File::open(mount.at("file")).unwrap();
    let mut back = vec![0; 8 << 20];
    file.read_exact_at(&mut back, 0).unwrap();
    assert!(back == data);
}
