//! Chains that meet.
//!
//! The bit of a cluster says that it is taken, not by whom. So the owners of
//! the clusters where chains meet are found by going through all entries once
//! more. Then, for each meeting:
//!
//! 1. Two entries that are the same but for their names, and begin with the
//!    same cluster, are a rename that a crash cut short: one of them stays, the
//!    new one where it can be told.
//! 2. A directory that two entries lead to stays where its `..` says, unless
//!    that is inside of itself.
//! 3. An owner whose size ends before the meeting does not need what comes:
//!    its chain is cut.
//! 4. Else one of the two gets a copy of what it needs, or if there is no room
//!    is cut: the file, where one is a directory; the one found later, where
//!    both are files. Of two directories the later one is cut, and of a
//!    directory and a file the one that the cluster's content speaks against.

use super::fat::Link;
use super::findings::{self as code};
use super::judge;
use super::mend::Mender;
use super::volume::Reader;
use super::walk::{Problem, What};
use crate::ondisk::{DirEntry, attr};
use crate::short::{DOT, DOT_DOT};
use crate::slots::{Event, Scanner};
use crate::unix::{GENERATIONS, UnixData};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use volary_core::{Result, escape};

/// An entry whose chain comes through a cluster where chains meet.
#[derive(Clone, Copy, Debug)]
struct Owner {
    dir: u32,
    first: u32,
    slot: u32,
    entry: DirEntry,
    /// Where in its chain the cluster is.
    index: u32,
}

/// The entry that mending has changed, by directory and slot.
type Changed = Option<(u32, u32)>;

/// The owners of each cluster where chains meet.
#[derive(Default)]
pub(super) struct Owners {
    by_cluster: HashMap<u32, Vec<Owner>>,
}

impl Mender<'_, '_> {
    /// Tells of all meetings of chains and mends them.
    pub(super) fn crosses(&mut self, problems: &[Problem]) -> Result<()> {
        let owners = self.find_owners(problems)?;
        let mut changed = HashSet::new();
        for problem in problems {
            let What::Cross { last, at } = problem.what else {
                continue;
            };
            let all = owners.by_cluster.get(&at).map_or(&[][..], Vec::as_slice);
            // What is known of an entry that was changed is out of date; its
            // meetings are left for the next walk.
            let left = |o: &&Owner| !changed.contains(&(o.dir, o.slot));
            let of: Vec<Owner> = all.iter().filter(left).copied().collect();
            if of.len() < all.len() && of.len() < 2
                || changed.contains(&(problem.dir, problem.slot))
            {
                continue;
            }
            changed.extend(self.meeting(problem, last, at, &of)?);
        }
        Ok(())
    }

    fn find_owners(&mut self, problems: &[Problem]) -> Result<Owners> {
        let mut owners = Owners::default();
        for problem in problems {
            if let What::Cross { at, .. } = problem.what {
                owners.by_cluster.insert(at, Vec::new());
            }
        }
        for number in 0..self.walk.dirs.len() as u32 {
            let entries = self.entries(number)?;
            for mut owner in entries {
                self.follow(&mut owner, &mut owners)?;
            }
        }
        Ok(owners)
    }

    /// All entries of a directory that have a chain.
    fn entries(&mut self, number: u32) -> Result<Vec<Owner>> {
        let dir = self.dir(number);
        let mut reader = Reader::new(&dir);
        let mut scanner = Scanner::new(self.vol.names.long);
        let mut all = Vec::new();
        let mut buf = Vec::new();
        while reader.fill(self.vol, &mut buf)?.is_some() {
            let _ = scanner.feed(&buf, |event| {
                if let Event::Record(r) = event
                    && !r.short.is_label()
                    && !(number != 0 && (r.slot == 0 && r.short.DIR_Name == DOT))
                    && !(number != 0 && (r.slot == 1 && r.short.DIR_Name == DOT_DOT))
                {
                    all.push(Owner {
                        dir: number,
                        first: r.first_slot,
                        slot: r.slot,
                        entry: r.short,
                        index: 0,
                    });
                }
                ControlFlow::<()>::Continue(())
            });
        }
        Ok(all)
    }

    /// Follows a chain and notes the meetings it comes through.
    fn follow(&mut self, owner: &mut Owner, owners: &mut Owners) -> Result<()> {
        let mut at = self.vol.start(&owner.entry);
        for index in 0..self.vol.layout.cluster_count {
            if !self.vol.layout.is_cluster(at) {
                break;
            }
            if let Some(list) = owners.by_cluster.get_mut(&at) {
                // A chain that has been here before is a loop.
                let same = |o: &Owner| (o.dir, o.slot) == (owner.dir, owner.slot);
                if list.last().is_some_and(same) {
                    break;
                }
                owner.index = index;
                list.push(*owner);
            }
            match self.vol.fat.link(at)? {
                Link::Next(n) => at = n,
                _ => break,
            }
        }
        Ok(())
    }

    /// One meeting: who is changed by mending it.
    fn meeting(&mut self, problem: &Problem, last: u32, at: u32, of: &[Owner]) -> Result<Changed> {
        let own = |o: &&Owner| (o.dir, o.slot) == (problem.dir, problem.slot);
        let me = of.iter().find(own).copied();
        let Some(me) = me else {
            // The root directory's chain leads into another.
            return self.cut_root(problem, last);
        };
        let Some(other) = of.iter().find(|o| !own(o)).copied() else {
            // The other is the root directory's chain.
            return self.leave(problem, &me, at, "the root directory");
        };
        if me.index == 0 && other.index == 0 {
            if is_twin(&me.entry, &other.entry) {
                return self.twin(&me, &other);
            }
            if me.entry.is_dir() && other.entry.is_dir() {
                return self.dir_twice(&me, &other);
            }
        }
        let size = other.entry.DIR_FileSize.get();
        let need = self.vol.need(size).max(1);
        if !other.entry.is_dir() && other.index >= need {
            return self.cut_excess(&other, need);
        }
        match (me.entry.is_dir(), other.entry.is_dir()) {
            (false, _) => self.part(problem, &me, &other, at),
            (true, true) => self.leave_to(problem, &me, &other, at),
            (true, false) => {
                let bytes = self.peek(at)?;
                let tally = judge::tally(&bytes, &self.vol.layout);
                let start = self.vol.start(&me.entry);
                let dir = match me.index {
                    0 => judge::has_dot(&bytes, start, &self.vol.layout),
                    _ => tally.good > 0 && !tally.is_garbage() && tally.bad == 0,
                };
                if dir {
                    let problem = as_problem(&other, problem.what);
                    return self.part(&problem, &other, &me, at);
                }
                self.leave_to(problem, &me, &other, at)
            }
        }
    }

    fn cut_root(&mut self, problem: &Problem, last: u32) -> Result<Changed> {
        let words = format!("after cluster {last} the root directory goes on in a file's chain");
        if self.tell(code::CROSS_LINK, problem, words, "ends it there")? {
            self.vol.cut(last)?;
        }
        Ok(Some((problem.dir, problem.slot)))
    }

    /// Takes a directory's entry away, or cuts its chain, for the sake of
    /// another.
    fn leave_to(
        &mut self,
        problem: &Problem,
        me: &Owner,
        other: &Owner,
        at: u32,
    ) -> Result<Changed> {
        let path = self.vol.path(&self.walk.dirs, other.dir, other.slot)?;
        self.leave(problem, me, at, &escape(&path).to_string())
    }

    fn leave(&mut self, problem: &Problem, me: &Owner, at: u32, other: &str) -> Result<Changed> {
        if !me.entry.is_dir() {
            let (need, start) = (self.vol.need(me.entry.DIR_FileSize.get()), at);
            return self.copy(problem, me, need, start, other);
        }
        let words = format!("cluster {at} of its chain is one of {other}");
        if me.index == 0 {
            let repair = "takes this entry away; what was only in it is found lost";
            if self.tell(code::DIR_TWICE, problem, words, repair)? {
                self.remove(problem)?;
            }
        } else if self.tell(
            code::CROSS_LINK,
            problem,
            words,
            "ends its chain before that",
        )? {
            self.cut_before(me)?;
        }
        Ok(Some((me.dir, me.slot)))
    }

    /// Ends a chain before the meeting.
    fn cut_before(&mut self, me: &Owner) -> Result<()> {
        let start = self.vol.start(&me.entry);
        match me.index.checked_sub(1) {
            None => self.set_start(&as_problem(me, What::DotDot), 0),
            Some(i) => match self.vol.cluster_at(start, i)? {
                Some(last) => self.vol.cut(last),
                None => Ok(()),
            },
        }
    }

    fn cut_excess(&mut self, other: &Owner, need: u32) -> Result<Changed> {
        let start = self.vol.start(&other.entry);
        let Some(last) = self.vol.cluster_at(start, need - 1)? else {
            return Ok(None);
        };
        let problem = as_problem(other, What::Excess { last, clean: false });
        let words = format!("the chain goes on after cluster {last}, which its size ends in");
        if self.tell(code::SIZE_SHORT, &problem, words, "ends the chain there")? {
            self.vol.cut(last)?;
        }
        Ok(Some((other.dir, other.slot)))
    }

    /// Parts two files: `me` gets a copy of what it shares.
    fn part(&mut self, problem: &Problem, me: &Owner, other: &Owner, at: u32) -> Result<Changed> {
        let path = self.vol.path(&self.walk.dirs, other.dir, other.slot)?;
        let need = self.vol.need(me.entry.DIR_FileSize.get());
        self.copy(problem, me, need, at, &escape(&path).to_string())
    }

    fn copy(
        &mut self,
        problem: &Problem,
        me: &Owner,
        need: u32,
        at: u32,
        other: &str,
    ) -> Result<Changed> {
        let changed = Some((me.dir, me.slot));
        let wanted = need.saturating_sub(me.index);
        let from = self.tail(at, wanted)?;
        let mut to = Vec::new();
        while self.reporter.mends() && to.len() < from.len() {
            match self.vol.fat.find_free()? {
                Some(n) => to.push(n),
                None => break,
            }
        }
        let room = to.len() == from.len() || !self.reporter.mends();
        let words = format!("it shares its clusters from {at} on with {other}");
        let repair = if wanted == 0 {
            "ends its chain before that".into()
        } else if room {
            format!(
                "gives it a copy of the {} clusters that it needs",
                from.len()
            )
        } else {
            self.vol.fat.rewind();
            "ends its chain before that, for want of room for a copy; the rest is lost".into()
        };
        if !self.tell(code::CROSS_LINK, problem, words, repair)? {
            return Ok(changed);
        }
        let Some(&head) = to.first().filter(|_| room) else {
            self.cut_before(me)?;
            return Ok(changed);
        };
        for (&from, &to) in from.iter().zip(&to) {
            let bytes = self.peek(from)?;
            let offset = self.vol.layout.cluster_offset(to);
            self.vol.disk.fill(offset, &bytes)?;
        }
        for (i, &n) in to.iter().enumerate() {
            let next = to.get(i + 1).copied().unwrap_or(self.vol.fat.end());
            self.vol.set_link(n, next)?;
        }
        self.redirect(me, head)?;
        Ok(changed)
    }

    /// The clusters of a chain from `at` on, at most `count`.
    fn tail(&mut self, at: u32, count: u32) -> Result<Vec<u32>> {
        let mut all = Vec::new();
        let mut next = at;
        while (all.len() as u32) < count.min(self.vol.layout.cluster_count) {
            all.push(next);
            match self.vol.fat.link(next)? {
                Link::Next(n) => next = n,
                _ => break,
            }
        }
        Ok(all)
    }

    /// Lets a chain go on elsewhere from the meeting on.
    fn redirect(&mut self, me: &Owner, head: u32) -> Result<()> {
        let start = self.vol.start(&me.entry);
        match me.index.checked_sub(1) {
            None => self.set_start(&as_problem(me, What::DotDot), head),
            Some(i) => match self.vol.cluster_at(start, i)? {
                Some(last) => self.vol.set_link(last, head),
                None => Ok(()),
            },
        }
    }

    fn twin(&mut self, me: &Owner, other: &Owner) -> Result<Changed> {
        let old = self.older(me, other)?;
        let new = if (old.dir, old.slot) == (me.dir, me.slot) {
            other
        } else {
            me
        };
        let path = self.vol.path(&self.walk.dirs, new.dir, new.slot)?;
        let problem = as_problem(&old, What::DotDot);
        let words = format!("it was being renamed to {}", escape(&path));
        if self.tell(
            code::RENAME_TWIN,
            &problem,
            words,
            "takes the old name away",
        )? {
            self.remove(&problem)?;
        }
        Ok(Some((problem.dir, problem.slot)))
    }

    /// Which of two twins is the old one: the one whose birth's hundredths, or
    /// extension's generation, are one less. Where that says nothing, a
    /// directory's `..` tells; else the one in the later slot: a rename over an
    /// existing name takes its place, which is mostly before that of a file made
    /// to replace it.
    fn older(&mut self, me: &Owner, other: &Owner) -> Result<Owner> {
        if follows(&me.entry, &other.entry) {
            return Ok(*other);
        }
        if follows(&other.entry, &me.entry) {
            return Ok(*me);
        }
        if me.entry.is_dir() {
            return self.misplaced(me, other);
        }
        if me.dir == other.dir {
            return Ok(if me.slot > other.slot { *me } else { *other });
        }
        Ok(*other)
    }

    fn dir_twice(&mut self, me: &Owner, other: &Owner) -> Result<Changed> {
        let wrong = self.misplaced(me, other)?;
        let right = if (wrong.dir, wrong.slot) == (me.dir, me.slot) {
            other
        } else {
            me
        };
        let path = self.vol.path(&self.walk.dirs, right.dir, right.slot)?;
        let problem = as_problem(&wrong, What::DotDot);
        let words = format!("the directory is also {}", escape(&path));
        if self.tell(code::DIR_TWICE, &problem, words, "takes this entry away")? {
            self.remove(&problem)?;
        }
        Ok(Some((problem.dir, problem.slot)))
    }

    /// Which of two entries of a directory `..` speaks against.
    fn misplaced(&mut self, me: &Owner, other: &Owner) -> Result<Owner> {
        let start = self.vol.start(&me.entry);
        if self.is_inside(me.dir, start) {
            return Ok(*me);
        }
        if self.is_inside(other.dir, start) {
            return Ok(*other);
        }
        let bytes = self.peek(start)?;
        let above = bytes.as_chunks::<32>().0.get(1).map(|raw| {
            let entry: &DirEntry = zerocopy::transmute_ref!(raw);
            self.vol.start(entry)
        });
        let mine = if me.dir == 0 {
            0
        } else {
            self.dir(me.dir).cluster
        };
        Ok(if above == Some(mine) { *other } else { *me })
    }

    /// Whether a directory of the walk is, or is in, the one that begins with
    /// a cluster.
    fn is_inside(&self, number: u32, start: u32) -> bool {
        let mut number = number;
        for _ in 0..=self.walk.dirs.len() {
            let dir = self.dir(number);
            if dir.cluster == start {
                return true;
            }
            if number == 0 {
                break;
            }
            number = dir.parent;
        }
        false
    }
}

fn as_problem(owner: &Owner, what: What) -> Problem {
    Problem {
        what,
        dir: owner.dir,
        first: owner.first,
        slot: owner.slot,
    }
}

/// Whether one of two entries is the other under a new name. What was written
/// between two commits goes with the new name only, so that where a count of
/// renames speaks for itself, size and time of the last change may differ.
fn is_twin(a: &DirEntry, b: &DirEntry) -> bool {
    if a.is_dir() != b.is_dir() {
        return false;
    }
    let both_unix = UnixData::read(a).zip(UnixData::read(b));
    let same_birth = a.DIR_CrtTime == b.DIR_CrtTime && a.DIR_CrtDate == b.DIR_CrtDate;
    if a.is_dir() {
        return match both_unix {
            Some((a, b)) => a.generation == b.generation,
            None => same_birth && a.DIR_CrtTimeTenth == b.DIR_CrtTimeTenth,
        };
    }
    let counted = follows(a, b) || follows(b, a);
    if counted && (same_birth || both_unix.is_some()) {
        return true;
    }
    same_birth
        && (a.DIR_Attr | attr::ARCHIVE) == (b.DIR_Attr | attr::ARCHIVE)
        && a.DIR_FileSize == b.DIR_FileSize
        && a.DIR_WrtTime == b.DIR_WrtTime
        && a.DIR_WrtDate == b.DIR_WrtDate
}

/// Whether `new` is `old` after one more rename.
fn follows(new: &DirEntry, old: &DirEntry) -> bool {
    match (UnixData::read(new), UnixData::read(old)) {
        (Some(n), Some(o)) => n.generation == (o.generation + 1) % GENERATIONS,
        _ => {
            let (n, o) = (new.DIR_CrtTimeTenth, old.DIR_CrtTimeTenth);
            n < 200 && o < 200 && n == (o + 1) % 200
        }
    }
}
