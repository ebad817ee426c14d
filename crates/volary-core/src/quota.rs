//! Quotas: what users and groups have taken of a volume, and how much they may take.

use crate::Time;

/// Whose quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QuotaOf {
    /// Of the users that own nodes.
    Users,
    /// Of the groups that own them.
    Groups,
}

impl QuotaOf {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Users, Self::Groups];

    /// One of them, in a word: `user`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Users => "user",
            Self::Groups => "group",
        }
    }
}

/// How much may be taken; `None` for any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaLimits {
    /// May be exceeded for a time of grace.
    pub soft: Option<u64>,
    /// Is never exceeded, but by root.
    pub hard: Option<u64>,
}

/// What has been taken of something, and may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaShare {
    /// Taken.
    pub used: u64,
    /// What may be.
    pub limits: QuotaLimits,
    /// When the time of grace ends: there where `used` exceeds the soft limit. From then on
    /// that limit is a hard one.
    pub until: Option<Time>,
}

/// One user's or group's quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The user's or group's number.
    pub id: u32,
    /// Room on the device, in bytes.
    pub bytes: QuotaShare,
    /// Nodes.
    pub nodes: QuotaShare,
}

/// The times of grace of a volume, in seconds; 0 where it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaGrace {
    /// Of room.
    pub bytes: u64,
    /// Of nodes.
    pub nodes: u64,
}

/// An answer of [`FileSystem::quota`](crate::FileSystem::quota).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaReport {
    /// The volume's times of grace.
    pub grace: QuotaGrace,
    /// The quota that was asked for; `None` if there are no more.
    pub quota: Option<Quota>,
}

/// What [`FileSystem::set_quota`](crate::FileSystem::set_quota) does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetQuota {
    /// Counts what everybody has taken, and bounds them from now on. Limits that were there
    /// stay; at first there are none.
    On,
    /// Bounds nobody any more, and forgets all limits.
    Off,
    /// Sets what one user or group may take; `None` leaves it. Whoever has taken more than a
    /// new soft limit already has the time of grace from now on.
    Limits {
        /// The user's or group's number.
        id: u32,
        /// Room on the device, in bytes.
        bytes: Option<QuotaLimits>,
        /// Nodes.
        nodes: Option<QuotaLimits>,
    },
    /// Sets the times of grace, for those who exceed a soft limit from now on.
    Grace(QuotaGrace),
}
