//! A file system out of a list of entries and the bytes of files: all that a driver for reading is.
//!
//! | trait | for |
//! |---|---|
//! | [`Tree`] | what can tell all its entries at once: archives, images. [`attach`] asks once and keeps them |
//! | [`Lazy`] | what is asked for a directory when somebody looks: a remote, a key-value store. [`attach_lazy`] |
//!
//! The adapter does the rest: node ids and opens, `Stale` after detach, cookies, `..`, how many links a node has,
//! short reads at the end, statfs, extended attributes, and the refusal of every change. The bytes that a driver
//! is asked for lie within the file, and no memory past [`Attach::memory`] is taken.
//!
//! | module | what |
//! |---|---|
//! | `item` | an entry as a driver tells it |
//! | `listing`, `index` | all entries of a [`Tree`], gathered and then kept |
//! | `lazy` | the nodes of a [`Lazy`] that somebody has seen |
//! | `nodes`, `served` | what both have in common; the [`FileSystem`](volary_core::FileSystem) over it |

mod index;
mod item;
mod lazy;
mod listing;
mod nodes;
mod served;
#[cfg(test)]
mod tests;

pub use item::Item;
pub use listing::Listing;

use std::collections::HashSet;
use std::sync::Arc;
use volary_core::{Attach, Fs, Result};

/// What can tell all its entries at once.
pub trait Tree: Send + Sync + 'static {
    /// What [`read`](Self::read) finds a file's bytes by: an offset, say.
    type File: Send + Sync + 'static;

    /// Whether files lie in one piece on the device, uncompressed: then [`place`](Self::place) says where.
    const HAS_PLACES: bool = false;

    /// Tells `out` of every entry. Called once, by [`attach`].
    ///
    /// # Errors
    /// `Corrupt` for what makes no sense; what `out` answers.
    fn list(&self, out: &mut Listing<Self::File>) -> Result<()>;

    /// Fills `buf` with the file's bytes from `offset` on. All of them lie before the size that the entry told.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn read(&self, file: &Self::File, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Returns where the file's bytes begin on the device: bulk reads go there in the order of the disk.
    fn place(&self, file: &Self::File) -> Option<u64> {
        let _ = file;
        None
    }

    /// Returns how large the volume is in bytes, for people who ask.
    fn size(&self) -> u64 {
        0
    }
}

/// Attaches a tree of a format of this name.
///
/// # Errors
/// Of [`Tree::list`]; `Unsupported` if its entries do not fit into [`Attach::memory`].
pub fn attach<T: Tree>(format: &'static str, tree: T, how: &Attach) -> Result<Fs> {
    let mut listing = Listing::new(format, how);
    tree.list(&mut listing)?;
    Ok(Arc::new(served::Served::new(index::Index::new(
        tree,
        listing.finish(),
    ))))
}

/// What is asked for a directory when somebody looks into it. Paths are names with `/` between them; the root's is
/// empty.
pub trait Lazy: Send + Sync + 'static {
    /// What [`read`](Self::read) finds a file's bytes by.
    type File: Clone + Send + Sync + 'static;

    /// Returns the entries of a directory, each with its name. What is no name is left out; of one name the last counts.
    ///
    /// # Errors
    /// `NotFound` for a directory that is gone; `Io`.
    fn list(&self, dir: &[u8]) -> Result<Vec<(Vec<u8>, Item<Self::File>)>>;

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
            .filter(|(name, item)| item.is_dir() && lazy::is_name(name));
        let names: HashSet<&[u8]> = dirs.map(|(name, _)| &**name).collect();
        Ok(u32::try_from(names.len()).unwrap_or(u32::MAX))
    }

    /// Fills `buf` with the file's bytes from `offset` on, which lie before the size that its entry told.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Stale` for a file that is gone.
    fn read(&self, file: &Self::File, offset: u64, buf: &mut [u8]) -> Result<()>;
}

/// Attaches what a [`Lazy`] tells. Nodes that somebody has seen are remembered within [`Attach::memory`]; past it those
/// that are not open are forgotten, and are `Stale` until they are looked up again.
pub fn attach_lazy<T: Lazy>(format: &'static str, tree: T, how: &Attach) -> Fs {
    Arc::new(served::Served::new(lazy::Nodes::new(format, tree, how)))
}
