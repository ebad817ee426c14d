//! A walk through a tree.

use crate::error::{Failure, run};
use crate::facts::{Row, row};
use crate::own::Own;
use parking_lot::Mutex;
use pyo3::prelude::*;

/// All below a directory, one after the other.
#[pyclass(frozen, module = "volary._volary")]
pub(crate) struct Walk(Mutex<Own<volary::Walk>>);

impl From<volary::Walk> for Walk {
    fn from(walk: volary::Walk) -> Self {
        Self(Mutex::new(Own::new(walk)))
    }
}

#[pymethods]
impl Walk {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Returns the next entry under its path. What cannot be listed raises; the walk goes on after it.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Row<'py>>> {
        let found = run(py, || {
            let mut walk = self.0.lock();
            Ok(walk.get_mut()?.next().transpose().map_err(Failure::from)?)
        })?;
        found
            .map(|found| row(py, &found.path, &found.entry))
            .transpose()
    }

    /// Leaves out what is in the directory that came last.
    fn skip_dir(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || {
            self.0.lock().get_mut()?.skip_dir();
            Ok(())
        })
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().take()));
    }
}
