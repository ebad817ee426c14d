//! Finds the volume on a device: by its primary superblock or boot sector, by a replica of it, or
//! as the kind that the user names.

use crate::Identity;
use crate::block::{ByReplica, Skipping, partitions};
use crate::formats::Formats;
use std::fmt;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Format, Kind, Options, Replica, Result};

/// The option that names the kind of a volume, which is then not recognised automatically.
pub const TYPE_OPTION: &str = "type";

/// A volume that was found on a device.
pub struct Found {
    /// The format that reads it.
    pub format: &'static dyn Format,
    /// The device to attach. If [`replica`](Self::replica) is set, it shows the replica in the
    /// place of the primary structure, and takes no changes.
    pub device: Arc<dyn BlockDevice>,
    /// The replica to use, if the primary structure makes no sense.
    pub replica: Option<Replica>,
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Found");
        let out = out.field("format", &self.format.name());
        out.field("replica", &self.replica).finish_non_exhaustive()
    }
}

impl Formats {
    /// # Errors
    /// As [`Registry::find`](crate::Registry::find).
    pub(crate) fn find(&self, device: Arc<dyn BlockDevice>, options: &Options) -> Result<Found> {
        if let Some(kind) = options.get(TYPE_OPTION) {
            return found(self.of(kind)?, device, options);
        }
        let readable = Skipping::new(&*device);
        let identity = self.look(&readable)?;
        if let Identity::Volume(format, _) = identity {
            return found(format, device, options);
        }
        if may_be_damaged(&identity, &readable) {
            let mut formats = self.all().iter();
            if let Some(format) = formats.find(|f| names_replica(**f, options)) {
                return found(*format, device, options);
            }
            for format in self.all() {
                let replica = format.replica(&readable)?;
                if let Some(replica) = replica.filter(|replica| replica.is_confirmed) {
                    return Ok(by_replica(*format, device, replica));
                }
            }
        }
        if let Some(e) = readable.take_failure() {
            return Err(e);
        }
        Err(unknown(&self.opened(), &identity, &*device))
    }
}

/// Returns a volume of this format. Uses a replica if it needs one and the user named none.
fn found(
    format: &'static dyn Format,
    device: Arc<dyn BlockDevice>,
    options: &Options,
) -> Result<Found> {
    let replica = match names_replica(format, options) {
        true => None,
        false => format.replica(&Skipping::new(&*device))?,
    };
    Ok(match replica {
        Some(replica) => by_replica(format, device, replica),
        None => Found {
            format,
            device,
            replica: None,
        },
    })
}

fn by_replica(
    format: &'static dyn Format,
    device: Arc<dyn BlockDevice>,
    replica: Replica,
) -> Found {
    Found {
        format,
        device: Arc::new(ByReplica::new(device, &replica)),
        replica: Some(replica),
    }
}

fn names_replica(format: &dyn Format, options: &Options) -> bool {
    let option = format.replica_option();
    option.is_some_and(|name| options.get(name).is_some())
}

/// Returns whether the device may hold a volume whose primary superblock or boot sector is damaged.
/// A disklabel does not exclude that, as it precedes a volume at the start of the disk.
fn may_be_damaged(identity: &Identity, device: &dyn BlockDevice) -> bool {
    match identity {
        Identity::Blank(_) | Identity::Headless(_) | Identity::Unknown => true,
        Identity::Partitions(crate::identify::DISKLABEL) => {
            let all = partitions(device).unwrap_or_default();
            all.iter().any(|partition| partition.offset == 0)
        }
        _ => false,
    }
}

/// How many bytes of unknown content are shown.
const SHOWN: usize = 8;

/// Returns why there is no volume to open, and what to do.
fn unknown(opens: &str, identity: &Identity, device: &dyn BlockDevice) -> Error {
    let words = match identity {
        Identity::Partitions(words) => match partitions(device) {
            Ok(all) if !all.is_empty() => {
                let ids: Vec<String> = all.iter().map(|p| format!("IMAGE#{}", p.id)).collect();
                format!("{words}; name a partition: {}", ids.join(", "))
            }
            _ => format!("{words} without a partition; make one first"),
        },
        Identity::Blank(_) => {
            let zeros = identity.words();
            format!("no volume, {zeros}; make one with: volary mkfs IMAGE")
        }
        Identity::Headless(at) => format!(
            "no volume that is known: it begins with zeros, holds something at byte {at}, and no \
             replica of a superblock or boot sector was found; --type KIND opens it as one of: \
             {opens}"
        ),
        Identity::Unknown => {
            let begins = beginning(device);
            format!(
                "no volume that is known: it begins with {begins}, and no replica of a superblock \
                 or boot sector was found; --type KIND opens it as one of: {opens}"
            )
        }
        other => format!("{}; volary opens: {opens}", other.words()),
    };
    Error::note(Kind::Unsupported, words)
}

/// Returns the first bytes, in hexadecimal digits.
fn beginning(device: &dyn BlockDevice) -> String {
    let len = usize::try_from(device.geometry().size).unwrap_or(SHOWN);
    let mut bytes = vec![0; len.min(SHOWN)];
    if let Err(e) = device.read_at(0, &mut bytes) {
        return e.to_string();
    }
    let words: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    words.join(" ")
}
