//! Phases 2 and 3: names, and whether all directories hang together.

use super::findings::{Findings, finding};
use super::inodes::Inodes;
use super::plan::Plan;
use crate::disk::blocks::Reader;
use crate::disk::dir;
use crate::disk::ondisk::{ENTRY_LEN, NAME_MAX, ROOT_INO};
use std::collections::{BTreeMap, HashMap, HashSet};
use volary_core::{FileKind, Finding, Name, Result, Severity};

/// Entries that lead to nothing and are judged by where they stand: a power cut leaves few.
const DANGLING_MAX: usize = 1 << 16;

/// A name, with zeros behind.
type Padded = [u8; NAME_MAX];

/// A name of a directory.
#[derive(Clone, Copy)]
struct Home {
    /// What holds it.
    dir: u32,
    /// Where its entry is on the device.
    place: u64,
}

struct Phase<'a, 'b> {
    reader: Reader<'a>,
    findings: &'a mut Findings<'b>,
    plan: &'a mut Plan,
    inodes: &'a mut Inodes,
    /// Names of each directory.
    homes: BTreeMap<u32, Vec<Home>>,
    /// What `..` of each directory leads to.
    above: BTreeMap<u32, u32>,
    /// First entries that are not as they must be.
    bent: BTreeMap<u32, bool>,
    /// Where the first block of a directory is, if it is its own.
    first: HashMap<u32, u64>,
    /// Entries that lead to nothing: of which directory, where, and what is to be told.
    dangling: Vec<(u32, u64, String)>,
}

/// Goes through all directories.
///
/// # Errors
/// `Interrupted`; `Io`.
pub(super) fn check(
    reader: Reader<'_>,
    inodes: &mut Inodes,
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) -> Result<()> {
    let dirs: Vec<u32> = inodes
        .all
        .iter()
        .filter(|(_, seen)| seen.kind == FileKind::Dir)
        .map(|(&ino, _)| ino)
        .collect();
    let mut phase = Phase {
        reader,
        findings,
        plan,
        inodes,
        homes: BTreeMap::new(),
        above: BTreeMap::new(),
        bent: BTreeMap::new(),
        first: HashMap::new(),
        dangling: Vec::new(),
    };
    let total = dirs.len() as u64;
    for (done, &dir) in (0..).zip(&dirs) {
        phase.findings.progress("directories", done, total)?;
        phase.directory(dir)?;
    }
    phase.choose(&dirs);
    phase.connect(&dirs);
    phase.dangling();
    phase.dots(&dirs);
    Ok(())
}

impl Phase<'_, '_> {
    /// Goes through the entries of a directory, as far as its blocks are its own.
    fn directory(&mut self, ino: u32) -> Result<()> {
        let volume = self.reader.volume;
        let Some(seen) = self.inodes.all.get_mut(&ino) else {
            return Ok(());
        };
        let (size, blocks) = (seen.size, std::mem::take(&mut seen.blocks));
        let mut names = HashSet::new();
        let mut bytes = vec![0; volume.block_len()];
        let mut dots = [false; 2];
        for (lbn, block) in blocks {
            let place = u64::from(block) * volume.bsize;
            if lbn == 0 {
                self.first.insert(ino, place);
            }
            self.reader.cache.read(place, &mut bytes)?;
            for (i, raw) in bytes.chunks_exact(ENTRY_LEN).enumerate() {
                let within = (i * ENTRY_LEN) as u64;
                let at = u64::from(lbn) * volume.bsize + within;
                if at >= size {
                    break;
                }
                let entry = dir::parse(volume, at, raw);
                match usize::try_from(at / ENTRY_LEN as u64) {
                    Ok(n @ 0..2) => {
                        if let Some(is_right) = dots.get_mut(n) {
                            *is_right = self.dot(ino, n, &entry);
                        }
                    }
                    _ if entry.ino != 0 => {
                        self.padding(ino, place + within, &entry, raw);
                        self.entry(ino, place + within, &entry, &mut names);
                    }
                    _ => {}
                }
            }
        }
        self.bent.insert(ino, dots != [true; 2]);
        Ok(())
    }

    /// One of the first two entries; returns whether it is as it must be, but for what `..` leads to.
    fn dot(&mut self, dir: u32, n: usize, entry: &dir::Entry<'_>) -> bool {
        if n == 0 {
            return entry.ino == dir && entry.name == b".";
        }
        if entry.name == b".." {
            self.above.insert(dir, entry.ino);
        }
        entry.name == b".." && entry.ino != 0
    }

    fn tell(&mut self, code: &'static str, severity: Severity, at: u64, message: String) -> bool {
        self.findings.tell(&Finding {
            code,
            ..finding(severity, at, message)
        })
    }

    /// Takes an entry out, if that is wished.
    fn take_out(&mut self, is_mended: bool, place: u64) {
        if is_mended {
            self.plan.entry(place, [0; ENTRY_LEN]);
        }
    }

    /// What is behind a name must be zeros: the Seventh Edition compares it too.
    fn padding(&mut self, dir: u32, place: u64, entry: &dir::Entry<'_>, raw: &[u8]) {
        let behind = raw.get(2 + entry.name.len()..).unwrap_or_default();
        if behind.iter().all(|&b| b == 0) {
            return;
        }
        let shown = volary_core::escape(entry.name);
        let message = format!("directory {dir} has bytes behind the end of the name '{shown}'");
        if self.tell("padding", Severity::Damage, place, message) {
            let bytes = dir::bytes(self.reader.volume, entry.ino, entry.name);
            self.plan.entry(place, bytes);
        }
    }

    fn entry(&mut self, dir: u32, place: u64, entry: &dir::Entry<'_>, names: &mut HashSet<Padded>) {
        let ino = entry.ino;
        let shown = volary_core::escape(entry.name);
        if Name::new(entry.name).is_err() {
            let message = format!("directory {dir} has the name '{shown}' for inode {ino}");
            let is_mended = self.tell("name", Severity::Damage, place, message);
            return self.take_out(is_mended, place);
        }
        let Some(seen) = self.inodes.all.get_mut(&ino).filter(|_| ino >= ROOT_INO) else {
            let message =
                format!("'{shown}' in directory {dir} leads to inode {ino}, which is not in use");
            if self.dangling.len() < DANGLING_MAX {
                return self.dangling.push((dir, place, message));
            }
            let is_mended = self.tell("unallocated", Severity::Damage, place, message);
            return self.take_out(is_mended, place);
        };
        let mut padded = [0; NAME_MAX];
        for (to, from) in padded.iter_mut().zip(entry.name) {
            *to = *from;
        }
        if !names.insert(padded) {
            let message = format!("directory {dir} has the name '{shown}' twice");
            let is_mended = self.tell("same-name", Severity::Damage, place, message);
            return self.take_out(is_mended, place);
        }
        match seen.kind {
            FileKind::Dir => {
                let homes = self.homes.entry(ino).or_default();
                homes.push(Home { dir, place });
            }
            _ => seen.names += 1,
        }
    }

    /// Of several names of a directory, keeps the one that its `..` leads to. The root has none.
    fn choose(&mut self, dirs: &[u32]) {
        for &ino in dirs {
            let homes = self.homes.remove(&ino).unwrap_or_default();
            let above = self.above.get(&ino).copied();
            let by_dots = homes.iter().position(|home| Some(home.dir) == above);
            let kept = match ino {
                ROOT_INO => None,
                _ => by_dots.or_else(|| (!homes.is_empty()).then_some(0)),
            };
            for (i, home) in homes.iter().enumerate() {
                if Some(i) == kept {
                    self.homes.insert(ino, vec![*home]);
                    continue;
                }
                let message = match ino {
                    ROOT_INO => format!("directory {} has a name for the root", home.dir),
                    _ => format!(
                        "directory {ino} has another name, in directory {}",
                        home.dir
                    ),
                };
                let severity = match ino {
                    ROOT_INO => Severity::Damage,
                    _ => self.findings.severity(),
                };
                let is_mended = self.tell("twice", severity, home.place, message);
                self.take_out(is_mended, home.place);
            }
        }
    }

    /// Tells of entries that lead to nothing. A directory that was new at a power cut can have them, if
    /// it has no name as yet: its inode and theirs come to the disk in any order.
    fn dangling(&mut self) {
        let mut known = HashMap::from([(ROOT_INO, true)]);
        for (dir, place, message) in std::mem::take(&mut self.dangling) {
            let severity = match self.is_connected(dir, &mut known) {
                true => Severity::Damage,
                false => self.findings.severity(),
            };
            let is_mended = self.tell("unallocated", severity, place, message);
            self.take_out(is_mended, place);
        }
    }

    /// Returns whether a way leads from the root to a directory, where there are no circles any more.
    fn is_connected(&self, dir: u32, known: &mut HashMap<u32, bool>) -> bool {
        let (mut at, mut way) = (dir, Vec::new());
        let answer = loop {
            if let Some(&answer) = known.get(&at) {
                break answer;
            }
            way.push(at);
            match self.home(at) {
                Some(home) if way.len() <= self.homes.len() => at = home.dir,
                _ => break false,
            }
        };
        known.extend(way.into_iter().map(|dir| (dir, answer)));
        answer
    }

    fn home(&self, dir: u32) -> Option<Home> {
        self.homes
            .get(&dir)
            .and_then(|homes| homes.first())
            .copied()
    }

    /// Finds directories that nothing leads to from the root: one at the head of each such tree, and
    /// one of each circle.
    fn connect(&mut self, dirs: &[u32]) {
        let mut settled: HashSet<u32> = HashSet::from([ROOT_INO]);
        for &ino in dirs {
            let (mut at, mut way) = (ino, HashSet::new());
            while !settled.contains(&at) {
                way.insert(at);
                let Some(home) = self.home(at) else {
                    self.unconnected(at);
                    break;
                };
                if way.contains(&home.dir) {
                    self.circle(at, home);
                    break;
                }
                at = home.dir;
            }
            settled.extend(way);
        }
        for &ino in dirs {
            if let Some(home) = self.home(ino) {
                if let Some(seen) = self.inodes.all.get_mut(&ino) {
                    seen.parent = home.dir;
                    seen.names = 1;
                }
                if let Some(above) = self.inodes.all.get_mut(&home.dir) {
                    above.children += 1;
                }
            }
        }
    }

    fn unconnected(&mut self, ino: u32) {
        let at = self.reader.volume.inode_at(ino);
        let message = format!("no name leads to directory {ino}");
        let severity = self.findings.severity();
        if self.tell("unconnected", severity, at, message) {
            match self.findings.frees_unreferenced() {
                true => self.plan.inode(ino).free = true,
                false => {
                    self.plan.lost.insert(ino);
                }
            }
        }
    }

    fn circle(&mut self, ino: u32, home: Home) {
        let message = format!("directory {ino} lies in a circle of directories");
        let is_mended = self.tell("circle", Severity::Damage, home.place, message);
        self.take_out(is_mended, home.place);
        self.homes.remove(&ino);
    }

    /// Looks at `.` and `..` of directories that have a place.
    fn dots(&mut self, dirs: &[u32]) {
        for &ino in dirs {
            let parent = match (ino, self.home(ino)) {
                (ROOT_INO, _) => ROOT_INO,
                (_, Some(home)) => home.dir,
                // It gets one in lost+found, and its dots then.
                (_, None) => continue,
            };
            let is_bent = self.bent.get(&ino).copied().unwrap_or(true);
            if !is_bent && self.above.get(&ino) == Some(&parent) {
                continue;
            }
            let at = self.reader.volume.inode_at(ino);
            let message = format!("directory {ino} does not begin with '.' and '..'");
            if self.tell("dots", Severity::Damage, at, message) {
                self.mend_dots(ino, parent);
            }
        }
    }

    fn mend_dots(&mut self, ino: u32, parent: u32) {
        let volume = self.reader.volume;
        let Some(&place) = self.first.get(&ino) else {
            let inode = self.reader.inode_as_it_is(ino.into());
            let first = inode.as_ref().ok().and_then(|inode| inode.addr.first());
            let block = u64::from(first.copied().unwrap_or(0));
            // One that another has is copied first: the next round makes them in the copy.
            if !volume.data().contains(&block) {
                self.plan.inode(ino).dots = Some(parent);
            }
            return;
        };
        let dots = [
            (place, ino, &b"."[..]),
            (place + ENTRY_LEN as u64, parent, b".."),
        ];
        for (place, ino, name) in dots {
            let bytes = dir::bytes(volume, ino, name);
            self.plan.entry(place, bytes);
        }
        let size = self.inodes.all.get(&ino).map_or(0, |seen| seen.size);
        if size < 2 * ENTRY_LEN as u64 {
            self.plan.inode(ino).size = Some(2 * ENTRY_LEN as u64);
        }
    }
}
