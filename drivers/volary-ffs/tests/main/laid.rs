//! Where things land on a volume.

use crate::volumes::attach;
use std::sync::Arc;
use volary_core::{BlockDevice, Create, Ctx, Fs, Mode, Name, NodeId, Place, SetAttr};
use volary_testkit::volumes::Shape;

/// A volume, with what tells where things are.
pub(crate) struct Laid<'a> {
    pub(crate) fs: Fs,
    cx: &'a Ctx<'a>,
    fsize: u64,
    pub(crate) fpg: u64,
    pub(crate) ipg: u64,
}

pub(crate) fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).expect("a name")
}

impl<'a> Laid<'a> {
    pub(crate) fn new(shape: &Shape, cx: &'a Ctx<'a>) -> Self {
        Self::on(shape.device(), cx)
    }

    /// On a device that has a volume.
    pub(crate) fn on(dev: Arc<dyn BlockDevice>, cx: &'a Ctx<'a>) -> Self {
        let mut bytes = vec![0; usize::try_from(dev.geometry().size).expect("a size")];
        dev.read_at(0, &mut bytes).expect("read");
        let dumped = crate::dump(&bytes, "superblock").expect("dump");
        let field = |what: &str| {
            let mut lines = dumped.lines().map(|line| line.split_whitespace());
            let value =
                lines.find_map(|mut words| (words.nth(1)? == what).then(|| words.next())?);
            value.expect("a field").parse().expect("a number")
        };
        Self {
            fsize: field("fs_fsize"),
            fpg: field("fs_fpg"),
            ipg: field("fs_ipg"),
            fs: attach(dev, ""),
            cx,
        }
    }

    pub(crate) fn dir(&self, parent: NodeId, text: &str) -> NodeId {
        let made = self
            .fs
            .mkdir(self.cx, parent, name(text), &SetAttr::default());
        made.expect("mkdir").node
    }

    /// Returns a file of so many bytes; `None` if there is no room.
    pub(crate) fn file(&self, dir: NodeId, text: &str, len: u64) -> Option<NodeId> {
        let set = SetAttr::default();
        let made = self.fs.create(self.cx, dir, name(text), Create::New, &set);
        let (entry, open) = made.ok()?;
        let done = self
            .fs
            .write(self.cx, open, Some(0), &vec![7; len as usize]);
        self.fs.close(self.cx, open).expect("close");
        done.ok().map(|_| entry.node)
    }

    /// Returns the fragments where a file's runs begin, with their offsets and lengths in bytes.
    pub(crate) fn runs(&self, node: NodeId) -> Vec<(u64, u64, u64)> {
        let open = self.fs.open(self.cx, node, Mode::Read).expect("open");
        let mut extents = Vec::new();
        let done = self.fs.extents(self.cx, open, 0, u64::MAX, &mut extents);
        done.expect("extents");
        self.fs.close(self.cx, open).expect("close");
        let run = |extent: &volary_core::Extent| match extent.place {
            Place::Device(at) => Some((extent.offset, at / self.fsize, extent.len)),
            _ => None,
        };
        extents.iter().filter_map(run).collect()
    }

    /// Returns the group of each run's start.
    pub(crate) fn groups(&self, node: NodeId) -> Vec<u64> {
        let runs = self.runs(node).into_iter();
        runs.map(|(_, fragment, _)| fragment / self.fpg).collect()
    }

    pub(crate) fn group_of_inode(&self, node: NodeId) -> u64 {
        node.ino.get() / self.ipg
    }
}
