//! The target for qcow2 images: headers and tables.

use crate::heap;
use crate::input::Input;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Once, OnceLock};
use volary_block::{OpenOptions, Qcow2, open_image};
use volary_core::BlockDevice;

/// Bytes that the image holds.
const SIZE: u64 = 8 << 20;
/// Growth of the heap that a run may cause: the library keeps tables of 64 KiB.
const HEAP: usize = 32 << 20;
const CHANGES_MAX: usize = 16;

/// Returns a file in memory, and the path that leads to it.
fn file() -> (std::fs::File, String) {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file: std::fs::File = rustix::fs::memfd_create("qcow2", flags)
        .expect("a file")
        .into();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    (file, path)
}

/// Returns a good image with some data.
fn good() -> &'static [u8] {
    static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let (file, path) = file();
        Qcow2::create(&path, SIZE).expect("an image");
        let dev = Qcow2::open(&path, OpenOptions::default()).expect("an image");
        for place in [0, 1 << 20, SIZE - 512] {
            dev.write_at(place, &[7; 512]).expect("write");
        }
        dev.flush().expect("flush");
        drop(dev);
        std::fs::read(&path).inspect(|_| drop(file)).expect("read")
    })
}

/// Opens an image that the input changes; reads and writes it.
pub fn image(input: &[u8]) {
    // What the library's panics become is an error, and here as well.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        heap::limit(usize::MAX);
        std::panic::set_hook(Box::new(|_| heap::limit(usize::MAX)));
    });
    let mut input = Input::new(input);
    let (file, path) = file();
    file.write_all_at(good(), 0).expect("write");
    for _ in 0..CHANGES_MAX {
        if input.is_empty() {
            break;
        }
        // Mostly the header; else any table, all of which begin at a cluster.
        let cluster = u64::from(input.byte() % 8).saturating_sub(3) << 16;
        let at = cluster + u64::from(input.byte()) * if cluster == 0 { 1 } else { 8 };
        let bytes = match input.byte() {
            0 => vec![0xff; 8],
            1 => vec![0; 8],
            n => input.bytes(usize::from(n % 8) + 1).to_vec(),
        };
        file.write_all_at(&bytes, at).expect("write");
    }
    if input.byte() == 1 {
        file.set_len(u64::from(input.short()) * 64)
            .expect("a length");
    }
    heap::limit(HEAP);
    let _ = Qcow2::size_of(&path);
    let read_only = input.byte().is_multiple_of(2);
    let options = OpenOptions {
        read_only,
        ..OpenOptions::default()
    };
    if let Ok(dev) = open_image(&path, options) {
        use_it(&*dev, &mut input);
    }
    heap::limit(usize::MAX);
}

fn use_it(dev: &dyn BlockDevice, input: &mut Input<'_>) {
    let size = dev.geometry().size;
    let mut buf = [0; 4096];
    for place in [
        0,
        1 << 20,
        size.saturating_sub(4096),
        u64::from(input.short()) << 9,
    ] {
        let _ = dev.read_at(place, &mut buf);
        let _ = dev.write_at(place, &buf);
    }
    let _ = dev.discard(0, 1 << 16);
    let _ = dev.flush();
}
