//! The trait for trees whose directories are listed on demand.

use super::item::Item;
use super::listing::is_name;
use std::collections::HashSet;
use volary_core::{Caps, Result};

/// The entries of a directory, each with its name.
pub type Entries<F> = Vec<(Vec<u8>, Item<F>)>;

/// A tree whose directories are listed on demand. Paths are names with `/` between them; the root's
/// path is empty.
pub trait Lazy: Send + Sync + 'static {
    /// The key by which [`read`](Self::read) finds a file's bytes.
    type File: Clone + Send + Sync + 'static;

    /// Returns the entries of a directory, each with its name. Invalid names are left out; if a
    /// name comes twice, the last one counts.
    ///
    /// # Errors
    /// `NotFound` for a directory that is gone; `Io`.
    fn list(&self, dir: &[u8]) -> Result<Entries<Self::File>>;

    /// Returns the entry with this name. Default: searches the whole listing. Override it if a
    /// single entry can be asked for.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    fn find(&self, dir: &[u8], name: &[u8]) -> Result<Option<Item<Self::File>>> {
        let found = self.list(dir)?.into_iter().find(|(other, _)| other == name);
        Ok(found.map(|(_, item)| item))
    }

    /// Returns the number of subdirectories, which a directory's link count includes. Default:
    /// lists the directory.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    fn subdirs(&self, dir: &[u8]) -> Result<u32> {
        let all = self.list(dir)?;
        // A tree may list a directory once for each key below it.
        let dirs = all
            .iter()
            .filter(|(name, item)| item.is_dir() && is_name(name));
        let names: HashSet<&[u8]> = dirs.map(|(name, _)| &**name).collect();
        Ok(u32::try_from(names.len()).unwrap_or(u32::MAX))
    }

    /// Fills `buf` with the file's bytes from `offset` on. They lie within the size of its entry.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Stale` for a file that is gone.
    fn read(&self, file: &Self::File, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Returns the abilities that the format has, out of `most`, which this adapter can show. For a
    /// format with whole seconds and no hard links:
    /// `Caps { time_step: 1_000_000_000, ..most.without(Caps::HARD_LINKS) }`. Abilities beyond
    /// `most` are ignored. Default: all.
    fn caps(&self, most: Caps) -> Caps {
        most
    }
}
