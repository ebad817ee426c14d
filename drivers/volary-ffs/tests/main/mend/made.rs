//! A volume with a node of each kind, and where its structures stand.

use crate::volumes::attach;
use std::collections::BTreeMap;
use volary_core::{Create, Ctx, FileKind, Fs, Name, NodeId, SetAttr};
use volary_testkit::readable::Content;
use volary_testkit::rng::pattern;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::{Shape, as_root};

pub(super) struct Made {
    pub(super) shape: Shape,
    pub(super) image: Vec<u8>,
    pub(super) tree: Tree,
    /// What its files hold, but for `double`, which is long.
    pub(super) content: Content,
    pub(super) sparse: Content,
    /// Inodes by path.
    inos: BTreeMap<String, u64>,
    superblock: BTreeMap<String, String>,
}

/// Bytes of a fragment.
const FRAGMENT: u64 = 512;

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).expect("a name")
}

/// Returns the names in `many`, of which there are more than a block holds.
pub(super) fn long_name(number: u32) -> String {
    format!("{number}{}", " long".repeat(20))
}

struct Filling<'a> {
    fs: &'a Fs,
    cx: &'a Ctx<'a>,
    inos: BTreeMap<String, u64>,
}

impl Filling<'_> {
    fn note(&mut self, text: &str, node: NodeId) -> NodeId {
        self.inos.insert(text.to_owned(), node.ino.get());
        node
    }

    fn dir(&mut self, parent: NodeId, text: &str) -> NodeId {
        let set = SetAttr::default();
        let made = self.fs.mkdir(self.cx, parent, name(text), &set);
        self.note(text, made.expect("mkdir").node)
    }

    /// Returns a file with bytes at these places.
    fn file(&mut self, dir: NodeId, text: &str, parts: &[(u64, usize)]) -> NodeId {
        let set = SetAttr::default();
        let made = self.fs.create(self.cx, dir, name(text), Create::New, &set);
        let (entry, open) = made.expect("create");
        for &(at, len) in parts {
            let content = pattern(len as u64 + entry.node.ino.get(), len);
            let done = self.fs.write(self.cx, open, Some(at), &content);
            done.expect("write");
        }
        self.fs.close(self.cx, open).expect("close");
        self.note(text, entry.node)
    }

    fn fill(&mut self, is_ufs2: bool) {
        let (fs, cx, root) = (self.fs, self.cx, self.fs.root());
        let set = SetAttr::default();
        let a = self.dir(root, "a");
        let b = self.dir(a, "b");
        let one = self.file(a, "one", &[(0, 3000)]);
        self.file(b, "two", &[(0, 9000)]);
        self.file(root, "large", &[(0, 200_000)]);
        self.file(root, "double", &[(0, 5000), (5 << 20, 9000)]);
        self.dir(a, "empty");
        let many = self.dir(root, "many");
        for i in 0..60 {
            self.file(many, &long_name(i), &[(0, i as usize * 23)]);
        }
        fs.symlink(cx, a, name("short"), b"one", &set)
            .map(|made| self.note("short", made.node))
            .expect("symlink");
        fs.symlink(cx, a, name("long"), &[b'l'; 700], &set)
            .map(|made| self.note("long", made.node))
            .expect("symlink");
        fs.mknod(cx, a, name("fifo"), FileKind::Fifo, 0, &set)
            .map(|made| self.note("fifo", made.node))
            .expect("mknod");
        fs.link(cx, one, b, name("again")).expect("link");
        if is_ufs2 {
            let done = fs.setxattr(cx, one, b"user.volary", &[7; 600]);
            done.expect("setxattr");
        }
    }
}

impl Made {
    pub(super) fn new(shape: Shape) -> Self {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        let (tree, content, inos) = as_root(|cx| {
            let inos = BTreeMap::from([(String::new(), fs.root().ino.get())]);
            let mut filling = Filling { fs: &fs, cx, inos };
            filling.fill(shape.kind == "ffs2");
            let tree = Tree::read(&fs, cx).expect("the tree");
            let inos = filling.inos;
            let content = Content::read(&fs, cx).expect("the content");
            fs.detach(cx).expect("detach");
            (tree, content, inos)
        });
        let (mut content, mut sparse) = (content, Content::default());
        sparse
            .0
            .extend(content.0.remove_entry(b"double".as_slice()));
        let image = dev.to_vec();
        let dumped = crate::dump(&image, "superblock").expect("dump");
        let fields = dumped.lines().filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        });
        Self {
            superblock: fields.collect(),
            shape,
            image,
            tree,
            content,
            sparse,
            inos,
        }
    }

    /// Returns a field of the superblock, as 64 bits.
    pub(super) fn field(&self, what: &str) -> u64 {
        let value = self.superblock.get(what).expect("a field");
        let number = match value.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16),
            None => value.parse(),
        };
        number.unwrap_or_else(|e| panic!("{what} is {value}: {e}")) as u64
    }

    fn is_big(&self) -> bool {
        self.shape.make.contains("order=big")
    }

    pub(super) fn is_ufs2(&self) -> bool {
        self.shape.kind == "ffs2"
    }

    /// Returns whether it is of 4.3BSD.
    pub(super) fn is_old(&self) -> bool {
        self.shape.make.contains("old")
    }

    /// Returns where the first superblock stands.
    pub(super) fn head(&self) -> usize {
        if self.is_ufs2() { 65_536 } else { 8192 }
    }

    pub(super) fn ino(&self, text: &str) -> u64 {
        *self.inos.get(text).expect("a node")
    }

    /// Returns the path that ends with an inode's name.
    pub(super) fn ino_of(&self, path: &[u8]) -> Option<u64> {
        let last = path.rsplit(|&byte| byte == b'/').next()?;
        let text = match last {
            b"again" => "one",
            last => std::str::from_utf8(last).ok()?,
        };
        self.inos.get(text).copied()
    }

    /// Returns where a node's inode stands.
    pub(super) fn inode(&self, text: &str) -> usize {
        let ino = self.ino(text);
        let (ipg, size) = (self.field("fs_ipg"), if self.is_ufs2() { 256 } else { 128 });
        (self.start(ino / ipg) + self.field("fs_iblkno") * FRAGMENT + ino % ipg * size) as usize
    }

    /// Returns where the structures of a group begin.
    fn start(&self, group: u64) -> u64 {
        let base = group * self.field("fs_fpg");
        let skew = match self.is_ufs2() {
            true => 0,
            false => {
                let mask = self.field("fs_old_cgmask") as u32;
                self.field("fs_old_cgoffset") * (group & u64::from(!mask))
            }
        };
        (base + skew) * FRAGMENT
    }

    pub(super) fn group(&self, number: u64) -> usize {
        (self.start(number) + self.field("fs_cblkno") * FRAGMENT) as usize
    }

    pub(super) fn replica(&self, number: u64) -> usize {
        (self.start(number) + self.field("fs_sblkno") * FRAGMENT) as usize
    }

    /// Returns a map of a group, which the head has an offset to at this byte.
    pub(super) fn map(&self, group: u64, field: usize) -> usize {
        let at = self.group(group);
        at + self.get(&self.image, at + field, 4) as usize
    }

    /// Returns where pointer `index` of an inode stands: 12 direct ones and 3 others.
    pub(super) fn pointer(&self, text: &str, index: usize) -> usize {
        let (db, len) = if self.is_ufs2() { (112, 8) } else { (40, 4) };
        self.inode(text) + db + index * len
    }

    pub(super) fn pointer_len(&self) -> usize {
        if self.is_ufs2() { 8 } else { 4 }
    }

    /// Returns where the size stands, and the count of sectors.
    pub(super) fn size(&self, text: &str) -> usize {
        self.inode(text) + if self.is_ufs2() { 16 } else { 8 }
    }

    pub(super) fn blocks(&self, text: &str) -> usize {
        self.inode(text) + if self.is_ufs2() { 24 } else { 104 }
    }

    /// Returns what a pointer leads to, in bytes.
    pub(super) fn leads(&self, at: usize) -> usize {
        (self.get(&self.image, at, self.pointer_len()) * FRAGMENT) as usize
    }

    /// Returns where the first block of a node is.
    pub(super) fn block(&self, text: &str) -> usize {
        self.leads(self.pointer(text, 0))
    }

    /// Returns where the entry of a name stands.
    pub(super) fn entry(&self, dir: &str, text: &str) -> usize {
        let mut at = self.block(dir);
        let end = at + 4096;
        while at < end {
            let name = &self.image[at + 8..at + 8 + text.len()];
            let ends = self.image[at + 8 + text.len()] == 0;
            let ino = self.get(&self.image, at, 4);
            if ino != 0 && name == text.as_bytes() && ends {
                return at;
            }
            at += self.get(&self.image, at + 4, 2).max(4) as usize;
        }
        panic!("'{text}' is in '{dir}'")
    }

    /// Returns the byte of an entry that holds the length of the name.
    pub(super) fn name_len(&self, entry: usize) -> usize {
        match (self.is_old(), self.is_big()) {
            (true, false) => entry + 6,
            _ => entry + 7,
        }
    }

    pub(super) fn get(&self, image: &[u8], at: usize, len: usize) -> u64 {
        let fold = |n: u64, byte: &u8| n << 8 | u64::from(*byte);
        match self.is_big() {
            true => image[at..at + len].iter().fold(0, fold),
            false => image[at..at + len].iter().rev().fold(0, fold),
        }
    }

    pub(super) fn put(&self, image: &mut [u8], at: usize, len: usize, value: u64) {
        let bytes = match self.is_big() {
            true => value.to_be_bytes()[8 - len..].to_vec(),
            false => value.to_le_bytes()[..len].to_vec(),
        };
        image[at..at + len].copy_from_slice(&bytes);
    }

    /// Turns a bit of a number over.
    pub(super) fn flip(&self, image: &mut [u8], at: usize, len: usize, bit: u32) {
        let value = self.get(image, at, len) ^ 1 << bit;
        self.put(image, at, len, value);
    }

    /// Makes an entry lead to a directory.
    pub(super) fn lead(&self, image: &mut [u8], entry: usize, ino: u64) {
        self.put(image, entry, 4, ino);
        if !self.is_old() {
            image[entry + 6] = 4;
        }
    }

    /// Puts a pointer to a fragment.
    pub(super) fn point(&self, image: &mut [u8], at: usize, fragment: u64) {
        self.put(image, at, self.pointer_len(), fragment);
    }
}
