//! Clients that have logged on, and then send too little or request too much at once.

use super::client::{Client, Heard};
use super::*;
use crate::conn::begin;
use crate::crypto::Role;
use crate::wire::header::{HEADER_LEN, flags};
use crate::wire::{Command, Out, Status};

const ECHO: [u8; 4] = [4, 0, 0, 0];

fn server(change: impl FnOnce(&mut Config)) -> Server {
    let mut config = config(Dialect::Smb311);
    change(&mut config);
    Server::new(config).expect("a server")
}

fn client(server: &Server) -> Client {
    joined(server, Dialect::Smb311, Some(1), Some(2))
}

/// Opens the share's root, for reading.
fn open_root(client: &mut Client) -> [u8; 16] {
    let mut out = Out::new();
    out.u16(57).u8(0).u8(0).u32(2).zeros(16);
    out.u32(0x0012_0089).u32(0).u32(7).u32(1).u32(1);
    out.u16(HEADER_LEN as u16 + 56).u16(0).u32(0).u32(0);
    let heard = client.ask(Command::Create, &out.done()).expect("a reply");
    assert_eq!(heard.status(), Status::SUCCESS);
    let at = HEADER_LEN + 64;
    heard.message[at..at + 16].try_into().expect("an id")
}

fn watch(client: &mut Client, id: [u8; 16]) -> Heard {
    let mut out = Out::new();
    out.u16(32).u16(0).u32(4096).bytes(&id).u32(1).u32(0);
    client
        .ask(Command::ChangeNotify, &out.done())
        .expect("a reply")
}

#[test]
fn a_message_that_does_not_end_ends_the_session_and_no_other() {
    let server = server(|config| config.limits.message_time = Duration::from_millis(100));
    let volume = Arc::clone(&server.register().shared.config.shares[0].volume);
    let mut slow = client(&server);
    open_root(&mut slow);
    assert_eq!(volume.open_count(), 1);
    let mut other = client(&server);
    begin(&slow.conn);
    slow.say(&[0, 0, 0, 100, 0xFE, b'S', b'M', b'B']);
    slow.await_end();
    let begun = crate::clock::now();
    while volume.open_count() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "still open");
        std::thread::yield_now();
    }
    let heard = other.ask(Command::Echo, &ECHO).expect("a reply");
    assert_eq!(heard.status(), Status::SUCCESS);
}

/// GMAC's nonce depends on the message id, so only one message may use each.
#[test]
fn of_a_request_that_waits_one_reply_alone_is_signed() {
    const GMAC: u16 = 2;
    let server = server(|_| ());
    let mut client = joined(&server, Dialect::Smb311, Some(GMAC), Some(2));
    let id = open_root(&mut client);
    let interim = watch(&mut client, id);
    assert_eq!(interim.status(), Status::PENDING);
    let is_signed = |heard: &Heard| heard.header.has(flags::SIGNED);
    assert!(!is_signed(&interim));
    // The watch ends with its directory.
    let mut out = Out::new();
    out.u16(24).u16(0).u32(0).bytes(&id);
    let message = client.secured(Command::Close, &out.done());
    let mut heard = client.exchange(&message).expect("replies");
    let of_watch = |heard: &Heard| heard.header.message_id == interim.header.message_id;
    let begun = crate::clock::now();
    while !heard.iter().any(of_watch) {
        assert!(begun.elapsed() < Duration::from_secs(60), "no reply");
        heard.extend(client.hear().expect("replies"));
    }
    let last = heard.iter().find(|heard| of_watch(heard)).expect("a reply");
    let keys = client.keys.as_ref().expect("keys");
    let id = last.header.message_id;
    assert!(is_signed(last) && keys.signer.verify(&last.message, id, Role::Server));
}

#[test]
fn requests_that_wait_are_bounded_and_end_with_the_connection() {
    let server = server(|config| {
        config.limits.waiting = 2;
        config.limits.parked = 3;
    });
    let volume = Arc::clone(&server.register().shared.config.shares[0].volume);
    let mut client = client(&server);
    let id = open_root(&mut client);
    for at in 0..5 {
        assert_eq!(watch(&mut client, id).status(), Status::PENDING, "{at}");
    }
    let refused = watch(&mut client, id).status();
    assert_eq!(refused, Status::INSUFFICIENT_RESOURCES);
    let heard = client.ask(Command::Echo, &ECHO).expect("a reply");
    assert_eq!(heard.status(), Status::SUCCESS);
    client.conn.link.close();
    client.conn.end_logons();
    assert_eq!(volume.open_count(), 0);
}

#[test]
fn a_user_has_so_many_connections_and_trees() {
    let server = server(|config| {
        config.limits.trees_per_user = 2;
        config.limits.connections_per_user = 2;
    });
    let new = || new_client(&server, Dialect::Smb311, Some(1), Some(2));
    let end = |client: Client| {
        client.conn.link.close();
        client.conn.end_logons();
    };
    let (one, mut two) = (client(&server), client(&server));
    assert!(two.join("share").is_err(), "a tree of each");
    let mut three = new();
    let refused = three.log_on("user", "pass");
    assert_eq!(refused, Err(Status::INSUFFICIENT_RESOURCES));
    end(one);
    two.join("share").expect("a tree");
    let mut four = new();
    four.log_on("user", "pass").expect("a logon");
    assert!(four.join("share").is_err(), "two of one session");
    end(two);
    four.join("share").expect("a tree");
}
