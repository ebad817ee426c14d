//! Tables of the handles that C holds. A handle is never given out twice.

use crate::abi::VolaryError;
use crate::fault::{Fault, Outcome};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use volary::{Served, Vol, VolFile, Walk};

/// A walk, which one thread at a time continues.
pub(crate) type SharedWalk = Arc<Mutex<Walk>>;

/// The open objects of one kind.
pub(crate) struct Table<T> {
    what: &'static str,
    state: RwLock<State<T>>,
}

struct State<T> {
    next: u64,
    all: HashMap<u64, T>,
}

impl<T> Table<T> {
    /// Returns a table whose first handle is `first`, so that the handles of different tables
    /// differ.
    fn new(what: &'static str, first: u64) -> Self {
        Self {
            what,
            state: RwLock::new(State {
                next: first,
                all: HashMap::new(),
            }),
        }
    }

    /// Adds an object, and returns its handle.
    pub(crate) fn add(&self, thing: T) -> u64 {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let number = state.next;
        state.next += 1;
        state.all.insert(number, thing);
        number
    }

    /// Removes an object, and returns it.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn take(&self, number: u64) -> Outcome<T> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.all.remove(&number).ok_or_else(|| self.stale(number))
    }

    fn stale(&self, number: u64) -> Fault {
        let words = format!("{number} is no {} that is open", self.what);
        Fault::new(VolaryError::Stale, words)
    }
}

impl<T: Clone> Table<T> {
    /// Returns the object of a handle.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn get(&self, number: u64) -> Outcome<T> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let found = state.all.get(&number).cloned();
        found.ok_or_else(|| self.stale(number))
    }
}

/// The distance between the first handles of two tables.
const APART: u64 = 1 << 56;

pub(crate) static VOLUMES: LazyLock<Table<Vol>> = LazyLock::new(|| Table::new("volume", APART));
pub(crate) static FILES: LazyLock<Table<Arc<VolFile>>> =
    LazyLock::new(|| Table::new("file", 2 * APART));
pub(crate) static WALKS: LazyLock<Table<SharedWalk>> =
    LazyLock::new(|| Table::new("walk", 3 * APART));
pub(crate) static SERVERS: LazyLock<Table<Arc<Served>>> =
    LazyLock::new(|| Table::new("server", 4 * APART));
