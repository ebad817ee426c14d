//! Records what real clients send, as seeds for the fuzz target `nfs_calls`:
//!
//! ```text
//! cargo test -p volary-nfs --test it record -- --ignored
//! ```

use crate::client::{Client, How, Set};
use crate::served::{Served, export, mem, options};
use crate::wire::Args;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Records longer than this are of no use to a fuzzer.
const LEN_MAX: usize = 1500;

/// Stands between clients and a server, and keeps what clients send: each record
/// with its length, two bytes, before it.
fn tap(server: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = listener.local_addr().unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&kept);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(server).unwrap());
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let all = Arc::clone(&all);
            std::thread::spawn(move || pass(client, server, &all));
            std::thread::spawn(move || std::io::copy(&mut &back.0, &mut &back.1));
        }
    });
    (address, kept)
}

fn pass(mut client: TcpStream, mut server: TcpStream, all: &Mutex<Vec<u8>>) -> Option<()> {
    loop {
        let mut mark = [0; 4];
        client.read_exact(&mut mark).ok()?;
        let mut record = vec![0; (u32::from_be_bytes(mark) & !(1 << 31)) as usize];
        client.read_exact(&mut record).ok()?;
        if record.len() <= LEN_MAX {
            let mut all = all.lock().unwrap();
            all.extend((record.len() as u16).to_be_bytes());
            all.extend(&record);
        }
        server.write_all(&[&mark, &record[..]].concat()).ok()?;
    }
}

fn record(name: &str, work: impl FnOnce(SocketAddr)) {
    let served = Served::of(mem(), &export(), &options(1));
    let (address, kept) = tap(served.address());
    work(address);
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/nfs_calls");
    std::fs::create_dir_all(&dir).unwrap();
    let kept = kept.lock().unwrap();
    // As much as the fuzzer takes, cut between records.
    let mut end = 0;
    while let Some(len) = kept.get(end..end + 2) {
        let next = end + 2 + usize::from(u16::from_be_bytes([len[0], len[1]]));
        if next > 4096 {
            break;
        }
        end = next;
    }
    assert!(end > 0);
    std::fs::write(dir.join(name), &kept[..end]).unwrap();
}

fn run(program: &str, args: &[&str]) {
    let mut command = std::process::Command::new("timeout");
    assert!(
        command
            .arg("300")
            .arg(program)
            .args(args)
            .status()
            .unwrap()
            .success()
    );
}

#[test]
#[ignore = "writes into fuzz/seeds"]
fn what_clients_send_is_recorded() {
    let dir = tempfile::TempDir::new().unwrap();
    let host = dir.path().join("file");
    std::fs::write(&host, "some words\n").unwrap();
    let url = |at: SocketAddr, path: &str| {
        let port = at.port();
        format!("nfs://127.0.0.1/test{path}?version=3&nfsport={port}&mountport={port}")
    };
    record("libnfs", |at| {
        run("nfs-cp", &[host.to_str().unwrap(), &url(at, "/file")]);
        run("nfs-cat", &[&url(at, "/file")]);
        run("nfs-ls", &[&url(at, "")]);
    });
    record("all-procedures", |at| every_procedure(Client::new(at)));
    if let Some(vmrun) = volary_testkit::oracle::vm::find() {
        record("linux", |at| {
            let script = "mounted nolock; cd /mnt; mkdir d; echo x > d/f; ln -s f d/s; ls -l d; \
                          mv d/f g; rm g; cd /; umount /mnt";
            crate::kernel::run_in_guest(&vmrun, at.port(), script);
        });
    }
}

fn every_procedure(mut c: Client) {
    let root = c.root();
    let (dir, _) = c.mkdir(&root, b"d", &Set::mode(0o755)).unwrap();
    let (fh, _) = c.create(&dir, b"f", How::Exclusive(*b"verifier")).unwrap();
    c.setattr(&fh, &Set::mode(0o644), None).unwrap();
    c.write(&fh, 0, b"abc", 0).unwrap();
    c.commit(&fh).unwrap();
    c.read(&fh, 0, 100).unwrap();
    c.access(&fh, 0x3f).unwrap();
    c.symlink(&dir, b"s", b"f").unwrap();
    let (symlink, _) = c.lookup(&dir, b"s").unwrap();
    c.readlink(&symlink).unwrap();
    c.mknod(&dir, b"p", 7, &Set::mode(0o600), 0).unwrap();
    c.link(&fh, &dir, b"l").unwrap();
    c.readdir(&dir, (0, 0), 4096).unwrap();
    c.readdirplus(&dir, (0, 0), (1024, 4096)).unwrap();
    c.rename((&dir, b"l"), (&root, b"m")).unwrap();
    c.remove(&root, b"m").unwrap();
    c.rmdir(&root, b"d").unwrap_err();
    for procedure in 18..=20 {
        c.nfs(procedure, &Args::new().opaque(&root));
    }
    let who = c.who.clone();
    let owner = |args: Args| {
        let args = args.opaque(b"machine").opaque(&fh).opaque(b"owner");
        args.u32(7).u64(0).u64(0)
    };
    let lock = owner(Args::new().opaque(b"c").u32(0).u32(1)).u32(0).u32(1);
    c.wire.call((100_021, 4, 2), &who, &lock);
    let test = owner(Args::new().opaque(b"c").u32(1));
    c.wire.call((100_021, 4, 1), &who, &test);
    let unlock = owner(Args::new().opaque(b"c"));
    c.wire.call((100_021, 4, 4), &who, &unlock);
    let port = Args::new().u32(100_003).u32(3).u32(6).u32(0);
    c.wire.call((100_000, 2, 3), &who, &port);
}
