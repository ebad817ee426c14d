//! Listings: READDIRPLUS, page by page, with the server's own cookies.

use crate::fail;
use crate::hidden::is_hidden;
use crate::node::{Node, tick};
use crate::opens::Opened;
use crate::proto::{Fattr, Fh, error_of, procedure, status};
use crate::volume::{Volume, Who, after_status};
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;
use volary_core::{Cookie, DirBuf, Error, FileKind, Kind, NodeId, Result};
use volary_rpc::{Decoded, Input, Output};

/// More entries than any directory has; a listing that has more never ends.
const ENTRIES_MAX: u64 = 1 << 25;

/// How often a page is asked for again of which an entry went meanwhile.
const RACES_MAX: u32 = 16;

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

struct Listed {
    name: Vec<u8>,
    fileid: u64,
    cookie: u64,
    attr: Option<Fattr>,
    fh: Option<Fh>,
}

/// What one call brought.
struct Page {
    verifier: [u8; 8],
    entries: VecDeque<Listed>,
    is_end: bool,
}

impl Volume {
    /// See [`readdir`](volary_core::FileSystem::readdir).
    pub(crate) fn list(
        self: &Arc<Self>,
        who: Who<'_>,
        open: &Opened,
        from: Cookie,
        out: &mut DirBuf,
    ) -> Result<bool> {
        if open.node.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        let mut listing = open.listing.lock();
        if from == Cookie::START || listing.at != from.0 {
            *listing = Listing {
                at: from.0,
                // Of this open, if any: a place in another's is tried without.
                verifier: if from == Cookie::START {
                    [0; 8]
                } else {
                    listing.verifier
                },
                plain: listing.plain,
                ..Listing::default()
            };
        }
        loop {
            let Some(listed) = listing.page.front() else {
                if listing.is_end {
                    return Ok(true);
                }
                self.turn_page(who, &open.node, &mut listing)?;
                continue;
            };
            let next = listed.cookie;
            if !self.give(who, &open.node, listed, out)? {
                return Ok(false);
            }
            listing.page.pop_front();
            listing.at = next;
            listing.given += 1;
            if listing.given > ENTRIES_MAX {
                return Err(endless());
            }
        }
    }

    /// Puts an entry into `out`; false if there is no room. What is gone since,
    /// and what is hidden, is passed over. An entry whose node the server cannot read, or refuses to this
    /// caller, has no attributes.
    fn give(
        self: &Arc<Self>,
        who: Who<'_>,
        dir: &Arc<Node>,
        of: &Listed,
        out: &mut DirBuf,
    ) -> Result<bool> {
        if is_hidden(&of.name) {
            return Ok(true);
        }
        let node = match (of.fh, of.attr) {
            (Some(fh), Some(attr)) => self.nodes.enter(fh, &attr, 0)?,
            _ => match self.look_up(who, dir, &of.name) {
                Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Stale) => return Ok(true),
                Ok(found) => found,
                Err(e) => {
                    self.pass_over(who, dir, e)?;
                    let kind = FileKind::File;
                    return Ok(out.push(Cookie(of.cookie), of.unknown(), kind, &of.name, None));
                }
            },
        };
        let attr = if out.wants_attr() {
            match self.last_attr(who, &node) {
                Err(e) if e == Kind::Stale => return Ok(true),
                Ok(attr) => Some(attr),
                Err(e) => {
                    self.pass_over(who, dir, e)?;
                    None
                }
            }
        } else {
            None
        };
        Ok(out.push(Cookie(of.cookie), node.id, node.kind, &of.name, attr))
    }

    /// Ignores an error of one entry's node, if the server still answers for the directory.
    ///
    /// # Errors
    /// `e` if it is not `Access`, `Io` or `Corrupt`; those of GETATTR.
    fn pass_over(&self, who: Who<'_>, dir: &Node, e: Error) -> Result<()> {
        match e.kind() {
            Kind::Access => Ok(()),
            Kind::Io | Kind::Corrupt => self.fetch_attr(who, dir).map(drop),
            _ => Err(e),
        }
    }

    fn turn_page(&self, who: Who<'_>, dir: &Arc<Node>, listing: &mut Listing) -> Result<()> {
        let from = listing.at;
        if listing.circle.closes(from) {
            return Err(endless());
        }
        let mut page = self.fetch_page(who, dir, listing);
        for _ in 0..RACES_MAX {
            // Of an entry that went meanwhile; no server may say so, but one does.
            if !matches!(&page, Err(e) if *e == Kind::NotFound) {
                break;
            }
            page = self.fetch_page(who, dir, listing);
        }
        if let Err(e) = &page
            && *e == Kind::Unsupported
            && !listing.plain
        {
            listing.plain = true;
            page = self.fetch_page(who, dir, listing);
        }
        let page = match page {
            // A directory without a name has no entries.
            Err(e) if e == Kind::Stale && dir.is_open() => Page {
                verifier: listing.verifier,
                entries: VecDeque::new(),
                is_end: true,
            },
            page => page?,
        };
        if page.entries.is_empty() && !page.is_end {
            let words = "entries or the end";
            return Err(fail::nonsense("page of a listing", "neither", words));
        }
        if let Some(last) = page.entries.back()
            && page
                .entries
                .iter()
                .all(|e| e.name == b"." || e.name == b"..")
        {
            listing.at = last.cookie;
        }
        listing.verifier = page.verifier;
        listing.is_end = page.is_end;
        listing.page = page.entries;
        listing.page.retain(|e| e.name != b"." && e.name != b"..");
        Ok(())
    }

    /// Enters the nodes of a page, with the attributes as they came.
    fn name_all(&self, dir: &Node, page: &VecDeque<Listed>, asked: u64) -> Result<()> {
        let epoch = dir.epoch();
        for listed in page {
            if let (Some(fh), Some(attr)) = (listed.fh, listed.attr) {
                let node = self.nodes.enter(fh, &attr, asked)?;
                if dir.is_unchanged_since(asked) {
                    self.nodes.name(dir.id, epoch, &listed.name, node.id);
                }
            }
        }
        Ok(())
    }

    fn fetch_page(&self, who: Who<'_>, dir: &Arc<Node>, listing: &Listing) -> Result<Page> {
        let asked = tick();
        let plus = !listing.plain;
        let max = self.info.list_max;
        let put = |out: &mut Output| {
            dir.fh.write(out);
            out.u64(listing.at);
            out.raw(&listing.verifier);
            if plus {
                // Names take about a quarter of an entry with attributes and handle.
                out.u32(max / 4);
            }
            out.u32(max);
        };
        let number = if plus {
            procedure::READDIRPLUS
        } else {
            procedure::READDIR
        };
        let (status, done) = self.nfs(who, number, put)?;
        let mut input = after_status(&done);
        let attr = Fattr::read_maybe(&mut input).map_err(fail::garbage)?;
        if let Some(attr) = attr {
            dir.note(&attr, asked)?;
        }
        if status != status::OK {
            return Err(error_of(status));
        }
        let page = read_page(&mut input, plus).map_err(fail::garbage)?;
        for listed in &page.entries {
            check_name(listed)?;
        }
        self.name_all(dir, &page.entries, asked)?;
        Ok(page)
    }
}

impl Listed {
    /// Returns an id for an entry without a handle, which is [`Stale`](Kind::Stale) to all calls.
    fn unknown(&self) -> NodeId {
        NodeId {
            ino: NonZeroU64::new(self.fileid).unwrap_or(NonZeroU64::MAX),
            generation: u32::MAX,
        }
    }
}

fn check_name(listed: &Listed) -> Result<()> {
    let name = listed.name.as_slice();
    let is_dots = name == b"." || name == b"..";
    let is_good = is_dots || volary_core::Name::new(name).is_ok();
    if !is_good || listed.cookie == 0 {
        let found = format!("'{}'", volary_core::escape(name));
        let words = "a name without / and NUL, and a cookie";
        return Err(fail::nonsense("entry of a listing", found, words));
    }
    Ok(())
}

fn endless() -> volary_core::Error {
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
}
