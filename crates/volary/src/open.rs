//! From a [`Source`] to a device, and from a device to a file system. Every
//! way in which that can go wrong has a line that says what to do.

use crate::block::{FileDevice, OpenOptions, partition, partitions};
use crate::{Identity, Source, demo, identify};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use volary_core::{
    Attach, BlockDevice, Error, Format, Fs, Geometry, Kind, Probe, Read, Result, Time,
};

/// Opens what holds a volume: an image (raw or qcow2), a block device, a
/// partition of either, or memory. `now` is the time of what is made in
/// memory. An image is locked while it is open: many may read it, or one may
/// change it.
///
/// # Errors
/// `NotFound`, `IsDir`, `Access`, `Unsupported` (neither file nor block
/// device), `Invalid` (empty), `Busy`; `NotFound` for a partition that is not
/// there; `Corrupt` for a partition table or qcow2 that is wrong; `Io`.
pub fn open_source(source: &Source, read_only: bool, now: Time) -> Result<Arc<dyn BlockDevice>> {
    match source {
        Source::Memory { size: None } => demo::demo(now),
        Source::Memory { size: Some(size) } => demo::empty(*size, now),
        Source::Image {
            path,
            partition: id,
        } => {
            let image = open_image(path, read_only)?;
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

/// An image as a device, whatever its container.
fn open_image(path: &Path, read_only: bool) -> Result<Arc<dyn BlockDevice>> {
    let lock = lock(path, read_only)?;
    let options = OpenOptions {
        read_only,
        ..OpenOptions::default()
    };
    let file: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(path, options)?);
    if file.geometry().size == 0 {
        let words = "empty; make a volume on it with: volary mkfs --size 64M IMAGE";
        return Err(Error::note(Kind::Invalid, words));
    }
    Ok(Arc::new(Locked {
        dev: file,
        _lock: lock,
    }))
}

/// Opens and locks the file, so that two programs do not change one image at
/// the same time.
fn lock(path: &Path, read_only: bool) -> Result<OwnedFd> {
    let access = if read_only {
        OFlags::RDONLY
    } else {
        OFlags::RDWR
    };
    let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| refused(e, read_only))?;
    let stat = rustix::fs::fstat(&file).map_err(|e| refused(e, read_only))?;
    match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::RegularFile | rustix::fs::FileType::BlockDevice => {}
        rustix::fs::FileType::Directory => return Err(refused(Errno::ISDIR, read_only)),
        _ => {
            let words = "neither a file nor a block device; name an image";
            return Err(Error::note(Kind::Unsupported, words));
        }
    }
    let how = if read_only {
        FlockOperation::NonBlockingLockShared
    } else {
        FlockOperation::NonBlockingLockExclusive
    };
    match rustix::fs::flock(&file, how) {
        // A file system without locks is no reason to refuse.
        Ok(()) | Err(Errno::NOLCK | Errno::NOTSUP | Errno::NOSYS | Errno::INVAL) => Ok(file),
        Err(_) => {
            let words = "in use by another volary; wait for it, or unmount it";
            Err(Error::note(Kind::Busy, words))
        }
    }
}

/// Why a file cannot be opened, and what to do.
fn refused(e: Errno, read_only: bool) -> Error {
    let (kind, words) = match e {
        Errno::NOENT => (
            Kind::NotFound,
            "no such image; make one with: volary mkfs --size 64M IMAGE".to_string(),
        ),
        Errno::NOTDIR => (
            Kind::NotFound,
            "no such image; a part of its path is a file".into(),
        ),
        Errno::ISDIR => (
            Kind::IsDir,
            "is a directory; name an image or a block device".into(),
        ),
        Errno::ACCESS | Errno::PERM if read_only => (
            Kind::Access,
            "no permission to read it; see ls -l, or use sudo".into(),
        ),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => (
            Kind::Access,
            "no permission to write it; see ls -l, or use sudo".into(),
        ),
        Errno::TXTBSY | Errno::BUSY => (Kind::Busy, "in use; unmount it first".into()),
        e => (Kind::Io, std::io::Error::from(e).to_string()),
    };
    Error::note(kind, words)
}

/// A device, and the lock on what it is in.
struct Locked<D> {
    dev: D,
    _lock: OwnedFd,
}

impl<D: BlockDevice> BlockDevice for Locked<D> {
    fn geometry(&self) -> Geometry {
        self.dev.geometry()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.dev.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.dev.write_at(offset, data)
    }
    fn write_gather(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        self.dev.write_gather(offset, parts)
    }
    fn flush(&self) -> Result<()> {
        self.dev.flush()
    }
    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.dev.discard(offset, len)
    }
    fn read_batch(&self, reads: &mut [Read<'_>]) {
        self.dev.read_batch(reads);
    }
}

/// The format of what is on the device.
///
/// # Errors
/// `Unsupported`, naming what is there instead and what to do; `Io`.
pub fn recognise(dev: &dyn BlockDevice) -> Result<(&'static dyn Format, Probe)> {
    let words = match identify(dev)? {
        Identity::Volume(format, probe) => return Ok((format, probe)),
        Identity::Partitions(words) => match partitions(dev) {
            Ok(all) if !all.is_empty() => {
                let ids: Vec<String> = all.iter().map(|p| format!("IMAGE#{}", p.id)).collect();
                format!("{words}; name a partition: {}", ids.join(", "))
            }
            _ => format!("{words} without a partition; make one first"),
        },
        Identity::Foreign(words) => format!("{words}; volary opens: {}", names()),
        Identity::Blank => {
            "no volume, nothing but zeros; make one with: volary mkfs IMAGE".to_string()
        }
        Identity::Unknown => format!("no volume that is known; volary opens: {}", names()),
    };
    Err(Error::note(Kind::Unsupported, words))
}

/// The kinds of volume, for people.
fn names() -> String {
    let kinds: Vec<&str> = crate::formats()
        .iter()
        .flat_map(|f| f.kinds())
        .copied()
        .collect();
    kinds.join(", ")
}

/// Recognises the volume on a device and attaches it.
///
/// # Errors
/// As [`recognise`] and [`Format::attach`].
pub fn attach(dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
    let (format, _) = recognise(&*dev)?;
    format.attach(dev, how)
}

/// The kind that a volume of `size` bytes is made as unless the user says
/// otherwise: what other systems take for disks of that size.
pub fn default_kind(size: u64) -> &'static str {
    const MIB: u64 = 1 << 20;
    match size {
        0..=0x3f_ffff => "fat12",
        n if n < 512 * MIB => "fat16",
        _ => "fat32",
    }
}

/// The format that makes volumes of this kind.
///
/// # Errors
/// `Invalid`, naming the kinds that there are.
pub fn format_of(kind: &str) -> Result<&'static dyn Format> {
    let found = crate::formats()
        .iter()
        .find(|f| f.kinds().contains(&kind) || f.name() == kind);
    let words = || format!("unknown kind '{kind}'; there are: {}", names());
    found
        .copied()
        .ok_or_else(|| Error::note(Kind::Invalid, words()))
}
