//! The targets for Cedar volumes.

use crate::heap;
use crate::input::Input;
use crate::overlay::Overlay;
use crate::volume::{bound, bytes_of, check_damaged, live, make, name, operate, tell, with_ctx};
use std::sync::{Arc, OnceLock};
use volary_cedar::CEDAR;
use volary_cedar::Layout;
use volary_cedar::seal;
use volary_core::{Attach, BlockDevice, Create, Ctx, FileKind, Format, Fs, NodeId, SetAttr};

/// Requests to the device, and KiB, that a run may make.
const FUEL: u64 = 4_000_000;
/// Bytes of the volume.
const SIZE: usize = 320 << 10;
/// Pages of a sector, the shortest log.
const MAKE: &str = "page=512,name-table=16k,log=186k";
/// The same with checksums of data.
const MAKE_SUMS: &str = "page=512,name-table=16k,log=186k,checksums";
const PAGE: u64 = 512;

/// Attach, walk, read, write, detach, attach again; info, map, dump.
pub fn driver(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    bound(&dev);
    let options = if input.byte() & 1 == 0 {
        ""
    } else {
        "commit=0"
    };
    live(&CEDAR, &dev, options, |fs, cx, nodes| {
        versions(fs, cx, nodes, &mut input);
        operate(fs, cx, nodes, &mut input);
    });
    tell(&CEDAR, &dev, &["root", "anchors", "log", "table", "page 4"]);
    heap::limit(usize::MAX);
}

/// fsck: what it says is mended is clean for a second run, and can be walked.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    check_damaged(&CEDAR, dev, &mut input);
}

/// What is special about the nodes of these volumes.
fn versions(fs: &Fs, cx: &Ctx<'_>, nodes: &[(NodeId, FileKind)], input: &mut Input<'_>) {
    for _ in 0..input.byte() % 8 {
        let (node, _) = nodes[usize::from(input.byte()) % nodes.len()];
        let keep = (input.byte() % 5).to_string();
        let _ = fs.setxattr(cx, node, b"user.cedar.keep", keep.as_bytes());
        let _ = fs.setattr(cx, node, &SetAttr::size(0));
        let _ = fs.getxattr(cx, node, b"user.cedar.versions");
        let _ = fs.lookup(cx, fs.root(), name(b"file 0!2"));
        for attribute in fs.listxattr(cx, node).unwrap_or_default() {
            let _ = fs.getxattr(cx, node, &attribute);
        }
        let _ = fs.readlink(cx, node);
    }
}

/// Returns a good volume with the changes that the input asks for. Most keep the
/// checksum right, and both copies of a page of the name table alike.
fn damaged(input: &mut Input<'_>) -> Arc<Overlay> {
    static BASES: OnceLock<[Base; 2]> = OnceLock::new();
    let bases = BASES.get_or_init(|| [true, false].map(make_base));
    let base = &bases[usize::from(input.byte()) % 2];
    let dev = Overlay::new(base.bytes.clone(), FUEL);
    for _ in 0..input.byte() % 16 {
        let page = base.pages[usize::from(input.byte()) % base.pages.len()];
        let how = input.byte();
        let at = usize::from(input.short()) % PAGE as usize;
        let count = usize::from(input.byte() % 12);
        let bytes = input.bytes(count);
        let mut whole = [0; PAGE as usize];
        if dev.read_at(u64::from(page) * PAGE, &mut whole).is_err() {
            break;
        }
        for (to, byte) in whole.iter_mut().skip(at).zip(bytes) {
            *to = *byte;
        }
        if !how.is_multiple_of(8) {
            seal(&mut whole);
        }
        dev.poke(u64::from(page) * PAGE, &whole);
        let layout = &base.layout;
        let index = page.checked_sub(layout.table_a);
        if let Some(index) = index.filter(|i| *i < layout.table_len && how % 16 != 1) {
            dev.poke(u64::from(layout.table_b + index) * PAGE, &whole);
        }
    }
    Arc::new(dev)
}

struct Base {
    bytes: Arc<[u8]>,
    layout: Layout,
    /// Pages with metadata, those of the name table more than once.
    pages: Vec<u32>,
}

/// Returns a volume with checksums that was left, or one without whose log is to be replayed.
fn make_base(left: bool) -> Base {
    heap::limit(usize::MAX);
    let dev = Arc::new(Overlay::new(Arc::from(vec![0; SIZE]), u64::MAX));
    make(&CEDAR, &dev, "cedar", if left { MAKE_SUMS } else { MAKE });
    let fs = CEDAR.attach(dev.clone(), &Attach::default());
    let fs = fs.expect("attach");
    with_ctx(|cx| {
        fill(&fs, cx);
        if left {
            fs.detach(cx).expect("detach");
        }
    });
    let bytes = bytes_of(&dev);
    let layout = Layout::read(&*dev).expect("layout");
    let is_own = |page: &u32| {
        let at = *page as usize * PAGE as usize;
        bytes[at..].starts_with(b"CdFs")
    };
    let mut pages: Vec<u32> = (0..layout.pages).filter(is_own).collect();
    let table = layout.table_a..layout.table_a + layout.table_len;
    let in_table: Vec<u32> = pages
        .iter()
        .copied()
        .filter(|p| table.contains(p))
        .collect();
    for _ in 0..4 {
        pages.extend(&in_table);
    }
    Base {
        bytes: bytes.into(),
        layout,
        pages,
    }
}

/// A node of each kind, versions, links, a file in pieces.
fn fill(fs: &Fs, cx: &Ctx<'_>) {
    let (root, set) = (fs.root(), SetAttr::default());
    let dir = fs.mkdir(cx, root, name(b"d1"), &set).expect("mkdir").node;
    for i in 0..6_u8 {
        let text = format!("file {i}");
        let into = if i % 2 == 0 { root } else { dir };
        let made = fs.create(cx, into, name(text.as_bytes()), Create::New, &set);
        let (entry, open) = made.expect("create");
        for piece in 0..u64::from(i) {
            let at = piece * 600;
            fs.write(cx, open, Some(at), &[i; 600]).expect("write");
        }
        fs.close(cx, open).expect("close");
        if i == 0 {
            fs.setxattr(cx, entry.node, b"user.cedar.keep", b"3")
                .expect("keep");
            for _ in 0..3 {
                fs.setattr(cx, entry.node, &SetAttr::size(700))
                    .expect("grow");
                fs.setattr(cx, entry.node, &SetAttr::size(0))
                    .expect("empty");
            }
            fs.link(cx, entry.node, dir, name(b"link")).expect("link");
        }
        fs.sync(cx).expect("sync");
    }
    fs.symlink(cx, root, name(b"s"), b"d1/file 1", &set)
        .expect("symlink");
    fs.setxattr(cx, dir, b"user.x", &[7; 300]).expect("xattr");
    fs.mknod(cx, root, name(b"p"), FileKind::Fifo, 0, &set)
        .expect("mknod");
    fs.sync(cx).expect("sync");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{self, walk};
    use volary_core::CheckMode;

    #[test]
    fn the_volumes_are_good_before_they_are_damaged() {
        for left in [true, false] {
            let base = make_base(left);
            let dev = Arc::new(Overlay::new(base.bytes, FUEL));
            let found = volume::check(&CEDAR, &dev, CheckMode::Preen, "");
            assert_eq!(found.map(|f| f.1), Some(0));
            let fs = CEDAR.attach(dev, &Attach::default()).expect("attach");
            with_ctx(|cx| {
                assert_eq!(walk(&fs, cx).len(), 11);
                let old = fs.lookup(cx, fs.root(), name(b"file 0!2")).expect("lookup");
                assert_eq!(old.attr.size, 700);
            });
        }
    }
}
