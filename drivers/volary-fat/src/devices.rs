//! Device nodes: a small file that says which device, so that nothing is lost
//! where the extension is.

use crate::ondisk::DirEntry;
use crate::paper::Extension;
use crate::store::Store;
use crate::unix::Unix;
use volary_core::{FileKind, Result};

/// Longest content: `b 4294967295:4294967295` and a line feed.
const TEXT_MAX: usize = 24;

/// The content of a device node.
pub(crate) fn device_text(kind: FileKind, rdev: u64) -> Option<String> {
    let letter = match kind {
        FileKind::CharDevice => 'c',
        FileKind::BlockDevice => 'b',
        _ => return None,
    };
    let (major, minor) = (rdev >> 32, rdev & 0xffff_ffff);
    Some(format!("{letter} {major}:{minor}\n"))
}

fn parse_text(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim_end();
    let (major, minor) = text.get(2..)?.split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    Some(u64::from(major) << 32 | u64::from(minor))
}

/// The device that the entry of a node of this kind stands for; 0 if it is none, or says it
/// wrongly.
///
/// # Errors
/// `Io`.
pub(crate) fn rdev_of(store: &Store, unix: Unix, kind: FileKind, entry: &DirEntry) -> Result<u64> {
    let is_device = matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
    if unix == Unix::Off || !is_device {
        return Ok(0);
    }
    if unix == Unix::Paper {
        let ext = Extension::read(entry);
        return Ok(ext.map_or(0, |e| u64::from(e.major) << 32 | u64::from(e.minor)));
    }
    let first = entry.first_cluster(store.layout.is_fat32());
    let len = (entry.DIR_FileSize.get() as usize).min(TEXT_MAX);
    if len == 0 || !store.layout.is_cluster(first) {
        return Ok(0);
    }
    let mut text = [0; TEXT_MAX];
    let text = text.get_mut(..len).unwrap_or_default();
    store.cache.read(store.layout.cluster_offset(first), text)?;
    Ok(parse_text(text).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_read_back_from_its_text() {
        for rdev in [0, 1 << 32 | 3, u64::MAX] {
            let text = device_text(FileKind::BlockDevice, rdev).unwrap();
            assert!(text.len() <= TEXT_MAX);
            assert_eq!(parse_text(text.as_bytes()), Some(rdev));
        }
        assert_eq!(parse_text(b"c 1"), None);
        assert_eq!(parse_text(b""), None);
    }
}
