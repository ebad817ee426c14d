//! Finds where Linux has mounted a block device, or an image through a loop device.

use rustix::fs::{FileType, fstat, major, minor, stat};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use volary_core::escape;

/// A block device, as the table of mounts names it.
#[derive(Debug, PartialEq, Eq)]
struct Device {
    /// `MAJOR:MINOR`.
    number: String,
    /// `/dev/NAME`. Some file systems have a number of their own, and only this tells the device.
    node: OsString,
}

/// Returns where the host has mounted a block device or one of its partitions, or an image through
/// a loop device, in words: `/mnt, as /dev/loop0`. Returns `None` if it has not, or does not tell.
pub(crate) fn mount_of(file: &File) -> Option<String> {
    let had = fstat(file).ok()?;
    let devices = match FileType::from_raw_mode(had.st_mode) {
        FileType::BlockDevice => {
            let number = format!("{}:{}", major(had.st_rdev), minor(had.st_rdev));
            let link = Path::new("/sys/dev/block").join(&number);
            let node = OsString::new();
            let mut all = vec![Device { number, node }];
            // The directory behind the link has the name of the device.
            all.extend(fs::canonicalize(link).map_or_else(|_| Vec::new(), |dir| devices_in(&dir)));
            all
        }
        _ => loops()
            .filter(|(_, file)| {
                let backing = stat(file.as_path());
                backing.is_ok_and(|it| (it.st_dev, it.st_ino) == (had.st_dev, had.st_ino))
            })
            .flat_map(|(dir, _)| devices_in(&dir))
            .collect(),
    };
    if devices.is_empty() {
        return None;
    }
    mount_in(&fs::read("/proc/self/mountinfo").ok()?, &devices)
}

/// Returns the directories in `/sys` of loop devices, each with the file that it shows.
fn loops() -> impl Iterator<Item = (PathBuf, PathBuf)> {
    let all = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let dir = entry.path();
        let file = fs::read(dir.join("loop/backing_file")).ok()?;
        let file = file.strip_suffix(b"\n").unwrap_or(&file).to_vec();
        Some((dir, PathBuf::from(OsString::from_vec(file))))
    })
}

/// Returns the block device of a directory in `/sys`, and its partitions.
fn devices_in(dir: &Path) -> Vec<Device> {
    let below = fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = below.map(|entry| entry.path());
    let device = |dir: PathBuf| {
        let number = fs::read_to_string(dir.join("dev")).ok()?;
        let mut node = OsString::from("/dev/");
        node.push(dir.file_name()?);
        let number = number.trim_end().to_owned();
        Some(Device { number, node })
    };
    let parts = dirs.filter(|dir| dir.join("partition").exists());
    [dir.to_owned()]
        .into_iter()
        .chain(parts)
        .filter_map(device)
        .collect()
}

/// Finds a mount of one of these devices in the text of `/proc/self/mountinfo`, with lines such as
/// `46 27 7:0 / /mnt rw,relatime - ext4 /dev/loop0 rw`. Optional words stand before the `-`.
fn mount_in(table: &[u8], devices: &[Device]) -> Option<String> {
    table.split(|&b| b == b'\n').find_map(|line| {
        let mut words = line.split(|&b| b == b' ');
        let number = words.nth(2)?;
        let place = words.nth(1)?;
        let mut rest = words.skip_while(|word| *word != b"-");
        let kind = rest.nth(1)?;
        let node = rest.next()?;
        // A program serves it, which has the device only while it runs.
        if kind.starts_with(b"fuse") && kind != b"fuseblk" {
            return None;
        }
        let is_it = |device: &&Device| {
            device.number.as_bytes() == number || device.node == OsStr::from_bytes(node)
        };
        let device = devices.iter().find(is_it)?;
        let shown = escape(place);
        Some(match device.node.is_empty() {
            true => shown.to_string(),
            false => format!("{shown}, as {}", escape(device.node.as_bytes())),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"\
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
46 27 7:0 / /a\\040b rw,relatime - ext4 /dev/loop0 rw
47 27 0:52 / /pool rw shared:2 master:1 - btrfs /dev/loop1p2 rw,subvol=/
48 27 0:53 / /tmp rw - tmpfs tmpfs rw
49 27 0:54 / /served rw - fuse.program /dev/loop2 rw
";

    fn found(number: &str, node: &str) -> Option<String> {
        let (number, node) = (number.to_owned(), node.into());
        mount_in(TABLE, &[Device { number, node }])
    }

    #[test]
    fn a_mount_is_found_by_the_number_of_the_device_or_by_its_name() {
        let by_number = found("7:0", "/dev/loop0");
        assert_eq!(by_number.unwrap(), r"/a\\040b, as /dev/loop0");
        assert_eq!(found("8:1", "").unwrap(), "/");
        let by_name = found("259:2", "/dev/loop1p2");
        assert_eq!(by_name.unwrap(), "/pool, as /dev/loop1p2");
        assert_eq!(found("7:2", "/dev/loop2"), None);
    }

    #[test]
    fn a_device_is_found_with_its_partitions() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("loop3");
        for (name, number) in [("", "7:3\n"), ("loop3p1", "259:4\n"), ("queue", "")] {
            fs::create_dir_all(at.join(name)).unwrap();
            fs::write(at.join(name).join("dev"), number).unwrap();
        }
        fs::write(at.join("loop3p1/partition"), "1\n").unwrap();
        let device = |number: &str, node: &str| Device {
            number: number.into(),
            node: node.into(),
        };
        let expected = [device("7:3", "/dev/loop3"), device("259:4", "/dev/loop3p1")];
        assert_eq!(devices_in(&at), expected);
    }
}
