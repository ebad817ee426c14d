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

use super::bits::Bits;
use super::fat::Link;
use super::findings::{self as code};
use super::mend::Mender;
use super::volume::is_dots;
use super::walk::{Problem, What};
use crate::unix::today::{GENERATIONS, UnixData};
use crate::volume::judge;
use crate::volume::ondisk::{DirEntry, attr};
use std::collections::{HashMap, HashSet};
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
    /// Clusters from there to the chain's end, where that is known.
    rest: Option<u32>,
}

/// The entry that mending has changed, by directory and slot.
type Changed = Option<(u32, u32)>;

/// A directory and a slot in it.
type At = (u32, u32);

/// A cluster where chains meet, and the entries whose chains do.
#[derive(Default)]
struct Meeting {
    owners: Vec<Owner>,
    /// Those before this one were changed.
    next: usize,
    /// Clusters from here to the end of the chain, where that is known.
    rest: Option<u32>,
}

/// The owners of each cluster where chains meet: the one whose chain is the
/// first to come through, and those whose chains end there for the walk. So
/// every cluster is gone through once.
struct Owners {
    by_cluster: HashMap<u32, Meeting>,
    /// Where the chains of problems meet others.
    stops: HashMap<At, u32>,
    /// The entries of problems.
    mine: HashMap<At, Owner>,
    seen: Bits,
}

impl Owners {
    /// Returns an entry whose chain comes through a cluster, other than `me` and those
    /// that were changed; and whether there was one before they were.
    fn other(&mut self, at: u32, me: At, changed: &HashSet<At>) -> (Option<Owner>, bool) {
        let Some(meeting) = self.by_cluster.get_mut(&at) else {
            return (None, false);
        };
        let gone = |o: &Owner| changed.contains(&(o.dir, o.slot));
        while meeting.owners.get(meeting.next).is_some_and(gone) {
            meeting.next += 1;
        }
        let rest = meeting.owners.get(meeting.next..).unwrap_or_default();
        let other = rest
            .iter()
            .find(|o| (o.dir, o.slot) != me && !gone(o))
            .copied();
        let any = meeting.owners.iter().any(|o| (o.dir, o.slot) != me);
        let rest = self.rest(at, changed);
        (other.map(|o| Owner { rest, ..o }), any)
    }

    /// Clusters from a meeting to the chain's end.
    fn rest(&self, at: u32, changed: &HashSet<At>) -> Option<u32> {
        let meeting = self.by_cluster.get(&at)?;
        let first = meeting.owners.first()?;
        meeting
            .rest
            .filter(|_| !changed.contains(&(first.dir, first.slot)))
    }

    /// Returns the entry of a problem.
    fn mine(&self, at: u32, me: At, changed: &HashSet<At>) -> Option<Owner> {
        let rest = self.rest(at, changed);
        self.mine.get(&me).map(|o| Owner { rest, ..*o })
    }
}

/// Mends chains that meet.
pub(super) struct Crosses<'m, 'a, 'r> {
    mender: &'m mut Mender<'a, 'r>,
    owners: Owners,
    /// Entries that mending has changed: what is known of them is out of date.
    changed: HashSet<At>,
}

impl<'m, 'a, 'r> Crosses<'m, 'a, 'r> {
    /// Finds the owners of the clusters where the chains of problems meet others.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn new(mender: &'m mut Mender<'a, 'r>, problems: &[Problem]) -> Result<Self> {
        let mut owners = Owners {
            by_cluster: HashMap::new(),
            stops: HashMap::new(),
            mine: HashMap::new(),
            seen: Bits::new(mender.vol.layout.last_cluster()),
        };
        for problem in problems {
            if let What::Cross { at, .. } = problem.what {
                owners.by_cluster.insert(at, Meeting::default());
                owners.stops.insert((problem.dir, problem.slot), at);
            }
        }
        let mut crosses = Self {
            mender,
            owners,
            changed: HashSet::new(),
        };
        for number in 0..crosses.mender.walk.dirs.len() as u32 {
            for owner in crosses.entries(number)? {
                crosses.follow(owner)?;
            }
        }
        Ok(crosses)
    }

    /// Tells of the meetings of the problems' chains and mends them.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn mend(&mut self, problems: &[Problem]) -> Result<()> {
        for problem in problems {
            let What::Cross { last, at } = problem.what else {
                continue;
            };
            let me = (problem.dir, problem.slot);
            let (other, any) = self.owners.other(at, me, &self.changed);
            // The meetings of an entry that was changed are left for the next walk.
            if self.changed.contains(&me) || any && other.is_none() {
                continue;
            }
            let mine = self.owners.mine(at, me, &self.changed);
            let changed = self.meeting(problem, last, at, mine, other)?;
            self.changed.extend(changed);
        }
        Ok(())
    }

    /// Returns all entries of a directory that have a chain.
    fn entries(&mut self, number: u32) -> Result<Vec<Owner>> {
        let dir = self.mender.dir(number);
        let mut all = Vec::new();
        self.mender.vol.records(&dir, |_, r| {
            let dots = number != 0 && is_dots(r);
            if !dots && !r.short.is_label() {
                all.push(Owner {
                    dir: number,
                    first: r.first_slot,
                    slot: r.slot,
                    entry: r.short,
                    index: 0,
                    rest: None,
                });
            }
        })?;
        Ok(all)
    }

    /// Follows a chain, as far as no other was followed before, and notes the
    /// meetings it comes through. That of a problem is followed to its meeting.
    fn follow(&mut self, mut owner: Owner) -> Result<()> {
        let me = (owner.dir, owner.slot);
        let stop = self.owners.stops.get(&me).copied();
        let mut at = self.mender.vol.start(&owner.entry);
        let mut passed = Vec::new();
        let (mut count, mut rest) = (0, Some(0));
        while count < self.mender.vol.layout.cluster_count && self.mender.vol.layout.is_cluster(at)
        {
            let new = self.owners.seen.add(at);
            owner.index = count;
            if let Some(meeting) = self.owners.by_cluster.get_mut(&at) {
                meeting.owners.push(owner);
                if new {
                    passed.push((at, count));
                } else {
                    rest = meeting.rest;
                }
            }
            if stop == Some(at) {
                self.owners.mine.insert(me, owner);
                rest = rest.filter(|_| !new);
                break;
            }
            if !new && stop.is_none() {
                break;
            }
            count += 1;
            match self.mender.vol.fat.link(at)? {
                Link::Next(n) => at = n,
                _ => break,
            }
        }
        for (at, index) in passed {
            if let Some(meeting) = self.owners.by_cluster.get_mut(&at) {
                meeting.rest = rest.map(|rest| rest.saturating_add(count - index));
            }
        }
        Ok(())
    }

    /// One meeting: who is changed by mending it.
    fn meeting(
        &mut self,
        problem: &Problem,
        last: u32,
        at: u32,
        me: Option<Owner>,
        other: Option<Owner>,
    ) -> Result<Changed> {
        let Some(me) = me else {
            // The root directory's chain leads into another.
            return self.cut_root(problem, last);
        };
        let Some(other) = other else {
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
        let need = self.mender.vol.need(size).max(1);
        if !other.entry.is_dir() && other.index >= need {
            return self.cut_excess(&other, need);
        }
        let need = self.mender.vol.need(me.entry.DIR_FileSize.get()).max(1);
        if !me.entry.is_dir() && me.index >= need {
            return self.cut_excess(&me, need);
        }
        match (me.entry.is_dir(), other.entry.is_dir()) {
            (false, _) => self.part(problem, &me, &other, at),
            (true, true) => self.leave_to(problem, &me, &other, at),
            (true, false) => {
                let bytes = self.mender.peek(at)?;
                let tally = judge::tally(&bytes, self.mender.vol.judge());
                let start = self.mender.vol.start(&me.entry);
                let dir = match me.index {
                    0 => judge::has_dot(&bytes, start, &self.mender.vol.layout),
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
        if self
            .mender
            .tell(code::CROSS_LINK, problem, words, "ends it there")?
        {
            self.mender.vol.cut(last)?;
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
        let path = self.mender.path(other.dir, other.slot)?;
        self.leave(problem, me, at, &escape(&path).to_string())
    }

    fn leave(&mut self, problem: &Problem, me: &Owner, at: u32, other: &str) -> Result<Changed> {
        if !me.entry.is_dir() {
            let (need, start) = (self.mender.vol.need(me.entry.DIR_FileSize.get()), at);
            return self.copy(problem, me, need, start, other);
        }
        let words = format!("cluster {at} of its chain is one of {other}");
        if me.index == 0 {
            let repair = "takes this entry away; what was only in it is found lost";
            if self.mender.tell(code::DIR_TWICE, problem, words, repair)? {
                self.mender.remove(problem)?;
            }
        } else if self.mender.tell(
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
        let start = self.mender.vol.start(&me.entry);
        match me.index.checked_sub(1) {
            None => self.mender.set_start(&as_problem(me, What::DotDot), 0),
            Some(i) => match self.mender.vol.cluster_at(start, i)? {
                Some(last) => self.mender.vol.cut(last),
                None => Ok(()),
            },
        }
    }

    fn cut_excess(&mut self, other: &Owner, need: u32) -> Result<Changed> {
        let start = self.mender.vol.start(&other.entry);
        let Some(last) = self.mender.vol.cluster_at(start, need - 1)? else {
            return Ok(None);
        };
        let problem = as_problem(other, What::Excess { last, clean: false });
        let words = format!("the chain goes on after cluster {last}, which its size ends in");
        if self
            .mender
            .tell(code::SIZE_SHORT, &problem, words, "ends the chain there")?
        {
            self.mender.vol.cut(last)?;
        }
        Ok(Some((other.dir, other.slot)))
    }

    /// Parts two files: `me` gets a copy of what it shares.
    fn part(&mut self, problem: &Problem, me: &Owner, other: &Owner, at: u32) -> Result<Changed> {
        let path = self.mender.path(other.dir, other.slot)?;
        let need = self.mender.vol.need(me.entry.DIR_FileSize.get());
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
        let wanted = wanted.min(me.rest.unwrap_or(self.mender.vol.layout.cluster_count));
        let from = match self.mender.reporter.all.mends_damage() {
            true => self.tail(at, wanted, me.rest.is_some())?,
            false => Some(Vec::new()),
        };
        let to = match &from {
            Some(from) => self.mender.vol.fat.find_many_free(from.len() as u32)?,
            None => None,
        };
        let words = format!("it shares its clusters from {at} on with {other}");
        let repair = match to {
            _ if wanted == 0 => "ends its chain before that".into(),
            Some(_) => format!("gives it a copy of the {wanted} clusters that it needs"),
            None => {
                "ends its chain before that, for want of room for a copy; the rest is lost".into()
            }
        };
        let to = to.unwrap_or_default();
        if !self.mender.tell(code::CROSS_LINK, problem, words, repair)? {
            return Ok(changed);
        }
        let Some(&head) = to.first() else {
            self.cut_before(me)?;
            return Ok(changed);
        };
        for (&from, &to) in from.iter().flatten().zip(&to) {
            let mut bytes = vec![0; self.mender.vol.layout.cluster_len as usize];
            let [from, to] = [from, to].map(|n| self.mender.vol.layout.cluster_offset(n));
            self.mender.vol.disk.read(from, &mut bytes)?;
            self.mender.vol.disk.fill(to, &bytes)?;
        }
        for (i, &n) in to.iter().enumerate() {
            let next = to.get(i + 1).copied().unwrap_or(self.mender.vol.fat.end());
            self.mender.vol.set_link(n, next)?;
        }
        self.redirect(me, head)?;
        Ok(changed)
    }

    /// Returns the clusters of a chain from `at` on, at most `count` and, if that is
    /// `sure`, so many; `None` if there is no room for a copy of them.
    fn tail(&mut self, at: u32, count: u32, sure: bool) -> Result<Option<Vec<u32>>> {
        let room = self.mender.vol.fat.room()?;
        if sure && count > room {
            return Ok(None);
        }
        let mut all = Vec::new();
        let mut next = at;
        while (all.len() as u32) < count {
            if all.len() as u32 == room {
                return Ok(None);
            }
            all.push(next);
            match self.mender.vol.fat.link(next)? {
                Link::Next(n) => next = n,
                _ => break,
            }
        }
        Ok(Some(all))
    }

    /// Lets a chain go on elsewhere from the meeting on.
    fn redirect(&mut self, me: &Owner, head: u32) -> Result<()> {
        let start = self.mender.vol.start(&me.entry);
        match me.index.checked_sub(1) {
            None => self.mender.set_start(&as_problem(me, What::DotDot), head),
            Some(i) => match self.mender.vol.cluster_at(start, i)? {
                Some(last) => self.mender.vol.set_link(last, head),
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
        let path = self.mender.path(new.dir, new.slot)?;
        let problem = as_problem(&old, What::DotDot);
        let words = format!("it was being renamed to {}", escape(&path));
        if self.mender.tell(
            code::RENAME_TWIN,
            &problem,
            words,
            "takes the old name away",
        )? {
            self.mender.remove(&problem)?;
        }
        Ok(Some((problem.dir, problem.slot)))
    }

    /// Returns which of two twins is the old one: the one whose birth's hundredths, or
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
        let path = self.mender.path(right.dir, right.slot)?;
        let problem = as_problem(&wrong, What::DotDot);
        let words = format!("the directory is also {}", escape(&path));
        if self
            .mender
            .tell(code::DIR_TWICE, &problem, words, "takes this entry away")?
        {
            self.mender.remove(&problem)?;
        }
        Ok(Some((problem.dir, problem.slot)))
    }

    /// Returns which of two entries of a directory `..` speaks against.
    fn misplaced(&mut self, me: &Owner, other: &Owner) -> Result<Owner> {
        let start = self.mender.vol.start(&me.entry);
        if self.is_inside(me.dir, start) {
            return Ok(*me);
        }
        if self.is_inside(other.dir, start) {
            return Ok(*other);
        }
        let bytes = self.mender.peek(start)?;
        let above = bytes.as_chunks::<32>().0.get(1).map(|raw| {
            let entry: &DirEntry = zerocopy::transmute_ref!(raw);
            self.mender.vol.start(entry)
        });
        let mine = if me.dir == 0 {
            0
        } else {
            self.mender.dir(me.dir).cluster
        };
        Ok(if above == Some(mine) { *other } else { *me })
    }

    /// Returns whether a directory of the walk is, or is in, the one that begins with
    /// a cluster.
    fn is_inside(&self, number: u32, start: u32) -> bool {
        let mut number = number;
        for _ in 0..=self.mender.walk.dirs.len() {
            let dir = self.mender.dir(number);
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

/// Returns whether one of two entries is the other under a new name. What was written
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

/// Returns whether `new` is `old` after one more rename.
fn follows(new: &DirEntry, old: &DirEntry) -> bool {
    match (UnixData::read(new), UnixData::read(old)) {
        (Some(n), Some(o)) => n.generation == (o.generation + 1) % GENERATIONS,
        _ => {
            let (n, o) = (new.DIR_CrtTimeTenth, old.DIR_CrtTimeTenth);
            n < 200 && o < 200 && n == (o + 1) % 200
        }
    }
}
