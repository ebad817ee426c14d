//! Errors as exceptions, and exceptions as errors.

use pyo3::exceptions::{PyException, PyFileNotFoundError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::cell::{Cell, RefCell};
use volary::{Error, Kind, VolError};

thread_local! {
    /// Whether a call of Python's is under way on this thread.
    static IS_CALLED: Cell<bool> = const { Cell::new(false) };
    /// What Python code raised last that this call has called back.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Why a call failed: a kind, and the words for people.
pub(crate) struct Failure {
    kind: Kind,
    words: String,
}

impl Failure {
    /// Returns one with these words.
    pub(crate) fn new(kind: Kind, words: impl Into<String>) -> Self {
        let words = words.into();
        Self { kind, words }
    }

    /// Returns it as an exception: `volary.Error`, or one of its subclasses.
    pub(crate) fn raised(self, py: Python<'_>) -> PyErr {
        static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let make = MAKE.import(py, "volary._errors", "of_kind");
        let made = make.and_then(|make| make.call1((format!("{:?}", self.kind), self.words)));
        made.map_or_else(|e| e, PyErr::from_value)
    }
}

impl From<VolError> for Failure {
    fn from(e: VolError) -> Self {
        Self::new(e.kind(), e.to_string())
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::new(e.kind(), e.to_string())
    }
}

/// Does `work` without the interpreter's lock. What code in Python raised meanwhile on this thread is the cause of the
/// exception; an interrupt is the exception.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let outer = IS_CALLED.replace(true);
    drop(RAISED.take());
    let done = py.detach(work);
    IS_CALLED.set(outer);
    let raised = RAISED.take();
    done.map_err(|failure| match raised {
        Some(e) if !e.is_instance_of::<PyException>(py) => e,
        Some(cause) => {
            let e = failure.raised(py);
            e.set_cause(py, Some(cause));
            e
        }
        None => failure.raised(py),
    })
}

/// Calls Python code from within a driver or a device.
///
/// # Errors
/// `NotFound` for `FileNotFoundError`, `Io` with the exception's words for any other, and once the interpreter has ended.
pub(crate) fn attached<T>(
    what: &str,
    work: impl FnOnce(Python<'_>) -> PyResult<T>,
) -> volary::Result<T> {
    let done = Python::try_attach(|py| work(py).map_err(|e| failed(py, what, e)));
    done.unwrap_or_else(|| {
        let words = format!("{what}: the Python interpreter has ended");
        Err(Error::note(Kind::Io, words))
    })
}

fn failed(py: Python<'_>, what: &str, e: PyErr) -> Error {
    let kind = match e.is_instance_of::<PyFileNotFoundError>(py) {
        true => Kind::NotFound,
        false => Kind::Io,
    };
    let words = format!("{what}: {e}");
    if IS_CALLED.get() {
        RAISED.set(Some(e));
    }
    Error::note(kind, words)
}

/// Returns the names of all kinds of errors.
#[pyfunction]
pub(crate) fn kinds() -> Vec<String> {
    Kind::ALL.iter().map(|kind| format!("{kind:?}")).collect()
}
