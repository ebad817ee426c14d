//! A volume on a simulated disk, and the paper's operations on it.

use anyhow::Result;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use volary::block::MemDevice;
use volary::{
    Attach, Cancel, Create, Cred, Ctx, Fs, Make, Mode, Name, NodeId, Options, SetAttr, Time,
};
use volary_cedar::CEDAR;
use volary_cedar::Layout;
use volary_core::{Format, Place};
use volary_sim::rng::Rng;
use volary_sim::{Preset, SECTOR, Spinning};

/// Bytes of a large file.
pub(super) const LARGE: u64 = 1 << 20;
/// Bytes that a program writes at a time.
const WRITE: usize = 4096;
/// Milliseconds from one operation to the next: a commit has seven or eight of them.
const APART: u64 = 70;
/// Small files that are made before each crash.
pub(super) const SINCE_CRASH: usize = 120;

/// The disk, its volume, and a clock that goes on.
pub(super) struct Machine {
    dev: Arc<Spinning>,
    fs: Fs,
    layout: Layout,
    clock: Cell<u64>,
    rng: Rng,
}

impl Machine {
    /// Makes a volume as large as a Trident on a disk, and attaches it.
    pub(super) fn new(disk: &Preset) -> Result<Self> {
        let below = Arc::new(MemDevice::new(Preset::T300.capacity()));
        let dev = Arc::new(Spinning::new(below, disk.disk()));
        let how = Make {
            options: Options::parse("page=512,log=642k"),
            ..Make::default()
        };
        CEDAR.make(dev.clone(), "cedar", &how)?;
        Ok(Self {
            fs: attach(&dev)?,
            layout: Layout::read(&*dev)?,
            dev,
            clock: Cell::new(0),
            rng: Rng::new(1),
        })
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Detaches the volume and attaches it again.
    pub(super) fn again(&mut self) -> Result<()> {
        self.call(|cx, fs| fs.detach(cx))?;
        self.fs = attach(&self.dev)?;
        Ok(())
    }

    /// Pages of the name table for each small file, on a volume that was left and has no others.
    pub(super) fn table_pages_per_file(&self) -> Result<f64> {
        let facts = CEDAR.info(self.dev.clone())?;
        let free = facts.iter().find(|f| f.key == "free in the name table");
        let free = free.and_then(|f| f.number).unwrap_or(0);
        let used = u64::from(self.layout.table_len) - free;
        let files = self.call(|cx, fs| fs.statfs(cx))?;
        Ok(used as f64 / (files.nodes - files.nodes_free) as f64)
    }

    fn call<T>(&self, act: impl FnOnce(&Ctx<'_>, &Fs) -> T) -> T {
        let now = self.clock.get();
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let cx = Ctx {
            cred: &cred,
            now: Time::new(
                1_700_000_000 + (now / 1000) as i64,
                (now % 1000 * 1_000_000) as u32,
            ),
            cancel: &cancel,
        };
        act(&cx, &self.fs)
    }

    /// Returns what a call takes on the disk, which may have turned anywhere before.
    fn timed<T>(
        &mut self,
        act: impl FnOnce(&Ctx<'_>, &Fs) -> volary::Result<T>,
    ) -> Result<(f64, T)> {
        self.clock.set(self.clock.get() + APART);
        self.dev.wait(self.rng.below(100_000) as f64);
        let before = self.dev.now();
        let done = self.call(act)?;
        Ok((self.dev.now() - before, done))
    }

    /// Makes small files, one by one, and gives what all took.
    pub(super) fn create_smalls(&mut self, numbers: Range<usize>) -> Result<f64> {
        let mut all = 0.0;
        for i in numbers {
            all += self.timed(|cx, fs| create(cx, fs, &small(i), 400))?.0;
        }
        Ok(all)
    }

    pub(super) fn delete_smalls(&mut self, numbers: Range<usize>) -> Result<f64> {
        let mut all = 0.0;
        for i in numbers {
            all += self.timed(|cx, fs| delete(cx, fs, &small(i)))?.0;
        }
        Ok(all)
    }

    /// Finds all of so many small files: the name table is in memory then, as the paper takes it to
    /// be for the most.
    pub(super) fn find_smalls(&self, files: usize) -> Result<()> {
        for i in 0..files {
            self.call(|cx, fs| find(cx, fs, &small(i)))?;
        }
        Ok(())
    }

    /// Opens small files, anywhere, and reads them: what opening took on the average, and reading.
    pub(super) fn read_smalls(&mut self, files: usize, times: usize) -> Result<(f64, f64)> {
        let (mut opens, mut reads) = (0.0, 0.0);
        for _ in 0..times {
            let name = small(self.rng.index(files));
            let (open_time, open) = self.timed(|cx, fs| {
                let node = find(cx, fs, &name)?;
                fs.open(cx, node, Mode::Read)
            })?;
            opens += open_time;
            reads += self.timed(|cx, fs| fs.read(cx, open, 0, &mut [0; 512]))?.0;
            self.call(|cx, fs| fs.close(cx, open))?;
        }
        Ok((opens / times as f64, reads / times as f64))
    }

    /// Makes large files, with a commit after each; what one takes with that.
    pub(super) fn create_larges(&mut self, times: usize) -> Result<f64> {
        let mut all = 0.0;
        for i in 0..times {
            all += self
                .timed(|cx, fs| create(cx, fs, &large(i), LARGE as usize))?
                .0;
            all += self.timed(|cx, fs| fs.sync(cx))?.0;
        }
        Ok(all / times as f64)
    }

    pub(super) fn delete_larges(&mut self, numbers: Range<usize>) -> Result<f64> {
        let times = numbers.len() as f64;
        let mut all = 0.0;
        for i in numbers {
            all += self.timed(|cx, fs| delete(cx, fs, &large(i)))?.0;
            all += self.timed(|cx, fs| fs.sync(cx))?.0;
        }
        Ok(all / times)
    }

    /// Reads pages anywhere in large files that are open; what one takes, and the sectors in which
    /// the files lie.
    pub(super) fn read_pages(&mut self, files: usize, times: usize) -> Result<(f64, u64)> {
        self.again()?;
        let open = |i| self.call(|cx, fs| fs.open(cx, find(cx, fs, &large(i))?, Mode::Read));
        let opens = (0..files).map(open).collect::<volary::Result<Vec<_>>>()?;
        let (mut all, mut first, mut end) = (0.0, u64::MAX, 0);
        for open in &opens {
            let mut extents = Vec::new();
            self.call(|cx, fs| fs.extents(cx, *open, 0, LARGE, &mut extents))?;
            // Of the last piece, which lies apart, a page is read once in hundreds of times.
            for extent in extents.iter().filter(|extent| extent.len >= LARGE / 64) {
                if let Place::Device(at) = extent.place {
                    first = first.min(at / SECTOR as u64);
                    end = end.max((at + extent.len) / SECTOR as u64);
                }
            }
        }
        for _ in 0..times {
            let open = opens[self.rng.index(files)];
            let at = (1 + self.rng.below(LARGE / 512 - 1)) * 512;
            all += self.timed(|cx, fs| fs.read(cx, open, at, &mut [0; 512]))?.0;
        }
        for open in opens {
            self.call(|cx, fs| fs.close(cx, open))?;
        }
        Ok((all / times as f64, end.saturating_sub(first)))
    }

    /// Attaches the volume as a power cut leaves it, so often, with small files made since the last
    /// time, from number `first` on: what that takes.
    pub(super) fn crashes(&mut self, times: usize, first: usize) -> Result<f64> {
        let mut all = 0.0;
        for i in 0..times {
            let first = first + i * SINCE_CRASH;
            self.create_smalls(first..first + SINCE_CRASH)?;
            self.call(|cx, fs| fs.sync(cx))?;
            self.dev.wait(self.rng.below(100_000) as f64);
            let before = self.dev.now();
            self.fs = attach(&self.dev)?;
            all += self.dev.now() - before;
        }
        Ok(all / times as f64)
    }
}

fn attach(dev: &Arc<Spinning>) -> volary::Result<Fs> {
    let how = Attach {
        options: Options::parse("data=through,iosize=4k"),
        ..Attach::default()
    };
    CEDAR.attach(dev.clone(), &how)
}

fn small(i: usize) -> String {
    format!("small{i:05}")
}

fn large(i: usize) -> String {
    format!("large{i}")
}

fn find(cx: &Ctx<'_>, fs: &Fs, name: &str) -> volary::Result<NodeId> {
    Ok(fs.lookup(cx, fs.root(), Name::new(name.as_bytes())?)?.node)
}

fn create(cx: &Ctx<'_>, fs: &Fs, name: &str, len: usize) -> volary::Result<()> {
    let name = Name::new(name.as_bytes())?;
    let (_, open) = fs.create(cx, fs.root(), name, Create::New, &SetAttr::default())?;
    let mut done = 0;
    while done < len {
        let part = [7; WRITE];
        let part = &part[..WRITE.min(len - done)];
        done += fs.write(cx, open, Some(done as u64), part)? as usize - done;
    }
    fs.close(cx, open)
}

fn delete(cx: &Ctx<'_>, fs: &Fs, name: &str) -> volary::Result<()> {
    fs.unlink(cx, fs.root(), Name::new(name.as_bytes())?)
}
