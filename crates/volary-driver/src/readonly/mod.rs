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
//! | `tree`, `lazy` | the two traits |
//! | `item` | an entry as a driver tells it |
//! | `listing`, `index` | all entries of a [`Tree`], gathered and then kept |
//! | `seen` | the nodes of a [`Lazy`] that somebody has seen |
//! | `nodes`, `served` | what both have in common; the [`FileSystem`](volary_core::FileSystem) over it |

mod index;
mod item;
mod lazy;
mod listing;
mod nodes;
mod seen;
mod served;
#[cfg(test)]
mod tests;
mod tree;

pub use item::Item;
pub use lazy::{Entries, Lazy};
pub use listing::Listing;
pub use tree::Tree;

use std::sync::Arc;
use volary_core::{Attach, Fs, Result};

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

/// Attaches what a [`Lazy`] tells. Nodes that somebody has seen are remembered within [`Attach::memory`]; past it those
/// that are not open are forgotten, and are `Stale` until they are looked up again.
pub fn attach_lazy<T: Lazy>(format: &'static str, tree: T, how: &Attach) -> Fs {
    Arc::new(served::Served::new(seen::Seen::new(format, tree, how)))
}
