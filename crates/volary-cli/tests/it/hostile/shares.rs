//! Users of this host who take all connections, beside another one who wants some.

use super::smb::{address, log_on, make, serve};
use super::{NEW, NOBODY, call, served};
use crate::sandbox::Sandbox;
use crate::serving::{Serving, client};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use volary_testkit::smb::Fail;

const INSUFFICIENT_RESOURCES: Fail = Fail::Status(0xC000_009A);

/// Returns a connection to the NFS server of which a call was accepted: NFS's that does nothing.
fn proven(serving: &Serving) -> TcpStream {
    let mut stream = TcpStream::connect(address(serving, "nfs")).unwrap();
    let words = [1 << 31 | 40, 7, 0, 2, 100_003, 3, 0, 0, 0, 0, 0_u32];
    let call: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
    stream.write_all(&call).unwrap();
    let mut answer = [0; 28];
    stream.read_exact(&mut answer).unwrap();
    stream
}

/// Returns whether the other end has ended it.
fn is_ended(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    matches!((&*stream).read(&mut [0]), Ok(0))
}

#[test]
fn who_has_all_connections_of_nfs_gives_some_to_another_user() {
    let Some((_sandbox, serving)) = served("host:dir") else {
        return;
    };
    let mut all: Vec<_> = (0..64).map(|_| proven(&serving)).collect();
    call(&serving, NOBODY, "uid=65534,gid=65534", &["touch", NEW]).ok();
    // The oldest stay, and no more went than had to.
    assert!(!all[..32].iter().any(is_ended));
    let ended = all.extract_if(.., |stream| is_ended(stream)).count();
    assert!((1..=8).contains(&ended), "{ended}");
    serving.stop("-TERM");
}

#[test]
fn who_has_all_connections_of_smb_gives_some_to_another_user() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can act as two users");
        return;
    }
    let sandbox = Sandbox::empty();
    let serving = serve(&sandbox, "mem:16M");
    let log_on_many = |user: &str, count| -> Vec<_> {
        let clients = (0..count).map(|_| log_on(&serving, user, "mem"));
        clients.collect::<Result<_, _>>().unwrap()
    };
    // One who logs on has no more than three quarters of all connections.
    let mut all = log_on_many("a", 48);
    assert_eq!(
        log_on(&serving, "a", "mem").err(),
        Some(INSUFFICIENT_RESOURCES)
    );
    all.extend(log_on_many("b", 16));
    let port = address(&serving, "smb").port().to_string();
    let words = "--reuid 65534 --regid 65534 --clear-groups smbclient -U c%password -m SMB3 -p";
    let mut words: Vec<_> = words.split(' ').collect();
    words.extend([&port, "//127.0.0.1/mem", "-c", "ls"]);
    if let Some(run) = client(&sandbox, "setpriv", &words) {
        assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    }
    // Those that came first are still there.
    all[0].echo().unwrap();
    drop(all);
    serving.stop("-TERM");
}

/// Returns how many threads a process has.
fn threads(process: u32) -> usize {
    let all = std::fs::read_dir(format!("/proc/{process}/task"));
    all.unwrap().count()
}

#[test]
fn who_lets_all_wait_has_no_thread_for_each() {
    let sandbox = Sandbox::empty();
    let serving = serve(&sandbox, "mem:16M");
    let clients: Vec<_> = (0..3)
        .map(|_| log_on(&serving, "root", "mem").unwrap())
        .collect();
    let locked = clients[0].open("locked", &make()).unwrap().open;
    clients[0].lock(locked, 0..1, true).unwrap();
    let (tell, told) = mpsc::channel();
    for client in &clients {
        let file = client.open("locked", &make()).unwrap().open;
        for _ in 0..50 {
            let (client, tell) = (client.clone(), tell.clone());
            // What is not refused ends with the connection.
            thread::spawn(move || tell.send(client.lock_waiting_padded(file, 0..1, 100)));
        }
    }
    // This host's user has 128 threads beside the first of each connection.
    for at in 0..22 {
        let refused = told.recv_timeout(Duration::from_secs(60));
        assert!(matches!(refused, Ok(Err(_))), "{at}: {refused:?}");
    }
    let count = threads(serving.id());
    assert!(count < 128 + 30, "{count}");
    clients[2].echo().unwrap();
    serving.stop("-TERM");
}
