//! How volumes are exported, and to which clients.

use volary_core::Cred;
use volary_session::{Clients, root_squashed};

/// How a volume is exported.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The name: clients mount `/NAME`.
    pub name: String,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Which callers' ids are replaced by the anonymous ones.
    pub squash: Squash,
    /// The user of squashed callers, and of callers without credentials.
    pub anonymous: Cred,
    /// If root is squashed, groups with lower numbers than this are too, unless the kernel
    /// confirmed that the caller is in them. A directory of the host may have files of `disk` or
    /// `shadow`, whose rights are as good as root's.
    pub system_groups: u32,
    /// The clients that may mount. This host always may.
    pub clients: Vec<Clients>,
    /// Whether changes are durable before they are answered, as the protocol requires. Otherwise
    /// they are as durable as any program's on the volume, until COMMIT. Written data waits for
    /// COMMIT in both cases, unless the client wants it at once.
    pub durable: bool,
}

impl ExportOptions {
    /// Returns the usual options: writable, root squashed, for this host only.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            read_only: false,
            squash: Squash::Root,
            anonymous: Cred::new(65534, 65534),
            system_groups: 0,
            clients: Vec::new(),
            durable: true,
        }
    }
}

impl ExportOptions {
    /// Returns the credentials on the volume for a caller whose own word is all that is known.
    pub(super) fn caller(&self, said: &Cred) -> Cred {
        let cred = self.squash.apply(said.clone(), &self.anonymous);
        let is_system = |gid: u32| gid < self.system_groups && gid != self.anonymous.gid;
        let has_any = is_system(cred.gid) || cred.groups.iter().copied().any(is_system);
        if self.squash != Squash::Root || !has_any {
            return cred;
        }
        let squash = |gid: u32| {
            if is_system(gid) {
                self.anonymous.gid
            } else {
                gid
            }
        };
        Cred {
            uid: cred.uid,
            gid: squash(cred.gid),
            groups: cred.groups.iter().copied().map(squash).collect(),
        }
    }
}

/// Which callers' user and group ids are replaced by the anonymous ones, since a client can claim
/// any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Squash {
    /// No ids.
    None,
    /// User 0, and group 0 also as a supplementary group.
    Root,
    /// All ids.
    All,
}

impl Squash {
    /// Returns a caller's credentials on the volume.
    pub fn apply(self, cred: Cred, anonymous: &Cred) -> Cred {
        match self {
            Self::None => cred,
            Self::All => anonymous.clone(),
            Self::Root => root_squashed(&cred, anonymous),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_the_system_are_squashed_where_root_is() {
        let cred = |gid, groups: &[u32]| Cred {
            uid: 5,
            gid,
            groups: groups.into(),
        };
        let mut options = ExportOptions::new("x");
        assert_eq!(options.caller(&cred(6, &[27])), cred(6, &[27]));
        options.system_groups = 1000;
        assert_eq!(
            options.caller(&cred(6, &[27, 1000])),
            cred(65534, &[65534, 1000])
        );
        assert_eq!(options.caller(&cred(1001, &[1000])), cred(1001, &[1000]));
        options.squash = Squash::None;
        assert_eq!(options.caller(&cred(6, &[27])), cred(6, &[27]));
    }

    #[test]
    fn callers_are_whom_the_squash_makes_them() {
        let nobody = Cred::new(99, 98);
        let user = Cred::new(5, 6);
        assert_eq!(Squash::Root.apply(Cred::root(), &nobody), nobody);
        assert_eq!(Squash::Root.apply(user.clone(), &nobody), user);
        assert_eq!(Squash::None.apply(Cred::root(), &nobody), Cred::root());
        assert_eq!(Squash::All.apply(user, &nobody), nobody);
    }
}
