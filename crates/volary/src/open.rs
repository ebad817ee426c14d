//! From a [`Source`] to a device, and from a device to a file system. Every error has a line that
//! says what to do.

#[cfg(feature = "nfs-client")]
mod export;
#[cfg(feature = "host")]
mod host;

use crate::block::{OpenOptions, open_image, partition};
#[cfg(feature = "fat")]
use crate::demo::demo as small_volume;
use crate::opened::{Opened, told};
use crate::{Registry, Source};
#[cfg(feature = "host")]
pub use host::{HOST_OPTIONS, Raw};
use std::sync::Arc;
use volary_core::{Attach, BlockDevice, Caps, Error, Fs, Kind, Remote, Result, Time};
use volary_mem::{Mem, MemOptions};

/// Opens the device of a source: an image (raw or qcow2), a block device, a partition of either, or
/// memory. `now` is the time stamp for files in memory. An image is locked while it is open: many
/// may read it, or one may change it.
///
/// # Errors
/// `NotFound`, `IsDir`, `Access`; `Unsupported` for a node that is neither file nor block device,
/// for a source without a device (host directory, memory with a size, scheme), and for an empty
/// file; `Busy`; `NotFound` for a partition that does not exist; `Corrupt` for a damaged partition
/// table or qcow2 image; `Io`.
pub fn open_source(source: &Source, read_only: bool, now: Time) -> Result<Arc<dyn BlockDevice>> {
    match source {
        Source::Scheme { name, .. } => {
            let words = format!("a volume of {name}: is on no device");
            Err(Error::note(Kind::Unsupported, words))
        }
        Source::Host { .. } => {
            let words = "a directory of the host is no device";
            Err(Error::note(Kind::Unsupported, words))
        }
        #[cfg(feature = "nfs-client")]
        Source::Nfs(_) => {
            let words = "an NFS export is no device";
            Err(Error::note(Kind::Unsupported, words))
        }
        Source::Memory { size: None } => small_volume(now),
        Source::Memory { size: Some(_) } => {
            let words = "a volume in memory is no device";
            Err(Error::note(Kind::Unsupported, words))
        }
        Source::Image {
            path,
            partition: id,
        } => {
            let options = OpenOptions {
                read_only,
                ..OpenOptions::default()
            };
            let image = open_image(path, options)?;
            match id {
                None => Ok(image),
                Some(id) => {
                    let found = partition(&*image, id)?;
                    Ok(Arc::new(found.open(image)?))
                }
            }
        }
    }
}

#[cfg(not(feature = "fat"))]
fn small_volume(_: Time) -> Result<Arc<dyn BlockDevice>> {
    Err(crate::absent("the small volume in memory", "fat"))
}

impl Registry {
    /// Calls [`open_source`], which does not depend on the registry's formats.
    ///
    /// # Errors
    /// As there.
    pub fn open_source(
        &self,
        source: &Source,
        read_only: bool,
        now: Time,
    ) -> Result<Arc<dyn BlockDevice>> {
        open_source(source, read_only, now)
    }

    /// Finds the volume on a device, as [`find`](Self::find) does, and attaches it. Every volume
    /// has the option `commit`. It is for the sharing layer ([`Commit`](crate::Commit)), and for
    /// drivers that know it.
    ///
    /// # Errors
    /// As [`find`](Self::find) and [`Format::attach`](volary_core::Format::attach).
    pub fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Opened> {
        let found = self.find(dev, &how.options)?;
        let how = told(how, found.format.attach_options())?;
        Ok(Opened {
            fs: found.format.attach(found.device.clone(), &how)?,
            replica: found.replica,
            device: Some(found.device),
        })
    }

    /// Opens a volume. An image is opened as by [`open_source`], and its volume attached. The
    /// option `type` names its kind, and `remote` another volume that it caches. Also opens memory
    /// of a given size, a directory of the host, an NFS export, and the source of a
    /// [`Scheme`](crate::Scheme). For a directory, raises the process's limit on descriptors to the
    /// host's maximum.
    ///
    /// # Errors
    /// As [`open_source`] and [`attach`](Self::attach); for a directory, `NotFound`, `NotDir`,
    /// `Access`, and `Invalid` for options; for an export, those of the NFS client; for a scheme
    /// its own; `Unsupported` for a feature that was not built in, and for a scheme that this
    /// registry does not have.
    pub fn open_volume(&self, source: &Source, how: &Attach, now: Time) -> Result<Opened> {
        match source {
            Source::Scheme { name, rest } => match self.scheme(name) {
                Some(scheme) => scheme.open(rest, how, now),
                None => {
                    let words = format!("nothing here opens volumes of {name}:");
                    Err(Error::note(Kind::Unsupported, words))
                }
            },
            #[cfg(feature = "host")]
            Source::Host { path } => host::open_dir(path, how),
            #[cfg(not(feature = "host"))]
            Source::Host { .. } => Err(crate::absent("a directory of the host", "host")),
            #[cfg(feature = "nfs-client")]
            Source::Nfs(location) => Ok(export::open_export(location, how)?.into()),
            Source::Memory { size: Some(size) } => Ok(open_memory(*size, how, now)?.into()),
            Source::Image { .. } | Source::Memory { size: None } => {
                self.open_on(open_source(source, how.read_only, now)?, how, now)
            }
        }
    }

    /// Finds and attaches the volume on a device, as [`open_volume`](Self::open_volume) does. The
    /// option `remote` names another volume that it caches.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub fn open_on(&self, dev: Arc<dyn BlockDevice>, how: &Attach, now: Time) -> Result<Opened> {
        match how.options.get("remote") {
            Some(name) => self.attach_over(dev, how, name, now),
            None => self.attach(dev, how),
        }
    }

    /// Attaches a volume that caches files of `remote`, which is opened for reading. Each of the
    /// two gets half of the memory.
    fn attach_over(
        &self,
        dev: Arc<dyn BlockDevice>,
        how: &Attach,
        remote: &str,
        now: Time,
    ) -> Result<Opened> {
        let found = self.find(dev, &how.options)?;
        let source = self.source(remote.as_bytes())?;
        let mut how = told(how, found.format.attach_options())?;
        how.options.take("remote");
        how.memory /= 2;
        let other = Attach {
            read_only: true,
            memory: how.memory,
            ..Attach::default()
        };
        let registry = self.clone();
        let open = move || {
            registry
                .open_volume(&source, &other, now)
                .map(|opened| opened.fs)
        };
        let remote = Remote::new(remote, open);
        Ok(Opened {
            fs: found.format.attach_over(found.device, &how, remote)?,
            replica: found.replica,
            device: None,
        })
    }
}

/// Returns an empty volume in memory with every ability of the driver, owned by the attaching user.
fn open_memory(size: u64, how: &Attach, now: Time) -> Result<Fs> {
    told(how, &[])?.options.check_known(&[])?;
    let mut options = MemOptions {
        uid: how.uid,
        gid: how.gid,
        ..MemOptions::sized(size)
    };
    if how.read_only {
        options.caps = options.caps.without(Caps::WRITE);
    }
    Mem::attach(options, now)
}
