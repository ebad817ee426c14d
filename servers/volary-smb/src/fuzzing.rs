//! What a client can say, for fuzzing: each takes any bytes and must neither
//! panic nor take long nor much memory.

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

/// NEGOTIATE, SMB1's too, and its validation; what is agreed on goes back out.
pub fn negotiate(bytes: &[u8]) {
    // What is refused is well refused.
    let _ = negotiate::Request::parse(bytes);
    let _ = negotiate::smb1_dialects(bytes);
    let _ = negotiate::Validate::parse(bytes);
    let _ = ioctl::Request::parse(bytes);
}

/// SESSION_SETUP, with its token.
pub fn setup(bytes: &[u8]) {
    if let Ok(request) = setup::Request::parse(bytes) {
        tokens(&[request.token]);
    }
}

/// The tokens of a logon: each with its length in two bytes before it.
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

/// A message's headers: of one that is encrypted, of a compound's parts.
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

/// Requests of one who has logged on, to a volume: each with its command, whether it is related
/// to the one before, and the length of its body in two bytes before it. All that is open is
/// ended at the end.
pub fn requests(volume: &Arc<Volume>, bytes: &[u8]) {
    let done = conn::requests(volume, bytes);
    assert!(done.is_ok(), "no sockets to be had: {done:?}");
}

/// Requests of three clients, two of them of one user: each with a byte before it that says whose
/// it is, or whose connection is lost and comes back. All that is open is ended at the end.
pub fn connections(volume: &Arc<Volume>, bytes: &[u8]) {
    let done = conn::connections(volume, bytes);
    assert!(done.is_ok(), "no sockets to be had: {done:?}");
}

/// What is written to the pipe `srvsvc` (after a logon).
pub fn pipe(bytes: &[u8]) {
    ipc::pipe(&Config::new("SERVER", || Time::EPOCH), bytes);
}
