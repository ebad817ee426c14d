//! Sound volumes to begin with, written by the driver.

use crate::check::image::Image;
use std::sync::{Arc, OnceLock};
use volary_block::MemDevice;
use volary_core::{
    Attach, Cancel, Create, Cred, Ctx, Format, Fs, Make, Name, NodeId, Options, SetAttr, Time,
};
use volary_fat::FAT;

/// The kinds of volumes that all damage is tried on.
pub(crate) const KINDS: [&str; 3] = ["fat12", "fat16", "fat32"];

/// Those with the UNIX extension.
pub(crate) const UNIX: [&str; 2] = ["fat12 unix", "fat32 unix"];

/// Those with it in the paper's layout.
pub(crate) const PAPER: [&str; 2] = ["fat12 dosfs", "fat16 dosfs"];

/// Seconds of the time that everything has.
const NOW: i64 = 1_700_000_000;

struct Builder {
    fs: Fs,
    cred: Cred,
    cancel: Cancel,
    unix: bool,
    /// Makes all contents differ.
    count: u64,
}

impl Builder {
    fn cx(&self) -> Ctx<'_> {
        Ctx {
            cred: &self.cred,
            now: Time::from_secs(NOW),
            cancel: &self.cancel,
        }
    }

    /// Mode and owner, where the volume keeps them.
    fn attr(&self, mode: u32) -> SetAttr {
        if self.unix {
            SetAttr::owned(mode, 1000 + self.count as u32 % 5, 100)
        } else {
            SetAttr::mode(mode)
        }
    }

    fn dir(&self, dir: NodeId, name: &str) -> NodeId {
        let name = Name::new(name.as_bytes()).unwrap();
        self.fs
            .mkdir(&self.cx(), dir, name, &self.attr(0o755))
            .unwrap()
            .node
    }

    fn file(&mut self, dir: NodeId, name: &str, len: usize) {
        self.count += 1;
        let mut state = self.count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bytes: Vec<u8> = (0..len)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let name = Name::new(name.as_bytes()).unwrap();
        let how = &self.attr(0o644);
        let cx = self.cx();
        let (_, open) = self.fs.create(&cx, dir, name, Create::New, how).unwrap();
        self.fs.write(&cx, open, Some(0), &bytes).unwrap();
        self.fs.close(&cx, open).unwrap();
    }
}

fn build(kind: &str) -> Vec<u8> {
    let (kind, unix) = kind.split_once(' ').unwrap_or((kind, ""));
    let (len, options) = match kind {
        "fat12" => (1 << 20, ""),
        "fat16" => (4 << 20, "cluster=512"),
        _ => (2 << 20, "cluster=512,small"),
    };
    let dev = Arc::new(MemDevice::new(len));
    let make = Make {
        label: Some("LABEL".into()),
        now: Time::from_secs(NOW),
        seed: 7,
        options: Options::parse(&match unix {
            "unix" => format!("{options},unix"),
            _ => options.to_string(),
        }),
    };
    FAT.make(dev.clone(), kind, &make).unwrap();
    let how = Attach {
        options: Options::parse(if unix == "dosfs" { "unix=dosfs" } else { "" }),
        ..Attach::default()
    };
    let fs = FAT.attach(dev.clone(), &how).unwrap();
    let mut b = Builder {
        fs,
        cred: Cred::root(),
        cancel: Cancel::new(),
        unix: !unix.is_empty(),
        count: 0,
    };
    let cluster = if kind == "fat12" { 2048 } else { 512 };
    let root = b.fs.root();
    b.file(root, "HELLO.TXT", 100);
    b.file(root, "ONE.BIN", 3 * cluster);
    b.file(root, "TWO.BIN", 4 * cluster - 7);
    b.file(root, "A file with a long name.text", cluster + 5);
    b.file(root, "EMPTY", 0);
    let dir = b.dir(root, "DIR1");
    b.file(dir, "INNER.TXT", 77);
    b.file(dir, "another long name.text", 2 * cluster);
    let sub = b.dir(dir, "SUB");
    b.file(sub, "DEEP.BIN", 5 * cluster);
    let other = b.dir(root, "DIR2");
    b.file(other, "X", 9);
    let many = b.dir(root, "MANY");
    for i in 0..80 {
        b.file(many, &format!("number {i:02} of many"), 1 + i * 9);
    }
    b.fs.detach(&b.cx()).unwrap();
    dev.to_vec()
}

/// Returns a sound volume with some files and directories.
pub(crate) fn base(kind: &str) -> Image {
    static BASES: [OnceLock<Vec<u8>>; 7] = [const { OnceLock::new() }; 7];
    let mut kinds = KINDS.iter().chain(&UNIX).chain(&PAPER);
    let i = kinds.position(|k| *k == kind).unwrap();
    Image::new(BASES[i].get_or_init(|| build(kind)).clone()).unwrap()
}
