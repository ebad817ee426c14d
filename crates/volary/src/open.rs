//! From a [`Source`] to a device, and from a device to a file system. Every
//! way in which that can go wrong has a line that says what to do.

use crate::block::{FileDevice, OpenOptions, open_image, partition};
use crate::find::{TYPE_OPTION, find};
use crate::{Source, demo};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use volary_core::{
    Attach, BlockDevice, Caps, Error, Fs, Kind, OptionSpec, Remote, Replica, Result, Time,
};
use volary_host::HostOptions;
use volary_mem::{Mem, MemOptions};
use volary_nfs_client::{Location, NfsOptions};

/// Opens what holds a volume: an image (raw or qcow2), a block device, a
/// partition of either, or memory. `now` is the time of what is made in
/// memory. An image is locked while it is open: many may read it, or one may
/// change it.
///
/// # Errors
/// `NotFound`, `IsDir`, `Access`, `Unsupported` (neither file nor block
/// device; a directory of the host; memory of a size; empty), `Busy`; `NotFound` for a partition that is not
/// there; `Corrupt` for a partition table or qcow2 that is wrong; `Io`.
pub fn open_source(source: &Source, read_only: bool, now: Time) -> Result<Arc<dyn BlockDevice>> {
    match source {
        Source::Host { .. } => {
            let words = "a directory of the host is no device";
            Err(Error::note(Kind::Unsupported, words))
        }
        Source::Nfs(_) => {
            let words = "an NFS export is no device";
            Err(Error::note(Kind::Unsupported, words))
        }
        Source::Memory { size: None } => demo::demo(now),
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

/// A volume that was opened.
pub struct Opened {
    /// The file system.
    pub fs: Fs,
    /// The replica that it is read by, since its first superblock or boot sector makes no sense:
    /// it takes no changes.
    pub replica: Option<Replica>,
    /// The device that it is on, which its extents name places of. None of a volume without, and of
    /// one that keeps files of another.
    pub device: Option<Arc<dyn BlockDevice>>,
}

impl From<Fs> for Opened {
    fn from(fs: Fs) -> Self {
        Self {
            fs,
            replica: None,
            device: None,
        }
    }
}

/// Finds the volume on a device, as [`find`] does, and attaches it. The option `commit` is one of every
/// volume: for whoever shares it ([`Commit`](crate::Commit)), and for drivers that know it.
///
/// # Errors
/// As [`find`] and [`Format::attach`](volary_core::Format::attach).
pub fn attach(dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Opened> {
    let found = find(dev, &how.options)?;
    let how = told(how, found.format.attach_options())?;
    Ok(Opened {
        fs: found.format.attach(found.device.clone(), &how)?,
        replica: found.replica,
        device: Some(found.device),
    })
}

/// What a driver is told that has these options of its own. `type` was for [`find`]. `sync` without a value is a commit
/// time of 0 where a driver has none of its own: a matter of who shares the volume.
///
/// # Errors
/// `Invalid` for a commit time that is none.
fn told(how: &Attach, own: &[OptionSpec]) -> Result<Attach> {
    let mut how = how.clone();
    how.options.take(TYPE_OPTION);
    how.options.seconds("commit")?;
    if !own.iter().any(|spec| spec.name == "commit") {
        how.options.take("commit");
    }
    if how.options.get("sync") == Some("") && !own.iter().any(|spec| spec.name == "sync") {
        how.options.take("sync");
    }
    Ok(how)
}

/// The options of a directory of the host.
pub const HOST_OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "suid",
        value: "",
        help: "let clients set the set-uid and set-gid bits of files (default: they are taken away)",
    },
    OptionSpec {
        name: "raw",
        value: "WHEN",
        help: "for bulk reads: from the block device below the directory; never, always, or auto: where it may be \
               read and moves an arm (the default)",
    },
];

/// Whether files of a directory of the host are read from the block device below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Raw {
    /// Reads go through the file system.
    #[default]
    Never,
    /// The device is opened if possible; the reader of files decides.
    Auto,
    /// Reads go to the device, or opening fails.
    Always,
}

impl Raw {
    /// Each with its word.
    pub const WORDS: [(&str, Self); 3] = [
        ("never", Self::Never),
        ("auto", Self::Auto),
        ("always", Self::Always),
    ];
}

/// Opens a volume: what holds it as [`open_source`] does, and attaches what is
/// on it, as what the option `type` says if it is given, over the one that the option `remote`
/// names if it is given; a volume in memory of a size,
/// without a device; a directory of the host, for which this process may from now on
/// have as many descriptors as the host allows it; or an NFS export.
///
/// # Errors
/// As [`open_source`] and [`attach`]; of a directory, `NotFound`, `NotDir`,
/// `Access`, and `Invalid` for options; of an export, as
/// [`attach`](volary_nfs_client::attach) and [`with`](NfsOptions::with).
pub fn open_volume(source: &Source, how: &Attach, now: Time) -> Result<Opened> {
    let path = match source {
        Source::Host { path } => path,
        Source::Nfs(location) => return Ok(open_export(location, &told(how, &[])?)?.into()),
        Source::Memory { size: Some(size) } => return Ok(open_memory(*size, how, now)?.into()),
        Source::Image { .. } | Source::Memory { size: None } => {
            return open_on(open_source(source, how.read_only, now)?, how, now);
        }
    };
    let given = told(how, HOST_OPTIONS)?.options;
    given.check_known(HOST_OPTIONS)?;
    volary_host::raise_descriptor_limit();
    let nodes_max = usize::try_from(how.memory / NODE_BYTES).unwrap_or(usize::MAX);
    let device = device_below(path, given.choice("raw", &Raw::WORDS)?.unwrap_or_default())?;
    let options = HostOptions {
        read_only: how.read_only,
        set_ids: given.flag("suid", false)?,
        nodes_max,
        places: device.is_some(),
        ..HostOptions::default()
    };
    Ok(Opened {
        device,
        ..volary_host::attach(path, &options)?.into()
    })
}

/// Returns the device below a directory of the host, past the page cache, if it is wanted and can be read.
///
/// # Errors
/// Where it must be read: `Unsupported` if the host tells no places on it, or reads it through the page cache
/// only; as [`FileDevice::open`].
fn device_below(dir: &Path, raw: Raw) -> Result<Option<Arc<dyn BlockDevice>>> {
    let options = OpenOptions {
        read_only: true,
        direct: true,
        unlocked: true,
    };
    let open = || {
        let words = "the host does not tell where on a block device its files lie";
        let path = volary_host::device(dir).ok_or_else(|| Error::note(Kind::Unsupported, words))?;
        let device = FileDevice::open(&path, options).map_err(|e| {
            let shown = volary_core::escape(path.as_os_str().as_bytes());
            Error::note(e.kind(), format!("the block device {shown}: {e}"))
        })?;
        match device.is_direct() {
            true => Ok(Arc::new(device)),
            false => {
                let words = "the block device below is not to be read past the page cache";
                Err(Error::note(Kind::Unsupported, words))
            }
        }
    };
    match raw {
        Raw::Never => Ok(None),
        Raw::Auto => Ok(open().ok().map(|device| device as _)),
        Raw::Always => Ok(Some(open()?)),
    }
}

/// Finds and attaches the volume on a device as [`open_volume`] does, over the one that the option `remote` names if it
/// is given.
///
/// # Errors
/// As [`attach`].
pub fn open_on(dev: Arc<dyn BlockDevice>, how: &Attach, now: Time) -> Result<Opened> {
    match how.options.get("remote") {
        Some(name) => attach_over(dev, how, name, now),
        None => attach(dev, how),
    }
}

/// Attaches a volume that keeps files of another one, which `remote` names. That is opened
/// for reading, in half of the memory.
fn attach_over(dev: Arc<dyn BlockDevice>, how: &Attach, remote: &str, now: Time) -> Result<Opened> {
    let found = find(dev, &how.options)?;
    let source = Source::parse(remote.as_bytes())?;
    let mut how = told(how, found.format.attach_options())?;
    how.options.take("remote");
    how.memory /= 2;
    let other = Attach {
        read_only: true,
        memory: how.memory,
        ..Attach::default()
    };
    let open = move || open_volume(&source, &other, now).map(|opened| opened.fs);
    let remote = Remote::new(remote, open);
    Ok(Opened {
        fs: found.format.attach_over(found.device, &how, remote)?,
        replica: found.replica,
        device: None,
    })
}

/// An empty volume with every ability that the driver has, owned by who attaches it.
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

fn open_export(location: &Location, how: &Attach) -> Result<Fs> {
    let options = NfsOptions {
        read_only: how.read_only,
        memory: how.memory,
        ..NfsOptions::default()
    };
    volary_nfs_client::attach(location, &options.with(location, &how.options)?)
}

/// About what a node of a directory of the host takes in memory, in bytes.
const NODE_BYTES: u64 = 256;
