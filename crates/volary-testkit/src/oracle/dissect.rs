//! dissect.ffs: reads UFS1 and UFS2, little-endian, as an examiner does, in Python.

use super::{listed, run};
use crate::tree::Tree;
use std::path::Path;
use std::process::Command;

/// Returns all that each of these images holds; `python` is [one that has
/// it](super::python::with_dissect_ffs).
///
/// # Errors
/// What Python printed, if it failed.
pub fn trees(python: &Path, images: &[&Path]) -> Result<Vec<Tree>, String> {
    let program = concat!(include_str!("common.py"), include_str!("dissect.py"));
    let printed = run(Command::new(python).arg("-c").arg(program).args(images))?;
    listed::trees(&String::from_utf8_lossy(&printed))
}
