//! A volume that volary makes, fills, and wears as months of use do.

use anyhow::{Context, Result};
use std::ops::Range;
use std::sync::Arc;
use volary::block::{MemDevice, Recorder, Request};
use volary::{
    Attach, Cancel, Create, Cred, Ctx, Fs, Make, Mode, Name, NodeId, OpenId, Options, SetAttr, Time,
};
use volary_core::Place;
use volary_sim::rng::Rng;

/// Memory for the drivers' caches: less than a file that is measured.
const MEMORY: u64 = 1 << 20;
/// Bytes that are written at a time where it makes no difference.
const LONG: usize = 1 << 20;
/// Users' files are in so many directories.
const DIRS: usize = 512;
/// Longest of the users' files.
const LONGEST: u64 = 128 << 10;

/// A range of the device: first byte, length.
pub(super) type Stretch = (u64, u64);

/// How a volume is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind<'a> {
    /// The format's name, and the options of mkfs.
    pub(super) format: &'static str,
    pub(super) options: &'a str,
    /// Bytes of the volume, and of a block.
    pub(super) size: u64,
    pub(super) block: u64,
}

/// How a volume is used before it is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wear {
    /// How often it is filled, and files removed.
    pub(super) times: usize,
    /// Files that grow at the same time.
    pub(super) writers: usize,
    /// How many of a hundred files are removed each time.
    pub(super) removed: usize,
    /// Bytes that are free when it is full.
    pub(super) full: u64,
    /// Bytes that are free in the end.
    pub(super) free: u64,
}

/// An attached volume in memory.
pub(super) struct Volume {
    dev: Arc<dyn volary_core::BlockDevice>,
    format: &'static str,
    block: u64,
    fs: Fs,
    cred: Cred,
    cancel: Cancel,
    /// What is written.
    zeros: Vec<u8>,
    /// Files in use: directory and number in the name.
    files: Vec<(NodeId, u64)>,
    dirs: Vec<NodeId>,
    made: u64,
}

impl Volume {
    /// Makes a volume and attaches it.
    ///
    /// # Errors
    /// Of the driver.
    pub(super) fn make(kind: &Kind<'_>) -> Result<Self> {
        let dev: Arc<dyn volary_core::BlockDevice> = Arc::new(MemDevice::new(kind.size));
        let how = Make {
            options: Options::parse(kind.options),
            ..Make::default()
        };
        let format = volary::format_of(kind.format)?;
        format.make(dev.clone(), kind.format, &how)?;
        let fs = format.attach(dev.clone(), &Attach::default())?;
        let (files, dirs) = (Vec::new(), Vec::new());
        let mut volume = Self {
            dev,
            format: kind.format,
            block: kind.block,
            fs,
            cred: Cred::root(),
            cancel: Cancel::new(),
            zeros: vec![0; LONG],
            files,
            dirs,
            made: 0,
        };
        for i in 0..DIRS {
            volume.dirs.push(volume.mkdir(&format!("d{i}"))?);
        }
        Ok(volume)
    }

    fn call<T>(&self, act: impl FnOnce(&Ctx<'_>, &Fs) -> volary::Result<T>) -> Result<T> {
        let cx = Ctx {
            cred: &self.cred,
            now: Time::from_secs(400_000_000),
            cancel: &self.cancel,
        };
        Ok(act(&cx, &self.fs)?)
    }

    fn mkdir(&self, name: &str) -> Result<NodeId> {
        self.call(|cx, fs| {
            let made = fs.mkdir(
                cx,
                fs.root(),
                Name::new(name.as_bytes())?,
                &SetAttr::default(),
            )?;
            Ok(made.node)
        })
    }

    fn create(&self, dir: NodeId, name: &str) -> Result<(NodeId, OpenId)> {
        self.call(|cx, fs| {
            let name = Name::new(name.as_bytes())?;
            let (entry, open) = fs.create(cx, dir, name, Create::New, &SetAttr::default())?;
            Ok((entry.node, open))
        })
    }

    fn write(&self, open: OpenId, bytes: Range<u64>, unit: usize) -> Result<()> {
        let mut at = bytes.start;
        while at < bytes.end {
            let part = &self.zeros[..unit.min((bytes.end - at) as usize)];
            self.call(|cx, fs| fs.write(cx, open, Some(at), part))?;
            at += part.len() as u64;
        }
        Ok(())
    }

    fn close(&self, open: OpenId) -> Result<()> {
        self.call(|cx, fs| fs.close(cx, open))
    }

    fn sync(&self) -> Result<()> {
        self.call(|cx, fs| fs.sync(cx))
    }

    /// Returns bytes that are free.
    fn free(&self) -> Result<u64> {
        Ok(self.call(|cx, fs| fs.statfs(cx))?.free)
    }

    /// Writes files of these lengths, and returns the bytes that their content and its indirect
    /// blocks take.
    ///
    /// # Errors
    /// Of the volume.
    pub(super) fn used_by(&self, files: &[u64]) -> Result<u64> {
        let mut nodes = Vec::new();
        for (i, dir) in (0..files.len()).zip(self.dirs.iter().cycle()) {
            let (node, open) = self.create(*dir, &i.to_string())?;
            self.close(open)?;
            nodes.push(node);
        }
        self.sync()?;
        let before = self.free()?;
        for (&node, &len) in nodes.iter().zip(files) {
            let open = self.call(|cx, fs| fs.open(cx, node, Mode::Write))?;
            self.write(open, 0..len, LONG)?;
            self.close(open)?;
        }
        self.sync()?;
        Ok(before - self.free()?)
    }

    /// Uses the volume as people do: files are made until it is full, some of them growing at
    /// once, block by block, and then many of them go, in any order.
    ///
    /// # Errors
    /// Of the volume.
    pub(super) fn wear(&mut self, wear: &Wear, rng: &mut Rng) -> Result<()> {
        for _ in 0..wear.times {
            self.fill(rng, wear.writers, wear.full)?;
            for _ in 0..self.files.len() * wear.removed / 100 {
                let (dir, number) = self.files.swap_remove(rng.index(self.files.len()));
                let name = number.to_string();
                self.call(|cx, fs| fs.unlink(cx, dir, Name::new(name.as_bytes())?))?;
            }
            self.sync()?;
        }
        self.fill(rng, wear.writers, wear.free)
    }

    /// Makes files until this many bytes are free.
    fn fill(&mut self, rng: &mut Rng, writers: usize, free: u64) -> Result<()> {
        // Of each writer: the file, how long it is, and how long it will be.
        let mut growing: Vec<(OpenId, u64, u64)> = Vec::new();
        let mut steps = 0_u64;
        while !steps.is_multiple_of(256) || self.free()? > free {
            steps += 1;
            if growing.len() < writers {
                let dir = *rng.pick(&self.dirs);
                let (_, open) = self.create(dir, &self.made.to_string())?;
                self.files.push((dir, self.made));
                self.made += 1;
                growing.push((open, 0, any_length(rng).clamp(1, LONGEST)));
            }
            let i = rng.index(growing.len());
            let (open, len, end) = &mut growing[i];
            let until = (*len + self.block).min(*end);
            self.write(*open, *len..until, self.block as usize)?;
            *len = until;
            if until == *end {
                self.close(*open)?;
                growing.swap_remove(i);
            }
        }
        for (open, ..) in growing {
            self.close(open)?;
        }
        self.sync()
    }

    /// Writes a file, block by block, and returns where its blocks lie, in order.
    ///
    /// # Errors
    /// Of the volume.
    pub(super) fn blocks_of_new(&self, len: u64) -> Result<Vec<Stretch>> {
        let (_, open) = self.create(self.dirs[0], "measured")?;
        self.write(open, 0..len, self.block as usize)?;
        self.sync()?;
        let mut extents = Vec::new();
        self.call(|cx, fs| fs.extents(cx, open, 0, len, &mut extents))?;
        self.close(open)?;
        let mut blocks = Vec::new();
        for extent in extents {
            let Place::Device(at) = extent.place else {
                anyhow::bail!("a file that was written has holes");
            };
            let each = (0..extent.len).step_by(self.block as usize);
            blocks.extend(each.map(|from| (at + from, self.block)));
        }
        Ok(blocks)
    }

    /// Writes a file as volary does, by 64 KiB, and reads it with a cold cache: the requests of the
    /// device, reads and writes.
    ///
    /// # Errors
    /// Of the volume.
    pub(super) fn requests_of_new(&mut self, len: u64) -> Result<[Vec<Stretch>; 2]> {
        let recorder = self.attach_recorded()?;
        let dir = self.dirs[0];
        let (node, open) = self.create(dir, "today")?;
        recorder.take();
        self.write(open, 0..len, 64 << 10)?;
        self.sync()?;
        let writes = recorder.take().into_iter().filter_map(|r| match r {
            Request::Write { offset, data } => Some((offset, data.len() as u64)),
            _ => None,
        });
        let writes = writes.collect();
        self.close(open)?;
        let recorder = self.attach_recorded()?;
        let open = self.call(|cx, fs| fs.open(cx, node, Mode::Read))?;
        recorder.take();
        let mut buf = vec![0; 64 << 10];
        for at in (0..len).step_by(buf.len()) {
            self.call(|cx, fs| fs.read(cx, open, at, &mut buf))?;
        }
        let reads = recorder.take().into_iter().filter_map(|r| match r {
            Request::Read { offset, len } => Some((offset, len)),
            _ => None,
        });
        let reads = reads.collect();
        self.close(open)?;
        Ok([reads, writes])
    }

    /// Leaves the volume, and attaches it again with little memory.
    fn attach_recorded(&mut self) -> Result<Arc<Recorder>> {
        self.call(|cx, fs| fs.detach(cx))?;
        let recorder = Arc::new(Recorder::new(self.dev.clone()));
        let how = Attach {
            memory: MEMORY,
            ..Attach::default()
        };
        let format = volary::format_of(self.format)?;
        self.fs = format
            .attach(recorder.clone(), &how)
            .context("attaching again")?;
        Ok(recorder)
    }
}

/// Returns the length below which this part of files is (0 to 1): log-logistic, half of them below
/// 1,950 bytes, so that Table 1 comes out near the paper's. Square roots alone are the same on all machines.
pub(super) fn length(part: f64) -> u64 {
    let odds = part / (1.0 - part);
    (1950.0 * (odds * odds.sqrt()).sqrt()) as u64
}

fn any_length(rng: &mut Rng) -> u64 {
    length((rng.below(1 << 20) as f64 + 0.5) / f64::from(1 << 20))
}
