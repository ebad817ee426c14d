//! A volume, and short words for what the tests do with it.

use std::path::Path;
use volary_core::{
    Attr, Cancel, Cookie, Create, Cred, Ctx, DirBuf, Entry, Fs, Mode, Name, NodeId, OpenId, Result,
    SetAttr, Time,
};
use volary_host::HostOptions;

static NEVER: Cancel = Cancel::new();

pub(crate) struct Side {
    pub(crate) fs: Fs,
    pub(crate) cred: Cred,
}

pub(crate) fn name(bytes: &[u8]) -> Name<'_> {
    Name::new(bytes).expect("a name")
}

impl Side {
    pub(crate) fn new(path: &Path, by_handle: bool) -> Self {
        let options = HostOptions {
            by_handle,
            ..HostOptions::default()
        };
        let fs = volary_host::attach(path, &options).expect("the directory");
        let cred = Cred::root();
        Self { fs, cred }
    }

    pub(crate) fn cx(&self) -> Ctx<'_> {
        Ctx {
            cred: &self.cred,
            now: Time::EPOCH,
            cancel: &NEVER,
        }
    }

    pub(crate) fn root(&self) -> NodeId {
        self.fs.root()
    }

    pub(crate) fn lookup(&self, dir: NodeId, bytes: &[u8]) -> Result<Entry> {
        self.fs.lookup(&self.cx(), dir, name(bytes))
    }

    pub(crate) fn find(&self, dir: NodeId, bytes: &[u8]) -> NodeId {
        self.lookup(dir, bytes).expect("lookup").node
    }

    pub(crate) fn attr(&self, node: NodeId) -> Result<Attr> {
        self.fs.getattr(&self.cx(), node)
    }

    pub(crate) fn create(&self, dir: NodeId, bytes: &[u8], how: Create) -> Result<(Entry, OpenId)> {
        let set = SetAttr::mode(0o644);
        self.fs.create(&self.cx(), dir, name(bytes), how, &set)
    }

    pub(crate) fn file(&self, dir: NodeId, bytes: &[u8]) -> NodeId {
        let (entry, open) = self.create(dir, bytes, Create::New).expect("create");
        self.close(open);
        entry.node
    }

    pub(crate) fn dir(&self, dir: NodeId, bytes: &[u8]) -> NodeId {
        let set = SetAttr::mode(0o755);
        let made = self.fs.mkdir(&self.cx(), dir, name(bytes), &set);
        made.expect("mkdir").node
    }

    pub(crate) fn close(&self, open: OpenId) {
        self.fs.close(&self.cx(), open).expect("close");
    }

    /// Returns the content of a file, up to 100 bytes.
    pub(crate) fn content(&self, node: NodeId) -> Result<Vec<u8>> {
        let open = self.fs.open(&self.cx(), node, Mode::Read)?;
        let mut room = vec![0; 100];
        let got = self.fs.read(&self.cx(), open, 0, &mut room);
        self.close(open);
        room.truncate(got?);
        Ok(room)
    }

    /// Returns the names in a directory, sorted.
    pub(crate) fn names(&self, dir: NodeId) -> Result<Vec<Vec<u8>>> {
        let all = self.listed(dir)?;
        Ok(all.into_iter().map(|(name, _)| name).collect())
    }

    /// Returns the names in a directory, sorted, and their nodes.
    pub(crate) fn listed(&self, dir: NodeId) -> Result<Vec<(Vec<u8>, NodeId)>> {
        let open = self.fs.open(&self.cx(), dir, Mode::Read)?;
        let mut out = DirBuf::new(100_000, 1 << 24, true);
        let end = self.fs.readdir(&self.cx(), open, Cookie::START, &mut out);
        self.close(open);
        assert!(end?, "more than there is room for");
        let mut names: Vec<_> = out.iter().map(|e| (e.name.to_vec(), e.node)).collect();
        names.sort();
        Ok(names)
    }
}
