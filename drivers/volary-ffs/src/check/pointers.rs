//! Phase 1: pointers out of range, and blocks with two owners. A repair loses no more than the
//! damage did. A pointer out of range becomes a hole, and a block with two owners is copied for the
//! second.

use super::findings::{Findings, finding};
use super::inodes::Inodes;
use super::likely;
use super::paths;
use super::plan::{Plan, Write};
use super::room::Room;
use crate::disk::ondisk::{DIRBLKSIZ, SF_SNAPSHOT};
use crate::inodes::blocks::{Block, Reader};
use crate::inodes::inode::Inode;
use crate::inodes::sweep::{Below, Pointer, Slot, sweep};
use std::collections::BTreeSet;
use std::ops::Range;
use volary_core::{FileKind, Finding, Result, Severity};

/// Pointers that one round repairs, over all inodes. The next round finds the rest.
const MENDED_MAX: usize = 1 << 16;

/// How many indirect blocks of an inode are remembered.
const INDIRECT_MAX: usize = 1 << 12;

/// One step in the repair of an inode.
#[derive(Clone, Copy, Debug)]
enum Fix {
    /// A pointer becomes a hole.
    Hole(Slot),
    /// A pointer leads to a copy of this block.
    Copy(Slot, Block),
    /// The indirect block that begins at this fragment is written again.
    Again(u64),
    /// The inode gets this size.
    End(u64),
    /// The inode gets the fields that it likely had.
    Likely(likely::Fields),
    /// The same, but only if the inode's entry agrees.
    IfNamed(likely::Fields),
    /// The inode has these flags.
    Flags(u32),
    /// The extended attributes are removed.
    Bare,
    /// The inode is freed.
    Free,
}

impl Fix {
    /// Returns whether this writes into an indirect block that another inode claims.
    fn writes_into_shared(&self, reader: &Reader<'_>, inodes: &Inodes) -> bool {
        let volume = reader.volume;
        match *self {
            Self::Hole(Slot::At(at)) | Self::Copy(Slot::At(at), _) => {
                inodes.is_shared(at / volume.fsize)
            }
            Self::Again(first) => {
                (first..first + volume.frag).any(|fragment| inodes.is_shared(fragment))
            }
            _ => false,
        }
    }
}

/// What is wrong with an inode.
struct Wrong {
    ino: u32,
    at: u64,
    code: &'static str,
    message: String,
    /// What the repair does, in words.
    repair: String,
    fixes: Vec<Fix>,
}

/// The wrong inodes that were found so far.
#[derive(Default)]
pub(super) struct Pointers {
    all: Vec<Wrong>,
    fixes: usize,
}

/// What an inode's pointers lead to.
#[derive(Default)]
pub(super) struct Taken {
    /// Fragments of blocks that are in range.
    pub(super) fragments: u64,
    /// The first fragment that was already taken.
    pub(super) twice: Option<u64>,
    /// Whether the inode may have blocks that are not counted.
    pub(super) is_wrong: bool,
}

/// The results of sweeping one inode.
#[derive(Default)]
struct Swept {
    taken: Taken,
    /// The first pointer that is out of range, in words, and how many there are.
    first_bad: Option<String>,
    bad: u64,
    /// The file's blocks behind the last consecutive pointers that are out of range.
    bad_blocks: Range<u64>,
    /// The file's size, if its last block merely has too many fragments.
    piece_end: Option<u64>,
    holes: Vec<Fix>,
    again: Vec<Fix>,
    /// How many fragments were already taken.
    twice: u64,
    shared: Vec<Fix>,
    /// The first fragments of its indirect blocks, as far as they are remembered.
    indirect: BTreeSet<u64>,
}

impl Pointers {
    /// Takes the blocks that an inode's pointers lead to, and notes which pointers are wrong.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn take(
        &mut self,
        reader: &Reader<'_>,
        inode: &Inode,
        inodes: &mut Inodes,
    ) -> Result<Taken> {
        let mut swept = Swept::default();
        sweep(reader, inode, &mut |pointer: &Pointer| {
            let held = swept.holes.len() + swept.again.len() + swept.shared.len();
            let room = self.fixes + held < MENDED_MAX;
            Ok(match &pointer.block {
                Ok(block) if !pointer.is_junk => swept.good(reader, pointer, block, inodes, room),
                _ => swept.bad(reader, inode, pointer, room),
            })
        })?;
        self.bad(reader, inode, &mut swept);
        if let Some(first) = swept.taken.twice {
            let (ino, count) = (inode.ino, swept.twice);
            let message = format!(
                "inode {ino}: {count} of its fragments belong to others too, the first is {first}"
            );
            let repair = shared_repair(&swept.shared);
            self.note(inode, "duplicate-blocks", message, repair, swept.shared);
        }
        Ok(swept.taken)
    }

    /// Notes contradictory fields of an inode, with their likely values.
    pub(super) fn fields(
        &mut self,
        inode: &Inode,
        code: &'static str,
        message: String,
        fields: likely::Fields,
    ) {
        let fix = Fix::Likely(fields);
        self.note(inode, code, message, fields.to_string(), vec![fix]);
    }

    /// Notes a directory whose content is not one. It counts as a file if its entry says so. On a
    /// volume without types in entries, its size decides.
    pub(super) fn no_directory(&mut self, reader: &Reader<'_>, inode: &Inode) {
        let message = format!("inode {}, a directory, holds none", inode.ino);
        let fields = likely::Fields::of_kind(inode, FileKind::File);
        let is_sure = !reader.volume.has_types && !inode.size.is_multiple_of(DIRBLKSIZ as u64);
        let fix = match is_sure {
            true => Fix::Likely(fields),
            false => Fix::IfNamed(fields),
        };
        self.note(inode, "inode", message, fields.to_string(), vec![fix]);
    }

    /// Notes an invalid inode that holds nothing. The repair frees it.
    pub(super) fn nothing(&mut self, inode: &Inode, message: String) {
        let repair = "the inode is freed".to_owned();
        self.note(inode, "inode", message, repair, vec![Fix::Free]);
    }

    /// Notes a snapshot that the superblock does not know.
    pub(super) fn no_snapshot(&mut self, inode: &Inode) {
        let message = format!("inode {} says that it is a snapshot", inode.ino);
        let fix = Fix::Flags(inode.flags & !SF_SNAPSHOT);
        self.note(inode, "flags", message, String::new(), vec![fix]);
    }

    /// Notes an inode with invalid extended attributes.
    pub(super) fn bare(&mut self, inode: &Inode, message: String) {
        self.note(inode, "attributes", message, String::new(), vec![Fix::Bare]);
    }

    /// Notes the first owner of blocks that other inodes claim too. It keeps them.
    pub(super) fn shared(&mut self, inode: &Inode, message: String) {
        self.note(inode, "shared-blocks", message, String::new(), Vec::new());
    }

    /// Notes pointers of one inode that are out of range.
    fn bad(&mut self, reader: &Reader<'_>, inode: &Inode, swept: &mut Swept) {
        let mut fixes = std::mem::take(&mut swept.again);
        let message = match swept.first_bad.take() {
            Some(first) if swept.bad > 1 => {
                format!("{first}; {} more of its pointers are wrong", swept.bad - 1)
            }
            Some(first) => first,
            None if fixes.is_empty() => return,
            None => format!("an indirect block of inode {} cannot be read", inode.ino),
        };
        let mut repair = match swept.holes.len() {
            0 => String::new(),
            1 => "the pointer becomes a hole".to_owned(),
            holes => format!("{holes} pointers become holes"),
        };
        if !fixes.is_empty() {
            repair = join(
                &repair,
                "what cannot be read of the indirect block becomes holes",
            );
        }
        fixes.append(&mut swept.holes);
        if let Some((words, fix)) = swept.end(reader, inode) {
            // Apparent pointers of a symlink may be its target.
            if inode.kind() == Some(FileKind::Symlink) {
                (repair, fixes) = (String::new(), Vec::new());
            }
            repair = join(&repair, &words);
            fixes.push(fix);
        }
        self.note(inode, "bad-block", message, repair, fixes);
    }

    fn note(
        &mut self,
        inode: &Inode,
        code: &'static str,
        message: String,
        repair: String,
        fixes: Vec<Fix>,
    ) {
        self.fixes += fixes.len();
        self.all.push(Wrong {
            ino: inode.ino,
            at: inode.at,
            code,
            message,
            repair,
            fixes,
        });
    }

    /// Reports all wrong inodes with their paths, and plans the repairs. All inodes must have been
    /// visited before.
    ///
    /// # Errors
    /// `Interrupted`.
    pub(super) fn tell(
        self,
        reader: &Reader<'_>,
        inodes: &mut Inodes,
        findings: &mut Findings<'_>,
        plan: &mut Plan,
    ) -> Result<()> {
        let wanted: BTreeSet<u32> = self.all.iter().map(|wrong| wrong.ino).collect();
        let named = paths::of(reader, inodes, &wanted, findings)?;
        let mut room = Room::new(reader);
        for mut wrong in self.all {
            let named = named.get(&wrong.ino);
            if !wrong.settle(named.and_then(|named| named.kind), inodes) {
                continue;
            }
            if wrong.is_of_blocks() {
                plan.unsettled.insert(wrong.ino);
                // What look like its indirect blocks may be content of other files.
                if let Some(mend) = plan.inodes.get_mut(&wrong.ino) {
                    mend.cut = false;
                }
            }
            wrong.spare_shared(reader, inodes);
            let told = Finding {
                code: wrong.code,
                path: named.map(|named| named.path.clone()),
                repair: wrong.repair,
                ..finding(Severity::Damage, wrong.at, wrong.message)
            };
            let Some(copies) = copies(&wrong.fixes, inodes, &mut room) else {
                findings.tell_only(&Finding {
                    message: format!("{}; there is no room for a copy", told.message),
                    ..told
                });
                continue;
            };
            if findings.tell(&told) {
                let mut copies = copies.into_iter();
                for fix in wrong.fixes {
                    apply(reader, wrong.ino, fix, &mut copies, plan);
                }
            }
        }
        Ok(())
    }
}

impl Wrong {
    /// Returns whether the finding is about the ownership of blocks.
    fn is_of_blocks(&self) -> bool {
        ["bad-block", "duplicate-blocks", "shared-blocks"].contains(&self.code)
    }

    /// Drops fixes that write into a block with two claims, because the other inode may have
    /// content there. A later round does them, when each inode has its own block.
    fn spare_shared(&mut self, reader: &Reader<'_>, inodes: &Inodes) {
        let count = self.fixes.len();
        self.fixes
            .retain(|fix| !fix.writes_into_shared(reader, inodes));
        // The inode's end is known only when all its pointers are.
        if self.fixes.len() < count {
            self.fixes.retain(|fix| !matches!(fix, Fix::End(_)));
        }
    }

    /// Takes the kind that the entry states into account. Returns whether anything is still wrong.
    fn settle(&mut self, named: Option<FileKind>, inodes: &mut Inodes) -> bool {
        for fix in &mut self.fixes {
            match *fix {
                Fix::IfNamed(fields) if named != fields.kind() => return false,
                Fix::IfNamed(fields) => *fix = Fix::Likely(fields),
                _ => {}
            }
            let Fix::Likely(fields) = fix else { continue };
            fields.is_named(named);
            self.repair = fields.to_string();
            inodes.likely.insert(self.ino, *fields);
            if let Some(seen) = inodes.all.get_mut(&self.ino) {
                seen.kind = fields.kind().unwrap_or(seen.kind);
            }
        }
        true
    }
}

impl Swept {
    /// Takes the block of a pointer that is in range.
    fn good(
        &mut self,
        reader: &Reader<'_>,
        pointer: &Pointer,
        block: &Block,
        inodes: &mut Inodes,
        room: bool,
    ) -> Below {
        self.taken.fragments += block.fragments;
        if pointer.is_unreadable {
            self.taken.is_wrong = true;
            self.again.extend(room.then_some(Fix::Again(block.first)));
        }
        let twice = claim(inodes, block);
        let Some(&first) = twice.first() else {
            if !block.is_data && self.indirect.len() < INDIRECT_MAX {
                self.indirect.insert(block.first);
            }
            return Below::Go;
        };
        // The blocks below an indirect block are checked once it has been copied.
        self.taken.is_wrong |= !block.is_data;
        self.twice += twice.len() as u64;
        self.taken.twice.get_or_insert(first);
        // An indirect block of the same inode is neither its content nor its own parent.
        let is_own = self.indirect.contains(&block.first);
        if !is_own {
            twice
                .into_iter()
                .for_each(|fragment| inodes.share(fragment));
        }
        let fix = match is_own || is_format(reader, block) {
            true => Fix::Hole(pointer.slot),
            false => Fix::Copy(pointer.slot, *block),
        };
        self.shared.extend(room.then_some(fix));
        Below::Skip
    }

    /// Notes a pointer that is out of range.
    fn bad(&mut self, reader: &Reader<'_>, inode: &Inode, pointer: &Pointer, room: bool) -> Below {
        self.taken.is_wrong = true;
        self.bad += 1;
        self.first_bad.get_or_insert_with(|| match &pointer.block {
            Err(e) => e.to_string(),
            Ok(block) => format!(
                "di_ib (inode {}): nothing in the indirect block at fragment {} is a pointer",
                inode.ino, block.first
            ),
        });
        match self.bad_blocks.end == pointer.blocks.start && !self.bad_blocks.is_empty() {
            true => self.bad_blocks.end = pointer.blocks.end,
            false => self.bad_blocks = pointer.blocks.clone(),
        }
        self.piece_end = piece_end(reader, inode, pointer, self.taken.fragments);
        if self.piece_end.is_none() {
            self.holes.extend(room.then_some(Fix::Hole(pointer.slot)));
        }
        Below::Skip
    }

    /// Returns how an inode is truncated whose last pointers are out of range, also in words. A
    /// file must not end in a hole. The end of a directory is determined with its entries.
    fn end(&self, reader: &Reader<'_>, inode: &Inode) -> Option<(String, Fix)> {
        let bsize = reader.volume.bsize;
        let ends = |size| (format!("it ends after {size} bytes"), Fix::End(size));
        if let Some(size) = self.piece_end {
            return Some(ends(size));
        }
        if self.bad_blocks.is_empty() {
            return None;
        }
        match inode.kind() {
            Some(FileKind::Symlink) => {
                let sectors = self.taken.fragments * (reader.volume.fsize / 512);
                let text = inode.text_len(reader.volume);
                let text = text.filter(|_| sectors == inode.blocks);
                Some(text.map_or_else(|| ("the symlink is freed".to_owned(), Fix::Free), ends))
            }
            Some(FileKind::File) if self.bad_blocks.end >= inode.size.div_ceil(bsize) => {
                Some(ends(self.bad_blocks.start * bsize))
            }
            _ => None,
        }
    }
}

fn join(one: &str, other: &str) -> String {
    match one.is_empty() {
        true => other.to_owned(),
        false => format!("{one}, {other}"),
    }
}

/// Returns in words what the repair of shared blocks does.
fn shared_repair(fixes: &[Fix]) -> String {
    let is_hole = |fix: &&Fix| matches!(fix, Fix::Hole(_));
    let holes = fixes.iter().filter(is_hole).count();
    match (holes, fixes.len() - holes) {
        (0, _) => "it gets a copy of its own".to_owned(),
        (_, 0) => "what holds no content becomes a hole".to_owned(),
        _ => "it gets a copy of its own, and holes for what holds no content".to_owned(),
    }
}

/// Takes a block's fragments. Returns those that were already taken.
fn claim(inodes: &mut Inodes, block: &Block) -> Vec<u64> {
    let its = block.first..block.first + block.fragments;
    its.filter(|&fragment| !inodes.take(fragment)).collect()
}

/// Returns whether part of a block belongs to the format, and thus cannot be file content.
fn is_format(reader: &Reader<'_>, block: &Block) -> bool {
    let volume = reader.volume;
    let summaries = volume.csaddr..volume.csaddr + volume.cssize.div_ceil(volume.fsize);
    (block.first..block.first + block.fragments).any(|fragment| {
        let (first, end) = volume.reserved(volume.group_of(fragment));
        (first..end).contains(&fragment) || summaries.contains(&fragment)
    })
}

/// Returns the size of an inode whose last block would, by its size, cross a block's border or the
/// volume's end. The inode's count of sectors tells how many fragments that block has.
fn piece_end(reader: &Reader<'_>, inode: &Inode, pointer: &Pointer, before: u64) -> Option<u64> {
    let volume = reader.volume;
    let Slot::Direct(at) = pointer.slot else {
        return None;
    };
    let counted = (inode.blocks / (volume.fsize / 512)).saturating_sub(before);
    let room = volume.frag - pointer.first % volume.frag;
    let is_last = (at as u64 + 1) * volume.bsize >= inode.size && inode.ib == [0; 3];
    let fits =
        (1..=room).contains(&counted) && pointer.first.saturating_add(counted) <= volume.size;
    let end = counted
        .checked_mul(volume.fsize)?
        .checked_add(at as u64 * volume.bsize)?;
    (is_last && fits && end < inode.size).then_some(end)
}

/// Allocates the copies that `fixes` make. Returns `None` if there is too little room.
fn copies(fixes: &[Fix], inodes: &mut Inodes, room: &mut Room<'_>) -> Option<Vec<u64>> {
    let blocks = fixes.iter().filter_map(|fix| match fix {
        Fix::Copy(_, block) => Some(block.fragments),
        _ => None,
    });
    blocks.map(|count| room.take(inodes, count)).collect()
}

fn apply(
    reader: &Reader<'_>,
    ino: u32,
    fix: Fix,
    copies: &mut impl Iterator<Item = u64>,
    plan: &mut Plan,
) {
    let fsize = reader.volume.fsize;
    let (slot, to) = match fix {
        Fix::End(size) => {
            plan.inode(ino).size = Some(size);
            return;
        }
        Fix::Again(first) => {
            let (at, len) = (first * fsize, reader.volume.bsize);
            plan.pointers.push(Write::Again { at, len });
            return;
        }
        Fix::Likely(fields) | Fix::IfNamed(fields) => {
            plan.inode(ino).likely = Some(fields);
            return;
        }
        Fix::Flags(flags) => {
            plan.inode(ino).flags = Some(flags);
            return;
        }
        Fix::Bare => {
            plan.inode(ino).bare = true;
            return;
        }
        Fix::Free => {
            plan.inode(ino).free = true;
            return;
        }
        Fix::Hole(slot) => (slot, 0),
        Fix::Copy(slot, block) => {
            let Some(first) = copies.next() else { return };
            let (from, to) = (block.first * fsize, first * fsize);
            let len = block.fragments * fsize;
            plan.copies.push(Write::Copy { from, to, len });
            (slot, first)
        }
    };
    match slot {
        Slot::At(at) => plan.pointers.push(Write::Pointer { at, to }),
        _ => plan.inode(ino).pointers.push((slot, to)),
    }
}
