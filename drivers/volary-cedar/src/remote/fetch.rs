//! Bringing the content of a remote's file here: whole, or not at all.

use crate::name_table::entry::Seen;
use crate::remote::attached::{CachedFs, is_gone};
use crate::remote::cache::FarNodes;
use crate::remote::connection::RemoteOpen;
use std::collections::btree_map::Entry;
use std::time::Duration;
use volary_core::{Attr, Ctx, Error, Fs, Kind, Mode, NodeId, OpenId, Result};

/// Bytes that are fetched at a time.
const CHUNK: usize = 256 << 10;
/// How often a file that changes while it is fetched is fetched again.
const TRIES: u32 = 3;
/// How long one who waits for a fetch sleeps before a look at whether it is still wanted.
const NAP: Duration = Duration::from_millis(50);

/// The turn of one who fetches a file.
pub(crate) struct Turn<'a>(&'a CachedFs, u64);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.turns.lock().remove(&self.1);
        self.0.turn_ended.notify_all();
    }
}

/// Where the content of a file is read.
pub(crate) enum Content {
    Here,
    /// From this open of the remote's file.
    Through(Fs, OpenId),
}

/// How a fetch ended.
enum Fetched {
    Whole,
    /// The file changed meanwhile.
    Changed,
    NoRoom,
}

/// Where a fetch failed.
enum Failed {
    Here(Error),
    There(Error),
}

impl CachedFs {
    /// Waits until nobody else fetches a file.
    fn turn(&self, cx: &Ctx<'_>, uid: u64) -> Result<Turn<'_>> {
        let mut turns = self.turns.lock();
        while !turns.insert(uid) {
            cx.check_cancel()?;
            self.turn_ended.wait_for(&mut turns, NAP);
        }
        Ok(Turn(self, uid))
    }

    /// Fetches the content of a remote's file, as it is there now; keeps what is here if
    /// the remote cannot be reached.
    ///
    /// # Errors
    /// `Io` if it is neither here nor to be had; `Stale`; `Busy` if it changes all the time.
    pub(crate) fn bring(&self, cx: &Ctx<'_>, uid: u64) -> Result<Content> {
        let _turn = self.turn(cx, uid)?;
        for _ in 0..TRIES {
            cx.check_cancel()?;
            let opened = self.ask(cx, uid, |fs, node| {
                // To open has a remote look anew, too.
                let open = fs.open(cx, node, Mode::Read)?;
                match fs.getattr(cx, node) {
                    Ok(far) => Ok((fs.clone(), node, open, far)),
                    Err(e) => fs.close(cx, open).and(Err(e)),
                }
            });
            let (fs, node, open, far) = match opened {
                Ok(Some(opened)) => opened,
                Ok(None) => return self.as_it_was(cx, uid),
                Err(e) if is_gone(&e) => return Err(Kind::Stale.into()),
                Err(e) => return Err(e),
            };
            let there = RemoteOpen {
                fs: &fs,
                node,
                open,
            };
            let brought = self.bring_open(cx, uid, there, &far);
            if matches!(brought, Ok(Fetched::NoRoom)) {
                return Ok(Content::Through(fs, open));
            }
            // What was read is held against the remote's attributes, not this.
            let _ = fs.close(cx, open);
            match brought? {
                Fetched::Changed => {}
                _ => return Ok(Content::Here),
            }
        }
        let words = "it changes on the remote while it is fetched";
        Err(Error::note(Kind::Busy, words))
    }

    /// Uses what is here of a file while the remote cannot be reached.
    fn as_it_was(&self, cx: &Ctx<'_>, uid: u64) -> Result<Content> {
        if FarNodes::of(&mut self.local.state()?.files).use_whole(cx, uid)? {
            return Ok(Content::Here);
        }
        Err(self.not_here())
    }

    fn bring_open(
        &self,
        cx: &Ctx<'_>,
        uid: u64,
        there: RemoteOpen<'_>,
        far: &Attr,
    ) -> Result<Fetched> {
        {
            let mut state = self.local.to_change()?;
            let head = FarNodes::of(&mut state.files).note_far(cx, uid, far)?;
            if head.far.is_some_and(|far| far.whole) {
                FarNodes::of(&mut state.files).use_whole(cx, uid)?;
                return Ok(Fetched::Whole);
            }
            if !FarNodes::of(&mut state.files).make_room_far(cx, far.size)? {
                return Ok(Fetched::NoRoom);
            }
        }
        let begun = FarNodes::of(&mut self.local.to_change()?.files).begin_copy(cx, uid, far.size);
        let copy = match begun {
            Err(e) if e == Kind::NoSpace => return Ok(Fetched::NoRoom),
            begun => begun?,
        };
        let fetched = self.fetch(cx, uid, there, far, copy);
        let closed = self.local.state()?.open_files().close(cx, copy);
        match fetched {
            Err(Failed::Here(e)) if e == Kind::NoSpace => Ok(Fetched::NoRoom),
            Err(Failed::There(e)) if e == Kind::Io => {
                self.connection.note_lost(cx.now);
                let words = format!("the remote was lost while it was fetched: {e}");
                Err(Error::note(Kind::Io, words))
            }
            Err(Failed::Here(e) | Failed::There(e)) => Err(e),
            Ok(fetched) => closed.map(|()| fetched),
        }
    }

    /// Fetches a file into a copy, which becomes its content if the file is at the end what
    /// it was at the start.
    fn fetch(
        &self,
        cx: &Ctx<'_>,
        uid: u64,
        there: RemoteOpen<'_>,
        far: &Attr,
        copy: OpenId,
    ) -> std::result::Result<Fetched, Failed> {
        let seen = Seen::of(far);
        let mut buf = vec![0; CHUNK.min(far.size.try_into().unwrap_or(CHUNK))];
        let mut at = 0;
        while at < far.size {
            cx.check_cancel().map_err(Failed::There)?;
            let len = (far.size - at).min(buf.len() as u64) as usize;
            let part = buf.get_mut(..len).unwrap_or_default();
            let n = there
                .fs
                .read(cx, there.open, at, part)
                .map_err(Failed::There)?;
            if n == 0 {
                return Ok(Fetched::Changed);
            }
            let part = part.get(..n).unwrap_or_default();
            let mut state = self.local.to_change().map_err(Failed::Here)?;
            state
                .open_files()
                .write(cx, copy, Some(at), part)
                .map_err(Failed::Here)?;
            at += n as u64;
        }
        if Seen::of(&look_anew(cx, there.fs, there.node).map_err(Failed::There)?) != seen {
            return Ok(Fetched::Changed);
        }
        let mut state = self.local.to_change().map_err(Failed::Here)?;
        match FarNodes::of(&mut state.files)
            .end_copy(cx, copy, uid, &seen)
            .map_err(Failed::Here)?
        {
            true => Ok(Fetched::Whole),
            false => Ok(Fetched::Changed),
        }
    }

    /// Reads what is not here: it was taken away since it was opened.
    pub(crate) fn read_again(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        let uid = self.local.state()?.open_files().node(open)?;
        for _ in 0..TRIES {
            if let Content::Through(fs, far) = self.bring(cx, uid)? {
                let read = fs.read(cx, far, offset, buf);
                let mut through = self.through.lock();
                // Another reader of this open may have come first.
                if let Entry::Vacant(free) = through.entry(open) {
                    free.insert((fs, far));
                    return read;
                }
                drop(through);
                return read.and_then(|n| fs.close(cx, far).map(|()| n));
            }
            if let Some(n) =
                FarNodes::of(&mut self.local.state()?.files).read_if_here(open, offset, buf)?
            {
                return Ok(n);
            }
        }
        Err(Kind::Busy.into())
    }
}

/// Returns the attributes of a node of the remote, asked for anew by it too.
fn look_anew(cx: &Ctx<'_>, fs: &Fs, node: NodeId) -> Result<Attr> {
    let open = fs.open(cx, node, Mode::Read)?;
    let attr = fs.getattr(cx, node);
    fs.close(cx, open)?;
    attr
}
