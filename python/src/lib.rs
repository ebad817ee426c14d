//! The native part of the Python package `volary`: module `volary._volary`.
//!
//! What Python programs see is in `python/volary`: there are the names, the help texts and the types. Here paths are bytes,
//! and results are tuples.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `error` | from errors of volary to exceptions and back; leaves the interpreter's lock while it works |
//! | `own` | what belongs to one process: not used in a fork, and dropped without the lock |
//! | `facts` | attributes and entries as tuples |
//! | `device`, `tree` | Python's files as devices; Python's classes as drivers |
//! | `file`, `walk`, `ranges`, `bulk` | open files, walks, many ranges at once, whole trees |
//! | `serving` | servers and mounts |
//! | `vol` | the volume |
//! | `opening` | from a name to a volume; new ones, checks |
//! | `conform` | the conformance suite on a driver in Python |
//!
//! # The interpreter's lock
//!
//! No call into volary is made while it is held: a driver in Python, called by another thread, would wait for it
//! without end. `error::run` is the one door.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

mod bulk;
mod conform;
mod device;
mod error;
mod facts;
mod file;
mod opening;
mod own;
mod ranges;
mod serving;
mod tree;
mod vol;
mod walk;

/// The native part of volary.
#[pyo3::pymodule(gil_used = true)]
mod _volary {
    #[pymodule_export]
    use crate::bulk::Bulk;
    #[pymodule_export]
    use crate::conform::{conform, write_reference};
    #[pymodule_export]
    use crate::error::kinds;
    #[pymodule_export]
    use crate::file::File;
    #[pymodule_export]
    use crate::opening::{check, make, open, open_device, open_tree, parse_size};
    #[pymodule_export]
    use crate::serving::{Mount, Server};
    #[pymodule_export]
    use crate::vol::Vol;
    #[pymodule_export]
    use crate::walk::Walk;
}
