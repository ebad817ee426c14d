//! The NFS client, served by our own server, whose replies are changed on the way.
//!
//! An input says which bytes of which reply are others. The head of a reply, by
//! which the client knows what it answers, is left alone: what that does is tested
//! elsewhere, and takes time. So is the status that asks to try again later.

use crate::heap;
use crate::input::Input;
use crate::nfs::programs;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use volary_core::{
    Cancel, Cookie, Create, Cred, Ctx, DirBuf, Fs, Mode, Name, NodeId, OpenId, RenameFlags, Result,
    SetAttr, Time,
};
use volary_nfs::{Output, Owner, Programs, Way};
use volary_nfs_client::{Location, NfsOptions};

/// How much memory a whole input may take.
const MEMORY: usize = 64 << 20;
/// The head of a reply that was accepted.
const HEAD: usize = 24;
/// `NFS3ERR_JUKEBOX`: try again later.
const LATER: [u8; 4] = 10_008_u32.to_be_bytes();
/// `NFS3ERR_IO`.
const FAILED: [u8; 4] = 5_u32.to_be_bytes();

/// Other bytes of replies, by the number of the reply: place and value.
type Edits = HashMap<u8, Vec<(u16, u8)>>;

struct Served {
    programs: Arc<Programs>,
    edits: Edits,
    replies: u8,
}

static NOW: Mutex<Option<Served>> = Mutex::new(None);
static NEVER: Cancel = Cancel::new();

/// Replies by a hostile server.
pub fn replies(input: &[u8]) {
    let address = address();
    heap::limit(MEMORY);
    let (_, programs) = programs();
    *NOW.lock().unwrap_or_else(PoisonError::into_inner) = Some(Served {
        programs: Arc::clone(&programs),
        edits: edits(&mut Input::new(input)),
        replies: 0,
    });
    let options = NfsOptions {
        timeout: Duration::from_secs(2),
        memory: 1 << 20,
        connections: 1,
        reserved: false,
        ..NfsOptions::default()
    };
    let location = Location::parse(format!("{address}/test").as_bytes());
    let fs = location.and_then(|at| volary_nfs_client::attach(&at, &options));
    if let Ok(fs) = fs {
        // What it answers is not judged: that it answers is.
        let _ = Work(fs).all();
    }
    programs.end();
    heap::limit(usize::MAX);
}

fn edits(input: &mut Input<'_>) -> Edits {
    let mut edits = Edits::new();
    while !input.is_empty() {
        let (reply, place, value) = (input.byte() % 96, input.short() % 1024, input.byte());
        edits.entry(reply).or_default().push((place, value));
    }
    edits
}

/// Returns where the server listens: one for all inputs.
fn address() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("{e}"));
        let address = listener.local_addr().unwrap_or_else(|e| panic!("{e}"));
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                std::thread::spawn(move || answer_all(socket));
            }
        });
        address
    })
}

fn answer_all(mut socket: TcpStream) {
    let mut head = [0; 4];
    while socket.read_exact(&mut head).is_ok() {
        let len = u32::from_be_bytes(head) & 0x7fff_ffff;
        let mut record = vec![0; usize::try_from(len).unwrap_or(0)];
        if socket.read_exact(&mut record).is_err() {
            return;
        }
        let reply = answer(&record);
        let len = u32::try_from(reply.len()).unwrap_or(0) | 1 << 31;
        let sent = socket.write_all(&[&len.to_be_bytes(), &*reply].concat());
        if sent.is_err() {
            return;
        }
    }
}

fn answer(record: &[u8]) -> Vec<u8> {
    let mut now = NOW.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(served) = now.as_mut() else {
        return Vec::new();
    };
    let here = SocketAddr::from(([127, 0, 0, 1], 1000));
    let way = Way {
        peer: here,
        local: here,
        only_portmap: false,
        owner: Arc::new(Owner::Trusted),
    };
    let mut out = Output::new();
    served.programs.answer(&way, record, &mut out);
    let mut reply = out.bytes().to_vec();
    for &(place, value) in served.edits.get(&served.replies).into_iter().flatten() {
        if let Some(byte) = reply.get_mut(HEAD + usize::from(place)) {
            *byte = value;
        }
    }
    served.replies = served.replies.saturating_add(1);
    if let Some(status) = reply.get_mut(HEAD..HEAD + 4)
        && status == LATER
    {
        status.copy_from_slice(&FAILED);
    }
    reply
}

/// Some of everything.
struct Work(Fs);

impl Work {
    fn cx<'a>(&self, cred: &'a Cred) -> Ctx<'a> {
        Ctx {
            cred,
            now: Time::EPOCH,
            cancel: &NEVER,
        }
    }

    fn all(&self) -> Result<()> {
        let cred = Cred::root();
        let (cx, root, set) = (self.cx(&cred), self.0.root(), SetAttr::mode(0o644));
        let (a, b) = (Name::new(b"a")?, Name::new(b"b")?);
        let made = self.0.create(&cx, root, a, Create::Open, &set);
        if let Ok((entry, open)) = made {
            self.file(&cx, entry.node, open);
        }
        // One after the other, whatever the others answered.
        let dir = self.0.mkdir(&cx, root, b, &set).map(|e| e.node);
        let dir = dir.unwrap_or(root);
        let _ = self.0.symlink(&cx, dir, a, b"target", &set);
        if let Ok(found) = self.0.lookup(&cx, dir, a) {
            let _ = self.0.readlink(&cx, found.node);
            let _ = self.0.access(&cx, found.node, volary_core::Access::READ);
            let _ = self.0.link(&cx, found.node, root, Name::new(b"c")?);
        }
        let _ = self.0.parent(&cx, dir);
        let _ = self.0.statfs(&cx);
        self.list(&cx, root);
        self.list(&cx, dir);
        let kept = self.0.open(&cx, root, Mode::Read);
        let _ = self.0.rename(&cx, root, a, dir, b, RenameFlags::KEEP);
        let _ = self.0.rename(&cx, dir, b, dir, a, RenameFlags::REPLACE);
        let _ = self.0.unlink(&cx, dir, a);
        let _ = self.0.rmdir(&cx, root, b);
        let _ = kept.map(|open| self.0.close(&cx, open));
        self.0.detach(&cx)
    }

    fn file(&self, cx: &Ctx<'_>, node: NodeId, open: OpenId) {
        let mut room = [0; 3000];
        let _ = self.0.write(cx, open, Some(0), &[1; 2000]);
        let _ = self.0.getattr(cx, node);
        let _ = self.0.write(cx, open, None, &[2; 1000]);
        let _ = self.0.fsync(cx, open, true);
        let _ = self.0.read(cx, open, 0, &mut room);
        let _ = self.0.read(cx, open, 2500, &mut room);
        let _ = self.0.setattr(cx, node, &SetAttr::size(100));
        let _ = self.0.close(cx, open);
    }

    fn list(&self, cx: &Ctx<'_>, dir: NodeId) {
        /// More than there are.
        const PAGES: usize = 20;
        let Ok(open) = self.0.open(cx, dir, Mode::Read) else {
            return;
        };
        let mut from = Cookie::START;
        for _ in 0..PAGES {
            let mut out = DirBuf::new(2, 1000, true);
            match self.0.readdir(cx, open, from, &mut out) {
                Ok(false) => from = out.last_cookie().unwrap_or(from),
                Ok(true) | Err(_) => break,
            }
        }
        let _ = self.0.close(cx, open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_that_nobody_changed_are_good() {
        let address = address();
        let (_, programs) = programs();
        let served = Served {
            programs,
            edits: Edits::new(),
            replies: 0,
        };
        *NOW.lock().unwrap() = Some(served);
        let at = Location::parse(format!("{address}/test").as_bytes()).unwrap();
        let options = NfsOptions {
            reserved: false,
            ..NfsOptions::default()
        };
        let fs = volary_nfs_client::attach(&at, &options).unwrap();
        Work(fs).all().unwrap();
        let replies = NOW.lock().unwrap().as_ref().unwrap().replies;
        assert!(replies > 30, "{replies} replies");
    }
}
