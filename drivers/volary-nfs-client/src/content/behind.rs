//! Write-behind: data is gathered, sent in the background as UNSTABLE, and kept until a COMMIT
//! whose verifier is that of the WRITE (RFC 1813, section 3.3.7).
//!
//! Bytes that the server may still lose are kept in memory. If the verifier has changed, the server
//! has restarted, and they are written again in their order. The next write, `fsync` or `close` of
//! the node reports a failure. If the volume is nearly full, writes are not delayed, so that the
//! writer gets the error at once.

use crate::calls::export::{Export, Who, after_status};
use crate::content::ahead::Ahead;
use crate::content::workers::Workers;
use crate::fail;
use crate::known::data::{Part, Sent, State};
use crate::known::node::Node;
use crate::wire::proto::{Wcc, error_of, procedure, status};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use volary_core::{Cred, NodeId, Result};
use volary_rpc::{Decoded, Input, Output, count};

/// `stable_how`.
const UNSTABLE: u32 = 0;
const FILE_SYNC: u32 = 2;

/// Written bytes, until they are durable on the server.
pub(crate) struct Behind {
    export: Arc<Export>,
    ahead: Arc<Ahead>,
    workers: Arc<Workers>,
    limits: BehindLimits,
    /// Nodes with data that is not yet durable on the server.
    dirty: Mutex<HashMap<NodeId, Arc<Node>>>,
    /// Bytes in memory that are not yet durable on the server.
    held: AtomicUsize,
}

/// The limits of write-behind.
pub(crate) struct BehindLimits {
    /// The most that one call writes, in bytes.
    pub(crate) write_max: usize,
    /// Some data is committed while more bytes than this are in memory.
    pub(crate) memory: usize,
    /// Whether each write is sent to the server before it returns.
    pub(crate) sync: bool,
}

impl Behind {
    pub(crate) fn new(
        export: Arc<Export>,
        ahead: Arc<Ahead>,
        workers: Arc<Workers>,
        limits: BehindLimits,
    ) -> Self {
        Self {
            export,
            ahead,
            workers,
            limits,
            dirty: Mutex::new(HashMap::new()),
            held: AtomicUsize::new(0),
        }
    }

    /// Returns how many bytes in memory are not yet durable on the server.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns whether writes are never delayed.
    pub(crate) fn is_sync(&self) -> bool {
        self.limits.sync
    }

    /// Writes data, and returns once the server has all of it. The caller must hold the node's
    /// content exclusively.
    pub(crate) fn write_through(
        self: &Arc<Self>,
        who: Who<'_>,
        node: &Arc<Node>,
        offset: u64,
        data: &[u8],
    ) -> Result<()> {
        self.settle(node)?;
        let stable = if self.limits.sync {
            FILE_SYNC
        } else {
            UNSTABLE
        };
        let mut at = offset;
        for bytes in data.chunks(self.limits.write_max) {
            let part = Part {
                offset: at,
                bytes: bytes.to_vec(),
                cred: who.cred.clone(),
            };
            at = part.end();
            self.begin_part(node, &part);
            self.send_part(who, node, part, stable)?;
        }
        Ok(())
    }

    /// Adds to the gathered data, and sends full parts.
    pub(crate) fn gather(
        self: &Arc<Self>,
        node: &Arc<Node>,
        cred: &Cred,
        offset: u64,
        data: &[u8],
    ) {
        let (mut at, mut rest) = (offset, data);
        while !rest.is_empty() {
            let mut state = node.data().state.lock();
            let goes_on = state.gathered.as_ref().is_some_and(|part| {
                part.end() == at && part.bytes.len() < self.limits.write_max && part.cred == *cred
            });
            if !goes_on {
                if let Some(part) = self.take_gathered(node, &mut state) {
                    drop(state);
                    self.send_behind(node, part);
                    continue;
                }
                self.ahead.drop_all(&mut state);
            }
            let part = state.gathered.get_or_insert_with(|| Part {
                offset: at,
                bytes: Vec::new(),
                cred: cred.clone(),
            });
            let room = self.limits.write_max.saturating_sub(part.bytes.len());
            let (now, later) = rest.split_at(room.min(rest.len()));
            part.bytes.extend_from_slice(now);
            self.held.fetch_add(now.len(), Ordering::Relaxed);
            at = part.end();
            rest = later;
            if part.bytes.len() >= self.limits.write_max
                && let Some(full) = self.take_gathered(node, &mut state)
            {
                drop(state);
                self.send_behind(node, full);
            }
        }
        node.touch();
        self.dirty.lock().insert(node.id, Arc::clone(node));
    }

    /// Takes the gathered data and marks it as being sent, once no overlapping part is. No other
    /// thread ever sees it as neither gathered nor on its way.
    fn take_gathered(&self, node: &Node, state: &mut MutexGuard<'_, State>) -> Option<Part> {
        loop {
            let range = state.gathered.as_ref()?.range();
            if !state.is_sending(&range) {
                state.sending.push(range);
                return state.gathered.take();
            }
            node.data().turned.wait(state);
        }
    }

    /// Marks a part as being sent, once no overlapping part is.
    fn begin_part(&self, node: &Node, part: &Part) {
        let (data, range) = (node.data(), part.range());
        let mut state = data.state.lock();
        while state.is_sending(&range) {
            data.turned.wait(&mut state);
        }
        self.ahead.drop_all(&mut state);
        state.sending.push(range);
    }

    /// Sends a marked part in the background; its bytes are already counted.
    fn send_behind(self: &Arc<Self>, node: &Arc<Node>, part: Part) {
        let (behind, of) = (Arc::clone(self), Arc::clone(node));
        let job = move || {
            let (cred, len) = (part.cred.clone(), part.bytes.len());
            let sent = behind.send_part(Who::behind(&cred), &of, part, UNSTABLE);
            // `send_part` has counted the bytes again if it keeps them.
            behind.held.fetch_sub(len, Ordering::Relaxed);
            if let Err(e) = sent {
                of.data().state.lock().fail(&e);
            }
        };
        if let Err(job) = self.workers.hire(job) {
            job();
        }
    }

    /// Sends a part that is marked as being sent. Keeps the bytes that the server may still lose.
    fn send_part(&self, who: Who<'_>, node: &Arc<Node>, part: Part, stable: u32) -> Result<()> {
        let range = part.range();
        let done = self.write_all(who, node, &part, stable);
        let mut state = node.data().state.lock();
        if let Some(at) = state.sending.iter().position(|r| *r == range) {
            state.sending.swap_remove(at);
        }
        let done = done.map(|unstable| {
            if let Some(verifier) = unstable {
                self.held.fetch_add(part.bytes.len(), Ordering::Relaxed);
                state.unstable.push(Sent { part, verifier });
            }
            state.unstable.is_empty()
        });
        drop(state);
        node.data().turned.notify_all();
        if !done? {
            self.dirty.lock().insert(node.id, Arc::clone(node));
        }
        Ok(())
    }

    /// Calls WRITE, as often as necessary. Returns the verifier, unless all is stable.
    fn write_all(
        &self,
        who: Who<'_>,
        node: &Node,
        part: &Part,
        stable: u32,
    ) -> Result<Option<[u8; 8]>> {
        let (mut at, mut rest) = (part.offset, part.bytes.as_slice());
        let mut unstable: Option<[u8; 8]> = None;
        while !rest.is_empty() {
            let wrote = self.write_once(who, node, at, rest, stable)?;
            rest = rest.get(wrote.len..).unwrap_or_default();
            at = at.saturating_add(wrote.len as u64);
            if let Some(verifier) = wrote.unstable {
                // With two verifiers, the first part may be lost: use one that matches no COMMIT.
                unstable = match unstable {
                    Some(before) if before != verifier => Some([0xff; 8]),
                    _ => Some(verifier),
                };
            }
        }
        Ok(unstable)
    }

    fn write_once(
        &self,
        who: Who<'_>,
        node: &Node,
        at: u64,
        bytes: &[u8],
        stable: u32,
    ) -> Result<Wrote> {
        let changing = node.begin_change();
        let put = |out: &mut Output| {
            node.fh.write(out);
            out.u64(at);
            out.u32(count(bytes.len()));
            out.u32(stable);
            out.opaque(bytes);
        };
        let (status, done) = self.export.nfs(who, procedure::WRITE, put)?;
        let mut input = after_status(&done);
        changing.end(&Wcc::read(&mut input).map_err(fail::garbage)?)?;
        if status != status::OK {
            return Err(error_of(status));
        }
        let read =
            |input: &mut Input<'_>| Decoded::Ok((input.u32()?, input.u32()?, input.array()?));
        let (len, committed, verifier) = read(&mut input).map_err(fail::garbage)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len == 0 || len > bytes.len() {
            let words = format!("1 to {}", bytes.len());
            return Err(fail::nonsense("count of WRITE", len, words));
        }
        let unstable = (committed == UNSTABLE).then_some(verifier);
        Ok(Wrote { len, unstable })
    }

    /// Sends all delayed writes to the server, which may still lose them. The next write, `fsync`
    /// or `close` reports a failure.
    ///
    /// # Errors
    /// `Stale` once the export is detached.
    pub(crate) fn settle(self: &Arc<Self>, node: &Arc<Node>) -> Result<()> {
        self.export.check()?;
        if node.data_if_any().is_some() {
            self.settle_data(node);
        }
        Ok(())
    }

    fn settle_data(self: &Arc<Self>, node: &Arc<Node>) {
        let data = node.data();
        let mut state = data.state.lock();
        while state.is_behind() {
            if let Some(part) = self.take_gathered(node, &mut state) {
                drop(state);
                self.send_behind(node, part);
                state = data.state.lock();
            } else if state.is_behind() {
                data.turned.wait(&mut state);
            }
        }
    }

    /// Makes all that was written to the node durable on the server.
    ///
    /// # Errors
    /// Those of this call, and of earlier writes.
    pub(crate) fn commit(self: &Arc<Self>, who: Who<'_>, node: &Arc<Node>) -> Result<()> {
        let _alone = node.io.write();
        self.commit_alone(who, node)
    }

    /// Does the same for a caller that holds the node's content exclusively.
    ///
    /// The caller cannot cancel it: its bytes, and those of other files and callers, were answered as
    /// written, and are nowhere else.
    fn commit_alone(self: &Arc<Self>, who: Who<'_>, node: &Arc<Node>) -> Result<()> {
        let who = Who::behind(who.cred);
        let Some(data) = node.data_if_any() else {
            return Ok(());
        };
        let only = {
            let mut state = data.state.lock();
            let is_only = state.sending.is_empty() && state.unstable.is_empty();
            // One stable WRITE replaces an unstable one and a COMMIT.
            is_only
                .then(|| self.take_gathered(node, &mut state))
                .flatten()
        };
        if let Some(only) = only {
            let (cred, len) = (only.cred.clone(), only.bytes.len());
            let sent = self.send_part(Who { cred: &cred, ..who }, node, only, FILE_SYNC);
            self.held.fetch_sub(len, Ordering::Relaxed);
            sent?;
        }
        self.settle_data(node);
        let mut state = data.state.lock();
        let unstable = std::mem::take(&mut state.unstable);
        let failed = state.check_failed();
        drop(state);
        self.dirty.lock().remove(&node.id);
        let len: usize = unstable.iter().map(|sent| sent.part.bytes.len()).sum();
        let kept = self.commit_sent(who, node, unstable);
        self.held.fetch_sub(len, Ordering::Relaxed);
        failed.and(kept)
    }

    /// Calls COMMIT. Writes again what a server that has restarted may have lost.
    fn commit_sent(&self, who: Who<'_>, node: &Arc<Node>, unstable: Vec<Sent>) -> Result<()> {
        if unstable.is_empty() {
            return Ok(());
        }
        let verifier = self.export.commit(who, node)?;
        let is_lost = unstable.iter().any(|sent| sent.verifier != verifier);
        // All of it, not only what is lost, since later bytes may overlap earlier ones.
        for sent in unstable.into_iter().filter(|_| is_lost) {
            let who = Who {
                cred: &sent.part.cred,
                ..who
            };
            self.write_all(who, node, &sent.part, FILE_SYNC)?;
        }
        Ok(())
    }

    /// If too much is in memory, makes some of it durable on the server.
    pub(crate) fn keep_bound(self: &Arc<Self>, who: Who<'_>, node: &Arc<Node>) -> Result<()> {
        let is_over = || self.held() > self.limits.memory.max(4 * self.limits.write_max);
        if !is_over() {
            return Ok(());
        }
        self.commit_alone(who, node)?;
        let others: Vec<_> = self.dirty.lock().values().cloned().collect();
        for other in others {
            if !is_over() {
                break;
            }
            // A thread that holds it exclusively is about to do the same.
            if let Some(_alone) = other.io.try_write()
                && let Err(e) = self.commit_alone(who, &other)
            {
                other.data().state.lock().fail(&e);
            }
        }
        Ok(())
    }

    /// Makes all that was written durable on the server.
    ///
    /// # Errors
    /// The first error of all nodes.
    pub(crate) fn commit_all(self: &Arc<Self>, who: Who<'_>) -> Result<()> {
        let all: Vec<_> = self.dirty.lock().values().cloned().collect();
        let mut first = Ok(());
        for node in all {
            first = first.and(self.commit(who, &node));
        }
        first
    }
}

struct Wrote {
    len: usize,
    unstable: Option<[u8; 8]>,
}
