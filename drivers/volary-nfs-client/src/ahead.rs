//! Reading: in large pieces and ahead, where reads follow one another.

use crate::data::{Chunk, Piece, State};
use crate::fail;
use crate::node::{Node, tick};
use crate::opens::Opened;
use crate::proto::{Fattr, error_of, procedure, status};
use crate::volume::{Volume, Who, after_status};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volary_core::{FileKind, Kind, Mode, Result};
use volary_rpc::{Decoded, Input, Output, count};

/// How many pieces are read ahead at most.
const AHEAD_MAX: u32 = 6;

/// One piece of a file, or what there is of it.
struct Wanted<'a> {
    who: Who<'a>,
    node: &'a Arc<Node>,
    /// Reads of this open follow one another: so many have.
    run: u32,
}

impl Volume {
    /// See [`read`](volary_core::FileSystem::read).
    pub(crate) fn read_at(
        self: &Arc<Self>,
        who: Who<'_>,
        open: &Opened,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        let node = &open.node;
        if node.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        if open.mode == Mode::Write {
            return Err(Kind::Access.into());
        }
        if offset >= self.info.caps.size_max {
            // Past what some servers take for an offset at all.
            self.check()?;
            return Ok(0);
        }
        self.settle(node)?;
        let _shared = node.io.read();
        // Who wrote in between has it gathered still.
        self.settle(node)?;
        let run = {
            let mut flow = open.flow.lock();
            let goes_on = flow.0 == offset;
            let end = offset.saturating_add(buf.len() as u64);
            *flow = (end, if goes_on { flow.1.saturating_add(1) } else { 0 });
            flow.1
        };
        self.check_content(who, node)?;
        let wanted = Wanted { who, node, run };
        let mut done = 0;
        while let Some(room) = buf.get_mut(done..).filter(|room| !room.is_empty()) {
            let at = offset.saturating_add(done as u64);
            let (len, is_end) = self.read_some(&wanted, at, room)?;
            done += len;
            if is_end {
                break;
            }
        }
        Ok(done)
    }

    /// Drops what was read ahead of a content that is not the file's any more.
    fn check_content(&self, who: Who<'_>, node: &Arc<Node>) -> Result<()> {
        if node.data().state.lock().chunks.is_empty() {
            return Ok(());
        }
        let attr = match node.attr(self.options.cache) {
            Some(attr) => attr,
            None => self.fetch_attr(who, node)?,
        };
        let content = Some((attr.mtime, attr.ctime, attr.size));
        let mut state = node.data().state.lock();
        if state.content != content {
            let dropped = state.drop_chunks();
            self.ahead.fetch_sub(dropped, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Reads at least one byte, or finds the end.
    fn read_some(
        self: &Arc<Self>,
        wanted: &Wanted<'_>,
        at: u64,
        room: &mut [u8],
    ) -> Result<(usize, bool)> {
        let step = self.info.read_max as u64;
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

    /// READ, straight into the caller's room.
    fn read_now(&self, wanted: &Wanted<'_>, at: u64, room: &mut [u8]) -> Result<(usize, bool)> {
        let len = room.len().min(self.info.read_max);
        let mut done = 0;
        let is_end = self.read_call(wanted.who, wanted.node, at, len, |bytes| {
            done = bytes.len();
            if let Some(room) = room.get_mut(..done) {
                room.copy_from_slice(bytes);
            }
        })?;
        Ok((done, is_end))
    }

    /// READ: what came goes to `take`; whether the file ends there.
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
        let (status, done) = self.nfs(who, procedure::READ, put)?;
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

    /// Returns a piece: one that is here, one that comes, or one that is fetched now.
    /// `None` if it was dropped meanwhile.
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

    /// Fetches a piece that is noted as coming, and enters it unless all were
    /// dropped since.
    fn fetch(
        &self,
        who: Who<'_>,
        node: &Node,
        index: u64,
        drops: u64,
    ) -> Result<Option<Arc<Piece>>> {
        let len = self.info.read_max;
        let at = index.saturating_mul(len as u64);
        let mut bytes = Vec::new();
        let done = self.read_call(who, node, at, len, |came| bytes = came.to_vec());
        let data = node.data();
        let mut state = data.state.lock();
        let is_kept = state.drops == drops;
        let piece = done.map(|is_end| Arc::new(Piece { bytes, is_end }));
        match &piece {
            Ok(piece) if is_kept => {
                self.ahead.fetch_add(piece.bytes.len(), Ordering::Relaxed);
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

    /// Starts to fetch what comes next.
    fn read_ahead(self: &Arc<Self>, wanted: &Wanted<'_>, index: u64, size: u64) {
        let step = self.info.read_max as u64;
        let bound = usize::try_from(self.options.memory / 4).unwrap_or(usize::MAX);
        let count = u64::from(wanted.run.saturating_mul(2).min(AHEAD_MAX));
        for next in index + 1..=index.saturating_add(count) {
            let is_past = next.saturating_mul(step) >= size;
            if is_past || self.ahead.load(Ordering::Relaxed) > bound {
                return;
            }
            let mut state = wanted.node.data().state.lock();
            if state.chunks.contains_key(&next) {
                continue;
            }
            let drops = begin_chunk(&mut state, wanted.node, next);
            drop(state);
            let (volume, node) = (Arc::clone(self), Arc::clone(wanted.node));
            let cred = wanted.who.cred.clone();
            let job = move || {
                // Who wants it asks again, and is told.
                let _ = volume.fetch(Who::behind(&cred), &node, next, drops);
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
        self.ahead.fetch_sub(len, Ordering::Relaxed);
    }

    /// Forgets what was read ahead of a node that nobody has open any more.
    pub(crate) fn forget_content(&self, node: &Node) {
        if let Some(data) = node.data_if_any() {
            let dropped = data.state.lock().drop_chunks();
            self.ahead.fetch_sub(dropped, Ordering::Relaxed);
        }
    }
}

/// `READ3resok`, after the attributes: how many bytes there are said to be,
/// whether the file ends after them, and they.
fn read_result<'a>(input: &mut Input<'a>, max: usize) -> Decoded<(u32, bool, &'a [u8])> {
    Ok((input.u32()?, input.bool()?, input.opaque(max)?))
}

/// Notes that a piece comes: of the content that is known now, unless there are
/// others.
fn begin_chunk(state: &mut State, node: &Node, index: u64) -> u64 {
    state.content.get_or_insert_with(|| {
        let known = node.last_fattr();
        (known.mtime, known.ctime, known.size)
    });
    state.chunks.insert(index, Chunk::Coming);
    state.drops
}
