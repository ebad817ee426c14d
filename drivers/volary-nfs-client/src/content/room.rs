//! The free space of the server's volume.

use crate::calls::export::{Export, Who};
use crate::content::behind::Behind;
use crate::known::attr_cache::tick;
use crate::known::node::Node;
use crate::timer;
use crate::wire::proto::{Fattr, procedure};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use volary_core::{Result, StatFs};
use volary_rpc::Output;

/// If less space than this is left, in bytes, writes are not delayed.
const NEAR_FULL: u64 = 16 << 20;
/// How long the server's answer is valid.
const ROOM_AGE: Duration = Duration::from_secs(1);

/// The free space of the server's volume.
pub(crate) struct Room {
    export: Arc<Export>,
    root: Arc<Node>,
    known: Mutex<Left>,
}

/// The last known free space.
#[derive(Default)]
struct Left {
    bytes: u64,
    at: Option<Instant>,
}

impl Room {
    pub(crate) fn new(export: Arc<Export>, root: Arc<Node>) -> Self {
        Self {
            export,
            root,
            known: Mutex::default(),
        }
    }

    /// Calls FSSTAT.
    pub(crate) fn stat(&self, who: Who<'_>) -> Result<StatFs> {
        let root = &self.root;
        let asked = tick();
        let put = |out: &mut Output| root.fh.write(out);
        let (attr, stat) = self.export.ask(who, procedure::FSSTAT, put, |input| {
            let attr = Fattr::read_maybe(input)?;
            let stat = StatFs {
                block_size: 4096,
                size: input.u64()?,
                free: input.u64()?,
                available: input.u64()?,
                nodes: input.u64()?,
                nodes_free: input.u64()?,
            };
            Ok((attr, stat))
        })?;
        if let Some(attr) = attr {
            root.note(&attr, asked)?;
        }
        Ok(stat)
    }

    /// Returns whether there is space for `len` bytes beyond the data written behind, as far as is
    /// known.
    pub(crate) fn has(&self, who: Who<'_>, behind: &Behind, len: usize) -> Result<bool> {
        let len = len as u64;
        let mut left = self.known.lock();
        let fresh = left.at.is_some_and(|at| at.elapsed() < ROOM_AGE);
        if !fresh || left.bytes < len.saturating_add(NEAR_FULL) {
            let held = behind.held() as u64;
            left.bytes = self.stat(who)?.available.saturating_sub(held);
            left.at = Some(timer::now());
        }
        let enough = left.bytes >= len.saturating_add(NEAR_FULL);
        if enough {
            left.bytes -= len;
        }
        Ok(enough)
    }
}
