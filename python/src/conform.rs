//! The conformance suite on a driver in Python.

use crate::error::{Failure, attached, run};
use crate::tree::PyTree;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;
use volary::{Attach, Fs, Kind};
use volary_test::{Lack, Manifest, Report, Suite, reference};

/// How a driver is held to its word, as Python tells it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Conforming {
    name: String,
    /// A directory that says what the volume holds.
    tree: Option<Vec<u8>>,
    /// What of its attributes counts.
    compare: Vec<String>,
    only: Option<String>,
    limit: f64,
}

/// What a run told: cases that passed; those that were skipped, and why; those that failed, with what was wrong, what the
/// contract says and what was done before.
type Told = (
    Vec<&'static str>,
    Vec<(&'static str, String)>,
    Vec<(&'static str, String, &'static str, Vec<String>)>,
);

/// Runs the suite on the drivers that `make` makes.
#[pyfunction]
pub(crate) fn conform(py: Python<'_>, make: Py<PyAny>, how: Conforming) -> PyResult<Told> {
    let limit = Duration::try_from_secs_f64(how.limit);
    let limit = limit.map_err(|e| PyValueError::new_err(e.to_string()))?;
    let report = run(py, move || {
        let attach = move || attached_anew(&make);
        let suite = match &how.tree {
            Some(tree) => Suite::reading(how.name.as_str(), attach, &manifest(tree, &how.compare)?),
            None => Suite::coherent(how.name.as_str(), attach)
                .map_err(|words| Failure::new(Kind::Invalid, words))?,
        };
        let suite = suite
            .limit(limit)
            .alone(|case| format!("volary.conform(…, only={case:?})"));
        let suite = match how.only {
            Some(case) => suite.only(case),
            None => suite,
        };
        Ok(suite.report())
    })?;
    let Report {
        passed,
        skipped,
        failed,
        ..
    } = report;
    let failed = failed.into_iter();
    let failed = failed.map(|one| (one.case, one.what, one.contract, one.operations));
    Ok((passed, skipped, failed.collect()))
}

/// Returns a volume of a new driver. The suite takes a panic as why there is none.
fn attached_anew(make: &Py<PyAny>) -> Fs {
    match attached("make", |py| make.call0(py)) {
        Ok(tree) => {
            volary_driver::readonly::attach_lazy("python", PyTree(tree), &Attach::default())
        }
        Err(e) => std::panic::resume_unwind(Box::new(e.to_string())),
    }
}

/// Returns what the volume should hold: what the directory does, as far as a driver in Python tells it.
///
/// # Errors
/// Of the host.
fn manifest(tree: &[u8], compare: &[String]) -> Result<Manifest, Failure> {
    let dir = Path::new(OsStr::from_bytes(tree));
    let manifest = Manifest::of_dir(dir).map_err(|e| of_host(&e))?;
    let lacks = [
        ("modes", Lack::Modes),
        ("owners", Lack::Owners),
        ("times", Lack::Times),
    ];
    let left_out = lacks
        .into_iter()
        .filter(|(word, _)| !compare.iter().any(|one| one == word));
    let manifest = left_out.fold(manifest, |manifest, (_, lack)| manifest.without(lack));
    Ok(manifest.without(Lack::Special).without(Lack::HardLinks))
}

/// Writes the reference tree of the suite into a directory: files, directories and symlinks.
#[pyfunction]
pub(crate) fn write_reference(py: Python<'_>, dir: &[u8]) -> PyResult<()> {
    run(py, || {
        // Who writes it may not be root, and is to read all of it.
        let lacks = [Lack::Special, Lack::HardLinks, Lack::Owners, Lack::Modes];
        let tree = lacks.into_iter().fold(reference::tree(), Manifest::without);
        let written = tree.write_dir(Path::new(OsStr::from_bytes(dir)));
        written.map_err(|e| of_host(&e))
    })
}

fn of_host(e: &std::io::Error) -> Failure {
    Failure::new(Kind::Io, e.to_string())
}
