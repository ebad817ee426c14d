//! The trait of what is asked for a directory when somebody looks.

use super::item::Item;
use super::listing::is_name;
use std::collections::HashSet;
use volary_core::{Caps, Result};

/// The entries of a directory, each with its name.
pub type Entries<F> = Vec<(Vec<u8>, Item<F>)>;

/// What is asked for a directory when somebody looks into it. Paths are names with `/` between them; the root's is
/// empty.
pub trait Lazy: Send + Sync + 'static {
    /// What [`read`](Self::read) finds a file's bytes by.
    type File: Clone + Send + Sync + 'static;

    /// Returns the entries of a directory, each with its name. What is no name is left out; of one name the last counts.
    ///
    /// # Errors
    /// `NotFound` for a directory that is gone; `Io`.
    fn list(&self, dir: &[u8]) -> Result<Entries<Self::File>>;

    /// Returns the entry of this name. Default: looks for it among all; what can ask for one alone does so.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    fn find(&self, dir: &[u8], name: &[u8]) -> Result<Option<Item<Self::File>>> {
        let found = self.list(dir)?.into_iter().find(|(other, _)| other == name);
        Ok(found.map(|(_, item)| item))
    }

    /// Returns how many directories are in a directory, which its number of links counts. Default: lists it.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    fn subdirs(&self, dir: &[u8]) -> Result<u32> {
        let all = self.list(dir)?;
        // A tree may tell of a directory once for each key below it.
        let dirs = all
            .iter()
            .filter(|(name, item)| item.is_dir() && is_name(name));
        let names: HashSet<&[u8]> = dirs.map(|(name, _)| &**name).collect();
        Ok(u32::try_from(names.len()).unwrap_or(u32::MAX))
    }

    /// Fills `buf` with the file's bytes from `offset` on, which lie before the size that its entry told.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Stale` for a file that is gone.
    fn read(&self, file: &Self::File, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Returns what the format can keep of `most`, which is what can be shown:
    /// `Caps { time_step: 1_000_000_000, ..most.without(Caps::HARD_LINKS) }` of one that has whole seconds, and no
    /// hard links. What it claims beyond `most` does not count. Default: all.
    fn caps(&self, most: Caps) -> Caps {
        most
    }
}
