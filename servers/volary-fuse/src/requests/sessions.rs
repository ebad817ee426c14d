//! [`Sessions`]: the sessions in which callers act on the volume.

use crate::options::Checks;
use crate::requests::caller::Caller;
use parking_lot::RwLock;
use std::fs;
use std::sync::Arc;
use volary_core::Cred;
use volary_session::{ClientId, Session, Volume};

/// How many sessions are cached.
const SESSIONS_MAX: usize = 64;

/// The callers' sessions.
pub(crate) struct Sessions {
    volume: Arc<Volume>,
    client: ClientId,
    checks: Checks,
    /// Cached sessions.
    ready: RwLock<Vec<Session>>,
}

impl Sessions {
    /// Returns the sessions of a client on a volume. `checks` states who checks access.
    pub(crate) fn new(volume: Arc<Volume>, client: ClientId, checks: Checks) -> Self {
        Self {
            volume,
            client,
            checks,
            ready: RwLock::default(),
        }
    }

    /// Returns the caller's session.
    pub(crate) fn of(&self, req: &Caller) -> Session {
        let session = self.get(req.uid, req.gid, req.pid);
        match &req.cancel {
            Some(cancel) => session.with_cancel(Arc::clone(cancel)),
            None => session,
        }
    }

    /// Returns the kernel's own session, for requests that have no caller.
    pub(crate) fn own(&self) -> Session {
        self.get(0, 0, 0)
    }

    fn get(&self, uid: u32, gid: u32, pid: u32) -> Session {
        if self.checks == Checks::Session && uid != 0 {
            let cred = Cred {
                uid,
                gid,
                groups: groups_of(pid).into(),
            };
            return self.volume.session(cred).with_client(self.client);
        }
        let is_theirs = |s: &&Session| s.cred().uid == uid && s.cred().gid == gid;
        if let Some(found) = self.ready.read().iter().find(is_theirs) {
            return found.clone();
        }
        let made = self
            .volume
            .session(Cred::new(uid, gid))
            .with_client(self.client);
        let mut sessions = self.ready.write();
        if sessions.len() >= SESSIONS_MAX {
            sessions.clear();
        }
        sessions.push(made.clone());
        made
    }
}

/// Returns the supplementary groups of a process, as `proc(5)` lists them. Returns none if it is
/// gone.
fn groups_of(pid: u32) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    let groups = line.unwrap_or_default().split_whitespace();
    groups.filter_map(|group| group.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_a_process_that_is_gone_are_none() {
        assert_eq!(groups_of(u32::MAX), Vec::<u32>::new());
    }
}
