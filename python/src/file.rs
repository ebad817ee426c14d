//! An open file.

use crate::error::{Failure, run};
use crate::own::Own;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use volary::{FileHow, VolFile};

/// An open file: reads and writes at offsets.
#[pyclass(frozen, module = "volary._volary")]
pub(crate) struct File(Own<Arc<VolFile>>);

impl From<VolFile> for File {
    fn from(file: VolFile) -> Self {
        Self(Own::new(Arc::new(file)))
    }
}

/// Returns how a file is opened, as fopen(3) has it; `+a` reads too.
///
/// # Errors
/// `ValueError`.
pub(crate) fn how(mode: &str) -> PyResult<FileHow> {
    Ok(match mode {
        "r" => FileHow::READ,
        "w" => FileHow::WRITE,
        "x" => FileHow::NEW,
        "a" => FileHow::APPEND,
        "r+" => FileHow::UPDATE,
        "r+c" => FileHow::UPDATE_OR_NEW,
        _ => return Err(PyValueError::new_err(format!("no mode of a file: {mode}"))),
    })
}

impl File {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&VolFile) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        run(py, || {
            let file = self.0.with(|file| Ok(Arc::clone(file)))?;
            work(&file)
        })
    }
}

#[pymethods]
impl File {
    /// Returns at most `len` bytes from `offset` on.
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        len: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |file| read_at(file, offset, len))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn write_at(&self, py: Python<'_>, offset: u64, bytes: &[u8]) -> PyResult<()> {
        self.with(py, |file| Ok(file.write_at(offset, bytes)?))
    }

    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |file| Ok(file.metadata()?.size))
    }

    fn set_len(&self, py: Python<'_>, len: u64) -> PyResult<()> {
        self.with(py, |file| Ok(file.set_len(len)?))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |file| Ok(file.sync()?))
    }

    /// Ends it; at the second call nothing happens.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || match self.0.take().and_then(Arc::into_inner) {
            Some(file) => Ok(file.close()?),
            // It was closed, or another thread is in the middle of a call, and ends it with that.
            None => Ok(()),
        })
    }
}

/// Returns at most `len` bytes of a file from `offset` on. No memory is taken past the file's end.
///
/// # Errors
/// Of the volume.
pub(crate) fn read_at(file: &VolFile, offset: u64, len: u64) -> Result<Vec<u8>, Failure> {
    let left = file.metadata()?.size.saturating_sub(offset).min(len);
    let mut bytes = room(left)?;
    let read = file.read_at(offset, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Returns so many zeros.
///
/// # Errors
/// `TooBig` if memory does not suffice.
pub(crate) fn room(len: u64) -> Result<Vec<u8>, Failure> {
    let short = || {
        Failure::new(
            volary::Kind::TooBig,
            "memory does not suffice for all of it",
        )
    };
    let len = usize::try_from(len).map_err(|_| short())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| short())?;
    bytes.resize(len, 0);
    Ok(bytes)
}
