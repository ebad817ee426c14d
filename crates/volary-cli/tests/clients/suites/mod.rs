//! Projects that are built on what `volary serve` serves, and systems that have it as their root:
//! in an emulated guest compilers are slow, so with `VOLARY_SUITES` set only.

mod builds;
mod rooted;

use std::path::PathBuf;
use volary_testkit::oracle::vm;

/// Returns where vmrun is, if these tests are asked for and it is there.
fn guest() -> Option<PathBuf> {
    if std::env::var_os("VOLARY_SUITES").is_none() {
        println!("skipped: without VOLARY_SUITES=1");
        return None;
    }
    vm::find()
}
