//! A volume of one of volary's drivers, on a disk whose requests are counted.

use super::cfs::Done;
use super::counted::{Counted, Log, Request};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use volary::block::MemDevice;
use volary::{
    Attach, Cancel, Cookie, Create, Cred, Ctx, DirBuf, Format, Fs, Make, Mode, Name, NodeId,
    OpenId, Options, SetAttr, Time,
};
use volary_core::{BlockDevice, Place};
use volary_sim::{Preset, Spinning};

/// Bytes that a program reads or writes at a time.
const REQUEST: usize = 4096;
/// Bytes for what drivers keep in memory: a machine of the time had a few megabytes.
const MEMORY: u64 = 1 << 20;

/// The volume.
pub(super) struct Mounted {
    dev: Arc<Spinning>,
    log: Log,
    format: &'static dyn Format,
    attach: Attach,
    fs: Fs,
    dirs: BTreeMap<String, NodeId>,
    /// Milliseconds.
    clock: u64,
}

impl Mounted {
    /// Makes a volume as large as a Trident on a disk, and attaches it.
    ///
    /// # Errors
    /// Of the driver.
    pub(super) fn new(disk: &Preset, kind: &str, make: &str, attach: &str) -> Result<Self> {
        let log = Log::default();
        let disk = Counted::new(disk, &log);
        let below = Arc::new(MemDevice::new(Preset::T300.capacity() / 8192 * 8192));
        let dev = Arc::new(Spinning::new(below, disk));
        let how = Make {
            options: Options::parse(make),
            ..Make::default()
        };
        let format = volary::format_of(kind)?;
        format.make(dev.clone(), kind, &how)?;
        let attach = Attach {
            options: Options::parse(attach),
            memory: MEMORY,
            ..Attach::default()
        };
        let fs = format.attach(dev.clone(), &attach)?;
        Ok(Self {
            dev,
            log,
            format,
            attach,
            fs,
            dirs: BTreeMap::new(),
            clock: 0,
        })
    }

    pub(super) fn device(&self) -> &dyn BlockDevice {
        &*self.dev
    }

    /// Returns microseconds since the beginning.
    pub(super) fn now(&self) -> f64 {
        self.dev.now()
    }

    pub(super) fn root(&self) -> NodeId {
        self.fs.root()
    }

    /// Returns how many requests there were so far.
    pub(super) fn done(&self) -> Done {
        let log = self.log.lock();
        let writes = log.iter().filter(|request| request.is_write).count() as u64;
        Done {
            reads: log.len() as u64 - writes,
            writes,
        }
    }

    /// Returns the requests from the `from`-th on.
    pub(super) fn requests(&self, from: usize) -> Vec<Request> {
        self.log.lock().get(from..).unwrap_or_default().to_vec()
    }

    fn call<T>(&self, act: impl FnOnce(&Ctx<'_>, &Fs) -> volary::Result<T>) -> Result<T> {
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let (secs, ms) = (self.clock / 1000, self.clock % 1000);
        let cx = Ctx {
            cred: &cred,
            now: Time::new(400_000_000 + secs as i64, (ms * 1_000_000) as u32),
            cancel: &cancel,
        };
        Ok(act(&cx, &self.fs)?)
    }

    pub(super) fn wait(&mut self, ms: u64) {
        self.clock += ms;
        self.dev.wait(ms as f64 * 1000.0);
    }

    /// Detaches the volume and attaches it again.
    pub(super) fn again(&mut self) -> Result<()> {
        self.call(|cx, fs| fs.detach(cx))?;
        self.dirs.clear();
        self.fs = self.format.attach(self.dev.clone(), &self.attach)?;
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.call(|cx, fs| fs.sync(cx))
    }

    /// Returns a directory, which is made if it is not there.
    pub(super) fn dir(&mut self, dir: &str) -> Result<NodeId> {
        if let Some(node) = self.dirs.get(dir) {
            return Ok(*node);
        }
        let node = self.call(|cx, fs| {
            let name = Name::new(dir.as_bytes())?;
            match fs.lookup(cx, fs.root(), name) {
                Ok(entry) => Ok(entry.node),
                Err(_) => Ok(fs.mkdir(cx, fs.root(), name, &SetAttr::default())?.node),
            }
        })?;
        self.dirs.insert(dir.to_string(), node);
        Ok(node)
    }

    /// Returns the directory of a name, and what is left of it.
    fn place<'a>(&mut self, name: &'a str) -> Result<(NodeId, Name<'a>)> {
        let (dir, name) = name.split_once('>').context("a name without a directory")?;
        let name = Name::new(name.as_bytes()).map_err(volary::Error::from)?;
        Ok((self.dir(dir)?, name))
    }

    pub(super) fn create(&mut self, name: &str, len: usize) -> Result<()> {
        let (dir, name) = self.place(name)?;
        self.call(|cx, fs| {
            let (_, open) = fs.create(cx, dir, name, Create::New, &SetAttr::default())?;
            for at in (0..len).step_by(REQUEST) {
                let part = &[7; REQUEST][..REQUEST.min(len - at)];
                fs.write(cx, open, Some(at as u64), part)?;
            }
            fs.close(cx, open)
        })
    }

    pub(super) fn unlink(&mut self, name: &str) -> Result<()> {
        let (dir, name) = self.place(name)?;
        self.call(|cx, fs| fs.unlink(cx, dir, name))
    }

    /// Returns a file's node, whose properties were read.
    pub(super) fn find(&mut self, name: &str) -> Result<NodeId> {
        let (dir, name) = self.place(name)?;
        self.call(|cx, fs| {
            let node = fs.lookup(cx, dir, name)?.node;
            fs.getattr(cx, node)?;
            Ok(node)
        })
    }

    fn open(&mut self, name: &str) -> Result<OpenId> {
        let node = self.find(name)?;
        self.call(|cx, fs| fs.open(cx, node, Mode::Read))
    }

    pub(super) fn read(&mut self, name: &str) -> Result<usize> {
        let open = self.open(name)?;
        self.call(|cx, fs| {
            let (mut buf, mut all) = ([0; REQUEST], 0);
            loop {
                match fs.read(cx, open, all as u64, &mut buf)? {
                    0 => break,
                    more => all += more,
                }
            }
            fs.close(cx, open)?;
            Ok(all)
        })
    }

    /// Returns the nodes in a directory, whose properties were read.
    pub(super) fn list(&mut self, dir: &str) -> Result<Vec<NodeId>> {
        let node = self.dir(dir)?;
        self.call(|cx, fs| {
            let open = fs.open(cx, node, Mode::Read)?;
            let (mut from, mut all) = (Cookie::START, Vec::new());
            loop {
                let mut buf = DirBuf::new(512, 32 << 10, true);
                let end = fs.readdir(cx, open, from, &mut buf)?;
                all.extend(buf.iter().map(|entry| entry.node));
                match buf.last_cookie() {
                    Some(next) if !end => from = next,
                    _ => break,
                }
            }
            fs.close(cx, open)?;
            for node in &all {
                fs.getattr(cx, *node)?;
            }
            Ok(all)
        })
    }

    /// Returns where the bytes of a file or directory lie: first byte and length of each piece.
    pub(super) fn pieces(&mut self, node: NodeId) -> Result<Vec<(u64, u64)>> {
        let extents = self.call(|cx, fs| {
            let open = fs.open(cx, node, Mode::Read)?;
            let len = fs.getattr(cx, node)?.size;
            let mut extents = Vec::new();
            fs.extents(cx, open, 0, len, &mut extents)?;
            fs.close(cx, open)?;
            Ok(extents)
        })?;
        let place = |extent: &volary_core::Extent| match extent.place {
            Place::Device(at) => Some((at, extent.len)),
            _ => None,
        };
        Ok(extents.iter().filter_map(place).collect())
    }
}
