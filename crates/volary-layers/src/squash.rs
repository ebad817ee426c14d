//! Makes all callers, or root alone, act as another user.

use volary_core::{Cred, Error, Fs, Kind, Layer, Result};

/// Replaces the credentials of callers before anything is checked. Either all callers are replaced,
/// or only user 0 and members of group 0 (as NFS servers' `all_squash` and `root_squash`). The
/// session asks [`caller`](volary_core::FileSystem::caller) once for each session; access is
/// checked, and nodes are made, as that user.
///
/// Owners on the volume are shown unchanged: to see other owners, use [`IdMap`](crate::IdMap).
/// Changes no caps. Best on top of a stack; layers above that map ids see the caller first. If
/// something above the session checks access itself (a FUSE mount with the kernel's checks), it
/// uses the original caller.
pub struct Squash {
    below: Fs,
    whom: Whom,
    uid: u32,
    gid: u32,
}

/// Which callers are squashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// All callers.
    All,
    /// User 0, and group 0 also as a supplementary group.
    Root,
}

impl Squash {
    /// Puts the layer over `below`; squashed callers become this user and group.
    pub fn new(below: Fs, whom: Whom, uid: u32, gid: u32) -> Self {
        Self {
            below,
            whom,
            uid,
            gid,
        }
    }

    /// Parses `UID:GID` for all callers, or `root:UID:GID` for root alone.
    ///
    /// # Errors
    /// `Invalid`, which says what is expected.
    pub fn parse(below: Fs, text: &str) -> Result<Self> {
        let (whom, ids) = match text.strip_prefix("root:") {
            Some(ids) => (Whom::Root, ids),
            None => (Whom::All, text),
        };
        let ids = ids.split_once(':');
        let ids = ids.and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
        let Some((uid, gid)) = ids else {
            let words =
                format!("layer squash does not know '{text}'; expected UID:GID or root:UID:GID");
            return Err(Error::note(Kind::Invalid, words));
        };
        Ok(Self::new(below, whom, uid, gid))
    }

    fn squashed(&self, cred: &Cred) -> Option<Cred> {
        match self.whom {
            Whom::All => Some(Cred::new(self.uid, self.gid)),
            Whom::Root if cred.uid == 0 => Some(Cred::new(self.uid, self.gid)),
            Whom::Root if cred.in_group(0) => {
                let other = |gid| if gid == 0 { self.gid } else { gid };
                Some(Cred {
                    uid: cred.uid,
                    gid: other(cred.gid),
                    groups: cred.groups.iter().map(|&gid| other(gid)).collect(),
                })
            }
            Whom::Root => None,
        }
    }
}

impl Layer for Squash {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn caller(&self, cred: &Cred) -> Option<Cred> {
        let squashed = self.squashed(cred);
        let below = self.below.caller(squashed.as_ref().unwrap_or(cred));
        below.or(squashed)
    }
}
