//! Large directories, which are indexed in memory: what the index says is what the disk has,
//! however small the room for it is.

use crate::attach;
use crate::volumes::{clean, shape};
use std::collections::BTreeMap;
use volary_core::{
    Attach, BlockDevice, Create, Ctx, Format, Fs, Kind, Name, NodeId, RenameFlags, SetAttr,
};
use volary_ffs::FFS;
use volary_testkit::rng::Rng;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::{Shape, as_root};

const MIB: u64 = 1 << 20;
/// Names that come and go.
const NAMES: u64 = 1500;

/// Directories with names, and what each name leads to.
struct Names<'a> {
    fs: &'a Fs,
    cx: &'a Ctx<'a>,
    rng: Rng,
    dirs: [NodeId; 3],
    all: BTreeMap<(usize, String), u64>,
}

impl Names<'_> {
    fn pick(&mut self) -> (usize, String) {
        let number = self.rng.below(NAMES);
        let text = format!("{number}{}", "-".repeat(number as usize % 90));
        (self.rng.index(3), text)
    }

    fn step(&mut self) {
        let (at, to) = (self.pick(), self.pick());
        let name = |at: &(usize, String)| at.1.as_bytes().to_vec();
        let (text, other) = (name(&at), name(&to));
        let (text, other) = (
            Name::new(&text).expect("a name"),
            Name::new(&other).expect("a name"),
        );
        let (dir, into) = (self.dirs[at.0], self.dirs[to.0]);
        let is_there = self.all.contains_key(&at);
        match self.rng.below(8) {
            0 | 1 => {
                let done = self.fs.unlink(self.cx, dir, text);
                assert_eq!(done.is_ok(), is_there, "{at:?}");
                self.all.remove(&at);
            }
            2 => {
                let replace = RenameFlags::REPLACE;
                let done = self.fs.rename(self.cx, dir, text, into, other, replace);
                assert_eq!(done.is_ok(), is_there, "{at:?}");
                if let Some(ino) = self.all.remove(&at) {
                    self.all.insert(to, ino);
                }
            }
            3 => {
                let found = self.fs.lookup(self.cx, dir, text);
                let found = found.ok().map(|entry| entry.node.ino.get());
                assert_eq!(found.as_ref(), self.all.get(&at), "{at:?}");
            }
            _ => {
                let set = SetAttr::default();
                match self.fs.create(self.cx, dir, text, Create::New, &set) {
                    Ok((entry, open)) => {
                        self.fs.close(self.cx, open).expect("close");
                        let old = self.all.insert(at, entry.node.ino.get());
                        assert_eq!(old, None);
                    }
                    Err(e) => assert!(is_there && e == Kind::Exists, "{at:?}: {e}"),
                }
            }
        }
    }
}

fn run(shape: &Shape, memory: u64) {
    let dev = shape.device();
    let how = Attach {
        memory,
        ..Attach::default()
    };
    let fs = FFS.attach(dev.clone(), &how).expect("attach");
    as_root(|cx| {
        let dir = |text: &str| {
            let name = Name::new(text.as_bytes()).expect("a name");
            let made = fs.mkdir(cx, fs.root(), name, &SetAttr::default());
            made.expect("mkdir").node
        };
        let mut names = Names {
            fs: &fs,
            cx,
            rng: Rng::new(memory),
            dirs: [dir("one"), dir("two"), fs.root()],
            all: BTreeMap::new(),
        };
        for _ in 0..9000 {
            names.step();
        }
        for ((at, text), ino) in &names.all {
            let name = Name::new(text.as_bytes()).expect("a name");
            let found = fs.lookup(cx, names.dirs[*at], name).expect("lookup");
            assert_eq!(found.node.ino.get(), *ino);
        }
        let ours = Tree::read(&fs, cx).expect("our tree");
        assert_eq!(ours.0.len(), names.all.len() + 2);
        fs.detach(cx).expect("detach");
        clean(dev.clone()).expect("clean");
        let again = attach(&dev.to_vec());
        Tree::read(&again, cx).expect("the tree").assert_same(&ours);
    });
    assert_eq!(dev.geometry().size, shape.len);
}

#[test]
fn names_that_come_and_go_in_large_directories_are_found() {
    for memory in [256 << 10, 2 << 20, 64 << 20] {
        run(&shape("ffs2", 8 * MIB).made("density=2048"), memory);
    }
    run(
        &shape("ffs1", 8 * MIB).made("old,order=big,density=2048"),
        4 << 20,
    );
}
