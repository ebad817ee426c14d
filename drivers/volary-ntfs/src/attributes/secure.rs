//! The security descriptors of nodes: their own, and the shared ones in `$Secure`.

use crate::directory::index::Index;
use crate::disk::ondisk::{SecurityHead, kind, number};
use crate::files::node::Node;
use crate::mft::records::Mft;
use parking_lot::Mutex;
use std::sync::Arc;
use volary_core::{Kind, Result};
use zerocopy::FromBytes;

/// The longest security descriptor, in bytes.
const DESCRIPTOR_MAX: u64 = 64 << 10;

/// The names of the stream with all descriptors, and of its index by id.
const SDS: [u16; 4] = [0x24, 0x53, 0x44, 0x53];
const SII: [u16; 4] = [0x24, 0x53, 0x49, 0x49];

/// How many descriptors of `$Secure` are kept in memory.
const KEPT_MAX: usize = 64;

/// A descriptor, or `None` if `$Secure` has none with its id.
type Shared = Option<Arc<[u8]>>;

/// The security descriptors of a volume. Keeps those of `$Secure` that were read recently.
#[derive(Default)]
pub(crate) struct Secure(Mutex<Vec<(u32, Shared)>>);

impl Secure {
    /// Returns the kept result for an id. `None` if the id was not read yet.
    fn get(&self, id: u32) -> Option<Shared> {
        let kept = self.0.lock();
        let found = kept.iter().find(|(of, _)| *of == id);
        found.map(|(_, kept)| kept.clone())
    }

    /// Keeps the result for an id.
    fn keep(&self, id: u32, found: Shared) {
        let mut kept = self.0.lock();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.push((id, found));
    }

    /// Returns the security descriptor of a node: its own, or the one that it shares with other
    /// nodes.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn descriptor(&self, mft: &Mft, node: &Node) -> Result<Option<Arc<[u8]>>> {
        let own = node.value(
            mft,
            kind::SECURITY_DESCRIPTOR,
            "$SECURITY_DESCRIPTOR",
            DESCRIPTOR_MAX,
        )?;
        if let Some(own) = own {
            return Ok(Some(own.into()));
        }
        let Some(id) = node.security_id()?.filter(|id| *id != 0) else {
            return Ok(None);
        };
        if let Some(kept) = self.get(id) {
            return Ok(kept);
        }
        let found: Option<Arc<[u8]>> = shared(mft, id)?.map(Into::into);
        self.keep(id, found.clone());
        Ok(found)
    }
}

/// Returns the security descriptor with an id in `$Secure`. `None` if there is none.
///
/// # Errors
/// `Corrupt`; `Io`.
pub(crate) fn shared(mft: &Mft, id: u32) -> Result<Option<Vec<u8>>> {
    let node = match Node::of(mft, number::SECURE) {
        Err(e) if e == Kind::Stale => return Ok(None),
        read => read?,
    };
    let (Some(index), Some(all)) = (
        Index::of(mft, &node, &SII)?,
        node.stream(mft, kind::DATA, &SDS)?,
    ) else {
        return Ok(None);
    };
    let order = |entry: &crate::directory::index::Entry<'_>| {
        let key = entry
            .key()
            .first_chunk()
            .map(|key| u32::from_le_bytes(*key));
        Ok(key.unwrap_or(0).cmp(&id))
    };
    let place = index.find(mft, order, |entry| {
        Ok(SecurityHead::read_from_prefix(entry.data())
            .ok()
            .map(|(head, _)| head))
    })?;
    let Some(head) = place.flatten() else {
        return Ok(None);
    };
    let own = size_of::<SecurityHead>() as u64;
    let len = u64::from(head.len.get())
        .checked_sub(own)
        .filter(|len| *len <= DESCRIPTOR_MAX);
    let Some(len) = len else { return Ok(None) };
    let mut stored = vec![0; usize::try_from(own + len).unwrap_or(0)];
    let read = all.read(mft, head.offset.get(), &mut stored)?;
    let again = SecurityHead::read_from_prefix(&stored).ok();
    let is_it = again.is_some_and(|(again, _)| again.id.get() == id) && read == stored.len();
    Ok(is_it.then(|| stored.split_off(size_of::<SecurityHead>())))
}
