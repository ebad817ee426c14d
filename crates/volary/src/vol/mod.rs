//! [`Vol`]: a volume accessed by paths, as programs use it.
//!
//! | module | what |
//! |---|---|
//! | `error`, `clock` | errors with their place; the system's clock |
//! | `options`, `outside`, `image` | options; the host as layers see it; formats of images |
//! | `held`, `handle` | the attached volume that clones of a [`Vol`] share; `Vol` itself |
//! | `opening`, `make`, `check` | opening, making and checking a volume |
//! | `list`, `file` | listings and walks; open files |
//! | `replace`, `tree`, `xattrs` | replacing content; removing trees; extended attributes |
//! | `copying`, `bulk`, `serving` | copying trees; reading trees in device order; servers |

#[cfg(feature = "bulk")]
mod bulk;
mod check;
mod clock;
#[cfg(feature = "copy")]
mod copying;
mod error;
mod file;
mod handle;
mod held;
mod image;
mod list;
mod make;
mod opening;
mod options;
#[cfg(feature = "layers")]
mod outside;
mod replace;
#[cfg(any(feature = "fuse", feature = "nfs", feature = "smb"))]
mod serving;
mod tree;
mod xattrs;

#[cfg(feature = "bulk")]
pub use bulk::{BulkFiles, BulkRead};
pub use check::Checked;
pub use error::{VolError, VolResult};
pub use file::{FileHow, VolFile};
pub use handle::Vol;
pub use image::ImageFormat;
pub use list::{VolEntry, Walk, Walked};
pub use options::VolOptions;
#[cfg(feature = "layers")]
pub use outside::passphrase_in;
#[cfg(any(feature = "fuse", feature = "nfs", feature = "smb"))]
pub use serving::{Serve, Served};
pub use xattrs::Xattrs;

use std::ffi::OsStr;
use std::sync::Arc;
use volary_core::{Attr, FileKind, Kind, RenameFlags, SetAttr, SetTime, StatFs, Time};
use volary_session::{Follow, Volume};

/// Opening and closing.
impl Vol {
    /// Opens a volume for reading. `source` is written as for [`Source`](crate::Source): an image
    /// file, a partition of one (`disk.img#2`), `mem:`, `host:DIR`, `nfs://HOST/EXPORT`.
    ///
    /// # Errors
    /// `NotFound`, `IsDir`, `Access`, `Busy` (another process changes it), `Unsupported` if it
    /// holds no known volume; `Corrupt`; `Io`.
    pub fn open(source: impl AsRef<OsStr>) -> VolResult<Self> {
        Self::options().open(source)
    }

    /// Opens a volume for changes.
    ///
    /// # Errors
    /// As [`open`](Self::open); `Busy` also while others read it; `ReadOnly` for a volume that can
    /// only be read.
    pub fn edit(source: impl AsRef<OsStr>) -> VolResult<Self> {
        Self::options().edit(source)
    }

    /// Makes an image of `size` bytes and a new volume on it, open for changes. `kind` is one that
    /// `volary formats` lists: `fat32`, `ffs2`, `cedar`. An existing file is not overwritten;
    /// [`VolOptions::overwrite`] allows that.
    ///
    /// # Errors
    /// `Exists`; `NotFound` for the image's directory; `Invalid` for an unknown kind, and for a
    /// size that the kind cannot have; `Access`; `Io`. After an error, no image is left behind.
    pub fn make(image: impl AsRef<OsStr>, kind: &str, size: u64) -> VolResult<Self> {
        Self::options().make(image, kind, size)
    }

    /// Returns the default options, to change some of them.
    pub fn options() -> VolOptions {
        VolOptions::default()
    }

    /// Checks a volume that nobody has open, and changes nothing.
    ///
    /// # Errors
    /// As [`open`](Self::open); `Corrupt` if too little is left to check.
    pub fn check(source: impl AsRef<OsStr>) -> VolResult<Checked> {
        Self::options().check(source, volary_core::CheckMode::Look)
    }

    /// Closes the volume: makes everything durable and marks it as cleanly detached. Other handles,
    /// files and servers on it answer `Stale` from now on.
    ///
    /// # Errors
    /// If changes could not be written; the volume is closed all the same.
    pub fn close(self) -> VolResult<()> {
        let detached = self.held.volume.detach();
        detached.map_err(|e| self.held.failed("close", e))
    }

    /// Makes all changes so far durable.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn sync(&self) -> VolResult<()> {
        let synced = self.held.volume.sync();
        synced.map_err(|e| self.held.failed("sync", e))
    }

    /// Returns how full the volume is.
    ///
    /// # Errors
    /// None of its own.
    pub fn space(&self) -> VolResult<StatFs> {
        let told = self.held.session.statfs();
        told.map_err(|e| self.held.failed("look at the space of", e))
    }

    /// Puts a layer over the volume, `NAME` or `NAME=ARGUMENT` as `volary layers` lists them:
    /// `casefold`, `subtree=/docs`. This must be the only handle on the volume.
    ///
    /// # Errors
    /// `Invalid` for an unknown or unsuitable layer; `Busy` if there are other handles. After an
    /// error, this handle is gone; the volume is closed with the last one.
    #[cfg(feature = "layers")]
    pub fn layer(self, spec: &str) -> VolResult<Self> {
        let held = Arc::try_unwrap(self.held).map_err(|held| {
            let words = "other handles use it without the layer";
            held.failed("layer", volary_core::Error::note(Kind::Busy, words))
        })?;
        held.layered(spec).map(Self::from)
    }

    /// Returns the attached volume, for sessions with other rights and for everything that this
    /// handle does not offer.
    pub fn volume(&self) -> &Arc<Volume> {
        &self.held.volume
    }
}

/// Files.
impl Vol {
    /// Returns the content of a file.
    ///
    /// # Errors
    /// `NotFound`, `IsDir`; `TooBig` if memory runs out; `Corrupt`; `Io`.
    pub fn read(&self, path: impl AsRef<[u8]>) -> VolResult<Vec<u8>> {
        let path = path.as_ref();
        self.held.at("read", path, || self.held.read_whole(path))
    }

    /// Reads at byte `offset`, and returns the number of bytes read: less than asked for only at
    /// the end of the file. To read much of one file, open it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_at(&self, path: impl AsRef<[u8]>, offset: u64, buf: &mut [u8]) -> VolResult<usize> {
        self.open_file(path, FileHow::READ)?.read_at(offset, buf)
    }

    /// Makes a file with `bytes` as its content, or replaces the content of an existing one. Until
    /// all is written, the old content stays, even after a failure or a power cut. The new content
    /// is written under another name, which is then renamed, so both need space at once. Mode,
    /// owner and extended attributes stay. A file with several names is written in place, so that
    /// all of them see the change.
    ///
    /// # Errors
    /// `NotFound` for its directory; `IsDir`, `ReadOnly`, `NoSpace`, `Io`.
    pub fn write(&self, path: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> VolResult<()> {
        let path = path.as_ref();
        self.held.at("write", path, || {
            replace::write(&self.held, path, bytes.as_ref())
        })
    }

    /// Appends `bytes` to a file, which is made if it does not exist.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn append(&self, path: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> VolResult<()> {
        let mut file = self.open_file(path, FileHow::APPEND)?;
        file.put(bytes.as_ref())?;
        file.close()
    }

    /// Opens a file: `vol.open_file("/a", FileHow::READ)`.
    ///
    /// # Errors
    /// `NotFound` for [`FileHow::READ`] and [`FileHow::UPDATE`]; `Exists` for [`FileHow::NEW`];
    /// `IsDir`; `ReadOnly`.
    pub fn open_file(&self, path: impl AsRef<[u8]>, how: FileHow) -> VolResult<VolFile> {
        VolFile::open(&self.held, path.as_ref(), how)
    }
}

/// Names.
impl Vol {
    /// Returns the attributes of a file or directory; follows symlinks.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn metadata(&self, path: impl AsRef<[u8]>) -> VolResult<Attr> {
        self.held.look(path.as_ref(), Follow::Yes)
    }

    /// Returns the attributes of a file, directory, or symlink itself.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn symlink_metadata(&self, path: impl AsRef<[u8]>) -> VolResult<Attr> {
        self.held.look(path.as_ref(), Follow::No)
    }

    /// Returns whether a path exists. A symlink that leads nowhere does not.
    ///
    /// # Errors
    /// If it cannot be determined.
    pub fn exists(&self, path: impl AsRef<[u8]>) -> VolResult<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(e) if matches!(e.kind(), Kind::NotFound | Kind::NotDir) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Returns the entries of a directory, without `.` and `..`, in the order in which they are
    /// stored. On most formats this order means nothing; sort the entries if order matters.
    ///
    /// # Errors
    /// `NotFound`, `NotDir`; `TooBig` for more than some two million entries; `Corrupt`; `Io`.
    pub fn list(&self, path: impl AsRef<[u8]>) -> VolResult<Vec<VolEntry>> {
        let path = path.as_ref();
        self.held.at("list", path, || list::list(&self.held, path))
    }

    /// Returns everything below a directory, each directory before its entries, in the order in
    /// which they are stored. `path` itself is not included. Symlinks are not followed. A directory
    /// that cannot be read gives an error in its place, and the walk goes on.
    pub fn walk(&self, path: impl AsRef<[u8]>) -> Walk {
        Walk::new(Arc::clone(&self.held), path.as_ref())
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// `NotFound` for the parent directory; `Exists`; `ReadOnly`, `NoSpace`.
    pub fn mkdir(&self, path: impl AsRef<[u8]>) -> VolResult<()> {
        let path = path.as_ref();
        self.held.at("make directory", path, || {
            let (dir, name) = self.held.parent(path)?;
            let set = self.held.new_dir();
            self.held.session.mkdir(dir, &name, &set).map(drop)
        })
    }

    /// Makes a directory, and missing ones above it.
    ///
    /// # Errors
    /// `NotDir` for a file on the way; `ReadOnly`, `NoSpace`. Directories that were made before the
    /// error stay.
    pub fn mkdir_all(&self, path: impl AsRef<[u8]>) -> VolResult<()> {
        let path = path.as_ref();
        self.held
            .at("make directory", path, || tree::make_all(&self.held, path))
    }

    /// Removes a file, a symlink or an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `NotEmpty`, `ReadOnly`.
    pub fn remove(&self, path: impl AsRef<[u8]>) -> VolResult<()> {
        let path = path.as_ref();
        self.held
            .at("remove", path, || tree::remove(&self.held, path))
    }

    /// Removes a file, or a directory with everything below it. Symlinks are removed, not followed.
    ///
    /// # Errors
    /// `NotFound`, `ReadOnly`; stops at the first node that cannot be removed. What was removed
    /// before is gone.
    pub fn remove_all(&self, path: impl AsRef<[u8]>) -> VolResult<()> {
        tree::remove_all(&self.held, path.as_ref())
    }

    /// Moves a file or directory to another path, and replaces an existing file or empty directory
    /// there.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a directory that would go into itself; `IsDir`, `NotDir`,
    /// `NotEmpty` for the node that would be replaced; `ReadOnly`.
    pub fn rename(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> VolResult<()> {
        let from = from.as_ref();
        self.held.at("rename", from, || {
            let (dir, name) = self.held.parent(from)?;
            let (new_dir, new_name) = self.held.parent(to.as_ref())?;
            let session = &self.held.session;
            session.rename(dir, &name, new_dir, &new_name, RenameFlags::REPLACE)
        })
    }

    /// Makes a symlink to `target`, which need not exist, at `path`.
    ///
    /// # Errors
    /// `Exists`; `Unsupported` if the volume has no symlinks; `ReadOnly`.
    pub fn symlink(&self, target: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> VolResult<()> {
        let path = path.as_ref();
        self.held.at("make symlink", path, || {
            let (dir, name) = self.held.parent(path)?;
            let (session, set) = (&self.held.session, self.held.new_symlink());
            let made = session.symlink(dir, &name, target.as_ref(), &set);
            made.map(drop)
        })
    }

    /// Gives a file one more name.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `NotPermitted` for a directory; `Unsupported` if the volume has no
    /// hard links.
    pub fn hard_link(&self, file: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> VolResult<()> {
        let path = path.as_ref();
        self.held.at("link", path, || {
            let node = self.held.walk(file.as_ref(), Follow::No)?.node;
            let (dir, name) = self.held.parent(path)?;
            self.held.session.link(node, dir, &name).map(drop)
        })
    }

    /// Returns a symlink's target.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if the path is not a symlink.
    pub fn read_link(&self, path: impl AsRef<[u8]>) -> VolResult<Vec<u8>> {
        let path = path.as_ref();
        self.held.at("read symlink", path, || {
            let found = self.held.walk(path, Follow::No)?;
            match found.attr.kind {
                FileKind::Symlink => self.held.session.readlink(found.node),
                _ => Err(Kind::Invalid.into()),
            }
        })
    }
}

/// Attributes.
impl Vol {
    /// Changes attributes, all of them or none.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` for attributes that the volume cannot keep; `ReadOnly`.
    pub fn set_attr(&self, path: impl AsRef<[u8]>, set: &SetAttr) -> VolResult<()> {
        let path = path.as_ref();
        self.held.at("change", path, || {
            let node = self.held.walk(path, Follow::Yes)?.node;
            self.held.session.setattr(node, set).map(drop)
        })
    }

    /// Sets the permission bits: `0o644`.
    ///
    /// # Errors
    /// As [`set_attr`](Self::set_attr).
    pub fn set_mode(&self, path: impl AsRef<[u8]>, mode: u32) -> VolResult<()> {
        self.set_attr(path, &SetAttr::mode(mode))
    }

    /// Sets owner and group.
    ///
    /// # Errors
    /// As [`set_attr`](Self::set_attr).
    pub fn set_owner(&self, path: impl AsRef<[u8]>, uid: u32, gid: u32) -> VolResult<()> {
        let set = SetAttr {
            uid: Some(uid),
            gid: Some(gid),
            ..SetAttr::default()
        };
        self.set_attr(path, &set)
    }

    /// Sets the times of the last access and the last change, rounded down to the resolution of the
    /// format.
    ///
    /// # Errors
    /// As [`set_attr`](Self::set_attr).
    pub fn set_times(
        &self,
        path: impl AsRef<[u8]>,
        accessed: Time,
        changed: Time,
    ) -> VolResult<()> {
        let set = SetAttr {
            atime: Some(SetTime::To(accessed)),
            mtime: Some(SetTime::To(changed)),
            ..SetAttr::default()
        };
        self.set_attr(path, &set)
    }

    /// Returns the extended attributes of a file or directory; follows symlinks.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` if the volume has none.
    pub fn xattrs(&self, path: impl AsRef<[u8]>) -> VolResult<Xattrs> {
        Xattrs::of(&self.held, path.as_ref())
    }
}

/// Copying, serving and bulk reads.
impl Vol {
    /// Copies a file or a tree of the host into the volume: into `to` if that is a directory, else
    /// to the path `to`. A path that ends with `/.` means all entries of a directory. Modes and
    /// times are kept as far as the volume can. The volume's user owns the copies. Symlinks are
    /// copied as symlinks.
    ///
    /// # Errors
    /// The first failure. Everything else is copied, unless the volume is full or read-only. For
    /// other ways to copy, and to see each failure, use [`copy_place`](Self::copy_place).
    #[cfg(feature = "copy")]
    pub fn copy_in(
        &self,
        from: impl AsRef<std::path::Path>,
        to: impl AsRef<[u8]>,
    ) -> VolResult<volary_copy::Summary> {
        copying::copy_in(&self.held, from.as_ref(), to.as_ref())
    }

    /// Copies a file or a tree of the volume to the host in the same way. Whatever names the volume
    /// has, nothing is written outside of `to`.
    ///
    /// # Errors
    /// As [`copy_in`](Self::copy_in); also for a damaged file, which is copied with zeros for
    /// unreadable parts.
    #[cfg(feature = "copy")]
    pub fn copy_out(
        &self,
        from: impl AsRef<[u8]>,
        to: impl AsRef<std::path::Path>,
    ) -> VolResult<volary_copy::Summary> {
        copying::copy_out(&self.held, from.as_ref(), to.as_ref())
    }

    /// Returns a place in the volume, as a source or target for
    /// [`copy::Copies`](volary_copy::Copies). These can copy between volumes, keep owners, and
    /// report to an observer.
    #[cfg(feature = "copy")]
    pub fn copy_place(&self, path: impl AsRef<[u8]>) -> volary_copy::VolumePlace {
        copying::place(&self.held, path.as_ref())
    }

    /// Begins to serve the volume: `vol.serve().nfs(address)?`.
    #[cfg(any(feature = "fuse", feature = "nfs", feature = "smb"))]
    pub fn serve(&self) -> Serve {
        Serve::new(Arc::clone(&self.held))
    }

    /// Mounts the volume on a directory of this host, by FUSE, until the result is dropped.
    ///
    /// # Errors
    /// As [`Serve::mount`].
    #[cfg(feature = "fuse")]
    pub fn mount(&self, dir: impl AsRef<std::path::Path>) -> VolResult<Served> {
        self.serve().mount(dir)
    }

    /// Reads all files below some paths whole, in device order:
    /// `for file in vol.bulk(["/"]).files()?`.
    #[cfg(feature = "bulk")]
    pub fn bulk<P: AsRef<[u8]>>(&self, paths: impl IntoIterator<Item = P>) -> BulkRead {
        BulkRead::new(Arc::clone(&self.held), paths)
    }
}
