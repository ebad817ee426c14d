//! The protocol's rules for connections.

use super::client::{Client, Heard, granted};
use super::*;
use crate::client::Broken;
use crate::crypto::Role;
use crate::wire::header::{HEADER_LEN, flags};
use crate::wire::{Command, Status};

const ECHO: [u8; 4] = [4, 0, 0, 0];

fn client() -> Client {
    let server = Server::new(config(Dialect::Smb311)).expect("a server");
    joined(&server, Dialect::Smb311, Some(1), Some(2))
}

#[test]
fn every_dialect_is_spoken() {
    for dialect in Dialect::ALL {
        let server = Server::new(config(dialect)).expect("a server");
        let mut client = joined(&server, dialect, Some(1), Some(1));
        let heard = client.ask(Command::Echo, &ECHO).expect("a reply");
        assert_eq!(heard.status(), Status::SUCCESS, "{dialect:?}");
    }
}

#[test]
fn wrong_passwords_are_refused_and_cost_time() {
    let mut config = config(Dialect::Smb311);
    config.limits.failed_logon_delay = Duration::from_millis(1600);
    let server = Server::new(config).expect("a server");
    let log_on = |user, password| {
        let mut client = new_client(&server, Dialect::Smb311, None, None);
        client.log_on(user, password)
    };
    let begun = crate::clock::now();
    for (user, password) in [("user", "Pass"), ("nobody", "pass"), ("user", "")] {
        assert_eq!(log_on(user, password), Err(Status::LOGON_FAILURE));
    }
    // Delays of 100 ms after the first wrong password, 200 ms after the second, and 400 ms before a
    // right one.
    assert!(begun.elapsed() >= Duration::from_millis(290));
    assert_eq!(log_on("user", "pass"), Ok(()));
    assert!(begun.elapsed() >= Duration::from_millis(650));
}

#[test]
fn a_break_comes_before_the_reply_to_what_is_asked_later() {
    let mut client = client();
    let logon = client
        .conn
        .members
        .logon(client.session)
        .expect("a session");
    for round in 0..200 {
        client.conn.link.send_break(&logon, false, vec![44; 44]);
        let first = client.ask(Command::Echo, &ECHO).expect("a break");
        assert_eq!(first.header.message_id, u64::MAX, "round {round}");
        let second = client.hear().expect("a reply");
        assert_eq!(second[0].status(), Status::SUCCESS);
        assert_eq!(second[0].message[HEADER_LEN..], ECHO);
    }
}

#[test]
fn nothing_but_a_negotiation_comes_first_and_it_comes_once() {
    let server = Server::new(config(Dialect::Smb311)).expect("a server");
    for command in (1..=18).filter_map(Command::from_code) {
        let mut client = new_client(&server, Dialect::Smb311, None, None);
        let message = client.request(command, 1, &ECHO);
        let replies = client.exchange(&message);
        if command == Command::Cancel {
            assert_eq!(replies.expect("silence").len(), 0);
        } else {
            assert_eq!(replies.err(), Some(Broken), "{command:?}");
        }
    }
    let mut client = client();
    let body = client.negotiate_body();
    let again = client.request(Command::Negotiate, 1, &body);
    assert_eq!(client.exchange(&again).err(), Some(Broken));
}

#[test]
fn ids_that_were_not_granted_end_the_connection() {
    let mut client = client();
    client.next_id += 10_000;
    assert!(client.ask(Command::Echo, &ECHO).is_err());
}

#[test]
fn credits_are_granted_as_asked_up_to_the_limit() {
    let mut client = client();
    let mut sum = 0;
    for _ in 0..300 {
        let heard = client.ask(Command::Echo, &ECHO).expect("a reply");
        sum += i64::from(granted(&heard)) - 1;
    }
    let limit = i64::from(client.conn.link.limits().credits);
    assert!((limit - 300..=limit).contains(&sum), "{sum}");
}

#[test]
fn compounds_are_answered_in_one_and_bounded() {
    let mut client = client();
    let compound = |client: &mut Client, count: usize| {
        let mut all = Vec::new();
        for at in 0..count {
            let mut message = client.request(Command::Echo, 1, &ECHO);
            if at + 1 < count {
                message.resize(72, 0);
                message[20] = 72;
            }
            all.extend(client.sign(message));
        }
        client.exchange(&all)
    };
    let max = client.conn.link.limits().compound;
    let replies = compound(&mut client, max).expect("replies");
    assert_eq!(replies.len(), max);
    assert!(
        replies
            .iter()
            .all(|heard| heard.status() == Status::SUCCESS)
    );
    assert!(compound(&mut client, max + 1).is_err());
}

/// A client that requires signatures accepts no unsigned answer, not even the one that its session
/// is gone.
#[test]
fn a_session_that_is_gone_is_told_so_under_the_signature_of_who_asked() {
    let mut client = client();
    let is_signed = |client: &Client, heard: &Heard| {
        assert_eq!(heard.status(), Status::USER_SESSION_DELETED);
        let (id, keys) = (heard.header.message_id, client.keys.as_ref());
        let signer = &keys.expect("keys").signer;
        heard.header.has(flags::SIGNED) && signer.verify(&heard.message, id, Role::Server)
    };
    let (session, body) = (client.session, ECHO);
    client.session += 1;
    let heard = client.ask(Command::TreeDisconnect, &body).expect("a reply");
    assert!(is_signed(&client, &heard), "by the only one that there is");
    client.session = session;
    client.ask(Command::Logoff, &body).expect("a reply");
    let heard = client.ask(Command::TreeDisconnect, &body).expect("a reply");
    assert!(is_signed(&client, &heard), "by the one that there was");
    let mut message = client.secured(Command::TreeDisconnect, &body);
    message[HEADER_LEN - 1] ^= 1;
    let heard = client.exchange(&message).expect("a reply");
    assert!(!is_signed(&client, &heard[0]), "to who did not sign");
}

#[test]
fn malformed_messages_end_the_connection() {
    for bytes in [
        &b""[..],
        b"\xFESMB",
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xFC; 80],
        &[0; 64],
    ] {
        assert!(client().exchange(bytes).is_err(), "{bytes:?}");
    }
    // The next request does not begin at a multiple of 8, or it begins in this one or past the end.
    for next in [1, 8, 60, 66, 1000] {
        let mut client = client();
        let mut message = client.request(Command::Echo, 1, &[4; 80]);
        message[20..24].copy_from_slice(&u32::to_le_bytes(next));
        assert!(client.exchange(&message).is_err(), "{next}");
    }
}

#[test]
fn sessions_and_trees_end() {
    let mut client = client();
    let ended = client.ask(Command::TreeDisconnect, &ECHO).expect("a reply");
    assert_eq!(ended.status(), Status::SUCCESS);
    let ended = client.ask(Command::TreeDisconnect, &ECHO).expect("a reply");
    assert_eq!(ended.status(), Status::NETWORK_NAME_DELETED);
    assert_eq!(client.join("no share"), Err(Status::BAD_NETWORK_NAME));
    assert_eq!(client.join("SHARE"), Ok(()));
    let ended = client.ask(Command::Logoff, &ECHO).expect("a reply");
    assert_eq!(ended.status(), Status::SUCCESS);
    let ended = client.ask(Command::Echo, &ECHO).expect("a reply");
    assert_eq!(ended.status(), Status::USER_SESSION_DELETED);
}

#[test]
fn an_encrypted_share_is_not_spoken_of_openly() {
    let mut config = config(Dialect::Smb311);
    config.shares[0].encrypt = true;
    let server = Server::new(config).expect("a server");
    let mut client = joined(&server, Dialect::Smb311, Some(1), Some(2));
    let flush = client.ask(Command::Flush, &[24; 24]).expect("a reply");
    assert_eq!(flush.status(), Status::ACCESS_DENIED);
    client.seals = true;
    let flush = client.ask(Command::Flush, &[24; 24]).expect("a reply");
    assert_ne!(flush.status(), Status::ACCESS_DENIED);
    let mut plain = new_client(&server, Dialect::Smb311, Some(1), None);
    plain.log_on("user", "pass").expect("a logon");
    assert_eq!(plain.join("share"), Err(Status::ACCESS_DENIED));
}
