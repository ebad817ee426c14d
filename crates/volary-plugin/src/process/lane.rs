//! One connection to a worker: a request and its reply, with a time limit.

use crate::wire::{Caller, Field, Head, REPLY_MAX, Request, Tag, error};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use volary_core::{Cancel, Ctx, Error};

/// How often a waiting call checks whether the caller has lost interest.
const SLICE: Duration = Duration::from_millis(50);
/// The buffer for a reply whose length is not known yet.
const ROOM: usize = 16 << 10;

/// Why there is no reply.
#[derive(Debug)]
pub(super) enum Broken {
    /// The worker has ended.
    Ended,
    /// The call takes longer than the limit.
    Late,
    /// The worker violates the protocol.
    Nonsense,
}

/// The result of waiting for a worker.
pub(super) type Told<T> = std::result::Result<T, Broken>;

/// How long a call waits, and whether the caller still wants the result.
#[derive(Clone, Copy)]
pub(super) struct Wait<'a> {
    pub(super) until: Instant,
    pub(super) cancel: Option<&'a Cancel>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a process may take is no matter of a volume"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

pub(super) struct Lane {
    socket: UnixStream,
    last: u64,
    body: Vec<u8>,
}

impl Lane {
    /// # Errors
    /// The host system's.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        let socket = UnixStream::from(socket);
        socket.set_read_timeout(Some(SLICE))?;
        socket.set_write_timeout(Some(SLICE))?;
        Ok(Self {
            socket,
            last: 0,
            body: Vec::new(),
        })
    }

    /// Sends a request, and waits for the reply. File content goes to `into` if that is given,
    /// anything else to the body. Returns the reply's length.
    ///
    /// # Errors
    /// That of the reply; [`Broken`] if there is none.
    pub(super) fn ask(
        &mut self,
        cx: &Ctx<'_>,
        request: &Request<'_>,
        into: Option<&mut [u8]>,
        wait: Wait<'_>,
    ) -> Told<Result<usize, Error>> {
        self.last += 1;
        let mut frame = vec![0; Head::LEN];
        let caller = Caller {
            uid: cx.cred.uid,
            gid: cx.cred.gid,
            groups: cx.cred.groups.to_vec(),
            now: cx.now,
        };
        caller.put(&mut frame);
        request.put(&mut frame);
        let head = self.head(Tag::Request, frame.len() - Head::LEN);
        if let Some(start) = frame.get_mut(..Head::LEN) {
            start.copy_from_slice(&head.to_bytes());
        }
        self.send(&frame, wait)?;
        self.receive(self.last, into, wait)
    }

    /// Waits for the first message of a worker.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub(super) fn hello(&mut self, wait: Wait<'_>) -> Told<Result<usize, Error>> {
        self.receive(0, None, wait)
    }

    /// Returns the body of the last reply.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    fn head(&self, tag: Tag, len: usize) -> Head {
        Head {
            len: u32::try_from(len).unwrap_or(u32::MAX),
            tag,
            id: self.last,
            status: 0,
        }
    }

    fn send(&self, mut rest: &[u8], wait: Wait<'_>) -> Told<()> {
        while !rest.is_empty() {
            let mut none = SendAncillaryBuffer::default();
            let slices = [IoSlice::new(rest)];
            // The host may not have ignored SIGPIPE.
            match sendmsg(&self.socket, &slices, &mut none, SendFlags::NOSIGNAL) {
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) if now() < wait.until => {}
                Err(rustix::io::Errno::AGAIN) => return Err(Broken::Late),
                Err(_) => return Err(Broken::Ended),
            }
        }
        Ok(())
    }

    fn receive(
        &mut self,
        id: u64,
        into: Option<&mut [u8]>,
        wait: Wait<'_>,
    ) -> Told<Result<usize, Error>> {
        let mut own = std::mem::take(&mut self.body);
        own.resize(ROOM, 0);
        let is_content = into.is_some();
        let room = into.unwrap_or(&mut own);
        let done = self.receive_into(id, room, is_content, wait);
        match done {
            Ok(Received::Done(len, rest)) => {
                if !is_content {
                    own.truncate(len - rest.len());
                    own.extend_from_slice(&rest);
                    self.body = own;
                }
                Ok(Ok(len))
            }
            Ok(Received::Failed(e)) => {
                self.body = own;
                Ok(Err(e))
            }
            Err(broken) => Err(broken),
        }
    }

    fn receive_into(
        &self,
        id: u64,
        room: &mut [u8],
        is_content: bool,
        wait: Wait<'_>,
    ) -> Told<Received> {
        let mut input = Input {
            lane: self,
            wait,
            told: false,
        };
        let mut head = [0; Head::LEN];
        let mut got = 0;
        while got < Head::LEN {
            let rest = head.get_mut(got..).unwrap_or_default();
            got += input.some(&mut [IoSliceMut::new(rest), IoSliceMut::new(room)])?;
        }
        let head = Head::parse(&head).ok_or(Broken::Nonsense)?;
        let (len, mut have) = (head.len as usize, got - Head::LEN);
        let fits = if is_content { room.len() } else { REPLY_MAX };
        let is_right = head.tag == Tag::Reply && head.id == id && have <= len;
        if !is_right || len > fits && head.status == 0 {
            return Err(Broken::Nonsense);
        }
        if head.status != 0 {
            let mut words = room.get(..have).unwrap_or_default().to_vec();
            if len > ROOM {
                return Err(Broken::Nonsense);
            }
            words.resize(len, 0);
            input.all(words.get_mut(have..).unwrap_or_default())?;
            let e = error(head.status, &words).ok_or(Broken::Nonsense)?;
            return Ok(Received::Failed(e));
        }
        let here = len.min(room.len());
        input.all(room.get_mut(have..here).unwrap_or_default())?;
        have = here;
        let mut rest = vec![0; len - have];
        input.all(&mut rest)?;
        Ok(Received::Done(len, rest))
    }
}

enum Received {
    /// The total length, and the bytes that did not fit.
    Done(usize, Vec<u8>),
    Failed(Error),
}

/// Reads with a time limit. Tells the worker once if the caller has lost interest.
struct Input<'a> {
    lane: &'a Lane,
    wait: Wait<'a>,
    told: bool,
}

impl Input<'_> {
    fn some(&mut self, into: &mut [IoSliceMut<'_>]) -> Told<usize> {
        loop {
            match (&self.lane.socket).read_vectored(into) {
                Ok(0) => return Err(Broken::Ended),
                Ok(n) => return Ok(n),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.waited()?,
                Err(_) => return Err(Broken::Ended),
            }
        }
    }

    fn all(&mut self, mut into: &mut [u8]) -> Told<()> {
        while !into.is_empty() {
            let n = self.some(&mut [IoSliceMut::new(into)])?;
            into = into.get_mut(n..).unwrap_or_default();
        }
        Ok(())
    }

    fn waited(&mut self) -> Told<()> {
        if now() >= self.wait.until {
            return Err(Broken::Late);
        }
        if !self.told && self.wait.cancel.is_some_and(Cancel::is_set) {
            self.told = true;
            let head = self.lane.head(Tag::Cancel, 0);
            self.lane.send(&head.to_bytes(), self.wait)?;
        }
        Ok(())
    }
}
