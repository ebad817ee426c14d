//! An NFS client with one connection that makes one call at a time.

use super::wire::{Args, Caller, Reply, Wire};
use std::net::SocketAddr;

pub const NFS: u32 = 100_003;
pub const MOUNT: u32 = 100_005;
/// The export that tests use.
pub const NAME: &str = "test";

/// A file handle.
pub type Fh = Vec<u8>;

/// The result of a procedure. The error is a status other than 0.
pub type Nfs<T> = Result<T, u32>;

/// `fattr3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fattr {
    pub kind: u32,
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub used: u64,
    pub rdev: u64,
    pub fsid: u64,
    pub fileid: u64,
    pub atime: (u32, u32),
    pub mtime: (u32, u32),
    pub ctime: (u32, u32),
}

/// The attributes in `wcc_data` before the change: size, mtime, ctime.
pub type Before = (u64, (u32, u32), (u32, u32));

/// `wcc_data`.
pub type Wcc = (Option<Before>, Option<Fattr>);

/// `sattr3`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Set {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    /// `None` leaves the time as it is; `Some(None)` sets the server's time.
    pub atime: Option<Option<(u32, u32)>>,
    pub mtime: Option<Option<(u32, u32)>>,
}

impl Set {
    pub fn mode(mode: u32) -> Self {
        Self {
            mode: Some(mode),
            ..Self::default()
        }
    }
    pub fn size(size: u64) -> Self {
        Self {
            size: Some(size),
            ..Self::default()
        }
    }
    fn write(&self, args: Args) -> Args {
        let args = args.maybe(self.mode).maybe(self.uid).maybe(self.gid);
        let args = match self.size {
            Some(size) => args.u32(1).u64(size),
            None => args.u32(0),
        };
        [self.atime, self.mtime]
            .into_iter()
            .fold(args, |args, time| match time {
                None => args.u32(0),
                Some(None) => args.u32(1),
                Some(Some((secs, nanos))) => args.u32(2).u32(secs).u32(nanos),
            })
    }
}

/// The mode of a CREATE (`createhow3`).
#[derive(Clone, Copy, Debug)]
pub enum How {
    Unchecked(Set),
    Guarded(Set),
    Exclusive([u8; 8]),
}

/// One entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub fileid: u64,
    pub name: Vec<u8>,
    pub cookie: u64,
    pub attr: Option<Fattr>,
    pub fh: Option<Fh>,
}

/// A part of a listing.
#[derive(Clone, Debug)]
pub struct Page {
    pub verifier: u64,
    pub entries: Vec<Listed>,
    pub eof: bool,
    pub len: usize,
}

pub struct Client {
    pub wire: Wire,
    pub who: Caller,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self {
            wire: Wire::new(address),
            who: Caller::Sys(0, 0, Vec::new()),
        }
    }

    pub fn of_user(mut self, uid: u32, gid: u32) -> Self {
        self.who = Caller::Sys(uid, gid, Vec::new());
        self
    }

    pub fn nfs(&mut self, procedure: u32, args: &Args) -> Reply {
        self.wire.call((NFS, 3, procedure), &self.who, args)
    }

    pub fn mnt(&mut self, path: &str) -> Nfs<Fh> {
        let args = Args::new().opaque(path.as_bytes());
        let mut reply = self.wire.call((MOUNT, 3, 1), &self.who, &args);
        match reply.u32() {
            0 => {}
            status => return Err(status),
        }
        let fh = reply.opaque();
        let flavors: Vec<u32> = (0..reply.u32()).map(|_| reply.u32()).collect();
        assert!(flavors.contains(&1));
        reply.end();
        Ok(fh)
    }

    pub fn root(&mut self) -> Fh {
        self.mnt(&format!("/{NAME}")).unwrap()
    }

    pub fn getattr(&mut self, fh: &[u8]) -> Nfs<Fattr> {
        let mut reply = self.nfs(1, &Args::new().opaque(fh));
        let status = reply.u32();
        let attr = (status == 0).then(|| fattr(&mut reply));
        reply.end();
        attr.ok_or(status)
    }

    pub fn setattr(&mut self, fh: &[u8], set: &Set, guard: Option<(u32, u32)>) -> Nfs<Wcc> {
        let args = set.write(Args::new().opaque(fh));
        let args = match guard {
            Some((secs, nanos)) => args.u32(1).u32(secs).u32(nanos),
            None => args.u32(0),
        };
        self.changed(2, &args)
    }

    /// Makes a call whose reply is a status and `wcc_data`, and returns the latter.
    fn changed(&mut self, procedure: u32, args: &Args) -> Nfs<Wcc> {
        let mut reply = self.nfs(procedure, args);
        let status = reply.u32();
        let wcc = wcc(&mut reply);
        reply.end();
        if status == 0 { Ok(wcc) } else { Err(status) }
    }

    pub fn lookup(&mut self, dir: &[u8], name: &[u8]) -> Nfs<(Fh, Fattr)> {
        let mut reply = self.nfs(3, &Args::new().opaque(dir).opaque(name));
        let status = reply.u32();
        let found = (status == 0).then(|| (reply.opaque(), post(&mut reply).unwrap()));
        post(&mut reply);
        reply.end();
        found.ok_or(status)
    }

    pub fn access(&mut self, fh: &[u8], want: u32) -> Nfs<u32> {
        let mut reply = self.nfs(4, &Args::new().opaque(fh).u32(want));
        let status = reply.u32();
        post(&mut reply);
        let granted = (status == 0).then(|| reply.u32());
        reply.end();
        granted.ok_or(status)
    }

    pub fn readlink(&mut self, fh: &[u8]) -> Nfs<Vec<u8>> {
        let mut reply = self.nfs(5, &Args::new().opaque(fh));
        let status = reply.u32();
        post(&mut reply);
        let target = (status == 0).then(|| reply.opaque());
        reply.end();
        target.ok_or(status)
    }

    /// Returns the bytes, and whether the file ends after them.
    pub fn read(&mut self, fh: &[u8], offset: u64, len: u32) -> Nfs<(Vec<u8>, bool)> {
        let mut reply = self.nfs(6, &Args::new().opaque(fh).u64(offset).u32(len));
        let status = reply.u32();
        let attr = post(&mut reply);
        if status != 0 {
            reply.end();
            return Err(status);
        }
        assert!(attr.is_some());
        let (count, eof) = (reply.u32(), reply.bool());
        let data = reply.opaque();
        assert_eq!(data.len(), count as usize);
        reply.end();
        Ok((data, eof))
    }

    /// Returns the `stable_how` that was achieved, the write verifier and the `wcc_data`.
    pub fn write(
        &mut self,
        fh: &[u8],
        offset: u64,
        data: &[u8],
        stable: u32,
    ) -> Nfs<(u32, u64, Wcc)> {
        let args = Args::new().opaque(fh).u64(offset);
        let args = args.u32(data.len() as u32).u32(stable).opaque(data);
        let mut reply = self.nfs(7, &args);
        let status = reply.u32();
        let wcc = wcc(&mut reply);
        let done = (status == 0).then(|| {
            assert_eq!(reply.u32() as usize, data.len());
            let committed = reply.u32();
            assert!(committed >= stable);
            (committed, reply.u64(), wcc)
        });
        reply.end();
        done.ok_or(status)
    }

    pub fn commit(&mut self, fh: &[u8]) -> Nfs<u64> {
        let mut reply = self.nfs(21, &Args::new().opaque(fh).u64(0).u32(0));
        let status = reply.u32();
        wcc(&mut reply);
        let verifier = (status == 0).then(|| reply.u64());
        reply.end();
        verifier.ok_or(status)
    }

    pub fn create(&mut self, dir: &[u8], name: &[u8], how: How) -> Nfs<(Fh, Fattr)> {
        let args = Args::new().opaque(dir).opaque(name);
        let args = match how {
            How::Unchecked(set) => set.write(args.u32(0)),
            How::Guarded(set) => set.write(args.u32(1)),
            How::Exclusive(verifier) => args.u32(2).raw(&verifier),
        };
        self.made(8, &args)
    }

    pub fn mkdir(&mut self, dir: &[u8], name: &[u8], set: &Set) -> Nfs<(Fh, Fattr)> {
        self.made(9, &set.write(Args::new().opaque(dir).opaque(name)))
    }

    pub fn symlink(&mut self, dir: &[u8], name: &[u8], target: &[u8]) -> Nfs<(Fh, Fattr)> {
        let args = Set::mode(0o777).write(Args::new().opaque(dir).opaque(name));
        self.made(10, &args.opaque(target))
    }

    pub fn mknod(
        &mut self,
        dir: &[u8],
        name: &[u8],
        kind: u32,
        set: &Set,
        rdev: u64,
    ) -> Nfs<(Fh, Fattr)> {
        let args = Args::new().opaque(dir).opaque(name).u32(kind);
        let args = match kind {
            3 | 4 => set.write(args).u64(rdev),
            6 | 7 => set.write(args),
            _ => args,
        };
        self.made(11, &args)
    }

    fn made(&mut self, procedure: u32, args: &Args) -> Nfs<(Fh, Fattr)> {
        let mut reply = self.nfs(procedure, args);
        let status = reply.u32();
        let made = (status == 0).then(|| {
            assert!(reply.bool(), "a handle");
            (reply.opaque(), post(&mut reply).unwrap())
        });
        wcc(&mut reply);
        reply.end();
        made.ok_or(status)
    }

    pub fn remove(&mut self, dir: &[u8], name: &[u8]) -> Nfs<Wcc> {
        self.changed(12, &Args::new().opaque(dir).opaque(name))
    }

    pub fn rmdir(&mut self, dir: &[u8], name: &[u8]) -> Nfs<Wcc> {
        self.changed(13, &Args::new().opaque(dir).opaque(name))
    }

    pub fn rename(
        &mut self,
        (from, name): (&[u8], &[u8]),
        (to, new_name): (&[u8], &[u8]),
    ) -> Nfs<(Wcc, Wcc)> {
        let args = Args::new().opaque(from).opaque(name);
        let mut reply = self.nfs(14, &args.opaque(to).opaque(new_name));
        let status = reply.u32();
        let wccs = (wcc(&mut reply), wcc(&mut reply));
        reply.end();
        if status == 0 { Ok(wccs) } else { Err(status) }
    }

    pub fn link(&mut self, fh: &[u8], dir: &[u8], name: &[u8]) -> Nfs<Fattr> {
        let args = Args::new().opaque(fh).opaque(dir).opaque(name);
        let mut reply = self.nfs(15, &args);
        let status = reply.u32();
        let attr = post(&mut reply);
        wcc(&mut reply);
        reply.end();
        if status == 0 {
            Ok(attr.unwrap())
        } else {
            Err(status)
        }
    }

    pub fn readdir(&mut self, dir: &[u8], from: (u64, u64), max: u32) -> Nfs<Page> {
        let args = Args::new().opaque(dir).u64(from.0).u64(from.1).u32(max);
        let reply = self.nfs(16, &args);
        page(reply, false)
    }

    pub fn readdirplus(
        &mut self,
        dir: &[u8],
        from: (u64, u64),
        (names_max, max): (u32, u32),
    ) -> Nfs<Page> {
        let args = Args::new().opaque(dir).u64(from.0).u64(from.1);
        let reply = self.nfs(17, &args.u32(names_max).u32(max));
        page(reply, true)
    }

    /// Returns all entries, in pages of `max` bytes.
    pub fn list(&mut self, dir: &[u8], max: u32) -> Nfs<Vec<Listed>> {
        let (mut all, mut from) = (Vec::new(), (0, 0));
        loop {
            let page = self.readdir(dir, from, max)?;
            let last = page.entries.last().map(|e| e.cookie);
            all.extend(page.entries);
            if page.eof {
                return Ok(all);
            }
            from = (last.expect("an entry or the end"), page.verifier);
        }
    }
}

fn page(mut reply: Reply, plus: bool) -> Nfs<Page> {
    let len = reply.left();
    let status = reply.u32();
    post(&mut reply);
    if status != 0 {
        reply.end();
        return Err(status);
    }
    let verifier = reply.u64();
    let mut entries = Vec::new();
    while reply.bool() {
        entries.push(Listed {
            fileid: reply.u64(),
            name: reply.opaque(),
            cookie: reply.u64(),
            attr: if plus { post(&mut reply) } else { None },
            fh: (plus && reply.bool()).then(|| reply.opaque()),
        });
    }
    let eof = reply.bool();
    reply.end();
    Ok(Page {
        verifier,
        entries,
        eof,
        len,
    })
}

fn time(reply: &mut Reply) -> (u32, u32) {
    (reply.u32(), reply.u32())
}

pub fn fattr(reply: &mut Reply) -> Fattr {
    Fattr {
        kind: reply.u32(),
        mode: reply.u32(),
        nlink: reply.u32(),
        uid: reply.u32(),
        gid: reply.u32(),
        size: reply.u64(),
        used: reply.u64(),
        rdev: reply.u64(),
        fsid: reply.u64(),
        fileid: reply.u64(),
        atime: time(reply),
        mtime: time(reply),
        ctime: time(reply),
    }
}

pub fn post(reply: &mut Reply) -> Option<Fattr> {
    reply.bool().then(|| fattr(reply))
}

pub fn wcc(reply: &mut Reply) -> Wcc {
    let before = reply
        .bool()
        .then(|| (reply.u64(), time(reply), time(reply)));
    (before, post(reply))
}
