//! The targets for the Fast File System.

use crate::heap;
use crate::input::Input;
use crate::overlay::Overlay;
use crate::volume::{
    Base, bound, bytes_of, check_damaged, file, first_place, live, make, name, operate, strangers,
    tell, with_ctx,
};
use std::sync::{Arc, OnceLock};
use volary_core::{Attach, Ctx, FileKind, Format, Fs, SetAttr};
use volary_ffs::FFS;

/// Requests to the device, and KiB, that a run may make.
const FUEL: u64 = 4_000_000;
/// Bytes of the volume, of a block, of a fragment.
const SIZE: usize = 512 << 10;
const BLOCK: u64 = 4096;
const FRAGMENT: u64 = 512;
/// Bytes from the start of a structure that damage may hit.
const STRUCTURE: u64 = 520;

/// Attach, walk, read, write, detach, attach again; info, map, dump.
pub fn driver(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    bound(&dev);
    live(&FFS, &dev, "", |fs, cx, nodes| {
        strangers(fs, cx, (0..16).map(|_| input.short().into()));
        operate(fs, cx, nodes, &mut input);
    });
    let dumps = [
        "superblock",
        "superblocks",
        "group 0",
        "bitmap 1",
        "inode 3",
        "inode 7",
        "directory 2",
        "directory 4",
    ];
    tell(&FFS, &dev, &dumps);
    heap::limit(usize::MAX);
}

/// fsck: what it says is mended is clean for a second run, and can be walked.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    check_damaged(&FFS, dev, &mut input);
}

/// Returns a good volume with the changes that the input asks for.
fn damaged(input: &mut Input<'_>) -> Arc<Overlay> {
    static BASES: OnceLock<Vec<Base>> = OnceLock::new();
    let bases = BASES.get_or_init(|| WAYS.map(make_base).into());
    let base = &bases[usize::from(input.byte()) % bases.len()];
    base.damaged(FUEL, STRUCTURE, input)
}

/// Kind, options.
const WAYS: [(&str, &str); 5] = [
    ("ffs1", "order=little"),
    ("ffs1", "order=big"),
    ("ffs1", "order=little,old"),
    ("ffs2", "order=little"),
    ("ffs2", "order=big"),
];

fn make_base((kind, options): (&str, &str)) -> Base {
    heap::limit(usize::MAX);
    let dev = Arc::new(Overlay::new(vec![0; SIZE].into(), u64::MAX));
    let options = format!("{options},block={BLOCK},fragment={FRAGMENT}");
    make(&FFS, &dev, kind, &options);
    let fs = FFS.attach(dev.clone(), &Attach::default()).expect("attach");
    let content = with_ctx(|cx| {
        let places = fill(&fs, cx);
        fs.detach(cx).expect("detach");
        places
    });
    let bytes = bytes_of(&dev);
    let number = |at: u64| -> u64 {
        let bytes = bytes[at as usize..].first_chunk().expect("a number");
        match options.contains("big") {
            true => u32::from_be_bytes(*bytes).into(),
            false => u32::from_le_bytes(*bytes).into(),
        }
    };
    let (superblock, inode) = match kind {
        "ffs2" => (65_536, 256),
        _ => (8192, 128),
    };
    // fs_cblkno and fs_iblkno.
    let [head, inodes] = [12, 16].map(|field| number(superblock + field) * FRAGMENT);
    let [root, dir, data] = content;
    let places = vec![
        superblock,
        superblock + 856,
        head,
        head + 160,
        inodes,
        inodes + 4 * inode,
        inodes + 8 * inode,
        root,
        dir,
        data,
    ];
    Base {
        bytes: bytes.into(),
        places,
    }
}

/// Returns a node of each kind, links, holes, two blocks by way of an indirect one; where the content of
/// the root, of a directory and of a file lies.
fn fill(fs: &Fs, cx: &Ctx<'_>) -> [u64; 3] {
    let (root, set) = (fs.root(), SetAttr::default());
    let dir = fs.mkdir(cx, root, name(b"d1"), &set).expect("mkdir").node;
    let sparse = file(fs, cx, root, b"file 0", &[BLOCK, 13 * BLOCK]);
    file(fs, cx, dir, b"file 1", &[0, 700]);
    fs.link(cx, sparse, dir, name(b"link")).expect("link");
    fs.symlink(cx, root, name(b"s"), b"d1/file 1", &set)
        .expect("symlink");
    fs.symlink(cx, root, name(b"long"), &[b'x'; 200], &set)
        .expect("symlink");
    for (name_of, kind) in [("c", FileKind::CharDevice), ("p", FileKind::Fifo)] {
        fs.mknod(cx, root, name(name_of.as_bytes()), kind, 0x0801, &set)
            .expect("mknod");
    }
    // Only UFS2 has them.
    let _ = fs.setxattr(cx, dir, b"user.name", b"ok");
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
            let found = volume::check(&FFS, &dev, CheckMode::Look, "");
            assert_eq!(found, Some((Vec::new(), 0)), "{way:?}");
            let fs = FFS.attach(dev, &Attach::default()).expect("attach");
            with_ctx(|cx| {
                assert_eq!(walk(&fs, cx).len(), 9);
                let dir = fs.lookup(cx, fs.root(), name(b"d1")).expect("lookup");
                let kept = fs.getxattr(cx, dir.node, b"user.name");
                assert_eq!(kept.is_ok(), way.0 == "ffs2");
            });
        }
    }
}
