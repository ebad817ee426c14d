//! What a volume can do.

/// What a volume can do. A driver sets these once; a layer that adds or removes an ability changes
/// them in its own `caps`. The conformance suite tests that a volume does what it claims, and
/// nothing that it does not claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// The abilities.
    pub bits: u32,
    /// Longest name, in bytes.
    pub name_max: u16,
    /// Largest file, in bytes.
    pub size_max: u64,
    /// Resolution of the time of last change, in nanoseconds.
    pub time_step: u64,
}

impl Caps {
    /// Takes changes.
    pub const WRITE: u32 = 1 << 0;
    /// Keeps owner, group and permission bits.
    pub const MODES: u32 = 1 << 1;
    /// Has symlinks.
    pub const SYMLINKS: u32 = 1 << 2;
    /// Has hard links.
    pub const HARD_LINKS: u32 = 1 << 3;
    /// Has fifos, sockets and device nodes.
    pub const DEVICES: u32 = 1 << 4;
    /// Has extended attributes.
    pub const XATTRS: u32 = 1 << 5;
    /// Has holes.
    pub const HOLES: u32 = 1 << 6;
    /// `lookup` tells upper from lower case.
    pub const CASE_SENSITIVE: u32 = 1 << 7;
    /// Keeps names in the case they were given.
    pub const CASE_KEEPING: u32 = 1 << 8;
    /// Node ids keep their meaning across restarts.
    pub const STABLE_IDS: u32 = 1 << 9;
    /// Cookies keep their meaning across opens and restarts.
    pub const STABLE_COOKIES: u32 = 1 << 10;
    /// After a crash each operation has happened or has not.
    pub const CRASH_SAFE: u32 = 1 << 11;
    /// Answers `extents`.
    pub const EXTENTS: u32 = 1 << 12;
    /// Checks access itself (NFS client, host).
    pub const CHECKS_ACCESS: u32 = 1 << 13;
    /// Shares locks with others; `lock` must be called.
    pub const SHARED_LOCKS: u32 = 1 << 14;
    /// Answers `watch`.
    pub const WATCH: u32 = 1 << 15;
    /// Answers `allocate` without a hole, which reserves space ahead of need.
    pub const PREALLOCATE: u32 = 1 << 16;
    /// Swaps two names ([`RenameFlags::SWAP`](crate::RenameFlags::SWAP)).
    pub const SWAP: u32 = 1 << 17;
    /// Any bytes without `/` and NUL are a name. Without it a volume refuses
    /// some names with `Invalid` (control characters, say).
    pub const ANY_NAME: u32 = 1 << 18;
    /// Others change the volume too (as with a cache of a remote one), but it neither shares locks
    /// nor checks access.
    pub const SHARED: u32 = 1 << 19;

    /// Returns whether all of `bits` are set.
    pub const fn has(&self, bits: u32) -> bool {
        self.bits & bits == bits
    }
    /// Removes `bits`.
    #[must_use]
    pub const fn without(mut self, bits: u32) -> Self {
        self.bits &= !bits;
        self
    }
    /// Adds `bits`.
    #[must_use]
    pub const fn with(mut self, bits: u32) -> Self {
        self.bits |= bits;
        self
    }
}
