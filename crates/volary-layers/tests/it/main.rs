//! Each layer over the in-memory driver.

mod alarm;
mod callers;
mod count_trace;
mod crypt;
mod fault;
mod idmap;
mod munge;
mod names;
mod quota;
mod readonly;
mod subtree;
mod transparent;
mod words;

use std::sync::Arc;
use volary_core::{
    Cancel, Cookie, Create, Cred, Ctx, DirBuf, FileSystem, Fs, Kind, Mode, Name, NodeId, Result,
    SetAttr, Time,
};
use volary_mem::{Mem, MemOptions};

static NEVER: Cancel = Cancel::new();

/// A volume with a way to call it.
struct Rig {
    fs: Fs,
    cred: Cred,
    now: Time,
}

fn memory() -> Fs {
    Mem::attach(MemOptions::default(), Time::EPOCH).unwrap()
}

impl Rig {
    fn new(fs: impl FileSystem + 'static) -> Self {
        Self::over(Arc::new(fs))
    }

    fn over(fs: Fs) -> Self {
        let cred = Cred::root();
        let now = Time::from_secs(1000);
        Self { fs, cred, now }
    }

    fn cx(&self) -> Ctx<'_> {
        Ctx {
            cred: &self.cred,
            now: self.now,
            cancel: &NEVER,
        }
    }

    fn dir(&self, dir: NodeId, name: &str) -> NodeId {
        let made = self.fs.mkdir(&self.cx(), dir, n(name), &SetAttr::default());
        made.unwrap().node
    }

    fn file(&self, dir: NodeId, name: &str, content: &[u8]) -> NodeId {
        let set = SetAttr::default();
        let (entry, open) = self
            .fs
            .create(&self.cx(), dir, n(name), Create::New, &set)
            .unwrap();
        self.fs.write(&self.cx(), open, Some(0), content).unwrap();
        self.fs.close(&self.cx(), open).unwrap();
        entry.node
    }

    fn find(&self, dir: NodeId, name: &str) -> Result<NodeId> {
        Ok(self.fs.lookup(&self.cx(), dir, n(name))?.node)
    }

    fn read(&self, node: NodeId) -> Result<Vec<u8>> {
        let open = self.fs.open(&self.cx(), node, Mode::Read)?;
        let mut buf = vec![0; 1000];
        let len = self.fs.read(&self.cx(), open, 0, &mut buf);
        self.fs.close(&self.cx(), open)?;
        buf.truncate(len?);
        Ok(buf)
    }

    fn list(&self, dir: NodeId) -> DirBuf {
        let open = self.fs.open(&self.cx(), dir, Mode::Read).unwrap();
        let mut out = DirBuf::new(100, 10_000, true);
        let end = self
            .fs
            .readdir(&self.cx(), open, Cookie::START, &mut out)
            .unwrap();
        assert!(end);
        self.fs.close(&self.cx(), open).unwrap();
        out
    }

    fn kind<T>(result: Result<T>) -> Option<Kind> {
        result.err().map(|e| e.kind())
    }
}

fn n(name: &str) -> Name<'_> {
    Name::new(name.as_bytes()).unwrap()
}
