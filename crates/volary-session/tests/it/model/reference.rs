//! What is to happen: names, opens, locks and leases in plain lists, of clients
//! that give up at once what they are told to.

use super::Op;
use std::collections::{BTreeMap, BTreeSet};
use volary_core::{Kind, Mode};
use volary_session::{LeaseBits, Rights, Share};

type File = usize;
type Name = usize;
/// A caller and a file: the key of a lease.
pub(crate) type Whose = (u8, File);
/// Whose lease, as the numbers in its key; what it was, and what is left.
pub(crate) type Broken = ((u8, u8), LeaseBits, LeaseBits);

const R: LeaseBits = LeaseBits::READ;
const H: LeaseBits = LeaseBits::HANDLE;
const W: LeaseBits = LeaseBits::WRITE;
const NONE: LeaseBits = LeaseBits::NONE;

#[derive(Clone, Debug)]
pub(crate) struct Open {
    file: File,
    share: Share,
    mode: Mode,
    pub(crate) place: Option<Name>,
    caller: Option<u8>,
    marked: bool,
    goes: bool,
    /// First byte, length, exclusive.
    locks: Vec<(u64, u64, bool)>,
}

#[derive(Default)]
pub(crate) struct Reference {
    pub(crate) names: BTreeMap<Name, File>,
    pub(crate) opens: Vec<Open>,
    pub(crate) leases: BTreeMap<Whose, LeaseBits>,
    /// Names that go with their last open.
    pending: BTreeSet<Name>,
    files: usize,
    breaks: Vec<Broken>,
}

/// Returns the mode of an open that wants this.
pub(crate) fn mode(share: Share) -> Mode {
    match (
        share.wants.has(Rights::READ),
        share.wants.has(Rights::WRITE),
    ) {
        (_, false) => Mode::Read,
        (false, true) => Mode::Write,
        (true, true) => Mode::ReadWrite,
    }
}

impl Reference {
    /// Returns the answer and the breaks; `None` if there is no such open.
    pub(crate) fn step(&mut self, op: Op) -> Option<(Option<Kind>, Vec<Broken>)> {
        let of_open = match op {
            Op::Close(n)
            | Op::Lease(n, _)
            | Op::GiveUp(n)
            | Op::Read(n)
            | Op::Write(n)
            | Op::Lock(n, ..)
            | Op::Unlock(n, ..)
            | Op::CheckIo(n, ..)
            | Op::SetDelete(n, _)
            | Op::DeleteOnClose(n)
            | Op::RenameOpen(n, _) => Some(n),
            _ => None,
        };
        if of_open.is_some_and(|n| n >= self.opens.len()) {
            return None;
        }
        let answer = self.act(op);
        Some((answer.err(), std::mem::take(&mut self.breaks)))
    }

    /// Returns the key that the open was made with.
    pub(crate) fn whose(&self, n: usize) -> Option<Whose> {
        let open = &self.opens[n];
        open.caller.map(|caller| (caller, open.file))
    }

    pub(crate) fn is_pending(&self, open: &Open) -> bool {
        match open.place {
            Some(name) => self.pending.contains(&name),
            None if open.marked => false,
            None => self.pending_of(open.file),
        }
    }

    fn pending_of(&self, file: File) -> bool {
        self.pending
            .iter()
            .any(|name| self.names.get(name) == Some(&file))
    }

    fn act(&mut self, op: Op) -> Result<(), Kind> {
        match op {
            Op::Create(name) => self.create(name),
            Op::OpenPlain(name, mode) => {
                let share = Share::from(mode);
                self.open(name, share, mode, None, false)
            }
            Op::Open {
                caller,
                name,
                share,
                keyed,
            } => self.open(name, share, mode(share), keyed.then_some(caller), true),
            Op::Close(n) => {
                self.close(n);
                Ok(())
            }
            Op::Lease(n, want) => self.lease(n, want),
            Op::GiveUp(n) => match self.whose(n).map(|whose| self.leases.get_mut(&whose)) {
                Some(None) => Err(Kind::Invalid),
                Some(Some(bits)) => {
                    *bits = NONE;
                    Ok(())
                }
                None => Ok(()),
            },
            Op::Read(n) if self.opens[n].mode == Mode::Write => Err(Kind::Access),
            Op::Write(n) if self.opens[n].mode == Mode::Read => Err(Kind::Access),
            Op::Read(n) => self.hit_by(n, W),
            Op::Write(n) => self.hit_by(n, R | H | W),
            Op::Resize(name) => {
                let file = self.find(name)?;
                self.check(file, Rights::WRITE, None)?;
                self.hit(file, None, R | H | W);
                Ok(())
            }
            Op::Lock(n, at, len, alone) => self.lock(n, at, len, alone),
            Op::Unlock(n, at, len) => self.unlock(n, at, len),
            Op::CheckIo(n, at, writes) => self.check_io(n, at, writes),
            Op::SetDelete(n, on) => self.set_delete(n, on),
            Op::DeleteOnClose(n) => self.delete_on_close(n),
            Op::Unlink(name) => {
                let file = self.find(name)?;
                self.hit(file, None, H);
                self.check(file, Rights::DELETE, None)?;
                self.lose(name);
                Ok(())
            }
            Op::Rename(from, to) => self.rename(from, to, None),
            Op::RenameOpen(n, to) => {
                if !self.opens[n].share.wants.has(Rights::DELETE) || !self.opens[n].marked {
                    return Err(Kind::Access);
                }
                let from = self.opens[n].place.ok_or(Kind::NotFound)?;
                self.rename(from, to, Some(n))
            }
        }
    }

    fn find(&self, name: Name) -> Result<File, Kind> {
        self.names.get(&name).copied().ok_or(Kind::NotFound)
    }

    fn create(&mut self, name: Name) -> Result<(), Kind> {
        if self.names.contains_key(&name) {
            return Err(Kind::Exists);
        }
        self.names.insert(name, self.files);
        self.files += 1;
        Ok(())
    }

    /// Takes bits from all leases on the file but those of `by`.
    fn hit(&mut self, file: File, by: Option<u8>, strips: LeaseBits) {
        for (&(caller, leased), bits) in &mut self.leases {
            let left = bits.without(strips);
            if leased != file || Some(caller) == by || left == *bits {
                continue;
            }
            let left = if left.has(R) { left } else { NONE };
            self.breaks.push(((caller, file as u8), *bits, left));
            *bits = left;
        }
    }

    fn hit_by(&mut self, n: usize, strips: LeaseBits) -> Result<(), Kind> {
        let Open { file, caller, .. } = self.opens[n];
        self.hit(file, caller, strips);
        Ok(())
    }

    fn check(&self, file: File, rights: Rights, but: Option<usize>) -> Result<(), Kind> {
        let others = self
            .opens
            .iter()
            .enumerate()
            .filter(|(n, _)| Some(*n) != but);
        let mut others = others.filter(|(_, open)| open.file == file && open.marked);
        match others
            .any(|(_, open)| open.share.wants != Rights::NONE && !open.share.allows.has(rights))
        {
            true => Err(Kind::Sharing),
            false => Ok(()),
        }
    }

    fn clashes(&self, file: File, share: Share) -> bool {
        let mut opens = self.opens.iter().filter(|open| open.file == file);
        opens.any(|open| {
            let used = open.share.wants != Rights::NONE && share.wants != Rights::NONE;
            used && !(open.share.allows.has(share.wants) && share.allows.has(open.share.wants))
        })
    }

    fn open(
        &mut self,
        name: Name,
        share: Share,
        mode: Mode,
        caller: Option<u8>,
        marked: bool,
    ) -> Result<(), Kind> {
        let file = self.find(name)?;
        if self.pending.contains(&name) {
            return Err(Kind::DeletePending);
        }
        if self.clashes(file, share) {
            self.hit(file, caller, H);
            return Err(Kind::Sharing);
        }
        self.opens.push(Open {
            file,
            share,
            mode,
            place: marked.then_some(name),
            caller,
            marked,
            goes: false,
            locks: Vec::new(),
        });
        if share.wants != Rights::NONE {
            self.hit(file, caller, W);
        }
        Ok(())
    }

    fn close(&mut self, n: usize) {
        let open = self.opens.remove(n);
        if let (true, Some(name)) = (open.goes, open.place) {
            self.pending.insert(name);
        }
        if let Some(caller) = open.caller {
            let same = |other: &Open| other.file == open.file && other.caller == Some(caller);
            if !self.opens.iter().any(same) {
                self.leases.remove(&(caller, open.file));
            }
        }
        if let Some(name) = open.place.filter(|name| self.pending.contains(name))
            && !self.opens.iter().any(|other| other.place == Some(name))
        {
            self.lose(name);
        }
    }

    /// The name goes.
    fn lose(&mut self, name: Name) {
        self.names.remove(&name);
        self.pending.remove(&name);
        for open in &mut self.opens {
            open.place = open.place.filter(|place| *place != name);
        }
    }

    fn rename(&mut self, from: Name, to: Name, by: Option<usize>) -> Result<(), Kind> {
        let moved = self.find(from)?;
        let target = self.names.get(&to).copied().filter(|file| *file != moved);
        let caller = by.and_then(|n| self.opens[n].caller);
        self.hit(moved, caller, H);
        if let Some(file) = target {
            self.hit(file, None, H);
        }
        self.check(moved, Rights::DELETE, by)?;
        if let Some(file) = target {
            self.check(file, Rights::DELETE, None)?;
            self.lose(to);
        }
        if from == to {
            return Ok(());
        }
        self.names.remove(&from);
        self.names.insert(to, moved);
        if self.pending.remove(&from) {
            self.pending.insert(to);
        }
        for open in &mut self.opens {
            open.place = open
                .place
                .map(|place| if place == from { to } else { place });
        }
        Ok(())
    }

    fn lease(&mut self, n: usize, want: LeaseBits) -> Result<(), Kind> {
        let Some(whose) = self.whose(n) else {
            return Ok(());
        };
        let on_file = |open: &&Open| open.file == whose.1;
        let locked = self
            .opens
            .iter()
            .filter(on_file)
            .any(|open| !open.locks.is_empty());
        let shared = self
            .opens
            .iter()
            .filter(on_file)
            .any(|open| open.caller != Some(whose.0) && open.share.wants != Rights::NONE);
        let others = || {
            let leases = self.leases.iter();
            leases.filter(move |((caller, file), _)| *file == whose.1 && *caller != whose.0)
        };
        let gathered = others().any(|(_, bits)| bits.has(W));
        let leased = others().any(|(_, bits)| *bits != NONE);
        let want = if locked { NONE } else { want };
        let mut bits = if gathered || !want.has(R) { NONE } else { want };
        if shared || leased {
            bits = bits.without(W);
        }
        if !bits.has(R) {
            bits = NONE;
        }
        let held = self.leases.entry(whose).or_insert(bits);
        if bits == want && bits.has(*held) {
            *held = bits;
        }
        Ok(())
    }

    fn lock(&mut self, n: usize, at: u64, len: u64, alone: bool) -> Result<(), Kind> {
        // Also any open of data does, whatever it wants.
        self.hit_by(n, R | H | W)?;
        let file = self.opens[n].file;
        for (other, open) in self
            .opens
            .iter()
            .enumerate()
            .filter(|(_, open)| open.file == file)
        {
            for (first, length, theirs) in &open.locks {
                let overlap = *first < at + len && at < first + length;
                if overlap && (alone || (*theirs && other != n)) {
                    return Err(Kind::Locked);
                }
            }
        }
        self.opens[n].locks.push((at, len, alone));
        Ok(())
    }

    fn unlock(&mut self, n: usize, at: u64, len: u64) -> Result<(), Kind> {
        let locks = &mut self.opens[n].locks;
        let exclusive = locks.iter().position(|lock| *lock == (at, len, true));
        let shared = locks.iter().position(|lock| *lock == (at, len, false));
        let index = exclusive.or(shared).ok_or(Kind::NotFound)?;
        locks.remove(index);
        Ok(())
    }

    fn check_io(&self, n: usize, at: u64, writes: bool) -> Result<(), Kind> {
        let file = self.opens[n].file;
        for (other, open) in self
            .opens
            .iter()
            .enumerate()
            .filter(|(_, open)| open.file == file)
        {
            for (first, len, alone) in &open.locks {
                let mine = other == n;
                let forbids = if *alone { !mine } else { writes };
                if (*first..first + len).contains(&at) && forbids {
                    return Err(Kind::Locked);
                }
            }
        }
        Ok(())
    }

    fn deletable(&self, n: usize) -> Result<Name, Kind> {
        let open = &self.opens[n];
        if !open.share.wants.has(Rights::DELETE) || !open.marked {
            return Err(Kind::Access);
        }
        open.place.ok_or(Kind::NotFound)
    }

    fn delete_on_close(&mut self, n: usize) -> Result<(), Kind> {
        self.deletable(n)?;
        self.hit_by(n, H)?;
        self.opens[n].goes = true;
        Ok(())
    }

    fn set_delete(&mut self, n: usize, on: bool) -> Result<(), Kind> {
        if !on {
            if let Some(name) = self.opens[n].place {
                self.pending.remove(&name);
            }
            return Ok(());
        }
        let name = self.deletable(n)?;
        self.hit_by(n, H)?;
        self.pending.insert(name);
        Ok(())
    }
}
