//! Nodes in the name table: found by name or by uid, kept, destroyed.

use crate::change::files::Files;
use crate::commit::core::Core;
use crate::disk::runs::{RUN, Run, Runs};
use crate::disk::sums::Seals;
use crate::disk::sums::{FIXED, SUM};
use crate::disk::volume::Layout;
use crate::mistakes::{Mistake, made};
use crate::name_table::entry::{
    CHAIN, CHAIN_MAX, Entry, FAR, FIRST_VERSION, HEAD, Head, NAME_KEY, NOWHERE, PART_KEY, Part,
    Place, ROOT_NAME, ROOT_UID, name_prefix, part_key, place_key, place_of_key, place_prefix,
};
use crate::name_table::page::cell_max;
use crate::tree::btree::Tree;
use volary_core::{Error, FileKind, Kind, NodeId, Result, Time};

/// Longest name, whatever the page.
const NAME_MAX: usize = 255;
/// Runs that a head has room for, whatever its name.
const RUNS_IN_HEAD: usize = 16;

impl Layout {
    /// Returns bytes of the longest head without runs.
    fn head_len(&self) -> usize {
        HEAD + if self.has_remote() { FAR } else { 0 }
    }

    /// Longest name, in bytes.
    pub(crate) fn name_max(&self) -> usize {
        (cell_max(self.page_len()) - NAME_KEY - self.head_len() - 2 * RUN).min(NAME_MAX)
    }

    /// Runs that a head has.
    pub(crate) fn runs_in_head(&self) -> usize {
        let room = cell_max(self.page_len()) - NAME_KEY - self.head_len() - self.name_max();
        (room / RUN).min(RUNS_IN_HEAD)
    }

    /// Returns bytes that a part has.
    pub(crate) fn part_len(&self) -> usize {
        (cell_max(self.page_len()) - PART_KEY) / RUN * RUN
    }

    /// Most parts of a kind: those of all kinds are changed in one record.
    pub(crate) fn parts_max(&self) -> usize {
        (self.logged_max as usize / 6).clamp(2, 32)
    }

    /// Most bytes in parts of a kind but runs.
    pub(crate) fn parts_len(&self) -> usize {
        self.parts_max() * self.part_len()
    }

    /// Most bytes in parts of runs. In a chain no change writes more than the parts that
    /// it adds or cuts, so that a record does not bound them.
    fn runs_len(&self) -> usize {
        match self.has_chains {
            true => usize::from(CHAIN_MAX) * self.part_len(),
            false => self.parts_len(),
        }
    }

    /// Most runs of a file.
    pub(crate) fn runs_max(&self) -> usize {
        self.runs_in_head() + self.runs_len() / RUN
    }

    /// Most checksums of a file.
    pub(crate) fn sums_max(&self) -> usize {
        let parts = (self.parts_max() / 2).max(1);
        (parts * self.part_len() - FIXED) / SUM
    }

    /// Returns what a node's parts of a kind are kept under: whose they are, and the kind in keys.
    pub(crate) fn parts_under(&self, head: &Head, part: Part) -> (u64, u8) {
        match head.runs.first() {
            Some(first) if part == Part::Runs && self.has_chains => (first.start.into(), CHAIN),
            _ => (head.uid, part as u8),
        }
    }
}

/// Returns the id that is given out for a uid.
pub(crate) fn node_id(uid: u64) -> Result<NodeId> {
    NodeId::new(uid, 0).ok_or_else(|| Kind::Stale.into())
}

/// Returns the uid of an id that was given out.
pub(crate) fn uid_of(node: NodeId) -> Result<u64> {
    match node.generation {
        0 => Ok(node.ino.get()),
        _ => Err(Kind::Stale.into()),
    }
}

/// Longest way from a node to the root that is told.
const PATH_DEPTH: usize = 256;

/// Nodes by their uids and names: heads, places, runs and other parts.
pub(crate) struct Nodes<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) seals: &'a mut Seals,
    pub(crate) leaving: &'a mut Vec<u64>,
}

impl<'a> Nodes<'a> {
    pub(crate) fn of(files: &'a mut Files) -> Self {
        Self {
            core: &mut files.core,
            seals: &mut files.seals,
            leaving: &mut files.leaving,
        }
    }

    fn tree(&mut self) -> Tree<'_> {
        Tree::of(self.core)
    }

    /// Returns the path of a node, as far as the name table tells.
    pub(crate) fn path_of(&mut self, uid: u64) -> Option<Vec<u8>> {
        let (mut parts, mut at) = (Vec::new(), uid);
        for _ in 0..PATH_DEPTH {
            if at == crate::name_table::entry::ROOT_UID {
                parts.reverse();
                return Some([b"/".to_vec(), parts.join(&b'/')].concat());
            }
            let (place, head) = self.home(at).ok()?;
            if head.is_older(&place) || !is_named(&place) {
                return None;
            }
            parts.push(place.name);
            at = place.dir;
        }
        None
    }

    fn bad_entry(&self, what: &'static str) -> Error {
        let at = self.core.layout.offset(self.core.layout.table_a);
        Error::corrupt(
            what,
            at,
            "not what leads to it says",
            "an entry of the name table",
        )
    }

    /// Returns the newest version of a name.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn find(&mut self, dir: u64, name: &[u8]) -> Result<Option<(Place, Entry)>> {
        let found = self
            .tree()
            .first_as(&name_prefix(dir, name), |key, value| {
                Place::of_key(key).zip(Entry::decode(value))
            })?;
        match found {
            Some(None) => Err(self.bad_entry("name")),
            found => Ok(found.flatten()),
        }
    }

    /// Returns where a node's head is, and the head.
    ///
    /// # Errors
    /// `Stale` if there is no such node; `Corrupt`, `Io`.
    pub(crate) fn home(&mut self, uid: u64) -> Result<(Place, Head)> {
        let place = self
            .tree()
            .first_as(&place_prefix(uid), |_, value| Place::decode(value))?;
        let place = place.ok_or(Kind::Stale)?;
        let place = place.ok_or_else(|| self.bad_entry("place"))?;
        match self.tree().get_as(&place.key(), Entry::decode)?.flatten() {
            Some(Entry::Head(head)) if head.uid == uid => Ok((place, head)),
            _ => Err(self.bad_entry("place")),
        }
    }

    /// Returns the head that an entry leads to.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn head_of(&mut self, entry: Entry) -> Result<Head> {
        match entry {
            Entry::Head(head) => Ok(head),
            Entry::Link(uid, _) => match self.home(uid) {
                Ok((_, head)) => Ok(head),
                Err(e) if e == Kind::Stale => Err(self.bad_entry("link")),
                Err(e) => Err(e),
            },
        }
    }

    /// Returns a directory.
    ///
    /// # Errors
    /// `Stale`, `NotDir`.
    pub(crate) fn dir(&mut self, uid: u64) -> Result<(Place, Head)> {
        let (place, head) = self.home(uid)?;
        match head.is_dir() {
            true => Ok((place, head)),
            false => Err(Kind::NotDir.into()),
        }
    }

    /// Keeps a head where it is.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn keep(&mut self, place: &Place, head: Head) -> Result<()> {
        self.tree().put(&place.key(), &Entry::Head(head).encode())
    }

    /// Counts a change of a node; see [`Head::touch`].
    ///
    /// # Errors
    /// As [`home`](Self::home) and [`keep`](Self::keep).
    pub(crate) fn touch(&mut self, uid: u64, now: Time, content: bool) -> Result<()> {
        let (place, mut head) = self.home(uid)?;
        head.touch(now, content);
        self.keep(&place, head)
    }

    /// Puts an entry under a name, and has the node know of that name.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn put_entry(&mut self, place: &Place, entry: &Entry) -> Result<()> {
        let (uid, number) = match entry {
            Entry::Head(head) => (head.uid, head.number),
            Entry::Link(uid, number) => (*uid, *number),
        };
        self.tree().put(&place.key(), &entry.encode())?;
        self.tree().put(&place_key(uid, number), &place.encode())
    }

    /// Makes the root of an empty volume.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub(crate) fn make_root(&mut self, now: Time, mode: u32, owner: u32, group: u32) -> Result<()> {
        let mut head = new_head(ROOT_UID, FileKind::Dir, now);
        (head.mode, head.owner, head.group, head.nlink) = (mode, owner, group, 2);
        self.put_entry(&Place::new(NOWHERE, ROOT_NAME), &Entry::Head(head))
    }

    /// Takes a name from a node, whose head has one fewer then. The entry is
    /// gone from its directory already. A node that loses its last name goes, or,
    /// if it is `open`, is kept nowhere.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn drop_name(&mut self, entry: Entry, now: Time, open: bool) -> Result<()> {
        match entry {
            Entry::Link(uid, number) => {
                self.tree().remove(&place_key(uid, number))?;
                let (place, mut head) = self.home(uid)?;
                head.nlink = head.nlink.saturating_sub(1);
                head.touch(now, false);
                self.keep(&place, head)
            }
            Entry::Head(mut head) => {
                head.touch(now, false);
                head.nlink = if head.is_dir() {
                    0
                } else {
                    head.nlink.saturating_sub(1)
                };
                self.tree().remove(&place_key(head.uid, head.number))?;
                if head.nlink > 0 {
                    return self.move_head(head);
                }
                // Older versions go first, each on its own.
                self.leaving
                    .extend(Some(head.uid).filter(|_| head.line != 0));
                match open || head.line != 0 {
                    true => {
                        let place = Place::nowhere(head.uid);
                        self.put_entry(&place, &Entry::Head(head))
                    }
                    false => self.destroy(head),
                }
            }
        }
    }

    /// Keeps a head, whose name is gone, under the next of its names.
    fn move_head(&mut self, mut head: Head) -> Result<()> {
        let next = self.tree().first(&place_prefix(head.uid))?;
        let found =
            next.and_then(|(key, value)| Some((place_of_key(&key)?.1, Place::decode(&value)?)));
        let (number, place) = found.ok_or_else(|| self.bad_entry("place"))?;
        head.number = number;
        if made(Mistake::HeadLosesLink) {
            head.nlink += 1;
        }
        self.keep(&place, head)
    }

    /// Gives back all that a node has. Its names are gone already.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn destroy(&mut self, mut head: Head) -> Result<()> {
        let runs = self.runs(&head)?;
        let none = Runs::default();
        let txn = &mut self.core.txn;
        txn.set_leader(&self.core.layout, head.uid, runs.leader(), &none);
        txn.free(runs.0);
        if made(Mistake::PartsStay) {
            return Ok(());
        }
        self.seals.waiting.remove(&head.uid);
        for part in Part::ALL {
            self.set_parts(&mut head, part, &[])?;
        }
        Ok(())
    }

    // ---- Runs and other parts ----

    /// Returns all runs of a file.
    ///
    /// # Errors
    /// `Corrupt` for runs that are not where files lie; `Io`.
    pub(crate) fn runs(&mut self, head: &Head) -> Result<Runs> {
        let mut runs = Runs(head.runs.clone());
        if head.parts_of(Part::Runs) > 0 {
            let bytes = self.parts(head, Part::Runs)?;
            runs.0.extend(Runs::decode(&bytes));
        }
        let bad = runs
            .0
            .iter()
            .find(|r| !self.core.layout.is_data_run(r.start, r.len));
        match bad {
            Some(r) => Err(Error::corrupt(
                "run",
                self.core.layout.offset(r.start),
                format!("{} pages", r.len),
                "pages for files",
            )),
            None => Ok(runs),
        }
    }

    /// As [`runs`](Self::runs), of a node by its uid.
    ///
    /// # Errors
    /// `Stale`, `Corrupt`, `Io`.
    pub(crate) fn runs_of_uid(&mut self, uid: u64) -> Result<Runs> {
        let (_, head) = self.home(uid)?;
        self.runs(&head)
    }

    /// Sets the runs of a head, and updates the leader. `old` was the leader.
    ///
    /// # Errors
    /// `NoSpace` for a file in more pieces than can be kept; `Corrupt`, `Io`.
    pub(crate) fn set_runs(
        &mut self,
        head: &mut Head,
        old: Option<u32>,
        runs: &Runs,
    ) -> Result<()> {
        let in_head = self.core.layout.runs_in_head().min(runs.0.len());
        let (first, rest) = runs.0.split_at(in_head);
        if rest.len() * RUN > self.core.layout.runs_len() {
            let words = "the free room is in too many pieces for one file";
            return Err(Error::note(Kind::NoSpace, words));
        }
        if head.runs.first().map(|run| run.start) != runs.leader() {
            // A chain is kept under the leader, which goes.
            self.set_parts(head, Part::Runs, &[])?;
        }
        head.runs = first.to_vec();
        self.set_parts(head, Part::Runs, &Runs::encode(rest))?;
        let txn = &mut self.core.txn;
        txn.set_leader(&self.core.layout, head.uid, old, runs);
        Ok(())
    }

    /// Takes the runs out of a head: they belong to another node from now on.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn hand_runs_over(&mut self, head: &mut Head) -> Result<()> {
        match self.core.layout.has_chains {
            // It is kept under the leader, which stays.
            true if !made(Mistake::ChainGoesWithName) => head.set_parts_of(Part::Runs, 0),
            _ => self.set_parts(head, Part::Runs, &[])?,
        }
        head.runs.clear();
        Ok(())
    }

    /// Returns what the parts of a kind hold.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn parts(&mut self, head: &Head, part: Part) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let (of, kind) = self.core.layout.parts_under(head, part);
        for number in 0..head.parts_of(part) {
            let value = self.tree().get(&part_key(of, kind, number))?;
            bytes.extend(value.ok_or_else(|| self.bad_entry("part"))?);
        }
        Ok(bytes)
    }

    /// Sets what the parts of a kind hold; parts that stay the same are not
    /// written. The head is to be kept after.
    ///
    /// # Errors
    /// `TooBig` for more than parts of the kind hold; `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn set_parts(&mut self, head: &mut Head, part: Part, bytes: &[u8]) -> Result<()> {
        let most = match part {
            Part::Runs => self.core.layout.runs_len(),
            _ => self.core.layout.parts_len(),
        };
        if bytes.len() > most {
            return Err(Kind::TooBig.into());
        }
        let (of, kind) = self.core.layout.parts_under(head, part);
        let len = self.core.layout.part_len();
        let count = bytes.len().div_ceil(len) as u16;
        for (number, value) in (0..).zip(bytes.chunks(len)) {
            let key = part_key(of, kind, number);
            if self.tree().get(&key)?.as_deref() != Some(value) {
                self.tree().put(&key, value)?;
            }
        }
        for number in count..head.parts_of(part) {
            self.tree().remove(&part_key(of, kind, number))?;
        }
        head.set_parts_of(part, count);
        Ok(())
    }

    /// Returns the nodes that no name leads to: a crash came before their last open
    /// ended.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn nameless(&mut self) -> Result<Vec<(Place, Head)>> {
        let mut found = Vec::new();
        let prefix = crate::name_table::entry::dir_prefix(NOWHERE);
        self.tree().scan(&prefix, &mut |key, value| {
            if !key.starts_with(&prefix) {
                return false;
            }
            let place = Place::of_key(key).filter(|p| p.name != ROOT_NAME);
            if let (Some(place), Some(Entry::Head(head))) = (place, Entry::decode(value)) {
                found.push((place, head));
            }
            true
        })?;
        Ok(found)
    }

    /// Destroys a node that is kept nowhere.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn destroy_nameless(&mut self, uid: u64) -> Result<()> {
        let (place, head) = self.home(uid)?;
        self.tree().remove(&place.key())?;
        self.tree().remove(&place_key(uid, head.number))?;
        self.destroy(head)
    }
}

/// Returns a node as it is made.
pub(crate) fn new_head(uid: u64, kind: FileKind, now: Time) -> Head {
    Head {
        uid,
        kind,
        mode: 0,
        owner: 0,
        group: 0,
        nlink: 1,
        size: 0,
        atime: now,
        mtime: now,
        ctime: now,
        btime: now,
        change: 1,
        number: 0,
        next_number: 1,
        keep: 0,
        version: 1,
        line: 0,
        parts: [0; 4],
        far: None,
        runs: Vec::<Run>::new(),
    }
}

/// Returns whether a place is one that paths lead to.
pub(crate) fn is_named(place: &Place) -> bool {
    place.dir != NOWHERE || place.name == ROOT_NAME && place.version == FIRST_VERSION
}
