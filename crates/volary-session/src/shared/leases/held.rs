//! One lease: what is granted, and how it is taken away. Neither waits nor reads a clock.

use super::{Impact, Lease, LeaseBits, LeaseBreak, LeaseKey, LeaseSink, Notice};
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Kind, OpenId, Result, Time};

/// A lease that a client holds.
pub(crate) struct Held {
    pub(crate) key: LeaseKey,
    granted: LeaseBits,
    epoch: u16,
    breaking: Option<Breaking>,
    /// When the client was last told to give bits up.
    since: Time,
    sink: Arc<dyn LeaseSink>,
    open: OpenId,
    pub(crate) is_dir: bool,
}

/// A break that is not yet acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Breaking {
    /// What the client was told that it may keep.
    offered: LeaseBits,
    /// What it may keep now, which may be less.
    required: LeaseBits,
}

/// A break, as it is told to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    from: LeaseBits,
    to: LeaseBits,
    must_ack: bool,
}

impl Held {
    /// Returns a new lease.
    pub(crate) fn new(
        key: LeaseKey,
        granted: LeaseBits,
        sink: Arc<dyn LeaseSink>,
        open: OpenId,
        is_dir: bool,
    ) -> Self {
        Self {
            key,
            granted,
            epoch: 1,
            breaking: None,
            since: Time::EPOCH,
            sink,
            open,
            is_dir,
        }
    }

    /// Notes when the client was told to give bits up.
    pub(crate) fn asked_at(&mut self, now: Time) {
        self.since = now;
    }

    /// Ends the lease if the client was told to give bits up at least `limit` ago. Returns whether
    /// it did.
    pub(crate) fn expire_late(&mut self, now: Time, limit: Duration) -> bool {
        let asked = i128::from(self.since.secs) * 1_000_000_000 + i128::from(self.since.nanos);
        let now = i128::from(now.secs) * 1_000_000_000 + i128::from(now.nanos);
        let limit = i128::try_from(limit.as_nanos()).unwrap_or(i128::MAX);
        self.is_breaking() && now - asked >= limit && self.expire()
    }

    /// Returns the bits that are held, even while they are being taken away.
    pub(crate) fn granted(&self) -> LeaseBits {
        self.granted
    }

    pub(crate) fn is_oplock(&self) -> bool {
        self.sink.is_oplock()
    }

    pub(crate) fn state(&self) -> Lease {
        Lease {
            granted: self.granted,
            epoch: self.epoch,
            breaking: self.breaking.is_some(),
        }
    }

    /// Handles a further request: the lease grows if all of `want` can be `granted`, and includes
    /// what is held.
    pub(crate) fn ask(
        &mut self,
        want: LeaseBits,
        granted: LeaseBits,
        sink: Arc<dyn LeaseSink>,
        open: OpenId,
    ) {
        self.sink = sink;
        self.open = open;
        let grows = granted != self.granted && granted.has(self.granted);
        if grows && granted == want && self.breaking.is_none() {
            self.granted = granted;
            self.grow_epoch();
        }
    }

    /// Notes that one of the lease's opens ends; `other` is another of its opens.
    pub(crate) fn ends_with(&mut self, open: OpenId, other: Option<OpenId>) {
        if self.open == open {
            self.open = other.unwrap_or(open);
        }
    }

    /// Returns whether the operation must take bits away, or wait.
    pub(crate) fn is_hit(&self, impact: Impact) -> bool {
        let kept = self.breaking.map_or(self.granted, |b| b.required);
        kept.has_any(impact.strips) || self.is_awaited(impact)
    }

    /// Returns whether the operation must wait for bits that are being taken away.
    pub(crate) fn is_awaited(&self, impact: Impact) -> bool {
        self.breaking.is_some() && self.granted.has_any(impact.awaits)
    }

    /// Returns whether bits are being taken away.
    pub(crate) fn is_breaking(&self) -> bool {
        self.breaking.is_some()
    }

    /// Returns whether the operation breaks the lease even if its holder does it. With an oplock,
    /// nobody may write to a file that others may read out of their caches.
    pub(crate) fn is_hit_by_own(&self, impact: Impact) -> bool {
        self.is_oplock()
            && !self.granted.has(LeaseBits::WRITE)
            && impact.strips.has(LeaseBits::READ)
    }

    /// Takes away the bits that the operation forbids.
    pub(crate) fn break_for(&mut self, impact: Impact) -> Option<Told> {
        let less = |bits: LeaseBits| {
            let left = bits.without(impact.strips);
            let whole = left.has(LeaseBits::READ);
            if left == bits {
                bits
            } else if self.sink.is_oplock() || !whole {
                left & LeaseBits::READ
            } else {
                left
            }
        };
        if let Some(breaking) = self.breaking {
            let required = less(breaking.required);
            self.breaking = Some(Breaking {
                required,
                ..breaking
            });
            return None;
        }
        let (from, to) = (self.granted, less(self.granted));
        if to == from {
            return None;
        }
        self.grow_epoch();
        Some(self.tell(from, to, to))
    }

    /// Gives up all bits but `bits`, as the client acknowledged. Returns the next break that it
    /// must be told of.
    ///
    /// # Errors
    /// `Invalid` if the client was not told to give up, or may not keep `bits`.
    pub(crate) fn acknowledge(&mut self, bits: LeaseBits) -> Result<Option<Told>> {
        let Some(Breaking { offered, required }) = self.breaking else {
            return Err(Kind::Invalid.into());
        };
        if !offered.has(bits) {
            return Err(Kind::Invalid.into());
        }
        self.granted = bits;
        self.breaking = None;
        if required.has(bits) {
            return Ok(None);
        }
        // All but READ is taken away first, READ in the next step.
        let more = bits.has_any(LeaseBits::HANDLE | LeaseBits::WRITE);
        let step = if more {
            required | LeaseBits::READ
        } else {
            required
        };
        Ok(Some(self.tell(bits, step & bits, required & bits)))
    }

    /// Ends the lease if it is breaking, since the client's time is over. Returns whether it was.
    pub(crate) fn expire(&mut self) -> bool {
        let late = self.breaking.take().is_some();
        if late {
            self.granted = LeaseBits::NONE;
        }
        late
    }

    /// Ends the lease, which the client gives up without being asked.
    pub(crate) fn give_up(&mut self) {
        self.breaking = None;
        self.granted = LeaseBits::NONE;
    }

    /// Returns the notice to send.
    pub(crate) fn notice(&self, told: Told) -> Notice {
        Notice {
            sink: Arc::clone(&self.sink),
            broken: LeaseBreak {
                key: self.key,
                from: told.from,
                to: told.to,
                epoch: self.epoch,
                must_ack: told.must_ack,
                open: self.open,
            },
        }
    }

    fn tell(&mut self, from: LeaseBits, offered: LeaseBits, required: LeaseBits) -> Told {
        let must_ack = from.has_any(LeaseBits::HANDLE | LeaseBits::WRITE);
        if must_ack {
            self.breaking = Some(Breaking { offered, required });
        } else {
            self.granted = offered;
        }
        Told {
            from,
            to: offered,
            must_ack,
        }
    }

    fn grow_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests;
