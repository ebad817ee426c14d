//! [`Programs`]: what there is to call, and what it keeps.

use crate::dupes::Dupes;
use crate::export::Export;
use crate::fh::Key;
use crate::mounts::Mounts;
use crate::nlm::{LockState, Locks, Shares};
use crate::options::{ExportOptions, ServeOptions};
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use volary_session::{Grace, Volume, is_this_host};

/// What there is to call, and what it keeps: everything of the server but its
/// connections.
pub struct Programs {
    exports: Vec<Export>,
    key: Key,
    mounts: Mounts,
    locks: Locks,
    shares: Shares,
    lock_state: Option<Arc<LockState>>,
    /// Keeps new locks out of all exports.
    grace: Mutex<Vec<Grace>>,
    dupes: Dupes,
    client_portmap: u16,
    /// Where NFS is served, once it is.
    port: OnceLock<u16>,
    defects: AtomicU64,
}

impl Programs {
    /// Those that serve these volumes. Names must differ.
    pub fn new(exports: Vec<(Arc<Volume>, ExportOptions)>, options: &ServeOptions) -> Arc<Self> {
        let instance = options.instance;
        let has_grace = options.locks.as_ref().is_some_and(|state| state.is_grace());
        let held = exports.iter().filter(|_| has_grace);
        let grace = held.map(|(volume, _)| volume.grace()).collect();
        let exports = exports
            .into_iter()
            .map(|(volume, how)| Export::new(volume, how, instance));
        Arc::new(Self {
            exports: exports.collect(),
            key: Key::new(&options.key),
            mounts: Mounts::default(),
            locks: Locks::default(),
            shares: Shares::default(),
            lock_state: options.locks.clone(),
            grace: Mutex::new(grace),
            dupes: Dupes::default(),
            client_portmap: options.client_portmap,
            port: OnceLock::new(),
            defects: AtomicU64::new(0),
        })
    }

    /// A second has passed.
    pub fn tick(&self) {
        self.exports.iter().for_each(Export::sweep);
        self.is_grace();
        self.sweep_lock_state();
    }

    /// Ends locks and opens; waits a little for those who wait for locks.
    pub fn end(&self) {
        self.locks.shut();
        self.shares.shut();
        self.end_grace();
        self.exports.iter().for_each(|e| e.volume.wake_waiting());
        self.locks.wait_ended(Duration::from_secs(1));
        self.exports.iter().for_each(Export::close_all);
    }

    /// How many opens are kept for NFS, and how many files have locks.
    pub fn kept(&self) -> (usize, usize) {
        let opens = self.exports.iter().map(Export::open_count).sum();
        (opens, self.locks.file_count())
    }

    /// How many calls ended in a panic: each is a defect.
    pub fn defects(&self) -> u64 {
        self.defects.load(Ordering::Relaxed)
    }

    /// Notes a call that ended in a panic.
    pub(crate) fn note_defect(&self) {
        self.defects.fetch_add(1, Ordering::Relaxed);
    }

    /// The answers to calls that came once already.
    pub(crate) fn dupes(&self) -> &Dupes {
        &self.dupes
    }

    /// Whether any export is for this client.
    pub(crate) fn admits(&self, peer: IpAddr) -> bool {
        is_this_host(peer) || self.exports.iter().any(|e| e.admits(peer))
    }

    pub(crate) fn exports(&self) -> std::slice::Iter<'_, Export> {
        self.exports.iter()
    }

    pub(crate) fn export_by_id(&self, id: u32) -> Option<&Export> {
        self.exports.iter().find(|e| e.id == id)
    }

    pub(crate) fn export_by_name(&self, name: &[u8]) -> Option<&Export> {
        let mut exports = self.exports.iter();
        exports.find(|e| e.options.name.as_bytes() == name)
    }

    pub(crate) fn only_export(&self) -> Option<&Export> {
        match &*self.exports {
            [only] => Some(only),
            _ => None,
        }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) fn mounts(&self) -> &Mounts {
        &self.mounts
    }

    pub(crate) fn locks(&self) -> &Locks {
        &self.locks
    }

    pub(crate) fn shares(&self) -> &Shares {
        &self.shares
    }

    pub(crate) fn lock_state(&self) -> Option<&LockState> {
        self.lock_state.as_deref()
    }

    /// Lets new locks in.
    pub(crate) fn end_grace(&self) {
        let over = std::mem::take(&mut *self.grace.lock());
        drop(over);
    }

    pub(crate) fn client_portmap(&self) -> u16 {
        self.client_portmap
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.port.get().copied()
    }

    /// Says where NFS is served.
    pub(crate) fn set_port(&self, port: u16) {
        // It is said once.
        let _ = self.port.set(port);
    }
}
