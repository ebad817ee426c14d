//! A volume with its servers and their clients: [`World`].

use crate::fuse::Fuse;
use crate::model::Model;
use crate::op::{Answer, CLIENTS, Name, Op, PATHS, Seen, Who};
use crate::servers::{SmbServer, serve_nfs, serve_smb};
use crate::volumes::{Ground, Kind};
use crate::{nfs, smb};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use volary::fuse::Locks;
use volary::{Cred, LeaseBits};
use volary_testkit::rng::pattern;

/// How long what is on its way is waited for, in seconds.
static PATIENCE: AtomicU64 = AtomicU64::new(60);

pub(crate) fn patience() -> Duration {
    Duration::from_secs(PATIENCE.load(Ordering::Relaxed))
}

/// For tries of which many fail.
pub(crate) fn be_impatient() {
    PATIENCE.store(3, Ordering::Relaxed);
}

#[expect(
    clippy::disallowed_methods,
    reason = "what is on its way gives no sign"
)]
pub(crate) fn rest(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}

/// Looks again and again until it holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for round in 0..patience().as_millis() {
        if holds() {
            return;
        }
        rest(u64::from(round > 3));
    }
    panic!("in vain waited until {what}");
}

/// Returns the directory of a path, as clients of SMB name it.
pub(crate) fn dir_of(name: Name) -> &'static str {
    PATHS[name].split_once('/').map_or("", |(dir, _)| dir)
}

pub(crate) fn last_of(name: Name) -> &'static str {
    PATHS[name].rsplit('/').next().unwrap_or_default()
}

/// What is dropped first stands first.
pub(crate) struct World {
    pub(crate) smb: Vec<smb::Of>,
    pub(crate) nfs: Vec<nfs::Of>,
    pub(crate) fuse: Fuse,
    smb_server: SmbServer,
    nfs_server: volary::nfs::Server,
    pub(crate) ground: Ground,
}

/// A mistake that is planted: a server that does not use the session which the others share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    Nobody,
    /// The mount has a volume of its own over the same file system.
    Mount,
    /// NFS's server has.
    Nfs,
    /// Locks that are taken through the mount stay in the kernel.
    Locks,
}

impl World {
    pub(crate) fn new(kind: Kind) -> Self {
        Self::with(kind, Apart::Nobody)
    }

    pub(crate) fn with(kind: Kind, apart: Apart) -> Self {
        let ground = Ground::new(kind);
        let volume_of = |server| match apart == server {
            true => ground.another_volume(),
            false => Arc::clone(&ground.volume),
        };
        let locks = match apart {
            Apart::Locks => Locks::Kernel,
            _ => Locks::Session,
        };
        let nfs_server = serve_nfs(&volume_of(Apart::Nfs));
        let smb_server = serve_smb(&ground.volume);
        let (nfs, smb) = (nfs_server.addresses()[0], smb_server.address);
        Self {
            smb: (0..CLIENTS).map(|n| smb::Of::new(smb, n)).collect(),
            nfs: (0..CLIENTS).map(|n| nfs::Of::new(nfs, n)).collect(),
            fuse: Fuse::new(&volume_of(Apart::Mount), locks),
            smb_server,
            nfs_server,
            ground,
        }
    }

    /// Does it; `model` is as it was before.
    pub(crate) fn act(&mut self, op: Op, model: &Model) -> Answer {
        match op {
            Op::Create(who, name) => match who {
                Who::Fuse => self.fuse.create(name),
                Who::Nfs(n) => self.nfs[n].create(name),
                Who::Smb(n) => self.smb[n].create(name),
            },
            Op::Write(who, name, offset, len, seed) => {
                let data = pattern(seed, len);
                match who {
                    Who::Fuse => self.fuse.write(name, offset, &data),
                    Who::Nfs(n) => self.nfs[n].write(name, offset, &data),
                    Who::Smb(n) => self.smb[n].write(name, offset, &data),
                }
            }
            Op::Read(who, name) => match who {
                Who::Fuse => self.fuse.read(name),
                Who::Nfs(n) => self.nfs[n].read(name),
                Who::Smb(n) => self.smb[n].read(name),
            },
            Op::Resize(who, name, size) => match who {
                Who::Fuse => self.fuse.resize(name, size),
                Who::Nfs(n) => self.nfs[n].resize(name, size),
                Who::Smb(n) => self.smb[n].resize(name, size),
            },
            Op::Rename(who, from, to) => match who {
                Who::Fuse => self.fuse.rename(from, to),
                Who::Nfs(n) => self.nfs[n].rename(from, to),
                Who::Smb(n) => self.smb[n].rename(from, to),
            },
            Op::Remove(who, name) => match who {
                Who::Fuse => self.fuse.remove(name),
                Who::Nfs(n) => self.nfs[n].remove(name),
                Who::Smb(n) => self.smb[n].remove(name),
            },
            Op::List(who, name) => match who {
                Who::Fuse => self.fuse.list(name),
                Who::Nfs(n) => self.nfs[n].list(name),
                Who::Smb(n) => self.smb[n].list(name),
            },
            op => self.act_held(op, model),
        }
    }

    fn act_held(&mut self, op: Op, model: &Model) -> Answer {
        let number = |who, n| model.open_of(who, n).expect("an open");
        match op {
            Op::Open(n, name, share) => {
                let file = model.names.get(&name).copied();
                self.smb[n].open(name, share, file, model.next_number())
            }
            Op::Hold(name) => self.fuse.hold(name, model.next_number()),
            Op::Close(who, n) => match who {
                Who::Smb(client) => self.smb[client].close(number(who, n)),
                _ => self.fuse.close(number(who, n)),
            },
            Op::HeldRead(who, n) => match who {
                Who::Smb(client) => self.smb[client].held_read(number(who, n)),
                _ => self.fuse.held_read(number(who, n)),
            },
            Op::HeldWrite(who, n, offset, len, seed) => {
                let data = pattern(seed, len);
                match who {
                    Who::Smb(client) => self.smb[client].held_write(number(who, n), offset, &data),
                    _ => self.fuse.held_write(number(who, n), offset, &data),
                }
            }
            Op::SetDelete(client, n, on) => {
                self.smb[client].set_delete(number(Who::Smb(client), n), on)
            }
            Op::LockHeld(who, n, unit, alone) => match who {
                Who::Smb(client) => self.smb[client].lock(number(who, n), unit, alone),
                _ => self.fuse.lock(number(who, n), alone),
            },
            Op::UnlockHeld(who, n, unit) => match who {
                Who::Smb(client) => self.smb[client].unlock(number(who, n), unit),
                _ => self.fuse.unlock(number(who, n)),
            },
            Op::LockNamed(client, name, unit, alone) => self.nfs[client].lock(name, unit, alone),
            Op::UnlockNamed(client, name, unit) => self.nfs[client].unlock(name, unit),
            _ => unreachable!("done by name"),
        }
    }

    /// Waits until the mount's kernel has heard of what others did to these names.
    pub(crate) fn let_kernel_hear(&self, names: &[Name], model: &Model) {
        for &name in names {
            let gathered = model
                .names
                .get(&name)
                .is_some_and(|file| model.is_gathered(*file));
            let what = format!("the mount shows {} as the volume does", PATHS[name]);
            until(&what, || {
                let (there, seen) = (self.there(name), self.fuse.seen(name));
                match (there, seen) {
                    (Some(there), Some(seen)) if gathered => there.0 == seen.0,
                    (there, seen) => there == seen,
                }
            });
        }
    }

    /// Returns the number of the node and its size, past all servers.
    pub(crate) fn there(&self, name: Name) -> Option<(u64, u64)> {
        let root = self.ground.volume.session(Cred::root());
        let path = format!("/{}", PATHS[name]);
        let found = root.walk(path.as_bytes(), volary::Follow::No).ok()?;
        Some((found.node.ino.get(), found.attr.size))
    }

    /// Waits until all that a step sets off is done, and compares what is kept.
    pub(crate) fn settle(&self, model: &Model) {
        let volume = &self.ground.volume;
        let session = volume.session(Cred::root());
        for (&name, &file) in &model.names {
            let opens = model.count_of(file);
            until(&format!("{} has {opens} opens", PATHS[name]), || {
                let path = format!("/{}", PATHS[name]);
                let node = session.walk(path.as_bytes(), volary::Follow::No);
                node.is_ok_and(|entry| session.open_count_of(entry.node) == opens)
            });
        }
        for (&(client, file), bits) in &model.leases {
            let key = smb::key(client, file);
            let whose = self.smb_server.lease_key(smb::guid(client), key);
            until(
                "the server and the client have given up what they should",
                || {
                    let state = session.lease_state(whose).expect("a lease");
                    let known = self.smb[client].bits(&key);
                    state.granted == LeaseBits(*bits) && !state.breaking && known == *bits
                },
            );
        }
        assert_eq!(volume.lease_count(), model.leases.len(), "leases");
    }

    /// Calls that panicked.
    pub(crate) fn check_servers(&self) {
        assert_eq!(
            self.nfs_server.programs().defects(),
            0,
            "NFS calls panicked"
        );
        assert!(self.smb_server.runs());
    }

    /// Returns what the session itself reads.
    pub(crate) fn truth(&self, name: Name) -> Option<Vec<u8>> {
        let (_, size) = self.there(name)?;
        let root = self.ground.volume.session(Cred::root());
        let path = format!("/{}", PATHS[name]);
        let node = root.walk(path.as_bytes(), volary::Follow::No).ok()?.node;
        let open = root.open(node, volary::Mode::Read).ok()?;
        let mut data = vec![0; size as usize];
        let len = root.read(open, 0, &mut data).expect("readable");
        data.truncate(len);
        root.close(open).expect("closed");
        Some(data)
    }

    /// Returns what every client sees of every name and listing.
    pub(crate) fn everything(&mut self, model: &Model) -> Vec<(Op, Answer)> {
        let mut all = Vec::new();
        let mut whos = vec![Who::Fuse];
        whos.extend((0..CLIENTS).flat_map(|n| [Who::Nfs(n), Who::Smb(n)]));
        for who in whos {
            for name in 0..PATHS.len() {
                for op in [Op::Read(who, name), Op::List(who, name)] {
                    if who == Who::Fuse {
                        self.let_kernel_hear(&[name], model);
                    }
                    all.push((op, self.act(op, model)));
                }
            }
        }
        all
    }
}

/// Returns whether an answer of a mount may still be on its way: of what it keeps.
pub(crate) fn may_lag(op: Op) -> bool {
    matches!(
        op,
        Op::Read(Who::Fuse, _) | Op::List(Who::Fuse, _) | Op::HeldRead(Who::Fuse, _)
    )
}

/// Returns what `op` is about by name.
pub(crate) fn names_of(op: Op) -> Vec<Name> {
    match op {
        Op::Create(_, name)
        | Op::Write(_, name, ..)
        | Op::Read(_, name)
        | Op::Resize(_, name, _)
        | Op::Remove(_, name)
        | Op::List(_, name)
        | Op::Hold(name) => vec![name],
        Op::Rename(_, from, to) => vec![from, to],
        _ => Vec::new(),
    }
}

/// Returns whether the mount does it.
pub(crate) fn is_fuse(op: Op) -> bool {
    who_of(op) == Who::Fuse
}

/// Returns the client that does it.
pub(crate) fn who_of(op: Op) -> Who {
    match op {
        Op::Create(who, _)
        | Op::Write(who, ..)
        | Op::Read(who, _)
        | Op::Resize(who, ..)
        | Op::Rename(who, ..)
        | Op::Remove(who, _)
        | Op::List(who, _)
        | Op::Close(who, _)
        | Op::HeldRead(who, _)
        | Op::HeldWrite(who, ..)
        | Op::LockHeld(who, ..)
        | Op::UnlockHeld(who, ..) => who,
        Op::Hold(_) => Who::Fuse,
        Op::Open(client, ..) | Op::SetDelete(client, ..) => Who::Smb(client),
        Op::LockNamed(client, ..) | Op::UnlockNamed(client, ..) => Who::Nfs(client),
    }
}

/// Returns whether both are the same for this client.
pub(crate) fn agree(op: Op, answer: &Answer, expected: &Answer) -> bool {
    let expected = expected.clone().map_err(|no| no.as_seen_by(who_of(op)));
    match (answer, &expected) {
        (Ok(Seen::Nothing), Ok(_)) => !matches!(expected, Ok(Seen::Data(_) | Seen::Names(_))),
        (answer, expected) => answer == expected,
    }
}
