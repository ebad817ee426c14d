//! What we write, read by Linux; what Linux writes, read and checked by us. Two guests do for all.

use crate::volumes::{MIB, SHAPES, attach, check, clean, name, shape};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    CheckMode, Create, Ctx, FileKind, Fs, Kind, Mode, NodeId, RenameFlags, Result, SetAttr,
    SetTime, Time,
};
use volary_testkit::oracle::host::write_sparse;
use volary_testkit::oracle::vm;
use volary_testkit::rng::{Rng, pattern};
use volary_testkit::tree::Tree;
use volary_testkit::volumes::{Shape, as_root};

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
        let (fs, cx) = (self.fs, self.cx);
        let dir = *self.rng.pick(&self.dirs);
        self.made += 1;
        let text = format!("{}{}", "n".repeat(self.made as usize * 7 % 10), self.made);
        let set = self.some_attributes();
        let at = self.rng.index(self.files.len().max(1));
        match self.rng.below(12) {
            0 => self.dirs.push(fs.mkdir(cx, dir, name(&text), &set)?.node),
            1 => match fs.symlink(cx, dir, name(&text), "t/".repeat(150).as_bytes(), &set) {
                Err(e) if e == Kind::Unsupported => {}
                done => drop(done?),
            },
            2 => {
                let rdev = self.rng.below(256) << 32 | self.rng.below(256);
                let kind = *self
                    .rng
                    .pick(&[FileKind::CharDevice, FileKind::BlockDevice]);
                fs.mknod(cx, dir, name(&text), kind, rdev, &set)?;
            }
            3..=5 => {
                let made = fs.create(cx, dir, name(&text), Create::New, &set)?;
                fs.close(cx, made.1)?;
                self.files.push((dir, text));
                self.write(self.files.len() - 1)?;
            }
            _ if self.files.is_empty() => {}
            6 => {
                let (from, old) = self.files.swap_remove(at);
                let replace = RenameFlags::REPLACE;
                fs.rename(cx, from, name(&old), dir, name(&text), replace)?;
                self.files.push((dir, text));
            }
            7 => {
                let (from, old) = self.files.swap_remove(at);
                fs.unlink(cx, from, name(&old))?;
            }
            8 => {
                fs.link(cx, self.node(at)?, dir, name(&text))?;
                self.files.push((dir, text));
            }
            9 => {
                let size = self.rng.below(150_000);
                fs.setattr(cx, self.node(at)?, &SetAttr::size(size))?;
            }
            _ => self.write(at)?,
        }
        Ok(())
    }

    fn some_attributes(&mut self) -> SetAttr {
        let mut time = || SetTime::To(Time::from_secs(self.rng.below(1 << 31) as i64));
        let (atime, mtime) = (Some(time()), Some(time()));
        let mut number = |most| self.rng.below(most) as u32;
        SetAttr {
            atime,
            mtime,
            ..SetAttr::owned(number(1 << 12), number(1 << 16), number(1 << 16))
        }
    }

    fn node(&self, at: usize) -> Result<NodeId> {
        let (dir, text) = &self.files[at];
        Ok(self.fs.lookup(self.cx, *dir, name(text))?.node)
    }

    fn write(&mut self, at: usize) -> Result<()> {
        let node = self.node(at)?;
        let most = if self.rng.one_in(10) { 400_000 } else { 9000 };
        let (offset, len) = (self.rng.below(most), self.rng.index(most as usize));
        let offset = Some(offset).filter(|_| self.rng.one_in(3));
        let open = self.fs.open(self.cx, node, Mode::ReadWrite)?;
        let content = pattern(self.made.into(), len);
        self.fs.write(self.cx, open, offset, &content)?;
        self.fs.close(self.cx, open)
    }
}

/// Returns the size of the sparse file of the n-th volume: Linux is slow to read all of a hole, and does
/// it once.
fn far(n: usize) -> u64 {
    if n == 0 { 9_000_003 } else { 80_003 }
}

/// Returns what a volume holds that has lived.
fn live(dev: &Arc<MemDevice>, seed: u64, far: u64) -> Tree {
    let fs = attach(dev.clone(), "");
    as_root(|cx| {
        let mut life = Life {
            fs: &fs,
            cx,
            rng: Rng::new(seed),
            dirs: vec![fs.root()],
            files: Vec::new(),
            made: 0,
        };
        for step in 0..300 {
            life.step().expect("a step");
            if step % 100 == 99 {
                fs.sync(cx).expect("sync");
            }
        }
        let made = fs.create(cx, fs.root(), name("far"), Create::New, &SetAttr::default());
        let (_, open) = made.expect("create");
        // By way of three indirect blocks.
        for offset in [0, 80_000, 9_000_000, 1 << 30] {
            fs.write(cx, open, Some(offset), b"far").expect("write");
        }
        fs.setattr(cx, far_node(&fs, cx), &SetAttr::size(far))
            .expect("cut");
        fs.close(cx, open).expect("close");
        let tree = Tree::read(&fs, cx).expect("our tree");
        fs.detach(cx).expect("detach");
        tree
    })
}

fn far_node(fs: &Fs, cx: &Ctx<'_>) -> NodeId {
    fs.lookup(cx, fs.root(), name("far")).expect("lookup").node
}

fn on_disk(dev: &MemDevice) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    write_sparse(file.as_file(), 0, &dev.to_vec()).expect("write");
    file
}

fn from_disk(file: &Path) -> Arc<MemDevice> {
    Arc::new(MemDevice::from_vec(std::fs::read(file).expect("read")))
}

/// What Linux does on each volume.
const LINUX: &str = "
mkdir /mnt/d /mnt/d/e /mnt/gone
seq 1 60000 > /mnt/d/big
dd if=/mnt/d/big of=/mnt/d/hole bs=1000 count=3 seek=300 2>/dev/null
dd if=/mnt/d/big of=/mnt/triple bs=1000 count=1 seek=80000 2>/dev/null
truncate -s 20000 /mnt/triple
seq 1 90 > /mnt/small
ln /mnt/small /mnt/d/link
mknod /mnt/dev c 5 200
mknod /mnt/d/pipe p
ln -s d/e/nowhere /mnt/d/sym
i=0; while [ $i -lt 40 ]; do echo $i > /mnt/gone/f$i; i=$((i+1)); done
i=0; while [ $i -lt 40 ]; do rm /mnt/gone/f$i; i=$((i+3)); done
seq 1 40000 > /mnt/removed
mkdir /mnt/d/rd && rmdir /mnt/d/rd
mv /mnt/gone /mnt/d/e/kept
mv /mnt/small /mnt/d/e/moved
chmod 4751 /mnt/d/big
chown 12:34 /mnt/d/big
rm /mnt/removed
truncate -s 5000 /mnt/d/e/moved
";

#[test]
fn linux_reads_what_we_write_and_we_what_linux_writes() {
    let Some(vmrun) = vm::find() else { return };
    let ours: Vec<_> = SHAPES.iter().map(|shape| shape.device()).collect();
    let trees: Vec<_> = (0..)
        .zip(&ours)
        .map(|(i, dev)| live(dev, 1, far(i)))
        .collect();
    // Fresh ones, and one that has lived. Linux takes a superblock of System V in blocks of 512 bytes for
    // Xenix's when it looks for free inodes, and spoils it.
    let fresh = SHAPES.iter().map(|shape| match shape.made("order=big") {
        big if shape.make.contains("block=512") => big.long(4 * MIB),
        _ => shape.long(4 * MIB),
    });
    let theirs: Vec<Shape> = fresh.chain([shape("v7", 8 * MIB)]).collect();
    let devices: Vec<_> = theirs.iter().map(Shape::device).collect();
    live(devices.last().expect("one"), 2, far(1));
    let files: Vec<_> = devices.iter().map(|dev| on_disk(dev)).collect();
    let disks: Vec<_> = files.iter().map(|f| (f.path(), vm::Disk::Write)).collect();
    let mut script = String::from("set -e\n");
    for (letter, shape) in ('a'..).zip(&theirs) {
        let kind = shape.kind;
        writeln!(
            script,
            "mount -t {kind} /dev/vd{letter} /mnt{LINUX}umount /mnt"
        )
        .expect("words");
    }
    script.push_str("sync\n");
    vm::script(&vmrun, &disks, None, &script).expect("Linux writes");

    let mine: Vec<_> = ours.iter().map(|dev| on_disk(dev)).collect();
    let all = mine.iter().zip(SHAPES);
    let all = all.chain(files.iter().zip(&theirs));
    let volumes: Vec<_> = all
        .map(|(file, shape)| vm::Volume {
            image: file.path(),
            kind: shape.kind,
            options: "ro",
        })
        .collect();
    let read = vm::trees(&vmrun, &volumes).expect("Linux reads");
    for ((ours, read), shape) in trees.iter().zip(&read).zip(SHAPES) {
        println!("{}: {} nodes", shape.name(), read.0.len());
        read.assert_same(ours);
    }
    let written = files.iter().zip(&read[SHAPES.len()..]);
    for ((file, read), shape) in written.zip(&theirs) {
        let dev = from_disk(file.path());
        let (_, found) = check(dev.clone(), CheckMode::Look);
        println!("{}: {} nodes, {found:?}", shape.name(), read.0.len());
        let fs = attach(dev.clone(), "");
        let tree = as_root(|cx| Tree::read(&fs, cx).expect("the tree"));
        tree.assert_same(read);
        clean(dev.clone()).unwrap_or_else(|e| panic!("{}: {e}", shape.name()));
        // We go on with it.
        live_on(&fs);
        drop(fs);
        clean(dev).expect("clean");
    }
}

/// Changes a volume that Linux has written.
fn live_on(fs: &Fs) {
    as_root(|cx| {
        let d = fs.lookup(cx, fs.root(), name("d")).expect("lookup").node;
        fs.unlink(cx, d, name("big")).expect("unlink");
        let made = fs.create(cx, d, name("ours"), Create::New, &SetAttr::default());
        let (_, open) = made.expect("create");
        fs.write(cx, open, Some(0), &pattern(1, 300_000))
            .expect("write");
        fs.close(cx, open).expect("close");
        fs.detach(cx).expect("detach");
    });
}
