//! Reading and writing content through opens.

use crate::calls::export::{Export, Who};
use crate::content::ahead::{Ahead, Wanted};
use crate::content::behind::Behind;
use crate::content::room::Room;
use crate::opens::open::Opened;
use std::sync::Arc;
use volary_core::{FileKind, Kind, Mode, Result};

/// The content of files.
pub(crate) struct Files {
    export: Arc<Export>,
    pub(crate) ahead: Arc<Ahead>,
    pub(crate) behind: Arc<Behind>,
    pub(crate) room: Room,
    size_max: u64,
}

impl Files {
    pub(crate) fn new(
        export: Arc<Export>,
        ahead: Arc<Ahead>,
        behind: Arc<Behind>,
        room: Room,
        size_max: u64,
    ) -> Self {
        Self {
            export,
            ahead,
            behind,
            room,
            size_max,
        }
    }

    /// See [`read`](volary_core::FileSystem::read).
    pub(crate) fn read(
        &self,
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
        if offset >= self.size_max {
            // Some servers refuse such offsets as invalid.
            self.export.check()?;
            return Ok(0);
        }
        self.behind.settle(node)?;
        let _shared = node.io.read();
        // A writer may have gathered data in between.
        self.behind.settle(node)?;
        let run = open.follows(offset, buf.len());
        self.ahead.read(&Wanted { who, node, run }, offset, buf)
    }

    /// See [`write`](volary_core::FileSystem::write).
    pub(crate) fn write(
        &self,
        who: Who<'_>,
        open: &Opened,
        offset: Option<u64>,
        data: &[u8],
    ) -> Result<u64> {
        self.export.check_writable()?;
        let node = &open.node;
        if node.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        if open.mode == Mode::Read {
            return Err(Kind::Access.into());
        }
        let _alone = node.io.write();
        node.data().state.lock().check_failed()?;
        let offset = match offset {
            Some(offset) => offset,
            None => {
                self.behind.settle(node)?;
                self.export.fetch_attr(who, node)?.size
            }
        };
        let end = offset.checked_add(data.len() as u64).ok_or(Kind::TooBig)?;
        if end > self.size_max {
            return Err(Kind::TooBig.into());
        }
        if data.is_empty() {
            return Ok(end);
        }
        if self.behind.is_sync() || !self.room.has(who, &self.behind, data.len())? {
            self.behind.write_through(who, node, offset, data)?;
        } else {
            self.behind.gather(node, who.cred, offset, data);
        }
        self.behind.keep_bound(who, node)?;
        Ok(end)
    }
}
