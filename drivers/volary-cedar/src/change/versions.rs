//! Versions: what a file held before it was emptied or replaced (paper, section
//! 5.1: names have versions, and a keep says how many are kept).
//!
//! A file that keeps more than one has a *line*: a number as nodes have it,
//! under which its older versions stand as in a directory that no path leads to. The
//! newest has the file's name. So renaming a file moves one entry,
//! and a name is one entry to all who know of no versions.

use crate::change::files::Files;
use crate::change::nodes::Nodes;
use crate::change::nodes::is_named;
use crate::change::sealing::Sealing;
use crate::commit::core::Takes;
use crate::mistakes::{Mistake, made};
use crate::name_table::entry::{Entry, Head, Part, Place, dir_prefix, name_prefix};
use crate::tree::btree::Tree;
use volary_core::{Error, FileKind, Kind, Result, Time};

/// The name of all older versions in their line.
const OLDER: &[u8] = b"!";
/// The last version that there can be.
const VERSION_MAX: u32 = 0xff_ffff;
/// Most versions of a file.
pub(crate) const KEEP_MAX: u16 = 1000;

impl Place {
    fn of_version(line: u64, version: u32) -> Self {
        Self {
            version,
            ..Self::new(line, OLDER)
        }
    }
}

impl Head {
    /// Returns whether this, at its place, is an older version of a file.
    pub(crate) fn is_older(&self, place: &Place) -> bool {
        self.line != 0 && place.dir == self.line && place.name == OLDER
    }

    /// # Errors
    /// `NotPermitted` for an older version.
    pub(crate) fn check_newest(&self, place: &Place) -> Result<()> {
        if !self.is_older(place) {
            return Ok(());
        }
        let words = "an older version of a file: it does not change";
        Err(Error::note(Kind::NotPermitted, words))
    }

    /// # Errors
    /// `IsDir`; `Invalid` for what is neither file nor directory.
    pub(crate) fn check_file(&self) -> Result<()> {
        match self.kind {
            FileKind::File => Ok(()),
            FileKind::Dir => Err(Kind::IsDir.into()),
            _ => Err(Kind::Invalid.into()),
        }
    }

    /// Returns whether what it holds is kept when it is emptied or replaced.
    fn is_kept(&self) -> bool {
        self.kind == FileKind::File && self.keep > 1 && self.version < VERSION_MAX
    }
}

/// Returns the name and the version in `name!3`.
fn split_version(name: &[u8]) -> Option<(&[u8], u32)> {
    let at = name.iter().rposition(|b| *b == b'!').filter(|at| *at > 0)?;
    let (base, digits) = (name.get(..at)?, name.get(at + 1..)?);
    let plain = digits.iter().all(u8::is_ascii_digit) && digits.first() != Some(&b'0');
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    plain.then_some((base, number))
}

/// Older versions of files.
pub(crate) struct Versions<'a> {
    pub(crate) files: &'a mut Files,
}

impl<'a> Versions<'a> {
    pub(crate) fn of(files: &'a mut Files) -> Self {
        Self { files }
    }

    /// Returns the file or older version that `name!3` means, if it is one.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn find_version(&mut self, dir: u64, name: &[u8]) -> Result<Option<(Place, Head)>> {
        let Some((base, number)) = split_version(name) else {
            return Ok(None);
        };
        let Some((place, entry)) = Nodes::of(self.files).find(dir, base)? else {
            return Ok(None);
        };
        let head = Nodes::of(self.files).head_of(entry)?;
        if head.line == 0 || head.version == number {
            return Ok((head.line != 0).then_some((place, head)));
        }
        let place = Place::of_version(head.line, number);
        let value = Tree::of(&mut self.files.core).get(&place.key())?;
        match value.as_deref().and_then(Entry::decode) {
            Some(Entry::Head(head)) => Ok(Some((place, head))),
            _ => Ok(None),
        }
    }

    /// Returns the older versions of a file, the newest first.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn older(&mut self, head: &Head) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        if head.line == 0 {
            return Ok(found);
        }
        let prefix = name_prefix(head.line, OLDER);
        Tree::of(&mut self.files.core).scan(&dir_prefix(head.line), &mut |key, _| {
            let version = Place::of_key(key).map(|p| p.version);
            found.extend(version.filter(|_| key.starts_with(&prefix)));
            key.starts_with(&prefix)
        })?;
        Ok(found)
    }

    /// Gives a file a line, if it has none.
    fn begin_line(&mut self, head: &mut Head) -> Result<()> {
        if head.line == 0 {
            head.line = self.files.core.new_uid()?;
        }
        Ok(())
    }

    /// Sets how many versions of a file are kept, of a directory how many of
    /// each new file in it. What is too many goes with [`shed`](Self::shed).
    ///
    /// # Errors
    /// `Invalid` for a number that is too great, or another kind of node.
    pub(crate) fn set_keep(&mut self, uid: u64, keep: u16, now: Time) -> Result<()> {
        let (place, mut head) = Nodes::of(self.files).home(uid)?;
        let is_for = matches!(head.kind, FileKind::File | FileKind::Dir);
        if keep > KEEP_MAX || !is_for || head.is_older(&place) {
            let words = format!("from 1 to {KEEP_MAX} versions, of a file or a directory");
            return Err(Error::note(Kind::Invalid, words));
        }
        head.keep = keep;
        if keep > 1 && head.kind == FileKind::File {
            self.begin_line(&mut head)?;
        }
        head.touch(now, false);
        Nodes::of(self.files).keep(&place, head)
    }

    /// Keeps what a file holds as an older version, and leaves it empty. False,
    /// and nothing was done, if it keeps none. The head is to be kept after.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn put_by(&mut self, head: &mut Head) -> Result<bool> {
        if !head.is_kept() {
            return Ok(false);
        }
        let next = head.next_version()?;
        let runs = Nodes::of(self.files).runs(head)?;
        let xattrs = Nodes::of(self.files).parts(head, Part::Xattrs)?;
        self.begin_line(head)?;
        let mut old = head.clone();
        old.uid = self.files.core.new_uid()?;
        (old.number, old.next_number, old.nlink, old.parts) = (0, 1, 1, [0; 4]);
        // The pages are the older one's now, the leader with them.
        Nodes::of(self.files).set_runs(&mut old, None, &runs)?;
        Nodes::of(self.files).set_parts(&mut old, Part::Xattrs, &xattrs)?;
        Sealing::of(self.files).hand_sums_over(head, &mut old)?;
        Nodes::of(self.files).hand_runs_over(head)?;
        head.size = 0;
        let place = Place::of_version(head.line, head.version);
        Nodes::of(self.files).put_entry(&place, &Entry::Head(old))?;
        head.version = next;
        self.files.leaving.push(head.uid);
        Ok(true)
    }

    /// Keeps a file that is replaced as an older version of `heir`, which has its
    /// name then. False, and nothing was done, if it keeps none or the heir has
    /// versions of its own. The name is gone already; the heir is to be kept after.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn inherit(&mut self, mut old: Head, heir: &mut Head, now: Time) -> Result<bool> {
        let can = heir.kind == FileKind::File && heir.line == 0 && heir.nlink == 1;
        if !old.is_kept() || old.nlink != 1 || !can {
            return Ok(false);
        }
        let next = old.next_version()?;
        self.begin_line(&mut old)?;
        old.touch(now, false);
        (heir.line, heir.keep, heir.version) = (old.line, old.keep, next);
        let place = Place::of_version(old.line, old.version);
        Nodes::of(self.files).put_entry(&place, &Entry::Head(old))?;
        self.files.leaving.push(heir.uid);
        Ok(true)
    }

    /// Takes an older version away.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `NoSpace`.
    pub(crate) fn drop_older(&mut self, place: &Place, mut head: Head, now: Time) -> Result<()> {
        Tree::of(&mut self.files.core).remove(&place.key())?;
        head.line = 0;
        let open = self.files.is_open(head.uid);
        Nodes::of(self.files).drop_name(Entry::Head(head), now, open)
    }

    fn drop_version(&mut self, line: u64, version: u32, now: Time) -> Result<()> {
        let place = Place::of_version(line, version);
        let value = Tree::of(&mut self.files.core).get(&place.key())?;
        match value.as_deref().and_then(Entry::decode) {
            Some(Entry::Head(old)) => self.drop_older(&place, old, now),
            _ => Tree::of(&mut self.files.core)
                .remove(&place.key())
                .map(drop),
        }
    }

    /// Takes away the versions that a file has too many, each as a change of
    /// its own, the oldest first; all older ones of a file without a name.
    ///
    /// # Errors
    /// As [`change`](Files::change); `Stale`.
    pub(crate) fn shed(&mut self, uid: u64, now: Time) -> Result<()> {
        let (place, head) = Nodes::of(self.files).home(uid)?;
        let keep = if is_named(&place) {
            head.keep.max(1)
        } else {
            1
        };
        let older = self.older(&head)?;
        for version in older.iter().skip(usize::from(keep) - 1).rev() {
            self.files.change(now, |c| {
                Versions::of(c).drop_version(head.line, *version, now)
            })?;
        }
        Ok(())
    }

    /// Destroys a node without a name, with its older versions.
    ///
    /// # Errors
    /// As [`change`](Files::change); `Stale`.
    pub(crate) fn let_go(&mut self, uid: u64, now: Time) -> Result<()> {
        self.shed(uid, now)?;
        self.files
            .change(now, |c| Nodes::of(c).destroy_nameless(uid))
    }

    /// Destroys what a crash left without a name.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `NoSpace`.
    pub(crate) fn destroy_all_nameless(&mut self) -> Result<()> {
        let now = volary_core::Time::EPOCH;
        let found = Nodes::of(self.files).nameless()?;
        if found.is_empty()
            || self.files.core.takes == Takes::Nothing
            || made(Mistake::NamelessStay)
        {
            return Ok(());
        }
        for (_, head) in found {
            self.let_go(head.uid, now)?;
        }
        self.files.core.commit(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_version_is_a_name_a_mark_and_a_number() {
        assert_eq!(split_version(b"a!b!12"), Some((&b"a!b"[..], 12)));
        for name in [
            "a",
            "!1",
            "a!",
            "a!0",
            "a!01",
            "a!+1",
            "a!1x",
            "a!99999999999",
        ] {
            assert_eq!(split_version(name.as_bytes()), None, "{name}");
        }
    }
}
