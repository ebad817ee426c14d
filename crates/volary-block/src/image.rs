//! Opens images of all kinds.

use crate::magic::{HEADER_LEN, MAGIC};
use crate::{FileDevice, OpenOptions};
use std::path::Path;
use std::sync::Arc;
use volary_core::{BlockDevice, Result};

/// Opens an image. A qcow2 image shows its content, and any other file or block device its own
/// bytes.
///
/// # Errors
/// Those of [`FileDevice::open`]; for a qcow2 image, those of `Qcow2::open`, or `Unsupported`
/// without the feature `qcow2`.
pub fn open_image(path: impl AsRef<Path>, options: OpenOptions) -> Result<Arc<dyn BlockDevice>> {
    let path = path.as_ref();
    let device = FileDevice::open(path, options)?;
    if !is_qcow2(&device) {
        return Ok(Arc::new(device));
    }
    drop(device);
    open_qcow2(path, options)
}

fn is_qcow2(device: &FileDevice) -> bool {
    let mut magic = [0; MAGIC.len()];
    let size = device.geometry().size;
    size >= HEADER_LEN as u64 && device.read_at(0, &mut magic).is_ok() && magic == MAGIC
}

#[cfg(feature = "qcow2")]
fn open_qcow2(path: &Path, options: OpenOptions) -> Result<Arc<dyn BlockDevice>> {
    Ok(Arc::new(crate::Qcow2::open(path, options)?))
}

#[cfg(not(feature = "qcow2"))]
fn open_qcow2(_: &Path, _: OpenOptions) -> Result<Arc<dyn BlockDevice>> {
    Err(volary_core::Error::note(
        volary_core::Kind::Unsupported,
        "a qcow2 image needs volary's feature qcow2, which this program was built without",
    ))
}
