//! Volumes that claim more than there is on the device: what they claim is refused, so that it costs
//! neither time nor memory.

use crate::images::{Images, can_make, debugfs};
use crate::{attach_as, memory, tools};
use std::fs;
use volary_core::{Kind, Name};
use volary_testkit::volumes::as_root;

const SUPERBLOCK: usize = 1024;
/// `s_feature_incompat`, and two of its flags (super.rst).
const INCOMPAT: usize = SUPERBLOCK + 0x60;
const RECOVER: u32 = 0x4;
const LARGE_DIR: u32 = 0x4000;

/// The bytes of a volume in which every block has one size.
struct Image {
    bytes: Vec<u8>,
    block: usize,
}

impl Image {
    /// Returns a volume by mke2fs, with what these requests of debugfs add.
    fn new(images: &Images, how: &str, block: usize, size: &str, requests: &str) -> Self {
        let how = format!("{how} -b {block}");
        let path = images.made("hostile.img", &how, size, None);
        if !requests.is_empty() {
            debugfs(&path, requests);
        }
        Self {
            bytes: fs::read(path).expect("the image"),
            block,
        }
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn put_words(&mut self, at: usize, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(at, &bytes);
    }

    /// Returns where the descriptor of the first group is: after the superblock's block.
    fn group(&self) -> usize {
        (SUPERBLOCK / self.block + 1) * self.block
    }

    fn inode(&self, ino: usize) -> usize {
        let size = usize::from(u16::from_le_bytes([
            self.bytes[SUPERBLOCK + 0x58],
            self.bytes[SUPERBLOCK + 0x59],
        ]));
        self.word(self.group() + 8) as usize * self.block + (ino - 1) * size
    }

    /// Blocks at the end of the volume, which nothing uses.
    fn spare(&self, count: usize) -> u32 {
        (self.bytes.len() / self.block - count) as u32
    }

    /// Maps an inode to its own first block and then to one block over and over, by indirect blocks
    /// that name themselves, and gives it `size` bytes.
    fn map_over_and_over(&mut self, ino: usize, content: &[u8], size: u64) {
        let first = self.spare(8);
        let all = [first, first + 1, first + 2];
        self.put(first as usize * self.block, content);
        for (below, indirect) in all.into_iter().zip(first + 1..) {
            let pointers = vec![below; self.block / 4];
            self.put_words(indirect as usize * self.block, &pointers);
        }
        let inode = self.inode(ino);
        let mut map = [first; 15];
        map[0] = self.word(inode + 0x28);
        map[12..].copy_from_slice(&[first + 1, first + 2, first + 3]);
        self.put_words(inode + 0x28, &map);
        self.put_words(inode + 0x4, &[size as u32]);
        self.put_words(inode + 0x6c, &[(size >> 32) as u32]);
        self.put_words(inode + 0x1c, &[u32::MAX]);
    }

    fn set_incompat(&mut self, flag: u32) {
        let flags = self.word(INCOMPAT) | flag;
        self.put_words(INCOMPAT, &[flags]);
    }
}

/// mke2fs leaves out what would have to be changed along.
const PLAIN: &str = "^metadata_csum,^64bit,^resize_inode";

#[test]
fn a_journal_that_has_a_block_twice_is_refused() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let how = format!("-t ext3 -N 64 -J size=4 -O {PLAIN}");
    let mut image = Image::new(&images, &how, 4096, "64M", "");
    let blocks = image.spare(1);
    let journal = image.word(image.inode(8) + 0x28) as usize * image.block;
    // A block that revokes a thousand, of the transaction that comes next.
    let head = [0xc03b_3998u32, 5, 7, 4096].map(u32::to_be_bytes).concat();
    let revoked = 99u32.to_be_bytes().repeat(1020);
    let revocation = [head, revoked].concat();
    image.map_over_and_over(8, &revocation, u64::from(blocks) * 4096);
    let fields = [(0x10, blocks), (0x14, 1), (0x18, 7), (0x1c, 1)];
    for (at, value) in fields {
        image.put(journal + at, &value.to_be_bytes());
    }
    image.set_incompat(RECOVER);
    let dev = memory(image.bytes);
    let refused = attach_as(dev.clone(), "").err().expect("a refusal");
    assert!(refused.to_string().contains("twice"), "{refused}");
    assert!(attach_as(dev, "noload").is_ok());
}

#[test]
fn a_directory_larger_than_the_device_is_refused() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let how = format!("-t ext2 -N 64 -O {PLAIN}");
    let mut image = Image::new(&images, &how, 4096, "8M", "mkdir d\n");
    // One entry of no file that is as long as the block.
    let empty = [&[0, 0, 0, 0, 0, 16, 0, 0][..], &[0; 4088]].concat();
    image.map_over_and_over(12, &empty, 1 << 42);
    image.set_incompat(LARGE_DIR);
    let dev = memory(image.bytes);
    let fs = attach_as(dev.clone(), "").expect("attach");
    as_root(|cx| {
        let name = Name::new(b"d").expect("a name");
        let refused = fs.lookup(cx, fs.root(), name).unwrap_err();
        assert_eq!(refused.kind(), Kind::Corrupt, "{refused}");
    });
    let found = tools::check(&dev);
    assert!(found.iter().any(|line| line.contains("size")), "{found:?}");
}

#[test]
fn groups_that_share_their_inodes_and_groups_that_are_not_there_are_passed_over() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let mut image = Image::new(&images, "-t ext2 -N 64 -O none,filetype", 1024, "8M", "");
    // Groups of one block, of which each says that its inodes are in the first one's table.
    let (group, last) = (image.group(), 8191);
    let one = image.bytes[group..group + 32].to_vec();
    image.put(group, &one.repeat(64));
    image.put_words(SUPERBLOCK + 0x20, &[1, 1, 64]);
    image.put_words(SUPERBLOCK, &[64 * 64, 1 + 64]);
    let found = tools::check(&memory(image.bytes.clone()));
    let shared = found.iter().filter(|line| line.contains("bg_inode_table"));
    assert_eq!(shared.count(), 63, "{found:?}");
    // 2^32 - 17 of them.
    image.put_words(SUPERBLOCK, &[last * 64, 0xffff_fff0]);
    let dev = memory(image.bytes);
    assert!(!tools::check(&dev).is_empty());
    tools::check_map(&dev);
}

#[test]
fn attributes_that_share_a_value_are_refused() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let how = "-t ext2 -N 64 -O none,filetype,ext_attr";
    let mut image = Image::new(&images, how, 4096, "8M", "write /dev/null f\n");
    let block = image.spare(1);
    let mut area = vec![0; image.block];
    area[..16].copy_from_slice(&[0xea02_0000, 1, 1, 0].map(u32::to_le_bytes).concat());
    for (number, at) in (32..).step_by(20).take(2).enumerate() {
        area[at..at + 4].copy_from_slice(&[4, 1, 0, 4]);
        area[at + 8..at + 12].copy_from_slice(&1000u32.to_le_bytes());
        area[at + 16..at + 20].copy_from_slice(format!("n{number:03}").as_bytes());
    }
    image.put(block as usize * image.block, &area);
    let inode = image.inode(12);
    image.put_words(inode + 0x68, &[block]);
    let dev = memory(image.bytes);
    let fs = attach_as(dev, "").expect("attach");
    as_root(|cx| {
        let name = Name::new(b"f").expect("a name");
        let file = fs.lookup(cx, fs.root(), name).expect("the file").node;
        let refused = fs.listxattr(cx, file).unwrap_err();
        assert_eq!(refused.kind(), Kind::Corrupt, "{refused}");
    });
}
