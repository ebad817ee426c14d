//! Finds mounts in `/proc/self/mountinfo`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A mount, as `proc(5)` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountLine {
    /// `major:minor` of the mounted file system.
    pub(crate) device: String,
    /// The file system's type: `fuse.volary`.
    pub(crate) kind: String,
}

/// Returns the uppermost mount on `path`, which must be absolute and without symlinks.
pub(crate) fn mounted_on(path: &Path) -> Option<MountLine> {
    let all = fs::read("/proc/self/mountinfo").ok()?;
    find(&all, path.as_os_str().as_bytes())
}

fn find(all: &[u8], path: &[u8]) -> Option<MountLine> {
    let lines = all.split(|&b| b == b'\n');
    lines.filter_map(|line| parse(line, path)).next_back()
}

/// Returns the line's mount, if it is on `path`.
fn parse(line: &[u8], path: &[u8]) -> Option<MountLine> {
    let mut fields = line.split(|&b| b == b' ');
    let device = fields.nth(2)?;
    let point = fields.nth(1)?;
    if unescape(point) != path {
        return None;
    }
    fields.find(|field| *field == b"-")?;
    Some(MountLine {
        device: String::from_utf8_lossy(device).into_owned(),
        kind: String::from_utf8_lossy(fields.next()?).into_owned(),
    })
}

/// Decodes the escapes of spaces, tabs, newlines and backslashes, such as `\040`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(value) if byte == b'\\' => {
                out.push(value);
                rest = &tail[3..];
            }
            _ => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
        40 22 0:44 / /mnt/a\\040b rw,nosuid - fuse.volary mem rw,user_id=0\n\
        41 40 0:45 / /mnt/a\\040b rw - tmpfs none rw\n";

    #[test]
    fn the_uppermost_mount_is_found_under_its_unescaped_path() {
        let found = find(SAMPLE, b"/mnt/a b").unwrap();
        assert_eq!(
            (found.device.as_str(), found.kind.as_str()),
            ("0:45", "tmpfs")
        );
        assert_eq!(find(SAMPLE, b"/").unwrap().kind, "ext4");
        assert_eq!(find(SAMPLE, b"/mnt"), None);
    }

    #[test]
    fn broken_lines_are_passed_over() {
        assert_eq!(find(b"1 2 3\n\n- - - - - -\n", b"/"), None);
    }
}
