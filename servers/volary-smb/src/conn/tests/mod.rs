//! Connections from both sides, with a client that uses the same codec and can send what real
//! clients do not.

mod client;
mod durable;
mod forgery;
mod local;
mod pipes;
mod rules;
mod slow;

use crate::config::{Config, Share, User};
use crate::conn::Conn;
use crate::server::Server;
use crate::wire::Dialect;
use client::Client;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use volary_core::{Cred, Time};
use volary_mem::{Mem, MemOptions};
use volary_session::{Volume, VolumeOptions};

#[expect(clippy::disallowed_methods, reason = "where time comes in")]
fn now() -> Time {
    SystemTime::now().into()
}

/// Returns a server of one empty volume, whose user is "user" with the password "pass".
fn config(dialect: Dialect) -> Config {
    let mut config = Config::new("SERVER", now);
    let fs = Mem::attach(MemOptions::default(), now()).expect("a volume");
    config.users = vec![User::with_password("user", "pass", Cred::root())];
    config.shares = vec![Share::new(
        "share",
        Volume::new(fs, VolumeOptions::new("share", now)),
    )];
    (config.min_dialect, config.max_dialect) = (dialect, dialect);
    config.limits.failed_logon_delay = Duration::ZERO;
    config
}

/// Returns a new client of a server, without a thread between them.
fn new_client(
    server: &Server,
    dialect: Dialect,
    signing: Option<u16>,
    cipher: Option<u16>,
) -> Client {
    let (socket, client) = sockets();
    let peer = Ipv4Addr::LOCALHOST.into();
    let conn = Conn::new(server.register(), socket, peer).expect("a connection");
    Client::new(Arc::new(conn), client, dialect, signing, cipher)
}

/// Returns the server's end of a connection, and the client's.
fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a client");
    (listener.accept().expect("a connection").0, client)
}

/// Returns a client that has logged on and is connected to the share.
fn joined(server: &Server, dialect: Dialect, signing: Option<u16>, cipher: Option<u16>) -> Client {
    let mut client = new_client(server, dialect, signing, cipher);
    client.log_on("user", "pass").expect("a logon");
    client.join("share").expect("a tree");
    client
}
