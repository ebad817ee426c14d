//! Listings: pages of READDIRPLUS and READDIR, and the position of an open in its listing.

use crate::fail;
use crate::wire::proto::{Fattr, Fh};
use std::collections::VecDeque;
use std::num::NonZeroU64;
use volary_core::{Cookie, Error, Name, NodeId, Result};
use volary_rpc::{Decoded, Input, Output};

/// More entries than any directory has, so that an endless listing is detected.
const ENTRIES_MAX: u64 = 1 << 25;

/// The position of an open in its listing.
#[derive(Default)]
pub(crate) struct Listing {
    /// Entries that were received and not yet consumed.
    page: VecDeque<Listed>,
    /// The cookie before the page.
    at: u64,
    /// Whether nothing follows the page.
    is_end: bool,
    verifier: [u8; 8],
    given: u64,
    circle: Circle,
    /// Whether the server lacks READDIRPLUS.
    plain: bool,
}

/// Detects in constant memory that cookies repeat (Brent's algorithm). The cookie at each power of
/// two of pages is compared with later ones.
#[derive(Default)]
struct Circle {
    held: u64,
    steps: u64,
    power: u64,
}

impl Circle {
    /// Returns whether `place` has occurred before.
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

/// An entry of a listing.
pub(crate) struct Listed {
    pub(crate) name: Vec<u8>,
    fileid: u64,
    pub(crate) cookie: u64,
    pub(crate) attr: Option<Fattr>,
    pub(crate) fh: Option<Fh>,
}

/// The result of one call.
pub(crate) struct Page {
    verifier: [u8; 8],
    entries: VecDeque<Listed>,
    is_end: bool,
}

impl Listing {
    /// Moves to a cookie: the current position, or another one.
    pub(crate) fn go_to(&mut self, from: Cookie) {
        if from == Cookie::START || self.at != from.0 {
            *self = Self {
                at: from.0,
                // The verifier of this open, if it has one; with another open's cookie, zero is
                // tried.
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

    /// Returns the next entry, if it has been received.
    pub(crate) fn first(&self) -> Option<&Listed> {
        self.page.front()
    }

    /// Returns whether the listing ends with the received entries.
    pub(crate) fn is_end(&self) -> bool {
        self.is_end
    }

    /// Consumes the next entry.
    ///
    /// # Errors
    /// `Corrupt` after more entries than a directory can have.
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

    /// Notes that a page is about to be requested.
    ///
    /// # Errors
    /// `Corrupt` for a page that was requested before.
    pub(crate) fn begin_page(&mut self) -> Result<()> {
        if self.circle.closes(self.at) {
            return Err(endless());
        }
        Ok(())
    }

    /// Returns whether READDIRPLUS is used.
    pub(crate) fn is_plus(&self) -> bool {
        !self.plain
    }

    /// Notes that the server lacks READDIRPLUS.
    pub(crate) fn set_plain(&mut self) {
        self.plain = true;
    }

    /// Writes the arguments for the next page, of up to `max` bytes.
    pub(crate) fn write(&self, out: &mut Output, max: u32) {
        out.u64(self.at);
        out.raw(&self.verifier);
        if self.is_plus() {
            // Names take about a quarter of an entry with attributes and handle.
            out.u32(max / 4);
        }
        out.u32(max);
    }

    /// Takes a received page.
    ///
    /// # Errors
    /// `Corrupt` for a page with neither entries nor the end.
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

    /// Ends the listing: the directory has been removed.
    pub(crate) fn end(&mut self) {
        self.is_end = true;
    }
}

impl Page {
    /// Decodes a page, behind the directory's attributes.
    ///
    /// # Errors
    /// `Corrupt` for entries that do not decode, or have impossible names or cookies.
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
    /// Returns an id for an entry without a handle; it is [`Stale`](volary_core::Kind::Stale) in
    /// all calls.
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
        // For another position the server is asked, with its last verifier.
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
