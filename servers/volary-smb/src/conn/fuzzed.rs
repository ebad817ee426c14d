//! Feeds the server with the requests of a client that has logged on: see [`crate::fuzzing`].

use super::members::Member;
use super::{Conn, dispatch, tree};
use crate::client::{Logon, Worker};
use crate::config::{Config, Share, User};
use crate::crypto::{Algorithm, Keys, Preauth};
use crate::server::Server;
use crate::wire::Dialect;
use crate::wire::header::flags;
use crate::wire::{Command, Header, Out};
use rustix::net::sockopt;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Cred, Time};
use volary_session::Volume;

/// A client that is connected to a share, with the server's side of its connection.
struct Client {
    conn: Arc<Conn>,
    worker: Arc<Worker>,
    socket: TcpStream,
    next_id: u64,
    session: u64,
    tree: u32,
}

/// Sends a client's requests. Each is preceded by its command, whether it is related to the
/// previous one, and the two-byte length of its body. At the end, the connection is lost.
///
/// # Errors
/// The system's, for sockets.
pub(crate) fn requests(volume: &Arc<Volume>, mut bytes: &[u8]) -> io::Result<()> {
    let server = Server::new(config(volume))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut client = Client::new(&server, &listener, 0, 1)?;
    let mut compound: Vec<(Command, &[u8])> = Vec::new();
    while let Some(([command, related, low, high], rest)) = bytes.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (body, more) = rest.split_at(len);
        bytes = more;
        let Some(command) = Command::from_code(u16::from(command % 20)) else {
            continue;
        };
        if related & 1 == 0 && !client.send(&std::mem::take(&mut compound)) {
            break;
        }
        compound.push((command, body));
    }
    client.send(&compound);
    client.end();
    server.register().end_durables();
    Ok(())
}

/// Sends the requests of three clients. The first two have the same user and client GUID. Each
/// request is preceded by the number of its client. The number 3 means that a client loses its
/// connection and reconnects.
///
/// # Errors
/// The system's, for sockets.
pub(crate) fn connections(volume: &Arc<Volume>, mut bytes: &[u8]) -> io::Result<()> {
    const USERS: [usize; 3] = [0, 0, 1];
    let server = Server::new(config(volume))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut sessions = 1;
    let mut clients = Vec::new();
    for user in USERS {
        clients.push(Client::new(&server, &listener, user, sessions)?);
        sessions += 1;
    }
    while let Some(([whose, command, related, low, high], rest)) = bytes.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (body, more) = rest.split_at(len);
        bytes = more;
        let at = usize::from(whose % 4);
        let command = Command::from_code(u16::from(command % 20));
        let ended = match (clients.get_mut(at), command) {
            (None, _) => usize::from(*related) % USERS.len(),
            (Some(client), Some(command)) => match client.send(&[(command, body)]) {
                true => continue,
                false => at,
            },
            (Some(_), None) => continue,
        };
        if let (Some(client), Some(user)) = (clients.get_mut(ended), USERS.get(ended)) {
            client.end();
            *client = Client::new(&server, &listener, *user, sessions)?;
            sessions += 1;
        }
    }
    clients.iter().for_each(Client::end);
    server.register().end_durables();
    Ok(())
}

fn config(volume: &Arc<Volume>) -> Config {
    let mut config = Config::new("SERVER", || Time::EPOCH);
    config.users = vec![
        User::with_password("user", "pass", Cred::root()),
        User::with_password("other", "pass", Cred::new(1000, 1000)),
    ];
    config.shares = vec![Share::new("share", Arc::clone(volume))];
    config.signing_required = false;
    config.max_dialect = Dialect::Smb302;
    // There is only one thread, so nothing may wait.
    config.limits.waiting = 0;
    config.limits.io = 64 << 10;
    config.limits.failed_logon_delay = Duration::ZERO;
    config
}

impl Client {
    /// Returns a client that has logged on as the user at this place of the configuration.
    fn new(server: &Server, listener: &TcpListener, user: usize, session: u64) -> io::Result<Self> {
        // This is not an address of this host, so the owner of the client's socket is not looked
        // up.
        const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        let socket = TcpStream::connect(listener.local_addr()?)?;
        socket.set_nonblocking(true)?;
        // A closed port would otherwise be blocked for a minute, and there are only 28,000.
        sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
        let (theirs, _) = listener.accept()?;
        let conn = Arc::new(Conn::new(server.register(), theirs, PEER)?);
        let mut client = Self {
            conn,
            worker: Arc::default(),
            socket,
            next_id: 0,
            session,
            tree: 1,
        };
        let mut hello = Out::new();
        hello
            .u16(36)
            .u16(1)
            .u16(1)
            .u16(0)
            .u32(0x7f)
            .bytes(&[user as u8; 16]);
        hello.u64(0).u16(Dialect::Smb302.code());
        client.send(&[(Command::Negotiate, &hello.done())]);
        client.log_on(server, user);
        Ok(client)
    }

    /// Ends the client's connection, as if it were lost.
    fn end(&self) {
        self.conn.link.close();
        self.conn.end_logons();
    }

    fn log_on(&self, server: &Server, place: usize) {
        let keys = Keys::derive(
            &[1; 16],
            Dialect::Smb302,
            Algorithm::AesCmac,
            None,
            &Preauth::START,
        );
        let register = server.register();
        let shared = &register.shared;
        let Some(user) = shared.config.users.get(place) else {
            return;
        };
        let logon = Arc::new(Logon::new(
            self.session,
            user,
            shared.budget(place),
            keys,
            false,
            false,
        ));
        let mut message = Header::default().emit().to_vec();
        let path: Vec<u8> = "\\\\s\\share"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let mut body = Out::new();
        body.u16(9).u16(0).u16(72).len16(path.len()).bytes(&path);
        message.extend(body.done());
        let member = Arc::new(Member::new(logon));
        let joined = tree::connect(&self.conn, &member, &message);
        assert_eq!(joined.map(|(id, _)| id).ok(), Some(self.tree));
        self.conn.members.insert(Arc::clone(&member));
        register.add_logon(&self.conn, &member);
    }

    /// Sends requests as one message. Returns `false` once the connection must end.
    fn send(&mut self, requests: &[(Command, &[u8])]) -> bool {
        let mut message = Vec::new();
        for (at, (command, body)) in requests.iter().enumerate() {
            let is_last = at + 1 == requests.len();
            let len = 64 + body.len().next_multiple_of(8);
            let header = Header {
                credit_charge: 1,
                command: command.code(),
                credits: 32,
                message_id: self.next_id,
                tree_id: self.tree,
                session_id: self.session,
                flags: if at > 0 { flags::RELATED } else { 0 },
                next_command: if is_last { 0 } else { len as u32 },
                ..Header::default()
            };
            self.next_id += 1;
            message.extend(header.emit());
            message.extend_from_slice(body);
            if !is_last {
                message.resize(message.len().next_multiple_of(8), 0);
            }
        }
        if requests.is_empty() {
            return true;
        }
        let sent = dispatch::message(&self.conn, &self.worker, &mut message, None);
        let mut taken = [0; 4096];
        while matches!(self.socket.read(&mut taken), Ok(1..)) {}
        sent.is_ok() && !self.conn.link.is_closed()
    }
}
