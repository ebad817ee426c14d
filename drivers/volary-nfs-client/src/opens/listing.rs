//! Listings: pages of READDIRPLUS and READDIR, and where the listing of an open is.

use crate::fail;
use crate::wire::proto::{Fattr, Fh};
use std::collections::VecDeque;
use std::num::NonZeroU64;
use volary_core::{Cookie, Error, Name, NodeId, Result};
use volary_rpc::{Decoded, Input, Output};

/// More entries than any directory has; a listing that has more never ends.
const ENTRIES_MAX: u64 = 1 << 25;

/// Where the listing of an open is.
#[derive(Default)]
pub(crate) struct Listing {
    /// What came and was not taken yet.
    page: VecDeque<Listed>,
    /// The place before it.
    at: u64,
    /// Nothing comes after the page.
    is_end: bool,
    verifier: [u8; 8],
    given: u64,
    circle: Circle,
    /// The server lacks READDIRPLUS.
    plain: bool,
}

/// Finds, in no memory to speak of, that places come again (Brent's way): the
/// place after each power of two of pages is compared with those that follow.
#[derive(Default)]
struct Circle {
    held: u64,
    steps: u64,
    power: u64,
}

impl Circle {
    /// Returns whether `place` was there before.
    fn closes(&mut self, place: u64) -> bool {
        if self.power > 0 && place == self.held {
            return true;
        }
        self.steps += 1;
        if self.steps >= self.power {
            (self.held, self.steps) = (place, 0);
            self.power = (self.power * 2).max(1);
        }
        false
    }
}

/// An entry as it is listed.
pub(crate) struct Listed {
    pub(crate) name: Vec<u8>,
    fileid: u64,
    pub(crate) cookie: u64,
    pub(crate) attr: Option<Fattr>,
    pub(crate) fh: Option<Fh>,
}

/// What one call brought.
pub(crate) struct Page {
    verifier: [u8; 8],
    entries: VecDeque<Listed>,
    is_end: bool,
}

impl Listing {
    /// Goes on at a place: where it is, or another one.
    pub(crate) fn go_to(&mut self, from: Cookie) {
        if from == Cookie::START || self.at != from.0 {
            *self = Self {
                at: from.0,
                // Of this open, if any: a place in another's is tried without.
                verifier: if from == Cookie::START {
                    [0; 8]
                } else {
                    self.verifier
                },
                plain: self.plain,
                ..Self::default()
            };
        }
    }

    /// Returns the entry that is next, if it came already.
    pub(crate) fn first(&self) -> Option<&Listed> {
        self.page.front()
    }

    /// Returns whether nothing comes after what came.
    pub(crate) fn is_end(&self) -> bool {
        self.is_end
    }

    /// Passes over the entry that is next.
    ///
    /// # Errors
    /// `Corrupt` after more entries than there can be.
    pub(crate) fn pass(&mut self) -> Result<()> {
        if let Some(passed) = self.page.pop_front() {
            self.at = passed.cookie;
            self.given += 1;
        }
        if self.given > ENTRIES_MAX {
            return Err(endless());
        }
        Ok(())
    }

    /// Notes that a page is asked for.
    ///
    /// # Errors
    /// `Corrupt` for one that was asked for before.
    pub(crate) fn begin_page(&mut self) -> Result<()> {
        if self.circle.closes(self.at) {
            return Err(endless());
        }
        Ok(())
    }

    /// Returns whether READDIRPLUS is asked for.
    pub(crate) fn is_plus(&self) -> bool {
        !self.plain
    }

    /// Notes that the server lacks READDIRPLUS.
    pub(crate) fn set_plain(&mut self) {
        self.plain = true;
    }

    /// Writes what page is asked for, of up to `max` bytes.
    pub(crate) fn write(&self, out: &mut Output, max: u32) {
        out.u64(self.at);
        out.raw(&self.verifier);
        if self.is_plus() {
            // Names take about a quarter of an entry with attributes and handle.
            out.u32(max / 4);
        }
        out.u32(max);
    }

    /// Takes a page.
    ///
    /// # Errors
    /// `Corrupt` for one with neither entries nor the end.
    pub(crate) fn take(&mut self, page: Page) -> Result<()> {
        if page.entries.is_empty() && !page.is_end {
            let words = "entries or the end";
            return Err(fail::nonsense("page of a listing", "neither", words));
        }
        if let Some(last) = page.entries.back()
            && page.entries.iter().all(Listed::is_dots)
        {
            self.at = last.cookie;
        }
        self.verifier = page.verifier;
        self.is_end = page.is_end;
        self.page = page.entries;
        self.page.retain(|entry| !entry.is_dots());
        Ok(())
    }

    /// Notes that nothing more comes: the directory has no name any more.
    pub(crate) fn end(&mut self) {
        self.is_end = true;
    }
}

impl Page {
    /// Reads what follows the directory's attributes.
    ///
    /// # Errors
    /// `Corrupt` for entries that do not decode, or have names or cookies that none can have.
    pub(crate) fn read(input: &mut Input<'_>, plus: bool) -> Result<Self> {
        let page = read_page(input, plus).map_err(fail::garbage)?;
        page.entries.iter().try_for_each(Listed::check)?;
        Ok(page)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Listed> {
        self.entries.iter()
    }
}

impl Listed {
    /// Returns an id for an entry without a handle, which is [`Stale`](volary_core::Kind::Stale) to all calls.
    pub(crate) fn unknown(&self) -> NodeId {
        NodeId {
            ino: NonZeroU64::new(self.fileid).unwrap_or(NonZeroU64::MAX),
            generation: u32::MAX,
        }
    }

    fn is_dots(&self) -> bool {
        self.name == b"." || self.name == b".."
    }

    fn check(&self) -> Result<()> {
        let is_good = self.is_dots() || Name::new(&self.name).is_ok();
        if !is_good || self.cookie == 0 {
            let found = format!("'{}'", volary_core::escape(&self.name));
            let words = "a name without / and NUL, and a cookie";
            return Err(fail::nonsense("entry of a listing", found, words));
        }
        Ok(())
    }
}

fn endless() -> Error {
    fail::nonsense("cookies of a listing", "some that come again", "an end")
}

fn read_page(input: &mut Input<'_>, plus: bool) -> Decoded<Page> {
    /// The longest name of any system, in bytes.
    const NAME_MAX: usize = 1024;
    let verifier = input.array()?;
    let mut entries = VecDeque::new();
    while input.bool()? {
        let fileid = input.u64()?;
        entries.push_back(Listed {
            fileid,
            name: input.opaque(NAME_MAX)?.to_vec(),
            cookie: input.u64()?,
            attr: if plus {
                Fattr::read_maybe(input)?
            } else {
                None
            },
            fh: if plus { Fh::read_maybe(input)? } else { None },
        });
    }
    Ok(Page {
        verifier,
        entries,
        is_end: input.bool()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_come_again_are_found_wherever_the_circle_begins() {
        for (lead, len) in [(0, 1), (0, 2), (1, 1), (5, 3), (100, 64), (3, 1000)] {
            let mut circle = Circle::default();
            let place = |n: u64| if n < lead { n } else { lead + (n - lead) % len };
            let found = (0..10 * (lead + len) + 10).find(|&n| circle.closes(place(n)));
            assert!(found.is_some(), "{lead} {len}");
        }
        let mut circle = Circle::default();
        assert!((0..10_000).all(|n| !circle.closes(n)));
    }

    fn page(entries: &[(&str, u64)], is_end: bool) -> Page {
        let listed = |&(name, cookie): &(&str, u64)| Listed {
            name: name.into(),
            fileid: cookie,
            cookie,
            attr: None,
            fh: None,
        };
        Page {
            verifier: [7; 8],
            entries: entries.iter().map(listed).collect(),
            is_end,
        }
    }

    #[test]
    fn a_listing_goes_on_after_what_was_passed_over() {
        let mut listing = Listing::default();
        listing
            .take(page(&[(".", 1), ("a", 5), ("b", 9)], false))
            .unwrap();
        assert_eq!(listing.first().unwrap().name, b"a");
        listing.pass().unwrap();
        listing.go_to(Cookie(5));
        assert_eq!(listing.first().unwrap().name, b"b");
        // Of another place the server is asked, with what it said last.
        listing.go_to(Cookie(1));
        assert!(listing.first().is_none() && !listing.is_end());
        assert_eq!((listing.at, listing.verifier), (1, [7; 8]));
        listing.go_to(Cookie::START);
        assert_eq!((listing.at, listing.verifier), (0, [0; 8]));
    }

    #[test]
    fn a_page_of_nothing_to_show_moves_on_or_is_corrupt() {
        let mut listing = Listing::default();
        listing.take(page(&[(".", 1), ("..", 2)], false)).unwrap();
        assert!(listing.first().is_none() && !listing.is_end());
        assert_eq!(listing.at, 2);
        assert!(listing.take(page(&[], false)).is_err());
        listing.take(page(&[], true)).unwrap();
        assert!(listing.is_end());
    }
}
