//! [`Client`]: a client that passes its messages to the server itself.

use crate::auth::tests::Client as Ntlm;
use crate::client::Broken;
use crate::client::Worker;
use crate::conn::{Conn, dispatch};
use crate::crypto::{Algorithm, Cipher, Keys, Preauth, Role};
use crate::wire::Dialect;
use crate::wire::header::{HEADER_LEN, flags};
use crate::wire::{Command, Cursor, Header, Out, Status};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

type Tamper = Box<dyn FnMut(&mut Vec<u8>)>;

pub(super) struct Client {
    pub(super) conn: Arc<Conn>,
    socket: TcpStream,
    worker: Arc<Worker>,
    dialect: Dialect,
    signing: Option<u16>,
    cipher: Option<u16>,
    pub(super) next_id: u64,
    pub(super) session: u64,
    pub(super) tree: u32,
    /// The hash after the negotiation, from which each session starts.
    preauth: Preauth,
    pub(super) keys: Option<Keys>,
    /// Whether messages are encrypted.
    pub(super) seals: bool,
    /// If set, changes each message of the logon in transit.
    pub(super) tamper: Option<Tamper>,
}

/// A reply.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) header: Header,
    pub(super) message: Vec<u8>,
}

impl Heard {
    pub(super) fn status(&self) -> Status {
        Status(self.header.status)
    }
}

impl Client {
    pub(super) fn new(
        conn: Arc<Conn>,
        socket: TcpStream,
        dialect: Dialect,
        signing: Option<u16>,
        cipher: Option<u16>,
    ) -> Self {
        let timeout = Some(Duration::from_millis(1));
        socket.set_read_timeout(timeout).expect("a time-out");
        Self {
            conn,
            socket,
            worker: Arc::default(),
            dialect,
            signing,
            cipher,
            next_id: 0,
            session: 0,
            tree: 0,
            preauth: Preauth::START,
            keys: None,
            seals: false,
            tamper: None,
        }
    }

    /// Passes a message to the server. Returns the replies, if there are any.
    pub(super) fn exchange(&mut self, message: &[u8]) -> Result<Vec<Heard>, Broken> {
        dispatch::message(&self.conn, &self.worker, &mut message.to_vec(), None)?;
        self.hear()
    }

    /// Returns the replies that have arrived.
    pub(super) fn hear(&mut self) -> Result<Vec<Heard>, Broken> {
        let mut len = [0; 4];
        if self.socket.read_exact(&mut len).is_err() {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; u32::from_be_bytes(len) as usize];
        self.socket.read_exact(&mut bytes).map_err(|_| Broken)?;
        if bytes.starts_with(&crate::crypto::SEALED_MAGIC) {
            let (opener, _) = self
                .keys
                .as_ref()
                .and_then(|k| k.seal.as_ref())
                .ok_or(Broken)?;
            opener.open(&mut bytes).map_err(|_| Broken)?;
            bytes.drain(..crate::crypto::TRANSFORM_LEN);
        }
        let mut all = Vec::new();
        let mut rest = &bytes[..];
        loop {
            let header = Header::parse(rest).map_err(|_| Broken)?;
            let next = header.next_command as usize;
            let (message, more) = rest.split_at(if next == 0 { rest.len() } else { next });
            all.push(Heard {
                header,
                message: message.to_vec(),
            });
            if next == 0 {
                return Ok(all);
            }
            rest = more;
        }
    }

    /// Sends bytes over the socket, for a connection that reads them itself.
    pub(super) fn say(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("a connection");
    }

    /// Waits until the server ends the connection.
    pub(super) fn await_end(&mut self) {
        let patience = Some(Duration::from_secs(60));
        self.socket.set_read_timeout(patience).expect("a time-out");
        let end = self.socket.read(&mut [0; 64]);
        let reset = std::io::ErrorKind::ConnectionReset;
        assert!(end.map_or_else(|e| e.kind() == reset, |len| len == 0));
    }

    /// Returns a request, neither signed nor sealed, which uses up `charge` ids.
    pub(super) fn request(&mut self, command: Command, charge: u16, body: &[u8]) -> Vec<u8> {
        let header = Header {
            credit_charge: charge,
            command: command.code(),
            credits: 64,
            message_id: self.next_id,
            tree_id: self.tree,
            session_id: self.session,
            ..Header::default()
        };
        self.next_id += u64::from(charge.max(1));
        [&header.emit()[..], body].concat()
    }

    /// Returns a request that is signed or encrypted as the session requires.
    pub(super) fn secured(&mut self, command: Command, body: &[u8]) -> Vec<u8> {
        let message = self.request(command, 1, body);
        if self.seals {
            self.seal(&message)
        } else {
            self.sign(message)
        }
    }

    pub(super) fn sign(&self, mut message: Vec<u8>) -> Vec<u8> {
        let Some(keys) = &self.keys else {
            return message;
        };
        message[16] |= flags::SIGNED as u8;
        let parsed = Header::parse(&message).expect("a header");
        let role = if parsed.command == Command::Cancel.code() {
            Role::ClientCancel
        } else {
            Role::Client
        };
        keys.signer.sign(&mut message, parsed.message_id, role);
        message
    }

    pub(super) fn seal(&self, message: &[u8]) -> Vec<u8> {
        let keys = self.keys.as_ref().expect("keys");
        let (_, sealer) = keys.seal.as_ref().expect("encryption");
        let mut message = message.to_vec();
        let header = sealer.seal(self.session, &mut message);
        [header, message].concat()
    }

    /// Sends a request as the session requires. Returns the only reply.
    pub(super) fn ask(&mut self, command: Command, body: &[u8]) -> Result<Heard, Broken> {
        let message = self.secured(command, body);
        self.exchange(&message)?.pop().ok_or(Broken)
    }

    fn ask_openly(&mut self, command: Command, body: &[u8]) -> Result<(Vec<u8>, Heard), Broken> {
        let message = self.request(command, 1, body);
        let mut sent = message.clone();
        if let Some(tamper) = &mut self.tamper {
            tamper(&mut sent);
        }
        let heard = self.exchange(&sent)?.pop().ok_or(Broken)?;
        Ok((message, heard))
    }

    pub(super) fn negotiate_body(&self) -> Vec<u8> {
        let mut out = Out::new();
        out.u16(36).u16(1).u16(1).u16(0).u32(0x7F).bytes(&[7; 16]);
        out.u32(104).u16(3).u16(0).u16(self.dialect.code()).zeros(2);
        out.u16(1).u16(6).u32(0).u16(1).u16(0).u16(1).zeros(2);
        let lists = [(2, self.cipher), (8, self.signing)];
        for (kind, chosen) in lists {
            out.u16(kind)
                .u16(4)
                .u32(0)
                .u16(1)
                .u16(chosen.unwrap_or(0xFFFF))
                .zeros(4);
        }
        out.done()
    }

    /// Negotiates, and logs on to a first session.
    pub(super) fn log_on(
        &mut self,
        user: &'static str,
        password: &'static str,
    ) -> Result<(), Status> {
        self.negotiate()?;
        self.set_up(user, password)
    }

    pub(super) fn negotiate(&mut self) -> Result<(), Status> {
        let body = self.negotiate_body();
        let (sent, heard) = self
            .ask_openly(Command::Negotiate, &body)
            .map_err(|_| Status::CONNECTION_DISCONNECTED)?;
        ok(&heard, Status::SUCCESS)?;
        self.preauth.mix(&[&sent]);
        self.preauth.mix(&[&heard.message]);
        Ok(())
    }

    /// Sets up a new session, up to the keys and the check of the last reply's signature.
    pub(super) fn set_up(
        &mut self,
        user: &'static str,
        password: &'static str,
    ) -> Result<(), Status> {
        let broken = |_: Broken| Status::CONNECTION_DISCONNECTED;
        let mut preauth = self.preauth;
        (self.session, self.tree) = (0, 0);
        let ntlm = Ntlm::new(user, password);
        let body = setup_body(&ntlm.negotiate);
        let (sent, heard) = self
            .ask_openly(Command::SessionSetup, &body)
            .map_err(broken)?;
        ok(&heard, Status::MORE_PROCESSING_REQUIRED)?;
        preauth.mix(&[&sent]);
        preauth.mix(&[&heard.message]);
        self.session = heard.header.session_id;
        let challenge = heard.message.get(HEADER_LEN + 8..).unwrap_or_default();
        let (answer, session_key) = ntlm.answer(challenge);
        let body = setup_body(&answer);
        let (sent, heard) = self
            .ask_openly(Command::SessionSetup, &body)
            .map_err(broken)?;
        ok(&heard, Status::SUCCESS)?;
        preauth.mix(&[&sent]);
        let has_choice = self.dialect == Dialect::Smb311;
        let chosen = self.signing.filter(|_| has_choice);
        let algorithm = chosen.and_then(Algorithm::from_code);
        let keys = Keys::derive(
            &session_key,
            self.dialect,
            algorithm.unwrap_or(Algorithm::of(self.dialect)),
            self.cipher.and_then(Cipher::from_code),
            &preauth,
        );
        let id = heard.header.message_id;
        let is_right = keys.signer.verify(&heard.message, id, Role::Server);
        self.keys = Some(keys);
        if is_right {
            Ok(())
        } else {
            Err(Status::ACCESS_DENIED)
        }
    }

    pub(super) fn join(&mut self, share: &str) -> Result<(), Status> {
        let path: Vec<u8> = format!("\\\\server\\{share}")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let mut out = Out::new();
        out.u16(9).u16(0).u16(HEADER_LEN as u16 + 8);
        out.u16(path.len() as u16).bytes(&path);
        let heard = self.ask(Command::TreeConnect, &out.done());
        let heard = heard.map_err(|_| Status::CONNECTION_DISCONNECTED)?;
        ok(&heard, Status::SUCCESS)?;
        self.tree = heard.header.tree_id;
        Ok(())
    }
}

fn ok(heard: &Heard, wanted: Status) -> Result<(), Status> {
    if heard.status() == wanted {
        Ok(())
    } else {
        Err(heard.status())
    }
}

pub(super) fn setup_body(token: &[u8]) -> Vec<u8> {
    let mut out = Out::new();
    out.u16(25).u8(0).u8(1).u32(0).u32(0);
    out.u16(HEADER_LEN as u16 + 24).u16(token.len() as u16);
    out.u64(0).bytes(token);
    out.done()
}

/// Returns the number of credits that a reply grants.
pub(super) fn granted(heard: &Heard) -> u16 {
    let mut c = Cursor::new(&heard.message[14..]);
    c.u16().expect("a header")
}
