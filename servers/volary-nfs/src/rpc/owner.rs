//! Decides which callers a local connection may speak for: those of its socket's owner.
//!
//! The kernel's own NFS client belongs to root, and speaks for all users of its mounts. A program
//! of an ordinary user speaks for that user only.

use super::message::Auth;
#[cfg(target_os = "linux")]
use nix::unistd::Gid;
use nix::unistd::{Uid, User};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use volary_core::Cred;
use volary_session::{Party, is_this_host, network_of};

/// The party of believed clients on this host, which counts as root's.
pub(crate) const BELIEVED: Party = Party::User(0);

/// The owner of a client's socket, which decides whether a call's credentials are believed.
#[derive(Debug)]
pub enum Owner {
    /// Another host, root of this one, or the user who runs this server: a call's credentials are
    /// believed.
    Trusted,
    /// An ordinary user of this host: all calls are theirs.
    User(u32, OnceLock<Cred>, Database),
    /// Unknown: all calls are the anonymous user's.
    Unknown,
}

impl Owner {
    /// Returns the owner of a local client's socket, by what the kernel told of it. If the kernel
    /// does not tell, a port below 1024 counts as root's. The user `believed` is believed beside
    /// root.
    pub(crate) fn of(
        told: &io::Result<Option<u32>>,
        port: u16,
        believed: u32,
        database: &Database,
    ) -> Self {
        match told {
            Ok(Some(uid)) if *uid == 0 || *uid == believed => Self::Trusted,
            Ok(Some(uid)) => Self::User(*uid, OnceLock::new(), database.clone()),
            Err(_) if is_privileged(port) => Self::Trusted,
            Ok(None) | Err(_) => Self::Unknown,
        }
    }

    /// Returns the caller of a call with these credentials. An ordinary user gets only groups that
    /// the host's user database gives them.
    pub(crate) fn caller(&self, said: &Auth) -> Caller {
        let Auth::Sys(said) = said else {
            return Caller::Nobody;
        };
        match self {
            Self::Trusted => Caller::Said(said.clone()),
            Self::User(uid, cred, database) => {
                let real = cred.get_or_init(|| database.cred_of(*uid));
                Caller::Known(within(said, real))
            }
            Self::Unknown => Caller::Nobody,
        }
    }

    /// Returns the party that owns the locks and cached replies of a client at `peer` on this
    /// connection. No other party can reach them, whatever it claims. All believed clients of this
    /// host are one party, root's, since its kernel speaks for users by several connections.
    pub(crate) fn party(&self, peer: IpAddr) -> Party {
        match self {
            Self::Trusted if is_this_host(peer) => BELIEVED,
            Self::User(uid, ..) => Party::User(*uid),
            Self::Trusted | Self::Unknown => Party::Host(network_of(peer)),
        }
    }
}

/// Looks up the groups of this host's users.
#[derive(Clone)]
pub struct Database(Arc<dyn Fn(u32) -> Cred + Send + Sync>);

impl Database {
    /// Makes a database that calls `cred_of` with a user's number; the function may take its time.
    pub fn new(cred_of: impl Fn(u32) -> Cred + Send + Sync + 'static) -> Self {
        Self(Arc::new(cred_of))
    }

    pub(crate) fn cred_of(&self, uid: u32) -> Cred {
        (self.0)(uid)
    }
}

impl Default for Database {
    /// Returns the host's own database (passwd, group, and nsswitch.conf), queried by this process.
    fn default() -> Self {
        Self::new(cred_of)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Database")
    }
}

/// The caller of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Credentials that only the client claims.
    Said(Cred),
    /// Credentials that the kernel confirmed.
    Known(Cred),
    Nobody,
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(cred) => write!(f, "uid {}, by its own word", cred.uid),
            Self::Known(cred) => write!(f, "uid {}", cred.uid),
            Self::Nobody => f.write_str("nobody"),
        }
    }
}

/// Returns `said` with only those groups that `real` has; or `real` if the user differs.
fn within(said: &Cred, real: &Cred) -> Cred {
    if said.uid != real.uid {
        return real.clone();
    }
    let is_real = |gid: &u32| *gid == real.gid || real.groups.contains(gid);
    Cred {
        uid: real.uid,
        gid: Some(said.gid).filter(is_real).unwrap_or(real.gid),
        groups: said.groups.iter().copied().filter(is_real).collect(),
    }
}

/// Returns a user with their groups, from the host's user database. An unknown user gets the group
/// with their own number.
pub fn cred_of(uid: u32) -> Cred {
    let Ok(Some(user)) = User::from_uid(Uid::from_raw(uid)) else {
        return Cred::new(uid, uid);
    };
    Cred {
        uid,
        gid: user.gid.as_raw(),
        groups: groups_of(&user).into_iter().collect(),
    }
}

#[cfg(target_os = "linux")]
fn groups_of(user: &User) -> Vec<u32> {
    let name = std::ffi::CString::new(user.name.as_str());
    let groups = name.map(|name| nix::unistd::getgrouplist(&name, user.gid).unwrap_or_default());
    let groups = groups.unwrap_or_default();
    groups.into_iter().map(Gid::as_raw).collect()
}

/// Returns no groups: on other systems a user has only the group of their own entry.
#[cfg(not(target_os = "linux"))]
fn groups_of(_: &User) -> Vec<u32> {
    Vec::new()
}

/// Returns whether only root may use this port. Only Linux reserves such ports: on macOS any user
/// may have them.
#[cfg(not(target_os = "linux"))]
fn is_privileged(_: u16) -> bool {
    false
}

/// Returns whether only root may use this port.
#[cfg(target_os = "linux")]
fn is_privileged(port: u16) -> bool {
    let start = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    let start = start.ok().and_then(|text| text.trim().parse().ok());
    port < start.unwrap_or(1024_u16).min(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_no_more_groups_than_the_host_gives_them() {
        let cred = |uid, gid, groups: &[u32]| Cred {
            uid,
            gid,
            groups: groups.into(),
        };
        let real = cred(1000, 100, &[100, 27]);
        assert_eq!(within(&cred(0, 0, &[]), &real), real);
        assert_eq!(
            within(&cred(1000, 6, &[6, 27]), &real),
            cred(1000, 100, &[27])
        );
        assert_eq!(within(&cred(1000, 27, &[]), &real), cred(1000, 27, &[]));
        let root = cred_of(0);
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(
            cred_of(3_999_999_999),
            Cred::new(3_999_999_999, 3_999_999_999)
        );
    }
}
