//! One connection: messages, signatures, and the thread that receives.

use crate::logon;
use crate::status;
use crate::wire::{Body, HEADER_LEN, u16_at, u32_at, u64_at, utf16};
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::{Condvar, Mutex};
use sha2::Sha256;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const SMB_2_1: u16 = 0x0210;
const SIGNED: u32 = 8;
const RELATED_OPERATIONS: u32 = 4;
/// Stands for the file that the request before opened (MS-SMB2 3.3.5.2.7.2).
pub(crate) const RELATED: [u8; 16] = [0xff; 16];
/// How long a reply may take; longer than any lease may take to break.
const PATIENCE: Duration = Duration::from_secs(120);

/// Codes of commands.
pub(crate) mod command {
    pub(crate) const NEGOTIATE: u16 = 0;
    pub(crate) const SESSION_SETUP: u16 = 1;
    pub(crate) const LOGOFF: u16 = 2;
    pub(crate) const TREE_CONNECT: u16 = 3;
    pub(crate) const CREATE: u16 = 5;
    pub(crate) const CLOSE: u16 = 6;
    pub(crate) const FLUSH: u16 = 7;
    pub(crate) const READ: u16 = 8;
    pub(crate) const WRITE: u16 = 9;
    pub(crate) const LOCK: u16 = 10;
    pub(crate) const IOCTL: u16 = 11;
    pub(crate) const ECHO: u16 = 13;
    pub(crate) const QUERY_DIRECTORY: u16 = 14;
    pub(crate) const CHANGE_NOTIFY: u16 = 15;
    pub(crate) const QUERY_INFO: u16 = 16;
    pub(crate) const SET_INFO: u16 = 17;
    pub(crate) const OPLOCK_BREAK: u16 = 18;
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// The server answered with this status.
    Status(u32),
    /// The connection ended.
    Gone,
}

/// A lease is being broken (MS-SMB2 2.2.23.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBreak {
    pub key: [u8; 16],
    pub from: u32,
    pub to: u32,
    /// Whether it must be acknowledged.
    pub must_ack: bool,
}

/// A user's way to a share over a connection: what asks. Several threads can use it.
#[derive(Clone)]
pub(crate) struct Link {
    connection: Arc<Connection>,
    session: u64,
    tree: u32,
    key: Option<[u8; 16]>,
}

/// A connection: its sending side, and the replies that were received and not yet taken.
struct Connection {
    sending: Mutex<Sending>,
    heard: Mutex<Heard>,
    more: Condvar,
}

struct Sending {
    stream: TcpStream,
    next_id: u64,
}

#[derive(Default)]
struct Heard {
    replies: HashMap<u64, Vec<u8>>,
    is_over: bool,
}

impl Connection {
    /// Closes the connection, as if the client had died.
    fn hang_up(&self) {
        // The server may have closed it already.
        let _ = self.sending.lock().stream.shutdown(Shutdown::Both);
    }

    /// Returns whether the final reply to a request has arrived.
    fn has_reply(&self, id: u64) -> bool {
        self.heard.lock().replies.contains_key(&id)
    }

    /// Waits for the final reply to a request.
    fn wait(&self, id: u64) -> Result<Vec<u8>, Fail> {
        let mut heard = self.heard.lock();
        loop {
            if let Some(reply) = heard.replies.remove(&id) {
                return Ok(reply);
            }
            if heard.is_over {
                return Err(Fail::Gone);
            }
            let late = self.more.wait_for(&mut heard, PATIENCE).timed_out();
            assert!(!late, "SMB request {id} was not answered");
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.hang_up();
    }
}

impl Link {
    /// Logs on and connects to a share.
    ///
    /// # Errors
    /// As [`Client::connect`](crate::Client::connect).
    pub(crate) fn connect(
        address: SocketAddr,
        user: &str,
        password: &str,
        share: &str,
        guid: [u8; 16],
    ) -> Result<(Self, Receiver<LeaseBreak>), Fail> {
        let stream = TcpStream::connect(address).map_err(|_| Fail::Gone)?;
        stream.set_nodelay(true).map_err(|_| Fail::Gone)?;
        let hearing = stream.try_clone().map_err(|_| Fail::Gone)?;
        let connection = Arc::new(Connection {
            sending: Mutex::new(Sending { stream, next_id: 0 }),
            heard: Mutex::default(),
            more: Condvar::new(),
        });
        let (tell, breaks) = channel();
        let weak = Arc::downgrade(&connection);
        thread::spawn(move || hear(hearing, &weak, &tell));
        let mut link = Self {
            connection,
            session: 0,
            tree: 0,
            key: None,
        };
        link.negotiate(guid)?;
        link.log_on(user, password)?;
        link.join(share)?;
        Ok((link, breaks))
    }

    fn negotiate(&self, guid: [u8; 16]) -> Result<(), Fail> {
        let body = Body::new(36).u16(1).u16(1).u16(0).u32(6);
        let body = body.bytes(&guid).zeros(8).u16(SMB_2_1);
        let reply = self.ask(command::NEGOTIATE, &body)?;
        assert_eq!(u16_at(&reply, HEADER_LEN + 4), SMB_2_1, "the dialect");
        Ok(())
    }

    fn log_on(&mut self, user: &str, password: &str) -> Result<(), Fail> {
        let setup = |token: &[u8]| {
            let body = Body::new(25).u8(0).u8(1).u32(0).u32(0);
            let body = body.u16(HEADER_LEN as u16 + 24).u16(token.len() as u16);
            body.u64(0).bytes(token)
        };
        let first = self.send(command::SESSION_SETUP, &setup(&logon::negotiate()))?;
        let reply = self.connection.wait(first)?;
        if u32_at(&reply, 8) != status::MORE_PROCESSING_REQUIRED {
            return Err(Fail::Status(u32_at(&reply, 8)));
        }
        self.session = u64_at(&reply, 40);
        let challenge = part(&reply, u16_at(&reply, 68).into(), u16_at(&reply, 70).into());
        let (token, key) = logon::authenticate(challenge, user, password);
        self.ask(command::SESSION_SETUP, &setup(&token))?;
        self.key = Some(key);
        Ok(())
    }

    fn join(&mut self, share: &str) -> Result<(), Fail> {
        let path = utf16(&format!("\\\\server\\{share}"));
        let body = Body::new(9).u16(0).u16(HEADER_LEN as u16 + 8);
        let body = body.u16(path.len() as u16).bytes(&path);
        let reply = self.ask(command::TREE_CONNECT, &body)?;
        self.tree = u32_at(&reply, 36);
        Ok(())
    }

    /// Closes the connection, as if the client had died.
    pub(crate) fn hang_up(&self) {
        self.connection.hang_up();
    }

    /// Returns whether the final reply to a request has arrived.
    pub(crate) fn has_reply(&self, id: u64) -> bool {
        self.connection.has_reply(id)
    }

    /// Sends a request and returns the whole reply, including the header.
    pub(crate) fn ask(&self, command: u16, body: &Body) -> Result<Vec<u8>, Fail> {
        let id = self.send(command, body)?;
        let reply = self.connection.wait(id)?;
        match u32_at(&reply, 8) {
            0 => Ok(reply),
            failed => Err(Fail::Status(failed)),
        }
    }

    /// Sends related requests in one message, and returns the whole reply to each. The requests after
    /// the first can use [`RELATED`] for the file that the first one opens.
    ///
    /// # Errors
    /// The status of the first request that failed.
    pub(crate) fn ask_related(&self, requests: &[(u16, Body)]) -> Result<Vec<Vec<u8>>, Fail> {
        let first = self.send_all(requests)?;
        let wait = |id| self.connection.wait(id);
        let ids = first..first + requests.len() as u64;
        let replies: Vec<Vec<u8>> = ids.map(wait).collect::<Result<_, _>>()?;
        let failed = replies.iter().map(|reply| u32_at(reply, 8));
        match failed.into_iter().find(|status| *status != 0) {
            Some(failed) => Err(Fail::Status(failed)),
            None => Ok(replies),
        }
    }

    pub(crate) fn send(&self, command: u16, body: &Body) -> Result<u64, Fail> {
        self.send_all(&[(command, body.clone())])
    }

    /// Sends requests in one message. Returns the id of the first; those of the others follow it.
    fn send_all(&self, requests: &[(u16, Body)]) -> Result<u64, Fail> {
        let mut sending = self.connection.sending.lock();
        let first = sending.next_id;
        let mut whole = Vec::new();
        for (index, (command, body)) in requests.iter().enumerate() {
            let header = Header {
                command: *command,
                id: first + index as u64,
                is_related: index > 0,
                has_next: index + 1 < requests.len(),
            };
            whole.extend(self.message(&header, body));
        }
        sending.next_id += requests.len() as u64;
        let framed = [&(whole.len() as u32).to_be_bytes()[..], &whole].concat();
        let sent = sending.stream.write_all(&framed);
        sent.map_err(|_| Fail::Gone)?;
        Ok(first)
    }

    /// Returns a signed request. One that another follows is filled up to a multiple of 8 bytes.
    fn message(&self, header: &Header, body: &Body) -> Vec<u8> {
        let signed = if self.key.is_some() { SIGNED } else { 0 };
        let related = if header.is_related {
            RELATED_OPERATIONS
        } else {
            0
        };
        let len = HEADER_LEN + body.0.len();
        let (len, next) = match header.has_next {
            true => (len.next_multiple_of(8), len.next_multiple_of(8)),
            false => (len, 0),
        };
        let head = Body::default().bytes(b"\xFESMB").u16(64).u16(1).u32(0);
        let head = head.u16(header.command).u16(64).u32(signed | related);
        let head = head.u32(next as u32).u64(header.id);
        let head = head.u32(0).u32(self.tree).u64(self.session).zeros(16);
        let mut message = head.bytes(&body.0).0;
        message.resize(len, 0);
        if let Some(key) = &self.key {
            let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length will do");
            mac.update(&message);
            let whole = mac.finalize().into_bytes();
            message[48..64].copy_from_slice(&whole[..16]);
        }
        message
    }
}

/// What differs between the headers of requests.
struct Header {
    command: u16,
    id: u64,
    is_related: bool,
    has_next: bool,
}

/// Returns a part of a reply.
pub(crate) fn part(reply: &[u8], at: usize, len: usize) -> &[u8] {
    reply.get(at..at + len).expect("within the reply")
}

fn hear(
    mut stream: TcpStream,
    connection: &std::sync::Weak<Connection>,
    breaks: &Sender<LeaseBreak>,
) {
    while let Some(frame) = receive(&mut stream) {
        let Some(connection) = connection.upgrade() else {
            return;
        };
        for message in messages(&frame) {
            hear_message(message, &connection, breaks);
        }
    }
    if let Some(connection) = connection.upgrade() {
        connection.heard.lock().is_over = true;
        connection.more.notify_all();
    }
}

/// Returns the messages of a frame (MS-SMB2 2.2.1.2, `NextCommand`).
fn messages(mut frame: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    loop {
        match u32_at(frame, 20) as usize {
            0 => {
                all.push(frame);
                return all;
            }
            next => {
                let (message, rest) = frame.split_at(next);
                all.push(message);
                frame = rest;
            }
        }
    }
}

fn hear_message(message: &[u8], connection: &Connection, breaks: &Sender<LeaseBreak>) {
    let (id, command) = (u64_at(message, 24), u16_at(message, 12));
    if id == u64::MAX && command == command::OPLOCK_BREAK {
        // The receiver may have been dropped.
        let _ = breaks.send(lease_break(message));
    } else if u32_at(message, 8) != status::PENDING {
        connection.heard.lock().replies.insert(id, message.to_vec());
        connection.more.notify_all();
    }
}

fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len).ok()?;
    let mut message = vec![0; u32::from_be_bytes(len) as usize];
    stream.read_exact(&mut message).ok()?;
    (message.len() > HEADER_LEN).then_some(message)
}

fn lease_break(message: &[u8]) -> LeaseBreak {
    let body = &message[HEADER_LEN..];
    assert_eq!(u16_at(body, 0), 44, "a break of a lease");
    LeaseBreak {
        key: body[8..24].try_into().expect("a key"),
        from: u32_at(body, 24),
        to: u32_at(body, 28),
        must_ack: u32_at(body, 4) & 1 != 0,
    }
}
