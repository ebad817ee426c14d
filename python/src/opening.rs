//! From a name to a volume; new volumes, and checks.

use crate::device::PyDevice;
use crate::error::{Failure, run};
use crate::tree::PyTree;
use crate::vol::Vol;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use volary::{CheckMode, Checked, Options, Severity, VolOptions};

/// How a volume is opened, as Python tells it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct How {
    kind: Option<String>,
    layers: Vec<String>,
    options: String,
    memory: Option<u64>,
    umask: Option<u32>,
    owner: Option<(u32, u32)>,
}

impl How {
    fn options(self) -> VolOptions {
        let mut how = volary::Vol::options();
        if !self.options.is_empty() {
            how = how.options(&self.options);
        }
        if let Some(kind) = self.kind {
            how = how.kind(kind);
        }
        if let Some(memory) = self.memory {
            how = how.memory(memory);
        }
        if let Some(umask) = self.umask {
            how = how.umask(umask);
        }
        if let Some((uid, gid)) = self.owner {
            how = how.owner(uid, gid);
        }
        self.layers.into_iter().fold(how, VolOptions::layer)
    }
}

/// Opens what is named so.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, source: &[u8], write: bool, how: How) -> PyResult<Vol> {
    let source = OsStr::from_bytes(source);
    let options = how.options();
    run(py, || {
        let opened = match write {
            true => options.edit(source),
            false => options.open(source),
        };
        Ok(opened?.into())
    })
}

/// Opens the volume in what `reader` reads.
#[pyfunction]
pub(crate) fn open_device(
    py: Python<'_>,
    name: &str,
    reader: Py<PyAny>,
    size: u64,
    how: How,
) -> PyResult<Vol> {
    let options = how.options();
    run(py, || {
        let device = Arc::new(PyDevice { reader, size });
        Ok(options.open_device(name, device, true)?.into())
    })
}

/// Opens a driver in Python.
#[pyfunction]
pub(crate) fn open_tree(py: Python<'_>, name: &str, tree: Py<PyAny>, how: How) -> PyResult<Vol> {
    let options = how.options();
    run(py, || {
        let attach = |how: &volary::Attach| {
            how.options.check_known(&[])?;
            Ok(volary_driver::readonly::attach_lazy(
                "python",
                PyTree(tree),
                how,
            ))
        };
        Ok(options.open_fs(name, true, attach)?.into())
    })
}

/// What a new volume is, as Python tells it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Making {
    label: Option<String>,
    options: String,
    seed: Option<u64>,
    overwrite: bool,
}

/// Makes an image and a volume on it.
#[pyfunction]
pub(crate) fn make(
    py: Python<'_>,
    image: &[u8],
    kind: &str,
    size: u64,
    how: Making,
) -> PyResult<()> {
    let mut options = volary::Vol::options();
    if !how.options.is_empty() {
        options = options.make_options(&how.options);
    }
    if let Some(label) = how.label {
        options = options.label(label);
    }
    if let Some(seed) = how.seed {
        options = options.seed(seed);
    }
    if how.overwrite {
        options = options.overwrite();
    }
    run(py, || {
        Ok(options
            .make(OsStr::from_bytes(image), kind, size)?
            .close()?)
    })
}

/// A finding: code, severity, path, offset, message, what mending does.
type Found<'py> = (
    &'static str,
    &'static str,
    Option<Bound<'py, PyBytes>>,
    Option<u64>,
    String,
    String,
);

/// What a check told: how much was found and mended, each finding, facts.
type Told<'py> = (u64, u64, Vec<Found<'py>>, Vec<(&'static str, String)>);

/// Checks a volume that nobody has open.
#[pyfunction]
pub(crate) fn check<'py>(
    py: Python<'py>,
    source: &[u8],
    mode: &str,
    how: How,
) -> PyResult<Told<'py>> {
    let mode = match mode {
        "mend" => CheckMode::Mend,
        "preen" => CheckMode::Preen,
        _ => CheckMode::Look,
    };
    let options = how.options();
    let checked = run(py, || {
        let checked = options.check(OsStr::from_bytes(source), mode);
        checked.map_err(Failure::from)
    })?;
    let Checked { report, findings } = checked;
    let found = findings.into_iter().map(|finding| {
        let severity = match finding.severity {
            Severity::Note => "note",
            Severity::Crash => "crash",
            Severity::Damage => "damage",
        };
        let path = finding.path.map(|path| PyBytes::new(py, &path));
        (
            finding.code,
            severity,
            path,
            finding.offset,
            finding.message,
            finding.repair,
        )
    });
    let found = found.collect();
    let facts = report.facts.into_iter().map(|fact| (fact.key, fact.value));
    Ok((report.found, report.mended, found, facts.collect()))
}

/// Returns a size in bytes as people write it: `64M`, `1.5G`. `None` for what is none.
#[pyfunction]
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    Options::parse_size(text)
}
