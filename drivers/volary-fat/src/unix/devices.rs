//! Device nodes: a small file that says which device, so that nothing is lost
//! where the extension is.

use volary_core::FileKind;

/// Longest content: `b 4294967295:4294967295` and a line feed.
pub(crate) const TEXT_MAX: usize = 24;

/// Returns the content of a device node.
pub(crate) fn device_text(kind: FileKind, rdev: u64) -> Option<String> {
    let letter = match kind {
        FileKind::CharDevice => 'c',
        FileKind::BlockDevice => 'b',
        _ => return None,
    };
    let (major, minor) = (rdev >> 32, rdev & 0xffff_ffff);
    Some(format!("{letter} {major}:{minor}\n"))
}

/// Returns the device that such a content says.
pub(crate) fn parse_text(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim_end();
    let (major, minor) = text.get(2..)?.split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    Some(u64::from(major) << 32 | u64::from(minor))
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
