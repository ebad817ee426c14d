//! What we write, read by others: Linux's ufs, the Sleuth Kit, dissect.ffs.

use crate::lists::without_the_examiners;
use crate::volumes::{attach, clean, shape};
use std::path::Path;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    BlockDevice, Create, Ctx, FileKind, Fs, Mode, Name, NodeId, RenameFlags, Result, SetAttr,
    SetTime, Time,
};
use volary_testkit::oracle::host::write_sparse;
use volary_testkit::oracle::{dissect, have, python, sleuthkit, vm};
use volary_testkit::rng::{Rng, pattern};
use volary_testkit::tree::{Leaf, Tree};
use volary_testkit::volumes::{Shape, as_root};

const MIB: u64 = 1 << 20;

const SHAPES: &[Shape] = &[
    shape("ffs1", 24 * MIB).made("nsect=33,ntrak=5,trackskew=3,maxcontig=1,rotdelay=4"),
    shape("ffs1", 24 * MIB).made("old,order=big,nsect=32,ntrak=8,rotdelay=4"),
    shape("ffs1", 24 * MIB),
    shape("ffs1", 24 * MIB).made("order=big,block=4096,fragment=1024,maxbpg=64"),
    shape("ffs2", 24 * MIB),
    shape("ffs2", 32 * MIB).made("order=big,block=16384,fragment=2048"),
    shape("ffs1", 24 * MIB).made("old"),
    shape("ffs1", 24 * MIB).made("old,order=big"),
];

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).expect("a name")
}

/// A volume's life: files grow by odd steps, are cut, move and go, for some time.
struct Life<'a> {
    fs: &'a Fs,
    cx: &'a Ctx<'a>,
    rng: Rng,
    dirs: Vec<NodeId>,
    files: Vec<(NodeId, String)>,
    made: u32,
}

impl Life<'_> {
    fn step(&mut self) -> Result<()> {
        let dir = *self.rng.pick(&self.dirs);
        self.made += 1;
        let text = format!("{}-{}", "n".repeat(self.made as usize * 7 % 60), self.made);
        let set = self.some_attributes();
        match self.rng.below(13) {
            0 => {
                let made = self.fs.mkdir(self.cx, dir, name(&text), &set)?;
                self.dirs.push(made.node);
            }
            1 => {
                let target = "t/".repeat(self.rng.index(90) + 1);
                let target = target.as_bytes();
                self.fs.symlink(self.cx, dir, name(&text), target, &set)?;
            }
            2..=5 => {
                let made = self
                    .fs
                    .create(self.cx, dir, name(&text), Create::New, &set)?;
                self.fs.close(self.cx, made.1)?;
                self.files.push((dir, text));
                self.write(self.files.len() - 1)?;
            }
            _ if self.files.is_empty() => {}
            6 => {
                let (from, old) = self.take();
                let replace = RenameFlags::REPLACE;
                self.fs
                    .rename(self.cx, from, name(&old), dir, name(&text), replace)?;
                self.files.push((dir, text));
            }
            7 => {
                let (from, old) = self.take();
                self.fs.unlink(self.cx, from, name(&old))?;
            }
            8 => {
                let at = self.rng.index(self.files.len());
                let node = self.node(at)?;
                self.fs.link(self.cx, node, dir, name(&text))?;
                self.files.push((dir, text));
            }
            9 => {
                let at = self.rng.index(self.files.len());
                let size = self.rng.below(150_000);
                let node = self.node(at)?;
                self.fs.setattr(self.cx, node, &SetAttr::size(size))?;
            }
            10 => {
                let at = self.rng.index(self.files.len());
                let node = self.node(at)?;
                self.fs.setattr(self.cx, node, &set)?;
            }
            _ => {
                let at = self.rng.index(self.files.len());
                self.write(at)?;
            }
        }
        Ok(())
    }

    /// Returns what every format keeps: owners of 16 bits, times of 32.
    fn some_attributes(&mut self) -> SetAttr {
        let mut time = || {
            let nanos = self.rng.below(1_000_000) as u32 * 1000;
            SetTime::To(Time::new(self.rng.below(1 << 31) as i64, nanos))
        };
        let (atime, mtime) = (time(), time());
        let mut number = |most| self.rng.below(most) as u32;
        SetAttr {
            atime: Some(atime),
            mtime: Some(mtime),
            ..SetAttr::owned(number(1 << 12), number(1 << 16), number(1 << 16))
        }
    }

    fn take(&mut self) -> (NodeId, String) {
        let at = self.rng.index(self.files.len());
        self.files.swap_remove(at)
    }

    fn node(&self, at: usize) -> Result<NodeId> {
        let (dir, text) = &self.files[at];
        Ok(self.fs.lookup(self.cx, *dir, name(text))?.node)
    }

    fn write(&mut self, at: usize) -> Result<()> {
        let node = self.node(at)?;
        let most = if self.rng.one_in(20) { 700_000 } else { 9000 };
        let (offset, len) = (self.rng.below(most), self.rng.index(most as usize));
        let offset = Some(offset).filter(|_| self.rng.one_in(3));
        let open = self.fs.open(self.cx, node, Mode::ReadWrite)?;
        let content = pattern(self.made.into(), len);
        self.fs.write(self.cx, open, offset, &content)?;
        self.fs.close(self.cx, open)
    }
}

/// Returns an image that has lived, and what it holds.
fn lived(shape: &Shape, seed: u64) -> (Vec<u8>, Tree) {
    let dev = shape.device();
    let fs = attach(dev.clone(), "");
    let tree = as_root(|cx| {
        let mut life = Life {
            fs: &fs,
            cx,
            rng: Rng::new(seed),
            dirs: vec![fs.root()],
            files: Vec::new(),
            made: 0,
        };
        for step in 0..600 {
            life.step().expect("a step");
            if step % 100 == 99 {
                fs.sync(cx).expect("sync");
            }
        }
        let tree = Tree::read(&fs, cx).expect("our tree");
        fs.detach(cx).expect("detach");
        tree
    });
    clean(dev.clone()).unwrap_or_else(|e| panic!("{}: {e}", shape.name()));
    let mut image = vec![0; shape.len as usize];
    dev.read_at(0, &mut image).expect("the image");
    let again = attach(Arc::new(MemDevice::from_vec(image.clone())), "");
    as_root(|cx| {
        Tree::read(&again, cx)
            .expect("the tree again")
            .assert_same(&tree);
    });
    (image, tree)
}

/// What Linux tells of a node: times in seconds.
pub(crate) fn by_linux(leaf: &mut Leaf) {
    leaf.mtime = leaf.mtime.map(|time| Time::from_secs(time.secs));
}

/// What sleuthkit tells: no counts of links besides.
pub(crate) fn by_sleuthkit(leaf: &mut Leaf) {
    by_linux(leaf);
    leaf.links = None;
}

pub(crate) fn on_disk(image: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    write_sparse(file.as_file(), 0, image).expect("write");
    file
}

/// Returns an image as Linux mounts it.
pub(crate) fn for_linux<'a>(image: &'a Path, shape: &Shape) -> vm::Volume<'a> {
    let options = match (shape.kind, shape.make.contains("old")) {
        ("ffs2", _) => "ufstype=ufs2",
        (_, true) => "ufstype=old",
        _ => "ufstype=44bsd",
    };
    vm::Volume {
        image,
        kind: "ufs",
        options,
    }
}

#[test]
fn linux_reads_what_we_write() {
    let Some(vmrun) = vm::find() else { return };
    let all: Vec<_> = SHAPES.iter().map(|shape| lived(shape, 1)).collect();
    let files: Vec<_> = all.iter().map(|(image, _)| on_disk(image)).collect();
    let volumes = files.iter().zip(SHAPES);
    let volumes: Vec<_> = volumes
        .map(|(file, shape)| for_linux(file.path(), shape))
        .collect();
    let theirs = vm::trees(&vmrun, &volumes).expect("Linux");
    for (((_, ours), theirs), shape) in all.iter().zip(theirs).zip(SHAPES) {
        println!("{}: {} nodes", shape.name(), theirs.0.len());
        theirs
            .map(by_linux)
            .assert_same(&ours.clone().map(by_linux));
    }
}

#[test]
fn sleuthkit_reads_what_we_write() {
    if !have(&[sleuthkit::FLS, sleuthkit::ICAT, sleuthkit::RECOVER]) {
        return;
    }
    // Of 4.3BSD's directories it reads nothing.
    for shape in SHAPES.iter().filter(|shape| !shape.make.contains("old")) {
        let (image, mut ours) = lived(shape, 2);
        let theirs = sleuthkit::tree(on_disk(&image).path()).expect("sleuthkit");
        ours.0.retain(|_, leaf| leaf.kind != FileKind::Symlink);
        let theirs = without_the_examiners(theirs).map(by_sleuthkit);
        theirs.assert_same(&ours.map(by_sleuthkit));
    }
}

#[test]
fn dissect_reads_what_we_write() {
    let Some(python) = python::with_dissect_ffs() else {
        return;
    };
    // It knows neither big-endian volumes nor 4.3BSD's entries.
    let known = |shape: &&Shape| !shape.make.contains("big") && !shape.make.contains("old");
    for shape in SHAPES.iter().filter(known) {
        let (image, ours) = lived(shape, 3);
        let theirs = dissect::trees(&python, &[on_disk(&image).path()]).expect("dissect.ffs");
        println!("{}: {} nodes", shape.name(), theirs[0].0.len());
        theirs[0].assert_same(&ours);
    }
}
