//! Phase 1, pointers out of range and blocks with two owners. No more is taken than the damage: a
//! pointer that leads nowhere becomes a hole, a block that two claim is copied for the second.

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

/// Pointers that a round mends, of all inodes together; the next round finds the rest.
const MENDED_MAX: usize = 1 << 16;

/// How many indirect blocks are remembered of an inode.
const INDIRECT_MAX: usize = 1 << 12;

/// How a part of an inode is mended.
#[derive(Clone, Copy, Debug)]
enum Fix {
    /// A pointer becomes a hole.
    Hole(Slot),
    /// A pointer leads to a copy of this block.
    Copy(Slot, Block),
    /// The indirect block that begins there is written again.
    Again(u64),
    /// The inode ends after so many bytes.
    End(u64),
    /// The inode is what its fields make it likely that it was.
    Likely(likely::Fields),
    /// The same, if the entry of the inode says so too.
    IfNamed(likely::Fields),
    /// The inode has these flags.
    Flags(u32),
    /// Its extended attributes go.
    Bare,
    /// The inode is freed.
    Free,
}

impl Fix {
    /// Returns whether it writes into an indirect block that another claims.
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
    /// What mending it does.
    repair: String,
    fixes: Vec<Fix>,
}

/// Inodes that are wrong, as far as they are known.
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
    /// The first of the fragments that were taken before.
    pub(super) twice: Option<u64>,
    /// Whether the inode may have blocks that are not counted.
    pub(super) is_wrong: bool,
}

/// One inode's sweep.
#[derive(Default)]
struct Swept {
    taken: Taken,
    /// The first pointer that is out of range, in words, and how many there are.
    first_bad: Option<String>,
    bad: u64,
    /// The last blocks of the file that pointers out of range lead to, one after the other.
    bad_blocks: Range<u64>,
    /// Where the file ends if only its last piece is too long.
    piece_end: Option<u64>,
    holes: Vec<Fix>,
    again: Vec<Fix>,
    /// How many fragments were taken before.
    twice: u64,
    shared: Vec<Fix>,
    /// Where its indirect blocks begin, as far as they are remembered.
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
                Ok(block) if !pointer.is_junk => swept.good(reader, pointer, block, (inodes, room)),
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
            self.note(inode, "duplicate-blocks", message, (repair, swept.shared));
        }
        Ok(swept.taken)
    }

    /// Notes fields of an inode that contradict the rest of it, and what they likely were.
    pub(super) fn fields(
        &mut self,
        inode: &Inode,
        code: &'static str,
        message: String,
        fields: likely::Fields,
    ) {
        let fix = Fix::Likely(fields);
        self.note(inode, code, message, (fields.to_string(), vec![fix]));
    }

    /// Notes a directory that holds nothing of one. It counts as a file if its name says so, or,
    /// where names say nothing, its size.
    pub(super) fn no_directory(&mut self, reader: &Reader<'_>, inode: &Inode) {
        let message = format!("inode {}, a directory, holds none", inode.ino);
        let fields = likely::Fields::of_kind(inode, FileKind::File);
        let is_sure = !reader.volume.has_types && !inode.size.is_multiple_of(DIRBLKSIZ as u64);
        let fix = match is_sure {
            true => Fix::Likely(fields),
            false => Fix::IfNamed(fields),
        };
        self.note(inode, "inode", message, (fields.to_string(), vec![fix]));
    }

    /// Notes an invalid inode that holds nothing. The repair frees it.
    pub(super) fn nothing(&mut self, inode: &Inode, message: String) {
        let repair = "the inode is freed".to_owned();
        self.note(inode, "inode", message, (repair, vec![Fix::Free]));
    }

    /// Notes a snapshot that the superblock does not know.
    pub(super) fn no_snapshot(&mut self, inode: &Inode) {
        let message = format!("inode {} says that it is a snapshot", inode.ino);
        let fix = Fix::Flags(inode.flags & !SF_SNAPSHOT);
        self.note(inode, "flags", message, (String::new(), vec![fix]));
    }

    /// Notes extended attributes that make no sense.
    pub(super) fn bare(&mut self, inode: &Inode, message: String) {
        self.note(
            inode,
            "attributes",
            message,
            (String::new(), vec![Fix::Bare]),
        );
    }

    /// Notes the first owner of blocks that have others too. It keeps them.
    pub(super) fn shared(&mut self, inode: &Inode, message: String) {
        self.note(inode, "shared-blocks", message, Default::default());
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
            // What looks like pointers of a symlink may be its target.
            if inode.kind() == Some(FileKind::Symlink) {
                (repair, fixes) = (String::new(), Vec::new());
            }
            repair = join(&repair, &words);
            fixes.push(fix);
        }
        self.note(inode, "bad-block", message, (repair, fixes));
    }

    fn note(
        &mut self,
        inode: &Inode,
        code: &'static str,
        message: String,
        (repair, fixes): (String, Vec<Fix>),
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

    /// Reports all of it, with paths, and plans what is to be mended. All inodes were seen before.
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
                // Its indirect blocks may be others' content.
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
    /// Returns whether it is about whose blocks are whose.
    fn is_of_blocks(&self) -> bool {
        ["bad-block", "duplicate-blocks", "shared-blocks"].contains(&self.code)
    }

    /// Leaves out what writes into a block that two claim: one of them may have content there. A
    /// later round does it, when each has a block of its own.
    fn spare_shared(&mut self, reader: &Reader<'_>, inodes: &Inodes) {
        let count = self.fixes.len();
        self.fixes
            .retain(|fix| !fix.writes_into_shared(reader, inodes));
        // Where the inode ends is known when all of its pointers are.
        if self.fixes.len() < count {
            self.fixes.retain(|fix| !matches!(fix, Fix::End(_)));
        }
    }

    /// Brings in the kind that an entry says; whether there is anything wrong then.
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
    /// Returns a pointer in range.
    fn good(
        &mut self,
        reader: &Reader<'_>,
        pointer: &Pointer,
        block: &Block,
        (inodes, room): (&mut Inodes, bool),
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
        // The blocks that an indirect one leads to are looked at when it has a copy.
        self.taken.is_wrong |= !block.is_data;
        self.twice += twice.len() as u64;
        self.taken.twice.get_or_insert(first);
        // What its own indirect blocks hold is not content, nor are they their own parents.
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

    /// Returns a pointer out of range.
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

    /// Returns how an inode ends whose last pointers are out of range, in words too. Files end in no hole;
    /// directories are looked at with their entries.
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

/// Returns what mending shared blocks does, in words.
fn shared_repair(fixes: &[Fix]) -> String {
    let is_hole = |fix: &&Fix| matches!(fix, Fix::Hole(_));
    let holes = fixes.iter().filter(is_hole).count();
    match (holes, fixes.len() - holes) {
        (0, _) => "it gets a copy of its own".to_owned(),
        (_, 0) => "what holds no content becomes a hole".to_owned(),
        _ => "it gets a copy of its own, and holes for what holds no content".to_owned(),
    }
}

/// Takes a block's fragments. Returns those that were taken before.
fn claim(inodes: &mut Inodes, block: &Block) -> Vec<u64> {
    let its = block.first..block.first + block.fragments;
    its.filter(|&fragment| !inodes.take(fragment)).collect()
}

/// Returns whether some of a block belongs to the format: it holds nothing of a file.
fn is_format(reader: &Reader<'_>, block: &Block) -> bool {
    let volume = reader.volume;
    let summaries = volume.csaddr..volume.csaddr + volume.cssize.div_ceil(volume.fsize);
    (block.first..block.first + block.fragments).any(|fragment| {
        let (first, end) = volume.reserved(volume.group_of(fragment));
        (first..end).contains(&fragment) || summaries.contains(&fragment)
    })
}

/// Returns where an inode ends whose last block has more fragments, by its size, than the pointer to it
/// leaves room for: after as many as the inode's count of sectors allows for it.
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

/// Returns room for the copies that `fixes` make; `None` if there is too little.
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
