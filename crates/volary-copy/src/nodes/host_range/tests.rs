use super::*;
use crate::told::observer::Unobserved;
use rustix::fs::OFlags;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use volary_block::{FileDevice, MemDevice, OpenOptions};
use volary_core::{Cred, Kind, Mode, SetAttr, Time};
use volary_mem::{Mem, MemOptions};
use volary_session::{Volume, VolumeOptions};

/// Returns a session on a volume, whose change numbers are compared.
fn session() -> Session {
    let fs = Mem::attach(MemOptions::sized(1 << 20), Time::EPOCH).unwrap();
    let options = VolumeOptions::new("test", || Time::EPOCH);
    Volume::new(fs, options).session(Cred::root())
}

impl HostRange {
    /// Returns a stretch for tests that do not copy it.
    pub(crate) fn nowhere() -> Self {
        let device: Arc<dyn BlockDevice> = Arc::new(MemDevice::new(512));
        host_range(&device, &session(), 0, 512)
    }
}

fn noise(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// Returns an image with these bytes, and a new file.
fn image(bytes: &[u8]) -> (tempfile::TempDir, Arc<dyn BlockDevice>, File) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    std::fs::write(&path, bytes).unwrap();
    let device = FileDevice::open(
        &path,
        OpenOptions {
            read_only: true,
            ..OpenOptions::default()
        },
    );
    let into = File::create_new(dir.path().join("into")).unwrap();
    (dir, Arc::new(device.unwrap()), into)
}

/// Returns a stretch of a device, with the current change number.
fn host_range(device: &Arc<dyn BlockDevice>, session: &Session, at: u64, len: u64) -> HostRange {
    let node = session.root();
    HostRange {
        device: Arc::clone(device),
        at,
        len,
        session: session.clone(),
        node,
        change: session.getattr(node).unwrap().change,
    }
}

#[test]
fn a_stretch_is_copied_to_where_the_file_stands() {
    let bytes = noise(300_000);
    let (dir, device, into) = image(&bytes);
    let session = session();
    rustix::io::write(&into, b"before").unwrap();
    let copied = host_range(&device, &session, 1000, 200_000).copy_to(into.as_fd(), &Unobserved);
    assert_eq!(copied, Ok(200_000));
    rustix::io::write(&into, b"after").unwrap();
    let whole = [b"before", &bytes[1000..201_000], b"after"].concat();
    assert!(std::fs::read(dir.path().join("into")).unwrap() == whole);
}

#[test]
fn of_a_file_that_has_changed_meanwhile_nothing_counts() {
    let (dir, device, into) = image(&noise(300_000));
    let session = session();
    let host_range = host_range(&device, &session, 0, 200_000);
    rustix::io::write(&into, b"before").unwrap();
    session
        .mkdir(session.root(), b"new", &SetAttr::default())
        .unwrap();
    assert_eq!(host_range.copy_to(into.as_fd(), &Unobserved), Ok(0));
    rustix::io::write(&into, b"after").unwrap();
    let whole = std::fs::read(dir.path().join("into")).unwrap();
    assert!(whole.starts_with(b"beforeafter"));
}

#[test]
fn an_image_that_was_cut_gives_what_it_has() {
    let (dir, device, into) = image(&noise(300_000));
    let image = File::options().write(true).open(dir.path().join("image"));
    image.unwrap().set_len(150_000).unwrap();
    let copied =
        host_range(&device, &session(), 100_000, 200_000).copy_to(into.as_fd(), &Unobserved);
    assert_eq!(copied, Ok(50_000));
}

#[test]
fn what_the_target_does_not_take_is_left_to_the_ordinary_way() {
    let (_dir, device, _) = image(&noise(300_000));
    let session = session();
    let full = rustix::fs::open("/dev/full", OFlags::WRONLY, rustix::fs::Mode::empty()).unwrap();
    assert_eq!(
        host_range(&device, &session, 0, 200_000).copy_to(full.as_fd(), &Unobserved),
        Ok(0)
    );
    let read = rustix::fs::open("/dev/null", OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    assert_eq!(
        host_range(&device, &session, 0, 200_000).copy_to(read.as_fd(), &Unobserved),
        Ok(0)
    );
}

#[test]
fn a_copy_between_two_file_systems_is_whole() {
    let bytes = noise(300_000);
    let (_dir, device, _) = image(&bytes);
    let memory = rustix::fs::memfd_create("into", rustix::fs::MemfdFlags::empty()).unwrap();
    let copied =
        host_range(&device, &session(), 4096, 250_000).copy_to(memory.as_fd(), &Unobserved);
    assert_eq!(copied, Ok(250_000));
    let mut found = vec![0; 250_000];
    File::from(memory).read_exact_at(&mut found, 0).unwrap();
    assert!(found == bytes[4096..254_096]);
}

/// Returns the places of a file of 1 MiB with these extents.
fn places(device: &Arc<dyn BlockDevice>, known: Vec<Extent>) -> Places {
    Places {
        known,
        range: 0..1 << 20,
        ..Places::new(device, &session())
    }
}

#[test]
fn long_stretches_of_the_device_are_found_and_nothing_else() {
    let (_dir, device, _) = image(&noise(3 << 20));
    let extent = |offset, len, place| Extent { offset, len, place };
    let known = vec![
        extent(0, 300_000, ExtentPlace::Device(5000)),
        extent(300_000, 300_000, ExtentPlace::Hole),
        extent(600_000, 300_000, ExtentPlace::Encoded),
        extent(900_000, 100_000, ExtentPlace::Device(9000)),
        extent(1_000_000, 48_576, ExtentPlace::Device(u64::MAX)),
    ];
    let session = session();
    let open = session.open(session.root(), Mode::Read).unwrap();
    let mut places = places(&device, known.clone());
    let mut find = |range| {
        let found = places.find(open, session.root(), range).unwrap();
        found.map(|found| (found.at, found.len))
    };
    assert_eq!(find(0..1 << 20), Some((5000, 300_000)));
    assert_eq!(find(100_000..1 << 20), Some((105_000, 200_000)));
    assert_eq!(find(100_000..250_000), Some((105_000, 150_000)));
    // The rest of the extent, or of the range, is too short.
    assert_eq!(find(200_000..1 << 20), None);
    assert_eq!(find(100_000..200_000), None);
    for start in [300_000, 599_999, 600_000, 900_000, 1_000_000] {
        assert_eq!(find(start..1 << 20), None, "{start}");
    }
    // Tests a place past the device's end, and a device without a file.
    let far = vec![extent(0, 300_000, ExtentPlace::Device(3 << 20))];
    let (_dir, device, _) = image(&noise(3 << 20));
    for (device, known) in [
        (device, far),
        (Arc::new(MemDevice::new(3 << 20)) as _, known),
    ] {
        let mut places = self::places(&device, known);
        assert!(places.find(open, session.root(), 0..1 << 20).is_none());
    }
    assert_eq!(
        session.close(open).map_err(|e| e.kind()),
        Ok::<(), Kind>(())
    );
}
