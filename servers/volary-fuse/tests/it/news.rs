//! What another client of the volume changes is seen through the mount.

use crate::mount::{Mount, until};
use std::fs;
use volary_core::{Create, Mode, RenameFlags, SetAttr};
use volary_fuse::MountOptions;

fn write_by_other(mount: &Mount, name: &str, content: &str) {
    let other = mount.other();
    let set = SetAttr::mode(0o644);
    let (_, open) = other
        .create(
            other.root(),
            name.as_bytes(),
            Create::Truncate,
            Mode::Write,
            &set,
        )
        .unwrap();
    other.write(open, Some(0), content.as_bytes()).unwrap();
    other.close(open).unwrap();
}

#[test]
fn content_that_another_client_writes_replaces_what_the_kernel_holds() {
    let Some(mount) = Mount::new(&MountOptions::default()) else {
        return;
    };
    fs::write(mount.at("file"), "old content").unwrap();
    assert_eq!(fs::read_to_string(mount.at("file")).unwrap(), "old content");
    write_by_other(&mount, "file", "new");
    let is_new = || fs::read_to_string(mount.at("file")).unwrap() == "new";
    until("the new content is seen", is_new);
}

#[test]
fn names_that_another_client_makes_moves_and_removes_are_seen() {
    let Some(mount) = Mount::new(&MountOptions::default()) else {
        return;
    };
    let other = mount.other();
    assert!(!mount.at("made").exists());
    write_by_other(&mount, "made", "x");
    until("the new name is seen", || mount.at("made").exists());
    let listed = || fs::read_dir(mount.mounted.path()).unwrap().count();
    assert_eq!(listed(), 1);
    let root = other.root();
    other
        .rename(root, b"made", root, b"moved", RenameFlags::REPLACE)
        .unwrap();
    until("the name is moved", || {
        !mount.at("made").exists() && mount.at("moved").exists()
    });
    other.unlink(root, b"moved").unwrap();
    until("the name is gone", || !mount.at("moved").exists());
    assert_eq!(listed(), 0);
}

#[test]
fn attributes_that_another_client_sets_are_seen() {
    let Some(mount) = Mount::new(&MountOptions::default()) else {
        return;
    };
    fs::write(mount.at("file"), "x").unwrap();
    let readonly = || {
        fs::metadata(mount.at("file"))
            .unwrap()
            .permissions()
            .readonly()
    };
    assert!(!readonly());
    let other = mount.other();
    let node = other.lookup(other.root(), b"file").unwrap().node;
    other.setattr(node, &SetAttr::mode(0o444)).unwrap();
    until("the mode is seen", readonly);
}
