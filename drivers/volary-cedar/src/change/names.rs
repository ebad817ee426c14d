//! Making, removing and renaming names. What is said here of one call is one
//! change: whole or not at all.

use crate::change::file::File;
use crate::change::files::Files;
use crate::change::nodes::Nodes;
use crate::change::nodes::{is_named, new_head};
use crate::change::versions::Versions;
use crate::name_table::entry::{Entry, Head, Part, Place, ROOT_UID, dir_prefix};
use crate::tree::btree::Tree;
use volary_core::{Error, FileKind, Kind, RenameFlags, Result, SetAttr, SetTime, Time};
use volary_ondisk::rename::{Target, Task, lies_in, task};

/// Most names of a node, and most directories in one.
const LINKS_MAX: u32 = 1 << 20;

/// What is to be made.
#[derive(Clone, Copy)]
pub(crate) enum Make<'a> {
    File,
    Dir,
    Symlink(&'a [u8]),
    Special(FileKind, u64),
}

/// A name and what it leads to.
struct Found {
    place: Place,
    entry: Entry,
    is_dir: bool,
    /// Whether it is an older version of a file, of another name.
    is_older: bool,
}

/// Names, as a change makes, moves and removes them.
pub(crate) struct Names<'a> {
    pub(crate) files: &'a mut Files,
}

impl<'a> Names<'a> {
    pub(crate) fn of(files: &'a mut Files) -> Self {
        Self { files }
    }

    /// Checks that a name can be made in a directory.
    ///
    /// # Errors
    /// `NotDir`; `Exists`; `NotFound` in a directory that was removed;
    /// `NameTooLong`.
    pub(crate) fn check_free(&mut self, dir: u64, name: &[u8]) -> Result<()> {
        let (_, head) = Nodes::of(self.files).dir(dir)?;
        if Nodes::of(self.files).find(dir, name)?.is_some()
            || Versions::of(self.files).find_version(dir, name)?.is_some()
        {
            return Err(Kind::Exists.into());
        }
        if head.nlink == 0 {
            return Err(Kind::NotFound.into());
        }
        self.check_name(name)
    }

    fn check_name(&self, name: &[u8]) -> Result<()> {
        match name.len() <= self.files.core.layout.name_max() {
            true => Ok(()),
            false => Err(Kind::NameTooLong.into()),
        }
    }

    /// Makes a node with a first name.
    ///
    /// # Errors
    /// As [`check_free`](Self::check_free); `TooManyLinks`, `NoSpace`.
    pub(crate) fn make(
        &mut self,
        dir: u64,
        name: &[u8],
        what: Make<'_>,
        set: &SetAttr,
        now: Time,
    ) -> Result<Head> {
        self.check_free(dir, name)?;
        let kind = match what {
            Make::File => FileKind::File,
            Make::Dir => FileKind::Dir,
            Make::Symlink(_) => FileKind::Symlink,
            Make::Special(kind, _) => kind,
        };
        let mut head = new_head(self.files.core.new_uid()?, kind, now);
        head.mode = set.mode.unwrap_or(default_mode(kind)) & 0o7777;
        head.owner = set.uid.unwrap_or(0);
        head.group = set.gid.unwrap_or(0);
        set_times(&mut head, set, now);
        if matches!(what, Make::File | Make::Dir) {
            head.keep = Nodes::of(self.files).dir(dir)?.1.keep;
        }
        match what {
            Make::Dir => head.nlink = 2,
            Make::Symlink(target) => {
                head.size = target.len() as u64;
                Nodes::of(self.files).set_parts(&mut head, Part::Target, target)?;
            }
            Make::Special(_, rdev) => head.size = rdev,
            Make::File => {
                if let Some(size) = set.size {
                    File::of(self.files).resize(&mut head, size)?;
                }
            }
        }
        Nodes::of(self.files).put_entry(&Place::new(dir, name), &Entry::Head(head.clone()))?;
        self.entry_came(dir, head.is_dir(), now)?;
        Ok(head)
    }

    /// Counts the change of a directory that has one more entry.
    fn entry_came(&mut self, dir: u64, is_dir: bool, now: Time) -> Result<()> {
        let (place, mut head) = Nodes::of(self.files).dir(dir)?;
        head.touch(now, true);
        if is_dir {
            if head.nlink >= LINKS_MAX {
                return Err(Kind::TooManyLinks.into());
            }
            head.nlink += 1;
        }
        Nodes::of(self.files).keep(&place, head)
    }

    /// Counts the change of a directory that has one entry fewer.
    fn entry_went(&mut self, dir: u64, is_dir: bool, now: Time) -> Result<()> {
        let (place, mut head) = Nodes::of(self.files).dir(dir)?;
        head.touch(now, true);
        if is_dir {
            head.nlink = head.nlink.saturating_sub(1);
        }
        Nodes::of(self.files).keep(&place, head)
    }

    /// Gives a node one more name.
    ///
    /// # Errors
    /// `IsDir`; as [`check_free`](Self::check_free); `TooManyLinks`.
    pub(crate) fn link(&mut self, uid: u64, dir: u64, name: &[u8], now: Time) -> Result<()> {
        let (place, mut head) = Nodes::of(self.files).home(uid)?;
        if head.is_dir() {
            return Err(Kind::IsDir.into());
        }
        head.check_newest(&place)?;
        self.check_free(dir, name)?;
        if head.nlink == 0 {
            return Err(Kind::NotFound.into());
        }
        if head.nlink >= LINKS_MAX {
            return Err(Kind::TooManyLinks.into());
        }
        let number = head.next_number;
        head.next_number = number.checked_add(1).ok_or(Kind::TooManyLinks)?;
        head.nlink += 1;
        head.touch(now, false);
        Nodes::of(self.files).keep(&place, head)?;
        Nodes::of(self.files).put_entry(&Place::new(dir, name), &Entry::Link(uid, number))?;
        self.entry_came(dir, false, now)
    }

    fn found(&mut self, dir: u64, name: &[u8]) -> Result<Option<Found>> {
        Nodes::of(self.files).dir(dir)?;
        let found = match Nodes::of(self.files).find(dir, name)? {
            None => Versions::of(self.files)
                .find_version(dir, name)?
                .and_then(|(place, head)| {
                    let is_older = head.is_older(&place);
                    is_older.then_some((place, Entry::Head(head)))
                }),
            found => found,
        };
        Ok(found.map(|(place, entry)| Found {
            is_dir: matches!(&entry, Entry::Head(head) if head.is_dir()),
            is_older: matches!(&entry, Entry::Head(head) if head.is_older(&place)),
            place,
            entry,
        }))
    }

    /// # Errors
    /// `NotDir`, `NotFound`; `NotPermitted` for the newest version by its number.
    fn must_find(&mut self, dir: u64, name: &[u8]) -> Result<Found> {
        if let Some(found) = self.found(dir, name)? {
            return Ok(found);
        }
        match Versions::of(self.files).find_version(dir, name)? {
            None => Err(Kind::NotFound.into()),
            Some(_) => {
                let words = "the newest version of a file goes by the file's name, with all others";
                Err(Error::note(Kind::NotPermitted, words))
            }
        }
    }

    /// Takes a name away from a file, or an older version.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`, `IsDir`; `NotPermitted` for the newest version by its number.
    pub(crate) fn unlink(&mut self, dir: u64, name: &[u8], now: Time) -> Result<()> {
        let found = self.must_find(dir, name)?;
        if found.is_dir {
            return Err(Kind::IsDir.into());
        }
        self.take_away(found, now)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`, `NotEmpty`.
    pub(crate) fn rmdir(&mut self, dir: u64, name: &[u8], now: Time) -> Result<()> {
        let found = self.must_find(dir, name)?;
        self.check_empty(&found)?;
        self.take_away(found, now)
    }

    fn take_away(&mut self, found: Found, now: Time) -> Result<()> {
        if let (Entry::Head(head), true) = (&found.entry, found.is_older) {
            return Versions::of(self.files).drop_older(&found.place, head.clone(), now);
        }
        Tree::of(&mut self.files.core).remove(&found.place.key())?;
        self.entry_went(found.place.dir, found.is_dir, now)?;
        let open = self.files.is_open(found.entry.uid());
        Nodes::of(self.files).drop_name(found.entry, now, open)
    }

    /// # Errors
    /// `NotDir`, `NotEmpty`.
    fn check_empty(&mut self, found: &Found) -> Result<()> {
        if !found.is_dir {
            return Err(Kind::NotDir.into());
        }
        match Tree::of(&mut self.files.core).first(&dir_prefix(found.entry.uid()))? {
            None => Ok(()),
            Some(_) => Err(Kind::NotEmpty.into()),
        }
    }

    /// # Errors
    /// `Invalid` if `dir` is `node` or lies in it; `Corrupt`, `Io`.
    fn check_not_into_itself(&mut self, node: u64, dir: u64) -> Result<()> {
        let is_within = lies_in(dir, node, |at| {
            if at == ROOT_UID {
                return Ok::<_, Error>(None);
            }
            let (place, _) = Nodes::of(self.files).home(at)?;
            Ok(is_named(&place).then_some(place.dir))
        })?;
        match is_within {
            true => Err(Kind::Invalid.into()),
            false => Ok(()),
        }
    }

    /// Renames; see [`FileSystem::rename`](volary_core::FileSystem::rename).
    ///
    /// # Errors
    /// As there.
    pub(crate) fn rename(
        &mut self,
        from: u64,
        name: &[u8],
        to: u64,
        new_name: &[u8],
        flags: RenameFlags,
        now: Time,
    ) -> Result<()> {
        let old = self.must_find(from, name)?;
        let new = self.found(to, new_name)?;
        if new.is_none() && flags == RenameFlags::SWAP {
            return Err(Kind::NotFound.into());
        }
        let (_, into) = Nodes::of(self.files).dir(to)?;
        if into.nlink == 0 {
            return Err(Kind::NotFound.into());
        }
        if old.is_dir {
            self.check_not_into_itself(old.entry.uid(), to)?;
        }
        let Some(new) = new else {
            self.check_free(to, new_name)?;
            return self.move_name(old, to, new_name, now);
        };
        if new.is_older || old.is_older && flags == RenameFlags::SWAP {
            let words = "an older version of a file: it does not change";
            return Err(Error::note(Kind::NotPermitted, words));
        }
        let target = Target {
            is_same_entry: false,
            is_same_node: new.entry.uid() == old.entry.uid(),
            is_dir: new.is_dir,
        };
        let is_same_name = from == to && name == new_name;
        match task(flags, old.is_dir, is_same_name, Some(target))? {
            Task::Swap => return self.swap(&old, &new, from, now),
            Task::Nothing => return Ok(()),
            _ if old.is_dir => self.check_empty(&new)?,
            _ => {}
        }
        if self.replace_with_heir(&new, &old, now)? {
            return Ok(());
        }
        self.take_away(new, now)?;
        // What was replaced may have been where the head of `old` is not; but
        // taking it away may have moved that head here.
        let old = self.must_find(from, name)?;
        self.move_name(old, to, new_name, now)
    }

    /// Replaces a file by one that has its versions then. False, and nothing was
    /// done, if none are to be kept.
    fn replace_with_heir(&mut self, new: &Found, old: &Found, now: Time) -> Result<bool> {
        let (Entry::Head(gone), Entry::Head(heir)) = (&new.entry, &old.entry) else {
            return Ok(false);
        };
        let mut heir = heir.clone();
        if old.is_older {
            (heir.line, heir.keep, heir.version) = (0, 0, 1);
        }
        Tree::of(&mut self.files.core).remove(&old.place.key())?;
        if !Versions::of(self.files).inherit(gone.clone(), &mut heir, now)? {
            Tree::of(&mut self.files.core).put(&old.place.key(), &old.entry.encode())?;
            return Ok(false);
        }
        if !old.is_older {
            self.entry_went(old.place.dir, false, now)?;
        }
        self.entry_went(new.place.dir, false, now)?;
        self.entry_came(new.place.dir, false, now)?;
        heir.touch(now, false);
        Nodes::of(self.files).put_entry(&new.place, &Entry::Head(heir))?;
        Ok(true)
    }

    /// Puts an entry under a name that is free.
    fn move_name(&mut self, mut old: Found, dir: u64, name: &[u8], now: Time) -> Result<()> {
        Tree::of(&mut self.files.core).remove(&old.place.key())?;
        match &mut old.entry {
            Entry::Head(head) if old.is_older => {
                (head.line, head.keep, head.version) = (0, 0, 1);
            }
            _ => self.entry_went(old.place.dir, old.is_dir, now)?,
        }
        self.entry_came(dir, old.is_dir, now)?;
        let entry = self.touched(old.entry, now)?;
        Nodes::of(self.files).put_entry(&Place::new(dir, name), &entry)
    }

    /// Returns an entry whose node changes at `now`.
    fn touched(&mut self, entry: Entry, now: Time) -> Result<Entry> {
        match entry {
            Entry::Head(mut head) => {
                head.touch(now, false);
                Ok(Entry::Head(head))
            }
            Entry::Link(uid, number) => {
                Nodes::of(self.files).touch(uid, now, false)?;
                Ok(Entry::Link(uid, number))
            }
        }
    }

    fn swap(&mut self, old: &Found, new: &Found, from: u64, now: Time) -> Result<()> {
        if new.is_dir {
            self.check_not_into_itself(new.entry.uid(), from)?;
        }
        if new.place == old.place {
            return Ok(());
        }
        let dirs = [old.place.dir, new.place.dir];
        let came = [new.is_dir, old.is_dir];
        let went = [old.is_dir, new.is_dir];
        for ((dir, came), went) in dirs.into_iter().zip(came).zip(went) {
            self.entry_went(dir, went, now)?;
            self.entry_came(dir, came, now)?;
        }
        // Both may be names of directories whose heads the counts above changed.
        let mut pair = Vec::new();
        for place in [&old.place, &new.place] {
            let value = Tree::of(&mut self.files.core).get(&place.key())?;
            let entry = value
                .as_deref()
                .and_then(Entry::decode)
                .ok_or(Kind::Corrupt)?;
            pair.push(entry);
        }
        for (entry, place) in pair.into_iter().zip([&new.place, &old.place]) {
            Nodes::of(self.files).put_entry(place, &entry)?;
        }
        for uid in [old.entry.uid(), new.entry.uid()] {
            Nodes::of(self.files).touch(uid, now, false)?;
        }
        Ok(())
    }
}

fn default_mode(kind: FileKind) -> u32 {
    match kind {
        FileKind::Dir => 0o755,
        FileKind::Symlink => 0o777,
        _ => 0o644,
    }
}

/// Sets the times that `set` names.
pub(crate) fn set_times(head: &mut Head, set: &SetAttr, now: Time) {
    let new = |time: Option<SetTime>, old: Time| match time {
        None => old,
        Some(SetTime::Now) => now,
        Some(SetTime::To(time)) => time,
    };
    head.atime = new(set.atime, head.atime);
    head.mtime = new(set.mtime, head.mtime);
    head.btime = new(set.btime, head.btime);
}
