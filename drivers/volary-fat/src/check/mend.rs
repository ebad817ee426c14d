//! Telling of problems, and mending those that concern one entry alone.

use super::disk::Rank;
use super::entry::{NT_NO_SHORT, is_label_byte};
use super::findings::{self as code, Code, Reporter, Where};
use super::taken::Taken;
use super::volume::{Dir, NONE, Volume};
use super::walk::{Problem, Walk, What};
use crate::unix::today;
use crate::volume::judge;
use crate::volume::ondisk::{DOT, DOT_DOT, DirEntry, ENTRY_LEN, FREE, LongEntry, Raw, attr};
use crate::volume::time::{Zone, set_access, set_create, set_write};
use volary_core::{Result, escape};
use zerocopy::{FromZeros, transmute, transmute_mut};

/// The parts of a check that mending works on.
pub(super) struct Mender<'a, 'r> {
    pub(super) vol: &'a mut Volume,
    pub(super) walk: &'a mut Walk,
    pub(super) reporter: &'a mut Reporter<'r>,
    /// The short names of the directory that one was last changed in.
    pub(super) taken: Option<Taken>,
}

impl<'a, 'r> Mender<'a, 'r> {
    pub(super) fn new(
        vol: &'a mut Volume,
        walk: &'a mut Walk,
        reporter: &'a mut Reporter<'r>,
    ) -> Self {
        Self {
            vol,
            walk,
            reporter,
            taken: None,
        }
    }
}

impl Mender<'_, '_> {
    /// Returns a directory of the walk.
    pub(super) fn dir(&self, number: u32) -> Dir {
        let root = Dir {
            cluster: self.vol.layout.root_cluster,
            clusters: 0,
            parent: 0,
            first: NONE,
            slot: NONE,
        };
        self.walk.dirs.get(number as usize).copied().unwrap_or(root)
    }

    /// Returns where an entry is, for a finding.
    pub(super) fn place(&mut self, dir: u32, slot: u32) -> Result<Where> {
        let path = self.vol.path(&self.walk.dirs, dir, slot)?;
        let node = self.dir(dir);
        let offset = match slot {
            NONE if node.cluster == 0 => Some(self.vol.layout.root_offset()),
            NONE => Some(self.vol.layout.cluster_offset(node.cluster)),
            slot => self.vol.slot_offset(&node, slot)?,
        };
        Ok(Where {
            path: Some(path),
            offset,
        })
    }

    /// Tells of a problem; whether to mend it.
    pub(super) fn tell(
        &mut self,
        code: Code,
        problem: &Problem,
        message: String,
        repair: impl Into<String>,
    ) -> Result<bool> {
        let at = self.place(problem.dir, problem.slot)?;
        let key = at.offset.unwrap_or(0);
        Ok(self.reporter.tell(code, key, at, message, repair))
    }

    /// Tells of a problem of the first or the last phase, and mends it.
    pub(super) fn problem(&mut self, problem: &Problem) -> Result<()> {
        match problem.what {
            What::RootStart
            | What::Start(_)
            | What::Link { .. }
            | What::Half { .. }
            | What::Loop { .. }
            | What::Garbage { .. }
            | What::NotDir
            | What::Unreadable { .. }
            | What::TooLong => self.chain(problem),
            What::Cross { .. } => self.crosses(std::slice::from_ref(problem)),
            What::Dot | What::DotDot => self.dots(problem),
            What::StrayDot => self.stray_dot(problem),
            What::DirSize
            | What::Excess { .. }
            | What::SizeZero
            | What::SizeLong { .. }
            | What::NoChain => self.size(problem),
            What::GarbageSlots { .. } | What::AfterEnd { .. } => self.slots(problem),
            What::Orphan { .. } | What::LongField | What::LongName => self.long(problem),
            What::ShortName | What::Duplicate { .. } => self.name(problem),
            What::LabelPlace | What::LabelData | What::LabelName | What::VolumeId => {
                self.label(problem)
            }
            What::NtBits | What::BadDate | What::UnixCheck | What::UnixData => self.small(problem),
        }
    }

    /// Changes the short entry that a problem names.
    pub(super) fn change(
        &mut self,
        problem: &Problem,
        f: impl FnOnce(&mut DirEntry),
    ) -> Result<()> {
        let dir = self.dir(problem.dir);
        let mut entry = self.vol.entry(&dir, problem.slot)?;
        f(&mut entry);
        self.vol.put_entry(&dir, problem.slot, &entry)
    }

    /// Takes away the entry that a problem names, with its long name.
    pub(super) fn remove(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.dir(problem.dir);
        self.vol.free_slots(&dir, problem.first, problem.slot)
    }

    /// Returns whether the entry that a problem names is a directory's, or the
    /// problem is the root directory's.
    pub(super) fn is_dir(&mut self, problem: &Problem) -> Result<bool> {
        if problem.slot == NONE {
            return Ok(true);
        }
        let dir = self.dir(problem.dir);
        Ok(self.vol.entry(&dir, problem.slot)?.is_dir())
    }

    fn size(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.dir(problem.dir);
        let size = self.vol.entry(&dir, problem.slot)?.DIR_FileSize.get();
        let len = self.vol.layout.cluster_len;
        match problem.what {
            What::DirSize => {
                let words = format!("a directory with a size of {size} bytes");
                if self.tell(code::DIR_SIZE, problem, words, "sets it to 0")? {
                    self.change(problem, |e| e.DIR_FileSize.set(0))?;
                }
            }
            What::Excess { last, clean } => {
                let words =
                    format!("the chain goes on after cluster {last}, where {size} bytes end");
                let repair = "ends the chain there and frees the rest";
                if self.tell(code::SIZE_SHORT, problem, words, repair)? {
                    self.drop_excess(last, clean)?;
                }
            }
            What::SizeZero => {
                let start = self.vol.entry(&dir, problem.slot)?;
                let start = self.vol.start(&start);
                let words = format!("0 bytes long, but with a chain from cluster {start} on");
                let repair = "takes the chain from it; it is then lost";
                if self.tell(code::SIZE_ZERO, problem, words, repair)? {
                    self.set_start(problem, 0)?;
                }
            }
            What::SizeLong { clusters } => {
                let new = u64::from(clusters) * u64::from(len);
                let words = format!("{size} bytes long, but its chain holds {new}");
                let repair = format!("sets the size to {new}; the rest is lost");
                if self.tell(code::SIZE_LONG, problem, words, repair)? {
                    let new = u32::try_from(new).unwrap_or(u32::MAX);
                    self.change(problem, |e| e.DIR_FileSize.set(new))?;
                }
            }
            _ => {
                let words = format!("{size} bytes long, but without a chain");
                let repair = "sets the size to 0; its data is lost";
                if self.tell(code::NO_CHAIN, problem, words, repair)? {
                    self.change(problem, |e| e.DIR_FileSize.set(0))?;
                }
            }
        }
        Ok(())
    }

    /// Ends a chain; frees the rest if it is sound, else leaves it to be found
    /// as lost.
    pub(super) fn drop_excess(&mut self, last: u32, clean: bool) -> Result<()> {
        let mut next = self.vol.fat.link(last)?;
        self.vol.cut(last)?;
        let mut left = self.vol.layout.cluster_count;
        while let (true, super::fat::Link::Next(n)) = (clean && left > 0, next) {
            next = self.vol.fat.link(n)?;
            self.vol.set_link(n, 0)?;
            left -= 1;
        }
        Ok(())
    }

    /// Sets the first cluster of an entry.
    pub(super) fn set_start(&mut self, problem: &Problem, start: u32) -> Result<()> {
        let fat32 = self.vol.layout.is_fat32();
        self.change(problem, |e| e.set_first_cluster(start, fat32))
    }

    fn dots(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.dir(problem.dir);
        let above = if dir.parent == 0 {
            0
        } else {
            self.dir(dir.parent).cluster
        };
        let (name, shown, start) = match problem.slot {
            0 => (DOT, ".", dir.cluster),
            _ => (DOT_DOT, "..", above),
        };
        let mut entry = self.vol.entry(&dir, problem.slot)?;
        let own = Problem {
            slot: NONE,
            ..*problem
        };
        if problem.what == What::DotDot {
            let words = format!("'..' leads to cluster {}", self.vol.start(&entry));
            let repair = format!("sets it to {start}");
            // Both dots are told of at the directory: tell them apart.
            if self.tell_dot(code::DOT_DOT, &own, 1, words, repair)? {
                entry.set_first_cluster(start, self.vol.layout.is_fat32());
                self.vol.put_entry(&dir, 1, &entry)?;
            }
            return Ok(());
        }
        let words = format!("no proper '{shown}' in slot {}", problem.slot);
        let key = u64::from(problem.slot);
        if !self.tell_dot(code::DOT, &own, key, words, "puts it there".into())? {
            return Ok(());
        }
        if entry.DIR_Name != name {
            // Without room for what stands there, what it leads to is found lost.
            self.move_away(problem)?;
        }
        let mut new = self.new_entry(name, attr::DIRECTORY, start);
        new.DIR_NTRes = 0;
        self.vol.put_entry(&dir, problem.slot, &new)
    }

    fn tell_dot(
        &mut self,
        code: Code,
        own: &Problem,
        key: u64,
        message: String,
        repair: String,
    ) -> Result<bool> {
        let mut at = self.place(own.dir, NONE)?;
        at.offset = at.offset.map(|o| o + key * ENTRY_LEN as u64);
        let key = at.offset.unwrap_or(key);
        Ok(self.reporter.tell(code, key, at, message, repair))
    }

    fn stray_dot(&mut self, problem: &Problem) -> Result<()> {
        let words = format!("'.' or '..' stands in slot {}", problem.slot);
        if self.tell(code::DOT, problem, words, "takes it away from there")? {
            self.remove(problem)?;
        }
        Ok(())
    }

    /// Puts a live entry, a slot of which is a dot's, into free slots, with its long
    /// name, if there is room.
    fn move_away(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.dir(problem.dir);
        let Some((first, short, last)) = self.span_over(&dir, problem.slot)? else {
            return Ok(());
        };
        let mut raws = Vec::new();
        for slot in first..=last {
            raws.push(self.vol.raw(&dir, slot)?);
        }
        let raw = self.vol.raw(&dir, short)?;
        let entry: DirEntry = transmute!(raw);
        let dots = entry.DIR_Name == DOT || entry.DIR_Name == DOT_DOT;
        if dots || !judge::is_sane(&raw, self.vol.judge()) {
            return Ok(());
        }
        self.insert(problem.dir, &raws, last.max(1) + 1, Rank::Early)?;
        self.vol.free_slots(&dir, first, last)
    }

    /// Returns the slots of the live entry that one slot belongs to, if it belongs to one:
    /// the first, that of the short name, the last.
    fn span_over(&mut self, dir: &Dir, slot: u32) -> Result<Option<(u32, u32, u32)>> {
        let mut found = None;
        self.vol.records(dir, |_, r| {
            if (r.first_slot..=r.last_slot).contains(&slot) {
                found = Some((r.first_slot, r.slot, r.last_slot));
            }
        })?;
        Ok(found)
    }

    /// Returns an entry of the time of the check.
    pub(super) fn new_entry(&self, name: [u8; 11], attr: u8, start: u32) -> DirEntry {
        let mut entry = DirEntry::new_zeroed();
        entry.DIR_Name = name;
        entry.DIR_Attr = attr;
        entry.set_first_cluster(start, self.vol.layout.is_fat32());
        set_write(&mut entry, self.vol.now, Zone(0));
        set_access(&mut entry, self.vol.now, Zone(0));
        set_create(&mut entry, self.vol.now, Zone(0));
        entry
    }

    fn slots(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.dir(problem.dir);
        if let What::GarbageSlots { unit } = problem.what {
            let words = format!("part {unit} of the directory holds something else");
            let repair = "frees the slots that make no sense";
            if self.tell(code::DIR_GARBAGE, problem, words, repair)? {
                let per = (self.vol.unit(&dir) / ENTRY_LEN) as u32;
                return self.free_insane(&dir, unit * per, per);
            }
            return Ok(());
        }
        self.after_end(problem)
    }

    fn free_insane(&mut self, dir: &Dir, from: u32, count: u32) -> Result<()> {
        for slot in from..from + count {
            let raw = self.vol.raw(dir, slot)?;
            match raw.first() {
                None | Some(&0) => break,
                Some(&FREE) => {}
                Some(_) if judge::is_sane(&raw, self.vol.judge()) => {}
                Some(_) => self.vol.free_slots(dir, slot, slot)?,
            }
        }
        Ok(())
    }

    fn long(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.dir(problem.dir);
        match problem.what {
            What::Orphan { count } => {
                let words = format!(
                    "{count} parts of a long name in slot {} on, without an entry",
                    problem.slot
                );
                let at = self.place(problem.dir, NONE)?;
                let key = self.vol.slot_offset(&dir, problem.slot)?;
                let at = Where { offset: key, ..at };
                let key = key.unwrap_or(0);
                if self
                    .reporter
                    .tell(code::LONG_ORPHAN, key, at, words, "frees them")
                {
                    self.vol
                        .free_slots(&dir, problem.slot, problem.slot + count - 1)?;
                }
            }
            What::LongField => {
                let words = "fields of a part of a long name are not 0".into();
                let at = self.place(problem.dir, NONE)?;
                let key = self.vol.slot_offset(&dir, problem.slot)?;
                let at = Where { offset: key, ..at };
                if self.reporter.tell(
                    code::LONG_FIELD,
                    key.unwrap_or(0),
                    at,
                    words,
                    "sets them to 0",
                ) {
                    let mut raw: Raw = self.vol.raw(&dir, problem.slot)?;
                    let part: &mut LongEntry = transmute_mut!(&mut raw);
                    part.LDIR_Type = 0;
                    part.LDIR_FstClusLO.set(0);
                    part.LDIR_Attr = attr::LONG_NAME;
                    self.vol.put_raw(&dir, problem.slot, &raw, Rank::Late)?;
                }
            }
            _ => {
                let short = self.short_shown(&dir, problem.slot)?;
                let words = "its long name holds characters that no name can have".into();
                let repair = format!("takes the long name away; it is then '{}'", escape(&short));
                if self.tell(code::LONG_NAME, problem, words, repair)? {
                    self.drop_long(problem)?;
                }
            }
        }
        Ok(())
    }

    /// Takes a long name away.
    pub(super) fn drop_long(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.dir(problem.dir);
        match problem.slot.checked_sub(1) {
            Some(last) if problem.first <= last => self.vol.free_slots(&dir, problem.first, last),
            _ => Ok(()),
        }
    }

    /// Returns how the short name of an entry is shown.
    pub(super) fn short_shown(&mut self, dir: &Dir, slot: u32) -> Result<Vec<u8>> {
        let entry = self.vol.entry(dir, slot)?;
        let mut out = Vec::new();
        self.vol
            .names
            .show_short(&entry.DIR_Name, entry.DIR_NTRes, &mut out);
        Ok(out)
    }

    fn label(&mut self, problem: &Problem) -> Result<()> {
        match problem.what {
            What::LabelPlace => {
                let words = "a label where none can be".into();
                if self.tell(code::LABEL_PLACE, problem, words, "takes it away")? {
                    let first = problem.slot;
                    self.remove(&Problem { first, ..*problem })?;
                }
            }
            What::LabelData => {
                let words = "a label with a size or a chain".into();
                if self.tell(code::LABEL_DATA, problem, words, "sets both to 0")? {
                    self.change(problem, |e| {
                        e.DIR_FileSize.set(0);
                        e.set_first_cluster(0, true);
                    })?;
                }
            }
            What::VolumeId => {
                let words = "a file or directory that is marked as a label".into();
                if self.tell(code::VOLUME_ID_FILE, problem, words, "takes the mark away")? {
                    self.change(problem, |e| e.DIR_Attr &= !attr::VOLUME_ID)?;
                }
            }
            _ => {
                let words = "a label with characters that none can have".into();
                if self.tell(code::LABEL_NAME, problem, words, "replaces them by '_'")? {
                    self.change(problem, |e| {
                        for (i, b) in e.DIR_Name.iter_mut().enumerate() {
                            let fine = is_label_byte(*b) && (i > 0 || *b != b' ');
                            if !fine && (i > 0 || *b != 5) {
                                *b = b'_';
                            }
                        }
                    })?;
                }
            }
        }
        Ok(())
    }

    fn small(&mut self, problem: &Problem) -> Result<()> {
        match problem.what {
            What::NtBits => {
                let words = "a reserved bit of DIR_NTRes says that it has no short name".into();
                if self.tell(code::NT_BITS, problem, words, "clears the bit")? {
                    self.change(problem, |e| e.DIR_NTRes &= !NT_NO_SHORT)?;
                }
            }
            What::BadDate => {
                let words = "its time of last change is none".into();
                self.tell(code::BAD_DATE, problem, words, "")?;
            }
            What::UnixData if self.vol.paper => self.paper_reset(problem)?,
            What::UnixData => {
                let words = "it has the UNIX extension, which is to be reset".into();
                if self.tell(code::UNIX_RESET, problem, words, "takes the extension away")? {
                    self.change(problem, today::reset)?;
                }
            }
            _ => {
                let words = if self.walk.owners.is_some() {
                    "its UNIX extension was damaged by another system; the mount's owner has it"
                } else {
                    "the hundredths of its time of birth are more than 199"
                };
                self.tell(code::UNIX_CHECK, problem, words.into(), "")?;
            }
        }
        Ok(())
    }
}
