//! Mistakes that can be planted to test the tests. Outside of this crate's own tests, none is ever
//! made, and the compiler removes the checks for them.

/// A mistake in the reallocation of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Blocks are moved that the disk points to, and their old place is free at once.
    NamedBlocksMove,
    /// The content is not copied to the new place.
    ContentStays,
    /// The pointer reaches the disk before the content is at the block's new place.
    ContentComesLate,
    /// The pointer is not changed.
    PointerStays,
    /// The old place is not freed.
    OldPlaceStays,
    /// The new place is not marked as taken.
    ClusterStaysFree,
}

#[cfg(test)]
impl Mistake {
    /// All of them.
    pub(crate) const ALL: [Self; 6] = [
        Self::NamedBlocksMove,
        Self::ContentStays,
        Self::ContentComesLate,
        Self::PointerStays,
        Self::OldPlaceStays,
        Self::ClusterStaysFree,
    ];
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Mistake>> = const { std::cell::Cell::new(None) };
}

/// Plants a mistake in this thread. `None` removes it.
#[cfg(test)]
pub(crate) fn plant(mistake: Option<Mistake>) {
    PLANTED.set(mistake);
}

/// Returns whether this mistake is planted.
#[cfg(test)]
pub(crate) fn made(mistake: Mistake) -> bool {
    PLANTED.get() == Some(mistake)
}

/// Returns whether this mistake is planted, which it never is outside of tests.
#[cfg(not(test))]
pub(crate) const fn made(_: Mistake) -> bool {
    false
}
