//! Phase 1: which inodes are in use, and which fragments are theirs.

use super::ends;
use super::findings::{Findings, finding, wrong_hash};
use super::plan::{Plan, beyond};
use crate::blocks::{Block, Reader};
use crate::cg::Group;
use crate::inode::Inode;
use crate::map::reserved;
use crate::ondisk::SF_SNAPSHOT;
use crate::scan::{Visitor, scan};
use crate::volume::Volume;
use crate::xattr;
use std::collections::{BTreeMap, BTreeSet};
use volary_core::{Error, FileKind, Finding, Kind, Result, Severity};

/// An inode in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) kind: FileKind,
    /// Links that it says it has, and those that were found.
    pub(super) nlink: i16,
    pub(super) found: u32,
    /// The directory that holds a directory; 0 until one is found.
    pub(super) parent: u32,
}

/// What phase 1 finds out.
pub(super) struct Inodes {
    pub(super) all: BTreeMap<u32, Seen>,
    /// Where directories end whose sizes say too much.
    ends: BTreeMap<u32, u64>,
    /// A bit for each fragment: taken by the format or by an inode.
    taken: Vec<u64>,
    free: u64,
    /// Whether some of what inodes have could not be told.
    pub(super) is_partial: bool,
}

impl Inodes {
    /// # Errors
    /// `Interrupted`; `Io`.
    pub(super) fn read(
        reader: Reader<'_>,
        findings: &mut Findings<'_>,
        plan: &mut Plan,
    ) -> Result<Self> {
        let volume = reader.volume;
        let words = usize::try_from(volume.size.div_ceil(64)).unwrap_or(0);
        let mut inodes = Self {
            all: BTreeMap::new(),
            ends: BTreeMap::new(),
            taken: vec![0; words],
            free: volume.size,
            is_partial: false,
        };
        for group in 0..volume.ncg {
            let (first, end) = reserved(volume, group);
            inodes.take_system(first, end);
        }
        let summaries = volume.csaddr + volume.cssize.div_ceil(volume.fsize);
        inodes.take_system(volume.csaddr, summaries);
        let mut phase = Phase {
            reader,
            findings,
            plan,
            inodes,
            duplicates: volume.size,
            twice: BTreeSet::new(),
            claimants: BTreeSet::new(),
        };
        scan(&reader, &mut phase)?;
        phase.first_owners()?;
        Ok(phase.inodes)
    }

    /// An inode, of a directory whose size says too much as if it ended where it does.
    ///
    /// # Errors
    /// As of [`Reader::inode`].
    pub(super) fn inode(&self, reader: &Reader<'_>, ino: u32) -> Result<Inode> {
        let Some(&size) = self.ends.get(&ino) else {
            return reader.inode(ino.into());
        };
        let inode = reader.inode_as_it_is(ino.into())?;
        Inode { size, ..inode }.check(reader.volume)
    }

    fn take_system(&mut self, first: u64, end: u64) {
        for fragment in first..end {
            self.take(fragment);
        }
    }

    /// Whether it was not taken before.
    fn take(&mut self, fragment: u64) -> bool {
        let index = usize::try_from(fragment / 64).unwrap_or(usize::MAX);
        let bit = 1 << (fragment % 64);
        let Some(word) = self.taken.get_mut(index) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        self.free -= u64::from(is_new);
        is_new
    }

    pub(super) fn is_taken(&self, fragment: u64) -> bool {
        let index = usize::try_from(fragment / 64).unwrap_or(usize::MAX);
        let word = self.taken.get(index).copied().unwrap_or(u64::MAX);
        word >> (fragment % 64) & 1 == 1
    }

    pub(super) fn free_fragments(&self) -> u64 {
        self.free
    }

    pub(super) fn dirs(&self) -> u64 {
        let dirs = self.all.values().filter(|seen| seen.kind == FileKind::Dir);
        dirs.count() as u64
    }

    pub(super) fn files(&self) -> u64 {
        self.all.len() as u64 - self.dirs()
    }
}

struct Phase<'a, 'b> {
    reader: Reader<'a>,
    findings: &'a mut Findings<'b>,
    plan: &'a mut Plan,
    inodes: Inodes,
    /// Fragments that may be found twice before the rest is passed over.
    duplicates: u64,
    /// Some of these, and the inodes that were told to have taken them as well.
    twice: BTreeSet<u64>,
    claimants: BTreeSet<u32>,
}

/// Fragments with two owners that are remembered.
const TWICE_MAX: usize = 1 << 16;

impl Phase<'_, '_> {
    fn volume(&self) -> &Volume {
        self.reader.volume
    }

    /// An inode's blocks: sectors that it takes.
    fn blocks(&mut self, inode: &Inode) -> Result<u64> {
        let (mut fragments, mut twice) = (0, 0);
        let mut first_twice = 0;
        let (inodes, left) = (&mut self.inodes, &mut self.duplicates);
        let all_twice = &mut self.twice;
        let all = self.reader.blocks(inode, &mut |block: Block| {
            fragments += block.fragments;
            for fragment in block.first..block.first + block.fragments {
                if !inodes.take(fragment) {
                    first_twice = if twice == 0 { fragment } else { first_twice };
                    twice += 1;
                    if all_twice.len() < TWICE_MAX {
                        all_twice.insert(fragment);
                    }
                    *left = left.checked_sub(1).ok_or_else(too_many)?;
                }
            }
            Ok(())
        });
        if twice > 0 {
            self.claimants.insert(inode.ino);
            let message = format!(
                "inode {}: {twice} of its fragments belong to others too, the first is {first_twice}",
                inode.ino
            );
            let wanted = self.findings.tell(&Finding {
                code: "duplicate-blocks",
                ..finding(Severity::Damage, inode.at, message)
            });
            if wanted {
                self.plan.inode(inode.ino).free = true;
            }
        }
        match all {
            Err(e) if e != Kind::Corrupt => return Err(e),
            Err(e) => self.bad_block(inode, &e),
            Ok(()) => {}
        }
        Ok(fragments * (self.volume().fsize / 512))
    }

    /// Phase 1b: those that have what others claim as well.
    fn first_owners(&mut self) -> Result<()> {
        if self.twice.is_empty() {
            return Ok(());
        }
        let all: Vec<u32> = self.inodes.all.keys().copied().collect();
        for ino in all.into_iter().filter(|ino| !self.claimants.contains(ino)) {
            let inode = match self.inodes.inode(&self.reader, ino) {
                Err(e) if e == Kind::Io => return Err(e),
                inode => inode,
            };
            let Some(inode) = inode.ok().filter(|i| !i.is_snapshot(self.reader.volume)) else {
                continue;
            };
            let mut first = None;
            // What is wrong with its blocks was told.
            _ = self.reader.blocks(&inode, &mut |block: Block| {
                let its = block.first..block.first + block.fragments;
                first = first.or(self.twice.range(its).next().copied());
                Ok(())
            });
            if let Some(first) = first {
                let message = format!("inode {ino} has fragments that others claim, as {first}");
                self.findings.tell(&Finding {
                    code: "shared-blocks",
                    ..finding(Severity::Damage, inode.at, message)
                });
            }
        }
        Ok(())
    }

    fn bad_block(&mut self, inode: &Inode, e: &Error) {
        self.inodes.is_partial = true;
        let wanted = self.findings.tell(&Finding {
            code: "bad-block",
            ..finding(Severity::Damage, inode.at, e.to_string())
        });
        if wanted {
            self.plan.inode(inode.ino).free = true;
        }
    }

    /// A directory's inode up to where it ends, where its size says too much; any other as it is.
    fn up_to_its_end(&mut self, inode: Inode) -> Result<Inode> {
        if inode.kind() != Some(FileKind::Dir) {
            return Ok(inode);
        }
        let Some(end) = ends::end(&self.reader, &inode)? else {
            return Ok(inode);
        };
        let message = format!(
            "directory {} says that it has {} bytes, and has blocks for {end}",
            inode.ino, inode.size
        );
        let wanted = self.findings.tell(&Finding {
            code: "directory-size",
            ..finding(Severity::Damage, inode.at, message)
        });
        if wanted {
            self.plan.inode(inode.ino).size = Some(end);
        }
        self.inodes.ends.insert(inode.ino, end);
        Ok(Inode { size: end, ..inode })
    }

    fn count(&mut self, inode: &Inode) -> Result<()> {
        if inode.is_snapshot(self.volume()) && self.volume().has_snapshot(inode.ino) {
            self.inodes.is_partial = true;
            let message = format!(
                "inode {} is a snapshot; its blocks are not looked at",
                inode.ino
            );
            self.findings.tell(&Finding {
                code: "snapshot",
                ..finding(Severity::Note, inode.at, message)
            });
            return Ok(());
        }
        if inode.is_snapshot(self.volume()) {
            self.false_snapshot(inode);
        }
        let was_partial = std::mem::take(&mut self.inodes.is_partial);
        let sectors = self.blocks(inode)?;
        if !self.inodes.is_partial && sectors != inode.blocks {
            let message = format!(
                "inode {} takes {sectors} sectors, and says {}",
                inode.ino, inode.blocks
            );
            let wanted = self.findings.tell(&Finding {
                code: "block-count",
                ..finding(Severity::Crash, inode.at, message)
            });
            if wanted {
                self.plan.inode(inode.ino).blocks = Some(sectors);
            }
        }
        if !self.inodes.is_partial && inode.has_blocks(self.volume()) {
            self.behind(inode)?;
        }
        if !self.inodes.is_partial && inode.extsize > 0 {
            self.attributes(inode)?;
        }
        self.inodes.is_partial |= was_partial;
        Ok(())
    }

    /// A snapshot that the superblock does not know.
    fn false_snapshot(&mut self, inode: &Inode) {
        let message = format!("inode {} says that it is a snapshot", inode.ino);
        let wanted = self.findings.tell(&Finding {
            code: "flags",
            ..finding(Severity::Damage, inode.at, message)
        });
        if wanted {
            self.plan.inode(inode.ino).flags = Some(inode.flags & !SF_SNAPSHOT);
        }
    }

    /// Extended attributes that make no sense. Those whose blocks do not are a matter of blocks.
    fn attributes(&mut self, inode: &Inode) -> Result<()> {
        let e = match xattr::all(&self.reader, inode) {
            Err(e) if e == Kind::Corrupt => e,
            all => return all.map(drop),
        };
        let wanted = self.findings.tell(&Finding {
            code: "attributes",
            ..finding(Severity::Damage, inode.at, e.to_string())
        });
        if wanted {
            self.plan.inode(inode.ino).bare = true;
        }
        Ok(())
    }

    /// Pointers behind the end: would the file grow, they would lead to what is others'.
    fn behind(&mut self, inode: &Inode) -> Result<()> {
        let found = match beyond(&self.reader, inode) {
            Err(e) if e == Kind::Corrupt => return Ok(()),
            found => found?,
        };
        if found.is_empty() {
            return Ok(());
        }
        let message = format!("inode {} has blocks behind its end", inode.ino);
        let wanted = self.findings.tell(&Finding {
            code: "beyond-end",
            ..finding(Severity::Crash, inode.at, message)
        });
        if wanted {
            self.plan.inode(inode.ino).cut = true;
        }
        Ok(())
    }
}

fn too_many() -> Error {
    let expected = "each fragment in one file";
    Error::corrupt(
        "blocks",
        0,
        "more duplicates than the volume has fragments",
        expected,
    )
}

impl Visitor for Phase<'_, '_> {
    fn group(&mut self, number: u64, group: &Result<Group>) -> Result<()> {
        self.findings
            .progress("groups", number, self.volume().ncg)?;
        if let Err(e) = group {
            let at = self.volume().head_at(number);
            self.plan.maps |= self.findings.tell(&Finding {
                code: "group",
                ..finding(
                    Severity::Damage,
                    at,
                    format!("cylinder group {number}: {e}"),
                )
            });
        }
        Ok(())
    }

    fn inode(&mut self, inode: Inode, used: Option<bool>) -> Result<()> {
        let (at, ino) = (inode.at, inode.ino);
        let is_used = inode.mode != 0;
        if used.is_some_and(|used| used != is_used) {
            let words = if is_used {
                "in use, and free"
            } else {
                "free, and in use"
            };
            let message = format!("inode {ino} is {words} in its group's map");
            self.plan.maps |= self.findings.tell(&Finding {
                code: "inode-map",
                ..finding(Severity::Crash, at, message)
            });
        }
        if !is_used {
            return Ok(());
        }
        let inode = self.up_to_its_end(inode)?;
        let inode = match inode.check(self.reader.volume) {
            Ok(inode) => inode,
            Err(e) => {
                self.inodes.is_partial = true;
                let wanted = self.findings.tell(&Finding {
                    code: "inode",
                    ..finding(Severity::Damage, at, format!("inode {ino}: {e}"))
                });
                if wanted {
                    self.plan.inode(ino).free = true;
                }
                return Ok(());
            }
        };
        let volume = self.volume();
        if !volume.hashes.is_inode_right(volume.order, &inode.bytes) {
            let wanted = wrong_hash(self.findings, at, &format!("inode {ino}"));
            if wanted {
                // To be written again is enough.
                self.plan.inode(ino);
            }
        }
        self.count(&inode)?;
        let seen = Seen {
            kind: inode.kind().unwrap_or(FileKind::File),
            nlink: inode.nlink,
            found: 0,
            parent: 0,
        };
        self.inodes.all.insert(ino, seen);
        Ok(())
    }
}
