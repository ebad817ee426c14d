//! A client of SMB with a cache: it keeps what leases let it keep, and gives it up
//! when it is told to, on a thread of its own.

use crate::op::{Answer, Name, No, PATHS, Seen, Share, Span};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use volary_testkit::smb::{Client, Fail, How, LeaseBreak, Open, access, disposition, status};

/// The bits of a lease.
const READ: u32 = 1;
const WRITE: u32 = 4;
/// More than any file holds.
const ALL: usize = 256 << 10;

pub(crate) type Key = [u8; 16];

pub(crate) struct Of {
    pub(crate) client: Client,
    number: usize,
    kept: Arc<Mutex<HashMap<Key, Kept>>>,
    held: BTreeMap<u64, Held>,
}

#[derive(Clone, Copy)]
struct Held {
    open: Open,
    key: Option<Key>,
}

/// What is known of a file that is leased.
#[derive(Default)]
struct Kept {
    bits: u32,
    opens: Vec<Open>,
    content: Option<Vec<u8>>,
    /// What the server does not know yet.
    dirty: bool,
    /// The server is asked all the same: it knows what locks forbid.
    through: bool,
}

/// Of a client.
pub(crate) fn guid(number: usize) -> [u8; 16] {
    [number as u8 + 1; 16]
}

/// Of a client's lease on a file.
pub(crate) fn key(number: usize, file: usize) -> Key {
    let mut key = [0; 16];
    key[0] = number as u8 + 1;
    key[8..].copy_from_slice(&(file as u64).to_le_bytes());
    key
}

fn no(fail: Fail) -> No {
    match fail {
        Fail::Status(status::OBJECT_NAME_NOT_FOUND) => No::NotFound,
        Fail::Status(status::OBJECT_NAME_COLLISION) => No::Exists,
        Fail::Status(status::SHARING_VIOLATION) => No::Sharing,
        Fail::Status(status::DELETE_PENDING) => No::Pending,
        Fail::Status(status::FILE_LOCK_CONFLICT | status::LOCK_NOT_GRANTED) => No::Locked,
        Fail::Status(status::ACCESS_DENIED) => No::Access,
        Fail::Status(status::IO_DEVICE_ERROR | status::MEDIA_WRITE_PROTECTED) => No::Io,
        Fail::Status(other) => panic!("SMB status {other:#x}"),
        Fail::Gone => panic!("the SMB server hung up"),
    }
}

/// Returns the bytes of a unit.
fn bytes(unit: u64) -> Range<u64> {
    let (first, len) = Span::Unit(unit).range();
    first..first + len
}

fn done(result: Result<(), Fail>) -> Answer {
    result.map(|()| Seen::Nothing).map_err(no)
}

fn path(name: Name) -> String {
    PATHS[name].replace('/', "\\")
}

fn rights(wants: u8) -> u32 {
    let bit = |of: u8, right: u32| if wants & of == 0 { 0 } else { right };
    bit(1, access::READ) | bit(2, access::WRITE) | bit(4, access::DELETE)
}

impl Drop for Of {
    fn drop(&mut self) {
        self.client.hang_up();
    }
}

impl Of {
    pub(crate) fn new(address: SocketAddr, number: usize) -> Self {
        let (client, breaks) =
            Client::connect(address, "tester", "pass", "test", guid(number)).unwrap();
        let kept: Arc<Mutex<HashMap<Key, Kept>>> = Arc::default();
        let (obedient, known) = (client.clone(), Arc::clone(&kept));
        thread::spawn(move || give_up(&obedient, &known, &breaks));
        Self {
            client,
            number,
            kept,
            held: BTreeMap::new(),
        }
    }

    /// Returns what the client believes to have by this lease.
    pub(crate) fn bits(&self, key: &Key) -> u8 {
        lock(&self.kept).get(key).map_or(0, |kept| kept.bits as u8)
    }

    /// Does something with an open that lasts as long.
    fn briefly(
        &self,
        name: Name,
        right: u32,
        act: impl FnOnce(Open) -> Result<Seen, Fail>,
    ) -> Answer {
        let opened = self
            .client
            .open(&path(name), &How::open(right))
            .map_err(no)?;
        let acted = act(opened.open);
        let closed = self.client.close(opened.open);
        let seen = acted.map_err(no)?;
        closed.map_err(no)?;
        Ok(seen)
    }

    pub(crate) fn create(&self, name: Name) -> Answer {
        let how = How {
            disposition: disposition::CREATE,
            ..How::open(access::WRITE)
        };
        let opened = self.client.open(&path(name), &how).map_err(no)?;
        done(self.client.close(opened.open))
    }

    pub(crate) fn write(&self, name: Name, offset: u64, data: &[u8]) -> Answer {
        self.briefly(name, access::WRITE, |open| {
            self.client.write(open, offset, data)?;
            self.client.flush(open)?;
            Ok(Seen::Nothing)
        })
    }

    pub(crate) fn read(&self, name: Name) -> Answer {
        self.briefly(name, access::READ, |open| {
            self.client.read(open, 0, ALL).map(Seen::Data)
        })
    }

    pub(crate) fn resize(&self, name: Name, size: u64) -> Answer {
        self.briefly(name, access::WRITE, |open| {
            self.client.set_size(open, size).map(|()| Seen::Nothing)
        })
    }

    pub(crate) fn rename(&self, from: Name, to: Name) -> Answer {
        self.briefly(from, access::DELETE, |open| {
            self.client.rename(open, &path(to)).map(|()| Seen::Nothing)
        })
    }

    pub(crate) fn remove(&self, name: Name) -> Answer {
        self.briefly(name, access::DELETE, |open| {
            self.client.set_delete(open, true).map(|()| Seen::Nothing)
        })
    }

    pub(crate) fn list(&self, name: Name) -> Answer {
        let mut names = self.client.list(crate::world::dir_of(name)).map_err(no)?;
        names.sort();
        Ok(Seen::Names(names))
    }

    /// `file` is the model's number of what the name leads to, if it leads anywhere.
    pub(crate) fn open(
        &mut self,
        name: Name,
        share: Share,
        file: Option<usize>,
        number: u64,
    ) -> Answer {
        let key = file.map(|file| key(self.number, file));
        let lease = share
            .lease
            .map(|bits| (key.unwrap_or_default(), bits.into()));
        let how = How {
            share: share.allows.into(),
            lease,
            ..How::open(rights(share.wants))
        };
        let opened = self.client.open(&path(name), &how).map_err(no)?;
        let key = lease.map(|(key, _)| key);
        self.held.insert(
            number,
            Held {
                open: opened.open,
                key,
            },
        );
        let Some(key) = key else {
            return Ok(Seen::Nothing);
        };
        let mut all = lock(&self.kept);
        let kept = all.entry(key).or_default();
        kept.opens.push(opened.open);
        kept.bits = opened.lease;
        Ok(Seen::Lease(opened.lease as u8))
    }

    pub(crate) fn close(&mut self, number: u64) -> Answer {
        let Held { open, key } = self.held.remove(&number).expect("held");
        if let Some(key) = key {
            flush(&self.client, &self.kept, &key).map_err(no)?;
            let mut all = lock(&self.kept);
            let kept = all.get_mut(&key).expect("leased");
            kept.opens.retain(|other| *other != open);
            if kept.opens.is_empty() {
                all.remove(&key);
            }
        }
        done(self.client.close(open))
    }

    pub(crate) fn held_read(&self, number: u64) -> Answer {
        let Held { open, key } = self.held[&number];
        let cached = |key: &Key| u32::from(self.bits(key)) & READ != 0 && !self.writes_through(key);
        let Some(key) = key.filter(cached) else {
            return self.client.read(open, 0, ALL).map(Seen::Data).map_err(no);
        };
        self.fill(open, &key)?;
        let content = lock(&self.kept)[&key].content.clone();
        Ok(Seen::Data(content.expect("filled")))
    }

    fn writes_through(&self, key: &Key) -> bool {
        lock(&self.kept)[key].through
    }

    /// Reads what is not known yet.
    fn fill(&self, open: Open, key: &Key) -> Result<(), No> {
        if lock(&self.kept)[key].content.is_none() {
            let content = self.client.read(open, 0, ALL).map_err(no)?;
            lock(&self.kept).get_mut(key).expect("leased").content = Some(content);
        }
        Ok(())
    }

    pub(crate) fn held_write(&self, number: u64, offset: u64, data: &[u8]) -> Answer {
        let Held { open, key } = self.held[&number];
        let bits = key.map_or(0, |key| u32::from(self.bits(&key)));
        let gathers = |key: &Key| bits & WRITE != 0 && !self.writes_through(key);
        if let Some(key) = key.filter(gathers) {
            self.fill(open, &key)?;
            let mut all = lock(&self.kept);
            let kept = all.get_mut(&key).expect("leased");
            put(kept.content.as_mut().expect("filled"), offset, data);
            kept.dirty = true;
            return Ok(Seen::Nothing);
        }
        if let Some(key) = key {
            lock(&self.kept).get_mut(&key).expect("leased").content = None;
        }
        done(self.client.write(open, offset, data))
    }

    pub(crate) fn set_delete(&self, number: u64, on: bool) -> Answer {
        done(self.client.set_delete(self.held[&number].open, on))
    }

    pub(crate) fn lock(&self, number: u64, unit: u64, alone: bool) -> Answer {
        let Held { open, key } = self.held[&number];
        if let Some(key) = key {
            flush(&self.client, &self.kept, &key).map_err(no)?;
            lock(&self.kept).get_mut(&key).expect("leased").through = true;
        }
        done(self.client.lock(open, bytes(unit), alone))
    }

    /// Waits for it.
    pub(crate) fn lock_waiting(&self, number: u64, unit: u64) -> Answer {
        let open = self.held[&number].open;
        done(self.client.lock_waiting(open, bytes(unit)))
    }

    pub(crate) fn unlock(&self, number: u64, unit: u64) -> Answer {
        let open = self.held[&number].open;
        done(self.client.unlock(open, bytes(unit)))
    }
}

fn put(content: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let (offset, end) = (offset as usize, offset as usize + data.len());
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(data);
}

/// A panic elsewhere is the one to tell of.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the server what it does not know yet.
fn flush(client: &Client, all: &Mutex<HashMap<Key, Kept>>, key: &Key) -> Result<(), Fail> {
    let dirty = {
        let mut all = lock(all);
        let kept = all.get_mut(key).filter(|kept| kept.dirty);
        kept.map(|kept| {
            kept.dirty = false;
            (kept.opens[0], kept.content.clone().unwrap_or_default())
        })
    };
    match dirty {
        Some((open, content)) => client.write(open, 0, &content),
        None => Ok(()),
    }
}

/// Gives up what the server takes away, until the connection ends.
fn give_up(client: &Client, all: &Mutex<HashMap<Key, Kept>>, breaks: &Receiver<LeaseBreak>) {
    for broken in breaks {
        if broken.to & WRITE == 0 && flush(client, all, &broken.key).is_err() {
            return;
        }
        if let Some(kept) = lock(all).get_mut(&broken.key) {
            kept.bits = broken.to;
            if broken.to & READ == 0 {
                kept.content = None;
            }
        }
        if broken.must_ack {
            // What is wrong with it shows in the state of the lease.
            let _ = client.acknowledge(broken.key, broken.to);
        }
    }
}
