//! The volume.

use crate::bulk::{Bulk, How};
use crate::error::{Failure, run};
use crate::facts::{Row, row, stat, time};
use crate::file::{File, how, read_at};
use crate::own::Own;
use crate::ranges::{self, Asked};
use crate::serving::{Mount, Server, Serving};
use crate::walk::Walk;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use volary::bulk::Shuffle;
use volary::{Caps, FileHow, SetAttr, SetTime};

/// A volume that is open. Paths are bytes.
#[pyclass(frozen, module = "volary._volary")]
pub(crate) struct Vol(Own<volary::Vol>);

impl From<volary::Vol> for Vol {
    fn from(vol: volary::Vol) -> Self {
        Self(Own::new(vol))
    }
}

impl Vol {
    /// Does `work` on the volume, which stays open until it is done.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&volary::Vol) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        run(py, || {
            let vol = self.0.with(|vol| Ok(vol.clone()))?;
            work(&vol)
        })
    }
}

#[pymethods]
impl Vol {
    // The end.

    /// Whether it can be used: neither closed, nor a fork's copy.
    #[getter]
    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Makes everything durable, and ends the use of the volume; at the second call nothing happens.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || {
            let taken = self.0.take();
            Ok(taken.map_or(Ok(()), volary::Vol::close)?)
        })
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |vol| Ok(vol.sync()?))
    }

    /// Returns size, free bytes, those that are available, nodes and free nodes.
    fn space(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, u64, u64)> {
        self.with(py, |vol| {
            let told = vol.space()?;
            Ok((
                told.size,
                told.free,
                told.available,
                told.nodes,
                told.nodes_free,
            ))
        })
    }

    /// Whether it takes changes.
    fn is_writable(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |vol| Ok(vol.volume().caps().has(Caps::WRITE)))
    }

    // Files.

    fn read<'py>(&self, py: Python<'py>, path: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |vol| Ok(vol.read(path)?))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn read_at<'py>(
        &self,
        py: Python<'py>,
        path: &[u8],
        offset: u64,
        len: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |vol| {
            read_at(&vol.open_file(path, FileHow::READ)?, offset, len)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the bytes of each range, or the exception for it.
    #[expect(clippy::needless_pass_by_value, reason = "it comes from Python")]
    fn cat_ranges<'py>(
        &self,
        py: Python<'py>,
        asked: Vec<(Bound<'py, PyBytes>, Option<i64>, Option<i64>)>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let views: Vec<Asked<'_>> = asked
            .iter()
            .map(|(path, start, end)| Asked {
                path: path.as_bytes(),
                start: *start,
                end: *end,
            })
            .collect();
        let answers = self.with(py, |vol| Ok(ranges::read(vol, &views)))?;
        let told = answers.into_iter().map(|answer| match answer {
            Ok(bytes) => PyBytes::new(py, &bytes).into_any(),
            Err(e) => e.raised(py).into_value(py).into_bound(py).into_any(),
        });
        Ok(told.collect())
    }

    fn write(&self, py: Python<'_>, path: &[u8], bytes: &[u8]) -> PyResult<()> {
        self.with(py, |vol| Ok(vol.write(path, bytes)?))
    }

    fn append(&self, py: Python<'_>, path: &[u8], bytes: &[u8]) -> PyResult<()> {
        self.with(py, |vol| Ok(vol.append(path, bytes)?))
    }

    /// Opens a file: `r`, `w`, `x`, `a`, `r+`, and `r+c` that makes it if it is not there.
    fn open_file(&self, py: Python<'_>, path: &[u8], mode: &str) -> PyResult<File> {
        let how = how(mode)?;
        self.with(py, |vol| Ok(vol.open_file(path, how)?.into()))
    }

    // Names.

    fn stat<'py>(
        &self,
        py: Python<'py>,
        path: &[u8],
        follow: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let attr = self.with(py, |vol| {
            Ok(match follow {
                true => vol.metadata(path)?,
                false => vol.symlink_metadata(path)?,
            })
        })?;
        stat(py, &attr)
    }

    fn list<'py>(&self, py: Python<'py>, path: &[u8]) -> PyResult<Vec<Row<'py>>> {
        let entries = self.with(py, |vol| Ok(vol.list(path)?))?;
        entries
            .iter()
            .map(|entry| row(py, &entry.name, entry))
            .collect()
    }

    fn walk(&self, py: Python<'_>, path: &[u8]) -> PyResult<Walk> {
        self.with(py, |vol| Ok(vol.walk(path).into()))
    }

    fn mkdir(&self, py: Python<'_>, path: &[u8], parents: bool) -> PyResult<()> {
        self.with(py, |vol| {
            let made = match parents {
                true => vol.mkdir_all(path),
                false => vol.mkdir(path),
            };
            Ok(made?)
        })
    }

    fn remove(&self, py: Python<'_>, path: &[u8], recursive: bool) -> PyResult<()> {
        self.with(py, |vol| {
            let removed = match recursive {
                true => vol.remove_all(path),
                false => vol.remove(path),
            };
            Ok(removed?)
        })
    }

    fn rename(&self, py: Python<'_>, from: &[u8], to: &[u8]) -> PyResult<()> {
        self.with(py, |vol| Ok(vol.rename(from, to)?))
    }

    fn symlink(&self, py: Python<'_>, target: &[u8], path: &[u8]) -> PyResult<()> {
        self.with(py, |vol| Ok(vol.symlink(target, path)?))
    }

    fn link(&self, py: Python<'_>, file: &[u8], path: &[u8]) -> PyResult<()> {
        self.with(py, |vol| Ok(vol.hard_link(file, path)?))
    }

    fn read_link<'py>(&self, py: Python<'py>, path: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let target = self.with(py, |vol| Ok(vol.read_link(path)?))?;
        Ok(PyBytes::new(py, &target))
    }

    // Attributes.

    /// Changes those that are given: mode, owner, group, the times of access and of change.
    #[pyo3(signature = (path, *, mode=None, uid=None, gid=None, accessed=None, modified=None))]
    #[expect(clippy::too_many_arguments, reason = "Python's own, by their names")]
    fn set_attr(
        &self,
        py: Python<'_>,
        path: &[u8],
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        accessed: Option<i128>,
        modified: Option<i128>,
    ) -> PyResult<()> {
        let to = |nanos: Option<i128>| nanos.map(|nanos| SetTime::To(time(nanos)));
        let set = SetAttr {
            mode,
            uid,
            gid,
            atime: to(accessed),
            mtime: to(modified),
            ..SetAttr::default()
        };
        self.with(py, |vol| Ok(vol.set_attr(path, &set)?))
    }

    fn xattr_names<'py>(&self, py: Python<'py>, path: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let names = self.with(py, |vol| Ok(vol.xattrs(path)?.names()?))?;
        Ok(names.iter().map(|name| PyBytes::new(py, name)).collect())
    }

    fn xattr<'py>(
        &self,
        py: Python<'py>,
        path: &[u8],
        name: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let value = self.with(py, |vol| Ok(vol.xattrs(path)?.get(name)?))?;
        Ok(PyBytes::new(py, &value))
    }

    fn set_xattr(&self, py: Python<'_>, path: &[u8], name: &[u8], value: &[u8]) -> PyResult<()> {
        self.with(py, |vol| Ok(vol.xattrs(path)?.set(name, value)?))
    }

    fn remove_xattr(&self, py: Python<'_>, path: &[u8], name: &[u8]) -> PyResult<()> {
        self.with(py, |vol| Ok(vol.xattrs(path)?.remove(name)?))
    }

    // The whole of it.

    /// Copies from the host; returns how many files.
    fn copy_in(&self, py: Python<'_>, from: &[u8], to: &[u8]) -> PyResult<u64> {
        let from = Path::new(OsStr::from_bytes(from));
        self.with(py, |vol| Ok(vol.copy_in(from, to)?.files))
    }

    /// Copies to the host; returns how many files.
    fn copy_out(&self, py: Python<'_>, from: &[u8], to: &[u8]) -> PyResult<u64> {
        let to = Path::new(OsStr::from_bytes(to));
        self.with(py, |vol| Ok(vol.copy_out(from, to)?.files))
    }

    /// Begins a bulk read.
    #[pyo3(signature = (paths, *, seed, window, memory, include, exclude, shard, largest))]
    #[expect(clippy::too_many_arguments, reason = "Python's own, by their names")]
    fn bulk(
        &self,
        py: Python<'_>,
        paths: Vec<Vec<u8>>,
        seed: Option<u64>,
        window: u64,
        memory: Option<u64>,
        include: Vec<String>,
        exclude: Vec<String>,
        shard: Option<(u64, u64)>,
        largest: u64,
    ) -> PyResult<Bulk> {
        let how = How {
            paths,
            shuffle: seed.map(|seed| Shuffle { seed, window }),
            memory,
            include,
            exclude,
            shard,
            largest,
        };
        self.with(py, |vol| Bulk::begin(vol, how))
    }

    /// Begins to serve.
    #[expect(clippy::needless_pass_by_value, reason = "it comes from Python")]
    fn serve(&self, py: Python<'_>, how: Serving) -> PyResult<Server> {
        self.with(py, |vol| Server::begin(vol, &how))
    }

    /// Mounts it on a directory.
    fn mount(&self, py: Python<'_>, dir: &[u8], options: &str, write: bool) -> PyResult<Mount> {
        let dir = Path::new(OsStr::from_bytes(dir));
        self.with(py, |vol| Mount::begin(vol.clone(), dir, options, write))
    }
}
