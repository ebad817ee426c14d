//! A walk through a tree.

use crate::error::run;
use crate::facts::{Row, row};
use crate::own::Own;
use pyo3::prelude::*;

/// All below a directory, one after the other.
#[pyclass(frozen, module = "volary._volary")]
pub(crate) struct Walk(Own<volary::Walk>);

impl From<volary::Walk> for Walk {
    fn from(walk: volary::Walk) -> Self {
        Self(Own::new(walk))
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
            let next = |walk: &mut volary::Walk| Ok(walk.next().transpose()?);
            self.0.with(next)
        })?;
        found
            .map(|found| row(py, &found.path, &found.entry))
            .transpose()
    }

    /// Leaves out what is in the directory that came last.
    fn skip_dir(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || {
            self.0.with(|walk| {
                walk.skip_dir();
                Ok(())
            })
        })
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.take()));
    }
}
