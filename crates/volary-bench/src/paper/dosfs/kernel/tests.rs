use super::*;
use crate::paper::dosfs::machine::{GATEWAY, GATEWAY25};
use crate::paper::dosfs::systems::{DOSFS, FAT, FFS, UFS, UFS25};
use crate::workload::{read_whole, write_new};

/// Systems on new volumes.
const NEW: System = System {
    made: Made { full: 0, ..FAT },
    ..DOSFS
};
const NEW_FFS: System = System {
    made: Made { full: 0, ..FFS },
    ..UFS
};

fn kernel(system: System) -> Kernel {
    Kernel::new(GATEWAY, system).unwrap()
}

/// Returns how long something takes, and whether the disk was asked for anything.
fn took(kernel: &mut Kernel, does: impl FnOnce(&mut Kernel)) -> (f64, bool) {
    let begun = (kernel.now(), kernel.disk.now());
    does(kernel);
    (kernel.now() - begun.0, kernel.disk.now() > begun.1)
}

#[test]
fn what_is_in_memory_is_read_without_the_disk_until_it_is_forgotten() {
    for system in [NEW, NEW_FFS] {
        let mut kernel = kernel(system);
        let path = "file.x";
        write_new(&mut kernel, path, 100_000, 16_384).unwrap();
        let read = |kernel: &mut Kernel| read_whole(kernel, path, 100_000, 16_384).unwrap();
        assert!(!took(&mut kernel, read).1);
        kernel.remount().unwrap();
        assert!(took(&mut kernel, read).1);
        assert!(!took(&mut kernel, read).1);
        // More than the cache drives it out.
        write_new(&mut kernel, "other.x", GATEWAY.cache, 16_384).unwrap();
        assert!(took(&mut kernel, read).1);
    }
}

#[test]
fn writes_are_delayed_and_what_is_removed_before_is_never_written() {
    let mut kernel = kernel(NEW);
    // The directory is in memory from then on.
    write_new(&mut kernel, "first.x", 0, 4096).unwrap();
    let (_, asked) = took(&mut kernel, |kernel| {
        kernel.create("file.x").unwrap();
        kernel.write("file.x", 0, 100_000).unwrap();
    });
    assert!(!asked);
    // The entry, as the file has grown; then nothing.
    assert!(took(&mut kernel, |kernel| kernel.close("file.x").unwrap()).1);
    assert!(!took(&mut kernel, |kernel| kernel.unlink("file.x").unwrap()).1);
    let (time, _) = took(&mut kernel, |kernel| kernel.sync().unwrap());
    // The FAT and two blocks at most, not 100 KB.
    assert!(time < 60_000.0, "{time}");
    // After half a minute all goes to the disk by itself.
    write_new(&mut kernel, "late.x", 4096, 4096).unwrap();
    assert!(took(&mut kernel, |kernel| kernel.compute(SYNC).unwrap()).1);
}

#[test]
fn ffs_waits_for_an_inode_where_dosfs_waits_for_nothing() {
    for (system, waits) in [(NEW, false), (NEW_FFS, true)] {
        let mut kernel = kernel(system);
        write_new(&mut kernel, "full.x", 8192, 8192).unwrap();
        write_new(&mut kernel, "empty.x", 0, 8192).unwrap();
        let unlink = |path| move |kernel: &mut Kernel| kernel.unlink(path).unwrap();
        assert_eq!(took(&mut kernel, unlink("full.x")).1, waits);
        assert!(!took(&mut kernel, unlink("empty.x")).1);
    }
}

#[test]
fn mach_25_starts_full_blocks_of_ffs_but_the_first() {
    for (len, starts) in [(4096, false), (8192, true)] {
        let system = System {
            made: NEW_FFS.made,
            ..UFS25
        };
        let mut kernel = Kernel::new(GATEWAY25, system).unwrap();
        kernel.create("file.x").unwrap();
        let asked = took(&mut kernel, |kernel| {
            kernel.write("file.x", 0, len).unwrap();
        })
        .1;
        assert_eq!(asked, starts, "{len}");
    }
}

#[test]
fn the_disk_works_ahead_while_the_processor_copies() {
    let read = |reads_ahead| {
        let mut kernel = kernel(System {
            reads_ahead,
            io: 2048,
            ..NEW
        });
        write_new(&mut kernel, "file.x", 200_000, 16_384).unwrap();
        kernel.remount().unwrap();
        took(&mut kernel, |kernel| {
            read_whole(kernel, "file.x", 200_000, 2048).unwrap();
        })
        .0
    };
    let gain = read(false) / read(true);
    assert!((1.2..1.5).contains(&gain), "{gain}");
}
