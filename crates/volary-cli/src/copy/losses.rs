//! What a copy could not keep, told once for each kind.

use crate::log::warn;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What a target can lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loss {
    Links,
    Xattrs,
    Dos,
    Versions,
    Owners,
    Holes,
    Times,
}

impl Loss {
    const fn words(self) -> &'static str {
        match self {
            Self::Links => "hard links cannot be kept there; each name is a file of its own",
            Self::Xattrs => "extended attributes that cannot be kept there; left out",
            Self::Dos => "DOS attributes that cannot be kept there; left out",
            Self::Versions => "older versions; only the newest is copied",
            Self::Owners => "owner or mode cannot be kept there",
            Self::Holes => "holes cannot be kept there; they are filled with zeros",
            Self::Times => "a time that cannot be kept there; it is the nearest that can",
        }
    }

    /// Returns whether `mv` leaves the source in its place for it: what it had would be gone.
    const fn is_of_content(self) -> bool {
        matches!(
            self,
            Self::Links | Self::Xattrs | Self::Dos | Self::Versions
        )
    }
}

/// Which losses are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Told {
    /// None was promised to be kept.
    #[default]
    None,
    /// Owners, modes and times (`-p`).
    Attributes,
    /// All (`-a`).
    All,
    /// What would be gone with the source (`mv`).
    Content,
}

/// The losses of a copy so far. Source and sink share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    told: Told,
    all: Arc<Mutex<BTreeMap<Loss, Places>>>,
}

/// Where something was lost.
#[derive(Debug)]
struct Places {
    first: String,
    last: String,
    count: u64,
}

impl Losses {
    pub(crate) fn new(told: Told) -> Self {
        Self {
            told,
            all: Arc::default(),
        }
    }

    /// Returns whether this kind is told.
    pub(crate) fn tells(&self, loss: Loss) -> bool {
        match self.told {
            Told::None => false,
            Told::Attributes => matches!(loss, Loss::Owners | Loss::Times),
            Told::All => true,
            Told::Content => loss.is_of_content(),
        }
    }

    /// Notes a loss, if its kind is told.
    pub(crate) fn note(&self, loss: Loss, place: impl FnOnce() -> String) {
        if !self.tells(loss) {
            return;
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let place = place();
        match all.get_mut(&loss) {
            Some(places) if places.last == place => {}
            Some(places) => {
                places.last = place;
                places.count += 1;
            }
            None => {
                let places = Places {
                    first: place.clone(),
                    last: place,
                    count: 1,
                };
                all.insert(loss, places);
            }
        }
    }

    /// Prints a line for each kind; true if there were any.
    pub(crate) fn report(&self) -> bool {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::mem::take(&mut *all);
        for (loss, places) in &all {
            let more = match places.count {
                1 => String::new(),
                count => format!(" ({count} in all)"),
            };
            warn(&format!("{}: {}{more}", places.first, loss.words()));
        }
        !all.is_empty()
    }
}
