//! 4.3BSD: volary's driver of its file system with `sync`, behind the kernel's cache of blocks.
//!
//! The driver says which blocks an operation changes and reads. The kernel writes an inode that is new and a
//! directory's sector before the call returns; all else waits in the cache for `update`, which runs every 30
//! seconds. It reads block by block, what is not in the cache.

use super::cfs::Done;
use super::counted::Request;
use super::mounted::Mounted;
use super::rival::Rival;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use volary_sim::Preset;

/// The parameters of the time: blocks of 8 KiB in fragments of 1 KiB, and a pause between blocks.
const MAKE: &str = "old,block=8k,fragment=1k,rotdelay=4,maxcontig=1";
const BLOCK: u64 = 8192;
const INODE: u64 = 128;
/// Milliseconds from one run of `update` to the next.
const UPDATE: u64 = 30_000;

/// Where a cylinder group has its inodes: fields of the superblock.
struct Groups {
    /// Fragments from a group's start to its superblock, its inodes, and its data.
    head: u64,
    inodes: u64,
    data: u64,
    /// By which starts differ, and in how many groups.
    offset: u64,
    mask: u64,
    /// Fragments and inodes of a group; bytes of a fragment.
    len: u64,
    count: u64,
    fragment: u64,
    /// The groups' sums, which lie among the data of the first one.
    sums: std::ops::Range<u64>,
}

/// What a sector is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Inodes: the block of this number.
    Inodes(u64),
    Data,
    /// Superblock, head of a group, sums.
    Head,
}

impl Groups {
    fn read(on: &Mounted) -> Result<Self> {
        let mut bytes = [0; 256];
        on.device().read_at(BLOCK, &mut bytes)?;
        let field = |at: usize| -> Result<u64> {
            let bytes = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
            Ok(u64::from(u32::from_le_bytes(
                bytes.context("a field of the superblock")?,
            )))
        };
        let sums = field(152)?;
        let fragment = field(52)?;
        Ok(Self {
            sums: sums..sums + field(156)?.div_ceil(fragment),
            head: field(8)?,
            inodes: field(16)?,
            data: field(20)?,
            offset: field(24)?,
            mask: field(28)?,
            fragment,
            count: field(184)?,
            len: field(188)?,
        })
    }

    fn start(&self, group: u64) -> u64 {
        group * self.len + self.offset * (group & !self.mask)
    }

    /// Returns what is at a byte of the disk.
    fn part(&self, byte: u64) -> Part {
        let at = byte / self.fragment;
        if self.sums.contains(&at) {
            return Part::Head;
        }
        let group = at / self.len;
        let from = at.checked_sub(self.start(group));
        match from {
            Some(from) if (self.inodes..self.data).contains(&from) => {
                let blocks = (self.data - self.inodes) * self.fragment / BLOCK;
                let block = (from - self.inodes) * self.fragment / BLOCK;
                Part::Inodes(group * blocks + block)
            }
            Some(from) if from >= self.data => Part::Data,
            // What lies before a group's head is data, but in the first one.
            Some(from) if from >= self.head || group == 0 => Part::Head,
            _ => Part::Data,
        }
    }

    /// Returns the block in which an inode is.
    fn block_of(&self, ino: u64) -> u64 {
        let blocks = (self.data - self.inodes) * self.fragment / BLOCK;
        ino / self.count * blocks + ino % self.count * INODE / BLOCK
    }
}

/// A block of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Block {
    Inodes(u64),
    /// A file's, by where it begins.
    Data(u64),
    Head(u64),
}

/// The volume, and the kernel's cache.
pub(super) struct Bsd {
    on: Mounted,
    groups: Groups,
    /// Blocks that are in the cache, and those that wait for `update`.
    held: BTreeSet<Block>,
    delayed: BTreeSet<Block>,
    done: Done,
    clock: u64,
    seen: usize,
}

impl Bsd {
    pub(super) fn new() -> Result<Self> {
        let on = Mounted::new(&Preset::T300, "ffs1", MAKE, "sync")?;
        let groups = Groups::read(&on)?;
        Ok(Self {
            on,
            groups,
            held: BTreeSet::new(),
            delayed: BTreeSet::new(),
            done: Done::default(),
            clock: 0,
            seen: 0,
        })
    }

    /// Returns what the driver has written since it was asked last.
    fn written(&mut self) -> Vec<Request> {
        let mut new = self.on.requests(self.seen);
        self.seen += new.len();
        new.retain(|request| request.is_write);
        new
    }

    /// Writes as the kernel does what an operation has changed. `own` is the block of the node that it made
    /// or removed.
    fn change(&mut self, own: Option<u64>) -> Result<()> {
        let mut own = own;
        let mut names = BTreeSet::new();
        for written in self.written() {
            let (from, len) = (written.first * 512, written.sectors * 512);
            let block = match self.groups.part(from) {
                Part::Inodes(block) => {
                    if own == Some(block) {
                        own = None;
                        self.done.writes += 1;
                        self.held.insert(Block::Inodes(block));
                        continue;
                    }
                    Block::Inodes(block)
                }
                Part::Data if len < self.groups.fragment => {
                    // A directory's sector, once an operation.
                    if names.insert(from) {
                        self.done.writes += 1;
                    }
                    continue;
                }
                // The driver puts data of several files into a request; the kernel does not.
                Part::Data => continue,
                Part::Head => Block::Head(from / BLOCK),
            };
            self.held.insert(block);
            self.delayed.insert(block);
        }
        Ok(())
    }

    fn update(&mut self) {
        self.done.writes += self.delayed.len() as u64;
        self.delayed.clear();
    }

    /// Reads a block that is not in the cache.
    fn need(&mut self, block: Block) {
        if self.held.insert(block) {
            self.done.reads += 1;
        }
    }

    /// Reads the inode of a node, and then its blocks.
    fn need_node(&mut self, node: volary::NodeId, has_blocks: bool) -> Result<()> {
        let block = self.groups.block_of(node.ino.get());
        self.need(Block::Inodes(block));
        if has_blocks {
            for block in self.blocks(node)? {
                self.need(block);
            }
        }
        Ok(())
    }

    /// Returns the blocks of a file or directory.
    fn blocks(&mut self, node: volary::NodeId) -> Result<Vec<Block>> {
        let pieces = self.on.pieces(node)?;
        let each = |(at, len): (u64, u64)| {
            let froms = (0..len).step_by(BLOCK as usize);
            froms.map(move |from| Block::Data(at + from))
        };
        Ok(pieces.into_iter().flat_map(each).collect())
    }

    /// Reads what leads to a directory, and its entries.
    fn need_dir(&mut self, dir: &str) -> Result<()> {
        let root = self.on.root();
        self.need_node(root, true)?;
        let node = self.on.dir(dir)?;
        self.need_node(node, true)
    }
}

impl Rival for Bsd {
    fn create(&mut self, name: &str, len: usize) -> Result<()> {
        let dir = name.split_once('>').map_or(name, |(dir, _)| dir);
        self.need_dir(dir)?;
        self.written();
        self.on.create(name, len)?;
        let node = self.on.find(name)?;
        let own = self.groups.block_of(node.ino.get());
        self.need(Block::Inodes(own));
        for block in self.blocks(node)? {
            self.held.insert(block);
            self.delayed.insert(block);
        }
        self.change(Some(own))
    }

    fn replace(&mut self, name: &str, len: usize) -> Result<()> {
        self.delete(name)?;
        self.create(name, len)
    }

    fn look(&mut self, name: &str) -> Result<()> {
        let dir = name.split_once('>').map_or(name, |(dir, _)| dir);
        self.need_dir(dir)?;
        let node = self.on.find(name)?;
        self.need_node(node, false)
    }

    fn read(&mut self, name: &str) -> Result<usize> {
        let dir = name.split_once('>').map_or(name, |(dir, _)| dir);
        self.need_dir(dir)?;
        let node = self.on.find(name)?;
        self.need_node(node, true)?;
        self.on.read(name)
    }

    fn list(&mut self, dir: &str) -> Result<usize> {
        self.need_dir(dir)?;
        let nodes = self.on.list(dir)?;
        for node in &nodes {
            self.need_node(*node, false)?;
        }
        Ok(nodes.len())
    }

    fn delete(&mut self, name: &str) -> Result<()> {
        self.look(name)?;
        let node = self.on.find(name)?;
        self.written();
        self.on.unlink(name)?;
        let own = self.groups.block_of(node.ino.get());
        self.change(Some(own))
    }

    fn wait(&mut self, ms: u64) -> Result<()> {
        let before = self.clock / UPDATE;
        self.clock += ms;
        self.on.wait(ms);
        if self.clock / UPDATE > before {
            self.on.sync()?;
            self.change(None)?;
            self.update();
        }
        Ok(())
    }

    fn again(&mut self) -> Result<()> {
        self.on.sync()?;
        self.change(None)?;
        self.update();
        self.on.again()?;
        self.written();
        self.held.clear();
        Ok(())
    }

    fn done(&self) -> Done {
        self.done
    }
}
