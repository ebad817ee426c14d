//! Fuzzing entry points for a client's messages. Each takes any bytes, and must neither panic nor
//! take much time or memory.

use crate::auth::{Exchange, Host, Step};
use crate::config::User;
use crate::conn::fuzzing as conn;
use crate::crypto::{Algorithm, Cipher, Keys, Preauth, TransformHeader};
use crate::ipc::fuzzing as ipc;
use crate::wire::{Header, ioctl, negotiate, setup};
use crate::{Config, Dialect};
use std::sync::Arc;
use volary_core::{Cred, Time};
use volary_session::Volume;

/// Parses NEGOTIATE, also that of SMB1, and its validation. Encodes the result again.
pub fn negotiate(bytes: &[u8]) {
    // An error is a valid result.
    let _ = negotiate::Request::parse(bytes);
    let _ = negotiate::smb1_dialects(bytes);
    let _ = negotiate::Validate::parse(bytes);
    let _ = ioctl::Request::parse(bytes);
}

/// Parses SESSION_SETUP and its token.
pub fn setup(bytes: &[u8]) {
    if let Ok(request) = setup::Request::parse(bytes) {
        tokens(&[request.token]);
    }
}

/// Processes the tokens of a logon. Each is preceded by its length in two bytes.
pub fn logon(mut bytes: &[u8]) {
    let mut all = Vec::new();
    while let Some(([low, high], rest)) = bytes.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (token, more) = rest.split_at(len);
        all.push(token);
        bytes = more;
    }
    tokens(&all);
}

fn tokens(all: &[&[u8]]) {
    let users = [User::with_password("user", "pass", Cred::root())];
    let host = Host {
        name: "SERVER",
        users: &users,
        now: Time::EPOCH,
        challenge: [7; 8],
    };
    let mut exchange = Exchange::default();
    for token in all {
        match exchange.step(token, &host) {
            Ok(Step::Continue(answer)) => assert!(answer.len() < 1024),
            Ok(Step::Done(..)) | Err(_) => return,
        }
    }
}

/// Parses the headers of a message, of an encrypted one, and of a compound.
pub fn headers(bytes: &[u8]) {
    let _ = TransformHeader::parse(bytes);
    let _ = Header::parse(bytes);
    conn::compound(bytes);
    let keys = Keys::derive(
        &[1; 16],
        Dialect::Smb300,
        Algorithm::AesCmac,
        Some(Cipher::Aes128Ccm),
        &Preauth::START,
    );
    let Some((_, opener)) = keys.seal else { return };
    assert!(
        opener.open(&mut bytes.to_vec()).is_err(),
        "a forged message"
    );
}

/// Carries out requests of a client that has logged on, on a volume. Each is preceded by its
/// command, whether it is related to the previous one, and the two-byte length of its body. At the
/// end, all opens are closed.
pub fn requests(volume: &Arc<Volume>, bytes: &[u8]) {
    let done = conn::requests(volume, bytes);
    assert!(done.is_ok(), "no sockets to be had: {done:?}");
}

/// Carries out requests of three clients, two of which have the same user. Each is preceded by a
/// byte that selects a client, or makes one lose its connection and reconnect. At the end, all
/// opens are closed.
pub fn connections(volume: &Arc<Volume>, bytes: &[u8]) {
    let done = conn::connections(volume, bytes);
    assert!(done.is_ok(), "no sockets to be had: {done:?}");
}

/// Writes bytes to the pipe `srvsvc`, as after a logon.
pub fn pipe(bytes: &[u8]) {
    ipc::pipe(&Config::new("SERVER", || Time::EPOCH), bytes);
}
