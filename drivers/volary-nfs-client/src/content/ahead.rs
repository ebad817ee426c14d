//! Reading ahead, and reads that use its data.

use crate::calls::export::{Export, Who, after_status};
use crate::content::workers::Workers;
use crate::fail;
use crate::known::attr_cache::tick;
use crate::known::data::{Chunk, Piece, State};
use crate::known::node::Node;
use crate::wire::proto::{Fattr, error_of, procedure, status};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use volary_core::Result;
use volary_rpc::{Decoded, Input, Output, count};

/// How many pieces are read ahead at most.
const AHEAD_MAX: u32 = 6;

/// The target of a read, and its caller.
pub(crate) struct Wanted<'a> {
    pub(crate) who: Who<'a>,
    pub(crate) node: &'a Arc<Node>,
    /// How many reads of this open in a row have followed each other.
    pub(crate) run: u32,
}

/// Reads in large pieces, and ahead if reads follow each other.
pub(crate) struct Ahead {
    export: Arc<Export>,
    workers: Arc<Workers>,
    limits: AheadLimits,
    /// Bytes in memory that were read ahead.
    held: AtomicUsize,
}

/// The limits of reading ahead.
pub(crate) struct AheadLimits {
    /// The most that one call reads, in bytes.
    pub(crate) read_max: usize,
    /// Nothing is read ahead while more bytes than this are in memory.
    pub(crate) memory: usize,
    /// How long attributes are valid.
    pub(crate) cache: Duration,
}

impl Ahead {
    pub(crate) fn new(export: Arc<Export>, workers: Arc<Workers>, limits: AheadLimits) -> Self {
        Self {
            export,
            workers,
            limits,
            held: AtomicUsize::new(0),
        }
    }

    /// Reads from memory, and the rest by calls. The caller must keep writers out.
    pub(crate) fn read(
        self: &Arc<Self>,
        wanted: &Wanted<'_>,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        self.check_content(wanted.who, wanted.node)?;
        let mut done = 0;
        while let Some(room) = buf.get_mut(done..).filter(|room| !room.is_empty()) {
            let at = offset.saturating_add(done as u64);
            let (len, is_end) = self.read_some(wanted, at, room)?;
            done += len;
            if is_end {
                break;
            }
        }
        Ok(done)
    }

    /// Drops data that was read ahead if the file has changed since.
    fn check_content(&self, who: Who<'_>, node: &Arc<Node>) -> Result<()> {
        if node.data().state.lock().chunks.is_empty() {
            return Ok(());
        }
        let attr = match node.attr(self.limits.cache) {
            Some(attr) => attr,
            None => self.export.fetch_attr(who, node)?,
        };
        let content = Some((attr.mtime, attr.ctime, attr.size));
        let mut state = node.data().state.lock();
        if state.content != content {
            self.drop_all(&mut state);
        }
        Ok(())
    }

    /// Reads at least one byte, or finds the end. Returns the count, and whether the file ends
    /// after it.
    fn read_some(
        self: &Arc<Self>,
        wanted: &Wanted<'_>,
        at: u64,
        room: &mut [u8],
    ) -> Result<(usize, bool)> {
        let step = self.limits.read_max as u64;
        let size = wanted.node.last_fattr().size;
        // A file that fits into one piece is read whole at once.
        let is_small = at == 0 && size <= step && size > 0;
        if wanted.run == 0 && !is_small && !self.is_here(wanted.node, at / step) {
            return self.read_now(wanted, at, room);
        }
        if wanted.run > 0 {
            self.read_ahead(wanted, at / step, size);
        }
        let Some(piece) = self.piece(wanted, at / step)? else {
            return self.read_now(wanted, at, room);
        };
        let start = usize::try_from(at % step).unwrap_or(usize::MAX);
        let here = piece.bytes.get(start..).unwrap_or_default();
        if here.is_empty() {
            return if piece.is_end {
                Ok((0, true))
            } else {
                self.read_now(wanted, at, room)
            };
        }
        let len = here.len().min(room.len());
        if let (Some(to), Some(from)) = (room.get_mut(..len), here.get(..len)) {
            to.copy_from_slice(from);
        }
        let all = len == here.len();
        if all && !piece.is_end && wanted.run > 0 {
            self.drop_piece(wanted.node, at / step);
        }
        Ok((len, all && piece.is_end))
    }

    fn is_here(&self, node: &Node, index: u64) -> bool {
        node.data().state.lock().chunks.contains_key(&index)
    }

    /// Calls READ, straight into the caller's buffer.
    fn read_now(&self, wanted: &Wanted<'_>, at: u64, room: &mut [u8]) -> Result<(usize, bool)> {
        let len = room.len().min(self.limits.read_max);
        let mut done = 0;
        let is_end = self.read_call(wanted.who, wanted.node, at, len, |bytes| {
            done = bytes.len();
            if let Some(room) = room.get_mut(..done) {
                room.copy_from_slice(bytes);
            }
        })?;
        Ok((done, is_end))
    }

    /// Calls READ. Passes the data to `take`, and returns whether the file ends after it.
    fn read_call(
        &self,
        who: Who<'_>,
        node: &Node,
        at: u64,
        len: usize,
        take: impl FnOnce(&[u8]),
    ) -> Result<bool> {
        let asked = tick();
        let put = |out: &mut Output| {
            node.fh.write(out);
            out.u64(at);
            out.u32(count(len));
        };
        let (status, done) = self.export.nfs(who, procedure::READ, put)?;
        let mut input = after_status(&done);
        let attr = Fattr::read_maybe(&mut input).map_err(fail::garbage)?;
        if let Some(attr) = attr {
            node.note(&attr, asked)?;
        }
        if status != status::OK {
            return Err(error_of(status));
        }
        let (said, is_end, bytes) = read_result(&mut input, len).map_err(fail::garbage)?;
        if bytes.len() as u64 != u64::from(said) || (bytes.is_empty() && !is_end) {
            let words = "as many as came, and some before the end";
            return Err(fail::nonsense("count of READ", said, words));
        }
        take(bytes);
        Ok(is_end)
    }

    /// Returns a piece that is in memory, on its way, or fetched now. `None` if it was dropped
    /// meanwhile.
    fn piece(&self, wanted: &Wanted<'_>, index: u64) -> Result<Option<Arc<Piece>>> {
        let data = wanted.node.data();
        let mut state = data.state.lock();
        loop {
            match state.chunks.get(&index) {
                Some(Chunk::Here(piece)) => return Ok(Some(Arc::clone(piece))),
                Some(Chunk::Coming) => data.turned.wait(&mut state),
                None => break,
            }
        }
        let drops = begin_chunk(&mut state, wanted.node, index);
        drop(state);
        self.fetch(wanted.who, wanted.node, index, drops)
    }

    /// Fetches a piece that is marked as coming. Stores it unless all pieces were dropped since.
    fn fetch(
        &self,
        who: Who<'_>,
        node: &Node,
        index: u64,
        drops: u64,
    ) -> Result<Option<Arc<Piece>>> {
        let len = self.limits.read_max;
        let at = index.saturating_mul(len as u64);
        let mut bytes = Vec::new();
        let done = self.read_call(who, node, at, len, |came| bytes = came.to_vec());
        let data = node.data();
        let mut state = data.state.lock();
        let is_kept = state.drops == drops;
        let piece = done.map(|is_end| Arc::new(Piece { bytes, is_end }));
        match &piece {
            Ok(piece) if is_kept => {
                self.held.fetch_add(piece.bytes.len(), Ordering::Relaxed);
                state.chunks.insert(index, Chunk::Here(Arc::clone(piece)));
            }
            Err(_) if is_kept => {
                state.chunks.remove(&index);
            }
            _ => {}
        }
        drop(state);
        data.turned.notify_all();
        Ok(Some(piece?).filter(|_| is_kept))
    }

    /// Starts to fetch the pieces that follow.
    fn read_ahead(self: &Arc<Self>, wanted: &Wanted<'_>, index: u64, size: u64) {
        let step = self.limits.read_max as u64;
        let count = u64::from(wanted.run.saturating_mul(2).min(AHEAD_MAX));
        for next in index + 1..=index.saturating_add(count) {
            let is_past = next.saturating_mul(step) >= size;
            if is_past || self.held.load(Ordering::Relaxed) > self.limits.memory {
                return;
            }
            let mut state = wanted.node.data().state.lock();
            if state.chunks.contains_key(&next) {
                continue;
            }
            let drops = begin_chunk(&mut state, wanted.node, next);
            drop(state);
            let (ahead, node) = (Arc::clone(self), Arc::clone(wanted.node));
            let cred = wanted.who.cred.clone();
            let job = move || {
                // A reader that needs the piece repeats the call, and gets the error.
                let _ = ahead.fetch(Who::behind(&cred), &node, next, drops);
            };
            if self.workers.hire(job).is_err() {
                let mut state = wanted.node.data().state.lock();
                if state.drops == drops {
                    state.chunks.remove(&next);
                }
                drop(state);
                wanted.node.data().turned.notify_all();
                return;
            }
        }
    }

    fn drop_piece(&self, node: &Node, index: u64) {
        let gone = node.data().state.lock().chunks.remove(&index);
        let len = gone.map_or(0, |chunk| chunk.len());
        self.held.fetch_sub(len, Ordering::Relaxed);
    }

    /// Drops data that was read ahead of a node that is no longer open.
    pub(crate) fn forget(&self, node: &Node) {
        if let Some(data) = node.data_if_any() {
            self.drop_all(&mut data.state.lock());
        }
    }

    /// Drops data that was read ahead of a file whose content is about to change.
    pub(crate) fn drop_all(&self, state: &mut State) {
        let dropped = state.drop_chunks();
        self.held.fetch_sub(dropped, Ordering::Relaxed);
    }
}

/// Decodes a `READ3resok` behind the attributes: the count of bytes, whether the file ends after
/// them, and the bytes.
fn read_result<'a>(input: &mut Input<'a>, max: usize) -> Decoded<(u32, bool, &'a [u8])> {
    Ok((input.u32()?, input.bool()?, input.opaque(max)?))
}

/// Marks a piece as coming. If it is the only piece, it is of the content that the attributes
/// describe now.
fn begin_chunk(state: &mut State, node: &Node, index: u64) -> u64 {
    state.content.get_or_insert_with(|| {
        let known = node.last_fattr();
        (known.mtime, known.ctime, known.size)
    });
    state.chunks.insert(index, Chunk::Coming);
    state.drops
}
