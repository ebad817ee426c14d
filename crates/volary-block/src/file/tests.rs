use super::*;
use crate::{MemDevice, Slice};
use std::path::PathBuf;
use tempfile::TempDir;

fn image(len: usize) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    std::fs::write(&path, (0..len).map(|i| (i / 3) as u8).collect::<Vec<_>>()).unwrap();
    (dir, path)
}

fn refusal(path: impl AsRef<Path>, options: OpenOptions) -> (Kind, String) {
    let e = FileDevice::open(path, options)
        .err()
        .expect("should be refused");
    let words = e.to_string();
    assert!(!words.contains('\n'));
    (e.kind(), words)
}

const READ_ONLY: OpenOptions = OpenOptions {
    read_only: true,
    direct: false,
    unlocked: false,
};
const DIRECT: OpenOptions = OpenOptions {
    read_only: false,
    direct: true,
    unlocked: false,
};

#[test]
fn each_opening_error_has_its_kind_and_one_line() {
    let (dir, path) = image(0);
    let any = OpenOptions::default();
    assert_eq!(refusal(&path, any).0, Kind::Unsupported);
    assert_eq!(refusal(dir.path(), any).0, Kind::IsDir);
    assert_eq!(refusal(dir.path(), READ_ONLY).0, Kind::IsDir);
    assert_eq!(refusal(dir.path().join("none"), any).0, Kind::NotFound);
    assert_eq!(refusal(path.join("below"), any).0, Kind::NotFound);
    assert_eq!(refusal("/dev/null", any).0, Kind::Unsupported);
    let fifo = dir.path().join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(refusal(&fifo, READ_ONLY).0, Kind::Unsupported);
    let (kind, words) = refusal(dir.path().join("none"), any);
    assert_eq!(kind, Kind::NotFound);
    assert!(words.starts_with("no such image; "));
}

#[test]
fn one_writer_or_many_readers() {
    let (_dir, path) = image(5000);
    let writer = FileDevice::open(&path, OpenOptions::default()).unwrap();
    assert_eq!(refusal(&path, OpenOptions::default()).0, Kind::Busy);
    assert_eq!(refusal(&path, READ_ONLY).0, Kind::Busy);
    let unlocked = OpenOptions {
        unlocked: true,
        ..READ_ONLY
    };
    FileDevice::open(&path, unlocked).unwrap();
    drop(writer);
    let _reader = FileDevice::open(&path, READ_ONLY).unwrap();
    FileDevice::open(&path, READ_ONLY).unwrap();
    assert_eq!(refusal(&path, OpenOptions::default()).0, Kind::Busy);
}

#[test]
fn what_is_written_is_in_the_file() {
    for options in [OpenOptions::default(), DIRECT] {
        let (_dir, path) = image(100_000);
        let mut model = std::fs::read(&path).unwrap();
        let dev = FileDevice::open(&path, options).unwrap();
        let ranges = [
            (0, 4096),
            (512, 512),
            (1000, 50_000),
            (99_000, 1000),
            (99_999, 1),
            (4096, 0),
        ];
        for (i, (at, len)) in ranges.into_iter().enumerate() {
            let data: Vec<u8> = (0..len).map(|n| (n + i) as u8).collect();
            match i % 2 {
                0 => dev.write_at(at as u64, &data).unwrap(),
                _ => {
                    let (a, b) = data.split_at(len / 3);
                    dev.write_gather(at as u64, &[a, &[], b]).unwrap();
                }
            }
            model[at..at + len].copy_from_slice(&data);
            let mut back = vec![0; len];
            dev.read_at(at as u64, &mut back).unwrap();
            assert!(back == data);
        }
        dev.flush().unwrap();
        let mut all = vec![0; model.len()];
        dev.read_at(0, &mut all).unwrap();
        assert!(all == model && std::fs::read(&path).unwrap() == model);
    }
}

#[test]
fn a_gathered_write_of_thousands_of_parts_arrives() {
    let (_dir, path) = image(9000);
    let dev = FileDevice::open(&path, OpenOptions::default()).unwrap();
    let bytes: Vec<u8> = (0..3000_u32).map(|i| (i % 251) as u8).collect();
    let parts: Vec<&[u8]> = bytes.chunks(1).collect();
    dev.write_gather(5, &parts).unwrap();
    assert!(std::fs::read(&path).unwrap()[5..3005] == bytes);
}

#[test]
fn threads_that_write_parts_of_one_block_directly_do_not_undo_each_other() {
    let (_dir, path) = image(64 * 1024);
    let dev = FileDevice::open(&path, DIRECT).unwrap();
    std::thread::scope(|s| {
        for me in 0..4_usize {
            let dev = &dev;
            s.spawn(move || {
                for round in 0..40_u8 {
                    for at in (me * 100..64 * 1024 - 100).step_by(400 * 41) {
                        dev.write_at(at as u64, &[round; 100]).unwrap();
                        let mut back = [0; 100];
                        dev.read_at(at as u64, &mut back).unwrap();
                        assert_eq!(back, [round; 100]);
                    }
                }
            });
        }
    });
}

#[test]
fn read_only_refuses_and_past_the_end_is_invalid() {
    let (_dir, path) = image(5000);
    let before = std::fs::read(&path).unwrap();
    let dev = FileDevice::open(&path, READ_ONLY).unwrap();
    assert!(dev.geometry().read_only);
    assert_eq!(dev.write_at(0, &[1]).unwrap_err(), Kind::ReadOnly);
    assert_eq!(dev.write_gather(0, &[&[1]]).unwrap_err(), Kind::ReadOnly);
    assert_eq!(dev.discard(0, 4096).unwrap_err(), Kind::ReadOnly);
    dev.flush().unwrap();
    drop(dev);
    let dev = FileDevice::open(&path, OpenOptions::default()).unwrap();
    assert_eq!(dev.write_at(4999, &[1, 2]).unwrap_err(), Kind::Invalid);
    assert_eq!(dev.read_at(5000, &mut [0]).unwrap_err(), Kind::Invalid);
    assert_eq!(
        dev.write_gather(u64::MAX, &[&[1]]).unwrap_err(),
        Kind::Invalid
    );
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn a_file_cut_off_under_us_gives_an_error_with_its_place() {
    let (_dir, path) = image(8192);
    let dev = FileDevice::open(&path, OpenOptions::default()).unwrap();
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(4096)
        .unwrap();
    let e = dev.read_at(4000, &mut [0; 200]).unwrap_err();
    assert_eq!(
        e.as_io().map(|io| (io.doing, io.offset, io.len)),
        Some(("read", 4000, 200))
    );
}

#[test]
fn nothing_is_durable_in_a_file_that_was_cut_or_removed() {
    let (_dir, path) = image(8192);
    let dev = FileDevice::open(&path, OpenOptions::default()).unwrap();
    dev.write_at(0, &[1; 512]).unwrap();
    dev.flush().unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(0).unwrap();
    dev.write_at(0, &[1; 512]).unwrap();
    let e = dev.flush().unwrap_err();
    assert_eq!(e.to_string(), "flush failed: the file was cut to 512 bytes");
    file.set_len(8192).unwrap();
    dev.flush().unwrap();
    std::fs::remove_file(&path).unwrap();
    let e = dev.flush().unwrap_err();
    assert_eq!(e.to_string(), "flush failed: the file was removed");
}

#[test]
fn what_is_made_zero_reads_as_zeros_and_takes_no_space() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    drop(FileDevice::create(&path, 1 << 20).unwrap());
    for options in [OpenOptions::default(), DIRECT] {
        let dev = FileDevice::open(&path, options).unwrap();
        dev.write_at(0, &vec![7; 1 << 20]).unwrap();
        dev.flush().unwrap();
        let full = std::fs::metadata(&path).unwrap().blocks();
        let (from, len) = (1000, 500_000);
        dev.zero(from, len).unwrap();
        let mut back = vec![1; 1 << 20];
        dev.read_at(0, &mut back).unwrap();
        let inside = 1000..501_000;
        for (i, b) in back.iter().enumerate() {
            assert_eq!(*b, if inside.contains(&i) { 0 } else { 7 }, "byte {i}");
        }
        assert!(std::fs::metadata(&path).unwrap().blocks() < full);
        assert_eq!(dev.zero(1 << 20, 1).unwrap_err(), Kind::Invalid);
    }
    let dev = FileDevice::open(&path, READ_ONLY).unwrap();
    assert_eq!(dev.zero(0, 512).unwrap_err(), Kind::ReadOnly);
}

#[test]
fn discarded_space_goes_back_to_the_host() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let dev = FileDevice::create(&path, 1 << 20).unwrap();
    let blocks = || std::fs::metadata(&path).unwrap().blocks();
    assert_eq!(blocks(), 0);
    dev.write_at(0, &vec![1; 1 << 20]).unwrap();
    dev.flush().unwrap();
    let before = blocks();
    dev.discard(0, 512 << 10).unwrap();
    assert!(blocks() < before);
    assert_eq!(FileDevice::create(&path, 1).err().unwrap(), Kind::Exists);
    assert_eq!(
        FileDevice::create(dir.path().join("a"), 0).err().unwrap(),
        Kind::Invalid
    );
    assert_eq!(
        FileDevice::create(dir.path().join("a/b"), 1).err().unwrap(),
        Kind::NotFound
    );
    assert_eq!(
        FileDevice::create(dir.path().join("c"), u64::MAX)
            .err()
            .unwrap(),
        Kind::TooBig
    );
    assert!(!dir.path().join("c").exists());
}

#[test]
fn each_read_of_a_batch_has_its_own_result() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let bytes: Vec<u8> = (0..1 << 20).map(|i| (i / 512) as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    let dev = FileDevice::open(&path, OpenOptions::default()).unwrap();
    let places = [700_000, 512, 1 << 20, 300_000, u64::MAX];
    let mut rooms = [[0; 5000]; 5];
    let mut reads: Vec<Read<'_>> = rooms
        .iter_mut()
        .zip(places)
        .map(|(buf, offset)| Read {
            offset,
            buf,
            result: Ok(()),
        })
        .collect();
    dev.read_batch(&mut reads);
    for read in reads {
        match usize::try_from(read.offset) {
            Ok(at) if at < 1 << 20 => {
                read.result.unwrap();
                assert_eq!(read.buf, &bytes[at..at + 5000]);
            }
            _ => assert_eq!(read.result.unwrap_err(), Kind::Invalid),
        }
    }
}

#[test]
fn an_image_that_the_page_cache_has_little_of_is_read_past_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let bytes: Vec<u8> = (0..3_000_700).map(|i| (i / 300) as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    let dev = Arc::new(FileDevice::open(&path, READ_ONLY).unwrap());
    let len = bytes.len() as u64;
    let Some((cached, all)) = cached_pages(&file, 0, len) else {
        return println!("skipped: this kernel does not tell what is cached");
    };
    assert_eq!((cached, all), (733, 733));
    assert!(dev.past_cache().is_none(), "it is cached");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    if cached_pages(&file, 0, len).unwrap().0 > 0 {
        return println!("skipped: it lies in memory");
    }
    let unlocked = OpenOptions {
        unlocked: true,
        ..OpenOptions::default()
    };
    let writable = FileDevice::open(&path, unlocked).unwrap();
    assert!(writable.past_cache().is_none(), "it is written");
    let slice = Slice::new(dev.clone(), 1000, 2_000_000).unwrap();
    for (dev, first) in [(dev.past_cache(), 0), (slice.past_cache(), 1000)] {
        let dev = dev.unwrap();
        assert!(!dev.is_cached() && dev.past_cache().is_none());
        for (at, len) in [
            (0, 512),
            (1, 1),
            (511, 4098),
            (4096, 1 << 20),
            (700_001, 1_200_000),
        ] {
            let mut buf = vec![0; len];
            dev.read_at(at, &mut buf).unwrap();
            let from = first + usize::try_from(at).unwrap();
            assert!(buf == bytes[from..from + len], "{len} bytes at {at}");
        }
        let end = dev.geometry().size;
        assert_eq!(dev.read_at(end, &mut [0]).unwrap_err(), Kind::Invalid);
        let mut last = [0; 700];
        dev.read_at(end - 700, &mut last).unwrap();
        let from = first + usize::try_from(end).unwrap() - 700;
        assert!(last == bytes[from..from + 700]);
    }
    let (cached, _) = cached_pages(&file, 0, len).unwrap();
    assert!(
        cached < 32,
        "{cached} pages were read by way of the page cache"
    );
}

#[test]
fn a_range_lies_in_the_file_as_it_is_but_past_the_page_cache() {
    let (_dir, path) = image(8192);
    let file = Arc::new(FileDevice::open(&path, READ_ONLY).unwrap());
    let place = |dev: &dyn BlockDevice, offset, len| {
        let (fd, at) = dev.in_host_file(offset, len)?;
        let mut byte = [0];
        rustix::io::pread(fd, &mut byte, at).unwrap();
        Some((byte[0], at))
    };
    assert_eq!(place(&*file, 300, 7892), Some((100, 300)));
    assert_eq!(place(&*file, 300, 7893), None);
    assert_eq!(place(&*file, u64::MAX, 2), None);
    let slice = Slice::new(file.clone(), 600, 1000).unwrap();
    assert_eq!(place(&slice, 30, 970), Some((210, 630)));
    assert_eq!(place(&slice, 30, 971), None);
    assert_eq!(place(&slice, u64::MAX, 2), None);
    assert_eq!(place(&MemDevice::new(8192), 0, 1), None);
    drop((file, slice));
    let direct = FileDevice::open(&path, DIRECT).unwrap();
    if direct.direct.is_some() {
        assert_eq!(place(&direct, 0, 1), None);
    }
}
