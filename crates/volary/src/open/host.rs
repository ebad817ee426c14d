//! Directories of the host as volumes.

use crate::block::{FileDevice, OpenOptions};
use crate::opened::{Opened, told};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use volary_core::{Attach, BlockDevice, Error, Kind, OptionSpec, Result};
use volary_host::HostOptions;

/// Approximate memory for a node of a host directory, in bytes.
const NODE_BYTES: u64 = 256;

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

/// Whether files of a host directory are read from the block device below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Raw {
    /// Reads go through the file system.
    #[default]
    Never,
    /// The device is opened if possible; the program that reads decides whether to use it.
    Auto,
    /// Reads go to the device. If it cannot be opened, opening the volume fails.
    Always,
}

impl Raw {
    /// Each value with its word.
    pub const WORDS: [(&str, Self); 3] = [
        ("never", Self::Never),
        ("auto", Self::Auto),
        ("always", Self::Always),
    ];
}

/// Attaches a directory of the host. Raises the process's limit on descriptors to the host's
/// maximum.
///
/// # Errors
/// `Invalid` for options; as [`device_below`] and [`volary_host::attach`].
pub(super) fn open_dir(path: &Path, how: &Attach) -> Result<Opened> {
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

/// Returns the block device below a directory of the host, bypassing the page cache, if it is
/// wanted and can be read.
///
/// # Errors
/// Only for [`Raw::Always`]: `Unsupported` if the host does not tell where files lie on the device,
/// or reads it through the page cache only; as [`FileDevice::open`].
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
