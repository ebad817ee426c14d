//! [`Mounts`]: which clients have mounted what.

use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::net::IpAddr;

/// How many of the latest mounts DUMP lists.
const MOUNTS_MAX: usize = 256;

/// Which clients have mounted what, as far as known: a list for people, without effect.
#[derive(Default)]
pub(crate) struct Mounts(Mutex<VecDeque<(IpAddr, Box<[u8]>)>>);

impl Mounts {
    pub(crate) fn add(&self, peer: IpAddr, path: &[u8]) {
        let mut mounts = self.0.lock();
        if mounts.iter().any(|(ip, p)| (*ip, &**p) == (peer, path)) {
            return;
        }
        if mounts.len() == MOUNTS_MAX {
            mounts.pop_front();
        }
        mounts.push_back((peer, path.into()));
    }

    /// Returns all mounts, the latest last.
    pub(crate) fn lock(&self) -> MutexGuard<'_, VecDeque<(IpAddr, Box<[u8]>)>> {
        self.0.lock()
    }

    pub(crate) fn remove(&self, peer: IpAddr, path: Option<&[u8]>) {
        let is_it = |ip: IpAddr, p: &[u8]| ip == peer && path.is_none_or(|path| path == p);
        self.0.lock().retain(|(ip, p)| !is_it(*ip, p));
    }
}
