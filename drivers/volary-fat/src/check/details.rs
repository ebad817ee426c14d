//! Mends what a walk noted, a problem at a time: those that concern one entry alone here, others by their parts.

use super::after::AfterEnd;
use super::chain::Chains;
use super::cross::Crosses;
use super::disk::Rank;
use super::entry::{NT_NO_SHORT, is_label_byte};
use super::findings::{self as code, Code, Where};
use super::insert::Entries;
use super::mend::Mender;
use super::owners::UnixExtension;
use super::volume::{Dir, NONE};
use super::walk::{Problem, What};
use crate::unix::today;
use crate::volume::judge;
use crate::volume::ondisk::{DOT, DOT_DOT, DirEntry, ENTRY_LEN, FREE, LongEntry, Raw, attr};
use volary_core::{Result, escape};
use zerocopy::{transmute, transmute_mut};

/// The mending of problems that a walk noted.
pub(super) struct Details<'m, 'a, 'r> {
    entries: Entries<'m, 'a, 'r>,
}

impl<'m, 'a, 'r> Details<'m, 'a, 'r> {
    pub(super) fn new(mender: &'m mut Mender<'a, 'r>) -> Self {
        Self {
            entries: Entries::new(mender),
        }
    }

    fn mender(&mut self) -> &mut Mender<'a, 'r> {
        self.entries.mender()
    }

    /// Tells of a problem of the first or the last phase, and mends it.
    pub(super) fn mend(&mut self, problem: &Problem) -> Result<()> {
        match problem.what {
            What::RootStart
            | What::Start(_)
            | What::Link { .. }
            | What::Half { .. }
            | What::Loop { .. }
            | What::Garbage { .. }
            | What::NotDir
            | What::Unreadable { .. }
            | What::TooLong => Chains::new(self.mender()).mend(problem),
            What::Cross { .. } => {
                let problems = std::slice::from_ref(problem);
                Crosses::new(self.mender(), problems)?.mend(problems)
            }
            What::Dot | What::DotDot => self.dots(problem),
            What::StrayDot => self.stray_dot(problem),
            What::DirSize
            | What::Excess { .. }
            | What::SizeZero
            | What::SizeLong { .. }
            | What::NoChain => self.size(problem),
            What::GarbageSlots { .. } | What::AfterEnd { .. } => self.slots(problem),
            What::Orphan { .. } | What::LongField | What::LongName => self.long(problem),
            What::ShortName | What::Duplicate { .. } => self.entries.name(problem),
            What::LabelPlace | What::LabelData | What::LabelName | What::VolumeId => {
                self.label(problem)
            }
            What::NtBits | What::BadDate | What::UnixCheck | What::UnixData => self.small(problem),
        }
    }

    fn size(&mut self, problem: &Problem) -> Result<()> {
        let mender = self.mender();
        let dir = mender.dir(problem.dir);
        let size = mender.vol.entry(&dir, problem.slot)?.DIR_FileSize.get();
        let len = mender.vol.layout.cluster_len;
        match problem.what {
            What::DirSize => {
                let words = format!("a directory with a size of {size} bytes");
                if mender.tell(code::DIR_SIZE, problem, words, "sets it to 0")? {
                    mender.change(problem, |e| e.DIR_FileSize.set(0))?;
                }
            }
            What::Excess { last, clean } => {
                let words =
                    format!("the chain goes on after cluster {last}, where {size} bytes end");
                let repair = "ends the chain there and frees the rest";
                if mender.tell(code::SIZE_SHORT, problem, words, repair)? {
                    mender.drop_excess(last, clean)?;
                }
            }
            What::SizeZero => {
                let start = mender.vol.entry(&dir, problem.slot)?;
                let start = mender.vol.start(&start);
                let words = format!("0 bytes long, but with a chain from cluster {start} on");
                let repair = "takes the chain from it; it is then lost";
                if mender.tell(code::SIZE_ZERO, problem, words, repair)? {
                    mender.set_start(problem, 0)?;
                }
            }
            What::SizeLong { clusters } => {
                let new = u64::from(clusters) * u64::from(len);
                let words = format!("{size} bytes long, but its chain holds {new}");
                let repair = format!("sets the size to {new}; the rest is lost");
                if mender.tell(code::SIZE_LONG, problem, words, repair)? {
                    let new = u32::try_from(new).unwrap_or(u32::MAX);
                    mender.change(problem, |e| e.DIR_FileSize.set(new))?;
                }
            }
            _ => {
                let words = format!("{size} bytes long, but without a chain");
                let repair = "sets the size to 0; its data is lost";
                if mender.tell(code::NO_CHAIN, problem, words, repair)? {
                    mender.change(problem, |e| e.DIR_FileSize.set(0))?;
                }
            }
        }
        Ok(())
    }

    fn dots(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.mender().dir(problem.dir);
        let above = if dir.parent == 0 {
            0
        } else {
            self.mender().dir(dir.parent).cluster
        };
        let (name, shown, start) = match problem.slot {
            0 => (DOT, ".", dir.cluster),
            _ => (DOT_DOT, "..", above),
        };
        let mut entry = self.mender().vol.entry(&dir, problem.slot)?;
        let own = Problem {
            slot: NONE,
            ..*problem
        };
        if problem.what == What::DotDot {
            let words = format!("'..' leads to cluster {}", self.mender().vol.start(&entry));
            let repair = format!("sets it to {start}");
            // Both dots are told of at the directory: tell them apart.
            if self.tell_dot(code::DOT_DOT, &own, 1, words, repair)? {
                entry.set_first_cluster(start, self.mender().vol.layout.is_fat32());
                self.mender().vol.put_entry(&dir, 1, &entry)?;
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
        let mut new = self.mender().new_entry(name, attr::DIRECTORY, start);
        new.DIR_NTRes = 0;
        self.mender().vol.put_entry(&dir, problem.slot, &new)
    }

    fn tell_dot(
        &mut self,
        code: Code,
        own: &Problem,
        key: u64,
        message: String,
        repair: String,
    ) -> Result<bool> {
        let mender = self.mender();
        let mut at = mender.place(own.dir, NONE)?;
        at.offset = at.offset.map(|o| o + key * ENTRY_LEN as u64);
        let key = at.offset.unwrap_or(key);
        Ok(mender.reporter.tell(code, key, at, message, repair))
    }

    fn stray_dot(&mut self, problem: &Problem) -> Result<()> {
        let mender = self.mender();
        let words = format!("'.' or '..' stands in slot {}", problem.slot);
        if mender.tell(code::DOT, problem, words, "takes it away from there")? {
            mender.remove(problem)?;
        }
        Ok(())
    }

    /// Puts a live entry, a slot of which is a dot's, into free slots, with its long
    /// name, if there is room.
    fn move_away(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.mender().dir(problem.dir);
        let Some((first, short, last)) = self.span_over(&dir, problem.slot)? else {
            return Ok(());
        };
        let mut raws = Vec::new();
        for slot in first..=last {
            raws.push(self.mender().vol.raw(&dir, slot)?);
        }
        let raw = self.mender().vol.raw(&dir, short)?;
        let entry: DirEntry = transmute!(raw);
        let dots = entry.DIR_Name == DOT || entry.DIR_Name == DOT_DOT;
        if dots || !judge::is_sane(&raw, self.mender().vol.judge()) {
            return Ok(());
        }
        self.entries
            .insert(problem.dir, &raws, last.max(1) + 1, Rank::Early)?;
        self.mender().vol.free_slots(&dir, first, last)
    }

    /// Returns the slots of the live entry that one slot belongs to, if it belongs to one:
    /// the first, that of the short name, the last.
    fn span_over(&mut self, dir: &Dir, slot: u32) -> Result<Option<(u32, u32, u32)>> {
        let mender = self.mender();
        let mut found = None;
        mender.vol.records(dir, |_, r| {
            if (r.first_slot..=r.last_slot).contains(&slot) {
                found = Some((r.first_slot, r.slot, r.last_slot));
            }
        })?;
        Ok(found)
    }

    fn slots(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.mender().dir(problem.dir);
        if let What::GarbageSlots { unit } = problem.what {
            let words = format!("part {unit} of the directory holds something else");
            let repair = "frees the slots that make no sense";
            if self
                .mender()
                .tell(code::DIR_GARBAGE, problem, words, repair)?
            {
                let per = (self.mender().vol.unit(&dir) / ENTRY_LEN) as u32;
                return self.free_insane(&dir, unit * per, per);
            }
            return Ok(());
        }
        AfterEnd::new(self.mender()).mend(problem)
    }

    fn free_insane(&mut self, dir: &Dir, from: u32, count: u32) -> Result<()> {
        let mender = self.mender();
        for slot in from..from + count {
            let raw = mender.vol.raw(dir, slot)?;
            match raw.first() {
                None | Some(&0) => break,
                Some(&FREE) => {}
                Some(_) if judge::is_sane(&raw, mender.vol.judge()) => {}
                Some(_) => mender.vol.free_slots(dir, slot, slot)?,
            }
        }
        Ok(())
    }

    fn long(&mut self, problem: &Problem) -> Result<()> {
        let mender = self.mender();
        let dir = mender.dir(problem.dir);
        match problem.what {
            What::Orphan { count } => {
                let words = format!(
                    "{count} parts of a long name in slot {} on, without an entry",
                    problem.slot
                );
                let at = mender.place(problem.dir, NONE)?;
                let key = mender.vol.slot_offset(&dir, problem.slot)?;
                let at = Where { offset: key, ..at };
                let key = key.unwrap_or(0);
                if mender
                    .reporter
                    .tell(code::LONG_ORPHAN, key, at, words, "frees them")
                {
                    mender
                        .vol
                        .free_slots(&dir, problem.slot, problem.slot + count - 1)?;
                }
            }
            What::LongField => {
                let words = "fields of a part of a long name are not 0".into();
                let at = mender.place(problem.dir, NONE)?;
                let key = mender.vol.slot_offset(&dir, problem.slot)?;
                let at = Where { offset: key, ..at };
                if mender.reporter.tell(
                    code::LONG_FIELD,
                    key.unwrap_or(0),
                    at,
                    words,
                    "sets them to 0",
                ) {
                    let mut raw: Raw = mender.vol.raw(&dir, problem.slot)?;
                    let part: &mut LongEntry = transmute_mut!(&mut raw);
                    part.LDIR_Type = 0;
                    part.LDIR_FstClusLO.set(0);
                    part.LDIR_Attr = attr::LONG_NAME;
                    mender.vol.put_raw(&dir, problem.slot, &raw, Rank::Late)?;
                }
            }
            _ => {
                let short = mender.short_shown(&dir, problem.slot)?;
                let words = "its long name holds characters that no name can have".into();
                let repair = format!("takes the long name away; it is then '{}'", escape(&short));
                if mender.tell(code::LONG_NAME, problem, words, repair)? {
                    mender.drop_long(problem)?;
                }
            }
        }
        Ok(())
    }

    fn label(&mut self, problem: &Problem) -> Result<()> {
        let mender = self.mender();
        match problem.what {
            What::LabelPlace => {
                let words = "a label where none can be".into();
                if mender.tell(code::LABEL_PLACE, problem, words, "takes it away")? {
                    let first = problem.slot;
                    mender.remove(&Problem { first, ..*problem })?;
                }
            }
            What::LabelData => {
                let words = "a label with a size or a chain".into();
                if mender.tell(code::LABEL_DATA, problem, words, "sets both to 0")? {
                    mender.change(problem, |e| {
                        e.DIR_FileSize.set(0);
                        e.set_first_cluster(0, true);
                    })?;
                }
            }
            What::VolumeId => {
                let words = "a file or directory that is marked as a label".into();
                if mender.tell(code::VOLUME_ID_FILE, problem, words, "takes the mark away")? {
                    mender.change(problem, |e| e.DIR_Attr &= !attr::VOLUME_ID)?;
                }
            }
            _ => {
                let words = "a label with characters that none can have".into();
                if mender.tell(code::LABEL_NAME, problem, words, "replaces them by '_'")? {
                    mender.change(problem, |e| {
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
        let mender = self.mender();
        match problem.what {
            What::NtBits => {
                let words = "a reserved bit of DIR_NTRes says that it has no short name".into();
                if mender.tell(code::NT_BITS, problem, words, "clears the bit")? {
                    mender.change(problem, |e| e.DIR_NTRes &= !NT_NO_SHORT)?;
                }
            }
            What::BadDate => {
                let words = "its time of last change is none".into();
                mender.tell(code::BAD_DATE, problem, words, "")?;
            }
            What::UnixData if mender.vol.paper => {
                UnixExtension::new(mender).reset(problem)?;
            }
            What::UnixData => {
                let words = "it has the UNIX extension, which is to be reset".into();
                if mender.tell(code::UNIX_RESET, problem, words, "takes the extension away")? {
                    mender.change(problem, today::reset)?;
                }
            }
            _ => {
                let words = if mender.walk.owners.is_some() {
                    "its UNIX extension was damaged by another system; the mount's owner has it"
                } else {
                    "the hundredths of its time of birth are more than 199"
                };
                mender.tell(code::UNIX_CHECK, problem, words.into(), "")?;
            }
        }
        Ok(())
    }
}
