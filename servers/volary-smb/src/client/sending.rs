//! Sends replies and breaks, signed or sealed, to the socket.
//!
//! The threads of a connection send their replies themselves. Other threads that have something for
//! a client (a break, a change notification) put it in a queue, which a separate thread empties. So
//! a client that reads nothing delays nobody else.
//!
//! A reply is sent after everything that was queued before it. So a client learns of a break before
//! it gets the reply to the request that caused the break.

use super::buffers::Buffers;
use super::{Broken, Reply};
use crate::clock::now;
use crate::config::Limits;
use crate::crypto::Role;
use crate::wire::header::flags;
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// The sending side of a connection.
#[derive(Debug)]
pub(crate) struct Sending {
    socket: Mutex<Arc<TcpStream>>,
    queue: Mutex<Queue>,
    /// Memory of replies, for reuse.
    pub(crate) buffers: Buffers,
    time_max: Duration,
}

#[derive(Debug, Default)]
struct Queue {
    unsent: VecDeque<Reply>,
    /// Whether a thread is emptying the queue.
    is_emptied: bool,
}

impl Sending {
    pub(crate) fn new(socket: Arc<TcpStream>, limits: &Limits) -> io::Result<Self> {
        socket.set_write_timeout(Some(limits.send_time))?;
        Ok(Self {
            socket: Mutex::new(socket),
            queue: Mutex::default(),
            buffers: Buffers::default(),
            time_max: limits.send_time,
        })
    }

    fn write(&self, socket: &TcpStream, mut slices: &mut [IoSlice<'_>]) -> Result<(), Broken> {
        let mut since = None;
        loop {
            // For a client that is gone, this must return an error rather than raise a signal that
            // ends the whole process.
            let mut nothing = SendAncillaryBuffer::default();
            match sendmsg(socket, slices, &mut nothing, SendFlags::NOSIGNAL) {
                Ok(n) => IoSlice::advance_slices(&mut slices, n),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Broken),
            }
            if slices.is_empty() {
                return Ok(());
            }
            let now = now();
            if now.duration_since(*since.get_or_insert(now)) >= self.time_max {
                return Err(Broken);
            }
        }
    }

    /// Sends replies as one message.
    ///
    /// # Errors
    /// [`Broken`] if the client does not take them.
    pub(crate) fn send(&self, replies: Vec<Reply>) -> Result<(), Broken> {
        self.emit(replies, |slices| {
            let socket = self.socket.lock();
            self.send_posted(&socket)?;
            self.write(&socket, slices)
        })
    }

    /// Sends the queued replies, on the locked socket.
    fn send_posted(&self, socket: &TcpStream) -> Result<(), Broken> {
        loop {
            let next = self.queue.lock().unsent.pop_front();
            let Some(reply) = next else {
                return Ok(());
            };
            self.emit(vec![reply], |slices| self.write(socket, slices))?;
        }
    }

    /// Sends replies as one message, signed or sealed.
    fn emit(
        &self,
        mut replies: Vec<Reply>,
        write: impl FnOnce(&mut [IoSlice<'_>]) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let count = replies.len();
        for (at, reply) in replies.iter_mut().enumerate() {
            finish(reply, at + 1 == count);
        }
        let Some(first) = replies.first() else {
            return Ok(());
        };
        if first.security.seal {
            return self.emit_sealed(replies, write);
        }
        emit_open(&replies, write)?;
        for reply in replies {
            self.buffers.give(reply.body.into_message());
        }
        Ok(())
    }

    fn emit_sealed(
        &self,
        replies: Vec<Reply>,
        write: impl FnOnce(&mut [IoSlice<'_>]) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let mut replies = replies.into_iter();
        let Reply { body, security, .. } = replies.next().ok_or(Broken)?;
        let logon = security.logon.as_ref().ok_or(Broken)?;
        let (sealer, _) = logon.keys.seal.as_ref().ok_or(Broken)?;
        let mut message = body.into_message();
        for reply in replies {
            message.extend_from_slice(reply.body.message());
            self.buffers.give(reply.body.into_message());
        }
        let transform = sealer.seal(logon.id, &mut message);
        let frame = frame_header(transform.len() + message.len())?;
        let sent = write(&mut [&frame[..], &transform, &message].map(IoSlice::new));
        self.buffers.give(message);
        sent
    }

    /// Queues a reply for another thread, unless `max` are queued already.
    pub(crate) fn leave(&self, reply: Reply, max: usize) -> Left {
        let mut queue = self.queue.lock();
        if queue.unsent.len() >= max {
            return Left::Full;
        }
        queue.unsent.push_back(reply);
        if std::mem::replace(&mut queue.is_emptied, true) {
            Left::Queued
        } else {
            Left::Alone
        }
    }

    /// Sends queued replies until there are none. Calls `failed` if the client does not take one.
    pub(crate) fn empty_queue(&self, failed: impl Fn()) {
        loop {
            let socket = self.socket.lock();
            let sent = self.send_posted(&socket);
            drop(socket);
            if sent.is_err() {
                failed();
            }
            let mut queue = self.queue.lock();
            if queue.unsent.is_empty() {
                queue.is_emptied = false;
                return;
            }
        }
    }
}

/// The result of queueing a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// A thread is about to send it.
    Queued,
    /// The caller must [empty the queue](Sending::empty_queue).
    Alone,
    /// The queue is full.
    Full,
}

fn emit_open(
    replies: &[Reply],
    write: impl FnOnce(&mut [IoSlice<'_>]) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let len: usize = replies.iter().map(|r| r.body.message().len()).sum();
    let frame = frame_header(len)?;
    let mut slices = Vec::with_capacity(1 + replies.len());
    slices.push(IoSlice::new(&frame));
    slices.extend(replies.iter().map(|r| IoSlice::new(r.body.message())));
    write(&mut slices)
}

/// Completes a reply's message: pads its body, puts the header before it, and signs it.
fn finish(reply: &mut Reply, is_last: bool) {
    if !is_last {
        reply.body.pad();
        reply.header.next_command = crate::wire::out::len32(reply.body.message().len());
    }
    let security = &reply.security;
    let signs = security.sign && !security.seal;
    let signer = security.logon.as_ref().filter(|_| signs);
    if signer.is_some() {
        reply.header.flags |= flags::SIGNED;
    }
    let message = reply.body.with_header(&reply.header.emit());
    if let Some(logon) = signer {
        let id = reply.header.message_id;
        logon.keys.signer.sign(message, id, Role::Server);
    }
}

/// Returns the length that precedes a message.
fn frame_header(len: usize) -> Result<[u8; 4], Broken> {
    let len = u32::try_from(len).ok().filter(|len| len >> 24 == 0);
    len.map(u32::to_be_bytes).ok_or(Broken)
}
