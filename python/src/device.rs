//! A file of Python's as a device.

use crate::error::attached;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use volary::{BlockDevice, Error, Geometry, Kind, Result};

/// What is read with a method `read_at(offset, length)`, which may be called from any thread.
pub(crate) struct PyDevice {
    pub(crate) reader: Py<PyAny>,
    pub(crate) size: u64,
}

impl BlockDevice for PyDevice {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.size,
            sector: 512,
            read_only: true,
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let len = buf.len();
        attached("the file that holds the volume", |py| {
            let read = self.reader.call_method1(py, "read_at", (offset, len))?;
            let read = read.cast_bound::<PyBytes>(py)?;
            Ok(fill(buf, read.as_bytes()))
        })?
        .map_err(|found| {
            let cause = format!("the file gave {found} bytes");
            Error::io("read", offset, len as u64, cause)
        })
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(Kind::ReadOnly.into())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

/// Fills `buf` with as many bytes.
///
/// # Errors
/// How many there are instead.
pub(crate) fn fill(buf: &mut [u8], bytes: &[u8]) -> std::result::Result<(), usize> {
    if bytes.len() != buf.len() {
        return Err(bytes.len());
    }
    buf.copy_from_slice(bytes);
    Ok(())
}
