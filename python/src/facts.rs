//! Attributes and entries, as the tuples that `volary/_types.py` gives names to.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use volary::{Attr, FileKind, Time, VolEntry};

/// Returns the word for a kind.
pub(crate) const fn word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Dir => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::CharDevice => "char",
        FileKind::BlockDevice => "block",
    }
}

/// Returns the kind that a word is for.
pub(crate) fn kind_of(word: &str) -> Option<FileKind> {
    let all = [
        FileKind::File,
        FileKind::Dir,
        FileKind::Symlink,
        FileKind::Fifo,
        FileKind::Socket,
        FileKind::CharDevice,
        FileKind::BlockDevice,
    ];
    all.into_iter().find(|kind| self::word(*kind) == word)
}

/// Returns attributes as `Stat` has them.
///
/// # Errors
/// Without memory.
pub(crate) fn stat<'py>(py: Python<'py>, attr: &Attr) -> PyResult<Bound<'py, PyTuple>> {
    let birth = match attr.btime {
        Some(time) => nanos(py, time)?,
        None => py.None().into_bound(py),
    };
    let fields = [
        pyo3::types::PyString::intern(py, word(attr.kind)).into_any(),
        (attr.mode | attr.kind.mode_bits())
            .into_pyobject(py)?
            .into_any(),
        attr.nlink.into_pyobject(py)?.into_any(),
        attr.uid.into_pyobject(py)?.into_any(),
        attr.gid.into_pyobject(py)?.into_any(),
        attr.size.into_pyobject(py)?.into_any(),
        attr.allocated.into_pyobject(py)?.into_any(),
        attr.node.ino.get().into_pyobject(py)?.into_any(),
        nanos(py, attr.atime)?,
        nanos(py, attr.mtime)?,
        nanos(py, attr.ctime)?,
        birth,
    ];
    PyTuple::new(py, fields)
}

/// Returns nanoseconds since 1970.
fn nanos(py: Python<'_>, time: Time) -> PyResult<Bound<'_, PyAny>> {
    let small = time.secs.checked_mul(1_000_000_000);
    match small.and_then(|all| all.checked_add(time.nanos.into())) {
        Some(all) => Ok(all.into_pyobject(py)?.into_any()),
        None => {
            let all = i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos);
            Ok(all.into_pyobject(py)?.into_any())
        }
    }
}

/// Returns the time that is so many nanoseconds after 1970.
pub(crate) fn time(nanos: i128) -> Time {
    let secs = nanos.div_euclid(1_000_000_000);
    Time {
        secs: i64::try_from(secs).unwrap_or(if secs < 0 { i64::MIN } else { i64::MAX }),
        nanos: u32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or(0),
    }
}

/// An entry: its name, what it is, its attributes.
pub(crate) type Row<'py> = (
    Bound<'py, PyBytes>,
    &'static str,
    Option<Bound<'py, PyTuple>>,
);

/// Returns an entry under a name, or a path.
///
/// # Errors
/// Without memory.
pub(crate) fn row<'py>(py: Python<'py>, name: &[u8], entry: &VolEntry) -> PyResult<Row<'py>> {
    let attr = entry.attr.as_ref().map(|attr| stat(py, attr));
    Ok((PyBytes::new(py, name), word(entry.kind), attr.transpose()?))
}
