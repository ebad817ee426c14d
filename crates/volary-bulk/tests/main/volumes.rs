//! Volumes to read, and what a run makes of them.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_bulk::{BulkFileRead, Consumer, File, Options, Part, Source, Summary, Way};
use volary_cedar::CEDAR;
use volary_core::{
    BlockDevice, Caps, Create, Cred, Ctx, FileKind, Format, Fs, Kind, Mode, Name, NodeId, SetAttr,
};
use volary_ext4::EXT4;
use volary_fat::FAT;
use volary_ffs::FFS;
use volary_iso9660::ISO9660;
use volary_ntfs::NTFS;
use volary_session::{Session, Volume, VolumeOptions};
use volary_testkit::oracle::{self, GENISOIMAGE, MKE2FS, ntfs};
use volary_testkit::readable::Content;
use volary_testkit::rng::pattern;
use volary_testkit::turns::{Turns, age};
use volary_testkit::volumes::{NOW, Shape, as_root, attach, attach_read_only};

/// A volume on a device.
pub(crate) struct Laid {
    pub(crate) name: String,
    pub(crate) format: &'static dyn Format,
    pub(crate) device: Arc<MemDevice>,
}

impl Laid {
    /// Returns what an ordinary walk finds.
    pub(crate) fn content(&self) -> Content {
        let fs = self.attach();
        as_root(|cx| Content::read(&fs, cx)).expect("an ordinary walk")
    }

    pub(crate) fn attach(&self) -> Fs {
        attach_read_only(self.format, self.device.clone(), "").expect("attach")
    }

    pub(crate) fn source(&self) -> Source {
        self.source_on(self.device.clone())
    }

    /// The driver reads what there is; the engine, what `device` gives.
    pub(crate) fn source_on(&self, device: Arc<dyn BlockDevice>) -> Source {
        Source::new(session(self.attach())).on(device)
    }
}

pub(crate) fn session(fs: Fs) -> Session {
    let options = VolumeOptions {
        trust: true,
        ..VolumeOptions::new("test", || NOW)
    };
    Volume::new(fs, options).session(Cred::root())
}

/// Files of these lengths are on each volume, some of them in another directory.
const LENGTHS: [usize; 9] = [0, 1, 511, 512, 4096, 5000, 65_536, 100_001, 700_000];

fn make_file(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, name: &str, bytes: &[u8]) {
    let name = Name::new(name.as_bytes()).expect("a name");
    let (_, open) = fs
        .create(cx, dir, name, Create::New, &SetAttr::default())
        .expect("create");
    fs.write(cx, open, Some(0), bytes).expect("write");
    fs.close(cx, open).expect("close");
}

/// Files of all lengths, fragmented ones, and what else the volume can have.
fn fill(fs: &Fs, cx: &Ctx<'_>, turns: Turns) {
    let root = fs.root();
    let dir = match fs.mkdir(
        cx,
        root,
        Name::new(b"dir").expect("a name"),
        &SetAttr::default(),
    ) {
        Ok(entry) => entry.node,
        Err(_) => root,
    };
    for (len, i) in LENGTHS.into_iter().zip(0..) {
        let to = if i % 2 == 0 { root } else { dir };
        make_file(fs, cx, to, &format!("len{len}"), &pattern(i, len));
    }
    turns.run(fs, cx, dir);
    let name = |text: &'static str| Name::new(text.as_bytes()).expect("a name");
    if fs.caps().has(Caps::SYMLINKS) {
        fs.symlink(cx, dir, name("symlink"), b"len1", &SetAttr::default())
            .expect("symlink");
    }
    if fs.caps().has(Caps::HARD_LINKS) {
        let first = fs.lookup(cx, root, name("len4096")).expect("lookup").node;
        fs.link(cx, first, dir, name("link")).expect("link");
    }
    if fs.caps().has(Caps::HOLES) {
        let made = fs.create(cx, dir, name("holes"), Create::New, &SetAttr::default());
        let (_, open) = made.expect("create");
        for at in [100_000, 300_000, 2_000_000] {
            fs.write(cx, open, Some(at), b"between holes")
                .expect("write");
        }
        fs.close(cx, open).expect("close");
    }
}

/// Returns a volume with so many small files besides.
pub(crate) fn crowded(shape: Shape, turns: Turns, small: u64) -> Laid {
    let laid = laid(shape, turns, false);
    let fs = attach(shape.format(), laid.device.clone(), shape.attach).expect("attach");
    as_root(|cx| {
        let name = Name::new(b"small").expect("a name");
        let made = fs.mkdir(cx, fs.root(), name, &SetAttr::default());
        Turns::new(small, 1, 100).run(&fs, cx, made.expect("mkdir").node);
        fs.detach(cx).expect("detach");
    });
    laid
}

/// Returns a volume of this shape, aged first if `is_aged`.
pub(crate) fn laid(shape: Shape, turns: Turns, is_aged: bool) -> Laid {
    let device = shape.device();
    let fs = attach(shape.format(), device.clone(), shape.attach).expect("attach");
    as_root(|cx| {
        if is_aged {
            let old = Name::new(b"old").expect("a name");
            let made = fs.mkdir(cx, fs.root(), old, &SetAttr::default());
            age(&fs, cx, made.map_or(fs.root(), |e| e.node), 4096);
        }
        fill(&fs, cx, turns);
        fs.detach(cx).expect("detach");
    });
    let age = if is_aged { ", aged" } else { "" };
    Laid {
        name: format!("{}{age}", shape.name()),
        format: shape.format(),
        device,
    }
}

/// Shapes of the formats that we make.
pub(crate) const SHAPES: [Shape; 5] = [
    Shape::new(&FAT, "fat12", 8 << 20),
    Shape::new(&FAT, "fat32", 40 << 20),
    Shape::new(&CEDAR, "cedar", 8 << 20),
    Shape::new(&FFS, "ffs1", 16 << 20),
    Shape::new(&FFS, "ffs2", 16 << 20),
];

/// Files in many fragments.
pub(crate) const TURNS: Turns = Turns::new(12, 20, 4096);

/// Volumes that others make of a tree; those whose programs are missing are left out.
pub(crate) fn made_by_others() -> Vec<Laid> {
    let dir = tempfile::tempdir().expect("a directory");
    let tree = dir.path().join("tree");
    grow(&tree);
    let image = dir.path().join("image");
    let mut all = Vec::new();
    for kind in ["ext2", "ext4"] {
        if oracle::have(&[MKE2FS]) {
            let mut command = MKE2FS.command();
            command.args(["-q", "-F", "-t", kind, "-O", "^has_journal", "-d"]);
            let made = command
                .arg(&tree)
                .arg(&image)
                .arg("16M")
                .output()
                .expect("mke2fs");
            assert!(made.status.success(), "{made:?}");
            all.push(read(kind, &EXT4, &image));
        }
    }
    if oracle::have(&[GENISOIMAGE]) {
        let made = GENISOIMAGE
            .command()
            .args(["-quiet", "-R", "-o"])
            .arg(&image)
            .arg(&tree)
            .output();
        let made = made.expect("genisoimage");
        assert!(made.status.success(), "{made:?}");
        all.push(read("iso9660", &ISO9660, &image));
    }
    for (name, options) in [("ntfs", "umask=022"), ("ntfs, compressed", "compression")] {
        if ntfs::can_mount() {
            ntfs::make(&image, 16 << 20, "-C");
            let mounted = ntfs::Mounted::new(&image, &dir.path().join("place"), options);
            let mut copy = Command::new("cp");
            let copied = copy
                .arg("-r")
                .arg(tree.join("."))
                .arg(mounted.dir())
                .output();
            drop(mounted);
            assert!(copied.expect("cp").status.success());
            all.push(read(name, &NTFS, &image));
        }
    }
    all
}

/// Returns a volume whose directories, with empty files, were made in turns: each lies next to those of other
/// parents. So many are in the root, and so many in each of these.
pub(crate) fn woven_directories(shape: Shape, (tops, below): (u64, u64)) -> Laid {
    let device = shape.device();
    let fs = attach(shape.format(), device.clone(), shape.attach).expect("attach");
    as_root(|cx| {
        let make_dir = |dir, number: u64| {
            let text = number.to_string();
            let name = Name::new(text.as_bytes()).expect("a name");
            let made = fs.mkdir(cx, dir, name, &SetAttr::default());
            made.expect("mkdir").node
        };
        let all: Vec<NodeId> = (0..tops).map(|i| make_dir(fs.root(), i)).collect();
        for i in 0..below {
            for top in &all {
                let dir = make_dir(*top, i);
                for j in 0..20 {
                    make_file(&fs, cx, dir, &format!("{j}"), &[]);
                }
            }
        }
        fs.detach(cx).expect("detach");
    });
    Laid {
        name: shape.name(),
        format: shape.format(),
        device,
    }
}

/// Returns an ISO 9660 volume of many directories in many directories; none where `genisoimage` is missing.
pub(crate) fn iso_of_directories() -> Option<Laid> {
    if !oracle::have(&[GENISOIMAGE]) {
        return None;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (tree, image) = (dir.path().join("tree"), dir.path().join("image"));
    for i in 0..40 {
        for j in 0..3 {
            let below = tree.join(format!("{i}/{j}"));
            std::fs::create_dir_all(&below).expect("mkdir");
            std::fs::write(below.join("empty"), []).expect("write");
        }
    }
    let mut command = GENISOIMAGE.command();
    let made = command.args(["-quiet", "-R", "-o"]).args([&image, &tree]);
    let made = made.output().expect("genisoimage");
    assert!(made.status.success(), "{made:?}");
    Some(read("iso9660", &ISO9660, &image))
}

/// Volumes of ext4 and NTFS of many directories with empty files; those whose programs are missing are
/// left out.
pub(crate) fn many_directories() -> Vec<Laid> {
    let dir = tempfile::tempdir().expect("a directory");
    let (tree, image) = (dir.path().join("tree"), dir.path().join("image"));
    let grow = |tree: &Path| {
        for i in 0..40 {
            let below = tree.join(format!("{i}"));
            std::fs::create_dir_all(&below).expect("mkdir");
            for j in 0..60 {
                std::fs::write(below.join(format!("{j}")), []).expect("write");
            }
        }
    };
    let mut all = Vec::new();
    if oracle::have(&[MKE2FS]) {
        grow(&tree);
        let mut command = MKE2FS.command();
        command.args(["-q", "-F", "-t", "ext4", "-d"]);
        let made = command.arg(&tree).arg(&image).arg("32M").output();
        let made = made.expect("mke2fs");
        assert!(made.status.success(), "{made:?}");
        all.push(read("ext4", &EXT4, &image));
    }
    if ntfs::can_mount() {
        ntfs::make(&image, 32 << 20, "");
        let mounted = ntfs::Mounted::new(&image, &dir.path().join("place"), "umask=022");
        grow(mounted.dir());
        drop(mounted);
        all.push(read("ntfs", &NTFS, &image));
    }
    all
}

fn read(name: &str, format: &'static dyn Format, image: &Path) -> Laid {
    let bytes = std::fs::read(image).expect("an image");
    Laid {
        name: name.into(),
        format,
        device: Arc::new(MemDevice::from_vec(bytes)),
    }
}

/// A tree of the host.
pub(crate) fn grow(tree: &Path) {
    use std::os::unix::fs::FileExt;
    std::fs::create_dir_all(tree.join("dir/deep")).expect("mkdir");
    for (len, i) in LENGTHS.into_iter().zip(0..) {
        let to = ["", "dir", "dir/deep"][i as usize % 3];
        std::fs::write(tree.join(to).join(format!("len{len}")), pattern(i, len)).expect("write");
    }
    let holes = std::fs::File::create(tree.join("holes")).expect("create");
    for at in [0, 500_000, 2_000_000] {
        holes.write_at(b"between holes", at).expect("write");
    }
    std::os::unix::fs::symlink("len1", tree.join("symlink")).expect("symlink");
    std::fs::hard_link(tree.join("len0"), tree.join("dir/link")).expect("link");
}

/// What a run delivered.
#[derive(Debug, Default)]
pub(crate) struct Got {
    /// As an ordinary walk would have it: files, and what symlinks lead to.
    pub(crate) content: Content,
    pub(crate) failed: BTreeMap<Vec<u8>, Kind>,
    pub(crate) ways: BTreeMap<Vec<u8>, Way>,
    /// Paths of files in the order in which they came.
    pub(crate) order: Vec<Vec<u8>>,
    pub(crate) summary: Summary,
}

/// Gathers what is delivered, and holds if it is told in the right form.
struct Gather<'a> {
    sessions: Vec<&'a Session>,
    got: Mutex<Got>,
}

impl Consumer for Gather<'_> {
    fn take(&self, file: &File<'_>, part: Part<'_>) -> ControlFlow<()> {
        let mut got = self.got.lock();
        let path = file
            .path
            .strip_prefix(b"/")
            .expect("from the root")
            .to_vec();
        let size = file.attr.map_or(0, |attr| attr.size);
        let all = &mut got.content.0;
        match part {
            Part::Node => {
                let attr = file.attr.expect("attributes");
                if attr.kind == FileKind::Symlink {
                    let session = self.sessions[file.source];
                    all.insert(path, session.readlink(attr.node).expect("readlink"));
                }
                return ControlFlow::Continue(());
            }
            Part::Whole(bytes) => {
                assert_eq!(bytes.len() as u64, size, "size of {}", path.escape_ascii());
                check_holes(file, bytes);
                let twice = all.insert(path.clone(), bytes.to_vec());
                assert!(twice.is_none(), "{} comes twice", path.escape_ascii());
            }
            Part::Begin => assert!(all.insert(path.clone(), Vec::new()).is_none()),
            Part::Chunk { offset, bytes } => {
                let so_far = all.get_mut(&path).expect("it has begun");
                assert_eq!(so_far.len() as u64, offset);
                so_far.extend_from_slice(bytes);
                return ControlFlow::Continue(());
            }
            Part::Hole(range) => {
                let so_far = all.get_mut(&path).expect("it has begun");
                assert_eq!(so_far.len() as u64, range.offset);
                so_far.resize(so_far.len() + range.len as usize, 0);
                return ControlFlow::Continue(());
            }
            Part::End => {
                assert_eq!(all[&path].len() as u64, size);
                check_holes(file, &all[&path]);
                return ControlFlow::Continue(());
            }
            Part::Failed(e) => {
                all.remove(&path);
                got.order.retain(|begun| *begun != path);
                got.failed.insert(path, e.kind());
                return ControlFlow::Continue(());
            }
        }
        got.ways.insert(path.clone(), file.way);
        got.order.push(path);
        ControlFlow::Continue(())
    }
}

/// Holds if there are zeros wherever there are no data.
fn check_holes(file: &File<'_>, bytes: &[u8]) {
    let Some(data) = file.data else { return };
    let mut at = 0;
    for range in data {
        let from = range.offset as usize;
        assert!(
            bytes[at..from].iter().all(|b| *b == 0),
            "no zeros before {from}"
        );
        at = from + range.len as usize;
    }
    assert!(bytes[at..].iter().all(|b| *b == 0), "no zeros from {at} on");
}

/// Returns a run over sources, with a whole look at what it delivers.
pub(crate) fn run(options: Options, sources: &[Source], sessions: &[&Session]) -> Got {
    let gather = Gather {
        sessions: sessions.to_vec(),
        got: Mutex::default(),
    };
    let memory = options.memory;
    let summary = BulkFileRead::new(options)
        .expect("options")
        .run(sources, &gather);
    assert!(summary.peak <= memory, "{} of {memory} bytes", summary.peak);
    let mut got = gather.got.into_inner();
    assert_eq!(summary.files, got.order.len() as u64);
    assert_eq!(summary.failed, got.failed.len() as u64);
    got.summary = summary;
    got
}

/// Returns a run over one volume.
pub(crate) fn run_one(options: Options, laid: &Laid) -> Got {
    let fs = laid.attach();
    let for_links = session(fs);
    run(options, &[laid.source()], &[&for_links])
}

/// Reads one file through the driver.
pub(crate) fn one(fs: &Fs, node: NodeId) -> Vec<u8> {
    as_root(|cx| {
        let open = fs.open(cx, node, Mode::Read).expect("open");
        let size = fs.getattr(cx, node).expect("getattr").size;
        let mut bytes = vec![0; size as usize];
        let mut at = 0;
        while at < bytes.len() {
            at += fs
                .read(cx, open, at as u64, &mut bytes[at..])
                .expect("read");
        }
        fs.close(cx, open).expect("close");
        bytes
    })
}
