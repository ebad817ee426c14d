//! Makes a file system from a list of entries and the bytes of files. A read-only driver needs
//! nothing else.
//!
//! | trait | for |
//! |---|---|
//! | [`Tree`] | archives and images, which list all entries at once. [`attach`] keeps them |
//! | [`Lazy`] | remotes and key-value stores, which list directories on demand. [`attach_lazy`] |
//!
//! The adapter does the rest: node ids and opens, `Stale` after detach, cookies, `..`, link counts,
//! short reads at the end, statfs, extended attributes, and refusing every change. It asks a driver
//! only for bytes within the file, and takes no more memory than [`Attach::memory`].
//!
//! | module | what |
//! |---|---|
//! | `tree`, `lazy` | the two traits |
//! | `item` | an entry, as a driver describes it |
//! | `listing`, `index` | all entries of a [`Tree`], gathered and then kept |
//! | `seen` | the nodes of a [`Lazy`] that were looked up or listed |
//! | `nodes`, `served` | their common interface, and the file system over it |

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

/// Attaches a tree. `format` is the format's name, for messages.
///
/// # Errors
/// Those of [`Tree::list`]; `Unsupported` if its entries do not fit into [`Attach::memory`].
pub fn attach<T: Tree>(format: &'static str, tree: T, how: &Attach) -> Result<Fs> {
    let mut listing = Listing::new(format, how);
    tree.list(&mut listing)?;
    Ok(Arc::new(served::Served::new(index::Index::new(
        tree,
        listing.finish(),
    ))))
}

/// Attaches a [`Lazy`]. Nodes that were looked up or listed are remembered within
/// [`Attach::memory`]. Beyond that, nodes that are not open are forgotten, and are `Stale` until
/// they are looked up again.
pub fn attach_lazy<T: Lazy>(format: &'static str, tree: T, how: &Attach) -> Fs {
    Arc::new(served::Served::new(seen::Seen::new(format, tree, how)))
}
