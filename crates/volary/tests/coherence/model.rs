//! What is to happen: names, contents, opens, locks and leases in plain lists, of
//! clients that give up at once what they are told to. The rules are those at the
//! heads of the session's modules `leases`, `sharing`, `deletion` and `locks`.

use crate::locks::{Lock, Owner};
use crate::op::{Answer, Name, No, Op, PATHS, Seen, Share, Who};
use std::collections::{BTreeMap, BTreeSet};
use volary_testkit::rng::pattern;

pub(crate) type File = usize;

pub(crate) const R: u8 = 1;
pub(crate) const H: u8 = 2;
pub(crate) const W: u8 = 4;
pub(crate) const READ: u8 = 1;
pub(crate) const WRITE: u8 = 2;
pub(crate) const DELETE: u8 = 4;

/// An open that is held.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) who: Who,
    pub(crate) file: File,
    pub(crate) share: Share,
    /// The entry that an SMB client's open came through.
    place: Option<Name>,
}

impl Held {
    pub(crate) fn key(&self) -> Option<(usize, File)> {
        match (self.who, self.share.lease) {
            (Who::Smb(client), Some(_)) => Some((client, self.file)),
            _ => None,
        }
    }

    fn is_plain(&self) -> bool {
        self.who == Who::Fuse
    }
}

#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) names: BTreeMap<Name, File>,
    pub(crate) contents: Vec<Vec<u8>>,
    /// Held opens, in the order in which they were made, with numbers for ever.
    pub(crate) opens: Vec<(u64, Held)>,
    /// Of an SMB client on a file.
    pub(crate) leases: BTreeMap<(usize, File), u8>,
    pub(crate) locks: Vec<Lock>,
    /// The opens that locks of NFS are held through: for reading, for writing.
    pub(crate) nfs_opens: BTreeMap<File, [bool; 2]>,
    pending: BTreeSet<Name>,
    numbers: u64,
    /// The most that a lease can be on this volume.
    lease_most: u8,
}

/// An open that lasts as long as a step.
#[derive(Clone, Copy)]
pub(crate) struct Brief {
    file: File,
    wants: u8,
}

impl Model {
    pub(crate) fn new(lease_most: u8) -> Self {
        Self {
            names: BTreeMap::new(),
            contents: Vec::new(),
            opens: Vec::new(),
            leases: BTreeMap::new(),
            locks: Vec::new(),
            nfs_opens: BTreeMap::new(),
            pending: BTreeSet::new(),
            numbers: 0,
            lease_most,
        }
    }

    /// Returns the number of a client's n-th held open, counted round.
    pub(crate) fn open_of(&self, who: Who, n: usize) -> Option<u64> {
        let mine: Vec<u64> = self.opens_of(who).collect();
        (!mine.is_empty()).then(|| mine[n % mine.len()])
    }

    pub(crate) fn opens_of(&self, who: Who) -> impl Iterator<Item = u64> {
        let mine = self.opens.iter().filter(move |(_, held)| held.who == who);
        mine.map(|(number, _)| *number)
    }

    pub(crate) fn held(&self, number: u64) -> &Held {
        let found = self.opens.iter().find(|(other, _)| *other == number);
        &found.expect("an open").1
    }

    /// Returns the number that the next open gets.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers
    }

    /// Returns the lease that the open has a part in.
    pub(crate) fn lease_of(&self, number: u64) -> u8 {
        let key = self.held(number).key();
        key.and_then(|key| self.leases.get(&key)).map_or(0, |b| *b)
    }

    /// Returns whether a client may know better than the server what a file holds.
    pub(crate) fn is_gathered(&self, file: File) -> bool {
        let mut leases = self.leases.iter();
        leases.any(|((_, leased), bits)| *leased == file && bits & W != 0)
    }

    pub(crate) fn listed(&self, dir: &str) -> Vec<String> {
        let names = self.names.keys().map(|name| PATHS[*name]);
        let mut listed: Vec<String> = names
            .filter_map(|path| match (dir, path.strip_prefix("d/")) {
                ("d", Some(name)) => Some(name.to_owned()),
                ("", None) => Some(path.to_owned()),
                _ => None,
            })
            .collect();
        if dir.is_empty() {
            listed.push("d".to_owned());
        }
        listed.sort();
        listed
    }

    /// Does it; `None` if it makes no sense now.
    pub(crate) fn step(&mut self, op: Op) -> Option<Answer> {
        let nothing = |done: Result<(), No>| done.map(|()| Seen::Nothing);
        Some(match op {
            Op::Create(_, name) => nothing(self.create(name)),
            Op::Write(who, name, offset, len, seed) => {
                nothing(self.write(who, name, offset, &pattern(seed, len)))
            }
            Op::Read(who, name) => self.read(who, name).map(Seen::Data),
            Op::Resize(who, name, size) => nothing(self.resize(who, name, size)),
            Op::Rename(who, from, to) => nothing(self.rename(who, from, to)),
            Op::Remove(who, name) => nothing(self.remove(who, name)),
            Op::List(_, name) => Ok(Seen::Names(self.listed(crate::world::dir_of(name)))),
            Op::Open(client, name, share) => self.hold(Who::Smb(client), name, share),
            Op::Hold(name) => {
                let share = Share {
                    wants: READ | WRITE,
                    allows: 7,
                    lease: None,
                };
                self.hold(Who::Fuse, name, share)
            }
            Op::Close(who, n) => {
                let number = self.open_of(who, n)?;
                self.close(number);
                Ok(Seen::Nothing)
            }
            Op::HeldRead(who, n) => self.held_read(self.open_of(who, n)?).map(Seen::Data),
            Op::HeldWrite(who, n, offset, len, seed) => {
                let number = self.open_of(who, n)?;
                nothing(self.held_write(number, offset, &pattern(seed, len)))
            }
            Op::SetDelete(client, n, on) => {
                nothing(self.set_delete(self.open_of(Who::Smb(client), n)?, on))
            }
            op => return self.step_lock(op).map(nothing),
        })
    }

    fn find(&self, name: Name) -> Result<File, No> {
        self.names.get(&name).copied().ok_or(No::NotFound)
    }

    fn create(&mut self, name: Name) -> Result<(), No> {
        if self.names.contains_key(&name) {
            return Err(No::Exists);
        }
        self.names.insert(name, self.contents.len());
        self.contents.push(Vec::new());
        Ok(())
    }

    /// Takes bits from all leases on the file but the one of this key.
    pub(crate) fn hit(&mut self, file: File, key: Option<(usize, File)>, strips: u8) {
        for (whose, bits) in &mut self.leases {
            let left = *bits & !strips;
            if whose.1 == file && Some(*whose) != key && left != *bits {
                *bits = if left & R == 0 { 0 } else { left };
            }
        }
    }

    /// Returns whether something open does not go with an open like this.
    fn clashes(&self, file: File, wants: u8, allows: u8) -> bool {
        let used = |theirs: u8| theirs != 0 && wants != 0;
        let nfs = self.nfs_opens.get(&file);
        let nfs = nfs.is_some_and(|[reads, writes]| {
            let theirs = (u8::from(*reads) * READ) | (u8::from(*writes) * WRITE);
            used(theirs) && allows & theirs != theirs
        });
        nfs || self.opens.iter().any(|(_, held)| {
            let Share {
                wants: theirs,
                allows: let_us,
                ..
            } = held.share;
            held.file == file
                && used(theirs)
                && (let_us & wants != wants || allows & theirs != theirs)
        })
    }

    /// Returns an open, held or brief: the file.
    fn open(
        &mut self,
        name: Name,
        key: Option<(usize, File)>,
        wants: u8,
        allows: u8,
    ) -> Result<File, No> {
        let file = self.find(name)?;
        if self.pending.contains(&name) {
            return Err(No::Pending);
        }
        if self.clashes(file, wants, allows) {
            self.hit(file, key, H);
            return Err(No::Sharing);
        }
        self.hit(file, key, W);
        Ok(file)
    }

    pub(crate) fn brief(&mut self, name: Name, wants: u8) -> Result<Brief, No> {
        let file = self.open(name, None, wants, 7)?;
        Ok(Brief { file, wants })
    }

    /// What ends with any open that the mount's process had of the file.
    fn end_brief(&mut self, who: Who, brief: Brief) {
        if who == Who::Fuse {
            self.end_locks(brief.file, Owner::Fuse);
        }
    }

    fn check_locks(&self, file: File, writes: bool, mine: Option<Owner>, at: (u64, u64)) -> bool {
        self.locks.iter().any(|lock| {
            let forbids = if Some(lock.owner) == mine {
                writes && !lock.alone
            } else {
                writes || lock.alone
            };
            lock.file == file && forbids && lock.span.overlaps(at.0, at.1)
        })
    }

    fn write(&mut self, who: Who, name: Name, offset: u64, data: &[u8]) -> Result<(), No> {
        let brief = self.brief(name, WRITE)?;
        let at = (offset, data.len() as u64);
        let file = brief.file;
        if matches!(who, Who::Smb(_)) && self.check_locks(file, true, None, at) {
            return Err(No::Locked);
        }
        self.hit(file, None, R | H | W);
        self.put(file, offset, data);
        self.end_brief(who, brief);
        Ok(())
    }

    fn read(&mut self, who: Who, name: Name) -> Result<Vec<u8>, No> {
        let brief = self.brief(name, READ)?;
        let Brief { file, wants } = brief;
        let content = self.contents[file].clone();
        let at = (0, u64::MAX / 2);
        if matches!(who, Who::Smb(_)) && self.check_locks(file, wants == WRITE, None, at) {
            return Err(No::Locked);
        }
        self.end_brief(who, brief);
        Ok(content)
    }

    fn put(&mut self, file: File, offset: u64, data: &[u8]) {
        let content = &mut self.contents[file];
        let (offset, end) = (offset as usize, offset as usize + data.len());
        if content.len() < end {
            content.resize(end, 0);
        }
        content[offset..end].copy_from_slice(data);
    }

    fn resize(&mut self, who: Who, name: Name, size: u64) -> Result<(), No> {
        let file = if let Who::Nfs(_) = who {
            let file = self.find(name)?;
            self.check(file, WRITE, None)?;
            file
        } else {
            let brief = self.brief(name, WRITE)?;
            self.end_brief(who, brief);
            brief.file
        };
        let was = self.contents[file].len() as u64;
        let (first, last) = (was.min(size), was.max(size));
        let smb = matches!(who, Who::Smb(_));
        if smb && self.check_locks(file, true, None, (first, last - first)) {
            return Err(No::Locked);
        }
        self.hit(file, None, R | H | W);
        self.contents[file].resize(size as usize, 0);
        Ok(())
    }

    /// Returns whether what is open by clients of SMB lets others do this.
    fn check(&self, file: File, rights: u8, but: Option<u64>) -> Result<(), No> {
        let mut others = self
            .opens
            .iter()
            .filter(|(number, held)| Some(*number) != but && held.file == file && !held.is_plain());
        let clash =
            others.any(|(_, held)| held.share.wants != 0 && held.share.allows & rights != rights);
        if clash { Err(No::Sharing) } else { Ok(()) }
    }

    /// Returns how many opens the file has.
    pub(crate) fn count_of(&self, file: File) -> usize {
        let nfs = self.nfs_opens.get(&file).into_iter().flatten();
        let held = self.opens.iter().filter(|(_, held)| held.file == file);
        held.count() + nfs.filter(|open| **open).count()
    }

    fn rename(&mut self, who: Who, from: Name, to: Name) -> Result<(), No> {
        let moved = match who {
            Who::Smb(_) => self.brief(from, DELETE)?.file,
            _ => self.find(from)?,
        };
        let target = self.names.get(&to).copied();
        if matches!(who, Who::Smb(_)) && target.is_some_and(|file| self.count_of(file) > 0) {
            return Err(No::Access);
        }
        self.hit(moved, None, H);
        if let Some(file) = target {
            self.hit(file, None, H);
        }
        self.check(moved, DELETE, None)?;
        if let Some(file) = target {
            self.check(file, DELETE, None)?;
            self.lose(to);
        }
        self.names.remove(&from);
        self.names.insert(to, moved);
        if self.pending.remove(&from) {
            self.pending.insert(to);
        }
        for (_, held) in &mut self.opens {
            held.place = held.place.map(|at| if at == from { to } else { at });
        }
        Ok(())
    }

    fn remove(&mut self, who: Who, name: Name) -> Result<(), No> {
        if let Who::Smb(_) = who {
            let file = self.brief(name, DELETE)?.file;
            self.hit(file, None, H);
            self.pending.insert(name);
            self.lose_if_due(name);
            return Ok(());
        }
        let file = self.find(name)?;
        self.hit(file, None, H);
        self.check(file, DELETE, None)?;
        self.lose(name);
        Ok(())
    }

    /// The name goes.
    fn lose(&mut self, name: Name) {
        self.names.remove(&name);
        self.pending.remove(&name);
        for (_, held) in &mut self.opens {
            held.place = held.place.filter(|place| *place != name);
        }
    }

    fn lose_if_due(&mut self, name: Name) {
        let mut opens = self.opens.iter();
        if self.pending.contains(&name) && !opens.any(|(_, held)| held.place == Some(name)) {
            self.lose(name);
        }
    }

    fn hold(&mut self, who: Who, name: Name, share: Share) -> Answer {
        let key = match (who, share.lease, self.names.get(&name)) {
            (Who::Smb(client), Some(_), Some(file)) => Some((client, *file)),
            _ => None,
        };
        let file = self.open(name, key, share.wants, share.allows)?;
        let held = Held {
            who,
            file,
            share,
            place: matches!(who, Who::Smb(_)).then_some(name),
        };
        self.opens.push((self.numbers, held));
        self.numbers += 1;
        Ok(match (key, share.lease) {
            (Some(key), Some(want)) => Seen::Lease(self.lease(key, want)),
            _ => Seen::Nothing,
        })
    }

    /// Asks for a lease: what is held then.
    fn lease(&mut self, key: (usize, File), want: u8) -> u8 {
        let file = key.1;
        let locked = self.locks.iter().any(|lock| lock.file == file);
        let most = if locked { 0 } else { self.lease_most };
        let want = want & most;
        let others = || {
            let leases = self.leases.iter();
            leases.filter(move |(whose, _)| whose.1 == file && **whose != key)
        };
        let opened =
            self.opens.iter().any(|(_, held)| {
                held.file == file && held.key() != Some(key) && held.share.wants != 0
            }) || self.nfs_opens.contains_key(&file);
        let mut bits = want;
        if opened || others().any(|(_, bits)| *bits != 0) {
            bits &= !W;
        }
        if bits & R == 0 || others().any(|(_, bits)| bits & W != 0) {
            bits = 0;
        }
        let held = self.leases.entry(key).or_insert(bits);
        if bits == want && bits & *held == *held {
            *held = bits;
        }
        *held
    }

    fn close(&mut self, number: u64) {
        let held = self.held(number).clone();
        self.opens.retain(|(other, _)| *other != number);
        match held.who {
            Who::Smb(_) => self.end_locks(held.file, Owner::Smb(number)),
            _ => self.end_locks(held.file, Owner::Fuse),
        }
        if let Some(key) = held.key()
            && !self.opens.iter().any(|(_, other)| other.key() == Some(key))
        {
            self.leases.remove(&key);
        }
        if let Some(name) = held.place {
            self.lose_if_due(name);
        }
    }

    fn held_read(&mut self, number: u64) -> Result<Vec<u8>, No> {
        let held = self.held(number).clone();
        if held.share.wants & READ == 0 {
            return Err(No::Access);
        }
        // Who has locks asks the server, which knows what they forbid.
        let locked = self.locks.iter().any(|lock| lock.file == held.file);
        let cached = self.lease_of(number) & R != 0 && !locked;
        let mine = Some(Owner::Smb(number));
        let smb = matches!(held.who, Who::Smb(_));
        if smb && !cached && self.check_locks(held.file, false, mine, (0, u64::MAX / 2)) {
            return Err(No::Locked);
        }
        self.hit(held.file, held.key(), W);
        Ok(self.contents[held.file].clone())
    }

    fn held_write(&mut self, number: u64, offset: u64, data: &[u8]) -> Result<(), No> {
        let held = self.held(number).clone();
        if held.share.wants & WRITE == 0 {
            return Err(No::Access);
        }
        let at = (offset, data.len() as u64);
        let mine = Some(Owner::Smb(number));
        let smb = matches!(held.who, Who::Smb(_));
        if smb && self.check_locks(held.file, true, mine, at) {
            return Err(No::Locked);
        }
        self.hit(held.file, held.key(), R | H | W);
        self.put(held.file, offset, data);
        Ok(())
    }

    fn set_delete(&mut self, number: u64, on: bool) -> Result<(), No> {
        let held = self.held(number).clone();
        if held.share.wants & DELETE == 0 {
            return Err(No::Access);
        }
        let Some(name) = held.place else {
            return if on { Err(No::NotFound) } else { Ok(()) };
        };
        if on {
            self.hit(held.file, held.key(), H);
            self.pending.insert(name);
        } else {
            self.pending.remove(&name);
        }
        Ok(())
    }
}
