//! The wire format, implemented only for tests, so that the server is not tested with its own code.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An XDR encoder.
#[derive(Clone, Default)]
pub struct Args(pub Vec<u8>);

impl Args {
    pub fn new() -> Self {
        Self::default()
    }
    pub fn u32(mut self, n: u32) -> Self {
        self.0.extend(n.to_be_bytes());
        self
    }
    pub fn u64(mut self, n: u64) -> Self {
        self.0.extend(n.to_be_bytes());
        self
    }
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
    pub fn opaque(self, bytes: &[u8]) -> Self {
        let pad = [0; 3];
        let len = bytes.len();
        self.u32(len as u32)
            .raw(bytes)
            .raw(&pad[..(4 - len % 4) % 4])
    }
    /// An optional number: 1 and the number, or 0.
    pub fn maybe(self, n: Option<u32>) -> Self {
        match n {
            Some(n) => self.u32(1).u32(n),
            None => self.u32(0),
        }
    }
}

/// An XDR decoder that panics if the data is not as expected.
#[derive(Clone, Debug)]
pub struct Reply {
    bytes: Vec<u8>,
    at: usize,
}

impl Reply {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }
    pub fn take(&mut self, len: usize) -> &[u8] {
        let at = self.at;
        self.at += len;
        &self.bytes[at..self.at]
    }
    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }
    pub fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().unwrap())
    }
    pub fn bool(&mut self) -> bool {
        match self.u32() {
            0 => false,
            1 => true,
            n => panic!("{n} is no boolean"),
        }
    }
    pub fn opaque(&mut self) -> Vec<u8> {
        let len = self.u32() as usize;
        let bytes = self.take(len).to_vec();
        let pad = self.take((4 - len % 4) % 4).to_vec();
        assert!(pad.iter().all(|b| *b == 0), "padding");
        bytes
    }
    /// Asserts that all bytes were decoded.
    pub fn end(self) {
        assert_eq!(self.at, self.bytes.len(), "what is left of the answer");
    }
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }
}

/// The credentials of a call.
#[derive(Clone, Debug)]
pub enum Caller {
    Nobody,
    Sys(u32, u32, Vec<u32>),
}

impl Caller {
    fn write(&self, args: Args) -> Args {
        match self {
            Self::Nobody => args.u32(0).u32(0),
            Self::Sys(uid, gid, groups) => {
                let mut body = Args::new().u32(1).opaque(b"test").u32(*uid).u32(*gid);
                body = body.u32(groups.len() as u32);
                for group in groups {
                    body = body.u32(*group);
                }
                args.u32(1).opaque(&body.0)
            }
        }
    }
}

/// Encodes the header of a call, without the record mark.
pub fn call(xid: u32, (program, version, procedure): (u32, u32, u32), who: &Caller) -> Args {
    let head = Args::new().u32(xid).u32(0).u32(2);
    let head = head.u32(program).u32(version).u32(procedure);
    who.write(head).u32(0).u32(0)
}

/// A connection.
pub struct Wire {
    pub stream: TcpStream,
    xid: u32,
}

impl Wire {
    pub fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        Self { stream, xid: 1 }
    }

    pub fn send(&mut self, record: &[u8]) {
        let mark = (record.len() as u32 | 1 << 31).to_be_bytes();
        self.stream.write_all(&[&mark, record].concat()).unwrap();
    }

    /// Returns the next record, or `None` if the connection has ended.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let mut mark = [0; 4];
        self.stream.read_exact(&mut mark).ok()?;
        let len = u32::from_be_bytes(mark) & !(1 << 31);
        let mut record = vec![0; len as usize];
        self.stream.read_exact(&mut record).ok()?;
        Some(record)
    }

    pub fn next_xid(&mut self) -> u32 {
        self.xid += 1;
        self.xid
    }

    /// Sends a call, and returns its reply from after the message type on.
    pub fn ask(&mut self, what: (u32, u32, u32), who: &Caller, args: &Args) -> Reply {
        let xid = self.next_xid();
        self.send(&call(xid, what, who).raw(&args.0).0);
        let mut reply = Reply::new(self.receive().expect("an answer"));
        assert_eq!(reply.u32(), xid);
        assert_eq!(reply.u32(), 1, "a reply");
        reply
    }

    /// Makes a call, asserts that it is accepted, and returns the results of the procedure.
    pub fn call(&mut self, what: (u32, u32, u32), who: &Caller, args: &Args) -> Reply {
        let mut reply = self.ask(what, who, args);
        let head = [reply.u32(), reply.u32(), reply.u32(), reply.u32()];
        assert_eq!(head, [0, 0, 0, 0], "accepted, no verifier, success");
        reply
    }
}
