//! The target for the Fast File System.

use crate::heap;
use crate::input::Input;
use crate::overlay::Overlay;
use std::sync::{Arc, OnceLock};
use volary_core::{
    Answer, Attach, BlockDevice, Cancel, Check, CheckMode, Cookie, Cred, Ctx, DirBuf, FileKind,
    Format, Fs, Make, Mode, Name, NodeId, Options, Quiet, Time,
};
use volary_ffs::FFS;

/// Growth of the heap that a run may cause, beside twice the image.
const HEAP: usize = 32 << 20;
/// Requests to the device, and KiB, that a run may make.
const FUEL: u64 = 4_000_000;
/// Nodes that a walk looks at.
const WALK_MAX: usize = 300;
/// Bytes of the volume, of a block, of a fragment.
const SIZE: usize = 512 << 10;
const BLOCK: u64 = 4096;
const FRAGMENT: u64 = 512;

/// Attach, walk, read; check, info, map, dump; make.
pub fn driver(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    heap::limit(HEAP + 2 * SIZE);
    let as_dev = || -> Arc<dyn BlockDevice> { dev.clone() };
    let how = Attach {
        memory: 1 << 20,
        ..Attach::default()
    };
    if let Ok(fs) = FFS.attach(as_dev(), &how) {
        walk(&fs, &mut input);
    }
    let how = Check {
        mode: CheckMode::Look,
        now: Time::EPOCH,
        options: Options::new(),
    };
    let _ = FFS.check(as_dev(), &how, &mut |_| Answer::No, &Quiet);
    let _ = FFS.info(as_dev());
    let _ = FFS.map(as_dev(), 64);
    for words in [
        "superblock",
        "superblocks",
        "group 0",
        "bitmap 1",
        "inode 3",
        "inode 7",
        "directory 2",
        "directory 4",
    ] {
        let what: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let _ = FFS.dump(as_dev(), &what, &mut String::new());
    }
    assert_eq!(dev.writes(), 0, "it wrote");
    heap::limit(usize::MAX);
}

fn walk(fs: &Fs, input: &mut Input<'_>) {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    let cx = Ctx {
        cred: &cred,
        now: Time::EPOCH,
        cancel: &cancel,
    };
    let mut found = vec![(fs.root(), FileKind::Dir)];
    let mut next = 0;
    while let Some(&(node, kind)) = found.get(next) {
        next += 1;
        if found.len() > WALK_MAX || next > WALK_MAX {
            break;
        }
        look(fs, &cx, node);
        let Ok(open) = fs.open(&cx, node, Mode::Read) else {
            continue;
        };
        let _ = fs.extents(&cx, open, 0, u64::MAX, &mut Vec::new());
        if kind == FileKind::Dir {
            let mut out = DirBuf::new(64, 8192, true);
            let _ = fs.readdir(&cx, open, Cookie::START, &mut out);
            for entry in out.iter() {
                let name = Name::new(entry.name).expect("readdir gave a bad name");
                let _ = fs.lookup(&cx, node, name);
                found.push((entry.node, entry.kind));
            }
        } else {
            let _ = fs.read(&cx, open, 100, &mut [0; 5000]);
            let _ = fs.read(&cx, open, u64::from(input.short()) << 20, &mut [0; 500]);
        }
        fs.close(&cx, open).expect("close");
    }
    // Ids from outside.
    for _ in 0..16 {
        if let Some(node) = NodeId::new(input.short().into(), 0) {
            let _ = fs.getattr(&cx, node);
        }
    }
}

fn look(fs: &Fs, cx: &Ctx<'_>, node: NodeId) {
    let _ = (
        fs.getattr(cx, node),
        fs.readlink(cx, node),
        fs.parent(cx, node),
    );
    for name in fs.listxattr(cx, node).unwrap_or_default() {
        let _ = fs.getxattr(cx, node, &name);
    }
}

/// A good volume with the changes that the input asks for.
fn damaged(input: &mut Input<'_>) -> Arc<Overlay> {
    static BASES: OnceLock<Vec<(Image, Arc<[u8]>)>> = OnceLock::new();
    let make = |(kind, options)| {
        let image = Image::new(kind, options);
        let bytes = image.bytes.clone().into();
        (image, bytes)
    };
    let bases = BASES.get_or_init(|| WAYS.map(make).into());
    let (base, bytes) = &bases[usize::from(input.byte()) % bases.len()];
    let dev = Overlay::new(bytes.clone(), FUEL);
    for _ in 0..input.byte() % 24 {
        let places = [
            base.superblock,
            base.superblock + 856,
            base.head,
            base.inodes,
            base.inodes + 4 * base.inode_size,
            base.content * FRAGMENT,
            (base.content + 8) * FRAGMENT,
            (base.content + 16) * FRAGMENT,
        ];
        let place = places[usize::from(input.byte()) % places.len()];
        let within = u64::from(input.short()) % 520;
        let count = usize::from(input.byte() % 9);
        dev.poke(place + within, input.bytes(count));
    }
    Arc::new(dev)
}

/// Kind, options.
const WAYS: [(&str, &str); 5] = [
    ("ffs1", "order=little"),
    ("ffs1", "order=big"),
    ("ffs1", "order=little,old"),
    ("ffs2", "order=little"),
    ("ffs2", "order=big"),
];

/// A volume with a node of each kind.
struct Image {
    bytes: Vec<u8>,
    is_big: bool,
    is_old: bool,
    is_ufs2: bool,
    /// Places in bytes: superblock, the first group's head, its inodes.
    superblock: u64,
    head: u64,
    inodes: u64,
    inode_size: u64,
    /// The fragment at which the root's content is; blocks after it are free.
    content: u64,
}

impl Image {
    fn new(kind: &str, options: &str) -> Self {
        let dev = Arc::new(Overlay::new(vec![0; SIZE].into(), FUEL));
        let how = Make {
            options: Options::parse(&format!("{options},block={BLOCK},fragment={FRAGMENT}")),
            ..Make::default()
        };
        FFS.make(dev.clone(), kind, &how).expect("a volume");
        let mut bytes = vec![0; SIZE];
        dev.read_at(0, &mut bytes).expect("its bytes");
        let is_ufs2 = kind == "ffs2";
        let mut image = Self {
            bytes,
            is_big: options.contains("big"),
            is_old: options.contains("old"),
            is_ufs2,
            superblock: if is_ufs2 { 65_536 } else { 8192 },
            head: 0,
            inodes: 0,
            inode_size: if is_ufs2 { 256 } else { 128 },
            content: 0,
        };
        image.head = image.number(image.superblock + 12) * FRAGMENT;
        image.inodes = image.number(image.superblock + 16) * FRAGMENT;
        let root = image.inodes + 2 * image.inode_size;
        let db = if is_ufs2 {
            112 + if image.is_big { 4 } else { 0 }
        } else {
            40
        };
        image.content = image.number(root + db);
        image.fill();
        image
    }

    fn number(&self, at: u64) -> u64 {
        let bytes = self.bytes[at as usize..]
            .first_chunk()
            .copied()
            .unwrap_or_default();
        match self.is_big {
            true => u32::from_be_bytes(bytes).into(),
            false => u32::from_le_bytes(bytes).into(),
        }
    }

    /// Stores a number of some bytes.
    fn put(&mut self, at: u64, len: usize, n: u64) {
        let room = &mut self.bytes[at as usize..at as usize + len];
        match self.is_big {
            true => room.copy_from_slice(&n.to_be_bytes()[8 - len..]),
            false => room.copy_from_slice(&n.to_le_bytes()[..len]),
        }
    }

    /// An inode with content from a fragment on: 12 direct blocks at most, one indirect.
    fn inode(&mut self, ino: u64, mode: u64, size: u64, blocks: &[u64]) {
        let at = self.inodes + ino * self.inode_size;
        let (size_at, db, width) = if self.is_ufs2 {
            (16, 112, 8)
        } else {
            (8, 40, 4)
        };
        self.put(at, 2, mode);
        self.put(at + 2, 2, 1);
        self.put(at + size_at, 8, size);
        for (&block, i) in blocks.iter().zip(0..) {
            self.put(at + db + i * width, width as usize, block);
        }
        let used = self.number(self.head + 92);
        self.bytes[(self.head + used) as usize] |= 1 << ino;
    }

    fn entries(&mut self, at: u64, entries: &[(u64, u64, &[u8])]) {
        let mut here = at;
        for (i, &(ino, kind, name)) in entries.iter().enumerate() {
            let rest = at + 512 - here;
            let len = if i + 1 == entries.len() { rest } else { 12 };
            self.put(here, 4, ino);
            self.put(here + 4, 2, len);
            if self.is_old {
                self.put(here + 6, 2, name.len() as u64);
            } else {
                self.put(here + 6, 1, kind);
                self.put(here + 7, 1, name.len() as u64);
            }
            self.bytes[here as usize + 8..][..name.len()].copy_from_slice(name);
            here += len;
        }
    }

    fn fill(&mut self) {
        let (root, block) = (self.content, |n: u64| self.content + 8 * n);
        let (dir, pointers, data, xattrs) = (block(1), block(2), block(3), block(4));
        self.entries(
            root * FRAGMENT,
            &[
                (2, 4, b"."),
                (2, 4, b".."),
                (3, 8, b"f"),
                (4, 4, b"d"),
                (5, 10, b"l"),
                (6, 2, b"c"),
                (7, 8, b"x"),
            ],
        );
        self.entries(dir * FRAGMENT, &[(4, 4, b"."), (2, 4, b".."), (3, 8, b"g")]);
        // A hole, data, a hole; then two blocks by way of an indirect one.
        let mut blocks = [0; 13];
        (blocks[1], blocks[12]) = (data, pointers);
        self.inode(3, 0o100_644, 14 * BLOCK - 5, &blocks);
        let width = if self.is_ufs2 { 8 } else { 4 };
        self.put(pointers * FRAGMENT + width, width as usize, data);
        self.inode(4, 0o40_755, 512, &[dir]);
        self.inode(5, 0o120_777, 3, &[data]);
        self.inode(6, 0o20_600, 0, &[0x0801]);
        self.inode(7, 0o100_600, 0, &[]);
        if self.is_ufs2 {
            let at = self.inodes + 7 * self.inode_size;
            self.put(at + 92, 4, 24);
            self.put(at + 96, 8, xattrs);
            let area = xattrs * FRAGMENT;
            self.put(area, 4, 24);
            for (i, byte) in [1, 6, 4, b'n', b'a', b'm', b'e'].into_iter().enumerate() {
                self.bytes[area as usize + 4 + i] = byte;
            }
            self.bytes[area as usize + 16..area as usize + 18].copy_from_slice(b"ok");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_volumes_are_good_before_they_are_damaged() {
        for (kind, options) in WAYS {
            let dev = Arc::new(Overlay::new(Image::new(kind, options).bytes.into(), FUEL));
            let fs = FFS.attach(dev, &Attach::default()).expect(options);
            let (cred, cancel) = (Cred::root(), Cancel::new());
            let cx = Ctx {
                cred: &cred,
                now: Time::EPOCH,
                cancel: &cancel,
            };
            let find = |dir, name: &[u8]| {
                let name = Name::new(name).expect("a name");
                fs.lookup(&cx, dir, name).expect(options)
            };
            let file = find(fs.root(), b"f");
            let dir = find(fs.root(), b"d").node;
            assert_eq!(find(dir, b"g").node, file.node);
            let open = fs.open(&cx, file.node, Mode::Read).expect("open");
            let mut bytes = vec![0; 14 * BLOCK as usize];
            let read = fs.read(&cx, open, 0, &mut bytes).expect("read");
            assert_eq!(read as u64, file.attr.size);
            let mut runs = Vec::new();
            fs.extents(&cx, open, 0, u64::MAX, &mut runs)
                .expect("extents");
            assert_eq!(runs.len(), 4, "{runs:?}");
            assert_eq!(find(fs.root(), b"c").attr.kind, FileKind::CharDevice);
            fs.readlink(&cx, find(fs.root(), b"l").node)
                .expect("readlink");
            if kind == "ffs2" {
                let node = find(fs.root(), b"x").node;
                assert_eq!(fs.getxattr(&cx, node, b"user.name").expect("value"), b"ok");
            }
        }
    }
}
