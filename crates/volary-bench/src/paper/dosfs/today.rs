//! Volary as it is today on the paper's disk: its drivers with as much memory for caches as the paper's machine had, and the
//! processor's times of the paper's machine for the same calls.

use super::machine::Machine;
use super::volume::{self, Made, new_dir, new_file, split};
use crate::workload::Files;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::sync::Arc;
use volary::{Cancel, Cred, Ctx, Fs, Mode, Name, NodeId, OpenId, Time};
use volary_sim::Spinning;

/// An attached volume on a disk that takes its time.
pub(super) struct Today {
    machine: Machine,
    format: &'static str,
    fs: Fs,
    disk: Arc<Spinning>,
    cred: Cred,
    cancel: Cancel,
    nodes: HashMap<String, NodeId>,
    opens: HashMap<String, OpenId>,
    bytes: Vec<u8>,
}

impl Today {
    /// Makes the volume.
    ///
    /// # Errors
    /// Of the driver.
    pub(super) fn new(machine: Machine, made: &Made) -> Result<Self> {
        let over = |dev| Arc::new(Spinning::new(dev, machine.disk.disk()));
        let (fs, disk) = volume::make(made, machine.cache, over)?;
        let root = fs.root();
        Ok(Self {
            machine,
            format: made.format,
            fs,
            disk,
            cred: Cred::root(),
            cancel: Cancel::new(),
            nodes: HashMap::from([(String::new(), root)]),
            opens: HashMap::new(),
            bytes: Vec::new(),
        })
    }

    /// Returns microseconds since the beginning.
    pub(super) fn now(&self) -> f64 {
        self.disk.now()
    }

    /// Attaches the volume again, with nothing in memory.
    ///
    /// # Errors
    /// Of the driver.
    pub(super) fn remount(&mut self) -> Result<()> {
        self.call(|cx, fs| fs.detach(cx))?;
        self.fs = volume::attach(self.format, self.disk.clone(), self.machine.cache)?;
        Ok(())
    }

    fn call<T>(&self, act: impl FnOnce(&Ctx<'_>, &Fs) -> volary::Result<T>) -> Result<T> {
        let cx = Ctx {
            cred: &self.cred,
            now: Time::from_secs(750_000_000),
            cancel: &self.cancel,
        };
        Ok(act(&cx, &self.fs)?)
    }

    fn node(&self, path: &str) -> Result<NodeId> {
        self.nodes
            .get(path)
            .copied()
            .with_context(|| format!("{path} is not there"))
    }

    fn opened(&self, path: &str) -> Result<OpenId> {
        self.opens
            .get(path)
            .copied()
            .with_context(|| format!("{path} is not open"))
    }

    /// Lets the processor find a path.
    fn find(&self, path: &str) {
        let components = path.split('/').count() as f64;
        self.disk.wait(self.machine.component * components);
    }

    fn transfer(&mut self, is_write: usize, len: u64) {
        let [call, kib] = [self.machine.call, self.machine.kib]
            .map(|costs| costs.get(is_write).copied().unwrap_or(0.0));
        self.disk
            .wait(call + self.machine.buffer + kib * len as f64 / 1024.0);
        self.bytes.resize(len as usize, 0);
    }
}

impl Files for Today {
    fn mkdir(&mut self, path: &str) -> Result<()> {
        self.find(path);
        self.disk.wait(self.machine.make);
        let (dir, name) = split(path);
        let dir = self.node(dir)?;
        let made = self.call(|cx, fs| new_dir(fs, cx, dir, name))?;
        self.nodes.insert(path.to_owned(), made.node);
        Ok(())
    }

    fn create(&mut self, path: &str) -> Result<()> {
        self.find(path);
        self.disk.wait(self.machine.make);
        let (dir, name) = split(path);
        let dir = self.node(dir)?;
        let (made, open) = self.call(|cx, fs| new_file(fs, cx, dir, name))?;
        self.nodes.insert(path.to_owned(), made.node);
        self.opens.insert(path.to_owned(), open);
        Ok(())
    }

    fn open(&mut self, path: &str) -> Result<()> {
        self.find(path);
        self.disk.wait(self.machine.open);
        let node = self.node(path)?;
        let open = self.call(|cx, fs| fs.open(cx, node, Mode::ReadWrite))?;
        self.opens.insert(path.to_owned(), open);
        Ok(())
    }

    fn close(&mut self, path: &str) -> Result<()> {
        let open = self.opened(path)?;
        self.opens.remove(path);
        self.call(|cx, fs| fs.close(cx, open))
    }

    fn write(&mut self, path: &str, at: u64, len: u64) -> Result<()> {
        self.transfer(1, len);
        let open = self.opened(path)?;
        self.call(|cx, fs| fs.write(cx, open, Some(at), &self.bytes))?;
        Ok(())
    }

    fn read(&mut self, path: &str, at: u64, len: u64) -> Result<()> {
        self.transfer(0, len);
        let open = self.opened(path)?;
        let mut bytes = std::mem::take(&mut self.bytes);
        self.call(|cx, fs| fs.read(cx, open, at, &mut bytes))?;
        self.bytes = bytes;
        Ok(())
    }

    fn stat(&mut self, path: &str) -> Result<()> {
        self.find(path);
        self.disk.wait(self.machine.open);
        let node = self.node(path)?;
        self.call(|cx, fs| fs.getattr(cx, node))?;
        Ok(())
    }

    fn unlink(&mut self, path: &str) -> Result<()> {
        self.find(path);
        self.disk.wait(self.machine.remove);
        let (dir, name) = split(path);
        let dir = self.node(dir)?;
        self.nodes.remove(path);
        self.call(|cx, fs| fs.unlink(cx, dir, Name::new(name.as_bytes())?))
    }

    fn rmdir(&mut self, path: &str) -> Result<()> {
        self.find(path);
        self.disk.wait(self.machine.remove);
        let (dir, name) = split(path);
        let dir = self.node(dir)?;
        self.nodes.remove(path);
        self.call(|cx, fs| fs.rmdir(cx, dir, Name::new(name.as_bytes())?))
    }

    fn compute(&mut self, micros: f64) -> Result<()> {
        self.disk.wait(micros);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.call(|cx, fs| fs.sync(cx))
    }
}
