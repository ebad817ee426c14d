//! Phases 2 and 3: path names and connectivity.

mod same;
mod twins;

use super::chunk::{Chunk, Salvage};
use super::findings::{Findings, finding};
use super::inodes::{Inodes, Seen};
use super::likely::{self, Fields};
use super::lost;
use super::paths;
use super::plan::{Entry as Change, Plan};
use crate::directory::dir::{self, DAMAGE_MAX, Dir, Entry};
use crate::disk::ondisk::{DIRBLKSIZ, UFS_ROOTINO};
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use volary_core::{Error, FileKind, Finding, Kind, Name, Result, Severity};

/// Byte ranges of a directory.
type Ranges = Vec<Range<u64>>;

/// How many names of directories are noted, to choose among several of one directory. Beyond this,
/// the first name counts as right.
const TWINS_MAX: usize = 1 << 22;

/// Walks the tree from the root, and reports directories that the walk did not reach.
///
/// # Errors
/// `Interrupted`; `Io`.
pub(super) fn check(
    reader: Reader<'_>,
    inodes: &mut Inodes,
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) -> Result<()> {
    let mut names = Names {
        reader,
        inodes,
        findings,
        plan,
        tops: HashSet::new(),
        done: 0,
        paths: HashMap::new(),
        parents: HashMap::new(),
        twins: HashMap::new(),
        twins_left: TWINS_MAX,
        bytes_left: reader.volume.size.saturating_mul(reader.volume.fsize),
        revived: Vec::new(),
        present: HashSet::new(),
    };
    let root = names.inodes.all.get(&UFS_ROOTINO);
    if root.is_some_and(|seen| seen.kind == FileKind::Dir) {
        names.meet(UFS_ROOTINO, UFS_ROOTINO);
        names.walk(UFS_ROOTINO)?;
    }
    names.unconnected()?;
    names.names_of_directories();
    names.names_too_many();
    Ok(())
}

struct Names<'a, 'b> {
    reader: Reader<'a>,
    inodes: &'a mut Inodes,
    findings: &'a mut Findings<'b>,
    plan: &'a mut Plan,
    /// Unreachable directories that no other unreachable directory holds.
    tops: HashSet<u32>,
    /// Directories that were checked.
    done: u64,
    /// The parent of each directory that was reached, and its name there.
    paths: HashMap<u32, (u32, Vec<u8>)>,
    /// The target of each directory's `..`, and where that entry is.
    parents: HashMap<u32, (u32, u64)>,
    /// Names of each directory: the directory that has the name, and where in it.
    twins: HashMap<u32, Vec<(u32, u64)>>,
    /// How many more names may be noted.
    twins_left: usize,
    /// How many more bytes directories can have. Each byte of the volume belongs to one at most.
    bytes_left: u64,
    /// Names found behind damage: the inode, the directory, and where in it.
    revived: Vec<(u32, u32, u64)>,
    /// The names of the directory that is being checked.
    present: HashSet<Vec<u8>>,
}

impl Names<'_, '_> {
    /// Notes that `parent` holds the directory `ino`. Returns whether it is the first parent.
    fn meet(&mut self, ino: u32, parent: u32) -> bool {
        match self.inodes.all.get_mut(&ino) {
            Some(seen) if seen.parent == 0 => {
                seen.parent = parent;
                true
            }
            _ => false,
        }
    }

    fn is_met(&self, ino: u32) -> bool {
        self.inodes
            .all
            .get(&ino)
            .is_some_and(|seen| seen.parent != 0)
    }

    /// Returns the path of a directory, or of a name in it.
    fn path(&self, dir: u32, name: Option<&[u8]>) -> Vec<u8> {
        paths::path(&self.paths, dir, name)
    }

    /// Reports a finding at this path. Returns whether it is to be repaired.
    fn tell(&mut self, path: Vec<u8>, finding: Finding) -> bool {
        self.findings.tell(&Finding {
            path: Some(path),
            ..finding
        })
    }

    /// Checks a directory and all below it.
    fn walk(&mut self, from: u32) -> Result<()> {
        let mut todo = vec![from];
        while let Some(ino) = todo.pop() {
            self.done += 1;
            self.findings.progress("directories", self.done, 0)?;
            self.directory(ino, &mut todo)?;
        }
        Ok(())
    }

    /// Checks one directory.
    fn directory(&mut self, ino: u32, todo: &mut Vec<u32>) -> Result<()> {
        let inode = match self.inodes.inode(&self.reader, ino) {
            Ok(inode) => inode,
            Err(e) if e == Kind::Io => return Err(e),
            // Phase 1 has reported it.
            Err(_) => return Ok(()),
        };
        let mut dir = match Dir::new(self.reader, &inode) {
            // Phase 1 has reported its size.
            Err(e) if e == Kind::Corrupt => return Ok(()),
            dir => dir?,
        };
        self.size(&inode);
        let (holes, unread) = self.holes(&inode)?;
        if !self.has_room(&inode, &holes, &unread) {
            return Ok(());
        }
        self.present.clear();
        let mut gaps = holes.iter().chain(&unread).peekable();
        let (mut at, mut dots, mut damaged) = (0, 0, 0);
        while at < inode.size && damaged < DAMAGE_MAX {
            self.findings.progress("directories", self.done, 0)?;
            while gaps.next_if(|gap| gap.end <= at).is_some() {}
            if let Some(gap) = gaps.peek().filter(|gap| gap.contains(&at)) {
                at = gap.end;
                continue;
            }
            match dir.entry(at) {
                Ok(None) => break,
                Ok(Some(entry)) => {
                    at = entry.end;
                    self.one(&inode, &entry, &mut dots, todo)?;
                }
                Err(e) if e == Kind::Corrupt => {
                    self.bad_chunk(&inode, at, &e, &mut dots, todo)?;
                    damaged += 1;
                    at = Dir::next_chunk(at);
                }
                Err(e) => return Err(e),
            }
        }
        let is_first_there = [&holes, &unread]
            .iter()
            .all(|all| all.first().is_none_or(|hole| hole.start > 0));
        if dots != 2 && unread.is_empty() {
            self.no_dots(&inode, dots, is_first_there)?;
        }
        Ok(())
    }

    /// Returns whether the volume has enough bytes for this directory beside those that were
    /// already checked.
    fn has_room(&mut self, dir: &Inode, holes: &Ranges, unread: &Ranges) -> bool {
        let gaps = holes.iter().chain(unread);
        let gaps = gaps.map(|gap| gap.end - gap.start).sum::<u64>();
        let left = self.bytes_left.checked_sub(dir.size.saturating_sub(gaps));
        if let Some(left) = left {
            self.bytes_left = left;
            return true;
        }
        let message = "the directory has blocks of others, over and over; it is not gone through";
        self.findings.tell_only(&Finding {
            code: "directory-size",
            path: Some(self.path(dir.ino, None)),
            ..finding(Severity::Damage, dir.at, message)
        });
        false
    }

    /// Checks an entry, if it is in use. Returns whether it counts as a name of its inode.
    fn one(
        &mut self,
        dir: &Inode,
        entry: &Entry<'_>,
        dots: &mut u32,
        todo: &mut Vec<u32>,
    ) -> Result<bool> {
        if !entry.is_used() {
            return Ok(false);
        }
        if !entry.is_dots() {
            return self.entry(dir, entry, todo);
        }
        if *dots == 2 {
            self.more_dots(dir, entry.name, entry.at);
            return Ok(false);
        }
        *dots += 1;
        self.dots(dir, entry);
        Ok(false)
    }

    /// Reports a directory without `.` and `..`. The repair puts them in their places.
    fn no_dots(&mut self, dir: &Inode, dots: u32, is_first_there: bool) -> Result<()> {
        let message = format!("the directory has {dots} entries of itself and of its parent");
        let missing = Finding {
            code: "dots",
            ..finding(Severity::Damage, dir.at, message)
        };
        if self.tell(self.path(dir.ino, None), missing) && is_first_there {
            let chunk = self.salvaged(dir, 0)?;
            self.plan.chunk(dir.ino, 0, chunk);
        }
        Ok(())
    }

    /// Returns a repaired copy of a chunk of a directory.
    fn salvaged(&self, dir: &Inode, start: u64) -> Result<Chunk> {
        let mut chunk = [0; DIRBLKSIZ];
        let place = Dir::new(self.reader, dir)?.place(start)?;
        self.reader.cache.read(place, &mut chunk)?;
        let salvage = Salvage {
            volume: self.reader.volume,
            is_used: &|ino| self.inodes.all.contains_key(&ino),
        };
        let parent = self.inodes.all.get(&dir.ino).map(|seen| seen.parent);
        let parent = parent.filter(|&parent| parent != 0).unwrap_or(UFS_ROOTINO);
        Ok(match start {
            0 => salvage.with_dots(&chunk, dir.ino, parent),
            _ => salvage.whole(&chunk),
        })
    }

    /// Checks that a directory's size is a multiple of 512, and not 0.
    fn size(&mut self, inode: &Inode) {
        if inode.size.is_multiple_of(512) && inode.size > 0 {
            return;
        }
        let message = format!("the directory's size is {}, no multiple of 512", inode.size);
        let odd = Finding {
            code: "directory-size",
            ..finding(Severity::Damage, inode.at, message)
        };
        if self.tell(self.path(inode.ino, None), odd) {
            let mend = self.plan.inode(inode.ino);
            mend.free |= inode.size == 0;
            mend.size = Some(inode.size.next_multiple_of(512));
        }
    }

    /// Returns the holes of a directory, which must not have any, and the ranges whose bad blocks
    /// phase 1 has reported.
    fn holes(&mut self, dir: &Inode) -> Result<(Ranges, Ranges)> {
        let (mut holes, mut unread) = (Vec::new(), Vec::new());
        let all = self.reader.runs(dir, 0, dir.size, &mut |run| {
            let hole = run.offset..run.offset + run.len;
            holes.extend(Some(hole).filter(|_| run.place.is_none()));
            Ok(())
        });
        match all {
            Err(e) if e == Kind::Corrupt => {
                let bsize = self.reader.volume.bsize;
                for at in (0..dir.size).step_by(usize::try_from(bsize).unwrap_or(1)) {
                    self.findings.progress("directories", self.done, 0)?;
                    match self.reader.runs(dir, at, bsize, &mut |_| Ok(())) {
                        Err(e) if e == Kind::Corrupt => unread.push(at..at + bsize),
                        run => run?,
                    }
                }
                // Bad pointers become holes, which the next round reports.
                return Ok((Vec::new(), unread));
            }
            all => all?,
        }
        for hole in &holes {
            let message = format!(
                "the directory has no block for {} bytes at {}",
                hole.end - hole.start,
                hole.start
            );
            let odd = Finding {
                code: "hole",
                ..finding(Severity::Damage, dir.at, message)
            };
            let wanted = self.tell(self.path(dir.ino, None), odd);
            // A hole at the end means, more likely, that only the size is damaged.
            if wanted && hole.start > 0 && hole.end == dir.size {
                self.plan.inode(dir.ino).size = Some(hole.start);
            } else if wanted {
                self.plan.holes.insert((dir.ino, hole.start), hole.end);
            }
        }
        Ok((holes, unread))
    }

    /// Reports a damaged chunk, and checks the entries from `at` on that can be recovered.
    fn bad_chunk(
        &mut self,
        dir: &Inode,
        at: u64,
        e: &Error,
        dots: &mut u32,
        todo: &mut Vec<u32>,
    ) -> Result<()> {
        let place = e.as_corrupt().map_or(dir.at, |c| c.offset);
        let bad = Finding {
            code: "entry",
            ..finding(Severity::Damage, place, e.to_string())
        };
        let wanted = self.tell(self.path(dir.ino, None), bad);
        let start = at - at % DIRBLKSIZ as u64;
        let chunk = self.salvaged(dir, start)?;
        if wanted {
            self.plan.chunk(dir.ino, start, chunk);
        }
        for entry in dir::entries(self.reader.volume, &chunk) {
            let entry = Entry {
                at: start + entry.at,
                end: start + entry.end,
                ..entry
            };
            if entry.at < at {
                continue;
            }
            let counts = self.one(dir, &entry, dots, todo)?;
            if wanted && counts {
                self.revived.push((entry.ino, dir.ino, entry.at));
            }
        }
        Ok(())
    }

    /// Removes recovered names that an inode's link count does not include. These were deleted
    /// before the damage.
    fn names_too_many(&mut self) {
        for (ino, dir, at) in std::mem::take(&mut self.revived) {
            let Some(seen) = self.inodes.all.get_mut(&ino) else {
                continue;
            };
            let is_many = i64::from(seen.found) > i64::from(seen.nlink);
            if seen.kind != FileKind::Dir && is_many {
                seen.found -= 1;
                self.plan.entry(dir, at, Change::Remove);
            }
        }
    }

    /// Counts `.` and `..` as links. The right target of `..` is known only later.
    fn dots(&mut self, dir: &Inode, entry: &Entry<'_>) {
        let (name, leads, at) = (entry.name, entry.ino, entry.at);
        // A directory that is put into lost+found gets another parent.
        let counts = name == b"." || !self.tops.contains(&dir.ino);
        if let Some(seen) = self.inodes.all.get_mut(&leads).filter(|_| counts) {
            seen.found = seen.found.saturating_add(1);
        }
        match name {
            b".." => {
                self.parents.insert(dir.ino, (leads, at));
            }
            _ if leads != dir.ino => self.wrong_dots(dir.ino, name, leads, at, dir.ino),
            _ => {}
        }
    }

    /// Reports a second `.` or `..` in a directory. It belongs to another directory, and shows up
    /// because this one's size or a pointer is damaged.
    fn more_dots(&mut self, dir: &Inode, name: &[u8], at: u64) {
        let message = format!(
            "'{}' stands at byte {at} of the directory as well",
            volary_core::escape(name)
        );
        let more = Finding {
            code: "dots",
            ..finding(Severity::Damage, dir.at, message)
        };
        if self.tell(self.path(dir.ino, None), more) {
            self.plan.entry(dir.ino, at, Change::Remove);
        }
    }

    fn wrong_dots(&mut self, dir: u32, name: &[u8], leads: u32, at: u64, expected: u32) {
        let message = format!(
            "'{}' leads to inode {leads}, not to {expected}",
            volary_core::escape(name),
        );
        let place = self.reader.volume.inode_at(dir.into()).unwrap_or(0);
        let wrong = Finding {
            code: "dots",
            ..finding(Severity::Damage, place, message)
        };
        if self.tell(self.path(dir, None), wrong) {
            self.plan.entry(dir, at, Change::Leads(expected));
        }
    }

    /// Checks an entry other than `.` and `..`. Returns whether it counts as a name of its inode.
    fn entry(&mut self, dir: &Inode, entry: &Entry<'_>, todo: &mut Vec<u32>) -> Result<bool> {
        let (name, leads, at) = (entry.name, entry.ino, entry.at);
        let damage = |code: &'static str, message: String| Finding {
            code,
            ..finding(Severity::Damage, dir.at, message)
        };
        let mut is_removed = false;
        if Name::new(name).is_err() {
            let message =
                format!("the name at byte {at} of the directory cannot be; it is not shown");
            is_removed = self.tell(self.path(dir.ino, Some(name)), damage("name", message));
        }
        let is = self.inodes.all.get(&leads).map(|seen: &Seen| seen.kind);
        let Some(is) = is else {
            let message = format!("it leads to inode {leads}, which is not in use");
            is_removed |= self.tell(
                self.path(dir.ino, Some(name)),
                damage("unallocated", message),
            );
            if is_removed {
                self.plan.entry(dir.ino, at, Change::Remove);
            }
            return Ok(false);
        };
        if is_removed {
            self.plan.entry(dir.ino, at, Change::Remove);
            return Ok(false);
        }
        if self.is_same(dir, entry) {
            return Ok(false);
        }
        if let Some(seen) = self.inodes.all.get_mut(&leads) {
            seen.found = seen.found.saturating_add(1);
        }
        let is = match entry.kind {
            Some(FileKind::Dir) if is != FileKind::Dir => {
                self.as_directory(dir, name, leads, is)?
            }
            _ => is,
        };
        if entry.kind.is_some_and(|kind| kind != is) {
            let message = format!("inode {leads} is another kind of node than its entry says");
            if self.tell(self.path(dir.ino, Some(name)), damage("type", message)) {
                self.plan.entry(dir.ino, at, Change::Kind(is));
            }
        }
        if is != FileKind::Dir {
            return Ok(true);
        }
        if self.twins_left > 0 {
            self.twins_left -= 1;
            self.twins.entry(leads).or_default().push((dir.ino, at));
        } else if self.is_met(leads) {
            self.twin(leads, dir.ino, at, false);
        }
        if self.meet(leads, dir.ino) {
            self.paths.insert(leads, (dir.ino, name.to_vec()));
            todo.push(leads);
        }
        Ok(true)
    }

    /// Returns the kind of an inode that its entry says is a directory. If the content begins with
    /// the entry `.`, it is a directory, and only the inode's mode is damaged.
    fn as_directory(
        &mut self,
        dir: &Inode,
        name: &[u8],
        leads: u32,
        is: FileKind,
    ) -> Result<FileKind> {
        let inode = self.inodes.inode(&self.reader, leads);
        let Some(inode) = inode.ok().filter(|inode| inode.size > 0) else {
            return Ok(is);
        };
        if !likely::holds_itself(&self.reader, &inode)? {
            return Ok(is);
        }
        let fields = Fields::of_kind(&inode, FileKind::Dir);
        let odd = Finding {
            code: "inode",
            repair: fields.to_string(),
            ..finding(
                Severity::Damage,
                inode.at,
                format!("inode {leads}, no directory, holds one"),
            )
        };
        if self.tell(self.path(dir.ino, Some(name)), odd) {
            self.plan.inode(leads).likely = Some(fields);
        }
        self.inodes.likely.insert(leads, fields);
        if let Some(seen) = self.inodes.all.get_mut(&leads) {
            seen.kind = FileKind::Dir;
        }
        Ok(FileKind::Dir)
    }

    /// Phase 3: directories that no path leads to. Preening frees them. Otherwise each one that no
    /// other of them holds gets a name, and those below keep their names.
    fn unconnected(&mut self) -> Result<()> {
        let lost = self.unmet();
        if self.findings.frees_unreferenced() {
            lost.into_iter().for_each(|ino| self.orphan(ino));
            return Ok(());
        }
        let held = self.held_by(&lost)?;
        let tops = lost.iter().filter(|ino| !held.contains(ino));
        let tops: Vec<u32> = tops.copied().collect();
        // Each of the rest is on or below a cycle, and any directory of a cycle can be named.
        for ino in tops.into_iter().chain(lost) {
            let is_unmet = self.inodes.all.get(&ino).is_some_and(|s| s.parent == 0);
            if is_unmet && self.tops.insert(ino) {
                self.paths.insert(ino, (0, lost::text(ino).into_bytes()));
                self.orphan(ino);
                self.walk(ino)?;
            }
        }
        Ok(())
    }

    /// Returns the directories that the walk did not reach.
    fn unmet(&self) -> Vec<u32> {
        let all = self.inodes.all.iter();
        let unmet = all.filter(|(_, seen)| seen.kind == FileKind::Dir && seen.parent == 0);
        unmet
            .map(|(&ino, _)| ino)
            .filter(|&ino| ino != UFS_ROOTINO)
            .collect()
    }

    /// Returns the inodes that entries of these directories lead to.
    fn held_by(&self, dirs: &[u32]) -> Result<HashSet<u32>> {
        let mut held = HashSet::new();
        let mut left = self.bytes_left;
        for &ino in dirs {
            self.findings.progress("directories", self.done, 0)?;
            let Ok(inode) = self.inodes.inode(&self.reader, ino) else {
                continue;
            };
            let Ok(mut dir) = Dir::new(self.reader, &inode) else {
                continue;
            };
            let Some(more) = left.checked_sub(inode.size) else {
                continue;
            };
            left = more;
            let mut at = 0;
            // Damage is reported when the directory itself is checked.
            while let Ok(Some(entry)) = dir.entry(at) {
                if !entry.is_dots() {
                    held.insert(entry.ino);
                }
                at = entry.end;
            }
        }
        Ok(held)
    }

    fn orphan(&mut self, ino: u32) {
        let at = self.reader.volume.inode_at(ino.into()).unwrap_or(0);
        let wanted = self.findings.tell(&Finding {
            code: "unconnected",
            ..finding(
                Severity::Crash,
                at,
                format!("no path leads to directory {ino}"),
            )
        });
        if wanted && self.findings.frees_unreferenced() {
            self.plan.inode(ino).free = true;
        } else if wanted {
            self.plan.lost.insert(ino);
        }
    }
}
