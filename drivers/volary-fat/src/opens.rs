//! Opens: which node each is of.

use crate::node::Node;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volary_core::{Kind, Mode, OpenId, Result};

/// One open.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) node: Arc<Node>,
    pub(crate) mode: Mode,
}

/// All opens of a volume. An id is a place in a table and, in its upper half,
/// how often that place was used before.
#[derive(Default)]
pub(crate) struct Opens(RwLock<Slots>);

#[derive(Default)]
struct Slots {
    slots: Vec<(u32, Option<Open>)>,
    free: Vec<u32>,
}

impl Opens {
    /// Opens a node.
    pub(crate) fn add(&self, node: Arc<Node>, mode: Mode) -> OpenId {
        node.opens.fetch_add(1, Ordering::AcqRel);
        let open = Open { node, mode };
        let mut all = self.0.write();
        let index = match all.free.pop() {
            Some(index) => index,
            None => {
                all.slots.push((0, None));
                (all.slots.len() - 1) as u32
            }
        };
        let mut uses = 0;
        if let Some(slot) = all.slots.get_mut(index as usize) {
            slot.0 = slot.0.wrapping_add(1);
            slot.1 = Some(open);
            uses = slot.0;
        }
        OpenId(u64::from(uses) << 32 | u64::from(index))
    }

    /// The open of an id.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn get(&self, id: OpenId) -> Result<Open> {
        let all = self.0.read();
        let slot = all.slots.get((id.0 & 0xffff_ffff) as usize);
        let slot = slot.filter(|s| u64::from(s.0) == id.0 >> 32);
        slot.and_then(|s| s.1.clone())
            .ok_or_else(|| Kind::Stale.into())
    }

    /// Ends an open and gives its node; the node's count is one less then.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn remove(&self, id: OpenId) -> Result<Arc<Node>> {
        let mut all = self.0.write();
        let index = (id.0 & 0xffff_ffff) as usize;
        let slot = all.slots.get_mut(index);
        let slot = slot.filter(|s| u64::from(s.0) == id.0 >> 32);
        let open = slot.and_then(|s| s.1.take()).ok_or(Kind::Stale)?;
        all.free.push(index as u32);
        open.node.opens.fetch_sub(1, Ordering::AcqRel);
        Ok(open.node)
    }

    /// Ends all opens.
    pub(crate) fn clear(&self) {
        let mut all = self.0.write();
        let Slots { slots, free } = &mut *all;
        for (index, slot) in slots.iter_mut().enumerate() {
            if let Some(open) = slot.1.take() {
                open.node.opens.fetch_sub(1, Ordering::AcqRel);
                free.push(index as u32);
            }
        }
    }
}
