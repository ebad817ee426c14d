//! Nothing that was changed in transit is accepted.

use super::client::{Client, Heard, setup_body};
use super::*;
use crate::auth::tests::Client as Ntlm;
use crate::client::Broken;
use crate::conn::dispatch;
use crate::wire::header::flags;
use crate::wire::{Command, Status};

/// A way to sign or encrypt.
#[derive(Clone, Copy, Debug)]
struct Way {
    dialect: Dialect,
    signing: Option<u16>,
    cipher: Option<u16>,
    /// Whether to encrypt.
    seals: bool,
}

const fn way(dialect: Dialect, signing: Option<u16>, cipher: Option<u16>, seals: bool) -> Way {
    Way {
        dialect,
        signing,
        cipher,
        seals,
    }
}

/// All ways to sign or encrypt.
const WAYS: [Way; 10] = [
    way(Dialect::Smb202, None, None, false),
    way(Dialect::Smb210, None, None, false),
    way(Dialect::Smb300, None, Some(1), false),
    way(Dialect::Smb300, None, Some(1), true),
    way(Dialect::Smb311, Some(0), None, false),
    way(Dialect::Smb311, Some(1), None, false),
    way(Dialect::Smb311, Some(2), None, false),
    way(Dialect::Smb311, Some(1), Some(1), true),
    way(Dialect::Smb311, Some(1), Some(2), true),
    way(Dialect::Smb311, Some(1), Some(4), true),
];

/// Returns valid requests of a session: commands with their bodies.
fn requests() -> Vec<(Command, Vec<u8>)> {
    let mut tree = vec![9, 0, 0, 0, 72, 0, 14, 0];
    tree.extend("\\\\s\\IPC$"[..7].encode_utf16().flat_map(u16::to_le_bytes));
    let mut ioctl = vec![57, 0, 0, 0, 4, 2, 0x14, 0];
    ioctl.resize(56, 0xFF);
    let mut create = vec![57, 0, 0, 0];
    create.resize(60, 0);
    vec![
        (Command::Echo, vec![4, 0, 0, 0]),
        (Command::TreeConnect, tree),
        (Command::Create, create),
        (Command::Ioctl, ioctl),
        (Command::TreeDisconnect, vec![4, 0, 0, 0]),
        (Command::Logoff, vec![4, 0, 0, 0]),
    ]
}

/// Returns whether a forged message was refused. It is if the connection ended, there was no reply,
/// or the reply is an unsigned error.
fn is_refused(outcome: &Result<Vec<Heard>, Broken>) -> bool {
    let Ok(replies) = outcome else {
        return true;
    };
    let refusals = [
        Status::ACCESS_DENIED,
        Status::USER_SESSION_DELETED,
        Status::INVALID_PARAMETER,
    ];
    replies
        .iter()
        .all(|heard| refusals.contains(&heard.status()) && !heard.header.has(flags::SIGNED))
}

fn connect(server: &Server, way: Way) -> Client {
    let mut client = joined(server, way.dialect, way.signing, way.cipher);
    client.seals = way.seals;
    client
}

#[test]
fn no_changed_bit_of_a_session_is_accepted() {
    // Without optimisation, all of them would take minutes. By default, only every seventh is
    // tried.
    let step = if std::env::var_os("VOLARY_SUITES").is_some() {
        1
    } else {
        7
    };
    let mut mutants = 0;
    for way in WAYS {
        let server = Server::new(config(way.dialect)).expect("a server");
        let mut client = connect(&server, way);
        for (command, body) in requests() {
            let mut bit = 0;
            loop {
                let message = client.secured(command, &body);
                if bit >= message.len() * 8 {
                    client = connect(&server, way);
                    break;
                }
                let mut changed = message.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                let outcome = client.exchange(&changed);
                assert!(
                    is_refused(&outcome),
                    "{way:?} {command:?} bit {bit}: {outcome:?}"
                );
                mutants += 1;
                // Ids are used up even so, and the server tolerates only some forged messages.
                if outcome.map_or(true, |replies| replies.is_empty()) || mutants % 8 == 0 {
                    client = connect(&server, way);
                }
                bit += step;
            }
        }
        assert!(
            client.ask(Command::Echo, &[4, 0, 0, 0]).is_ok(),
            "an honest one is answered"
        );
    }
    println!("{mutants} changed messages refused");
}

#[test]
fn what_is_not_signed_or_signed_with_another_key_is_refused() {
    for way in WAYS {
        let server = Server::new(config(way.dialect)).expect("a server");
        let mut client = connect(&server, way);
        let bare = client.request(Command::Echo, 1, &[4, 0, 0, 0]);
        let outcome = client.exchange(&bare);
        assert!(
            is_refused(&outcome) && outcome.is_ok(),
            "{way:?}: {outcome:?}"
        );
        let mut other = connect(&server, way);
        other.session = client.session;
        other.next_id = client.next_id;
        let foreign = other.secured(Command::Echo, &[4, 0, 0, 0]);
        assert!(is_refused(&client.exchange(&foreign)), "{way:?}");
    }
}

/// Returns whether the connection knows the signer of a message after reading it.
fn is_known(client: &mut Client, message: &[u8]) -> bool {
    let mut bytes = vec![0xFF; 7];
    let frame = std::thread::scope(|scope| {
        let conn = Arc::clone(&client.conn);
        let bytes = &mut bytes;
        let reading =
            scope.spawn(move || conn.frames.lock().next(&conn.link, &conn.members, bytes));
        let len = u32::try_from(message.len()).expect("a short one");
        client.say(&len.to_be_bytes());
        for piece in message.chunks(50_000) {
            client.say(piece);
        }
        reading.join().expect("the reader").expect("a message")
    });
    assert_eq!(bytes[..frame.len], *message);
    frame.signer.is_some()
}

#[test]
fn the_signature_of_a_long_message_is_known_when_it_has_come() {
    for way in WAYS.into_iter().filter(|way| !way.seals) {
        let server = Server::new(config(way.dialect)).expect("a server");
        let mut client = connect(&server, way);
        let body = vec![0xA5; 300_001];
        let signed = client.secured(Command::Write, &body);
        assert!(is_known(&mut client, &signed), "{way:?}");
        let last = signed.len() - 1;
        for at in [0, 12, 24, 40, 48, 63, 64, 131_072, 262_143, 262_144, last] {
            let mut changed = signed.clone();
            changed[at] ^= 1;
            assert!(!is_known(&mut client, &changed), "{way:?}: byte {at}");
        }
        assert!(!is_known(&mut client, &signed[..last]), "{way:?}");
        let mut bare = client.request(Command::Write, 1, &body);
        assert!(!is_known(&mut client, &bare), "{way:?}: not signed");
        // The first request of a compound, in which the signature covers only the request itself.
        bare[20..24].copy_from_slice(&100_000_u32.to_le_bytes());
        let compound = client.sign(bare);
        assert!(!is_known(&mut client, &compound), "{way:?}: a compound");
    }
}

#[test]
fn a_message_that_another_session_signed_is_refused() {
    let server = Server::new(config(Dialect::Smb311)).expect("a server");
    let way = way(Dialect::Smb311, Some(2), None, false);
    let [mut client, other] = [connect(&server, way), connect(&server, way)];
    let known = |client: &Client| {
        client
            .conn
            .members
            .logon(client.session)
            .expect("a session")
    };
    for (signer, is_right) in [(known(&other), false), (known(&client), true)] {
        let mut message = client.secured(Command::Echo, &[4, 0, 0, 0]);
        message[50] ^= 1;
        let conn = Arc::clone(&client.conn);
        dispatch::message(&conn, &Arc::default(), &mut message, Some(&signer)).expect("an answer");
        let heard = client.hear();
        assert_eq!(is_refused(&heard), !is_right, "{heard:?}");
    }
}

/// The refusal of the first request is sealed with the keys of the session that sealed both.
#[test]
fn a_sealed_request_of_another_session_is_refused_and_the_next_is_done() {
    let server = Server::new(config(Dialect::Smb311)).expect("a server");
    let mut client = connect(&server, way(Dialect::Smb311, Some(1), Some(2), true));
    let (session, keys) = (client.session, client.keys.take());
    client.set_up("user", "pass").expect("a second session");
    let mut theirs = client.request(Command::Echo, 1, &[4, 0, 0, 0]);
    theirs.resize(theirs.len().next_multiple_of(8), 0);
    let len = u32::try_from(theirs.len()).expect("a length");
    theirs[20..24].copy_from_slice(&len.to_le_bytes());
    (client.session, client.keys) = (session, keys);
    let ours = client.request(Command::Echo, 1, &[4, 0, 0, 0]);
    let message = client.seal(&[theirs, ours].concat());
    let heard = client.exchange(&message).expect("replies");
    let statuses: Vec<_> = heard.iter().map(Heard::status).collect();
    assert_eq!(statuses, [Status::ACCESS_DENIED, Status::SUCCESS]);
}

/// With GMAC, two answers under one message id would reveal its hash key.
#[test]
fn a_logon_that_is_sent_again_elsewhere_is_not_answered_with_a_signature_again() {
    let server = Server::new(config(Dialect::Smb311)).expect("a server");
    let mut client = joined(&server, Dialect::Smb311, Some(2), Some(2));
    let body = setup_body(&Ntlm::new("user", "pass").negotiate);
    let message = client.request(Command::SessionSetup, 1, &body);
    let message = client.sign(message);
    let is_signed = |heard: &[Heard], status| {
        assert_eq!(heard[0].status(), status);
        heard[0].header.has(flags::SIGNED)
    };
    let heard = client.exchange(&message).expect("a reply");
    assert!(is_signed(&heard, Status::MORE_PROCESSING_REQUIRED));
    let elsewhere = || {
        let mut other = new_client(&server, Dialect::Smb311, Some(2), Some(2));
        other.negotiate().expect("a dialect");
        other
    };
    let heard = elsewhere().exchange(&message).expect("a reply");
    assert!(!is_signed(&heard, Status::USER_SESSION_DELETED));
    // A client that means that connection gets a signed answer, but only once.
    let mut message = client.request(Command::SessionSetup, 1, &body);
    message[24] = 1;
    let message = client.sign(message);
    for signed in [true, false] {
        let heard = elsewhere().exchange(&message).expect("a reply");
        assert_eq!(is_signed(&heard, Status::USER_SESSION_DELETED), signed);
    }
}

#[test]
fn nothing_is_accepted_twice() {
    for way in WAYS {
        let server = Server::new(config(way.dialect)).expect("a server");
        let mut client = connect(&server, way);
        let message = client.secured(Command::Echo, &[4, 0, 0, 0]);
        assert_eq!(client.exchange(&message).expect("a reply").len(), 1);
        assert!(client.exchange(&message).is_err(), "{way:?}");
    }
}

/// The client detects it by its keys at the latest. From 3.1.1 on, these depend on every bit of the
/// messages before.
#[test]
fn no_changed_bit_of_a_logon_is_accepted() {
    let server = Server::new(config(Dialect::Smb311)).expect("a server");
    for nth in 0..3 {
        let mut bit = 0;
        loop {
            let mut client = new_client(&server, Dialect::Smb311, Some(1), Some(2));
            let mut count = 0;
            let past_the_end = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let ended = Arc::clone(&past_the_end);
            client.tamper = Some(Box::new(move |message| {
                if count == nth {
                    match message.get_mut(bit / 8) {
                        Some(byte) => *byte ^= 1 << (bit % 8),
                        None => ended.store(true, std::sync::atomic::Ordering::Relaxed),
                    }
                }
                count += 1;
            }));
            let logged_on = client.log_on("user", "pass");
            if past_the_end.load(std::sync::atomic::Ordering::Relaxed) {
                assert_eq!(logged_on, Ok(()), "unchanged, it is accepted");
                break;
            }
            let accepted = logged_on.is_ok() && client.join("share").is_ok();
            assert!(!accepted, "message {nth}, bit {bit}");
            bit += 3;
        }
    }
}

/// Before 3.1.1, the client asks whether its request arrived unchanged.
#[test]
fn a_changed_negotiation_is_found_by_its_validation() {
    for dialect in [Dialect::Smb210, Dialect::Smb300, Dialect::Smb302] {
        let server = Server::new(config(dialect)).expect("a server");
        let validate = |client: &mut Client, guid: u8, mode: u8, capabilities: u8| {
            let mut input = vec![capabilities, 0, 0, 0];
            input.extend([guid; 16]);
            input.extend([mode, 0, 1, 0]);
            input.extend(dialect.code().to_le_bytes());
            let mut body = vec![57, 0, 0, 0, 4, 2, 0x14, 0];
            body.resize(24, 0xFF);
            body.extend([120, 0, 0, 0, input.len() as u8, 0, 0, 0]);
            body.resize(44, 0);
            body.extend([24, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
            body.extend(input);
            client.ask(Command::Ioctl, &body)
        };
        let mut client = joined(&server, dialect, None, Some(1));
        let honest = validate(&mut client, 7, 1, 0x7F).expect("a reply");
        assert_eq!(honest.status(), Status::SUCCESS);
        for (guid, mode, capabilities) in [(8, 1, 0x7F), (7, 3, 0x7F), (7, 1, 0x3F)] {
            let mut client = joined(&server, dialect, None, Some(1));
            assert!(validate(&mut client, guid, mode, capabilities).is_err());
        }
    }
}
