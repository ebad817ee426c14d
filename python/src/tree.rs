//! A class of Python's as a driver for reading.

use crate::device::fill;
use crate::error::attached;
use crate::facts::{kind_of, time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use volary::{Error, FileKind, Kind, Result};
use volary_driver::readonly::{Item, Lazy};

/// What `volary/_driver.py` made of a `volary.ReadOnly`: `list(dir)`, `find(dir, name)` and `read(file, offset, length)` in
/// bytes and tuples.
pub(crate) struct PyTree(pub(crate) Py<PyAny>);

/// What the driver finds a file's bytes by.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Py<PyAny>>);

/// An entry as Python tells it.
#[derive(FromPyObject)]
struct Told<'py>(
    Bound<'py, PyBytes>,
    String,
    u64,
    Py<PyAny>,
    Bound<'py, PyBytes>,
    Option<u32>,
    Option<(u32, u32)>,
    i128,
);

type Entry = (Vec<u8>, Item<Handle>);

impl Told<'_> {
    fn entry(self) -> PyResult<Entry> {
        let Self(name, kind, size, file, target, mode, owner, modified) = self;
        let item = match kind_of(&kind) {
            Some(FileKind::File) => Item::file(size, Handle(Arc::new(file))),
            Some(FileKind::Dir) => Item::dir(),
            Some(FileKind::Symlink) => Item::symlink(target.as_bytes()),
            Some(kind) => Item::special(kind, 0),
            None => return Err(PyValueError::new_err(format!("no kind of entry: {kind}"))),
        };
        let item = item.modified(time(modified));
        let item = match mode {
            Some(mode) => item.mode(mode),
            None => item,
        };
        let item = match owner {
            Some((uid, gid)) => item.owner(uid, gid),
            None => item,
        };
        Ok((name.as_bytes().to_vec(), item))
    }
}

impl Lazy for PyTree {
    type File = Handle;

    fn list(&self, dir: &[u8]) -> Result<Vec<Entry>> {
        attached("list", |py| {
            let told = self.0.call_method1(py, "list", (PyBytes::new(py, dir),))?;
            let told: Vec<Told<'_>> = told.extract(py)?;
            told.into_iter().map(Told::entry).collect()
        })
    }

    fn find(&self, dir: &[u8], name: &[u8]) -> Result<Option<Item<Handle>>> {
        attached("find", |py| {
            let place = (PyBytes::new(py, dir), PyBytes::new(py, name));
            let told = self.0.call_method1(py, "find", place)?;
            let told: Option<Told<'_>> = told.extract(py)?;
            told.map(|told| Ok(told.entry()?.1)).transpose()
        })
    }

    fn read(&self, file: &Handle, offset: u64, buf: &mut [u8]) -> Result<()> {
        let len = buf.len();
        attached("read", |py| {
            let place = (&*file.0, offset, len);
            let read = self.0.call_method1(py, "read", place)?;
            let read = read.cast_bound::<PyBytes>(py)?;
            Ok(fill(buf, read.as_bytes()))
        })?
        .map_err(|found| {
            let words = format!("read: {found} bytes were returned for {len} at offset {offset}");
            Error::note(Kind::Io, words)
        })
    }
}
