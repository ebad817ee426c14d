//! A client of NFS, with locks.

use crate::op::{Answer, Name, No, PATHS, Seen, Span};
use crate::world::{dir_of, last_of, patience, rest};
use std::net::SocketAddr;
use volary_testkit::nfs::client::{Client, Fh, How, Nfs, Set};
use volary_testkit::nfs::locks::{DENIED, GRANTED, Locker};

const JUKEBOX: u32 = 10_008;
const UNSTABLE: u32 = 0;
const FILE_SYNC: u32 = 2;

pub(crate) struct Of {
    client: Client,
    address: SocketAddr,
    number: usize,
    root: Fh,
    dir: Fh,
    /// Turns at each change of a mode.
    turn: bool,
}

fn no(status: u32) -> No {
    match status {
        2 => No::NotFound,
        5 | 30 => No::Io,
        13 => No::Access,
        17 => No::Exists,
        other => panic!("NFS status {other}"),
    }
}

/// Asks again for as long as it is told to.
fn again<T>(mut ask: impl FnMut() -> Nfs<T>) -> Result<T, No> {
    for _ in 0..patience().as_millis() / 10 {
        match ask() {
            Err(JUKEBOX) => rest(10),
            answer => return answer.map_err(no),
        }
    }
    panic!("NFS: told to try again and again");
}

impl Of {
    pub(crate) fn new(address: SocketAddr, number: usize) -> Self {
        let mut client = Client::new(address);
        let root = client.root();
        let (dir, _) = client.lookup(&root, b"d").unwrap();
        Self {
            client,
            address,
            number,
            root,
            dir,
            turn: false,
        }
    }

    fn dir(&self, name: Name) -> Fh {
        if dir_of(name).is_empty() {
            self.root.clone()
        } else {
            self.dir.clone()
        }
    }

    fn find(&mut self, name: Name) -> Result<Fh, No> {
        let dir = self.dir(name);
        again(|| self.client.lookup(&dir, last_of(name).as_bytes())).map(|found| found.0)
    }

    /// The server keeps what it opened for a while, unless attributes change.
    fn let_go(&mut self, fh: &[u8]) {
        self.turn = !self.turn;
        let mode = if self.turn { 0o644 } else { 0o600 };
        // On a device that fails it is kept for some seconds.
        let _ = self.client.setattr(fh, &Set::mode(mode), None);
    }

    pub(crate) fn create(&mut self, name: Name) -> Answer {
        let (dir, last) = (self.dir(name), last_of(name).as_bytes());
        let how = How::Guarded(Set::mode(0o644));
        let (fh, _) = again(|| self.client.create(&dir, last, how))?;
        self.let_go(&fh);
        Ok(Seen::Nothing)
    }

    pub(crate) fn write(&mut self, name: Name, offset: u64, data: &[u8]) -> Answer {
        let fh = self.find(name)?;
        let stable = if data.len().is_multiple_of(2) {
            UNSTABLE
        } else {
            FILE_SYNC
        };
        let written = again(|| self.client.write(&fh, offset, data, stable));
        let done = written.and_then(|_| again(|| self.client.commit(&fh)));
        self.let_go(&fh);
        done.map(|_| Seen::Nothing)
    }

    pub(crate) fn read(&mut self, name: Name) -> Answer {
        let fh = self.find(name)?;
        let mut all = Vec::new();
        let done = loop {
            let at = all.len() as u64;
            match again(|| self.client.read(&fh, at, 8192)) {
                Ok((data, eof)) => {
                    all.extend(data);
                    if eof {
                        break Ok(());
                    }
                }
                Err(e) => break Err(e),
            }
        };
        self.let_go(&fh);
        done.map(|()| Seen::Data(all))
    }

    pub(crate) fn resize(&mut self, name: Name, size: u64) -> Answer {
        let fh = self.find(name)?;
        again(|| self.client.setattr(&fh, &Set::size(size), None)).map(|_| Seen::Nothing)
    }

    pub(crate) fn rename(&mut self, from: Name, to: Name) -> Answer {
        let (from_dir, to_dir) = (self.dir(from), self.dir(to));
        let old = (&from_dir[..], last_of(from).as_bytes());
        let new = (&to_dir[..], last_of(to).as_bytes());
        again(|| self.client.rename(old, new)).map(|_| Seen::Nothing)
    }

    pub(crate) fn remove(&mut self, name: Name) -> Answer {
        let (dir, last) = (self.dir(name), last_of(name).as_bytes());
        again(|| self.client.remove(&dir, last)).map(|_| Seen::Nothing)
    }

    pub(crate) fn list(&mut self, name: Name) -> Answer {
        let dir = self.dir(name);
        let entries = again(|| self.client.list(&dir, 4096))?;
        let names = entries.into_iter().map(|entry| entry.name);
        let names = names.filter(|name| name != b"." && name != b"..");
        let mut names: Vec<String> = names
            .map(|name| String::from_utf8(name).expect("UTF-8"))
            .collect();
        names.sort();
        Ok(Seen::Names(names))
    }

    pub(crate) fn lock(&mut self, name: Name, unit: u64, alone: bool) -> Answer {
        let mut locker = self.locker(name)?;
        match locker.lock(Span::Unit(unit).range(), alone, false) {
            GRANTED => Ok(Seen::Nothing),
            DENIED => Err(No::Locked),
            other => panic!("NLM status {other} of a lock on {}", PATHS[name]),
        }
    }

    pub(crate) fn unlock(&mut self, name: Name, unit: u64) -> Answer {
        let mut locker = self.locker(name)?;
        assert_eq!(locker.unlock(Span::Unit(unit).range()), GRANTED);
        Ok(Seen::Nothing)
    }

    fn locker(&mut self, name: Name) -> Result<Locker, No> {
        let fh = self.find(name)?;
        let machine: &[u8] = if self.number == 0 { b"one" } else { b"two" };
        let client = Client::new(self.address);
        Ok(Locker::new(client, &fh, machine, 1))
    }
}
