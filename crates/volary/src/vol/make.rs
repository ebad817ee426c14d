//! New volumes.

use super::error::{VolError, VolResult};
use super::handle::Vol;
use super::image::ImageFormat;
use super::options::VolOptions;
use crate::Source;
use crate::root_owner::RootOwner;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use volary_core::{Error, Kind, Make, Result};

/// Options of a new volume.
impl VolOptions {
    /// Gives a new volume a label.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.making.label = Some(label.into());
        self
    }

    /// Sets the seed of a new volume's random parts (its serial number). The default is the clock.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.making.seed = Some(seed);
        self
    }

    /// Adds options of the format for a new volume, in the form of `mkfs -o`: `unix,cluster=4096`.
    #[must_use]
    pub fn make_options(mut self, options: &str) -> Self {
        self.making.options.add(options);
        self
    }

    /// Sets the file format of a new image. The default follows from the extension of its name.
    #[must_use]
    pub fn image_format(mut self, format: ImageFormat) -> Self {
        self.making.format = Some(format);
        self
    }

    /// Allows a new volume to overwrite an existing image, partition or block device, with
    /// everything on it. An image file stays as it is until the new volume is complete.
    #[must_use]
    pub fn overwrite(mut self) -> Self {
        self.making.overwrites = true;
        self
    }

    /// Makes an image and a volume on it; see [`Vol::make`]. To overwrite a partition or a block
    /// device, `size` must be 0 or the existing size.
    ///
    /// # Errors
    /// As there; `Invalid` for options.
    pub fn make(&self, image: impl AsRef<OsStr>, kind: &str, size: u64) -> VolResult<Vol> {
        let source = self.parsed(image.as_ref())?;
        let made = self.make_at(&source, kind, size);
        made.map_err(|e| VolError::new("make a volume on", &source, e))?;
        self.open_source(&source, false)
    }

    fn make_at(&self, source: &Source, kind: &str, size: u64) -> Result<()> {
        let Source::Image { path, partition } = source else {
            let words = "a volume is made on an image, a partition or a block device";
            return Err(Error::note(Kind::Invalid, words));
        };
        let is_there = path.symlink_metadata().is_ok();
        if is_there && !self.making.overwrites {
            let words = "already there; VolOptions::overwrite makes a volume over it";
            return Err(Error::note(Kind::Exists, words));
        }
        match (partition, fs::metadata(path)) {
            (None, Err(_)) => self.make_image(path, path, kind, size),
            (None, Ok(meta)) if meta.is_file() => self.replace_image(source, path, kind, size),
            _ => self.make_in_place(source, kind, size),
        }
    }

    /// Makes an image in the format that `name` asks for. Removes it again if the volume cannot be
    /// made.
    fn make_image(&self, path: &Path, name: &Path, kind: &str, size: u64) -> Result<()> {
        let format = self
            .making
            .format
            .map_or_else(|| ImageFormat::of(name), Ok)?;
        // Checks the kind first, before a file is made in vain.
        self.registry.kind_of(kind, size)?;
        format.make(path, size)?;
        let source = Source::Image {
            path: path.to_owned(),
            partition: None,
        };
        self.make_in_place(&source, kind, 0).inspect_err(|_| {
            // The file was made just now and holds nothing.
            let _ = fs::remove_file(path);
        })
    }

    /// Makes a new image beside the existing one, and renames it over that. Nobody may have the old
    /// image open.
    fn replace_image(&self, source: &Source, path: &Path, kind: &str, size: u64) -> Result<()> {
        let of_host = |e: std::io::Error| Error::note(Kind::Io, e.to_string());
        let opened = crate::open_source(source, false, (self.clock)());
        let in_use = opened.as_ref().is_err_and(|e| e.kind() == Kind::Busy);
        if in_use {
            return opened.map(drop);
        }
        let path = path.canonicalize().map_err(of_host)?;
        let spare = spare_beside(&path);
        self.make_image(&spare, &path, kind, size)?;
        let rights = fs::metadata(&path).map(|meta| meta.permissions());
        let replaced = rights
            .and_then(|rights| fs::set_permissions(&spare, rights))
            .and_then(|()| fs::rename(&spare, &path));
        replaced.map_err(|e| {
            let _ = fs::remove_file(&spare);
            of_host(e)
        })
    }

    /// Makes a volume over an existing image or device. `size` must be 0 or its size.
    fn make_in_place(&self, source: &Source, kind: &str, size: u64) -> Result<()> {
        let now = (self.clock)();
        let device = crate::open_source(source, false, now)?;
        let has = device.geometry().size;
        if size != 0 && size != has {
            let words = format!("has {has} bytes, not {size}; 0 takes it as it is");
            return Err(Error::note(Kind::Invalid, words));
        }
        let (format, kind) = self.registry.kind_of(kind, has)?;
        let seed = now.secs.unsigned_abs().wrapping_mul(1_000_000_007) ^ u64::from(now.nanos);
        let mut how = Make {
            label: self.making.label.clone(),
            now,
            seed: self.making.seed.unwrap_or(seed),
            options: self.making.options.clone(),
        };
        let owner = RootOwner {
            uid: self.uid,
            gid: self.gid,
            is_asked: false,
        };
        let owner = owner.tell(format, kind, &mut how.options)?;
        format.make(Arc::clone(&device), kind, &how)?;
        match owner {
            Some(owner) => owner.give(device, format, self.clock),
            None => Ok(()),
        }
    }
}

/// Returns an unused name beside `path`, from this process's id and a counter.
fn spare_beside(path: &Path) -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{number}.new", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spare_name_stands_beside() {
        let spare = spare_beside(Path::new("/a/disk.img"));
        assert_eq!(spare.parent(), Some(Path::new("/a")));
        let name = spare.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("disk.img."), "{name}");
        assert_ne!(spare, spare_beside(Path::new("/a/disk.img")));
    }
}
