//! Opens that outlive their connection, and repeated requests.

use super::client::{Client, Heard};
use super::*;
use crate::wire::header::{HEADER_LEN, flags};
use crate::wire::{Command, Out, Status};
use std::thread;
use volary_session::Session;

const BATCH: u8 = 9;
const READ_WRITE_DELETE: u32 = 0x0013_019f;
const OPEN_IF: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(60);

type Context = (&'static [u8; 4], Vec<u8>);

/// Returns a CREATE of `name` under a batch oplock.
fn create_body(name: &str, contexts: &[Context]) -> Vec<u8> {
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let contexts = crate::files::contexts_of(contexts);
    let at = (HEADER_LEN + 56 + name.len()).next_multiple_of(8);
    let mut out = Out::new();
    out.u16(57).u8(0).u8(BATCH).u32(2).zeros(16);
    out.u32(READ_WRITE_DELETE).u32(0).u32(0);
    out.u32(OPEN_IF).u32(0x40);
    out.u16((HEADER_LEN + 56) as u16).u16(name.len() as u16);
    out.u32(at as u32).u32(contexts.len() as u32);
    out.bytes(&name).zeros(at - HEADER_LEN - 56 - name.len());
    out.bytes(&contexts);
    out.done()
}

fn ask_v2(timeout: u32, guid: u8) -> Context {
    let mut data = timeout.to_le_bytes().to_vec();
    data.resize(16, 0);
    data.resize(32, guid);
    (b"DH2Q", data)
}

fn back_v2(id: [u8; 16], guid: u8) -> Context {
    let mut data = id.to_vec();
    data.resize(32, guid);
    data.resize(36, 0);
    (b"DH2C", data)
}

fn id_of(heard: &Heard) -> [u8; 16] {
    let at = HEADER_LEN + 64;
    heard.message[at..at + 16].try_into().expect("an id")
}

fn says(heard: &Heard, words: &[u8]) -> bool {
    heard.message.windows(words.len()).any(|w| w == words)
}

fn create(client: &mut Client, contexts: &[Context]) -> Heard {
    let body = create_body("f", contexts);
    client.ask(Command::Create, &body).expect("a reply")
}

fn close(client: &mut Client, id: [u8; 16]) -> Status {
    let mut out = Out::new();
    out.u16(24).u16(0).u32(0).bytes(&id);
    let heard = client.ask(Command::Close, &out.done());
    heard.expect("a reply").status()
}

/// Loses the client's connection, and does what the connection's last thread would do.
fn lose(client: &Client) {
    client.conn.link.close();
    client.conn.end_logons();
}

fn server(change: impl FnOnce(&mut Config)) -> Server {
    let mut config = config(Dialect::Smb311);
    config
        .users
        .push(User::with_password("other", "word", Cred::root()));
    change(&mut config);
    Server::new(config).expect("a server")
}

fn client(server: &Server) -> Client {
    joined(server, Dialect::Smb311, Some(1), Some(2))
}

fn opens(server: &Server) -> usize {
    server.register().shared.config.shares[0]
        .volume
        .open_count()
}

fn posix(server: &Server) -> Session {
    server.register().shared.config.shares[0]
        .volume
        .session(Cred::root())
}

/// Returns a client that opened "f" durably, and its open.
fn with_open(server: &Server) -> (Client, [u8; 16]) {
    let mut first = client(server);
    let made = create(&mut first, &[ask_v2(0, 7)]);
    assert_eq!(made.status(), Status::SUCCESS);
    assert!(says(&made, b"DH2Q"));
    let id = id_of(&made);
    (first, id)
}

#[test]
fn a_lost_open_is_given_back_to_its_user_alone() {
    let server = server(|_| {});
    let (first, id) = with_open(&server);
    let mut second = client(&server);
    let early = create(&mut second, &[back_v2(id, 7)]);
    assert_eq!(early.status(), Status::OBJECT_NAME_NOT_FOUND, "in use");
    lose(&first);
    assert_eq!(opens(&server), 1);
    let mut other = new_client(&server, Dialect::Smb311, Some(1), Some(2));
    other.log_on("other", "word").expect("a logon");
    other.join("share").expect("a tree");
    let theirs = create(&mut other, &[back_v2(id, 7)]);
    assert_eq!(theirs.status(), Status::ACCESS_DENIED);
    let guessed = create(&mut second, &[back_v2(id, 8)]);
    assert_eq!(guessed.status(), Status::OBJECT_NAME_NOT_FOUND);
    let back = create(&mut second, &[back_v2(id, 7)]);
    assert_eq!(back.status(), Status::SUCCESS);
    let twice = create(&mut second, &[back_v2(id, 7)]);
    assert_eq!(twice.status(), Status::OBJECT_NAME_NOT_FOUND, "in use");
    assert_eq!(close(&mut second, id_of(&back)), Status::SUCCESS);
    assert_eq!(opens(&server), 0);
}

/// A user's name for a request has no meaning for another user.
#[test]
fn a_request_is_known_again_to_its_user_alone() {
    let server = server(|_| {});
    let (_first, _) = with_open(&server);
    let mut other = new_client(&server, Dialect::Smb311, Some(1), Some(2));
    other.log_on("other", "word").expect("a logon");
    other.join("share").expect("a tree");
    let body = create_body("g", &[ask_v2(0, 7)]);
    let theirs = other.ask(Command::Create, &body).expect("a reply");
    assert_eq!(theirs.status(), Status::SUCCESS);
}

#[test]
fn whoever_is_in_its_way_ends_a_lost_open() {
    let server = server(|_| {});
    let (first, id) = with_open(&server);
    lose(&first);
    let session = posix(&server);
    let node = session.lookup(session.root(), b"f").expect("f").node;
    let open = session.open(node, volary_core::Mode::ReadWrite);
    session
        .close(open.expect("nobody's any more"))
        .expect("an end");
    assert_eq!(opens(&server), 0);
    let mut second = client(&server);
    let late = create(&mut second, &[back_v2(id, 7)]);
    assert_eq!(late.status(), Status::OBJECT_NAME_NOT_FOUND);
}

#[test]
fn a_lost_open_ends_in_time_and_with_the_server() {
    let server = server(|config| config.limits.durable_time = Duration::from_millis(1));
    let (first, _) = with_open(&server);
    lose(&first);
    let begun = crate::clock::now();
    while opens(&server) > 0 {
        assert!(begun.elapsed() < PATIENCE, "it stays");
        thread::yield_now();
    }
    let stopped = self::server(|_| {});
    let (first, _) = with_open(&stopped);
    lose(&first);
    assert_eq!(opens(&stopped), 1);
    stopped.stop();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    stopped.serve(&listener).expect("an end");
    assert_eq!(opens(&stopped), 0);
}

#[test]
fn lost_opens_are_bounded_and_none_is_kept_that_was_given_up() {
    let server = server(|config| config.limits.durable_opens = 1);
    let mut first = client(&server);
    for (name, guid) in [("f", 1), ("g", 2)] {
        let body = create_body(name, &[ask_v2(0, guid)]);
        let made = first.ask(Command::Create, &body).expect("a reply");
        assert_eq!(made.status(), Status::SUCCESS);
    }
    lose(&first);
    assert_eq!(opens(&server), 1, "the second is one too many");
    let none = self::server(|config| config.limits.durable_opens = 0);
    let mut only = client(&none);
    let made = create(&mut only, &[ask_v2(0, 7)]);
    assert!(!says(&made, b"DH2Q"));
    lose(&only);
    assert_eq!(opens(&none), 0);
    let plain = self::server(|_| {});
    let mut undurable = client(&plain);
    let made = create(&mut undurable, &[]);
    assert_eq!(made.status(), Status::SUCCESS);
    lose(&undurable);
    assert_eq!(opens(&plain), 0);
}

#[test]
fn a_request_that_comes_twice_is_carried_out_once() {
    let server = server(|_| {});
    let (mut first, id) = with_open(&server);
    let again = create(&mut first, &[ask_v2(0, 7)]);
    assert_eq!(again.status(), Status::DUPLICATE_OBJECTID);
    let body = create_body("f", &[ask_v2(0, 7)]);
    let mut message = first.request(Command::Create, 1, &body);
    message[19] |= (flags::REPLAY >> 24) as u8;
    let message = first.sign(message);
    let replayed = first.exchange(&message).expect("a reply");
    let replayed = replayed.last().expect("a reply");
    assert_eq!(replayed.status(), Status::SUCCESS);
    assert_eq!(id_of(replayed), id);
    assert_eq!(opens(&server), 1);
    assert_eq!(close(&mut first, id), Status::SUCCESS);
    assert_eq!(
        create(&mut first, &[ask_v2(0, 7)]).status(),
        Status::SUCCESS
    );
}
