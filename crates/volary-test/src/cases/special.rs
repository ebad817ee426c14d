//! Symlinks, hard links, fifos, sockets and devices.

use crate::suite::{Case, case_list};
use volary_core::{FileKind, Kind, Mode};

case_list! {
    about Symlink | ReadLink | MkNod | Link;
    a_symlink_holds_its_target with WRITE | SYMLINKS;
    a_symlink_need_not_lead_anywhere with WRITE | SYMLINKS;
    a_long_target_is_kept_or_refused_whole with WRITE | SYMLINKS;
    a_symlink_over_what_is_there_is_refused with WRITE | SYMLINKS;
    unlinking_a_symlink_leaves_its_target with WRITE | SYMLINKS;
    symlinks_are_there_after_reattaching with WRITE | SYMLINKS;
    readlink_of_anything_else_is_invalid with WRITE;
    symlinks_are_unsupported with WRITE without SYMLINKS;
    a_hard_link_is_the_same_node with WRITE | HARD_LINKS;
    a_file_lives_until_its_last_name_goes with WRITE | HARD_LINKS;
    linking_a_directory_is_refused with WRITE | HARD_LINKS;
    linking_over_what_is_there_is_refused with WRITE | HARD_LINKS;
    renaming_over_another_name_of_the_same_node_changes_nothing with WRITE | HARD_LINKS;
    hard_links_are_unsupported with WRITE without HARD_LINKS;
    fifos_sockets_and_devices_are_kept with WRITE | DEVICES;
    mknod_over_what_is_there_is_refused with WRITE | DEVICES;
    a_fifo_can_be_renamed_and_removed with WRITE | DEVICES;
    devices_are_unsupported with WRITE without DEVICES;
}

fn a_symlink_holds_its_target(c: &Case) {
    let entry = c.symlink(c.root(), "s", b"a/b/../c").expect("symlink");
    let a = entry.attr;
    assert_eq!((a.kind, a.size, a.nlink), (FileKind::Symlink, 8, 1));
    let got = c.fs().readlink(&c.cx(), entry.node).expect("readlink");
    assert_eq!(got, b"a/b/../c");
    let found = c.lookup(c.root(), "s").expect("lookup");
    assert_eq!(
        (found.node, found.attr.kind),
        (entry.node, FileKind::Symlink)
    );
}

fn a_symlink_need_not_lead_anywhere(c: &Case) {
    for (i, target) in [&b"."[..], b"/", b"no such thing", b"\xff\xfe", b"l0"]
        .iter()
        .enumerate()
    {
        let entry = c
            .symlink(c.root(), format!("l{i}"), target)
            .expect("symlink");
        let got = c.fs().readlink(&c.cx(), entry.node).expect("readlink");
        assert_eq!(got, *target);
    }
}

fn a_long_target_is_kept_or_refused_whole(c: &Case) {
    for len in [255, 1000, 1023, 4000, 4095, 70_000, 1 << 20] {
        let target = vec![b't'; len];
        let before = c.tree();
        match c.symlink(c.root(), format!("l{len}"), &target) {
            Ok(entry) => {
                let got = c.fs().readlink(&c.cx(), entry.node).expect("readlink");
                assert!(got == target, "a target of {len} bytes");
            }
            Err(e) => {
                assert_eq!(e, Kind::NameTooLong, "a target of {len} bytes");
                assert!(len > 1000, "1000 bytes are not too long for a target");
                before.assert_same(&c.tree());
            }
        }
    }
}

fn a_symlink_over_what_is_there_is_refused(c: &Case) {
    c.file(c.root(), "f", b"x");
    c.dir(c.root(), "d");
    c.symlink(c.root(), "s", b"x").expect("symlink");
    for name in ["f", "d", "s"] {
        c.refuses(Kind::Exists, || c.symlink(c.root(), name, b"y"));
    }
    // `Exists` comes before an error about the target.
    let huge = vec![b't'; 1 << 20];
    c.refuses_with(&[Kind::Exists, Kind::NameTooLong], || {
        c.symlink(c.root(), "f", &huge)
    });
}

fn unlinking_a_symlink_leaves_its_target(c: &Case) {
    let file = c.file(c.root(), "f", b"content");
    let link = c.symlink(c.root(), "s", b"f").expect("symlink").node;
    c.unlink(c.root(), "s").expect("unlink");
    assert_eq!(c.content(file), b"content");
    assert_eq!(c.getattr(link).unwrap_err(), Kind::Stale);
    assert_eq!(c.names(c.root()), ["f"]);
}

fn symlinks_are_there_after_reattaching(c: &Case) {
    c.symlink(c.root(), "s", b"some/target").expect("symlink");
    c.dir(c.root(), "d");
    c.rename(c.root(), "s", c.find(c.root(), "d"), "moved")
        .expect("rename");
    if c.reattach() {
        let node = c.find(c.find(c.root(), "d"), "moved");
        let got = c.fs().readlink(&c.cx(), node).expect("readlink");
        assert_eq!(got, b"some/target");
    }
}

fn readlink_of_anything_else_is_invalid(c: &Case) {
    for node in [
        c.root(),
        c.dir(c.root(), "d"),
        c.file(c.root(), "f", b"target"),
    ] {
        let got = c.fs().readlink(&c.cx(), node);
        assert_eq!(got.unwrap_err(), Kind::Invalid);
    }
}

/// `Unsupported` comes first by the contract, but a mount checks the name before it asks the
/// volume.
const EITHER: &[Kind] = &[Kind::Unsupported, Kind::Exists, Kind::IsDir];

fn symlinks_are_unsupported(c: &Case) {
    c.touch(c.root(), "f");
    c.refuses_with(EITHER, || c.symlink(c.root(), "f", b"x"));
    c.refuses(Kind::Unsupported, || c.symlink(c.root(), "s", b"x"));
}

fn a_hard_link_is_the_same_node(c: &Case) {
    let node = c.file(c.root(), "a", b"content");
    let dir = c.dir(c.root(), "d");
    let entry = c.link(node, dir, "b").expect("link");
    assert_eq!((entry.node, entry.attr.nlink), (node, 2));
    assert_eq!(c.find(dir, "b"), node);
    let open = c.open(node);
    c.write(open, 0, b"C").expect("write");
    c.close(open);
    assert_eq!(c.content(c.find(dir, "b")), b"Content");
}

fn a_file_lives_until_its_last_name_goes(c: &Case) {
    let node = c.file(c.root(), "a", b"content");
    c.link(node, c.root(), "b").expect("link");
    c.unlink(c.root(), "a").expect("unlink");
    assert_eq!(c.attr(node).nlink, 1);
    assert_eq!(c.content(c.find(c.root(), "b")), b"content");
    c.unlink(c.root(), "b").expect("unlink");
    assert_eq!(c.getattr(node).unwrap_err(), Kind::Stale);
}

fn linking_a_directory_is_refused(c: &Case) {
    let dir = c.dir(c.root(), "d");
    c.touch(c.root(), "taken");
    c.refuses(Kind::IsDir, || c.link(dir, c.root(), "e"));
    c.refuses(Kind::IsDir, || c.link(dir, c.root(), "taken"));
}

fn linking_over_what_is_there_is_refused(c: &Case) {
    let node = c.file(c.root(), "a", b"x");
    c.touch(c.root(), "b");
    c.dir(c.root(), "d");
    for name in ["a", "b", "d"] {
        c.refuses(Kind::Exists, || c.link(node, c.root(), name));
    }
}

fn renaming_over_another_name_of_the_same_node_changes_nothing(c: &Case) {
    let node = c.file(c.root(), "a", b"x");
    c.link(node, c.root(), "b").expect("link");
    c.rename(c.root(), "a", c.root(), "b").expect("rename");
    assert_eq!(c.names(c.root()), ["a", "b"]);
    assert_eq!(c.attr(node).nlink, 2);
}

fn hard_links_are_unsupported(c: &Case) {
    let node = c.file(c.root(), "f", b"x");
    let dir = c.dir(c.root(), "d");
    c.refuses_with(EITHER, || c.link(dir, c.root(), "e"));
    c.refuses_with(EITHER, || c.link(node, c.root(), "d"));
    c.refuses(Kind::Unsupported, || c.link(node, c.root(), "g"));
    assert_eq!(c.attr(node).nlink, 1);
}

const SPECIAL: &[(&str, FileKind, u64)] = &[
    ("fifo", FileKind::Fifo, 0),
    ("socket", FileKind::Socket, 0),
    ("char", FileKind::CharDevice, 1 << 32 | 3),
    ("block", FileKind::BlockDevice, 259 << 32 | 70_000),
];

fn fifos_sockets_and_devices_are_kept(c: &Case) {
    let mut made = Vec::new();
    for special @ (name, kind, rdev) in SPECIAL {
        let entry = match c.mknod(c.root(), name, *kind, *rdev) {
            // Some formats keep only 16 bits of a device number; a mount reports that as EPERM.
            Err(e)
                if [Kind::Unsupported, Kind::NotPermitted].contains(&e.kind())
                    && *rdev >> 32 > 0xff =>
            {
                continue;
            }
            entry => entry.expect("mknod"),
        };
        assert_eq!((entry.attr.kind, entry.attr.rdev), (*kind, *rdev), "{name}");
        made.push(special);
    }
    let look = || {
        for (name, kind, rdev) in &made {
            let a = c.lookup(c.root(), name).expect("lookup").attr;
            assert_eq!((a.kind, a.rdev), (*kind, *rdev), "{name}");
        }
    };
    look();
    if c.reattach() {
        look();
    }
}

fn mknod_over_what_is_there_is_refused(c: &Case) {
    c.touch(c.root(), "f");
    for (_, kind, rdev) in SPECIAL {
        c.refuses(Kind::Exists, || c.mknod(c.root(), "f", *kind, *rdev));
    }
}

fn a_fifo_can_be_renamed_and_removed(c: &Case) {
    let node = c
        .mknod(c.root(), "p", FileKind::Fifo, 0)
        .expect("mknod")
        .node;
    c.rename(c.root(), "p", c.root(), "q").expect("rename");
    assert_eq!(c.find(c.root(), "q"), node);
    c.unlink(c.root(), "q").expect("unlink");
    assert_eq!(c.try_open(node, Mode::Read).unwrap_err(), Kind::Stale);
}

fn devices_are_unsupported(c: &Case) {
    c.touch(c.root(), "f");
    for (name, kind, rdev) in SPECIAL {
        c.refuses_with(EITHER, || c.mknod(c.root(), "f", *kind, *rdev));
        c.refuses(Kind::Unsupported, || c.mknod(c.root(), name, *kind, *rdev));
    }
}
