//! Mistakes that can be planted, so that the tests can be tested. Outside of this crate's own
//! tests none is ever made, and the compiler takes the questions out.

/// A mistake in the reallocation of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Blocks are moved that the disk leads to, and their place is free at once.
    NamedBlocksMove,
    /// What a block holds stays where it was.
    ContentStays,
    /// The pointer reaches the disk before the content is at the block's new place.
    ContentComesLate,
    /// The pointer stays as it was.
    PointerStays,
    /// The old place stays taken.
    OldPlaceStays,
    /// The new place counts as free.
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

/// Plants a mistake in this thread, or none.
#[cfg(test)]
pub(crate) fn plant(mistake: Option<Mistake>) {
    PLANTED.set(mistake);
}

/// Returns whether a mistake is made.
#[cfg(test)]
pub(crate) fn made(mistake: Mistake) -> bool {
    PLANTED.get() == Some(mistake)
}

/// Returns whether a mistake is made: never.
#[cfg(not(test))]
pub(crate) const fn made(_: Mistake) -> bool {
    false
}
