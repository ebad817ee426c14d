//! From a [`Source`] to a device, and from a device to a file system. Every
//! way in which that can go wrong has a line that says what to do.

use crate::block::{OpenOptions, open_image, partition, partitions};
use crate::{Identity, Source, demo, identify};
use std::sync::Arc;
use volary_core::{
    Attach, BlockDevice, Error, Format, Fs, Kind, OptionSpec, Probe, Remote, Result, Time,
};
use volary_host::HostOptions;
use volary_nfs_client::{Location, NfsOptions};

/// Opens what holds a volume: an image (raw or qcow2), a block device, a
/// partition of either, or memory. `now` is the time of what is made in
/// memory. An image is locked while it is open: many may read it, or one may
/// change it.
///
/// # Errors
/// `NotFound`, `IsDir`, `Access`, `Unsupported` (neither file nor block
/// device; a directory of the host; empty), `Busy`; `NotFound` for a partition that is not
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
        Source::Memory { size: Some(size) } => demo::empty(*size, now),
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

/// Recognises the volume on a device and attaches it. The option `commit` is one of every
/// volume: for whoever shares it ([`Commit`](crate::Commit)), and for drivers that know it.
///
/// # Errors
/// As [`recognise`] and [`Format::attach`].
pub fn attach(dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
    let (format, _) = recognise(&*dev)?;
    format.attach(dev, &told(how, format.attach_options())?)
}

/// What a driver is told that has these options of its own. `sync` without a value is a commit
/// time of 0 where a driver has none of its own: a matter of who shares the volume.
///
/// # Errors
/// `Invalid` for a commit time that is none.
fn told(how: &Attach, own: &[OptionSpec]) -> Result<Attach> {
    let mut how = how.clone();
    how.options.seconds("commit")?;
    if !own.iter().any(|spec| spec.name == "commit") {
        how.options.take("commit");
    }
    if how.options.get("sync") == Some("") && !own.iter().any(|spec| spec.name == "sync") {
        how.options.take("sync");
    }
    Ok(how)
}

/// Opens a volume: what holds it as [`open_source`] does, and attaches what is
/// on it, over the one that the option `remote` names if it is given; or a directory of the host, for which this process may from now on
/// have as many descriptors as the host allows it; or an NFS export.
///
/// # Errors
/// As [`open_source`] and [`attach`]; of a directory, `NotFound`, `NotDir`,
/// `Access`, and `Invalid` for options; of an export, as
/// [`attach`](volary_nfs_client::attach) and [`with`](NfsOptions::with).
pub fn open_volume(source: &Source, how: &Attach, now: Time) -> Result<Fs> {
    let path = match source {
        Source::Host { path } => path,
        Source::Nfs(location) => return open_export(location, &told(how, &[])?),
        Source::Image { .. } | Source::Memory { .. } => {
            let dev = open_source(source, how.read_only, now)?;
            return match how.options.get("remote") {
                Some(name) => attach_over(dev, how, name, now),
                None => attach(dev, how),
            };
        }
    };
    told(how, &[])?.options.check_known(&[])?;
    volary_host::raise_descriptor_limit();
    let nodes_max = usize::try_from(how.memory / NODE_BYTES).unwrap_or(usize::MAX);
    let options = HostOptions {
        read_only: how.read_only,
        nodes_max,
        ..HostOptions::default()
    };
    volary_host::attach(path, &options)
}

/// Attaches a volume that keeps files of another one, which `remote` names. That is opened
/// for reading, in half of the memory.
fn attach_over(dev: Arc<dyn BlockDevice>, how: &Attach, remote: &str, now: Time) -> Result<Fs> {
    let (format, _) = recognise(&*dev)?;
    let source = Source::parse(remote.as_bytes())?;
    let mut how = told(how, format.attach_options())?;
    how.options.take("remote");
    how.memory /= 2;
    let other = Attach {
        read_only: true,
        memory: how.memory,
        ..Attach::default()
    };
    let remote = Remote::new(remote, move || open_volume(&source, &other, now));
    format.attach_over(dev, &how, remote)
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
