//! A server that says what it is told to.

use parking_lot::Mutex;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use volary_rpc::{Input, Output};

/// One call: which procedure of which program, and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// How often this procedure was asked for before.
    pub(crate) nth: usize,
    pub(crate) xid: u32,
    /// Where it came from.
    pub(crate) peer: SocketAddr,
    pub(crate) program: u32,
    pub(crate) procedure: u32,
    pub(crate) args: Vec<u8>,
}

/// What is sent back.
pub(crate) enum Say {
    /// Results of the call.
    Results(Vec<u8>),
    /// These bytes, as they are.
    Bytes(Vec<u8>),
    Nothing,
    /// The connection ends.
    End,
}

type Script = dyn Fn(&Asked) -> Option<Say> + Send + Sync;

pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
    is_ended: Arc<AtomicBool>,
}

pub(crate) const NFS: u32 = 100_003;
pub(crate) const ROOT: &[u8] = b"root";
pub(crate) const FILE: &[u8] = b"file";

impl Fake {
    /// Returns what `script` leaves alone is answered as an honest server with one file of
    /// 100 bytes in its root would.
    pub(crate) fn start(script: impl Fn(&Asked) -> Option<Say> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let is_ended = Arc::new(AtomicBool::new(false));
        let (script, all, ended): (Arc<Script>, _, _) =
            (Arc::new(script), Arc::clone(&asked), Arc::clone(&is_ended));
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (script, all) = (Arc::clone(&script), Arc::clone(&all));
                std::thread::spawn(move || answer_all(socket, &*script, &all));
            }
        });
        Self {
            address,
            asked,
            is_ended,
        }
    }

    /// Returns how often a procedure of NFS was asked for.
    pub(crate) fn count(&self, procedure: u32) -> usize {
        let asked = self.asked.lock();
        let of = |a: &&Asked| a.program == NFS && a.procedure == procedure;
        asked.iter().filter(of).count()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::SeqCst);
        // Wakes who listens.
        let _ = TcpStream::connect(self.address);
    }
}

fn answer_all(mut socket: TcpStream, script: &Script, all: &Mutex<Vec<Asked>>) {
    let peer = socket.peer_addr().expect("an address");
    let mut head = [0; 4];
    while socket.read_exact(&mut head).is_ok() {
        let mut record = vec![0; (u32::from_be_bytes(head) & 0x7fff_ffff) as usize];
        if socket.read_exact(&mut record).is_err() {
            return;
        }
        let mut input = Input::new(&record);
        let head: [u32; 6] = std::array::from_fn(|_| input.u32().expect("the head of a call"));
        let [xid, _, _, program, _, procedure] = head;
        for _ in 0..2 {
            input.u32().expect("a flavor");
            input.opaque(400).expect("credentials");
        }
        let of = |a: &&Asked| (a.program, a.procedure) == (program, procedure);
        let asked = Asked {
            nth: all.lock().iter().filter(of).count(),
            xid,
            peer,
            program,
            procedure,
            args: input.rest().to_vec(),
        };
        all.lock().push(asked.clone());
        let said = script(&asked).unwrap_or_else(|| Say::Results(honest(&asked)));
        let bytes = match said {
            Say::Results(results) => reply(xid, &results),
            Say::Bytes(bytes) => bytes,
            Say::Nothing => continue,
            Say::End => return,
        };
        if socket.write_all(&bytes).is_err() {
            return;
        }
    }
}

/// Returns a whole record that answers a call.
pub(crate) fn reply(xid: u32, results: &[u8]) -> Vec<u8> {
    let len = 24 + results.len() as u32;
    let head = [len | 1 << 31, xid, 1, 0, 0, 0, 0];
    let mut bytes: Vec<u8> = head.iter().flat_map(|n| n.to_be_bytes()).collect();
    bytes.extend_from_slice(results);
    bytes
}

pub(crate) fn results(write: impl FnOnce(&mut Output)) -> Vec<u8> {
    let mut out = Output::new();
    write(&mut out);
    out.bytes().to_vec()
}

/// `fattr3` of the root, or of the file.
pub(crate) fn attr(out: &mut Output, is_dir: bool) {
    for n in [if is_dir { 2 } else { 1 }, 0o755, 1, 0, 0] {
        out.u32(n);
    }
    for n in [100, 100, 0, 1, if is_dir { 1 } else { 2 }] {
        out.u64(n);
    }
    (0..6).for_each(|_| out.u32(1));
}

/// `wcc_data` without anything.
pub(crate) fn no_wcc(out: &mut Output) {
    out.bool(false);
    out.bool(false);
}

fn honest(asked: &Asked) -> Vec<u8> {
    let is_root = Input::new(&asked.args).opaque(64) == Ok(ROOT);
    results(|out| match (asked.program, asked.procedure) {
        (_, 0) => {}
        (100_005, 1) => {
            out.u32(0);
            out.opaque(ROOT);
            out.u32(1);
            out.u32(1);
        }
        (NFS, 1) => {
            out.u32(0);
            attr(out, is_root);
        }
        (NFS, 3) => {
            out.u32(0);
            out.opaque(FILE);
            out.bool(true);
            attr(out, false);
            out.bool(false);
        }
        (NFS, 6) => {
            out.u32(0);
            out.bool(false);
            out.u32(100);
            out.bool(true);
            out.opaque(&[7; 100]);
        }
        (NFS, 7) => {
            out.u32(0);
            no_wcc(out);
            out.u32(Input::new(&asked.args[16..]).u32().expect("a count"));
            out.u32(0);
            out.raw(b"verifier");
        }
        (NFS, 18) => {
            out.u32(0);
            out.bool(false);
            (0..6).for_each(|_| out.u64(1 << 40));
            out.u32(0);
        }
        (NFS, 19) => {
            out.u32(0);
            out.bool(false);
            for n in [65_536, 65_536, 4096, 65_536, 65_536, 4096, 65_536] {
                out.u32(n);
            }
            out.u64(1 << 50);
            out.u32(0);
            out.u32(1);
            out.u32(0x1b);
        }
        (NFS, 21) => {
            out.u32(0);
            no_wcc(out);
            out.raw(b"verifier");
        }
        // Not supported.
        _ => out.u32(10_004),
    })
}
