//! One client: it makes files, flushes them, reads them back and removes them, in a
//! directory of its own, and remembers what it was promised.

use crate::server::{PASSWORD, Server};
use crate::{Signals, rest};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use volary_testkit::nfs::client as nfs;
use volary_testkit::rng::{Rng, pattern};
use volary_testkit::smb;

/// What fails because a server was killed is nothing to tell of.
pub(crate) fn be_quiet() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current();
        if !thread.name().is_some_and(|name| name.starts_with("client")) {
            tell(info);
        }
    }));
}

/// How long a server may take to answer: it syncs to a disk that others use, too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Files that a client has at a time.
const FILES: usize = 20;
const LEN_MAX: u64 = 100_000;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Nfs,
    Smb,
    Fuse,
}

/// A file that was flushed: its number, and the length of what it holds.
type Kept = (u64, usize);

pub(crate) struct Client {
    number: usize,
    kind: Kind,
    server: Arc<Server>,
    kept: VecDeque<Kept>,
    files: u64,
    rng: Rng,
}

/// A connection to the server of now.
enum Way {
    Nfs(nfs::Client, nfs::Fh),
    Smb(smb::Client, String),
    Fuse(std::path::PathBuf),
}

impl Client {
    pub(crate) fn new(number: usize, kind: Kind, server: Arc<Server>) -> Self {
        Self {
            number,
            kind,
            server,
            kept: VecDeque::new(),
            files: 0,
            rng: Rng::new(number as u64),
        }
    }

    /// Goes on until the end; after each restart of the servers it looks at all that
    /// it was promised.
    pub(crate) fn run(mut self, signals: &Signals) {
        while !signals.end.load(Ordering::SeqCst) {
            let restarts = self.server.restarts();
            let session = catch_unwind(AssertUnwindSafe(|| self.session(signals)));
            if let Err(panic) = session {
                // What fails on servers that are there is a failure.
                while self.server.is_down() {
                    rest(Duration::from_millis(20));
                }
                if self.server.restarts() == restarts {
                    let words = panic.downcast_ref::<String>().cloned();
                    eprintln!(
                        "{:?} {}: {}",
                        self.kind,
                        self.number,
                        words.unwrap_or_default()
                    );
                    std::panic::resume_unwind(panic);
                }
            }
        }
        let way = self.connect();
        self.check(way);
    }

    fn session(&mut self, signals: &Signals) {
        let way = self.connect();
        let mut way = self.check(way);
        let restarts = self.server.restarts();
        while !signals.end.load(Ordering::SeqCst) && self.server.restarts() == restarts {
            if signals.pause.load(Ordering::SeqCst) {
                signals.still.fetch_add(1, Ordering::SeqCst);
                while signals.pause.load(Ordering::SeqCst) {
                    rest(Duration::from_millis(20));
                }
                signals.still.fetch_sub(1, Ordering::SeqCst);
            }
            self.step(&mut way);
            signals.done.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn connect(&self) -> Way {
        let (nfs_at, smb_at) = self.server.addresses();
        let dir = format!("c{}", self.number);
        match self.kind {
            Kind::Nfs => {
                let mut client = nfs::Client::new(nfs_at);
                let stream = &client.wire.stream;
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let root = client.mnt(&format!("/{}", self.server.export())).unwrap();
                let dir = dir.as_bytes();
                let found = client
                    .lookup(&root, dir)
                    .or_else(|_| client.mkdir(&root, dir, &nfs::Set::mode(0o755)));
                Way::Nfs(client, found.unwrap().0)
            }
            Kind::Smb => {
                let guid = [self.number as u8 + 1; 16];
                let share = self.server.export();
                let (client, _) =
                    smb::Client::connect(smb_at, "tester", PASSWORD, share, guid).unwrap();
                match client.make_dir(&dir) {
                    Ok(()) | Err(smb::Fail::Status(smb::status::OBJECT_NAME_COLLISION)) => {}
                    Err(e) => panic!("{e:?}"),
                }
                Way::Smb(client, dir)
            }
            Kind::Fuse => {
                let dir = self.server.mount().join(dir);
                match fs::create_dir(&dir) {
                    Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                    made => made.unwrap(),
                }
                Way::Fuse(dir)
            }
        }
    }

    fn content(&self, (number, len): Kept) -> Vec<u8> {
        pattern(number ^ ((self.number as u64) << 40), len)
    }

    /// All that is kept is there; gives the connection back.
    fn check(&mut self, mut way: Way) -> Way {
        for index in 0..self.kept.len() {
            self.read(&mut way, self.kept[index]);
        }
        way
    }

    fn read(&self, way: &mut Way, kept: Kept) {
        let data = way.read(kept.0, kept.1);
        let same = data == self.content(kept);
        assert!(
            same,
            "{:?} {}: file {} is not what was flushed",
            self.kind, self.number, kept.0
        );
    }

    fn step(&mut self, way: &mut Way) {
        if self.kept.len() >= FILES
            && let Some((number, _)) = self.kept.pop_front()
        {
            way.remove(number);
        }
        self.files += 1;
        let kept = (self.files, self.rng.below(LEN_MAX) as usize);
        way.write(kept.0, &self.content(kept));
        self.kept.push_back(kept);
        let some = self.kept[self.rng.index(self.kept.len())];
        self.read(way, some);
    }
}

impl Way {
    /// Makes a file; it is durable when this returns.
    fn write(&mut self, number: u64, data: &[u8]) {
        let name = format!("f{number}");
        match self {
            Self::Nfs(client, dir) => {
                let how = nfs::How::Guarded(nfs::Set::mode(0o644));
                let (fh, _) = client.create(dir, name.as_bytes(), how).unwrap();
                for (index, chunk) in data.chunks(32 << 10).enumerate() {
                    let at = (index * (32 << 10)) as u64;
                    client.write(&fh, at, chunk, 0).unwrap();
                }
                client.commit(&fh).unwrap();
            }
            Self::Smb(client, dir) => {
                let how = smb::How {
                    disposition: smb::disposition::CREATE,
                    ..smb::How::open(smb::access::WRITE)
                };
                let open = client.open(&format!("{dir}\\{name}"), &how).unwrap().open;
                client.write(open, 0, data).unwrap();
                client.flush(open).unwrap();
                client.close(open).unwrap();
            }
            Self::Fuse(dir) => {
                let mut file = File::create_new(dir.join(name)).unwrap();
                file.write_all(data).unwrap();
                file.sync_all().unwrap();
                // The entry, too.
                File::open(dir).unwrap().sync_all().unwrap();
            }
        }
    }

    fn read(&mut self, number: u64, len: usize) -> Vec<u8> {
        let name = format!("f{number}");
        match self {
            Self::Nfs(client, dir) => {
                let (fh, _) = client.lookup(dir, name.as_bytes()).unwrap();
                let mut all = Vec::new();
                while all.len() <= len {
                    let (data, eof) = client.read(&fh, all.len() as u64, 64 << 10).unwrap();
                    all.extend(data);
                    if eof {
                        break;
                    }
                }
                all
            }
            Self::Smb(client, dir) => {
                let how = smb::How::open(smb::access::READ);
                let open = client.open(&format!("{dir}\\{name}"), &how).unwrap().open;
                let data = client.read(open, 0, len + 1).unwrap();
                client.close(open).unwrap();
                data
            }
            Self::Fuse(dir) => {
                let mut data = Vec::new();
                let mut file = File::open(dir.join(name)).unwrap();
                file.read_to_end(&mut data).unwrap();
                data
            }
        }
    }

    fn remove(&mut self, number: u64) {
        let name = format!("f{number}");
        match self {
            Self::Nfs(client, dir) => drop(client.remove(dir, name.as_bytes()).unwrap()),
            Self::Smb(client, dir) => {
                let how = smb::How::open(smb::access::DELETE);
                let open = client.open(&format!("{dir}\\{name}"), &how).unwrap().open;
                client.set_delete(open, true).unwrap();
                client.close(open).unwrap();
            }
            Self::Fuse(dir) => fs::remove_file(dir.join(name)).unwrap(),
        }
    }
}
