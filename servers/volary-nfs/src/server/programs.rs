//! [`Programs`]: the programs that clients call, and their state.

use super::options::ServeOptions;
use crate::exports::export::Export;
use crate::exports::fh::Key;
use crate::exports::options::ExportOptions;
use crate::exports::resolve::Exports;
use crate::kept::dupes::Dupes;
use crate::kept::mounts::Mounts;
use crate::nlm::Nlm;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use volary_session::Volume;

/// The programs that clients call, and their state: all of the server but its connections.
pub struct Programs {
    exports: Arc<Exports>,
    nlm: Arc<Nlm>,
    mounts: Mounts,
    dupes: Dupes,
    /// The port of NFS, once it is known.
    port: OnceLock<u16>,
    defects: AtomicU64,
}

impl Programs {
    /// Returns the programs that serve these volumes. Names must differ.
    pub fn new(exports: Vec<(Arc<Volume>, ExportOptions)>, options: &ServeOptions) -> Arc<Self> {
        let instance = options.instance;
        let exports = exports.into_iter();
        let exports = exports.map(|(volume, how)| Export::new(volume, how, instance));
        let exports = Arc::new(Exports::new(exports.collect(), Key::new(&options.key)));
        Arc::new(Self {
            nlm: Nlm::new(&exports, options.locks.clone(), options.client_portmap),
            exports,
            mounts: Mounts::default(),
            dupes: Dupes::default(),
            port: OnceLock::new(),
            defects: AtomicU64::new(0),
        })
    }

    /// Does the work that is due once a second.
    pub fn tick(&self) {
        self.exports.iter().for_each(Export::sweep);
        self.nlm.tick();
    }

    /// Ends locks and opens; waits a little for requests that wait for locks.
    pub fn end(&self) {
        self.nlm.shut();
        self.exports.iter().for_each(|e| e.volume.wake_waiting());
        self.nlm.wait_ended(Duration::from_secs(1));
        self.exports.iter().for_each(Export::close_all);
    }

    /// Returns how many opens are kept for NFS, and how many files have locks.
    pub fn kept(&self) -> (usize, usize) {
        let opens = self.exports.iter().map(Export::open_count).sum();
        (opens, self.nlm.file_count())
    }

    /// Returns how many calls ended in a panic: each is a defect.
    pub fn defects(&self) -> u64 {
        self.defects.load(Ordering::Relaxed)
    }

    /// Notes a call that ended in a panic.
    pub(crate) fn note_defect(&self) {
        self.defects.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the cache of replies, for calls that come twice.
    pub(crate) fn dupes(&self) -> &Dupes {
        &self.dupes
    }

    pub(crate) fn exports(&self) -> &Exports {
        &self.exports
    }

    pub(crate) fn nlm(&self) -> &Arc<Nlm> {
        &self.nlm
    }

    pub(crate) fn mounts(&self) -> &Mounts {
        &self.mounts
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.port.get().copied()
    }

    /// Sets the port of NFS.
    pub(crate) fn set_port(&self, port: u16) {
        // It is set only once.
        let _ = self.port.set(port);
    }
}
