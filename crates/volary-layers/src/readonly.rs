//! Refuses changes.

use volary_core::{Caps, Ctx, Fs, Kind, Layer, Mode, NodeId, Op, OpenId, Result};

/// A read-only view of a volume: changes, and opens for writing, answer `ReadOnly`.
pub struct ReadOnly(Fs);

impl ReadOnly {
    /// Puts the layer over `below`.
    pub fn new(below: Fs) -> Self {
        Self(below)
    }
}

impl Layer for ReadOnly {
    fn below(&self) -> &Fs {
        &self.0
    }

    fn caps(&self) -> Caps {
        self.0.caps().without(Caps::WRITE)
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if op.call.changes() {
            return Err(Kind::ReadOnly.into());
        }
        call()
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        if mode != Mode::Read {
            return Err(Kind::ReadOnly.into());
        }
        self.0.open(cx, node, mode)
    }

    /// Refuses: what a driver's own codes change is not known here.
    fn ioctl(&self, _: &Ctx<'_>, _: OpenId, _: u32, _: &[u8]) -> Result<Vec<u8>> {
        Err(Kind::ReadOnly.into())
    }
}
