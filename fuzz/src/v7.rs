//! The targets for the file system of the Seventh Edition and of System V.

use crate::heap;
use crate::input::Input;
use crate::overlay::Overlay;
use crate::volume::{
    Base, bound, bytes_of, check_damaged, file, first_place, live, make, name, operate, strangers,
    tell, with_ctx,
};
use std::sync::{Arc, OnceLock};
use volary_core::{Attach, Ctx, FileKind, Format, Fs, SetAttr};
use volary_v7::V7;

/// Requests to the device, and KiB, that a run may make.
const FUEL: u64 = 4_000_000;
/// Bytes of the volume.
const SIZE: usize = 256 << 10;
/// Bytes from the start of a structure that damage may hit.
const STRUCTURE: u64 = 520;

/// Attach, walk, read, write, detach, attach again; info, map, dump.
pub fn driver(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    bound(&dev);
    live(&V7, &dev, "", |fs, cx, nodes| {
        strangers(fs, cx, (0..16).map(|_| input.short().into()));
        operate(fs, cx, nodes, &mut input);
    });
    let dumps = [
        "superblock",
        "free",
        "free 40",
        "inode 3",
        "inode 1",
        "directory 2",
    ];
    tell(&V7, &dev, &dumps);
    heap::limit(usize::MAX);
}

/// fsck: what it says is mended is clean for a second run, and can be walked.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    check_damaged(&V7, dev, &mut input);
}

/// Returns a good volume with the changes that the input asks for.
fn damaged(input: &mut Input<'_>) -> Arc<Overlay> {
    static BASES: OnceLock<Vec<Base>> = OnceLock::new();
    let bases = BASES.get_or_init(|| WAYS.map(make_base).into());
    let base = &bases[usize::from(input.byte()) % bases.len()];
    base.damaged(FUEL, STRUCTURE, input)
}

/// Kind, options, bytes of a block.
const WAYS: [(&str, &str, u64); 4] = [
    ("v7", "order=pdp", 512),
    ("v7", "order=little", 512),
    ("sysv", "order=little", 1024),
    ("sysv", "order=big,block=2048", 2048),
];

fn make_base((kind, options, block): (&str, &str, u64)) -> Base {
    heap::limit(usize::MAX);
    let dev = Arc::new(Overlay::new(vec![0; SIZE].into(), u64::MAX));
    make(&V7, &dev, kind, &format!("{options},inodes=64"));
    let fs = V7.attach(dev.clone(), &Attach::default()).expect("attach");
    let [root, dir, data] = with_ctx(|cx| {
        let places = fill(&fs, cx, block);
        fs.detach(cx).expect("detach");
        places
    });
    let inodes = 2 * block;
    // The indirect block of the sparse file follows its data.
    let places = vec![512, 512, inodes, inodes + 400, root, dir, data];
    Base {
        bytes: bytes_of(&dev).into(),
        places,
    }
}

/// Returns a node of each kind, links, holes, blocks by way of indirect ones; where the content of
/// the root, of a directory and of a file lies.
fn fill(fs: &Fs, cx: &Ctx<'_>, block: u64) -> [u64; 3] {
    let (root, set) = (fs.root(), SetAttr::default());
    let dir = fs.mkdir(cx, root, name(b"d1"), &set).expect("mkdir").node;
    let far = (10 + block / 4 + 3) * block;
    let sparse = file(fs, cx, root, b"file 0", &[block, 13 * block, far]);
    file(fs, cx, dir, b"file 1", &[0, 700]);
    fs.link(cx, sparse, dir, name(b"link")).expect("link");
    // The Seventh Edition has none.
    let _ = fs.symlink(cx, root, name(b"s"), b"d1/file 1", &set);
    for (name_of, kind) in [("c", FileKind::CharDevice), ("p", FileKind::Fifo)] {
        fs.mknod(cx, root, name(name_of.as_bytes()), kind, 0x08, &set)
            .expect("mknod");
    }
    fs.sync(cx).expect("sync");
    [root, dir, sparse].map(|node| first_place(fs, cx, node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{self, walk};
    use volary_core::CheckMode;

    #[test]
    fn the_volumes_are_good_before_they_are_damaged() {
        for way in WAYS {
            let dev = Arc::new(Overlay::new(make_base(way).bytes, FUEL));
            let found = volume::check(&V7, &dev, CheckMode::Look, "");
            assert_eq!(found, Some((Vec::new(), 0)), "{way:?}");
            let fs = V7.attach(dev, &Attach::default()).expect("attach");
            let count = if way.0 == "v7" { 7 } else { 8 };
            with_ctx(|cx| assert_eq!(walk(&fs, cx).len(), count));
        }
    }
}
