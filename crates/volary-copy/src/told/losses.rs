//! What a copy could not keep, reported once for each kind.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What a target can lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Loss {
    /// Several names of one file: each becomes a separate file.
    Links,
    /// Extended attributes.
    Xattrs,
    /// DOS attributes.
    Dos,
    /// Older versions.
    Versions,
    /// Owner, group or mode.
    Owners,
    /// Holes, which are filled with zeros.
    Holes,
    /// Times, which are set to the nearest that the target can keep.
    Times,
}

impl Loss {
    /// Returns what is lost, in words for people.
    pub const fn words(self) -> &'static str {
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

    /// Returns whether the loss makes `mv` keep the source, as it would be gone otherwise.
    const fn is_of_content(self) -> bool {
        matches!(
            self,
            Self::Links | Self::Xattrs | Self::Dos | Self::Versions
        )
    }
}

/// Which losses are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Told {
    /// None, as nothing was promised to be kept.
    #[default]
    None,
    /// Owners, modes and times (`-p`).
    Attributes,
    /// All (`-a`).
    All,
    /// Those that would be gone with the source (`mv`).
    Content,
}

/// The losses of a copy so far. Source and sink share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    told: Told,
    all: Arc<Mutex<BTreeMap<Loss, Places>>>,
}

/// The places of a loss.
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

    /// Returns whether this kind of loss is reported.
    pub(crate) fn tells(&self, loss: Loss) -> bool {
        match self.told {
            Told::None => false,
            Told::Attributes => matches!(loss, Loss::Owners | Loss::Times),
            Told::All => true,
            Told::Content => loss.is_of_content(),
        }
    }

    /// Records a loss, if its kind is reported.
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

    /// Reports each kind of loss; returns whether there were any.
    pub(crate) fn report(&self, tell: &mut dyn FnMut(Lost)) -> bool {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::mem::take(&mut *all);
        for (loss, places) in &all {
            tell(Lost {
                loss: *loss,
                place: places.first.clone(),
                count: places.count,
            });
        }
        !all.is_empty()
    }
}

/// A loss, and where it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The kind of loss.
    pub loss: Loss,
    /// The first place that had it.
    pub place: String,
    /// How many places had it.
    pub count: u64,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.loss.words())?;
        match self.count {
            1 => Ok(()),
            count => write!(f, " ({count} in all)"),
        }
    }
}
