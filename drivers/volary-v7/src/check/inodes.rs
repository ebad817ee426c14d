//! Phase 1: inodes, their sizes and their addresses.

use super::findings::{Findings, finding};
use super::plan::{Plan, Put};
use crate::change::alloc::Map;
use crate::disk::blocks::Reader;
use crate::disk::dir;
use crate::disk::inode::Inode;
use crate::disk::ondisk::{ADDRESSES, BAD_INO, ENTRY_LEN, ROOT_INO, TARGET_MAX};
use crate::disk::volume::DIR_MAX;
use std::collections::BTreeMap;
use std::ops::Range;
use volary_core::{FileKind, Finding, Result, Severity};

/// An inode that is in use.
pub(super) struct Seen {
    pub(super) kind: FileKind,
    pub(super) nlink: u16,
    pub(super) size: u64,
    /// Of a directory, the blocks that are its own: which of its blocks, and where it lies.
    pub(super) blocks: Vec<(u32, u32)>,
    /// Entries that lead to it, `.` and `..` apart.
    pub(super) names: u32,
    /// Of a directory, the one that holds it.
    pub(super) parent: u32,
    /// Of a directory, how many lie in it.
    pub(super) children: u32,
}

/// What a round has seen.
pub(super) struct Inodes {
    pub(super) all: BTreeMap<u32, Seen>,
    /// Blocks that an inode has.
    pub(super) owned: Map,
    count: u32,
}

impl Inodes {
    pub(super) fn files(&self) -> u64 {
        let files = self.all.values().filter(|seen| seen.kind != FileKind::Dir);
        files.count() as u64
    }

    pub(super) fn dirs(&self) -> u64 {
        self.all.len() as u64 - self.files()
    }

    /// Returns inodes that are free; of the first two, none ever is.
    pub(super) fn free(&self) -> u32 {
        let above = self.all.range(ROOT_INO + 1..).count();
        (self.count - ROOT_INO).saturating_sub(u32::try_from(above).unwrap_or(0))
    }

    /// Looks at all inodes.
    ///
    /// # Errors
    /// `Interrupted`; `Io`.
    pub(super) fn read(
        reader: Reader<'_>,
        findings: &mut Findings<'_>,
        plan: &mut Plan,
    ) -> Result<Self> {
        let volume = reader.volume;
        let mut phase = Phase {
            reader,
            findings,
            plan,
            inodes: Self {
                all: BTreeMap::new(),
                owned: Map::new(volume.blocks),
                count: volume.inodes,
            },
        };
        for ino in 1..=volume.inodes {
            if ino.is_multiple_of(256) {
                let (done, total) = (ino.into(), volume.inodes.into());
                phase.findings.progress("inodes", done, total)?;
            }
            phase.inode(ino)?;
        }
        Ok(phase.inodes)
    }
}

struct Phase<'a, 'b> {
    reader: Reader<'a>,
    findings: &'a mut Findings<'b>,
    plan: &'a mut Plan,
    inodes: Inodes,
}

/// Where an address is stored.
#[derive(Clone, Copy)]
enum Stored {
    Slot(usize),
    Indirect(u64),
}

/// What goes through the addresses of an inode knows of it.
struct Walk<'i> {
    inode: &'i Inode,
    /// Blocks up to its end.
    end: u64,
    is_dir: bool,
    blocks: Vec<(u32, u32)>,
    /// One behind the last block that it has.
    last: u64,
}

impl Phase<'_, '_> {
    fn inode(&mut self, ino: u32) -> Result<()> {
        let mut inode = self.reader.inode_as_it_is(ino.into())?;
        if inode.mode == 0 {
            if inode.nlink != 0 && ino != BAD_INO {
                let message = format!("inode {ino} is free, and says that it has links");
                self.plan.pointers |= self.tell("inode", Severity::Damage, inode.at, message) && {
                    self.plan.inode(ino).free = true;
                    true
                };
            }
            if ino != BAD_INO {
                return Ok(());
            }
        }
        if ino == BAD_INO {
            self.bad_file(&mut inode);
        }
        let kind = match inode.kind() {
            Some(kind) => kind,
            None => self.unknown(&mut inode)?,
        };
        let mut seen = Seen {
            kind,
            nlink: inode.nlink,
            size: inode.size,
            blocks: Vec::new(),
            names: 0,
            parent: 0,
            children: 0,
        };
        if inode.has_blocks() {
            (seen.size, seen.blocks) = self.content(&inode, kind)?;
        }
        self.inodes.all.insert(ino, seen);
        Ok(())
    }

    /// The blocks of inode 1 are bad, whatever it says of itself.
    fn bad_file(&mut self, inode: &mut Inode) {
        const MODE: u16 = 0o100_000;
        let is_other = inode.mode != 0 && inode.kind() != Some(FileKind::File);
        let message = "inode 1, which has the bad blocks, is no file".to_owned();
        if is_other && self.tell("inode", Severity::Damage, inode.at, message) {
            self.plan.pointers = true;
            self.plan.inode(BAD_INO).mode = Some(MODE);
        }
        inode.mode = MODE;
    }

    /// Tells of an inode of no known kind; it becomes a directory if it begins as one.
    fn unknown(&mut self, inode: &mut Inode) -> Result<FileKind> {
        let (ino, mode) = (inode.ino, inode.mode);
        let is_dir = ino == ROOT_INO || self.begins_as_dir(inode)?;
        let kind = if is_dir {
            FileKind::Dir
        } else {
            FileKind::File
        };
        let message = format!("inode {ino} is of no known kind: its mode is {mode:#o}");
        let bits = u16::try_from(kind.mode_bits()).unwrap_or(0);
        inode.mode = mode & 0o7777 | bits;
        if self.tell("inode", Severity::Damage, inode.at, message) {
            self.plan.pointers = true;
            self.plan.inode(ino).mode = Some(inode.mode);
        }
        Ok(kind)
    }

    fn begins_as_dir(&self, inode: &Inode) -> Result<bool> {
        let volume = self.reader.volume;
        let block = u64::from(inode.addr.first().copied().unwrap_or(0));
        if !volume.data().contains(&block) {
            return Ok(false);
        }
        let mut bytes = [0; ENTRY_LEN];
        self.reader.cache.read(block * volume.bsize, &mut bytes)?;
        let first = dir::parse(volume, 0, &bytes);
        Ok(first.ino == inode.ino && first.name == b".")
    }

    fn tell(&mut self, code: &'static str, severity: Severity, at: u64, message: String) -> bool {
        self.findings.tell(&Finding {
            code,
            ..finding(severity, at, message)
        })
    }

    /// Looks at size and addresses; gives the size that counts, and a directory's blocks.
    fn content(&mut self, inode: &Inode, kind: FileKind) -> Result<(u64, Vec<(u32, u32)>)> {
        let volume = self.reader.volume;
        let is_dir = kind == FileKind::Dir;
        let (most, unit) = match kind {
            FileKind::Dir => (DIR_MAX.min(volume.size_max()), ENTRY_LEN as u64),
            FileKind::Symlink => (TARGET_MAX, 1),
            _ => (volume.size_max(), 1),
        };
        let is_wrong = inode.size > most || !inode.size.is_multiple_of(unit);
        let size = inode.size.min(most) / unit * unit;
        let is_bad_file = inode.ino == BAD_INO;
        let mut walk = Walk {
            inode,
            end: match is_bad_file {
                true => u64::MAX,
                false => size.div_ceil(volume.bsize),
            },
            is_dir,
            blocks: Vec::new(),
            last: 0,
        };
        for slot in 0..ADDRESSES {
            let block = inode.addr.get(slot).copied().unwrap_or(0);
            self.address(&mut walk, Stored::Slot(slot), block, volume.span(slot))?;
        }
        let Walk { blocks, last, .. } = walk;
        if !is_wrong || is_bad_file {
            return Ok((size, blocks));
        }
        // It ends where its blocks end.
        let size = size.min(last * volume.bsize);
        let ino = inode.ino;
        let message = format!("inode {ino} says that it has {} bytes", inode.size);
        if self.tell("size", Severity::Damage, inode.at, message) {
            self.plan.pointers = true;
            self.plan.inode(ino).size = Some(size);
        }
        Ok((size, blocks))
    }

    /// Looks at an address and at what it leads to: the blocks `span` of the file.
    fn address(
        &mut self,
        walk: &mut Walk<'_>,
        stored: Stored,
        block: u32,
        span: Range<u64>,
    ) -> Result<()> {
        if block == 0 {
            return Ok(());
        }
        let (ino, at) = (walk.inode.ino, walk.inode.at);
        let volume = self.reader.volume;
        if !volume.data().contains(&block.into()) {
            let message = format!("inode {ino} leads to block {block}, which is none for data");
            let is_mended = self.tell("bad-block", Severity::Damage, at, message);
            self.mend(is_mended, walk, stored, Put::Hole);
            return Ok(());
        }
        if span.start >= walk.end {
            let message = format!("inode {ino} leads to block {block} behind its end");
            let is_mended = self.tell("beyond-end", Severity::Crash, at, message);
            self.mend(is_mended, walk, stored, Put::Hole);
            return Ok(());
        }
        let len = span.end - span.start;
        let below = match len {
            1 => Vec::new(),
            _ => self.reader.indirect(walk.inode, block)?,
        };
        if !self.can_be_indirect(&below) {
            let message = format!("inode {ino} leads to block {block}, which holds no addresses");
            let is_mended = self.tell("bad-block", Severity::Damage, at, message);
            self.mend(is_mended, walk, stored, Put::Hole);
            return Ok(());
        }
        if !self.inodes.owned.set(block.into(), true) {
            let message = format!("inode {ino} leads to block {block}, which another has");
            let is_mended = self.tell("duplicate-block", Severity::Damage, at, message);
            self.mend(is_mended, walk, stored, Put::Copy(block));
            walk.last = walk.last.max(span.start + 1);
            return Ok(());
        }
        if len == 1 {
            walk.last = walk.last.max(span.end);
            if walk.is_dir {
                let lbn = u32::try_from(span.start).unwrap_or(u32::MAX);
                walk.blocks.push((lbn, block));
            }
            return Ok(());
        }
        let each = len / volume.pointers();
        for (i, next) in below.into_iter().enumerate() {
            let start = span.start + each * i as u64;
            let place = Stored::Indirect(u64::from(block) * volume.bsize + 4 * i as u64);
            self.address(walk, place, next, start..start + each)?;
        }
        Ok(())
    }

    /// Returns whether what a block holds can be addresses: more of them lead to data than elsewhere. What is
    /// another's must not be mended as if it were.
    fn can_be_indirect(&self, addresses: &[u32]) -> bool {
        let data = self.reader.volume.data();
        let used = addresses.iter().filter(|block| **block != 0);
        let (good, bad): (Vec<u32>, Vec<u32>) = used.partition(|&&b| data.contains(&b.into()));
        bad.is_empty() || good.len() > bad.len()
    }

    fn mend(&mut self, is_mended: bool, walk: &Walk<'_>, stored: Stored, put: Put) {
        if !is_mended {
            return;
        }
        self.plan.pointers = true;
        match stored {
            Stored::Slot(slot) => {
                let fix = self.plan.inode(walk.inode.ino);
                fix.addresses.insert(slot, put);
            }
            Stored::Indirect(place) => self.plan.address(place, put),
        }
    }
}
