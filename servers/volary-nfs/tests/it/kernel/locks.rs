//! Locks of Linux's client: they are the session's, it is told of one that it waited
//! for, and it claims them again after a restart of the server.

use super::{Guest, begin};
use crate::served::{Served, export, fat, fat_device, options};
use crate::wire::{Args, Reply};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use volary_core::{Kind, Mode, SetAttr};
use volary_nfs::LockState;
use volary_session::{LockKind, Range, Wait};
use volary_testkit::nfs::locks::NLM;
use volary_testkit::oracle::{self, vm};

const PORTMAP: u32 = 100_000;
const NSM: u32 = 100_024;
/// Where the guest's kernel has its lock manager.
const LOCK_MANAGER: u16 = 4001;

/// Locks a file, lets the host see it, finds it locked by the host, waits for it and has
/// it until it is told to end.
const LOCKS: &str = r#"
chroot /host python3 /tmp/statd.py $LOCK_MANAGER > /dev/null 2>&1 &
while ! grep -q ":006F 00000000:0000 0A" /proc/net/tcp; do sleep 0.2; done
flock() { chroot /host flock "$@"; }
modprobe lockd nlm_tcpport=$LOCK_MANAGER nlm_udpport=$LOCK_MANAGER
mounted hard,timeo=10,actimeo=1
cd /mnt
: > l
exec 9> l
flock -x 9 || exit 2
echo > locked
while [ -e locked ]; do sleep 0.2; done
flock -u 9 || exit 3
echo > unlocked
while [ -e unlocked ]; do sleep 0.2; done
flock -n -x 9 && exit 4
echo > refused
flock -x 9 || exit 5
rm refused
while [ ! -e end ]; do sleep 0.2; done
cd /; exec 9>&-; umount /mnt
"#;

/// Ports of the host that lead to the guest's own.
struct Ways {
    portmap: u16,
    lock_manager: u16,
    dir: tempfile::TempDir,
}

impl Ways {
    fn new() -> Self {
        let free = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            listener.local_addr().unwrap().port()
        };
        let (portmap, lock_manager) = (free(), free());
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("qemu-system-x86_64");
        // vmrun has no words for them: it finds this before the emulator.
        let words = format!(
            "#!/bin/bash\n\
             to=,hostfwd=tcp:127.0.0.1\n\
             PATH=${{PATH#*:}}\n\
             exec qemu-system-x86_64 \"${{@/#user,id=n0/user,id=n0$to:{portmap}-:111$to:{lock_manager}-:{LOCK_MANAGER}}}\"\n"
        );
        let script = dir.path().join("script");
        std::fs::write(&script, words).unwrap();
        oracle::install(&script, &program);
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        Self {
            portmap,
            lock_manager,
            dir,
        }
    }

    fn vmrun(&self, vmrun: &Path) -> Command {
        let mut path = PathBuf::from(self.dir.path()).into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let mut command = vm::command(vmrun);
        command.arg("--hostroot").env("PATH", path);
        command
    }

    /// Returns what the server takes for the guest's portmapper: each call to another program
    /// goes on to the guest, and its answer back. Gives the port, and those calls.
    fn relay(&self) -> (u16, mpsc::Receiver<Call>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (calls, received) = mpsc::channel();
        let ports = (self.portmap, self.lock_manager);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let call = relayed(stream.unwrap(), port, ports);
                if call.is_some_and(|call| calls.send(call).is_err()) {
                    return;
                }
            }
        });
        (port, received)
    }
}

/// A call to one of the guest's programs, and what it answered.
struct Call {
    program: u32,
    procedure: u32,
    answer: Reply,
}

/// Passes one call on. `None` if it was the portmapper's, or the guest said nothing.
fn relayed(mut stream: TcpStream, port: u16, (portmap, lock_manager): (u16, u16)) -> Option<Call> {
    let call = record(&mut stream)?;
    let mut head = Reply::new(call.clone());
    let xid = head.u32();
    head.take(8);
    let [program, _, procedure] = [head.u32(), head.u32(), head.u32()];
    let to = match program {
        PORTMAP => {
            let answer = Args::new().u32(xid).u32(1).u32(0).u32(0).u32(0).u32(0);
            send(&mut stream, &answer.u32(port.into()).0)?;
            return None;
        }
        NLM => lock_manager,
        NSM => portmap,
        other => panic!("program {other}"),
    };
    let mut guest = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).ok()?;
    send(&mut guest, &call)?;
    let bytes = record(&mut guest)?;
    send(&mut stream, &bytes)?;
    let mut answer = Reply::new(bytes);
    answer.take(24);
    Some(Call {
        program,
        procedure,
        answer,
    })
}

fn record(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut mark = [0; 4];
    stream.read_exact(&mut mark).ok()?;
    let mut record = vec![0; (u32::from_be_bytes(mark) & !(1 << 31)) as usize];
    stream.read_exact(&mut record).ok()?;
    Some(record)
}

fn send(stream: &mut TcpStream, record: &[u8]) -> Option<()> {
    let mark = (record.len() as u32 | 1 << 31).to_be_bytes();
    stream.write_all(&[&mark, record].concat()).ok()
}

/// Returns the next call to the guest; a guest takes minutes if the machine is busy.
fn next(calls: &mpsc::Receiver<Call>) -> Call {
    calls.recv_timeout(Duration::from_secs(300)).unwrap()
}

/// The guest's lock keeps this host out, and the host's the guest, until it is given up.
fn has_what_it_waited_for(running: &mut Guest, served: &Served, calls: &mpsc::Receiver<Call>) {
    const GRANTED: u32 = 5;
    let other = served.other().with_client(served.volume.client());
    running.gets_to(served, "locked");
    let node = other.lookup(other.root(), b"l").unwrap().node;
    let open = other.open(node, Mode::ReadWrite).unwrap();
    let take = || other.lock(open, 1, Range::ALL, LockKind::Exclusive, Wait::No);
    assert_eq!(take().unwrap_err().kind(), Kind::Locked);
    other.unlink(other.root(), b"locked").unwrap();
    running.gets_to(served, "unlocked");
    take().unwrap();
    other.unlink(other.root(), b"unlocked").unwrap();

    // It waits, and is told: it does not ask again before half a minute is over.
    running.gets_to(served, "refused");
    running.waits("it waits", || served.volume.waiting_count() == 1);
    other.close(open).unwrap();
    let mut told = next(calls);
    assert_eq!((told.program, told.procedure), (NLM, GRANTED));
    told.answer.opaque();
    assert_eq!(told.answer.u32(), 0, "it took what it waited for");
    let is_gone = || other.lookup(other.root(), b"refused").is_err();
    running.waits("it has it", is_gone);
}

#[test]
fn locks_of_linux_are_the_sessions_and_outlive_the_server() {
    const NOTIFY: u32 = 6;
    let Some(vmrun) = vm::find() else { return };
    let at = SocketAddr::from(([127, 0, 0, 1], 111));
    if let Err(e) = TcpListener::bind(at) {
        // The guest's kernel asks there, and nowhere else.
        println!("skipped: {at} cannot be had: {e}");
        return;
    }
    let ways = Ways::new();
    let (portmap, calls) = ways.relay();
    let dir = tempfile::tempdir().unwrap();
    let dev = fat_device(64 << 20);
    let run = |instance, listen: Option<SocketAddr>| {
        let mut how = options(instance);
        how.listen = listen.map_or(how.listen, |at| vec![at]);
        how.portmap = vec![at];
        how.client_portmap = portmap;
        let state = LockState::open(&dir.path().join("locks"), Duration::from_secs(3600));
        how.locks = Some(Arc::new(state.unwrap()));
        Served::of(fat(dev.clone()), &export(), &how)
    };
    let served = run(1, None);
    let address = served.address();
    let statd = include_str!("statd.py");
    let script =
        format!("LOCK_MANAGER={LOCK_MANAGER}\ncat > /tmp/statd.py <<'END'\n{statd}END\n{LOCKS}");
    let mut running = begin(&mut ways.vmrun(&vmrun), address.port(), &script);
    has_what_it_waited_for(&mut running, &served, &calls);

    let volume = served.volume.clone();
    drop(served);
    volume.detach().unwrap();
    let served = run(2, Some(address));
    let told = next(&calls);
    assert_eq!((told.program, told.procedure), (NSM, NOTIFY));
    // No others are given any in the time of grace.
    let has_claimed = || served.server.programs().kept().1 == 1;
    running.waits("it has claimed it", has_claimed);
    let other = served.other();
    other
        .mkdir(other.root(), b"end", &SetAttr::default())
        .unwrap();
    running.ends_well();
    assert_eq!(served.server.programs().kept().1, 0, "files with locks");
}
