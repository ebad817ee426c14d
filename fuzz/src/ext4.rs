//! The target for ext2, ext3 and ext4, on a volume that is laid out by hand: without checksums, so
//! that damage is met and not refused.

use crate::heap;
use crate::input::Input;
use crate::overlay::Overlay;
use crate::volume::{agree, bound, check, live, strangers, tell};
use std::sync::{Arc, OnceLock};
use volary_core::CheckMode;
use volary_ext4::EXT4;

/// Requests to the device, and KiB, that a run may make.
const FUEL: u64 = 4_000_000;
const BLOCK: usize = 1024;
const BLOCKS: usize = 128;
/// Where the inodes begin.
const TABLE: usize = 5;
const INODES: usize = 32;
const INODE: usize = 256;
const JOURNAL: usize = 40;
const JOURNAL_LEN: usize = 24;
/// The last blocks of the journal are for fast commits; Linux leaves the first of them out.
const FAST: usize = JOURNAL + JOURNAL_LEN - 4 + 1;

/// Blocks with structures.
const HOT: &[usize] = &[
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    20,
    21,
    22,
    23,
    24,
    25,
    26,
    JOURNAL,
    JOURNAL + 1,
    JOURNAL + 3,
    JOURNAL + 4,
    FAST,
];

/// Attach in every way, walk, read; check, info, map, dump.
pub fn driver(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    bound(&dev);
    let options = ["", "noload", "nochecksums", "noload,nochecksums"];
    let options = options[usize::from(input.byte()) % options.len()];
    live(&EXT4, &dev, options, |fs, cx, nodes| {
        strangers(fs, cx, (0..INODES as u64 + 4).chain([1 << 32, u64::MAX]));
        agree(fs, cx, nodes);
    });
    let _ = check(&EXT4, &dev, CheckMode::Look, options);
    let dumps = [
        "superblock",
        "group 0",
        "inode",
        "inode 12",
        "inode 15",
        "blocks 12",
        "blocks 13",
        "directory",
        "directory 14",
        "htree 17",
        "journal",
    ];
    tell(&EXT4, &dev, &dumps);
    assert_eq!(dev.writes(), 0, "it wrote");
    heap::limit(usize::MAX);
}

/// Returns a good volume with the changes that the input asks for.
fn damaged(input: &mut Input<'_>) -> Arc<Overlay> {
    static BASE: OnceLock<Arc<[u8]>> = OnceLock::new();
    let base = BASE.get_or_init(|| image().into()).clone();
    Overlay::damaged(base, FUEL, input, |input| {
        let block = HOT[usize::from(input.byte()) % HOT.len()];
        let within = usize::from(input.short()) % BLOCK;
        (block * BLOCK + within) as u64
    })
}

struct Image(Vec<u8>);

/// An inode to be stored.
#[derive(Default)]
struct Node {
    mode: u16,
    size: u32,
    links: u16,
    sectors: u32,
    flags: u32,
    map: Vec<u8>,
    acl: u32,
}

fn dir(sectors: u32, map: Vec<u8>) -> Node {
    Node {
        mode: 0o40755,
        size: BLOCK as u32,
        links: 3,
        sectors,
        flags: EXTENTS,
        map,
        acl: 0,
    }
}

fn file(size: u32, sectors: u32, flags: u32, map: Vec<u8>) -> Node {
    Node {
        mode: 0o100_644,
        size,
        links: 1,
        sectors,
        flags,
        map,
        acl: 0,
    }
}

const EXTENTS: u32 = 0x8_0000;
const INLINE: u32 = 0x1000_0000;
const INDEX: u32 = 0x1000;

/// Returns a header and entries of an extent tree; entries are block, length and place.
fn tree(depth: u16, entries: &[(u32, u16, u32)]) -> Vec<u8> {
    let mut out = [0xf30a, entries.len() as u16, 4, depth, 0, 0]
        .map(u16::to_le_bytes)
        .concat();
    for (first, len, place) in entries {
        out.extend(first.to_le_bytes());
        match depth {
            0 => out.extend([&len.to_le_bytes()[..], &[0, 0], &place.to_le_bytes()].concat()),
            _ => out.extend([&place.to_le_bytes()[..], &[0; 4]].concat()),
        }
    }
    out
}

/// Returns entries that fill `len` bytes.
fn entries(len: usize, all: &[(u32, u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, (ino, kind, name)) in all.iter().enumerate() {
        let own = (8 + name.len()).next_multiple_of(4);
        let is_last = number + 1 == all.len();
        let rec = if is_last { len - out.len() } else { own };
        let start = out.len();
        out.extend(ino.to_le_bytes());
        out.extend((rec as u16).to_le_bytes());
        out.extend([name.len() as u8, *kind]);
        out.extend(*name);
        out.resize(start + rec, 0);
    }
    out
}

impl Image {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn block(&mut self, block: usize, bytes: &[u8]) {
        self.put(block * BLOCK, bytes);
    }

    fn node(&mut self, ino: usize, node: &Node) {
        let at = TABLE * BLOCK + (ino - 1) * INODE;
        self.put(at, &inode(node));
        self.0[4 * BLOCK + (ino - 1) / 8] |= 1 << ((ino - 1) % 8);
    }

    fn head(&mut self) {
        let words: [(usize, u32); 14] = [
            (0x0, INODES as u32),
            (0x4, BLOCKS as u32),
            (0x14, 1),
            (0x20, 8192),
            (0x24, 8192),
            (0x28, INODES as u32),
            (0x4c, 1),
            (0x54, 11),
            (0x58, INODE as u32),
            (0x5c, 0x4 | 0x8 | 0x20),
            // filetype, recover, extents, ea_inode, inline_data
            (0x60, 0x2 | 0x4 | 0x40 | 0x400 | 0x8000),
            (0x64, 0x1 | 0x2 | 0x40),
            (0xe0, 8),
            (0x38, 0x0001_ef53),
        ];
        for (at, word) in words {
            self.put(BLOCK + at, &word.to_le_bytes());
        }
        self.put(
            2 * BLOCK,
            &[3u32, 4, TABLE as u32].map(u32::to_le_bytes).concat(),
        );
    }

    fn nodes(&mut self) {
        self.node(2, &dir(2, tree(0, &[(0, 1, 20)])));
        let journal = tree(0, &[(0, JOURNAL_LEN as u16, JOURNAL as u32)]);
        self.node(8, &file((JOURNAL_LEN * BLOCK) as u32, 48, EXTENTS, journal));
        // A tree of two levels, with a hole and a part that was never written.
        self.node(12, &file(50_000, 10, EXTENTS, tree(1, &[(0, 0, 21)])));
        self.block(21, &tree(0, &[(0, 2, 70), (5, 1, 73), (9, 32768 + 2, 75)]));
        // Pointers of each level.
        let pointers = [80u32, 81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 82, 22, 23, 0];
        let map = pointers.map(u32::to_le_bytes).concat();
        self.node(13, &file(400_000, 20, 0, map));
        self.block(22, &[83u32, 0, 84].map(u32::to_le_bytes).concat());
        self.block(23, &[24u32].map(u32::to_le_bytes).concat());
        self.block(24, &[85u32].map(u32::to_le_bytes).concat());
    }

    /// Those that hold what they have, or little else.
    fn small_nodes(&mut self) {
        // A directory in its inode.
        let inline = [
            &2u32.to_le_bytes()[..],
            &entries(56, &[(12, 1, b"again"), (16, 7, b"link")]),
        ];
        let inline = Node {
            size: 60,
            flags: INLINE,
            links: 2,
            ..dir(0, inline.concat())
        };
        self.node(14, &inline);
        let node = Node {
            acl: 25,
            ..file(70, 2, INLINE, vec![b'i'; 60])
        };
        self.node(15, &node);
        let link = Node {
            mode: 0o120_777,
            ..file(5, 0, 0, b"there".to_vec())
        };
        self.node(16, &link);
        let indexed = Node {
            size: 2 * BLOCK as u32,
            flags: EXTENTS | INDEX,
            links: 2,
            ..dir(4, tree(0, &[(0, 2, 26)]))
        };
        self.node(17, &indexed);
        let device = Node {
            mode: 0o20600,
            ..file(0, 0, 0, vec![3, 1])
        };
        self.node(18, &device);
        self.node(
            19,
            &Node {
                flags: EXTENTS | 0x20_0000,
                ..file(9, 2, 0, tree(0, &[(0, 1, 90)]))
            },
        );
    }

    fn contents(&mut self) {
        let root: &[(u32, u8, &[u8])] = &[
            (2, 2, b"."),
            (2, 2, b".."),
            (12, 1, b"extents"),
            (13, 1, b"pointers"),
            (14, 2, b"inline"),
            (15, 1, b"file"),
            (16, 7, b"link"),
            (17, 2, b"indexed"),
            (18, 3, b"device"),
        ];
        self.block(20, &entries(BLOCK, root));
        let dots = entries(BLOCK, &[(17, 2, b"."), (2, 2, b"..")]);
        self.block(26, &dots);
        let limit = ((BLOCK - 32) / 8) as u16;
        self.put(26 * BLOCK + 0x18, &[0, 0, 0, 0, 1, 8, 0, 0]);
        self.put(
            26 * BLOCK + 0x20,
            &[limit.to_le_bytes(), [1, 0], [1, 0], [0, 0]].concat(),
        );
        self.block(27, &entries(BLOCK, &[(12, 1, b"hashed")]));
        // Attributes: one here, one in an inode, an access list.
        let head = [0xea02_0000u32, 1, 1, 0, 0, 0, 0, 0]
            .map(u32::to_le_bytes)
            .concat();
        let list = [&[1, 0, 0, 0][..], &[1, 0, 6, 0, 4, 0, 4, 0, 0x20, 0, 4, 0]].concat();
        let attribute = |len: u8, index: u8, at: u16, ino: u32, size: u32, name: &[u8]| {
            let mut out = vec![len, index];
            out.extend(at.to_le_bytes());
            out.extend([ino, size, 0].map(u32::to_le_bytes).concat());
            out.extend(name);
            out
        };
        let all = [
            head,
            attribute(4, 1, 1000, 0, 3, b"here"),
            attribute(4, 1, 0, 19, 9, b"away"),
            attribute(0, 2, 1004, 0, list.len() as u32, b""),
        ];
        self.block(25, &all.concat());
        self.put(25 * BLOCK + 1000, b"val");
        self.put(25 * BLOCK + 1004, &list);
    }

    /// A transaction of one block with a revocation, and a fast commit.
    fn journal(&mut self) {
        let magic = 0xc03b_3998u32;
        let be =
            |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_be_bytes()).collect() };
        let len = JOURNAL_LEN as u32;
        self.block(
            JOURNAL,
            &be(&[magic, 4, 0, BLOCK as u32, len, 1, 1, 1, 0, 0, 0x21]),
        );
        self.put(JOURNAL * BLOCK + 0x54, &be(&[4]));
        self.block(JOURNAL + 1, &be(&[magic, 1, 1, 80, 0x2]));
        self.put((JOURNAL + 1) * BLOCK + 20, &be(&[81, 0xa]));
        self.block(JOURNAL + 2, &[0x55; BLOCK]);
        self.block(JOURNAL + 3, &[0x66; BLOCK]);
        self.block(JOURNAL + 4, &be(&[magic, 5, 1, 20, 81]));
        self.block(JOURNAL + 5, &be(&[magic, 2, 1]));
        let tag = |tag: u16, value: &[u8]| {
            [
                &tag.to_le_bytes()[..],
                &(value.len() as u16).to_le_bytes(),
                value,
            ]
            .concat()
        };
        let words =
            |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
        let new = Node {
            mode: 0o40700,
            links: 2,
            size: 1024,
            flags: EXTENTS,
            ..Node::default()
        };
        let entry = |dir: u32, ino: u32, name: &[u8]| [&words(&[dir, ino])[..], name].concat();
        let range = tree(0, &[(1, 2, 95)]);
        let all = [
            tag(9, &words(&[0, 2])),
            tag(6, &[&words(&[20])[..], &inode(&new)].concat()),
            tag(3, &entry(2, 20, b"made")),
            tag(4, &entry(20, 15, b"linked")),
            tag(5, &entry(2, 16, b"link")),
            tag(1, &[&words(&[12])[..], &range[12..24]].concat()),
            tag(2, &words(&[12, 5, 1])),
            // The sum is wrong: it counts with `nochecksums`.
            tag(8, &words(&[2, 0])),
        ];
        self.block(FAST, &all.concat());
    }
}

fn inode(node: &Node) -> Vec<u8> {
    let mut out = vec![0; INODE];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &node.mode.to_le_bytes());
    put(4, &node.size.to_le_bytes());
    put(0x1a, &node.links.to_le_bytes());
    put(0x1c, &node.sectors.to_le_bytes());
    put(0x20, &node.flags.to_le_bytes());
    put(0x28, &node.map);
    put(0x68, &node.acl.to_le_bytes());
    put(0x80, &[32, 0]);
    // The rest of data that stands in the inode.
    if node.flags & INLINE != 0 && node.size > 60 {
        put(0xa0, &0xea02_0000u32.to_le_bytes());
        put(0xa4, &[4, 7, 80, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0]);
        put(0xb4, b"data");
        put(0xa4 + 80, b"more here.");
    }
    out
}

/// Every kind of map, directory and attribute, a journal with a transaction and a fast commit.
fn image() -> Vec<u8> {
    let mut image = Image(vec![0; BLOCKS * BLOCK]);
    image.head();
    image.nodes();
    image.small_nodes();
    image.contents();
    image.journal();
    image.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::name;
    use crate::volume::with_ctx;
    use volary_core::Mode;
    use volary_core::{Attach, Format, Options};

    #[test]
    fn the_volume_is_good_before_it_is_damaged() {
        let dev = Arc::new(Overlay::new(image().into(), FUEL));
        for (options, names) in [
            (
                "",
                &[
                    "extents", "pointers", "inline", "file", "link", "indexed", "device",
                ][..],
            ),
            ("nochecksums", &["extents", "made"]),
        ] {
            let how = Attach {
                options: Options::parse(options),
                ..Attach::default()
            };
            let fs = EXT4.attach(dev.clone(), &how).unwrap();
            with_ctx(|cx| {
                for text in names {
                    fs.lookup(cx, fs.root(), name(text.as_bytes()))
                        .unwrap_or_else(|e| panic!("{options} {text}: {e}"));
                }
                let file = fs.lookup(cx, fs.root(), name(b"file")).unwrap().node;
                let open = fs.open(cx, file, Mode::Read).unwrap();
                let mut bytes = [0; 80];
                assert_eq!(fs.read(cx, open, 0, &mut bytes).unwrap(), 70);
                assert!(bytes.starts_with(&[b'i'; 60]) && bytes[60..70] == *b"more here.");
                assert_eq!(fs.listxattr(cx, file).unwrap().len(), 3);
                assert_eq!(fs.getxattr(cx, file, b"user.here").unwrap(), b"val");
                let pointers = fs.lookup(cx, fs.root(), name(b"pointers")).unwrap().node;
                let open = fs.open(cx, pointers, Mode::Read).unwrap();
                let mut bytes = [0; 2048];
                fs.read(cx, open, 0, &mut bytes).unwrap();
                // The journal brings the first block, and revokes what it has of the second.
                assert_eq!((bytes[0], bytes[1024]), (0x55, 0));
            });
        }
    }
}
