//! Open files: [`File`], and the table of a tree's files.

use super::breaker::Breaker;
use super::claim::Claim;
use super::scan::Scan;
use super::watch::Watch;
use crate::budget::Taken;
use crate::files::names::KeptPath;
use crate::wire::FileId;
use crate::wire::Status;
use crate::wire::create::{Action, option};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use volary_core::{Cancel, FileKind, NodeId, OpenId, Time};
use volary_session::{LeaseKey, Session};

/// The most files that a tree has open at a time.
const FILES_MAX: usize = 1 << 16;

/// The tree in which a file is open, for code that finds the file in other ways.
pub(crate) trait Home: fmt::Debug + Send + Sync {
    /// Returns the session that opened it.
    fn session(&self) -> &Session;

    /// Removes a file from the tree's table. Returns false if it is not there.
    fn lets_go(&self, id: FileId) -> bool;
}

/// The numbers of the last lock requests that were carried out, by their indices from 1 on.
pub(crate) type Sequences = [Option<u8>; SEQUENCES];
/// The number of indices.
pub(crate) const SEQUENCES: usize = 64;

/// An open of a client.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) id: FileId,
    /// The session's open.
    pub(crate) open: OpenId,
    pub(crate) node: NodeId,
    pub(crate) kind: FileKind,
    /// The granted rights (`GrantedAccess`).
    pub(crate) access: u32,
    /// `CreateOptions`.
    pub(crate) options: u32,
    /// The path from the share's root. Renames through this server update it.
    pub(crate) path: Mutex<KeptPath>,
    /// `FilePositionInformation`. It is stored, but has no effect.
    pub(crate) position: AtomicU64,
    /// Options that `FileModeInformation` set.
    pub(crate) mode: AtomicU64,
    /// Times that this open no longer changes.
    pub(crate) frozen: Mutex<Frozen>,
    pub(crate) scan: Mutex<Option<Scan>>,
    pub(crate) watch: Mutex<Option<Arc<Watch<Self>>>>,
    /// The key of its oplock, if it was granted one.
    pub(crate) oplock: Option<LeaseKey>,
    /// The key of its lease, if it has one.
    pub(crate) lease: Option<LeaseKey>,
    /// Notifies the client when the oplock or lease is broken.
    pub(crate) breaker: Option<Arc<Breaker>>,
    /// What identifies it to its client, besides its id.
    pub(crate) claim: Option<Box<Claim>>,
    /// How it was opened.
    pub(crate) action: Action,
    /// Whether no other request than its CREATE has used it.
    pub(crate) is_fresh: AtomicBool,
    /// The newest `ChannelSequence` of its requests.
    pub(crate) sequence: Mutex<u16>,
    /// The lock requests that have been carried out.
    pub(crate) sequences: Mutex<Option<Box<Sequences>>>,
    /// The tree in which it is open, or was last.
    pub(crate) tree: Weak<dyn Home>,
    /// Waiting lock requests through it, which are cancelled when it is closed.
    pub(crate) waiting: Mutex<Vec<Arc<Cancel>>>,
    /// Its share of the user's limit on opens.
    pub(crate) taken: Arc<Taken>,
}

/// Times that the client has set, or frozen with a time of -1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frozen {
    pub(crate) accessed: Option<Time>,
    pub(crate) written: Option<Time>,
    /// The time of change, as a FILETIME.
    pub(crate) changed: Option<u64>,
}

impl File {
    pub(crate) fn is_dir(&self) -> bool {
        self.kind == FileKind::Dir
    }

    /// Returns whether any of these rights was granted.
    pub(crate) fn has_any(&self, rights: u32) -> bool {
        self.access & rights != 0
    }

    /// Checks that any of these rights was granted.
    ///
    /// # Errors
    /// `ACCESS_DENIED` if none was.
    pub(crate) fn need_any(&self, rights: u32) -> Result<(), Status> {
        if self.has_any(rights) {
            Ok(())
        } else {
            Err(Status::ACCESS_DENIED)
        }
    }

    /// Checks that this is a regular file.
    ///
    /// # Errors
    /// `INVALID_DEVICE_REQUEST` for a directory, and for other nodes without data.
    pub(crate) fn need_file(&self) -> Result<(), Status> {
        if self.kind == FileKind::File {
            Ok(())
        } else {
            Err(Status::INVALID_DEVICE_REQUEST)
        }
    }

    /// Returns whether a request with this `ChannelSequence` is not older than others before it.
    /// Half of all numbers count as older.
    pub(crate) fn is_current(&self, sequence: u16) -> bool {
        let mut newest = self.sequence.lock();
        let is_current = sequence.wrapping_sub(*newest) <= u16::MAX / 2;
        if is_current {
            *newest = sequence;
        }
        is_current
    }

    /// Notes a request that may wait, until the result is dropped.
    pub(crate) fn waits<'a>(&'a self, cancel: &'a Arc<Cancel>) -> Waiting<'a> {
        self.waiting.lock().push(Arc::clone(cancel));
        Waiting { file: self, cancel }
    }

    /// Cancels the waiting requests.
    pub(crate) fn send_away(&self) {
        for cancel in self.waiting.lock().iter() {
            cancel.set();
        }
    }

    /// Returns this open for another tree, with another id. Its resources move to the new one.
    pub(crate) fn moved(&self, id: FileId, sequence: Option<u16>, tree: Weak<dyn Home>) -> Self {
        Self {
            id,
            open: self.open,
            node: self.node,
            kind: self.kind,
            access: self.access,
            options: self.options,
            path: Mutex::new(mem::take(&mut *self.path.lock())),
            position: AtomicU64::new(self.position.load(Ordering::Relaxed)),
            mode: AtomicU64::new(self.mode.load(Ordering::Relaxed)),
            frozen: Mutex::new(*self.frozen.lock()),
            scan: Mutex::default(),
            watch: Mutex::default(),
            oplock: self.oplock,
            lease: self.lease,
            breaker: self.breaker.clone(),
            claim: self.claim.clone(),
            action: self.action,
            is_fresh: AtomicBool::new(false),
            sequences: Mutex::new(self.sequences.lock().take()),
            sequence: Mutex::new(sequence.unwrap_or(0)),
            tree,
            waiting: Mutex::default(),
            taken: Arc::clone(&self.taken),
        }
    }

    pub(crate) fn writes_through(&self) -> bool {
        self.options & option::WRITE_THROUGH != 0
    }
}

/// A request that may wait.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    file: &'a File,
    cancel: &'a Arc<Cancel>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.file.waiting.lock();
        waiting.retain(|other| !Arc::ptr_eq(other, self.cancel));
    }
}

/// The files of a tree.
#[derive(Debug, Default)]
pub(crate) struct FileTable {
    files: RwLock<HashMap<u64, Arc<File>>>,
    next: AtomicU64,
}

impl FileTable {
    /// Returns an id that no file of the tree has had.
    pub(crate) fn next_volatile(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Checks that the tree can have one more open file.
    ///
    /// # Errors
    /// `TOO_MANY_OPENED_FILES` if [`FILES_MAX`] are open.
    pub(crate) fn check_room(&self) -> Result<(), Status> {
        if self.files.read().len() < FILES_MAX {
            Ok(())
        } else {
            Err(Status::TOO_MANY_OPENED_FILES)
        }
    }

    pub(crate) fn insert(&self, file: Arc<File>) {
        self.files.write().insert(file.id.volatile, file);
    }

    pub(crate) fn get(&self, id: FileId) -> Option<Arc<File>> {
        let files = self.files.read();
        let file = files.get(&id.volatile)?;
        (file.id == id).then(|| Arc::clone(file))
    }

    pub(crate) fn remove(&self, id: FileId) -> Option<Arc<File>> {
        let mut files = self.files.write();
        let known = files.get(&id.volatile).is_some_and(|file| file.id == id);
        if known {
            files.remove(&id.volatile)
        } else {
            None
        }
    }

    /// Returns the number of files.
    pub(crate) fn len(&self) -> usize {
        self.files.read().len()
    }

    /// Removes all files, and returns them.
    pub(crate) fn take_all(&self) -> Vec<Arc<File>> {
        self.files.write().drain().map(|(_, file)| file).collect()
    }
}
