//! The paper's figures (sections 5.3, 5.9 and 7, Tables 3 and 4), with its
//! parameters and with today's.

use crate::volumes::{attach, shape};
use std::sync::Arc;
use std::time::Instant;
use volary_block::Recorder;
use volary_core::{
    BlockDevice, Cancel, Cookie, Create, Cred, Ctx, DirBuf, Fs, Mode, Name, SetAttr, Time,
};
use volary_testkit::volumes::Shape;

const MIB: u64 = 1 << 20;
/// Small files of the benchmark.
const FILES: usize = 100;

/// The paper's: pages of a sector, data written as it comes, a small cache.
const PAPER: Shape = shape(12 * MIB)
    .made("page=512,log=642k")
    .attached("data=through,iosize=4k");
/// Today's.
const TODAY: Shape = shape(24 * MIB);

/// The device counted, a volume on it, and a clock that goes on.
struct Bench {
    device: Arc<Recorder>,
    fs: Fs,
    shape: Shape,
    /// Milliseconds since the beginning.
    clock: u64,
}

impl Bench {
    fn new(shape: Shape) -> Self {
        let device = Arc::new(Recorder::counting(shape.device()));
        let fs = attach(device.clone(), shape.attach);
        Self {
            device,
            fs,
            shape,
            clock: 0,
        }
    }

    fn call<T>(&self, act: impl FnOnce(&Ctx<'_>) -> T) -> T {
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let nanos = self.clock % 1000 * 1_000_000;
        act(&Ctx {
            cred: &cred,
            now: Time::new(1_700_000_000 + (self.clock / 1000) as i64, nanos as u32),
            cancel: &cancel,
        })
    }

    /// Requests that read or write, since the device was new.
    fn requests(&self) -> u64 {
        let counts = self.device.counts();
        counts.reads + counts.writes
    }

    /// Requests that `act` makes.
    fn counted(&mut self, act: impl FnOnce(&mut Self)) -> u64 {
        let before = self.requests();
        act(self);
        self.requests() - before
    }

    fn reattach(&mut self) {
        self.call(|cx| self.fs.detach(cx)).unwrap();
        self.fs = attach(self.device.clone(), self.shape.attach);
    }

    /// Creates the files, `ms` apart; the last commit is counted too.
    fn create(&mut self, ms: u64) {
        for i in 0..FILES {
            self.clock += ms;
            self.call(|cx| {
                let name = format!("file{i:03}");
                let name = Name::new(name.as_bytes()).unwrap();
                let set = SetAttr::default();
                let made = self.fs.create(cx, self.fs.root(), name, Create::New, &set);
                let (_, open) = made.unwrap();
                self.fs.write(cx, open, Some(0), &[i as u8; 400]).unwrap();
                self.fs.close(cx, open).unwrap();
            });
        }
        self.call(|cx| self.fs.sync(cx)).unwrap();
    }

    /// Lists the files with their properties.
    fn list(&mut self) {
        self.call(|cx| {
            let open = self.fs.open(cx, self.fs.root(), Mode::Read).unwrap();
            let mut out = DirBuf::new(1000, 100_000, true);
            let end = self.fs.readdir(cx, open, Cookie::START, &mut out).unwrap();
            assert!(end && out.len() == FILES);
            assert!(out.iter().all(|e| e.attr.is_some_and(|a| a.size == 400)));
            self.fs.close(cx, open).unwrap();
        });
    }

    fn read(&mut self) {
        for i in 0..FILES {
            self.call(|cx| {
                let name = format!("file{i:03}");
                let name = Name::new(name.as_bytes()).unwrap();
                let node = self.fs.lookup(cx, self.fs.root(), name).unwrap().node;
                let open = self.fs.open(cx, node, Mode::Read).unwrap();
                let mut buf = [0; 512];
                assert_eq!(self.fs.read(cx, open, 0, &mut buf).unwrap(), 400);
                assert!(buf[..400].iter().all(|b| *b == i as u8));
                self.fs.close(cx, open).unwrap();
            });
        }
    }
}

/// Creates, list, reads: requests to the device. Attaching is not counted.
fn requests(shape: Shape, ms: u64) -> [u64; 3] {
    let mut bench = Bench::new(shape);
    let creates = bench.counted(|b| b.create(ms));
    bench.reattach();
    let list = bench.counted(Bench::list);
    let reads = bench.counted(Bench::read);
    println!(
        "{}: creates {creates}, list {list}, reads {reads}",
        shape.name()
    );
    [creates, list, reads]
}

/// A create took 70 ms on the paper's machine (Table 2), so that a commit had
/// seven of them.
#[test]
fn with_the_papers_parameters_there_are_no_more_requests_than_in_the_paper() {
    let [creates, list, reads] = requests(PAPER, 70);
    assert!(creates <= 149, "{creates} for 100 creates");
    assert!(list <= 3, "{list} for the list");
    assert!(reads <= 101, "{reads} for 100 reads");
}

#[test]
fn with_todays_there_are_far_fewer() {
    let [creates, list, reads] = requests(TODAY, 0);
    assert!(creates <= 20, "{creates} for 100 creates");
    assert!(list <= 1, "{list} for the list");
    assert!(reads <= 10, "{reads} for 100 reads");
}

/// Returns what attaching reads after a cut of a volume of many files: how many times, how
/// many bytes.
#[expect(clippy::disallowed_methods, reason = "what is measured takes time")]
fn recovery(made: &'static str, files: usize) -> (u64, u64) {
    let size = (files as u64 / 10_000 + 1) * 256 * MIB;
    let mut bench = Bench::new(shape(size).made(made));
    let set = SetAttr::default();
    for dir in 0..files / FILES {
        bench.clock += 100;
        bench.call(|cx| {
            let (fs, dir) = (&bench.fs, format!("directory {dir}"));
            let made = fs.mkdir(cx, fs.root(), Name::new(dir.as_bytes()).unwrap(), &set);
            let dir = made.unwrap().node;
            for i in 0..FILES {
                let file = format!("file {i}");
                let name = Name::new(file.as_bytes()).unwrap();
                let made = fs.create(cx, dir, name, Create::New, &set);
                let (_, open) = made.unwrap();
                fs.write(cx, open, Some(0), &[i as u8; 400]).unwrap();
                fs.close(cx, open).unwrap();
            }
        });
    }
    bench.call(|cx| bench.fs.sync(cx)).unwrap();
    let before = bench.device.counts();
    let began = Instant::now();
    // Not detached: as after a power cut.
    bench.fs = attach(bench.device.clone(), "");
    let took = began.elapsed();
    let after = bench.device.counts();
    let read = after.read_bytes - before.read_bytes;
    let reads = after.reads - before.reads;
    let written = after.write_bytes - before.write_bytes;
    println!(
        "{files} files, '{made}': {reads} reads of {read} bytes, {written} bytes written, {took:?}"
    );
    (reads, read)
}

/// After a cut a logged map is read, and what is read does not grow with the files;
/// one that is not logged takes a walk of the whole name table.
/// `VOLARY_FILES` says how many there are.
#[test]
fn after_a_cut_the_map_comes_from_the_log() {
    let asked = std::env::var("VOLARY_FILES").ok();
    let files = asked.and_then(|n| n.parse().ok()).unwrap_or(8000);
    for [logged, saved] in [["", "map=saved"], ["log=1500k", "log=1500k,map=saved"]] {
        let (reads, read) = recovery(logged, files);
        let (walks, walked) = recovery(saved, files);
        let (log, map) = (6 * MIB, MIB);
        assert!(read < log + map, "{read} bytes with the log");
        // What of the name table is in the log needs no reading.
        if logged.starts_with("log") {
            assert!(reads < walks, "{reads} reads with the log, {walks} without");
            assert!(
                read + MIB < walked,
                "{read} bytes with the log, {walked} without"
            );
        }
    }
}

/// Recovery's work: the log is read once, each page that it has an image of is
/// written twice.
#[test]
fn recovery_from_a_full_log_of_6_mib_reads_it_once() {
    let mut bench = Bench::new(shape(256 * MIB).attached("commit=0"));
    for i in 0..700 {
        bench.call(|cx| {
            let name = format!("dir {i}");
            let name = Name::new(name.as_bytes()).unwrap();
            let set = SetAttr::default();
            bench.fs.mkdir(cx, bench.fs.root(), name, &set).unwrap();
        });
    }
    let log = 6 * MIB;
    let before = bench.device.counts();
    // Not detached: as after a power cut.
    bench.fs = attach(bench.device.clone(), "");
    let after = bench.device.counts();
    let (reads, read) = (
        after.reads - before.reads,
        after.read_bytes - before.read_bytes,
    );
    let (writes, written) = (
        after.writes - before.writes,
        after.write_bytes - before.write_bytes,
    );
    println!("{reads} reads of {read} bytes, {writes} writes of {written} bytes");
    assert!(read >= log, "the log was not read");
    assert!(
        reads < 100 && read < log + 3 * MIB,
        "{reads} reads of {read} bytes"
    );
    assert!(
        writes < 100 && written < MIB,
        "{writes} writes of {written} bytes"
    );
    bench.call(|cx| {
        let name = Name::new(b"dir 699").unwrap();
        bench.fs.lookup(cx, bench.fs.root(), name).unwrap();
    });
    let size = bench.device.geometry().size;
    assert_eq!(size, 256 * MIB);
}
