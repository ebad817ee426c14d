//! A device in a qcow2 image, by the imago crate.

mod clusters;
mod header;
mod refcounts;
#[cfg(test)]
mod tests;

use crate::OpenOptions;
use crate::file::{io_error, not_made, open_locked, read_exact_at};
use crate::magic::HEADER_LEN;
use crate::range::check_range;
use imago::file::File as Storage;
use imago::{
    DenyImplicitOpenGate, FormatAccess, FormatCreateBuilder, FormatDriverBuilder,
    PermissiveImplicitOpenGate,
};
use std::cell::Cell;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use volary_core::{BlockDevice, Error, Geometry, Kind, Result, escape};

/// The content of a qcow2 image of version 2 or 3, including compressed clusters and internal
/// snapshots. The file is locked as by [`FileDevice`](crate::FileDevice).
///
/// Writes are not durable before a flush, as on any device. A crash before it resets newly
/// allocated clusters to their former content.
pub struct Qcow2 {
    image: FormatAccess<Storage>,
    geometry: Geometry,
    /// Whether damage in the image has made imago panic. Nothing from the image can be trusted
    /// then.
    broken: AtomicBool,
}

impl Qcow2 {
    /// Opens the image at `path`. An image with a backing file is refused, because opening it would
    /// read a file that the image's author chose.
    ///
    /// # Errors
    /// Those of [`FileDevice::open`](crate::FileDevice::open); `Corrupt`; `Unsupported` for an
    /// image that is encrypted or has a backing file; `Io`.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        Self::open_with(path.as_ref(), options, false)
    }

    /// Creates an image of `size` zero bytes, with clusters of 64 KiB. The file must not exist, or
    /// be empty.
    ///
    /// # Errors
    /// As [`FileDevice::create`](crate::FileDevice::create).
    pub fn create(path: impl AsRef<Path>, size: u64) -> Result<()> {
        let path = path.as_ref();
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = file.map_err(|e| not_made(&e))?;
        let had = file.metadata().map_err(|e| not_made(&e))?;
        if !had.is_file() || had.len() > 0 {
            return Err(Error::note(Kind::Exists, "already there"));
        }
        let make = || {
            let how = imago::StorageOpenOptions::new().filename(path).write(true);
            let storage = Storage::from_open_file(file, how)?;
            let image = imago::qcow2::Qcow2::<Storage>::create_builder(storage);
            image.size(size).create()
        };
        let made = caught(make).map_err(|_| led_astray())?;
        made.map_err(|e| {
            // A file that could not be completed is not left behind.
            let _ = std::fs::remove_file(path);
            not_made(&e)
        })
    }

    /// Returns how many bytes the image in a file holds, or `None` if it is not a qcow2 image.
    ///
    /// # Errors
    /// `Io`.
    pub fn size_of(path: impl AsRef<Path>) -> Result<Option<u64>> {
        let read = |e: std::io::Error| io_error("read", 0, HEADER_LEN, &e);
        let file = File::open(path).map_err(read)?;
        let mut head = [0; HEADER_LEN];
        match read_exact_at(&file, &mut head, 0) {
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            done => done.map_err(read)?,
        }
        Ok(header::size(&head))
    }

    /// Opens the image at `path` and its backing files, whichever these are. This is only for
    /// images from a trusted author.
    ///
    /// # Errors
    /// As [`open`](Self::open), except that backing files are accepted.
    pub fn open_with_backing(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        Self::open_with(path.as_ref(), options, true)
    }

    fn open_with(path: &Path, options: OpenOptions, outside: bool) -> Result<Self> {
        let (file, _) = open_locked(path, options)?;
        let writable = !options.read_only;
        check_file(&file, outside, writable).map_err(of_image)?;
        let how = imago::StorageOpenOptions::new()
            .filename(path)
            .write(writable);
        let open = || {
            let storage = Storage::from_open_file(file, how)?;
            let image = imago::qcow2::Qcow2::<Storage>::builder(storage).write(writable);
            match outside {
                true => image.open(PermissiveImplicitOpenGate::default()),
                false => image.open(DenyImplicitOpenGate::default()),
            }
        };
        let image = caught(open).map_err(|_| led_astray())?.map_err(|e| {
            // The text may contain words from the image itself.
            let why = e.to_string();
            let why = escape(why.as_bytes());
            Error::note(
                Kind::Corrupt,
                format!("a qcow2 image that is damaged: {why}; see: qemu-img check"),
            )
        })?;
        let image = FormatAccess::new(image);
        let geometry = Geometry {
            size: image.size(),
            sector: 512,
            read_only: options.read_only,
        };
        Ok(Self {
            image,
            geometry,
            broken: AtomicBool::new(false),
        })
    }

    /// Runs an operation of imago. It may panic on an image that contradicts itself. The image is
    /// not used any more then.
    fn run(
        &self,
        doing: &'static str,
        offset: u64,
        len: usize,
        f: impl FnOnce(&FormatAccess<Storage>) -> std::io::Result<()>,
    ) -> Result<()> {
        if self.broken.load(Ordering::Acquire) {
            return Err(led_astray());
        }
        match caught(|| f(&self.image)) {
            Ok(result) => result.map_err(|e| io_error(doing, offset, len, &e)),
            Err(_) => {
                self.broken.store(true, Ordering::Release);
                Err(led_astray())
            }
        }
    }
}

thread_local! {
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether a panic of this thread is caught and reported as an error. A panic hook need not
/// report it as well.
pub fn catches_panic() -> bool {
    CATCHES.try_with(Cell::get).unwrap_or(false)
}

/// Runs an operation of imago that may panic.
fn caught<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    let before = CATCHES.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    CATCHES.set(before);
    done
}

fn led_astray() -> Error {
    Error::note(
        Kind::Corrupt,
        "a qcow2 image that contradicts itself; see: qemu-img check",
    )
}

/// Adds to an error of damage what mends an image. A check of the volume in it cannot.
fn of_image(e: Error) -> Error {
    match e.as_corrupt() {
        None => e,
        Some(c) => {
            let expected = format!("{}; see: qemu-img check", c.expected);
            Error::corrupt(c.what, c.offset, c.found.clone(), expected)
        }
    }
}

/// Checks the header and the tables of an image, as far as imago does not.
fn check_file(file: &File, outside: bool, writable: bool) -> Result<()> {
    let read = |e: std::io::Error| io_error("read", 0, HEADER_LEN, &e);
    let len = file.metadata().map_err(read)?.len();
    let mut bytes = vec![0; HEADER_LEN];
    read_exact_at(file, &mut bytes, 0).map_err(read)?;
    let backing = header::check(&bytes, len)?;
    let tables = header::tables(&bytes)?;
    if writable {
        refcounts::check(file, &tables)?;
    }
    clusters::check(file, &tables, len, header::counts(&bytes))?;
    let Some(backing) = backing else {
        return Ok(());
    };
    if outside {
        return Ok(());
    }
    let mut name = vec![0; backing.len];
    read_exact_at(file, &mut name, backing.offset).map_err(read)?;
    let words = format!(
        "a qcow2 image that stands on another file, '{}'; make it whole with: qemu-img convert",
        escape(&name)
    );
    Err(Error::note(Kind::Unsupported, words))
}

impl BlockDevice for Qcow2 {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, buf.len(), self.geometry.size)?;
        self.run("read", offset, buf.len(), |image| image.read(buf, offset))
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        if self.geometry.read_only {
            return Err(Kind::ReadOnly.into());
        }
        check_range(offset, data.len(), self.geometry.size)?;
        self.run("write", offset, data.len(), |image| {
            image.write(data, offset)
        })
    }

    fn write_gather(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        // A single lookup in the image's tables is worth more than avoiding the copy.
        self.write_at(offset, &parts.concat())
    }

    fn flush(&self) -> Result<()> {
        if self.geometry.read_only {
            return Ok(());
        }
        self.run("flush", 0, 0, |image| {
            image.flush()?;
            image.sync()
        })
    }
}
