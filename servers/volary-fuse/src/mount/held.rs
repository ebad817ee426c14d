//! [`Held`]: a mount point held by descriptors. The owner of a directory above it may replace it by
//! a symlink at any time. By descriptors, the directory that was checked is still the one that is
//! mounted and unmounted.

use rustix::fs::{Mode, OFlags, fstat, open, openat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A mount point, and the directory that it is in.
#[derive(Debug)]
pub(crate) struct Held {
    parent: OwnedFd,
    name: OsString,
    /// The directory below the mount. `None` for a directory that a dead mount covers.
    below: Option<OwnedFd>,
}

impl Held {
    /// Opens the directory at `path`, which is absolute and has no symlinks.
    ///
    /// # Errors
    /// Those of the host; `NotADirectory` if a part of the path has become a symlink.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let held = Self::open_parent(path)?;
        let below = openat(&held.parent, &held.name, DIRECTORY, Mode::empty())?;
        Ok(Self {
            below: Some(below),
            ..held
        })
    }

    /// Opens the parent directory of `path`, but not `path` itself.
    ///
    /// # Errors
    /// As [`open`](Self::open); `InvalidInput` for the root directory.
    pub(crate) fn open_parent(path: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut dir = open("/", DIRECTORY, Mode::empty())?;
        for part in names(parent) {
            dir = openat(&dir, part, DIRECTORY, Mode::empty())?;
        }
        Ok(Self {
            parent: dir,
            name: name.to_owned(),
            below: None,
        })
    }

    /// Returns a path to the directory below the mount, even if its name leads elsewhere by now.
    pub(crate) fn below(&self) -> Option<PathBuf> {
        self.below.as_ref().map(by_descriptor)
    }

    /// Returns a path to what is mounted here. Its last component must not be followed if it is a
    /// symlink.
    pub(crate) fn mounted(&self) -> PathBuf {
        by_descriptor(&self.parent).join(&self.name)
    }

    /// Returns the mode of the directory below the mount, with its type.
    ///
    /// # Errors
    /// Those of the host; `NotFound` for a dead mount.
    pub(crate) fn mode(&self) -> io::Result<u32> {
        let below = self.below.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(fstat(below)?.st_mode)
    }
}

fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    })
}

fn by_descriptor(fd: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_takes_the_place_of_a_part_leads_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for place in ["theirs/mnt", "other/mnt"] {
            fs::create_dir_all(top.join(place)).unwrap();
        }
        fs::write(top.join("theirs/mnt/mine"), "").unwrap();
        fs::write(top.join("other/mnt/secret"), "").unwrap();
        let held = Held::open(&top.join("theirs/mnt")).unwrap();
        let below = held.below().unwrap();
        fs::rename(top.join("theirs"), top.join("moved")).unwrap();
        symlink(top.join("other"), top.join("theirs")).unwrap();
        for path in [&below, &held.mounted()] {
            assert!(path.join("mine").exists(), "{}", path.display());
        }
        assert_eq!(held.mode().unwrap() & 0o170_000, 0o040_000);
        // A later open refuses the symlink.
        let refused = Held::open(&top.join("theirs/mnt")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotADirectory);
        fs::remove_dir_all(top.join("moved/mnt")).unwrap();
        symlink(top.join("other/mnt"), top.join("moved/mnt")).unwrap();
        assert!(Held::open(&top.join("moved/mnt")).is_err());
        assert!(below.read_dir().unwrap().next().is_none());
    }

    #[test]
    fn the_root_directory_has_no_parent() {
        let refused = Held::open(Path::new("/")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
