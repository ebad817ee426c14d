//! Raw block devices of the host, where the test may make one.

use std::path::Path;
use std::process::Command;
use volary_block::{FileDevice, OpenOptions};
use volary_core::{BlockDevice, Kind};

/// A loop device over a file, taken away at the end.
struct Loop(String);

impl Loop {
    fn new(file: &Path, sector: &str) -> Option<Self> {
        let losetup = Command::new("losetup")
            .args(["--find", "--show", "--sector-size", sector])
            .arg(file)
            .output();
        match losetup {
            Ok(out) if out.status.success() => {
                Some(Self(String::from_utf8_lossy(&out.stdout).trim().to_owned()))
            }
            _ => {
                eprintln!("passed over: no loop devices here");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_block_device_is_used_like_a_file_with_its_size_and_sectors() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("image");
    for (sector, direct) in [
        ("512", false),
        ("512", true),
        ("4096", false),
        ("4096", true),
    ] {
        std::fs::write(&file, vec![9; 1 << 20]).unwrap();
        let Some(device) = Loop::new(&file, sector) else {
            return;
        };
        let options = OpenOptions {
            direct,
            ..OpenOptions::default()
        };
        let dev = FileDevice::open(&device.0, options).unwrap();
        let geometry = dev.geometry();
        assert_eq!(
            (geometry.size, geometry.sector.to_string().as_str()),
            (1 << 20, sector)
        );
        let busy = FileDevice::open(&device.0, options).err().unwrap();
        assert_eq!(busy, Kind::Busy);
        dev.write_at(1000, &[1; 10_000]).unwrap();
        dev.write_gather((1 << 20) - 5, &[&[2; 3], &[3; 2]])
            .unwrap();
        dev.discard(512 << 10, 64 << 10).unwrap();
        dev.flush().unwrap();
        let mut b = vec![0; 12_000];
        dev.read_at(0, &mut b).unwrap();
        assert_eq!([b[999], b[1000], b[10_999], b[11_000]], [9, 1, 1, 9]);
        drop(dev);
        drop(device);
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(bytes[..12_000], b);
        assert_eq!(bytes[(1 << 20) - 6..], [9, 2, 2, 2, 3, 3]);
    }
}
