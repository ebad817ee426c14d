//! A full volume. Only volumes that can be filled quickly are tested.

use crate::suite::{Case, case_list};
use volary_core::{Create, Kind};

case_list! {
    about Write | MkDir | Unlink | StatFs;
    a_full_volume_says_so_and_keeps_what_it_has with WRITE;
    a_write_that_does_not_fit_changes_nothing with WRITE;
    mkdir_on_a_full_volume_changes_nothing with WRITE;
    room_on_a_full_volume_can_be_used_again with WRITE;
    a_file_on_a_full_volume_can_be_overwritten with WRITE;
}

/// The largest volume that is filled, in bytes.
const SMALL: u64 = 64 << 20;

/// Fills the volume with the file `fill`. Returns `false` if it is too large for that, or already
/// full.
fn fill(c: &Case) -> bool {
    let stat = c.fs().statfs(&c.cx()).expect("statfs");
    if stat.free > SMALL || stat.free == 0 {
        return false;
    }
    let (_, open) = c.create(c.root(), "fill", Create::New).expect("create");
    let mut len = 1 << 20;
    loop {
        match c.append(open, &vec![0xaa; len]) {
            Ok(_) => {}
            Err(e) if e == Kind::NoSpace && len > 1 => len /= 2,
            Err(e) => {
                assert_eq!(e, Kind::NoSpace);
                break;
            }
        }
    }
    c.close(open);
    true
}

fn a_full_volume_says_so_and_keeps_what_it_has(c: &Case) {
    let kept = c.file(c.root(), "kept", b"content");
    if !fill(c) {
        return c.skip("the volume is too large to be filled");
    }
    let stat = c.fs().statfs(&c.cx()).expect("statfs");
    assert!(stat.free < u64::from(stat.block_size), "{} free", stat.free);
    assert_eq!(c.content(kept), b"content");
    let fill = c.find(c.root(), "fill");
    assert!(c.content(fill).iter().all(|&b| b == 0xaa));
    c.fs().sync(&c.cx()).expect("sync");
    let before = c.tree();
    if c.reattach() {
        before.assert_same(&c.tree());
    }
}

fn a_write_that_does_not_fit_changes_nothing(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    if !fill(c) {
        return c.skip("the volume is too large to be filled");
    }
    let open = c.open(node);
    // Compares only the file: reading the whole tree takes long on a full volume.
    let before = c.attr(node);
    let large = vec![1; 1 << 20];
    for got in [
        c.write(open, 0, &large),
        c.append(open, &large),
        c.write(open, 1 << 20, b"x"),
    ] {
        assert_eq!(got.unwrap_err(), Kind::NoSpace);
        let after = c.attr(node);
        assert_eq!((after.size, after.mtime), (before.size, before.mtime));
        assert_eq!(c.content(node), b"content");
    }
    c.close(open);
}

fn mkdir_on_a_full_volume_changes_nothing(c: &Case) {
    if !fill(c) {
        return c.skip("the volume is too large to be filled");
    }
    // A directory may take a cluster, or no space that `statfs` counts.
    for i in 0..100 {
        let before = c.names(c.root());
        if let Err(e) = c.mkdir(c.root(), format!("dir no {i}")) {
            assert_eq!(e, Kind::NoSpace);
            assert_eq!(c.names(c.root()), before);
            return;
        }
    }
}

fn room_on_a_full_volume_can_be_used_again(c: &Case) {
    if !fill(c) {
        return c.skip("the volume is too large to be filled");
    }
    for round in 0..3_u8 {
        c.unlink(c.root(), "fill").expect("unlink");
        let node = c.file(c.root(), "f", &vec![round; 100_000]);
        assert!(c.content(node) == vec![round; 100_000]);
        c.unlink(c.root(), "f").expect("unlink");
        assert!(fill(c));
    }
    // Truncation frees space at once as well.
    let node = c.find(c.root(), "fill");
    c.resize(node, 1000);
    c.file(c.root(), "f", &vec![1; 100_000]);
    assert_eq!(c.content(node), [0xaa; 1000]);
}

fn a_file_on_a_full_volume_can_be_overwritten(c: &Case) {
    let node = c.file(c.root(), "f", &vec![1; 50_000]);
    if !fill(c) {
        return c.skip("the volume is too large to be filled");
    }
    let open = c.open(node);
    c.write(open, 0, &vec![2; 50_000]).expect("write");
    c.close(open);
    assert!(c.content(node) == vec![2; 50_000]);
}
