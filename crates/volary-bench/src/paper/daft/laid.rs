//! A volume that lies as a [`Layout`] says, as a file system and as a device, in the time of a modelled disk.
//!
//! Nobody looks at content, and there is none. Metadata cost what they cost on NTFS as the paper tells of it: who reads
//! in bulk reads the whole MFT once, in sequence; who opens a file needs its record, which comes with its neighbours, and
//! the index of its directory.

use super::layout::{Layout, Place, RECORD};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use volary::{
    Attr, BlockDevice, Caps, Cookie, Ctx, DirBuf, Entry, Extent, ExtentPlace, FileKind, FileSystem,
    Geometry, Kind, Mode, Name, NodeId, OpenId, Prefetch, Result, StatFs, Time,
};
use volary_sim::{Preset, Timed};

/// Host time in microseconds: for a file that is opened, read and closed, for a byte of it, for a request of DAFT.
pub(super) const FILE: f64 = 450.0;
pub(super) const BYTE: f64 = 0.006;
pub(super) const REQUEST: f64 = 60.0;
/// Records of the MFT that NTFS reads at a time, and how many such parts stay in memory: 64 MiB.
pub(super) const TOGETHER: u64 = 64;
const KEPT: usize = 1024;
/// Bytes of the MFT that are read at a time in bulk.
const BULK: u64 = 1 << 20;

/// The disk, which gives no bytes.
pub(super) struct Platter {
    disk: Mutex<Box<dyn Timed>>,
    size: u64,
}

impl Platter {
    /// Returns a disk of this kind with so many bytes.
    pub(super) fn new(disk: &Preset, size: u64) -> Arc<Self> {
        Arc::new(Self {
            disk: Mutex::new(disk.disk()),
            size,
        })
    }

    /// Returns microseconds since the beginning.
    pub(super) fn now(&self) -> f64 {
        self.disk.lock().now()
    }

    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_nanos((self.now() * 1e3) as u64)
    }

    fn wait(&self, time: f64) {
        self.disk.lock().wait(time);
    }

    fn read(&self, (at, len): Place) {
        if len > 0 {
            self.disk.lock().read(at, len);
        }
    }
}

impl BlockDevice for Platter {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.size,
            sector: 512,
            read_only: true,
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read((offset, buf.len() as u64));
        self.wait(REQUEST);
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(Kind::ReadOnly.into())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// The disk chooses the order of what is asked for together.
    fn read_batch(&self, reads: &mut [volary_core::Read<'_>]) {
        let places: Vec<Place> = reads
            .iter()
            .map(|read| (read.offset, read.buf.len() as u64))
            .collect();
        let mut disk = self.disk.lock();
        disk.read_all(&places);
        disk.wait(REQUEST * places.len() as f64);
    }
}

/// What is in memory of the metadata.
#[derive(Default)]
struct Known {
    /// All records.
    has_mft: bool,
    /// Parts of the MFT, by when they were used last, and the other way round.
    parts: BTreeMap<u64, u64>,
    used: BTreeMap<u64, u64>,
    clock: u64,
    indexes: BTreeSet<u64>,
}

/// The file system.
pub(super) struct Laid {
    layout: Arc<Layout>,
    disk: Arc<Platter>,
    known: Mutex<Known>,
    /// The directory of each file.
    dir_of: Vec<u32>,
}

/// What a node's number means.
enum Node {
    Root,
    Dir(usize),
    File(usize),
}

impl Laid {
    pub(super) fn new(layout: &Arc<Layout>, disk: &Arc<Platter>) -> Self {
        let mut dir_of = vec![0; layout.files.len()];
        for (number, dir) in (0..).zip(&layout.dirs) {
            for &file in &dir.files {
                dir_of[file as usize] = number;
            }
        }
        Self {
            layout: layout.clone(),
            disk: disk.clone(),
            known: Mutex::default(),
            dir_of,
        }
    }

    fn id(number: usize) -> Result<NodeId> {
        NodeId::new(number as u64, 0).ok_or_else(|| Kind::Stale.into())
    }

    fn dir_id(dir: usize) -> Result<NodeId> {
        Self::id(2 + dir)
    }

    fn file_id(&self, file: u32) -> Result<NodeId> {
        Self::id(2 + self.layout.dirs.len() + file as usize)
    }

    fn node(&self, ino: u64) -> Result<Node> {
        let (dirs, files) = (self.layout.dirs.len(), self.layout.files.len());
        match usize::try_from(ino).unwrap_or(usize::MAX).checked_sub(2) {
            None if ino == 1 => Ok(Node::Root),
            Some(dir) if dir < dirs => Ok(Node::Dir(dir)),
            Some(file) if file - dirs < files => Ok(Node::File(file - dirs)),
            _ => Err(Kind::Stale.into()),
        }
    }

    fn attr(&self, id: NodeId) -> Result<Attr> {
        let (kind, size) = match self.node(id.ino.get())? {
            Node::File(file) => (FileKind::File, self.layout.files[file].len),
            _ => (FileKind::Dir, 0),
        };
        Ok(Attr {
            node: id,
            kind,
            mode: 0o755,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            size,
            allocated: size,
            io_size: 4096,
            atime: Time::EPOCH,
            mtime: Time::EPOCH,
            ctime: Time::EPOCH,
            btime: None,
            change: 0,
            dos: None,
        })
    }

    fn extents_of(&self, file: usize, out: &mut Vec<Extent>) {
        let mut offset = 0;
        for &(at, len) in &self.layout.files[file].places {
            let place = ExtentPlace::Device(at);
            out.push(Extent { offset, len, place });
            offset += len;
        }
    }

    /// Reads all records, once.
    fn read_mft(&self) {
        if std::mem::replace(&mut self.known.lock().has_mft, true) {
            return;
        }
        for (first, end) in &self.layout.records {
            let [first, end] = [first, end].map(|number| self.layout.mft + number * RECORD);
            for at in (first..end).step_by(BULK as usize) {
                self.disk.read((at, BULK.min(end - at)));
            }
        }
    }

    /// Reads what opening a file needs that is not in memory.
    fn read_metadata(&self, file: usize) {
        let dir = self.dir_of[file] as usize;
        let mut known = self.known.lock();
        if known.has_mft {
            return;
        }
        if known.indexes.insert(dir as u64) {
            self.disk.read(self.layout.dirs[dir].index);
        }
        let part = self.layout.files[file].record / TOGETHER;
        known.clock += 1;
        let now = known.clock;
        match known.parts.insert(part, now) {
            Some(before) => {
                known.used.remove(&before);
            }
            None => self.disk.read((
                self.layout.mft + part * TOGETHER * RECORD,
                TOGETHER * RECORD,
            )),
        }
        known.used.insert(now, part);
        if known.used.len() > KEPT
            && let Some((_, oldest)) = known.used.pop_first()
        {
            known.parts.remove(&oldest);
        }
    }
}

impl FileSystem for Laid {
    fn caps(&self) -> Caps {
        Caps {
            bits: Caps::EXTENTS | Caps::CASE_SENSITIVE | Caps::CASE_KEEPING,
            name_max: 255,
            size_max: u64::MAX,
            time_step: 1,
        }
    }

    fn root(&self) -> NodeId {
        NodeId {
            ino: NonZeroU64::MIN,
            generation: 0,
        }
    }

    fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
        Err(Kind::Unsupported.into())
    }

    fn lookup(&self, _: &Ctx<'_>, _: NodeId, _: Name<'_>) -> Result<Entry> {
        Err(Kind::NotFound.into())
    }

    fn parent(&self, _: &Ctx<'_>, _: NodeId) -> Result<Entry> {
        let node = self.root();
        let attr = self.attr(node)?;
        Ok(Entry { node, attr })
    }

    fn readdir(&self, _: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let from = from.0 as usize;
        let mut number = from;
        match self.node(dir.0)? {
            Node::Root => {
                for dir in from..self.layout.dirs.len() {
                    number += 1;
                    let (id, next) = (Self::dir_id(dir)?, Cookie(number as u64));
                    let name = format!("d{dir:05}");
                    if !out.push(
                        next,
                        id,
                        FileKind::Dir,
                        name.as_bytes(),
                        Some(self.attr(id)?),
                    ) {
                        return Ok(false);
                    }
                }
            }
            Node::Dir(dir) => {
                for &file in self.layout.dirs[dir].files.get(from..).unwrap_or_default() {
                    number += 1;
                    let (id, next) = (self.file_id(file)?, Cookie(number as u64));
                    let name = format!("f{file:06}");
                    if !out.push(
                        next,
                        id,
                        FileKind::File,
                        name.as_bytes(),
                        Some(self.attr(id)?),
                    ) {
                        return Ok(false);
                    }
                    if out.wants_extents(self.layout.files[file as usize].len) {
                        out.set_extents(id, |extents| {
                            self.extents_of(file as usize, extents);
                            Ok(())
                        });
                    }
                }
            }
            Node::File(_) => return Err(Kind::NotDir.into()),
        }
        Ok(true)
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        self.attr(node)
    }

    fn prefetch(&self, _: &Ctx<'_>, _: &[NodeId], _: Prefetch) -> bool {
        self.read_mft();
        true
    }

    fn open(&self, _: &Ctx<'_>, node: NodeId, _: Mode) -> Result<OpenId> {
        if let Node::File(file) = self.node(node.ino.get())? {
            self.read_metadata(file);
            self.disk.wait(FILE);
        }
        Ok(OpenId(node.ino.get()))
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let Node::File(file) = self.node(open.0)? else {
            return Err(Kind::IsDir.into());
        };
        let end = offset.saturating_add(buf.len() as u64);
        let (mut from, mut read) = (0, 0);
        for &(at, len) in &self.layout.files[file].places {
            let (first, last) = (offset.max(from), end.min(from + len));
            if first < last {
                self.disk.read((at + first - from, last - first));
                read += last - first;
            }
            from += len;
        }
        self.disk.wait(BYTE * read as f64);
        Ok(read as usize)
    }

    fn extents(
        &self,
        _: &Ctx<'_>,
        open: OpenId,
        _: u64,
        _: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        if let Node::File(file) = self.node(open.0)? {
            self.extents_of(file, out);
        }
        Ok(())
    }

    fn close(&self, _: &Ctx<'_>, _: OpenId) -> Result<()> {
        Ok(())
    }
}
