//! Quotas: what users and groups use of a volume, and how much they may use.

use crate::Time;

/// Whether a quota is a user's or a group's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QuotaOf {
    /// Quotas of the users that own nodes.
    Users,
    /// Quotas of the groups that own nodes.
    Groups,
}

impl QuotaOf {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Users, Self::Groups];

    /// Returns the singular of the kind, in a word: `user`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Users => "user",
            Self::Groups => "group",
        }
    }
}

/// How much may be used; `None` for any amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaLimits {
    /// May be exceeded for the grace period.
    pub soft: Option<u64>,
    /// Is never exceeded, except by root.
    pub hard: Option<u64>,
}

/// How much of a resource is used, and may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaShare {
    /// The amount in use.
    pub used: u64,
    /// Its limits.
    pub limits: QuotaLimits,
    /// When the grace period ends, if `used` exceeds the soft limit. From then on the soft limit is
    /// a hard one.
    pub until: Option<Time>,
}

/// One user's or group's quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The user's or group's number.
    pub id: u32,
    /// Space on the device, in bytes.
    pub bytes: QuotaShare,
    /// Nodes.
    pub nodes: QuotaShare,
}

/// The grace periods of a volume, in seconds; 0 where it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaGrace {
    /// For space.
    pub bytes: u64,
    /// For nodes.
    pub nodes: u64,
}

/// An answer of [`FileSystem::quota`](crate::FileSystem::quota).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaReport {
    /// The volume's grace periods.
    pub grace: QuotaGrace,
    /// The requested quota; `None` if there are no more.
    pub quota: Option<Quota>,
}

/// What [`FileSystem::set_quota`](crate::FileSystem::set_quota) does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetQuota {
    /// Counts what everybody uses, and enforces limits from now on. Existing limits stay; at first
    /// there are none.
    On,
    /// Stops enforcing limits, and forgets all of them.
    Off,
    /// Sets the limits of one user or group; `None` leaves them. Whoever exceeds a new soft limit
    /// already gets the grace period from now on.
    Limits {
        /// The user's or group's number.
        id: u32,
        /// Space on the device, in bytes.
        bytes: Option<QuotaLimits>,
        /// Nodes.
        nodes: Option<QuotaLimits>,
    },
    /// Sets the grace periods, for those who exceed a soft limit from now on.
    Grace(QuotaGrace),
}
