//! [`Server`]: what all requests share, and what is done alike for each.

use crate::caller::Caller;
use crate::counts::Counts;
use crate::events::Progress;
use crate::kernel::{self, Wishes};
use crate::nodes::Nodes;
use crate::options::{Checks, Locks, MountOptions};
use crate::waiters::Waiters;
use fuser::{FileAttr, Generation, INodeNo, Notifier};
use parking_lot::RwLock;
use rustix::fd::OwnedFd;
use std::fs;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use volary_core::{Attr, Caps, Cred, Entry, FileKind, NodeId, Result};
use volary_session::{ClientId, Linger, Session, Volume};

const DAY: Duration = Duration::from_secs(86_400);
const SECOND: Duration = Duration::from_secs(1);
/// How many callers' sessions are kept ready.
const SESSIONS_MAX: usize = 64;

/// Answers the kernel's requests from one volume.
pub(crate) struct Server {
    pub(crate) volume: Arc<Volume>,
    pub(crate) caps: Caps,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) wishes: Wishes,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) news: Arc<Progress>,
    pub(crate) linger: Linger,
    /// Where the kernel's requests come from, once it is mounted.
    pub(crate) kernel: Arc<OnceLock<OwnedFd>>,
    /// Tells the kernel to forget, once it is mounted.
    pub(crate) notifier: Arc<OnceLock<Notifier>>,
    client: ClientId,
    checks: Checks,
    remember: Remember,
    sessions: RwLock<Vec<Session>>,
}

/// How long the kernel may answer from what it was told.
#[derive(Clone, Copy, Debug)]
struct Remember {
    attrs: Duration,
    /// The names of directories, which the kernel knows under one name only.
    dirs: Duration,
    /// Other names. Where a node can be named in upper and lower case, a
    /// rename under one name leaves the kernel's others as they were: these
    /// must not last.
    names: Duration,
    /// That there is no such name.
    absent: Duration,
}

impl Server {
    pub(crate) fn new(
        volume: Arc<Volume>,
        client: ClientId,
        options: &MountOptions,
        threads: usize,
    ) -> Self {
        let caps = volume.caps();
        let sole = !(caps.has(Caps::WATCH)
            || caps.has(Caps::SHARED_LOCKS)
            || caps.has(Caps::CHECKS_ACCESS)
            || caps.has(Caps::SHARED));
        let steps_match = kernel::kernel_keeps_step(caps.time_step);
        let write_back_is_safe = sole && steps_match && options.checks == Checks::Kernel;
        let wishes = Wishes {
            sole,
            write_back: options.write_back.unwrap_or(false) && write_back_is_safe,
            session_locks: options.locks == Locks::Session || caps.has(Caps::SHARED_LOCKS),
            acls: caps.has(Caps::XATTRS | Caps::MODES),
            kernel_checks: options.checks == Checks::Kernel,
            threads,
            read_ahead: options.read_ahead,
            time_step: caps.time_step,
        };
        Self {
            nodes: Arc::new(Nodes::new(volume.fs().root())),
            counts: Arc::default(),
            waiters: Arc::default(),
            news: Arc::default(),
            linger: Linger::new(instant),
            kernel: Arc::default(),
            notifier: Arc::default(),
            remember: Remember::of(caps, sole, options),
            checks: options.checks,
            sessions: RwLock::default(),
            client,
            wishes,
            caps,
            volume,
        }
    }

    /// The caller's session.
    pub(crate) fn session(&self, req: &Caller) -> Session {
        let session = self.session_of(req.uid, req.gid, req.pid);
        match &req.cancel {
            Some(cancel) => session.with_cancel(Arc::clone(cancel)),
            None => session,
        }
    }

    /// The kernel's own: for what it does on nobody's behalf.
    pub(crate) fn own_session(&self) -> Session {
        self.session_of(0, 0, 0)
    }

    fn session_of(&self, uid: u32, gid: u32, pid: u32) -> Session {
        if self.checks == Checks::Session && uid != 0 {
            let cred = Cred {
                uid,
                gid,
                groups: groups_of(pid).into(),
            };
            return self.volume.session(cred).with_client(self.client);
        }
        let is_theirs = |s: &&Session| s.cred().uid == uid && s.cred().gid == gid;
        if let Some(found) = self.sessions.read().iter().find(is_theirs) {
            return found.clone();
        }
        let made = self
            .volume
            .session(Cred::new(uid, gid))
            .with_client(self.client);
        let mut sessions = self.sessions.write();
        if sessions.len() >= SESSIONS_MAX {
            sessions.clear();
        }
        sessions.push(made.clone());
        made
    }

    /// The node that the kernel means.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn node(&self, number: INodeNo) -> Result<NodeId> {
        self.nodes.get(number.0)
    }

    /// Attributes as the kernel takes them.
    pub(crate) fn attr(&self, attr: &Attr) -> FileAttr {
        kernel::file_attr(attr, self.nodes.number(attr.node))
    }

    /// Notes that the kernel is given a node; what it is told of it.
    pub(crate) fn give(&self, entry: &Entry) -> Given {
        self.nodes.remember(entry.node);
        Given {
            attr: self.attr(&entry.attr),
            generation: Generation(entry.node.generation.into()),
            names: self.name_lasts(entry.attr.kind),
            attrs: self.remember.attrs,
        }
    }

    /// How long a name of such a node may be remembered.
    pub(crate) fn name_lasts(&self, kind: FileKind) -> Duration {
        match kind {
            FileKind::Dir => self.remember.dirs,
            _ => self.remember.names,
        }
    }

    /// How long attributes may be remembered.
    pub(crate) fn attrs_last(&self) -> Duration {
        self.remember.attrs
    }

    /// How long it may be remembered that there is no such name.
    pub(crate) fn absence_lasts(&self) -> Duration {
        self.remember.absent
    }

    /// Whether others have changed what the node holds since the kernel last
    /// opened it. Then the kernel has been told of the size, and is to drop the
    /// data.
    pub(crate) fn take_stale(&self, node: INodeNo) -> bool {
        let stale = self.nodes.take_stale(node.0);
        if stale {
            self.news.catch_up();
        }
        stale
    }
}

/// What the kernel is told of a node that it is given.
pub(crate) struct Given {
    pub(crate) attr: FileAttr,
    pub(crate) generation: Generation,
    pub(crate) names: Duration,
    pub(crate) attrs: Duration,
}

impl Remember {
    /// Where sessions check access and the kernel serves several users, it remembers no names: it
    /// would go through a directory that it knows without asking who may search it.
    fn of(caps: Caps, sole: bool, options: &MountOptions) -> Self {
        let all = Self::new(caps, sole, options.remember);
        if options.checks == Checks::Kernel || !options.allow_other {
            return all;
        }
        Self {
            dirs: Duration::ZERO,
            names: Duration::ZERO,
            absent: Duration::ZERO,
            ..all
        }
    }

    fn new(caps: Caps, sole: bool, asked: Option<Duration>) -> Self {
        let long = asked.unwrap_or(if sole { DAY } else { SECOND });
        let one_name_each = caps.has(Caps::CASE_SENSITIVE);
        Self {
            attrs: long,
            dirs: long,
            names: if one_name_each {
                long
            } else {
                long.min(SECOND)
            },
            absent: if one_name_each && sole {
                long
            } else {
                Duration::ZERO
            },
        }
    }
}

/// The further groups of a process, as `proc(5)` lists them; none if it is gone.
fn groups_of(pid: u32) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    let groups = line.unwrap_or_default().split_whitespace();
    groups.filter_map(|group| group.parse().ok()).collect()
}

#[expect(clippy::disallowed_methods, reason = "how long a thread stays awake")]
fn instant() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(bits: u32) -> Caps {
        Caps {
            bits,
            name_max: 255,
            size_max: 0,
            time_step: 1,
        }
    }

    #[test]
    fn absence_is_not_remembered_where_a_name_can_be_spelt_in_two_ways() {
        let remember = Remember::new(caps(Caps::CASE_KEEPING), true, None);
        assert_eq!(remember.absent, Duration::ZERO);
        assert_eq!(remember.names, SECOND);
        assert_eq!(remember.dirs, DAY);
        let remember = Remember::new(caps(Caps::CASE_SENSITIVE), true, None);
        assert_eq!((remember.absent, remember.names), (DAY, DAY));
    }

    #[test]
    fn what_others_can_change_is_remembered_for_a_second() {
        let remember = Remember::new(caps(Caps::CASE_SENSITIVE | Caps::WATCH), false, None);
        assert_eq!((remember.attrs, remember.absent), (SECOND, Duration::ZERO));
    }

    #[test]
    fn the_groups_of_a_process_that_is_gone_are_none() {
        assert_eq!(groups_of(u32::MAX), Vec::<u32>::new());
    }
}
