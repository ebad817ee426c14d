//! Nodes that stand for nodes of a remote volume: symbolic links to remote files, and
//! cached copies of them (paper, sections 4 and 5.4).
//!
//! A node of the remote has what a head has, as the remote last said it, and a [`Far`].
//! It is *away* while its content is not here, and *whole* when all of it is: of a file
//! the bytes, of a directory the names, of a symlink the target. What is whole agrees with
//! what was [`Seen`] of the remote's node; once that is another, it is away again. A directory
//! stays whole when it changes: its names are those of its last listing, and those seen since.
//!
//! A node of the remote that has a path of its own (part 2, of what is no symlink) is a
//! *link*: it may have any name in a local directory. All others are under the directory
//! and the name that they have on the remote.

use crate::change::file::File;
use crate::change::files::Files;
use crate::change::nodes::Nodes;
use crate::change::nodes::{is_named, new_head};
use crate::change::sealing::Sealing;
use crate::disk::runs::Runs;
use crate::mistakes::{Mistake, made};
use crate::name_table::entry::{
    Entry, Far, Head, NAMES_END, NAMES_FROM, Part, Place, ROOT_UID, Seen, dir_prefix,
};
use crate::tree::btree::Tree;
use std::collections::BTreeMap;
use volary_core::{Attr, Error, FileKind, Kind, Result, Time};

/// Deepest directory that is followed.
const DEPTH_MAX: u32 = 1 << 16;
/// Last uses that are closer than this, in seconds, are one.
const USED_STEP: i64 = 1;
/// Of the pages for files, the part that is made free when any is to be.
const SPARE: u32 = 16;

/// The way from the remote's root to a node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// The path of the link.
    pub(crate) link: Vec<u8>,
    /// The link.
    pub(crate) uid: u64,
    /// The nodes below it and their names, the outermost first.
    pub(crate) below: Vec<(u64, Vec<u8>)>,
}

impl Seen {
    /// Returns what tells this content from all others.
    pub(crate) fn of(far: &Attr) -> Self {
        Self {
            ino: far.node.ino.get(),
            generation: far.node.generation,
            size: far.size,
            mtime: far.mtime,
            ctime: far.ctime,
        }
    }
}

impl Far {
    /// Of a node that was seen, and of which nothing is here.
    pub(crate) fn away(far: &Attr, now: Time) -> Self {
        Self {
            whole: false,
            seen: Seen::of(far),
            used: now,
        }
    }
}

impl Far {
    /// Of a node that was never seen.
    pub(crate) fn never_seen(now: Time) -> Self {
        Self {
            whole: false,
            seen: Seen {
                ino: 0,
                generation: 0,
                size: 0,
                mtime: Time::EPOCH,
                ctime: Time::EPOCH,
            },
            used: now,
        }
    }
}

impl Head {
    /// Returns whether it is a link to a node of the remote, under a name of its own.
    pub(crate) fn is_link(&self) -> bool {
        self.far.is_some() && self.kind != FileKind::Symlink && self.parts_of(Part::Target) > 0
    }

    /// Says what the remote says of the node. The content is not looked at.
    fn say(&mut self, far: &Attr) {
        (self.mode, self.owner, self.group) = (far.mode & 0o7777, far.uid, far.gid);
        (self.mtime, self.ctime, self.atime) = (far.mtime, far.ctime, far.mtime);
        self.btime = far.btime.unwrap_or(far.ctime);
        self.size = match self.kind {
            FileKind::File | FileKind::Symlink => far.size,
            FileKind::CharDevice | FileKind::BlockDevice => far.rdev,
            _ => 0,
        };
    }
}

/// Returns whether a node says of itself what the remote says of it.
fn is_of(head: &Head, far: &Attr) -> bool {
    let seen = head.far.map(|far| (far.seen.ino, far.seen.generation));
    head.kind == far.kind && seen == Some((far.node.ino.get(), far.node.generation))
}

/// Nodes that stand for those of the remote.
pub(crate) struct Links<'a> {
    pub(crate) files: &'a mut Files,
}

impl<'a> Links<'a> {
    pub(crate) fn of(files: &'a mut Files) -> Self {
        Self { files }
    }

    /// Returns the way to a node of the remote.
    ///
    /// # Errors
    /// `Stale` for one that leads nowhere; `Corrupt`, `Io`.
    pub(crate) fn far_path(&mut self, uid: u64) -> Result<Path> {
        let mut below = Vec::new();
        let mut at = uid;
        for _ in 0..DEPTH_MAX {
            let (place, head) = Nodes::of(self.files).home(at)?;
            if head.far.is_none() {
                return Err(Kind::Stale.into());
            }
            if head.is_link() {
                below.reverse();
                return Ok(Path {
                    link: Nodes::of(self.files).parts(&head, Part::Target)?,
                    uid: at,
                    below,
                });
            }
            if !is_named(&place) {
                return Err(Kind::Stale.into());
            }
            below.push((at, place.name));
            at = place.dir;
        }
        Err(Kind::Corrupt.into())
    }

    /// Takes the content of a file away. The head is to be kept after.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn give_content_up(&mut self, head: &mut Head) -> Result<()> {
        let runs = Nodes::of(self.files).runs(head)?;
        Nodes::of(self.files).set_runs(head, runs.leader(), &Runs::default())?;
        self.files.core.txn.free(runs.0);
        self.files.seals.waiting.remove(&head.uid);
        Sealing::of(self.files).set_sums(head, None)?;
        if let Some(far) = &mut head.far {
            far.whole = false;
        }
        Ok(())
    }

    /// Brings the remote's attributes into a node. Content of another version that is here
    /// goes.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `NoSpace`.
    pub(crate) fn note_far(&mut self, place: &Place, head: &Head, far: &Attr) -> Result<Head> {
        let (mut new, seen) = (head.clone(), Seen::of(far));
        let Some(old) = head.far.filter(|old| old.seen != seen) else {
            new.say(far);
            return self.keep_if_other(place, head, new);
        };
        match head.kind {
            FileKind::File if old.whole => self.give_content_up(&mut new)?,
            FileKind::Symlink if old.whole => {
                Nodes::of(self.files).set_parts(&mut new, Part::Target, &[])?;
            }
            _ => {}
        }
        new.far = Some(Far {
            whole: old.whole && head.is_dir() && is_of(head, far),
            seen,
            used: old.used,
        });
        new.say(far);
        self.keep_if_other(place, head, new)
    }

    fn keep_if_other(&mut self, place: &Place, old: &Head, mut new: Head) -> Result<Head> {
        if new != *old {
            new.change = new.change.saturating_add(1);
            Nodes::of(self.files).keep(place, new.clone())?;
        }
        Ok(new)
    }

    /// Records a name that the remote has in a directory. Returns the node.
    ///
    /// # Errors
    /// `NotEmpty` if what had the name is a directory with names; `NameTooLong`;
    /// `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn record(&mut self, dir: u64, name: &[u8], far: &Attr, now: Time) -> Result<Head> {
        match Nodes::of(self.files).find(dir, name)? {
            Some((place, Entry::Head(head))) if is_of(&head, far) => {
                return self.note_far(&place, &head, far);
            }
            Some((place, entry)) => self.drop_far(&place, entry, now)?,
            None if name.len() > self.files.core.layout.name_max() => {
                return Err(Kind::NameTooLong.into());
            }
            None => {}
        }
        let mut head = new_head(self.files.core.new_uid()?, far.kind, now);
        head.far = Some(Far::away(far, now));
        head.say(far);
        if head.is_dir() {
            head.nlink = 2;
            self.count_dirs(dir, 1)?;
        }
        Nodes::of(self.files).put_entry(&Place::new(dir, name), &Entry::Head(head.clone()))?;
        Ok(head)
    }

    /// Counts directories that came to one of the remote, or went.
    fn count_dirs(&mut self, dir: u64, more: i32) -> Result<()> {
        let (place, mut head) = Nodes::of(self.files).dir(dir)?;
        head.nlink = head.nlink.saturating_add_signed(more);
        Nodes::of(self.files).keep(&place, head)
    }

    /// Takes away a name that the remote has no more.
    fn drop_far(&mut self, place: &Place, entry: Entry, now: Time) -> Result<()> {
        let is_dir = matches!(&entry, Entry::Head(head) if head.is_dir());
        if is_dir
            && Tree::of(&mut self.files.core)
                .first(&dir_prefix(entry.uid()))?
                .is_some()
        {
            return Err(Kind::NotEmpty.into());
        }
        Tree::of(&mut self.files.core).remove(&place.key())?;
        if is_dir {
            self.count_dirs(place.dir, -1)?;
        }
        let open = self.files.is_open(entry.uid());
        Nodes::of(self.files).drop_name(entry, now, open)
    }

    /// Takes away a name that the remote has no more, with all that is under it, each
    /// name in a change of its own.
    ///
    /// # Errors
    /// As [`change`](Files::change).
    pub(crate) fn forget_name(&mut self, dir: u64, name: &[u8], now: Time) -> Result<()> {
        let Some((_, entry)) = Nodes::of(self.files).find(dir, name)? else {
            return Ok(());
        };
        self.forget_names_in(entry.uid(), now)?;
        self.files
            .change(now, |c| match Nodes::of(c).find(dir, name)? {
                Some((place, entry)) => Links::of(c).drop_far(&place, entry, now),
                None => Ok(()),
            })
    }

    /// Takes away all names in a directory of the remote, and under it.
    ///
    /// # Errors
    /// As [`change`](Files::change).
    pub(crate) fn forget_names_in(&mut self, dir: u64, now: Time) -> Result<()> {
        while let Some((place, entry)) = self.deepest(dir)? {
            self.files
                .change(now, |c| Links::of(c).drop_far(&place, entry.clone(), now))?;
        }
        Ok(())
    }

    /// Returns a name under a directory that has none under it.
    fn deepest(&mut self, dir: u64) -> Result<Option<(Place, Entry)>> {
        let (mut at, mut found) = (dir, None);
        for _ in 0..DEPTH_MAX {
            let Some((key, value)) = Tree::of(&mut self.files.core).first(&dir_prefix(at))? else {
                return Ok(found);
            };
            let pair = Place::of_key(&key).zip(Entry::decode(&value));
            let (place, entry) = pair.ok_or(Kind::Corrupt)?;
            at = entry.uid();
            found = Some((place, entry));
        }
        Err(Kind::Corrupt.into())
    }

    /// Links an empty file or directory to a node of the remote.
    ///
    /// # Errors
    /// `NotPermitted` if it is not empty, has another kind or more names;
    /// `NameTooLong` for the path; `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn link_far(&mut self, uid: u64, path: &[u8], far: &Attr, now: Time) -> Result<()> {
        let (place, mut head) = Nodes::of(self.files).home(uid)?;
        let is_dir = head.is_dir()
            && Tree::of(&mut self.files.core)
                .first(&dir_prefix(uid))?
                .is_none();
        let is_file = head.kind == FileKind::File && head.size == 0 && head.nlink == 1;
        let is_new = head.far.is_none() && head.line == 0 && head.keep == 0;
        if head.kind != far.kind || !(is_new && (is_dir || is_file)) {
            let words = "only an empty file can be linked to a file of the remote, and an empty \
                         directory to a directory";
            return Err(Error::note(Kind::NotPermitted, words));
        }
        if path.len() > self.files.core.layout.parts_len() {
            return Err(Kind::NameTooLong.into());
        }
        Nodes::of(self.files).set_parts(&mut head, Part::Target, path)?;
        head.far = Some(Far::away(far, now));
        head.say(far);
        head.change = head.change.saturating_add(1);
        Nodes::of(self.files).keep(&place, head)
    }

    /// Links the root of an empty volume to the remote's, which was never seen.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub(crate) fn link_root_far(&mut self, now: Time) -> Result<()> {
        let (place, mut head) = Nodes::of(self.files).home(ROOT_UID)?;
        Nodes::of(self.files).set_parts(&mut head, Part::Target, b"/")?;
        head.far = Some(Far::never_seen(now));
        Nodes::of(self.files).keep(&place, head)
    }

    // ---- Copies ----

    /// Makes a file that no name leads to, for a copy of `size` bytes that is on its way: a
    /// cut leaves it to be destroyed by the next attaching. Its pages hold what they held.
    /// Gives its uid.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn begin_copy(&mut self, of: u64, size: u64, now: Time) -> Result<u64> {
        let mut head = new_head(self.files.core.new_uid()?, FileKind::File, now);
        (head.nlink, head.mode) = (0, 0o600);
        let uid = head.uid;
        if size > 0 {
            File::of(self.files).make_room(&mut head, 0, size)?;
        }
        Nodes::of(self.files).put_entry(&Place::nowhere(uid), &Entry::Head(head))?;
        if made(Mistake::CopyWholeTooSoon) {
            self.mark_whole(of, now)?;
        }
        Ok(uid)
    }

    /// Says of a node of the remote that all of it is here, as it was seen last.
    ///
    /// # Errors
    /// `Stale`, `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn mark_whole(&mut self, uid: u64, now: Time) -> Result<()> {
        let (place, mut head) = Nodes::of(self.files).home(uid)?;
        let mut far = head.far.ok_or(Kind::Stale)?;
        (far.whole, far.used) = (true, now);
        head.far = Some(far);
        Nodes::of(self.files).keep(&place, head)
    }

    /// Gives all that a [copy](Self::begin_copy) holds to the node that it is of, which is
    /// whole then; the copy is gone. False, and nothing was done, if the node was seen
    /// otherwise meanwhile.
    ///
    /// # Errors
    /// `Stale`, `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn end_copy(&mut self, copy: u64, of: u64, seen: &Seen, now: Time) -> Result<bool> {
        let (from, mut temp) = Nodes::of(self.files).home(copy)?;
        let (place, mut head) = Nodes::of(self.files).home(of)?;
        if head.far.is_none_or(|far| far.seen != *seen) || temp.size != head.size {
            return Ok(false);
        }
        let runs = Nodes::of(self.files).runs(&temp)?;
        Nodes::of(self.files).hand_runs_over(&mut temp)?;
        Nodes::of(self.files).set_parts(&mut temp, Part::Sums, &[])?;
        Tree::of(&mut self.files.core).remove(&from.key())?;
        Tree::of(&mut self.files.core)
            .remove(&crate::name_table::entry::place_key(copy, temp.number))?;
        self.give_content_up(&mut head)?;
        Nodes::of(self.files).set_runs(&mut head, None, &runs)?;
        head.far = Some(Far {
            whole: true,
            seen: *seen,
            used: now,
        });
        head.change = head.change.saturating_add(1);
        Nodes::of(self.files).keep(&place, head)?;
        Ok(true)
    }

    /// Notes that a copy was used.
    ///
    /// # Errors
    /// `Stale`, `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn note_use(&mut self, uid: u64, now: Time) -> Result<()> {
        let (place, mut head) = Nodes::of(self.files).home(uid)?;
        if let Some(far) = &mut head.far
            && (now.secs - far.used.secs).abs() >= USED_STEP
        {
            far.used = now;
            Nodes::of(self.files).keep(&place, head)?;
        }
        Ok(())
    }

    /// Takes the content of a copy away.
    ///
    /// # Errors
    /// `Stale`, `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn drop_copy(&mut self, uid: u64) -> Result<()> {
        let (place, mut head) = Nodes::of(self.files).home(uid)?;
        if head.kind == FileKind::File && head.far.is_some_and(|far| far.whole) {
            self.give_content_up(&mut head)?;
            head.change = head.change.saturating_add(1);
            Nodes::of(self.files).keep(&place, head)?;
        }
        Ok(())
    }

    /// Takes copies away, those first that were used the longest ago, until so many pages
    /// are free, and some more. False if there are not enough.
    ///
    /// # Errors
    /// As [`change`](Files::change).
    pub(crate) fn make_room_far(&mut self, pages: u32, now: Time) -> Result<bool> {
        let free = |c: &Self| c.files.core.free_pages();
        let (wanted, spare) = (
            u64::from(pages),
            self.files.core.layout.data_pages() / SPARE,
        );
        if free(self) >= wanted {
            return Ok(true);
        }
        let lacking = wanted - free(self) + u64::from(spare);
        for uid in self.least_used(lacking)? {
            self.files.change(now, |c| Links::of(c).drop_copy(uid))?;
        }
        Ok(free(self) >= wanted)
    }

    /// Copies that are not open and have `pages` pages together, or all: those that were
    /// used the longest ago, in this order.
    fn least_used(&mut self, pages: u64) -> Result<Vec<u64>> {
        let mut oldest: BTreeMap<(Time, u64), u64> = BTreeMap::new();
        let mut total = 0;
        let page = u64::from(self.files.core.layout.page);
        let opens = std::mem::take(&mut self.files.opens);
        let scanned = Tree::of(&mut self.files.core).scan(NAMES_FROM, &mut |key, value| {
            let head = match Entry::decode(value) {
                Some(Entry::Head(head)) if key < NAMES_END => head,
                _ => return key < NAMES_END,
            };
            let used = head.far.filter(|far| far.whole).map(|far| far.used);
            let is_copy = head.kind == FileKind::File && head.size > 0;
            if let Some(used) = used.filter(|_| is_copy && !opens.is_open(head.uid)) {
                let len = head.size.div_ceil(page) + 1;
                oldest.insert((used, head.uid), len);
                total += len;
            }
            while let Some(last) = oldest.last_entry().filter(|e| total - e.get() >= pages) {
                total -= last.remove();
            }
            true
        });
        self.files.opens = opens;
        scanned?;
        Ok(oldest.into_keys().map(|(_, uid)| uid).collect())
    }
}
