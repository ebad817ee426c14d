//! Mistakes that can be planted, so that the tests can be tested: each is one
//! that the paper leaves room for, or that was made once. Outside of this
//! crate's own tests none is ever made, and the compiler takes the questions out.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A page is tagged with the third in which its record ends.
    TagByEnd,
    /// A page that was changed again is not taken home.
    SkipChangedAgain,
    /// What is taken home is what operations see, not what was committed.
    HomeFromCache,
    /// Recovery writes every leader that the log has.
    AnyLeader,
    /// The record may be durable before the data that it names.
    RecordBeforeData,
    /// The anchor moves before the pages are home.
    AnchorBeforeHome,
    /// Pages are free as soon as their file is deleted.
    FreeAtDelete,
    /// The rest of a page is free as soon as the file is cut.
    FreeRestAtCut,
    /// The pages of a record are believed without their checksums.
    PagesNotChecked,
    /// A leader is forgotten before its file's deletion is durable.
    LeaderGoesAtDelete,
    /// A changed leader is not in the record.
    LeaderNotLogged,
    /// A logged leader is never taken home.
    LeaderStaysAway,
    /// Recovery leaves the epoch as it was.
    SameEpoch,
    /// A record may begin where the longest does not fit.
    NoRoomAtEnd,
    /// A commit ends before the record is durable.
    RecordNotFlushed,
    /// The anchor moves before what was taken home is durable.
    HomeNotFlushed,
    /// Only one copy is taken home.
    OneCopyHome,
    /// A saved map is believed, whatever commit it is of.
    OldMap,
    /// A map that is rebuilt has not the runs outside of heads.
    MapWithoutParts,
    /// Of the images of a page in the log the oldest counts.
    OldestWins,
    /// Recovery empties the log before what was in it is home.
    LogEmptiedFirst,
    /// What a crash left without a name is never given back.
    NamelessStay,
    /// A change may be committed by halves.
    EachPageAlone,
    /// A head that moves to another name counts one too many.
    HeadLosesLink,
    /// Any record that is whole is taken for the next.
    AnyRecordFollows,
    /// The leader of a new file is never written.
    NewLeaderForgotten,
    /// The map is saved as that of the next commit.
    MapOfNextCommit,
    /// What is kept of a node beside its head stays when it goes.
    PartsStay,
    /// Data changes before it is durable that it has no checksums any more.
    UnsealedTooLate,
    /// A copy of a remote's file counts as whole before its content is there.
    CopyWholeTooSoon,
    /// A record does not tell what was taken from the map.
    TakenNotTold,
    /// A record does not tell what was freed.
    FreedNotTold,
    /// A page of the map that goes home has what the batch frees as free.
    FreedInMapTooSoon,
    /// A page of the map goes home with what was taken since the last commit.
    MapHomeAsInMemory,
    /// The log loses what was told of a page of the map that did not go home.
    MapStaysAway,
    /// Both copies of a page of the map are written at once.
    MapCopiesAtOnce,
    /// Recovery changes pages of the map that have the record already.
    ToldTwice,
    /// The map does not go home after a record that could not tell all.
    UntoldStaysAway,
    /// A page of the map goes home with what is only kept for open files.
    ReservedInMap,
    /// A file's runs are taken away when its pages become another node's.
    ChainGoesWithName,
}

#[cfg(test)]
impl Mistake {
    /// All of them.
    pub(crate) const ALL: [Self; 40] = [
        Self::TagByEnd,
        Self::SkipChangedAgain,
        Self::HomeFromCache,
        Self::AnyLeader,
        Self::RecordBeforeData,
        Self::AnchorBeforeHome,
        Self::FreeAtDelete,
        Self::FreeRestAtCut,
        Self::PagesNotChecked,
        Self::LeaderGoesAtDelete,
        Self::LeaderNotLogged,
        Self::LeaderStaysAway,
        Self::SameEpoch,
        Self::NoRoomAtEnd,
        Self::RecordNotFlushed,
        Self::HomeNotFlushed,
        Self::OneCopyHome,
        Self::OldMap,
        Self::MapWithoutParts,
        Self::OldestWins,
        Self::LogEmptiedFirst,
        Self::NamelessStay,
        Self::EachPageAlone,
        Self::HeadLosesLink,
        Self::AnyRecordFollows,
        Self::NewLeaderForgotten,
        Self::MapOfNextCommit,
        Self::PartsStay,
        Self::UnsealedTooLate,
        Self::CopyWholeTooSoon,
        Self::TakenNotTold,
        Self::FreedNotTold,
        Self::FreedInMapTooSoon,
        Self::MapHomeAsInMemory,
        Self::MapStaysAway,
        Self::MapCopiesAtOnce,
        Self::ToldTwice,
        Self::UntoldStaysAway,
        Self::ReservedInMap,
        Self::ChainGoesWithName,
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
