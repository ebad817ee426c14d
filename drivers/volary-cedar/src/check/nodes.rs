//! What is in the name table, held to itself: names, nodes, runs, leaders.

use super::problem::{Fix, Problem, finding};
use crate::change::file::pages_of;
use crate::change::files::Files;
use crate::change::nodes::Nodes;
use crate::change::nodes::is_named;
use crate::change::sealing::Sealing;
use crate::disk::leader::Leader;
use crate::disk::runs::Runs;
use crate::disk::volume::Layout;
use crate::name_table::entry::{
    CHAIN, Entry, Head, NOWHERE, Part, Place, ROOT_UID, is_part, part_of_key, place_key,
    place_of_key,
};
use crate::space::vam::Vam;
use std::collections::btree_map::Entry as Entered;
use std::collections::{BTreeMap, BTreeSet};
use volary_core::{FileKind, Finding, Kind, Name, Progress, Result, Severity};

/// The longest path that is told, in bytes.
const PATH_MAX: usize = 4096;

/// All that the table says.
#[derive(Default)]
pub(super) struct Gathered {
    heads: BTreeMap<u64, (Place, Head)>,
    links: Vec<(Place, u64, u32)>,
    places: BTreeMap<(u64, u32), Place>,
    parts: BTreeMap<(u64, u8), BTreeSet<u16>>,
    /// Whether all data is read that has checksums.
    reads_data: bool,
    pub(super) files: usize,
    pub(super) dirs: usize,
    pub(super) problems: Vec<Problem>,
}

impl Gathered {
    pub(super) fn new(reads_data: bool) -> Self {
        Self {
            reads_data,
            ..Self::default()
        }
    }

    fn damage(
        &mut self,
        code: &'static str,
        message: String,
        repair: &str,
        fix: Fix,
        path: Option<Vec<u8>>,
    ) {
        self.problems.push(Problem {
            finding: Finding {
                path,
                ..finding(code, Severity::Damage, message, repair)
            },
            fix,
        });
    }

    /// Takes in a cell.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let name = Place::of_key(key).zip(Entry::decode(value));
        let place = place_of_key(key).zip(Place::decode(value));
        match (name, place, part_of_key(key)) {
            (Some((place, Entry::Head(head))), _, _) if !self.heads.contains_key(&head.uid) => {
                self.heads.insert(head.uid, (place, head));
            }
            (Some((place, Entry::Link(uid, number))), _, _) => {
                self.links.push((place, uid, number));
            }
            (None, Some((id, place)), _) => drop(self.places.insert(id, place)),
            (None, None, Some((of, kind, number))) if is_part(kind) => {
                self.parts.entry((of, kind)).or_default().insert(number);
            }
            _ => {
                let message = format!(
                    "an entry of the name table of {} bytes makes no sense",
                    key.len() + value.len()
                );
                self.damage(
                    "bad-entry",
                    message,
                    "take it away",
                    Fix::Remove(key.to_vec()),
                    None,
                );
            }
        }
    }

    /// Returns the path of a node, where one leads to it that is no longer than a path can be.
    fn path(&self, uid: u64) -> Option<Vec<u8>> {
        let mut parts: Vec<&[u8]> = Vec::new();
        let (mut at, mut len) = (uid, 0);
        while len <= PATH_MAX {
            if at == ROOT_UID {
                parts.reverse();
                return Some([b"/".to_vec(), parts.join(&b'/')].concat());
            }
            let (place, _) = self.heads.get(&at)?;
            parts.push(&place.name);
            len += place.name.len() + 1;
            at = place.dir;
        }
        None
    }

    /// Judges all, and marks in `vam` what files have.
    ///
    /// # Errors
    /// `Io`, `Interrupted`.
    pub(super) fn judge(
        &mut self,
        files: &mut Files,
        vam: &mut Vam,
        progress: &dyn Progress,
    ) -> Result<()> {
        self.judge_words();
        self.judge_names();
        self.judge_places();
        self.judge_links();
        self.judge_parts(&files.core.layout);
        self.judge_far(files.core.layout.has_remote());
        let heads: Vec<Head> = self.heads.values().map(|(_, head)| head.clone()).collect();
        for (i, head) in heads.iter().enumerate() {
            if i % 1024 == 0 {
                progress.progress("files", i as u64, heads.len() as u64)?;
            }
            if head.kind != FileKind::File {
                self.judge_other(head);
            }
            match head.kind {
                FileKind::Dir => self.dirs += 1,
                FileKind::File => self.judge_file(files, vam, head)?,
                _ => self.files += 1,
            }
        }
        Ok(())
    }

    /// Names must be such as can be asked for.
    fn judge_words(&mut self) {
        let is_bad = |place: &Place| place.dir != NOWHERE && Name::new(&place.name).is_err();
        let heads = self.heads.values().filter(|(place, _)| is_bad(place));
        let heads: Vec<_> = heads.map(|(p, h)| (p.clone(), h.uid)).collect();
        let links = self.links.iter().filter(|(place, ..)| is_bad(place));
        let links: Vec<_> = links.map(|(p, uid, _)| (p.clone(), *uid)).collect();
        let words = |uid| format!("nothing can be called what node {uid:#x} is called");
        for (place, uid) in heads {
            let fix = Fix::Adopt(place.key());
            self.damage("name", words(uid), "put it into the root", fix, None);
        }
        for (place, uid) in links {
            let fix = Fix::Remove(place.key());
            self.damage("name", words(uid), "take the name away", fix, None);
        }
    }

    /// Names must be in directories, from which a way leads to the root.
    fn judge_names(&mut self) {
        let root = self.heads.get(&ROOT_UID);
        if !root.is_some_and(|(place, head)| head.is_dir() && place.dir == NOWHERE) {
            let message = "there is no root directory".to_owned();
            self.damage("no-root", message, "make one", Fix::Root, None);
        }
        let is_dir = |uid: &u64| self.heads.get(uid).is_some_and(|(_, h)| h.is_dir());
        let lines = self.older();
        let mut lost: Vec<(Place, u64)> = Vec::new();
        let heads = self.heads.values().map(|(place, head)| (place, head.uid));
        for (place, uid) in heads.chain(self.links.iter().map(|(place, uid, _)| (place, *uid))) {
            let in_line = lines.contains(&(place.dir, uid));
            if place.dir != NOWHERE && !is_dir(&place.dir) && !in_line {
                lost.push((place.clone(), uid));
            }
        }
        // Directories that lead round in a circle: the least of each is adopted.
        let round = self.circles().into_iter();
        let round = round.filter_map(|uid| self.heads.get(&uid));
        let round = round.filter(|(place, head)| head.is_dir() && is_dir(&place.dir));
        lost.extend(round.map(|(place, head)| (place.clone(), head.uid)));
        for (place, uid) in lost {
            let message = format!(
                "node {uid:#x} is in directory {:#x}, which no path leads to",
                place.dir
            );
            self.damage(
                "lost",
                message,
                "put it into the root",
                Fix::Adopt(place.key()),
                None,
            );
        }
        let nameless: Vec<u64> = self
            .heads
            .values()
            .filter(|(place, _)| place.dir == NOWHERE && !is_named(place))
            .map(|(_, head)| head.uid)
            .collect();
        for uid in nameless {
            let message = format!("node {uid:#x} was removed while it was open");
            self.problems.push(Problem {
                finding: finding("nameless", Severity::Crash, message, "give its room back"),
                fix: Fix::Nameless(uid),
            });
        }
    }

    /// Returns the older versions of files that are there: the line and the node.
    fn older(&self) -> BTreeSet<(u64, u64)> {
        let heads = || self.heads.values();
        let newest = heads().filter(|(place, head)| head.line != 0 && !head.is_older(place));
        let lines: BTreeSet<u64> = newest.map(|(_, head)| head.line).collect();
        heads()
            .filter(|(place, head)| head.is_older(place) && lines.contains(&head.line))
            .map(|(place, head)| (place.dir, head.uid))
            .collect()
    }

    /// Returns the least node of each circle of directories that hold each other. Each node is met once.
    fn circles(&self) -> Vec<u64> {
        let mut circles = Vec::new();
        // Nodes that were met, and from where on.
        let mut met: BTreeMap<u64, u64> = BTreeMap::new();
        for &start in self.heads.keys() {
            let mut at = start;
            let is_circle = loop {
                let Some((place, _)) = self.heads.get(&at).filter(|_| at != ROOT_UID) else {
                    break false;
                };
                match met.entry(at) {
                    Entered::Occupied(before) => break *before.get() == start,
                    Entered::Vacant(new) => new.insert(start),
                };
                at = place.dir;
            };
            if is_circle {
                circles.push(self.least_of_circle(at));
            }
        }
        circles
    }

    /// Returns the least node of the circle that this one is in.
    fn least_of_circle(&self, of: u64) -> u64 {
        let (mut least, mut at) = (of, of);
        while let Some((place, _)) = self.heads.get(&at) {
            at = place.dir;
            least = least.min(at);
            if at == of {
                break;
            }
        }
        least
    }

    /// Each name must be known of its node, and the other way round.
    fn judge_places(&mut self) {
        let mut should: BTreeMap<(u64, u32), Place> = BTreeMap::new();
        for (place, head) in self.heads.values() {
            should.insert((head.uid, head.number), place.clone());
        }
        for (place, uid, number) in &self.links {
            should.insert((*uid, *number), place.clone());
        }
        let wrong: Vec<_> = should
            .iter()
            .filter(|(id, place)| self.places.get(*id) != Some(place))
            .map(|(id, place)| (*id, place.clone()))
            .collect();
        for ((uid, number), place) in wrong {
            let fix = Fix::Put(place_key(uid, number), place.encode());
            let message = format!("node {uid:#x} does not know of its name");
            self.damage("place", message, "have it know", fix, self.path(uid));
        }
        let extra: Vec<_> = self
            .places
            .keys()
            .filter(|id| !should.contains_key(*id))
            .copied()
            .collect();
        for (uid, number) in extra {
            let fix = Fix::Remove(place_key(uid, number));
            let message = format!("node {uid:#x} is said to have a name that is not there");
            self.damage("place", message, "take it away", fix, None);
        }
    }

    /// Links must lead to files, and all names be counted.
    fn judge_links(&mut self) {
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        let mut dangling = Vec::new();
        for (place, uid, _) in &self.links {
            match self.heads.get(uid) {
                Some((_, head)) if !head.is_dir() => *counts.entry(*uid).or_default() += 1,
                _ => dangling.push((place.clone(), *uid)),
            }
        }
        for (place, uid) in dangling {
            let message = format!("a name leads to node {uid:#x}, which is no file that is there");
            self.damage(
                "link",
                message,
                "take it away",
                Fix::Remove(place.key()),
                None,
            );
        }
        for (place, head) in self.heads.values() {
            if is_named(place) && place.dir != NOWHERE {
                let counted = if head.is_dir() { place.dir } else { head.uid };
                *counts.entry(counted).or_default() += 1;
            }
        }
        let wrong: Vec<(u64, u32, u32)> = self
            .heads
            .values()
            .filter(|(place, _)| is_named(place))
            .filter_map(|(_, head)| {
                let own = if head.is_dir() { 2 } else { 0 };
                let right = own + counts.get(&head.uid).copied().unwrap_or(0);
                (head.nlink != right).then_some((head.uid, head.nlink, right))
            })
            .collect();
        for (uid, said, right) in wrong {
            let message = format!("it says that it has {said} links, there are {right}");
            self.damage(
                "links",
                message,
                "count them",
                Fix::Links(uid, right),
                self.path(uid),
            );
        }
    }

    /// Parts must be of a node, and be as many as it says.
    fn judge_parts(&mut self, layout: &Layout) {
        let mut said: BTreeMap<(u64, u8), u16> = BTreeMap::new();
        for (_, head) in self.heads.values() {
            for part in Part::ALL {
                let count = said.entry(layout.parts_under(head, part)).or_default();
                *count = head.parts_of(part).max(*count);
            }
        }
        let mut wrong = Vec::new();
        for ((of, kind), numbers) in &self.parts {
            let said = said.get(&(*of, *kind)).copied().unwrap_or(0);
            let extra = numbers.iter().filter(|n| **n >= said);
            wrong.extend(extra.map(|n| (*of, *kind, *n)));
        }
        for (of, kind, number) in wrong {
            let fix = Fix::Remove(crate::name_table::entry::part_key(of, kind, number));
            let whose = if kind == CHAIN { "page" } else { "node" };
            let message = format!("part {kind}.{number} of {whose} {of:#x} belongs to nothing");
            self.damage("part", message, "take it away", fix, None);
        }
        let lacks = |head: &Head, part: Part| {
            let there = self.parts.get(&layout.parts_under(head, part));
            (0..head.parts_of(part)).any(|n| there.is_none_or(|t| !t.contains(&n)))
        };
        let content = [Part::Runs, Part::Target, Part::Xattrs];
        let missing: Vec<u64> = self
            .heads
            .values()
            .filter(|(_, head)| content.into_iter().any(|part| lacks(head, part)))
            .map(|(_, head)| head.uid)
            .collect();
        for uid in missing {
            let message = "a part of what is known of it is lost".to_owned();
            self.damage(
                "part",
                message,
                "take its content away",
                Fix::Empty(uid),
                self.path(uid),
            );
        }
    }

    /// Nodes of the remote must have a path there: a link, and what is under one.
    fn judge_far(&mut self, has_remote: bool) {
        let is_far = |uid: &u64| self.heads.get(uid).is_some_and(|(_, h)| h.far.is_some());
        let wrong: Vec<(u64, bool)> = self
            .heads
            .values()
            .filter(|(place, head)| {
                let below = is_named(place) && is_far(&place.dir);
                let nowhere = place.dir == NOWHERE && !is_named(place);
                match head.far {
                    Some(_) => !(has_remote && (head.is_link() || below || nowhere)),
                    None => below,
                }
            })
            .map(|(_, head)| (head.uid, head.far.is_some()))
            .collect();
        for (uid, is_far) in wrong {
            let (message, repair, fix) = match is_far {
                true => (
                    "it is a file of the remote, but nothing says which",
                    "make it the volume's own",
                    Fix::Own(uid),
                ),
                false => (
                    "it is in a directory of the remote, but no file of it",
                    "take its content away, and have the remote say what it is",
                    Fix::Away(uid),
                ),
            };
            let path = self.path(uid);
            self.damage("remote", message.to_owned(), repair, fix, path);
        }
    }

    /// What is no file has no pages.
    fn judge_other(&mut self, head: &Head) {
        if head.runs.is_empty() && head.parts_of(Part::Runs) == 0 {
            return;
        }
        let message = "it has pages, but is no file".to_owned();
        let fix = Fix::Empty(head.uid);
        let path = self.path(head.uid);
        self.damage("runs", message, "take its content away", fix, path);
    }

    /// Runs must be pages for files, of no other file, as many as the size
    /// needs; and the leader must agree.
    fn judge_file(&mut self, files: &mut Files, vam: &mut Vam, head: &Head) -> Result<()> {
        self.files += 1;
        let runs = match Nodes::of(files).runs(head) {
            Ok(runs) => runs,
            Err(e) if e == Kind::Corrupt => {
                let message = format!("it lies where no files can: {e}");
                self.damage(
                    "runs",
                    message,
                    "take its content away",
                    Fix::Empty(head.uid),
                    self.path(head.uid),
                );
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        if let Some(run) = overlap(vam, &runs) {
            let message = format!("page {run} is of another file as well");
            self.damage(
                "cross-link",
                message,
                "take its content away",
                Fix::Empty(head.uid),
                self.path(head.uid),
            );
            return Ok(());
        }
        let needed = if head.is_away() {
            0
        } else {
            files.core.layout.pages_for(head.size)
        };
        if pages_of(&runs.0) != u64::from(needed) {
            let message = format!("it has {} pages for {} bytes", pages_of(&runs.0), head.size);
            self.damage(
                "size",
                message,
                "make them agree",
                Fix::Size(head.uid),
                self.path(head.uid),
            );
        }
        self.judge_sums(files, head, &runs)?;
        let Some(page) = runs.leader() else {
            return Ok(());
        };
        let found = files.core.leader(page).ok().flatten();
        if found != Some(Leader::of(head.uid, &runs, &files.core.layout)) {
            let message = crate::disk::leader::DIFFERS.to_owned();
            let (fix, path) = (Fix::Leader(head.uid), self.path(head.uid));
            self.damage("leader", message, "write it anew", fix, path);
            if let Some(problem) = self.problems.last_mut() {
                problem.finding.offset = Some(files.core.layout.offset(page));
            }
        }
        Ok(())
    }
}

impl Gathered {
    /// Checksums must be of the file's bytes and, if data is read, be right.
    fn judge_sums(&mut self, files: &mut Files, head: &Head, runs: &Runs) -> Result<()> {
        let (code, checked) = match Sealing::of(files).sums(head) {
            Ok(_) if self.reads_data => ("data", Sealing::of(files).check_data(head, runs)),
            other => ("sums", other.map(drop)),
        };
        match checked {
            Err(e) if matches!(e.kind(), Kind::Corrupt | Kind::Io) => {
                let repair = "take its checksums away; it is read as it is then";
                let (fix, path) = (Fix::Sums(head.uid), self.path(head.uid));
                self.damage(code, format!("{e}"), repair, fix, path);
                Ok(())
            }
            other => other,
        }
    }
}

/// Marks runs; the first page that was marked before.
fn overlap(vam: &mut Vam, runs: &Runs) -> Option<u32> {
    for run in &runs.0 {
        if !vam.is_free(*run) {
            return (run.start..run.start + run.len).find(|p| vam.is_used(*p));
        }
        vam.mark(run.start, run.len, true);
    }
    None
}
