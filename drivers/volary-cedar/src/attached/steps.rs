//! Growth that no single log record holds, for the room is in too many pieces: it is made
//! in several changes. A crash in between leaves a file that ends at one of the steps, as
//! if its writer had come no further.

use crate::change::file::File;
use crate::change::files::Files;
use crate::change::nodes::Nodes;
use volary_core::{Ctx, Result};

/// Growth in as few changes as it takes.
pub(crate) struct Steps<'a> {
    files: &'a mut Files,
}

impl<'a> Steps<'a> {
    pub(crate) fn of(files: &'a mut Files) -> Self {
        Self { files }
    }

    /// Writes bytes in one change.
    ///
    /// # Errors
    /// As [`File::make_room`] and [`fill`](File::fill).
    pub(crate) fn try_write(
        &mut self,
        cx: &Ctx<'_>,
        uid: u64,
        at: u64,
        data: &[u8],
    ) -> Result<u64> {
        self.files.change(cx.now, |c| {
            let (place, mut head) = Nodes::of(c).home(uid)?;
            let len = data.len() as u64;
            let runs = File::of(c).make_room(&mut head, at, len)?;
            head.touch(cx.now, true);
            Nodes::of(c).keep(&place, head)?;
            c.core.check_fits()?;
            File::of(c).fill(&runs, at, data)?;
            Ok(at + len)
        })
    }

    /// Writes bytes in as few changes as it takes: those past the end first, so that no
    /// byte that the file has is changed if there is no room.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    pub(crate) fn write_in_steps(
        &mut self,
        cx: &Ctx<'_>,
        uid: u64,
        at: u64,
        data: &[u8],
    ) -> Result<u64> {
        let page = self.files.core.layout.page_len();
        let had = Nodes::of(self.files).home(uid)?.1.size.saturating_sub(at);
        let (over, mut rest) = data.split_at(data.len().min(had as usize));
        let (mut end, mut step) = (at + over.len() as u64, rest.len());
        while !rest.is_empty() {
            let (now, later) = rest.split_at(step.min(rest.len()));
            match self.try_write(cx, uid, end, now) {
                Ok(done) => (end, rest) = (done, later),
                Err(_) if self.files.core.too_much && step > page => step /= 2,
                Err(e) => return Err(e),
            }
        }
        if !over.is_empty() {
            self.try_write(cx, uid, at, over)?;
        }
        Ok(end)
    }

    /// Grows a file to `size` bytes of zeros, unless it has as many, in as few changes as
    /// it takes, and then does `last`. If any of it fails the file is as long as it was.
    ///
    /// # Errors
    /// As [`File::resize`] and `last`.
    pub(crate) fn grow_and<T>(
        &mut self,
        cx: &Ctx<'_>,
        uid: u64,
        size: u64,
        last: impl FnOnce(&mut Files) -> Result<T>,
    ) -> Result<T> {
        let before = Nodes::of(self.files).home(uid)?.1.size;
        let done = self
            .grow_in_steps(cx, uid, size)
            .and_then(|()| last(self.files));
        if done.is_err() {
            // What failed is the answer; that the rest of it stays is no worse.
            let _ = self.resize(cx, uid, before, |now| now > before);
        }
        done
    }

    fn grow_in_steps(&mut self, cx: &Ctx<'_>, uid: u64, size: u64) -> Result<()> {
        let page = u64::from(self.files.core.layout.page);
        let mut step = size;
        loop {
            let now = Nodes::of(self.files).home(uid)?.1.size;
            if now >= size {
                return Ok(());
            }
            let next = now.saturating_add(step).min(size);
            match self.resize(cx, uid, next, |_| true) {
                Err(_) if self.files.core.too_much && step > page => step /= 2,
                done => done?,
            }
        }
    }

    /// Sets a file's size if that which it has is one `that` is for.
    fn resize(
        &mut self,
        cx: &Ctx<'_>,
        uid: u64,
        size: u64,
        that: impl Fn(u64) -> bool,
    ) -> Result<()> {
        self.files.change(cx.now, |c| {
            let (place, mut head) = Nodes::of(c).home(uid)?;
            if !that(head.size) {
                return Ok(());
            }
            File::of(c).resize(&mut head, size)?;
            head.touch(cx.now, true);
            Nodes::of(c).keep(&place, head)
        })
    }
}
