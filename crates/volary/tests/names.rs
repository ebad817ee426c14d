//! Invalid names in a volume's structures: `.`, `..`, and names with `/` or NUL.
//! A listing leaves them out, and shows the other entries of the directory.

use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    BlockDevice, CheckMode, Cookie, Create, DirBuf, Fs, Mode, Name, NodeId, SetAttr,
};
use volary_testkit::volumes::{self, Shape, as_root};

/// What is made, and what the image then has in its place.
const PATCHES: [(&[u8], &[u8]); 4] = [
    (b"eViLx", b"eV/Lx"),
    (b"eViLx", b"eV\0Lx"),
    (b"qZ", b".."),
    (b"SHRTQ", b"SH/TQ"),
];

const KINDS: [(&str, u64, &str); 7] = [
    ("fat12", 2 << 20, ""),
    ("fat32", 40 << 20, ""),
    ("cedar", 4 << 20, "page=512"),
    ("ffs1", 4 << 20, ""),
    ("ffs2", 4 << 20, ""),
    ("v7", 1 << 20, ""),
    ("sysv", 1 << 20, ""),
];

/// Makes directories of one file each that is called so, and one beside it.
fn image(shape: Shape) -> Vec<u8> {
    let dev = shape.device();
    let fs = volumes::attach(shape.format(), dev.clone(), "").expect("attach");
    as_root(|cx| {
        let set = SetAttr::mode(0o755);
        for (number, (made, _)) in PATCHES.iter().enumerate() {
            let name = format!("dir{number}");
            let name = Name::new(name.as_bytes()).expect("a name");
            let dir = fs.mkdir(cx, fs.root(), name, &set).expect("mkdir").node;
            for name in [made, b"zz".as_slice()] {
                let name = Name::new(name).expect("a name");
                let made = fs.create(cx, dir, name, Create::New, &set);
                fs.close(cx, made.expect("create").1).expect("close");
            }
        }
        fs.detach(cx).expect("detach");
    });
    dev.to_vec()
}

fn replace(image: &mut [u8], from: &[u8], to: &[u8]) {
    let mut at = 0;
    while let Some(next) = image[at..].windows(from.len()).position(|w| w == from) {
        at += next;
        image[at..at + to.len()].copy_from_slice(to);
    }
}

fn wide(name: &[u8]) -> Vec<u8> {
    name.iter().flat_map(|&b| [b, 0]).collect()
}

/// Returns the image with another name. Cedar's pages get their checksums.
fn patched(image: &[u8], kind: &str, from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut new = image.to_vec();
    replace(&mut new, from, to);
    replace(&mut new, &wide(from), &wide(to));
    assert!(new != image, "{kind}: {}", from.escape_ascii());
    if kind == "cedar" {
        let pages = new.chunks_mut(512).zip(image.chunks(512));
        let changed = pages.filter(|(new, old)| new != old);
        changed.for_each(|(new, _)| volary_cedar::seal(new));
    }
    new
}

/// All names below a directory.
fn names(fs: &Fs, dir: NodeId, into: &mut Vec<Vec<u8>>) {
    let mut out = DirBuf::new(100, 1 << 16, true);
    as_root(|cx| {
        let open = fs.open(cx, dir, Mode::Read).expect("open");
        let done = fs.readdir(cx, open, Cookie::START, &mut out);
        assert!(done.expect("readdir"));
        fs.close(cx, open).expect("close");
    });
    for entry in out.iter() {
        into.push(entry.name.to_vec());
        if entry.kind == volary_core::FileKind::Dir {
            names(fs, entry.node, into);
        }
    }
}

#[test]
fn no_listing_has_a_name_that_is_none() {
    for (kind, len, options) in KINDS {
        let (format, kind) = volary::kind_of(kind, len).expect("a kind");
        let image = image(Shape::new(format, kind, len).made(options));
        for (from, to) in PATCHES {
            let bytes = patched(&image, kind, from, to);
            let of = format!("{kind}: {}", to.escape_ascii());
            let dev: Arc<dyn BlockDevice> = Arc::new(MemDevice::from_vec(bytes));
            let fs = volumes::attach_read_only(format, dev.clone(), "").expect("attach");
            let mut all = Vec::new();
            names(&fs, fs.root(), &mut all);
            for name in &all {
                assert!(Name::new(name).is_ok(), "{of}: {}", name.escape_ascii());
            }
            let beside = all.iter().filter(|name| name.eq_ignore_ascii_case(b"zz"));
            assert_eq!(beside.count(), PATCHES.len(), "{of}: {all:?}");
            drop(fs);
            let (_, found) = volumes::check(format, dev.clone(), CheckMode::Mend, "").expect(&of);
            // FAT shows the short name in the place of a long one that is none.
            assert!(kind.starts_with("fat") || !found.is_empty(), "{of}");
            let (again, found) = volumes::check(format, dev, CheckMode::Look, "").expect(&of);
            assert_eq!(again.found, 0, "{of}: {found:?}");
        }
    }
}
