//! Phase 1, "Check Blocks and Sizes": which inodes are in use, and which fragments they own.

use super::ends;
use super::findings::{Findings, finding, wrong_hash};
use super::inodes::{Inodes, Seen};
use super::likely::{self, Fields};
use super::plan::{Plan, beyond};
use super::pointers::Pointers;
use crate::directory::dir::size_max;
use crate::disk::volume::Volume;
use crate::groups::cg::Group;
use crate::groups::scan::{Visitor, scan};
use crate::inodes::blocks::{Block, Reader};
use crate::inodes::inode::Inode;
use crate::inodes::xattr;
use std::collections::BTreeSet;
use volary_core::{FileKind, Finding, Kind, Result, Severity};

/// Checks all inodes and their blocks.
///
/// # Errors
/// `Interrupted`; `Io`; `TooBig` if there is not enough memory to note what is taken.
pub(super) fn check(
    reader: Reader<'_>,
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) -> Result<Inodes> {
    let mut phase = Phase {
        reader,
        findings,
        plan,
        inodes: Inodes::new(reader.volume)?,
        pointers: Pointers::default(),
        claimants: BTreeSet::new(),
    };
    scan(&reader, &mut phase)?;
    phase.first_owners()?;
    let Phase {
        mut inodes,
        pointers,
        ..
    } = phase;
    inodes.check_room()?;
    pointers.tell(&reader, &mut inodes, findings, plan)?;
    Ok(inodes)
}

struct Phase<'a, 'b> {
    reader: Reader<'a>,
    findings: &'a mut Findings<'b>,
    plan: &'a mut Plan,
    inodes: Inodes,
    pointers: Pointers,
    /// Inodes that claim fragments which an earlier inode had taken.
    claimants: BTreeSet<u32>,
}

impl Phase<'_, '_> {
    fn volume(&self) -> &Volume {
        self.reader.volume
    }

    /// Takes an inode's blocks. Returns how many sectors they are.
    fn blocks(&mut self, inode: &Inode) -> Result<u64> {
        let taken = self.pointers.take(&self.reader, inode, &mut self.inodes)?;
        if taken.twice.is_some() {
            self.claimants.insert(inode.ino);
        }
        self.inodes.is_partial |= taken.is_wrong;
        Ok(taken.fragments * (self.volume().fsize / 512))
    }

    /// Phase 1b: finds the first owners of fragments that later inodes claim as well.
    fn first_owners(&mut self) -> Result<()> {
        if !self.inodes.has_shared() {
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
            // Errors in its blocks have already been reported.
            _ = self.reader.blocks(&inode, &mut |block: Block| {
                let mut its = block.first..block.first + block.fragments;
                first = first.or_else(|| its.find(|&fragment| self.inodes.is_shared(fragment)));
                Ok(())
            });
            if let Some(first) = first {
                let message = format!("inode {ino} has fragments that others claim, as {first}");
                self.pointers.shared(&inode, message);
            }
        }
        Ok(())
    }

    /// Returns a directory's inode with the size at which its content ends, if its own size is
    /// wrong. Returns other inodes unchanged.
    ///
    /// `is_sound` says that the inode's fields do not contradict each other. Without that, a size
    /// beyond any directory's is not taken for a long directory.
    fn up_to_its_end(&mut self, inode: Inode, is_sound: bool) -> Result<Inode> {
        if inode.kind() != Some(FileKind::Dir) {
            return Ok(inode);
        }
        let end = match inode.size {
            0 => likely::end_of_empty(&self.reader, &inode)?,
            _ => ends::end(&self.reader, &inode)?,
        };
        let max = size_max(self.volume());
        let (end, message) = match end {
            Some(end) => (end, format!("and has blocks for {end}")),
            None if is_sound && inode.size > max => (max, "more than any directory has".into()),
            None => return Ok(inode),
        };
        let (ino, size) = (inode.ino, inode.size);
        let message = format!("directory {ino} says that it has {size} bytes, {message}");
        let fields = Fields::of_size(end);
        self.pointers
            .fields(&inode, "directory-size", message, fields);
        self.inodes.likely.insert(inode.ino, fields);
        Ok(fields.apply(&inode))
    }

    /// Takes the blocks of an inode and checks its count of them. `is_likely` says that the inode
    /// differs from the stored one.
    fn count(&mut self, inode: &Inode, is_likely: bool) -> Result<()> {
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
            self.pointers.no_snapshot(inode);
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
        if !self.inodes.is_partial && !is_likely && inode.has_blocks(self.volume()) {
            self.behind(inode)?;
        }
        if !self.inodes.is_partial && inode.extsize > 0 {
            self.attributes(inode)?;
        }
        self.inodes.is_partial |= was_partial;
        Ok(())
    }

    /// Checks the extended attributes. Errors in their blocks are reported with the other blocks.
    fn attributes(&mut self, inode: &Inode) -> Result<()> {
        match xattr::all(&self.reader, inode) {
            Err(e) if e == Kind::Corrupt => self.pointers.bare(inode, e.to_string()),
            all => return all.map(drop),
        }
        Ok(())
    }

    /// Looks for pointers behind the end of the file. If the file grew, they would lead to blocks
    /// of other files.
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

impl Phase<'_, '_> {
    /// Returns the inode as it likely was, if its fields contradict each other. Returns `None` if
    /// it holds nothing.
    fn likely(&mut self, inode: Inode, used: Option<bool>) -> Result<Option<Inode>> {
        let Some(e) = likely::contradiction(&self.reader, &inode, used) else {
            if likely::is_no_directory(&self.reader, &inode)? {
                self.pointers.no_directory(&self.reader, &inode);
            }
            return Ok(Some(inode));
        };
        let found = likely::of(&self.reader, &inode)?;
        let message = format!("inode {}: {e}", inode.ino);
        self.inodes.is_partial = true;
        match found {
            likely::Found::Fields(fields) => {
                self.pointers.fields(&inode, "inode", message, fields);
                self.inodes.likely.insert(inode.ino, fields);
                Ok(Some(fields.apply(&inode)))
            }
            likely::Found::Nothing => {
                self.pointers.nothing(&inode, message);
                Ok(None)
            }
        }
    }
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
        let wrong = likely::contradiction(&self.reader, &inode, used);
        let is_used = inode.mode != 0 || wrong.is_some();
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
        let inode = self.up_to_its_end(inode, wrong.is_none())?;
        let stored = inode.mode;
        let Some(inode) = self.likely(inode, used)? else {
            return Ok(());
        };
        let is_likely = inode.mode != stored;
        let volume = self.volume();
        if !volume.hashes.is_inode_right(volume.order, &inode.bytes) {
            let wanted = wrong_hash(self.findings, at, &format!("inode {ino}"));
            if wanted {
                // Writing the inode again is enough.
                self.plan.inode(ino);
            }
        }
        self.count(&inode, is_likely)?;
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
