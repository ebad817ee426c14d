//! Metafiles that are read when they are asked for: `$UpCase`, and the security descriptors of `$Secure`.

use crate::node::Node;
use crate::ondisk::{SECURITY_ID, SecurityHead, kind, number};
use crate::store::Store;
use crate::upcase::Upcase;
use std::sync::Arc;
use volary_core::{Error, Kind, Result};
use zerocopy::FromBytes;

/// Longest security descriptor, in bytes.
const DESCRIPTOR_MAX: u64 = 64 << 10;

/// The names of the stream of all descriptors, and of its index by id.
const SDS: [u16; 4] = [0x24, 0x53, 0x44, 0x53];
const SII: [u16; 4] = [0x24, 0x53, 0x49, 0x49];

impl Store {
    /// Returns the volume's table.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn upcase(&self) -> Result<&Upcase> {
        if let Some(table) = self.upcase.get() {
            return Ok(table);
        }
        let node = self.node_of(number::UPCASE).map_err(|e| match e.kind() {
            Kind::Stale => {
                let at = self.record_at(number::UPCASE).unwrap_or(0);
                Error::corrupt("$UpCase", at, "a record that is not in use", "a table")
            }
            _ => e,
        })?;
        let value = self.value(&node, (kind::DATA, "$UpCase"), Upcase::LEN)?;
        let table = value.and_then(|value| Upcase::of(&value));
        let table = table.ok_or_else(|| {
            Error::corrupt("$UpCase", node.record.at, "another table", "65536 units")
        })?;
        Ok(self.upcase.get_or_init(|| table))
    }

    /// Returns the security descriptor of a node: its own, or the one that it shares with others.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn descriptor(&self, node: &Node) -> Result<Option<Arc<[u8]>>> {
        let what = (kind::SECURITY_DESCRIPTOR, "$SECURITY_DESCRIPTOR");
        if let Some(own) = self.value(node, what, DESCRIPTOR_MAX)? {
            return Ok(Some(own.into()));
        }
        let Some(id) = node.security_id()?.filter(|id| *id != 0) else {
            return Ok(None);
        };
        if let Some(kept) = self.secure.get(id) {
            return Ok(kept);
        }
        let found: Option<Arc<[u8]>> = self.shared_descriptor(id)?.map(Into::into);
        self.secure.keep(id, found.clone());
        Ok(found)
    }

    /// Returns the descriptor of an id, as `$Secure` has it.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn shared_descriptor(&self, id: u32) -> Result<Option<Vec<u8>>> {
        let node = match self.node_of(number::SECURE) {
            Err(e) if e == Kind::Stale => return Ok(None),
            read => read?,
        };
        let (Some(index), Some(all)) = (
            self.index(&node, &SII)?,
            self.stream(&node, kind::DATA, &SDS)?,
        ) else {
            return Ok(None);
        };
        let order = |entry: &crate::index::Entry<'_>| {
            let key = entry
                .key()
                .first_chunk()
                .map(|key| u32::from_le_bytes(*key));
            Ok(key.unwrap_or(0).cmp(&id))
        };
        let place = index.find(self, order, |entry| {
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
        let read = all.read(self, head.offset.get(), &mut stored)?;
        let again = SecurityHead::read_from_prefix(&stored).ok();
        let is_it = again.is_some_and(|(again, _)| again.id.get() == id) && read == stored.len();
        Ok(is_it.then(|| stored.split_off(size_of::<SecurityHead>())))
    }
}

impl Node {
    /// Returns the id of the descriptor that it shares, if its volume keeps such.
    ///
    /// # Errors
    /// As [`standard`](Self::standard).
    pub(crate) fn security_id(&self) -> Result<Option<u32>> {
        let (_, value) = self.standard()?;
        let id = value.get(SECURITY_ID..).and_then(|rest| rest.first_chunk());
        Ok(id.map(|id| u32::from_le_bytes(*id)))
    }
}
