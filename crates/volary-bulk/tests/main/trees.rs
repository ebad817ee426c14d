//! Volumes of some hundred megabytes for modelled disks: fresh ones and aged ones.

use crate::volumes::Laid;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    BlockDevice, Create, Ctx, Fs, Geometry, Kind, Mode, Name, NodeId, Result, SetAttr, is_zero,
};
use volary_testkit::rng::Rng;
use volary_testkit::volumes::{Shape, as_root, attach, make};

const KIB: u64 = 1 << 10;

/// A sparse memory device: files are zeros here, which take no memory.
struct Hollow(Arc<MemDevice>);

impl BlockDevice for Hollow {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.0.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        match is_zero(data) {
            true => self.0.zero(offset, data.len() as u64),
            false => self.0.write_at(offset, data),
        }
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
    fn is_cached(&self) -> bool {
        true
    }
}

/// Directories in which files are made and removed.
struct Tree<'a> {
    fs: &'a Fs,
    cx: &'a Ctx<'a>,
    dirs: Vec<NodeId>,
    /// Each file's directory and number.
    files: Vec<(NodeId, usize)>,
    made: usize,
    rng: Rng,
}

impl<'a> Tree<'a> {
    fn new(fs: &'a Fs, cx: &'a Ctx<'a>, dirs: usize) -> Self {
        let dir = |i: usize| {
            let text = format!("dir{i}");
            let name = Name::new(text.as_bytes()).expect("a name");
            let made = fs.mkdir(cx, fs.root(), name, &SetAttr::default());
            made.expect("mkdir").node
        };
        Self {
            fs,
            cx,
            dirs: (0..dirs).map(dir).collect(),
            files: Vec::new(),
            made: 0,
            rng: Rng::new(1),
        }
    }

    /// Returns a random length: half of them up to 8 KiB, the largest 256 KiB.
    fn len(&mut self) -> u64 {
        let (least, most) = match self.rng.below(20) {
            0..10 => (1, 8 * KIB),
            10..16 => (8 * KIB, 32 * KIB),
            16..19 => (32 * KIB, 64 * KIB),
            _ => (64 * KIB, 256 * KIB),
        };
        least + self.rng.below(most - least)
    }

    /// Makes a file in any directory, as who names files by hashes does. Returns false once the volume
    /// is full.
    fn make(&mut self, len: u64) -> bool {
        let dir = *self.rng.pick(&self.dirs);
        let text = format!("file{}", self.made);
        let name = Name::new(text.as_bytes()).expect("a name");
        let made = self
            .fs
            .create(self.cx, dir, name, Create::New, &SetAttr::default());
        let (_, open) = match made {
            Err(e) if e == Kind::NoSpace => return false,
            made => made.expect("create"),
        };
        self.files.push((dir, self.made));
        self.made += 1;
        let written = self
            .fs
            .write(self.cx, open, Some(0), &vec![0; len as usize]);
        self.fs.close(self.cx, open).expect("close");
        written.is_ok()
    }

    /// Appends to a file, as logs and mailboxes grow. Returns false once the volume is full.
    fn grow_any(&mut self) -> bool {
        let any = self.rng.index(self.files.len());
        let (dir, number) = self.files[any];
        let text = format!("file{number}");
        let name = Name::new(text.as_bytes()).expect("a name");
        let node = self.fs.lookup(self.cx, dir, name).expect("lookup").node;
        let open = self.fs.open(self.cx, node, Mode::Write).expect("open");
        let end = self.fs.getattr(self.cx, node).expect("getattr").size;
        let more = vec![0; self.rng.below(8 * KIB) as usize];
        let written = self.fs.write(self.cx, open, Some(end), &more);
        self.fs.close(self.cx, open).expect("close");
        written.is_ok()
    }

    fn remove_any(&mut self) {
        let any = self.rng.index(self.files.len());
        let (dir, number) = self.files.swap_remove(any);
        let text = format!("file{number}");
        let name = Name::new(text.as_bytes()).expect("a name");
        self.fs.unlink(self.cx, dir, name).expect("unlink");
    }

    /// Returns how full the volume is, in percent.
    fn taken(&self) -> u64 {
        let stat = self.fs.statfs(self.cx).expect("statfs");
        100 - stat.free * 100 / stat.size.max(1)
    }
}

/// Makes a volume and works on it.
fn grown(shape: Shape, name: &str, act: impl FnOnce(&mut Tree<'_>)) -> Laid {
    let device = Arc::new(MemDevice::new(shape.len));
    let hollow = Arc::new(Hollow(device.clone()));
    make(shape.format(), hollow.clone(), shape.kind, shape.make);
    let fs = attach(shape.format(), hollow, shape.attach).expect("attach");
    as_root(|cx| {
        act(&mut Tree::new(&fs, cx, 64));
        fs.detach(cx).expect("detach");
    });
    Laid {
        name: format!("{}, {name}", shape.name()),
        format: shape.format(),
        device,
    }
}

/// Returns a fresh volume with this many contiguous files.
pub(crate) fn fresh(shape: Shape, files: usize) -> Laid {
    grown(shape, "fresh", |tree| {
        for i in 0..files {
            // The lengths of the DAFT paper's sets, two files of 4 KiB to each longer one.
            let len = [4, 16, 4, 64].get(i % 4).map_or(0, |kib| kib * KIB);
            assert!(tree.make(len), "room for all");
        }
    })
}

/// Full to nine tenths, after files came and went `rounds` times.
pub(crate) fn aged(shape: Shape, rounds: usize) -> Laid {
    grown(shape, "aged", |tree| {
        for round in 0..=rounds {
            while tree.taken() < 97 {
                let len = tree.len();
                if !tree.make(len) || (round > 0 && !tree.grow_any()) {
                    break;
                }
            }
            let least = if round < rounds { 85 } else { 90 };
            while tree.taken() > least {
                tree.remove_any();
            }
        }
    })
}

/// Reads in directory order: opens, reads and closes each file as it is found. Returns how many files and
/// bytes there were.
pub(crate) fn walk(fs: &Fs, cx: &Ctx<'_>) -> (u64, u64) {
    let (mut todo, mut files, mut bytes) = (vec![fs.root()], 0, 0);
    let mut buf = vec![0; 128 << 10];
    while let Some(dir) = todo.pop() {
        let mut below = Vec::new();
        for (node, is_dir) in entries(fs, cx, dir) {
            if is_dir {
                below.push(node);
                continue;
            }
            let open = fs.open(cx, node, Mode::Read).expect("open");
            files += 1;
            let mut at = 0;
            loop {
                match fs.read(cx, open, at, &mut buf).expect("read") {
                    0 => break,
                    more => at += more as u64,
                }
            }
            bytes += at;
            fs.close(cx, open).expect("close");
        }
        todo.extend(below.into_iter().rev());
    }
    (files, bytes)
}

fn entries(fs: &Fs, cx: &Ctx<'_>, dir: NodeId) -> Vec<(NodeId, bool)> {
    use volary_core::{Cookie, DirBuf, FileKind};
    let open = fs.open(cx, dir, Mode::Read).expect("open");
    let (mut from, mut all) = (Cookie::START, Vec::new());
    loop {
        let mut buf = DirBuf::new(512, 32 << 10, true);
        let end = fs.readdir(cx, open, from, &mut buf).expect("readdir");
        all.extend(buf.iter().map(|e| (e.node, e.kind == FileKind::Dir)));
        match buf.last_cookie() {
            Some(next) if !end => from = next,
            _ => break,
        }
    }
    fs.close(cx, open).expect("close");
    all
}
