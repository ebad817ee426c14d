//! [`Frames`]: receives messages from the socket, within their deadlines.
//!
//! Each message is preceded by a zero byte and its length in three bytes (MS-SMB2 2.1).

use super::members::Members;
use super::proof::Proof;
use crate::client::{Link, Logon};
use crate::clock::now;
use crate::config::Limits;
use std::io::{self, Read};
use std::mem;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use volary_session::Linger;

/// How often a waiting reader checks the deadlines.
const TICK: Duration = Duration::from_secs(1);
/// Bytes that are read at once into a buffer, and so copied. Longer messages are read directly into
/// their place.
const AHEAD: usize = 8 * 1024;
/// The longest message beyond the payload of a write, for headers and the rest.
const OVERHEAD: usize = 64 * 1024;
/// The memory for messages that is kept between them.
const KEPT: usize = 4 << 20;
/// The longest message for which each thread has its own memory.
const SHORT: usize = 16 * 1024;
/// Bytes of a long message that are read before they are processed.
const PIECE: usize = 128 * 1024;

/// A message in the first bytes of its buffer.
pub(super) struct Frame {
    pub(super) len: usize,
    /// Who signed it, if this is already known.
    pub(super) signer: Option<Arc<Logon>>,
}

/// The receiving side of a connection.
#[derive(Debug)]
pub(super) struct Frames {
    socket: Arc<TcpStream>,
    ahead: Box<[u8]>,
    /// The range of `ahead` that has not been taken yet.
    start: usize,
    end: usize,
    linger: Linger,
    /// The memory of a long message, for the next one.
    spare: Vec<u8>,
}

impl Frames {
    pub(super) fn new(socket: Arc<TcpStream>, limits: &Limits) -> io::Result<Self> {
        socket.set_read_timeout(Some(TICK.min(limits.logon_time)))?;
        Ok(Self {
            socket,
            ahead: vec![0; AHEAD].into(),
            start: 0,
            end: 0,
            linger: Linger::new(now),
            spare: Vec::new(),
        })
    }

    /// Reads the next message into the first bytes of `frame`. Returns `None` if the connection
    /// must end: it was closed, a deadline passed, or the message is too long.
    pub(super) fn next(
        &mut self,
        link: &Link,
        members: &Members,
        frame: &mut Vec<u8>,
    ) -> Option<Frame> {
        let limits = link.limits();
        let mut since = now();
        if members.is_late(since, limits.logon_time) {
            link.log_sent_away("nobody has logged on in time");
            return None;
        }
        let mut idle = true;
        if self.start == self.end {
            self.linger.end_on(&self.socket);
        }
        self.await_bytes(4, |this| {
            if idle && this.start < this.end {
                idle = false;
                since = now();
            }
            this.may_wait(link, members, idle, since)
        })?;
        self.linger.begin();
        if idle {
            // The message began just now, however long the connection was silent before.
            since = now();
        }
        let head: [u8; 4] = self.ahead.get(self.start..)?.first_chunk().copied()?;
        self.start += 4;
        let len = u32::from_be_bytes(head) as usize;
        let len_max = if members.is_empty() {
            limits.message_before_logon
        } else {
            (limits.io as usize).saturating_add(OVERHEAD)
        };
        // If the first byte is not 0, the length is too large.
        if len > len_max {
            return None;
        }
        self.fit(frame, len);
        let signer = self.fill(link, members, frame.get_mut(..len)?, since)?;
        Some(Frame { len, signer })
    }

    /// Makes room in `frame` for a message of `len` bytes. The memory for long messages stays here
    /// while a thread carries out a short one, which may take any time.
    fn fit(&mut self, frame: &mut Vec<u8>, len: usize) {
        match (len > SHORT, frame.len() > SHORT) {
            (true, false) => *frame = mem::take(&mut self.spare),
            (false, true) => self.spare = mem::take(frame),
            _ => {}
        }
        if frame.len() < len || frame.len() > KEPT.max(len) {
            frame.resize(len, 0);
            frame.shrink_to(KEPT.max(len));
        }
    }

    /// Returns whether a reader may wait for another tick. `since` is when the message began, or on
    /// an idle connection when the previous message was done.
    fn may_wait(&self, link: &Link, members: &Members, idle: bool, since: Instant) -> bool {
        let now = now();
        if link.is_closed() {
            return false;
        }
        let limits = link.limits();
        let since = now.duration_since(since);
        let reason = if members.is_late(now, limits.logon_time) {
            "nobody has logged on in time"
        } else if !idle && since >= limits.message_time {
            "a message came too slowly"
        } else if idle && since >= limits.idle_time && !members.has_trees() {
            "it was idle"
        } else {
            return true;
        };
        link.log_sent_away(reason);
        false
    }

    /// Returns whether more bytes have arrived after the last message.
    pub(super) fn has_more(&self) -> bool {
        self.start < self.end || rustix::io::ioctl_fionread(&self.socket).is_ok_and(|n| n > 0)
    }

    /// Reads until there are `len` bytes ahead. Each time some are missing, `may_wait` decides
    /// whether to go on.
    fn await_bytes(&mut self, len: usize, mut may_wait: impl FnMut(&Self) -> bool) -> Option<()> {
        if self.end - self.start >= len {
            return Some(());
        }
        self.ahead.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < len {
            match read(&self.socket, self.ahead.get_mut(self.end..)?) {
                Came::Bytes(n) => self.end += n,
                Came::Nothing => {}
                Came::End => return None,
            }
            if self.end < len && !may_wait(self) {
                return None;
            }
        }
        Some(())
    }

    /// Reads a whole message. Returns who signed it, if this is known then.
    fn fill(
        &mut self,
        link: &Link,
        members: &Members,
        out: &mut [u8],
        since: Instant,
    ) -> Option<Option<Arc<Logon>>> {
        let mut proof = Proof::new(out.len());
        let mut at = self.take_ready(out);
        let rest = out.len() - at;
        if rest < AHEAD / 2 && rest > 0 {
            // A short rest goes through the buffer, because the next message may arrive with it.
            self.await_bytes(rest, |this| this.may_wait(link, members, false, since))?;
            at += self.take_ready(out.get_mut(at..)?);
        }
        while at < out.len() {
            let end = out.len().min(at.saturating_add(PIECE));
            match read(&self.socket, out.get_mut(at..end)?) {
                Came::Bytes(n) => at += n,
                Came::Nothing => {}
                Came::End => return None,
            }
            if at < out.len() && !self.may_wait(link, members, false, since) {
                return None;
            }
            proof.hear(members, out.get(..at)?);
        }
        Some(proof.end(out))
    }

    /// Moves buffered bytes to the start of `out`, as many as fit.
    fn take_ready(&mut self, out: &mut [u8]) -> usize {
        let ready = self.ahead.get(self.start..self.end).unwrap_or_default();
        let len = ready.len().min(out.len());
        for (to, from) in out.iter_mut().zip(ready) {
            *to = *from;
        }
        self.start += len;
        len
    }
}

enum Came {
    Bytes(usize),
    Nothing,
    End,
}

fn read(mut socket: &TcpStream, out: &mut [u8]) -> Came {
    match socket.read(out) {
        Ok(0) => Came::End,
        Ok(n) => Came::Bytes(n),
        Err(e) => match e.kind() {
            io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Came::Nothing
            }
            _ => Came::End,
        },
    }
}
