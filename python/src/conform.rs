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
use volary_test::{Everywhere, Lack, Manifest, Report, Suite, reference};

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
    /// Under layers and through servers too.
    everywhere: bool,
}

/// What a run told: cases that passed; those that were skipped, and why; those that failed, with what was wrong, what the
/// contract says and what was done before.
type Told = (
    Vec<String>,
    Vec<(String, String)>,
    Vec<(String, String, &'static str, Vec<String>)>,
);

/// Runs the suite on the drivers that `make` makes.
#[pyfunction]
pub(crate) fn conform(py: Python<'_>, make: Py<PyAny>, how: Conforming) -> PyResult<Told> {
    let limit = Duration::try_from_secs_f64(how.limit);
    let limit = limit.map_err(|e| PyValueError::new_err(e.to_string()))?;
    let reports = run(py, move || {
        let attach = move || attached_anew(&make);
        let name = how.name.as_str();
        let only = how.only.clone();
        let each = move |suite: Suite| {
            let suite = suite
                .limit(limit)
                .alone(|case| format!("volary.conform(…, only={case:?})"));
            match &only {
                Some(case) => suite.only(case.as_str()),
                None => suite,
            }
        };
        let refused = |words| Failure::new(Kind::Invalid, words);
        let manifest = how.tree.map(|tree| manifest(&tree, &how.compare));
        let manifest = manifest.transpose()?;
        if how.everywhere {
            let all = match &manifest {
                Some(manifest) => Everywhere::reading(name, attach, manifest),
                None => Everywhere::coherent(name, attach).map_err(refused)?,
            };
            return Ok(all.each(each).reports());
        }
        let suite = match &manifest {
            Some(manifest) => Suite::reading(name, attach, manifest),
            None => Suite::coherent(name, attach).map_err(refused)?,
        };
        Ok(vec![each(suite).report()])
    })?;
    let is_one = reports.len() == 1;
    let mut told: Told = Told::default();
    for report in reports {
        let Report {
            name,
            passed,
            skipped,
            failed,
            ..
        } = report;
        let shown = |case: &str| match is_one {
            true => case.to_owned(),
            false => format!("{name}: {case}"),
        };
        told.0.extend(passed.iter().map(|case| shown(case)));
        let skipped = skipped.into_iter();
        told.1.extend(skipped.map(|(case, why)| (shown(case), why)));
        let failed = failed.into_iter();
        told.2
            .extend(failed.map(|one| (shown(one.case), one.what, one.contract, one.operations)));
    }
    Ok(told)
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
