//! Open files and directories, and the listings of directories.

use crate::names::Names;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use volary_core::{FileKind, Kind, Mode, OpenId, Result};

/// The most opens of a volume, which is also the most of a session.
const OPENS_MAX: usize = 1 << 20;
/// The least memory for listings, in bytes.
const LISTED_MIN: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct Open {
    pub(super) node: u64,
    pub(super) kind: FileKind,
    pub(super) mode: Mode,
    /// The plug-in's handle, if it opened the file.
    pub(super) handle: Option<u64>,
    listing: Mutex<Listing>,
}

/// The entries of a directory when its listing last began. A cookie is an entry's number. The entry
/// keeps its number, so that several callers may list by one open.
#[derive(Debug, Default)]
pub(super) struct Listing {
    names: Names,
    /// The numbers of the names, in ascending order.
    numbers: Vec<u64>,
    last: u64,
    /// Names that were removed since.
    gone: HashSet<Box<[u8]>>,
    is_begun: bool,
    /// Whether the open was closed: nobody would count what is listed now.
    is_over: bool,
}

#[derive(Debug)]
pub(super) struct Opens {
    state: Mutex<State>,
    listed: AtomicUsize,
    listed_max: usize,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    open: HashMap<u64, Arc<Open>>,
    /// The opens of directories.
    dirs: HashMap<u64, Vec<Arc<Open>>>,
}

impl Open {
    pub(super) fn new(node: u64, kind: FileKind, mode: Mode, handle: Option<u64>) -> Self {
        Self {
            node,
            kind,
            mode,
            handle,
            listing: Mutex::default(),
        }
    }
}

impl Listing {
    /// Replaces the entries by the directory's current ones.
    fn renew(&mut self, now: &Names) {
        let all = || (0..now.len()).filter_map(|at| now.get(at));
        let mut fresh: HashMap<&[u8], u8> = all().collect();
        let (mut names, mut numbers) = (Names::default(), Vec::with_capacity(now.len()));
        for (at, number) in self.numbers.iter().enumerate() {
            let name = self.names.get(at).map_or(&[][..], |(name, _)| name);
            if let Some(kind) = fresh.remove(name) {
                names.push(name, kind);
                numbers.push(*number);
            }
        }
        for (name, _) in all() {
            if let Some(kind) = fresh.remove(name) {
                self.last += 1;
                names.push(name, kind);
                numbers.push(self.last);
            }
        }
        *self = Self {
            names,
            numbers,
            last: self.last,
            gone: HashSet::new(),
            is_begun: true,
            is_over: false,
        };
    }

    fn size(&self) -> usize {
        self.names.size() + self.numbers.len() * size_of::<u64>()
    }

    /// Returns the entries after a cookie: their numbers, names and kinds.
    ///
    /// # Errors
    /// `Invalid` for a cookie that was never given out.
    pub(super) fn after(&self, cookie: u64) -> Result<impl Iterator<Item = (u64, &[u8], u8)>> {
        if cookie > self.last {
            return Err(Kind::Invalid.into());
        }
        let first = self.numbers.partition_point(|number| *number <= cookie);
        let rest = self.numbers.iter().enumerate().skip(first);
        let entries = rest.filter_map(|(at, number)| {
            let (name, kind) = self.names.get(at)?;
            Some((*number, name, kind))
        });
        Ok(entries.filter(|(_, name, _)| !self.gone.contains(*name)))
    }
}

impl Opens {
    pub(super) fn new(listed_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            listed: AtomicUsize::new(0),
            listed_max: listed_max.max(LISTED_MIN),
        }
    }

    /// # Errors
    /// `TooManyOpen`.
    pub(super) fn check_room(&self) -> Result<()> {
        match self.state.lock().open.len() < OPENS_MAX {
            true => Ok(()),
            false => Err(Kind::TooManyOpen.into()),
        }
    }

    pub(super) fn add(&self, open: Open) -> OpenId {
        let open = Arc::new(open);
        let mut state = self.state.lock();
        state.last += 1;
        let id = state.last;
        if open.kind == FileKind::Dir {
            let of_dir = state.dirs.entry(open.node).or_default();
            of_dir.push(Arc::clone(&open));
        }
        state.open.insert(id, open);
        OpenId(id)
    }

    /// # Errors
    /// `Stale`.
    pub(super) fn get(&self, id: OpenId) -> Result<Arc<Open>> {
        let found = self.state.lock().open.get(&id.0).cloned();
        found.ok_or_else(|| Kind::Stale.into())
    }

    /// # Errors
    /// `Stale`.
    pub(super) fn remove(&self, id: OpenId) -> Result<Arc<Open>> {
        let mut state = self.state.lock();
        let open = state.open.remove(&id.0).ok_or(Kind::Stale)?;
        if let Some(of_dir) = state.dirs.get_mut(&open.node) {
            of_dir.retain(|other| !Arc::ptr_eq(other, &open));
            if of_dir.is_empty() {
                state.dirs.remove(&open.node);
            }
        }
        drop(state);
        let mut listing = open.listing.lock();
        self.listed.fetch_sub(listing.size(), Ordering::Relaxed);
        *listing = Listing {
            is_over: true,
            ..Listing::default()
        };
        drop(listing);
        Ok(open)
    }

    pub(super) fn all(&self) -> Vec<OpenId> {
        self.state
            .lock()
            .open
            .keys()
            .map(|id| OpenId(*id))
            .collect()
    }

    /// Calls `work` with the listing of an open. If `is_start`, `begin` first fills it anew, within
    /// the number of bytes that it is given.
    ///
    /// # Errors
    /// `Stale` if the open was closed meanwhile; those of both functions; `Invalid` if the listing is to
    /// continue, but never began.
    pub(super) fn listing<T>(
        &self,
        open: &Open,
        is_start: bool,
        begin: impl FnOnce(usize) -> Result<Names>,
        work: impl FnOnce(&Listing) -> Result<T>,
    ) -> Result<T> {
        let mut listing = open.listing.lock();
        if listing.is_over {
            return Err(Kind::Stale.into());
        }
        if is_start {
            let old = listing.size();
            let others = self.listed.load(Ordering::Relaxed).saturating_sub(old);
            listing.renew(&begin(self.listed_max.saturating_sub(others))?);
            self.listed.fetch_add(listing.size(), Ordering::Relaxed);
            self.listed.fetch_sub(old, Ordering::Relaxed);
        }
        match listing.is_begun {
            true => work(&listing),
            false => Err(Kind::Invalid.into()),
        }
    }

    /// Removes a name from all listings of its directory.
    pub(super) fn gone(&self, dir: u64, name: &[u8]) {
        let open = self.state.lock().dirs.get(&dir).cloned();
        for open in open.unwrap_or_default() {
            let mut listing = open.listing.lock();
            if listing.is_begun && listing.gone.len() < listing.names.len() {
                listing.gone.insert(name.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Names {
        let mut names = Names::default();
        all.iter().for_each(|name| names.push(name.as_bytes(), 1));
        names
    }

    fn after(listing: &Listing, cookie: u64) -> String {
        let all = listing.after(cookie).expect("a cookie");
        let all = all.map(|(number, name, _)| format!("{number}{}", String::from_utf8_lossy(name)));
        all.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_entry_keeps_its_number_when_the_listing_begins_again() {
        let mut listing = Listing::default();
        listing.renew(&names(&["a", "b", "c", "c"]));
        assert_eq!(after(&listing, 0), "1a 2b 3c");
        listing.renew(&names(&["d", "c", "a"]));
        assert_eq!(after(&listing, 0), "1a 3c 4d");
        assert_eq!(after(&listing, 2), "3c 4d");
        listing.renew(&names(&["b", "d"]));
        assert_eq!(
            (after(&listing, 3), after(&listing, 4)),
            ("4d 5b".into(), "5b".into())
        );
        assert_eq!(listing.after(6).map(|_| ()).unwrap_err(), Kind::Invalid);
    }

    #[test]
    fn memory_for_listings_is_bounded_and_comes_back() {
        let opens = Opens::new(0);
        let dir = || Open::new(1, FileKind::Dir, Mode::Read, None);
        let (first, second) = (opens.add(dir()), opens.add(dir()));
        let mut rooms = Vec::new();
        for id in [first, second, first] {
            let open = opens.get(id).unwrap();
            let begin = |room| {
                rooms.push(room);
                Ok(names(&["one name"; 1]))
            };
            opens.listing(&open, true, begin, |_| Ok(())).unwrap();
        }
        assert!(rooms[0] == LISTED_MIN && rooms[1] < LISTED_MIN && rooms[2] == rooms[1]);
        opens.remove(first).unwrap();
        opens.remove(second).unwrap();
        assert_eq!(opens.listed.load(Ordering::Relaxed), 0);
    }
}
