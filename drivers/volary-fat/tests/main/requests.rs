//! What the device is asked: how often, in what pieces, and who waits for it.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use volary_block::{MemDevice, Recorder, Request};
use volary_core::{
    Attach, BlockDevice, Create, Ctx, Format, Fs, Geometry, Make, Mode, Name, NodeId, Options,
    Place, Result, SetAttr,
};
use volary_fat::FAT;
use volary_testkit::volumes::as_root;

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn make(kind: &str, len: u64, options: &str) -> Arc<MemDevice> {
    let dev = Arc::new(MemDevice::new(len));
    let make = Make {
        options: Options::parse(options),
        ..Make::default()
    };
    FAT.make(dev.clone(), kind, &make).unwrap();
    dev
}

fn attach(dev: Arc<dyn BlockDevice>, options: &str) -> Fs {
    let how = Attach {
        options: Options::parse(options),
        ..Attach::default()
    };
    FAT.attach(dev, &how).unwrap()
}

fn put(fs: &Fs, cx: &Ctx<'_>, file: &str, len: usize) -> NodeId {
    let root = fs.root();
    let (entry, open) = fs
        .create(cx, root, name(file), Create::New, &SetAttr::default())
        .unwrap();
    fs.write(cx, open, None, &vec![0x42; len]).unwrap();
    fs.close(cx, open).unwrap();
    entry.node
}

#[test]
fn a_contiguous_file_is_moved_in_stretches_of_the_io_size() {
    const LEN: usize = 4 << 20;
    let volumes = [
        ("fat32", "cluster=512"),
        ("fat32", "cluster=4k"),
        ("fat16", "cluster=64k"),
    ];
    for (kind, options) in volumes {
        for io_size in [16 << 10, 256 << 10] {
            let dev = make(kind, 300 << 20, options);
            let recorder = Arc::new(Recorder::new(dev));
            let fs = attach(recorder.clone(), &format!("iosize={io_size}"));
            as_root(|cx| {
                recorder.take();
                let node = put(&fs, cx, "big", LEN);
                fs.sync(cx).unwrap();
                let about = format!("{kind} {options} iosize={io_size}");
                let pieces = count(&recorder.take(), io_size, true);
                assert!(pieces <= LEN / io_size + 2, "{about}: {pieces} writes");
                fs.detach(cx).unwrap();
                let fs = attach(recorder.clone(), &format!("iosize={io_size}"));
                recorder.take();
                let open = fs.open(cx, node, Mode::Read).unwrap();
                let mut buf = vec![0; LEN];
                assert_eq!(fs.read(cx, open, 0, &mut buf).unwrap(), LEN);
                let pieces = count(&recorder.take(), io_size, false);
                assert!(pieces <= LEN / io_size + 2, "{about}: {pieces} reads");
                let mut extents = Vec::new();
                fs.extents(cx, open, 0, LEN as u64, &mut extents).unwrap();
                assert_eq!(extents.len(), 1, "{about}");
                assert!(matches!(extents[0].place, Place::Device(_)));
            });
        }
    }
}

/// Requests of at least 4 KiB, none longer than the I/O size.
fn count(requests: &[Request], io_size: usize, writes: bool) -> usize {
    let lens = requests.iter().filter_map(|r| match r {
        Request::Write { data, .. } if writes => Some(data.len()),
        Request::Read { len, .. } if !writes => Some(*len as usize),
        _ => None,
    });
    // The FAT is read in pieces of 64 KiB, whatever the I/O size.
    let lens: Vec<_> = lens.filter(|&l| l >= 4096).collect();
    assert!(lens.iter().all(|&l| l <= io_size.max(64 << 10)), "{lens:?}");
    lens.len()
}

#[test]
fn small_files_do_not_rewrite_the_fat_over_and_over() {
    let dev = make("fat32", 64 << 20, "cluster=512");
    let recorder = Arc::new(Recorder::counting(dev));
    let fs = attach(recorder.clone(), "");
    as_root(|cx| {
        put(&fs, cx, "first", 100);
        fs.sync(cx).unwrap();
        let before = recorder.counts();
        for i in 0..1000 {
            put(&fs, cx, &format!("file {i}"), 400);
        }
        fs.sync(cx).unwrap();
        let after = recorder.counts();
        let writes = after.writes - before.writes;
        // Data, FAT, directory, and the zeros that the directory grew by.
        assert!(writes < 60, "{writes} writes for 1000 files");
        assert!(after.flushes - before.flushes < 12);
    });
}

/// Returns what 1000 appends of a cluster cost, each with an fsync: writes and flushes.
fn appends(kind: &str, len: u64) -> (u64, u64) {
    let recorder = Arc::new(Recorder::counting(make(kind, len, "cluster=512")));
    let fs = attach(recorder.clone(), "");
    as_root(|cx| {
        let node = put(&fs, cx, "log", 512);
        fs.sync(cx).unwrap();
        let before = recorder.counts();
        let open = fs.open(cx, node, Mode::Write).unwrap();
        for i in 1..=1000 {
            fs.write(cx, open, Some(i * 512), &[0x42; 512]).unwrap();
            fs.fsync(cx, open, false).unwrap();
        }
        let after = recorder.counts();
        (after.writes - before.writes, after.flushes - before.flushes)
    })
}

#[test]
fn appends_wait_once_more_where_the_chain_crosses_a_sector_of_the_fat() {
    // Data, FAT and entry; the content and the FAT are durable before the entry.
    let (writes, flushes) = (3000, 2000);
    // An entry of FAT12 on the border is behind one crossing and before another,
    // and there it is written by halves.
    for (kind, len, crossings) in [
        ("fat12", 1 << 20, 2 * 3),
        ("fat16", 8 << 20, 3),
        ("fat32", 64 << 20, 7),
    ] {
        let got = appends(kind, len);
        // One write of two sectors becomes one of each.
        println!("{kind}: {got:?}");
        assert!(got.0 <= writes + crossings, "{kind}: {got:?}");
        assert!(got.1 <= flushes + crossings, "{kind}: {got:?}");
    }
}

#[test]
fn a_volume_of_two_tebibytes_is_attached_by_a_few_reads() {
    let dev = make("fat32", 2 << 40, "cluster=32k");
    let recorder = Arc::new(Recorder::counting(dev));
    let fs = attach(recorder.clone(), "");
    as_root(|cx| fs.statfs(cx).unwrap());
    let counts = recorder.counts();
    assert!(counts.reads < 10, "{counts:?}");
    assert!(counts.read_bytes < 1 << 20, "{counts:?}");
    assert_eq!(counts.writes, 0);
}

#[test]
fn attached_for_reading_nothing_is_written() {
    let dev = make("fat16", 16 << 20, "");
    as_root(|cx| {
        let fs = attach(dev.clone(), "");
        put(&fs, cx, "file", 5000);
        fs.detach(cx).unwrap();
    });
    let recorder = Arc::new(Recorder::counting(dev));
    let how = Attach {
        read_only: true,
        ..Attach::default()
    };
    let fs = FAT.attach(recorder.clone(), &how).unwrap();
    as_root(|cx| {
        let node = fs.lookup(cx, fs.root(), name("file")).unwrap().node;
        let open = fs.open(cx, node, Mode::Read).unwrap();
        fs.read(cx, open, 0, &mut [0; 100]).unwrap();
        fs.sync(cx).unwrap();
        fs.detach(cx).unwrap();
    });
    assert_eq!(recorder.counts().writes + recorder.counts().flushes, 0);
}

/// A device whose reads past a place wait until a gate is opened.
struct Gated {
    dev: Arc<MemDevice>,
    /// Reads that touch bytes from here on wait; `u64::MAX` for none.
    from: AtomicU64,
    to: AtomicU64,
    waiting: Mutex<usize>,
    changed: Condvar,
}

impl Gated {
    fn close_at(&self, from: u64, to: u64) {
        self.to.store(to, Ordering::SeqCst);
        self.from.store(from, Ordering::SeqCst);
    }

    fn open(&self) {
        self.from.store(u64::MAX, Ordering::SeqCst);
        let _waiting = self.waiting.lock();
        self.changed.notify_all();
    }

    fn wait_for_a_reader(&self) {
        let mut waiting = self.waiting.lock();
        while *waiting == 0 {
            self.changed.wait(&mut waiting);
        }
    }

    fn is_closed_for(&self, offset: u64, len: usize) -> bool {
        let from = self.from.load(Ordering::SeqCst);
        offset < self.to.load(Ordering::SeqCst) && offset + len as u64 > from
    }
}

impl BlockDevice for Gated {
    fn geometry(&self) -> Geometry {
        self.dev.geometry()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut waiting = self.waiting.lock();
        if self.is_closed_for(offset, buf.len()) {
            *waiting += 1;
            self.changed.notify_all();
            while self.is_closed_for(offset, buf.len()) {
                self.changed.wait(&mut waiting);
            }
            *waiting -= 1;
        }
        drop(waiting);
        self.dev.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.dev.write_at(offset, data)
    }

    fn flush(&self) -> Result<()> {
        self.dev.flush()
    }
}

/// Returns where a file's content lies.
fn extent(fs: &Fs, cx: &Ctx<'_>, node: NodeId) -> (u64, u64) {
    let open = fs.open(cx, node, Mode::Read).unwrap();
    let mut extents = Vec::new();
    fs.extents(cx, open, 0, u64::MAX, &mut extents).unwrap();
    fs.close(cx, open).unwrap();
    let Place::Device(at) = extents[0].place else {
        panic!("a file lies on the device");
    };
    (at, at + extents[0].len)
}

#[test]
fn readers_and_a_writer_of_other_files_do_not_wait_for_a_slow_read() {
    const LEN: usize = 1 << 20;
    let dev = make("fat16", 64 << 20, "cluster=4k");
    let nodes = as_root(|cx| {
        let fs = attach(dev.clone(), "");
        let nodes: Vec<_> = ["slow", "a", "b", "c"].map(|f| put(&fs, cx, f, LEN)).into();
        fs.detach(cx).unwrap();
        nodes
    });
    let gated = Arc::new(Gated {
        dev,
        from: AtomicU64::new(u64::MAX),
        to: AtomicU64::new(0),
        waiting: Mutex::new(0),
        changed: Condvar::new(),
    });
    let fs = attach(gated.clone(), "");
    let (from, to) = as_root(|cx| extent(&fs, cx, nodes[0]));
    gated.close_at(from, to);
    let read = |node| {
        as_root(|cx| {
            let open = fs.open(cx, node, Mode::Read).unwrap();
            let mut buf = vec![0; LEN];
            assert_eq!(fs.read(cx, open, 0, &mut buf).unwrap(), LEN);
            fs.close(cx, open).unwrap();
        });
    };
    thread::scope(|threads| {
        let slow = threads.spawn(|| read(nodes[0]));
        gated.wait_for_a_reader();
        let readers = [nodes[1], nodes[2]].map(|n| threads.spawn(move || read(n)));
        let writer = threads.spawn(|| {
            as_root(|cx| {
                let open = fs.open(cx, nodes[3], Mode::Write).unwrap();
                fs.write(cx, open, None, &vec![1; LEN]).unwrap();
                fs.fsync(cx, open, false).unwrap();
                fs.close(cx, open).unwrap();
                put(&fs, cx, "new", 100);
                fs.sync(cx).unwrap();
            });
        });
        for reader in readers {
            reader.join().unwrap();
        }
        writer.join().unwrap();
        assert!(!slow.is_finished(), "the slow read still waits");
        gated.open();
        slow.join().unwrap();
    });
}
