//! A directory of a volume as a volume of its own, whose end does not end the volume below.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use volary_core::{
    Call, Caps, Create, Ctx, Entry, Fs, Kind, Layer, Mode, Name, NodeId, Op, OpenId, Result,
    SetAttr,
};

/// A layer whose root is a directory of the volume below. Detaching it closes only its own opens,
/// and syncs the volume below.
pub struct Within {
    below: Fs,
    root: NodeId,
    takes_changes: bool,
    /// The caps, if they differ from those of the volume below.
    claimed: Option<Caps>,
    ended: AtomicBool,
    opens: Mutex<HashSet<OpenId>>,
}

impl Within {
    /// Returns the directory `root` of `below`.
    pub fn new(below: Fs, root: NodeId) -> Self {
        Self {
            below,
            root,
            takes_changes: true,
            claimed: None,
            ended: AtomicBool::new(false),
            opens: Mutex::default(),
        }
    }

    /// Refuses every change with `ReadOnly`, unless the volume does not support the operation at
    /// all.
    #[must_use]
    pub fn only_read(mut self) -> Self {
        self.takes_changes = false;
        self
    }

    /// Claims `caps` instead of the caps of the volume below, e.g. those that
    /// [`try_out`](crate::try_out) found.
    #[must_use]
    pub fn claiming(mut self, caps: Caps) -> Self {
        self.claimed = Some(caps);
        self
    }

    /// Returns whether the volume below does not support the operation, which it reports before
    /// `ReadOnly`.
    fn lacks(&self, call: Call) -> bool {
        matches!(call, Call::SetXattr | Call::RemoveXattr) && !self.below.caps().has(Caps::XATTRS)
    }

    fn check(&self) -> Result<()> {
        match self.ended.load(Ordering::Acquire) {
            true => Err(Kind::Stale.into()),
            false => Ok(()),
        }
    }
}

impl Layer for Within {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.check()?;
        if op.call.changes() && !self.takes_changes && !self.lacks(op.call) {
            return Err(Kind::ReadOnly.into());
        }
        call()
    }

    fn caps(&self) -> Caps {
        let caps = self.claimed.unwrap_or_else(|| self.below.caps());
        match self.takes_changes {
            true => caps,
            false => caps.without(Caps::WRITE | Caps::PREALLOCATE | Caps::SWAP),
        }
    }

    fn root(&self) -> NodeId {
        self.root
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        if self.ended.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let opens: Vec<OpenId> = self.opens.lock().drain().collect();
        let closed = opens.into_iter().map(|open| self.below.close(cx, open));
        let closed = closed.fold(Ok(()), Result::and);
        closed.and(self.below.sync(cx))
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.check()?;
        if dir != self.root {
            return self.below.parent(cx, dir);
        }
        let attr = self.below.getattr(cx, dir)?;
        Ok(Entry { node: dir, attr })
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.check()?;
        if !self.takes_changes {
            return Err(Kind::ReadOnly.into());
        }
        let (entry, open) = self.below.create(cx, dir, name, how, set)?;
        self.opens.lock().insert(open);
        Ok((entry, open))
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.check()?;
        if mode != Mode::Read && !self.takes_changes {
            return Err(Kind::ReadOnly.into());
        }
        let open = self.below.open(cx, node, mode)?;
        self.opens.lock().insert(open);
        Ok(open)
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.check()?;
        self.opens.lock().remove(&open);
        self.below.close(cx, open)
    }
}
