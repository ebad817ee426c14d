//! What crypt keeps, and what it finds out.

use crate::transparent::{crypt, try_crypt};
use crate::{Rig, memory, n};
use volary_core::{Caps, Create, Fs, Kind, Mode, NodeId, RenameFlags, SetAttr};

/// An encrypted volume and what it lies on.
struct Both {
    above: Rig,
    below: Rig,
}

fn both() -> Both {
    let below = memory();
    Both {
        above: Rig::over(crypt(below.clone())),
        below: Rig::over(below),
    }
}

const BLOCK: usize = 4096;
const STORED: usize = 4136;
const HEAD: usize = 32;

fn bytes(rig: &Rig, node: NodeId) -> volary_core::Result<Vec<u8>> {
    let size = rig.fs.getattr(&rig.cx(), node)?.size as usize;
    let open = rig.fs.open(&rig.cx(), node, Mode::Read)?;
    let mut all = vec![0; size];
    let got = rig.fs.read(&rig.cx(), open, 0, &mut all);
    rig.fs.close(&rig.cx(), open)?;
    all.truncate(got?);
    Ok(all)
}

fn put(rig: &Rig, node: NodeId, at: usize, data: &[u8]) {
    let open = rig.fs.open(&rig.cx(), node, Mode::ReadWrite).unwrap();
    rig.fs
        .write(&rig.cx(), open, Some(at as u64), data)
        .unwrap();
    rig.fs.close(&rig.cx(), open).unwrap();
}

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 7) as u8).collect()
}

impl Both {
    fn file(&self, name: &str, content: &[u8]) -> NodeId {
        self.above.file(self.above.fs.root(), name, content)
    }

    fn is_damaged(&self, node: NodeId) -> bool {
        // As another who attaches it sees it.
        let again = Rig::over(crypt(self.below.fs.clone()));
        matches!(bytes(&again, node), Err(e) if e == Kind::Corrupt)
    }
}

#[test]
fn nothing_that_was_written_is_seen_below() {
    let b = both();
    let root = b.above.fs.root();
    let secret = b"a secret sentence that is long enough to be found";
    let dir = b.above.dir(root, "secret directory");
    b.above.file(dir, "secret file", secret);
    let set = SetAttr::default();
    let (fs, cx) = (&b.above.fs, b.above.cx());
    fs.symlink(&cx, dir, n("secret link"), secret, &set)
        .unwrap();
    let mut todo = vec![root];
    let mut seen = 0;
    while let Some(dir) = todo.pop() {
        for entry in b.below.list(dir).iter() {
            let mut all = entry.name.to_vec();
            match entry.kind {
                volary_core::FileKind::Dir => todo.push(entry.node),
                volary_core::FileKind::Symlink => {
                    let cx = b.below.cx();
                    all.extend(b.below.fs.readlink(&cx, entry.node).unwrap());
                }
                _ => all.extend(bytes(&b.below, entry.node).unwrap()),
            }
            seen += 1;
            let has = |words: &[u8]| all.windows(words.len()).any(|part| part == words);
            assert!(!has(b"secret") && !has(b"sentence"), "{:?}", entry.name);
        }
    }
    assert_eq!(seen, 6, "header, two ids, directory, file, symlink");
    assert_eq!(b.above.list(root).len(), 1);
}

#[test]
fn every_bit_of_a_file_counts() {
    let b = both();
    let node = b.file("f", &text(2 * BLOCK + 100));
    let good = bytes(&b.below, node).unwrap();
    assert_eq!(good.len(), HEAD + 2 * STORED + 140);
    // Every bit of the header and of the short block, and one of each byte else.
    let ends = (0..HEAD).chain(HEAD + 2 * STORED..good.len());
    let bits = ends.flat_map(|at| (0..8).map(move |bit| (at, bit)));
    let middle = (HEAD..HEAD + 2 * STORED).step_by(5).map(|at| (at, at % 8));
    for (at, bit) in bits.chain(middle) {
        put(&b.below, node, at, &[good[at] ^ 1 << bit]);
        assert!(b.is_damaged(node), "bit {bit} of byte {at}");
        put(&b.below, node, at, &[good[at]]);
    }
    assert!(!b.is_damaged(node));
}

#[test]
fn blocks_that_are_moved_are_found_out() {
    let b = both();
    let one = b.file("one", &text(3 * BLOCK));
    let two = b.file("two", &text(3 * BLOCK));
    let (first, second) = (bytes(&b.below, one).unwrap(), bytes(&b.below, two).unwrap());
    let block = |of: &[u8], n: usize| of[HEAD + n * STORED..HEAD + (n + 1) * STORED].to_vec();
    // Within a file.
    put(&b.below, one, HEAD, &block(&first, 1));
    put(&b.below, one, HEAD + STORED, &block(&first, 0));
    assert!(b.is_damaged(one));
    put(&b.below, one, 0, &first);
    assert!(!b.is_damaged(one));
    // From another, at the same place.
    put(&b.below, one, HEAD + STORED, &block(&second, 1));
    assert!(b.is_damaged(one));
    put(&b.below, one, 0, &first);
    // With that one's header, the rest does not fit.
    put(&b.below, one, 0, &second[..HEAD]);
    assert!(b.is_damaged(one));
}

#[test]
fn a_file_that_is_cut_is_found_out() {
    let b = both();
    let whole = text(3 * BLOCK + 10);
    let node = b.file("f", &whole);
    let stored = bytes(&b.below, node).unwrap();
    for len in [
        HEAD + 3 * STORED,
        HEAD + 2 * STORED,
        HEAD + STORED,
        HEAD + STORED + 1000,
        stored.len() - 1,
    ] {
        let cx = b.below.cx();
        let set = SetAttr::size(len as u64);
        b.below.fs.setattr(&cx, node, &set).unwrap();
        assert!(b.is_damaged(node), "{len} bytes");
        put(&b.below, node, 0, &stored);
        assert!(!b.is_damaged(node));
    }
    // Cut by us, it is the file that it was meant to be.
    for len in [3 * BLOCK + 5, 3 * BLOCK, 2 * BLOCK + 1, BLOCK, 1, 0] {
        let set = SetAttr::size(len as u64);
        b.above.fs.setattr(&b.above.cx(), node, &set).unwrap();
        assert_eq!(bytes(&b.above, node).unwrap(), whole[..len]);
        assert!(!b.is_damaged(node));
    }
}

#[test]
fn names_are_bound_to_their_directory() {
    let b = both();
    let root = b.above.fs.root();
    let (one, two) = (b.above.dir(root, "one"), b.above.dir(root, "two"));
    b.above.file(one, "same name", b"x");
    b.above.file(two, "same name", b"x");
    let name_in = |dir| {
        let out = b.below.list(dir);
        let found = out.iter().find(|e| !e.name.starts_with(b".")).unwrap();
        found.name.to_vec()
    };
    let (a, z) = (name_in(one), name_in(two));
    assert_ne!(a, z);
    // Moved below, it has no name.
    let (old, new) = (volary_core::Name::new(&a).unwrap(), n("elsewhere"));
    let flags = RenameFlags::KEEP;
    b.below
        .fs
        .rename(&b.below.cx(), one, old, two, old, flags)
        .unwrap();
    assert_eq!(b.above.list(two).len(), 1);
    assert_eq!(b.above.find(one, "same name").unwrap_err(), Kind::NotFound);
    b.below
        .fs
        .rename(&b.below.cx(), two, old, two, new, flags)
        .unwrap();
    assert_eq!(b.above.list(two).len(), 1);
}

#[test]
fn a_wrong_passphrase_a_changed_header_and_a_volume_in_use_are_refused() {
    let b = both();
    b.file("f", b"x");
    let open = |words: &[u8], fs: &Fs| try_crypt(fs.clone(), words).err().map(|e| e.kind());
    assert_eq!(open(b"words", &b.below.fs), None);
    assert_eq!(open(b"Words", &b.below.fs), Some(Kind::NotPermitted));
    let header = b.below.find(b.below.fs.root(), ".volary-crypt").unwrap();
    let good = bytes(&b.below, header).unwrap();
    for (at, kind) in [
        (0, Kind::Corrupt),
        (8, Kind::Unsupported),
        (12, Kind::NotPermitted),
        (15, Kind::Unsupported),
        (19, Kind::Unsupported),
        (30, Kind::NotPermitted),
        (50, Kind::NotPermitted),
        (100, Kind::NotPermitted),
    ] {
        put(&b.below, header, at, &[good[at] ^ 0x40]);
        assert_eq!(open(b"words", &b.below.fs), Some(kind), "byte {at}");
        put(&b.below, header, at, &[good[at]]);
    }
    let used = Rig::over(memory());
    used.file(used.fs.root(), "f", b"x");
    assert_eq!(open(b"words", &used.fs), Some(Kind::Invalid));
}

#[test]
fn names_may_be_as_long_as_it_says_and_cases_are_told_apart() {
    let b = both();
    let caps = b.above.fs.caps();
    assert_eq!(caps.name_max, 143);
    assert!(caps.has(Caps::CASE_SENSITIVE | Caps::ANY_NAME));
    let root = b.above.fs.root();
    let longest = "n".repeat(143);
    let node = b.above.file(root, &longest, b"x");
    assert_eq!(b.above.find(root, &longest).unwrap(), node);
    let more = "n".repeat(144);
    let (set, cx) = (SetAttr::default(), b.above.cx());
    let refused = b.above.fs.create(&cx, root, n(&more), Create::New, &set);
    assert_eq!(refused.unwrap_err(), Kind::NameTooLong);
}

#[test]
fn a_hole_takes_no_room_and_reads_as_zeros() {
    let b = both();
    let node = b.file("f", b"start");
    put(&b.above, node, 10 << 20, b"end");
    let attr = b.below.fs.getattr(&b.below.cx(), node).unwrap();
    assert!(attr.allocated < 1 << 20, "{}", attr.allocated);
    let all = bytes(&b.above, node).unwrap();
    assert_eq!(all.len(), (10 << 20) + 3);
    assert!(all.starts_with(b"start\0") && all.ends_with(b"\0end"));
    assert!(all[5..10 << 20].iter().all(|&b| b == 0));
}
