//! Power cuts where a chain goes on in another sector of the FAT than it was
//! in: files and directories that grow, files that are cut, and clusters that
//! are cut off one file and taken by another.

use crate::cuts::{all_cuts, cuts, preen, seeds};
use crate::keeping;
use crate::raw::Raw;
use std::sync::Arc;
use volary_block::{MemDevice, Recorder};
use volary_core::{
    Cancel, Create, Cred, Ctx, Format, Fs, Make, Mode, Name, NodeId, Options, SetAttr, Time,
};
use volary_fat::FAT;

/// The bytes of a cluster.
const CLUSTER: usize = 512;

struct Volume<'a> {
    fs: &'a Fs,
    cx: &'a Ctx<'a>,
}

impl Volume<'_> {
    fn make(&self, parent: NodeId, name: &str) -> NodeId {
        let name = Name::new(name.as_bytes()).unwrap();
        let made = self
            .fs
            .create(self.cx, parent, name, Create::New, &SetAttr::default());
        let (entry, open) = made.unwrap();
        self.fs.close(self.cx, open).unwrap();
        entry.node
    }

    fn make_dir(&self, name: &str) -> NodeId {
        let name = Name::new(name.as_bytes()).unwrap();
        let made = self
            .fs
            .mkdir(self.cx, self.fs.root(), name, &SetAttr::default());
        made.unwrap().node
    }

    /// Adds clusters to a file.
    fn grow(&self, node: NodeId, clusters: usize) {
        let open = self.fs.open(self.cx, node, Mode::Write).unwrap();
        let size = self.fs.getattr(self.cx, node).unwrap().size;
        let data = vec![0x42; clusters * CLUSTER];
        self.fs.write(self.cx, open, Some(size), &data).unwrap();
        self.fs.close(self.cx, open).unwrap();
    }

    fn cut(&self, node: NodeId, clusters: usize) {
        let size = SetAttr::size((clusters * CLUSTER) as u64);
        self.fs.setattr(self.cx, node, &size).unwrap();
    }

    fn sync(&self) {
        self.fs.sync(self.cx).unwrap();
    }
}

/// Looks at all that a power cut can leave of `change`, which is done after
/// `before`; `per_sector` clusters have their entries in a sector of the FAT.
fn explore<T>(before: impl Fn(&Volume<'_>, usize) -> T, change: impl Fn(&Volume<'_>, usize, T)) {
    let kinds = [
        ("fat12", 1 << 20, 341),
        ("fat16", 3 << 20, 256),
        ("fat32", 1 << 20, 128),
    ];
    for (kind, len, per_sector) in kinds {
        for seed in seeds(3) {
            let dev = Arc::new(MemDevice::new(len));
            let make = Make {
                options: Options::parse("cluster=512,small"),
                ..Make::default()
            };
            FAT.make(dev.clone(), kind, &make).unwrap();
            let recorder = Arc::new(Recorder::new(dev.clone()));
            let fs = keeping::attach(seed, recorder.clone());
            let (cred, cancel) = (Cred::root(), Cancel::new());
            let cx = Ctx {
                cred: &cred,
                now: Time::from_secs(1_700_000_000),
                cancel: &cancel,
            };
            let volume = Volume { fs: &fs, cx: &cx };
            let state = before(&volume, per_sector);
            volume.sync();
            let base = dev.to_vec();
            recorder.take();
            change(&volume, per_sector, state);
            volume.sync();
            let requests = recorder.take();
            cuts(base, &requests, seed, 20, |image, at| {
                let sound = Raw::new(image).walk().map(|_| ());
                let sound = sound.and_then(|()| preen(image).map(|_| ()));
                if let Err(what) = sound {
                    panic!(
                        "{kind}, after request {at}: {what}\n\
                         VOLARY_SEED={seed} cargo test -p volary-fat crossings"
                    );
                }
            });
        }
    }
}

#[test]
fn a_file_grows_into_another_sector() {
    explore(
        |volume, per_sector| {
            let file = volume.make(volume.fs.root(), "FILE");
            volume.grow(file, per_sector - 10);
            file
        },
        |volume, per_sector, file| {
            volume.grow(file, 20);
            volume.sync();
            volume.grow(file, 2 * per_sector);
        },
    );
}

#[test]
fn a_directory_grows_into_another_sector() {
    explore(
        |volume, per_sector| {
            let dir = volume.make_dir("DIR");
            let file = volume.make(volume.fs.root(), "FILE");
            volume.grow(file, per_sector + 10);
            dir
        },
        |volume, _, dir| {
            for i in 0..40 {
                volume.make(dir, &format!("F{i}"));
            }
        },
    );
}

#[test]
fn a_file_is_cut_before_the_end_of_a_sector() {
    explore(
        |volume, per_sector| {
            let file = volume.make(volume.fs.root(), "FILE");
            volume.grow(file, 2 * per_sector + 10);
            file
        },
        |volume, per_sector, file| volume.cut(file, per_sector - 10),
    );
}

#[test]
fn a_file_is_cut_and_grows_again() {
    explore(
        |volume, per_sector| {
            let file = volume.make(volume.fs.root(), "FILE");
            volume.grow(file, 2 * per_sector + 10);
            file
        },
        |volume, per_sector, file| {
            volume.cut(file, per_sector - 10);
            volume.grow(file, per_sector);
        },
    );
}

#[test]
fn what_was_cut_off_is_taken_by_another_file() {
    explore(
        |volume, per_sector| {
            let root = volume.fs.root();
            let [file, other] = ["FILE", "OTHER"].map(|name| volume.make(root, name));
            volume.grow(file, 2 * per_sector + 10);
            volume.grow(other, 1);
            (file, other)
        },
        |volume, per_sector, (file, other)| {
            volume.cut(file, per_sector - 10);
            // Frees in memory what was cut off, and no more than that.
            let open = volume.fs.open(volume.cx, file, Mode::Write).unwrap();
            volume.fs.fsync(volume.cx, open, false).unwrap();
            volume.fs.close(volume.cx, open).unwrap();
            volume.grow(other, 2 * per_sector);
        },
    );
}

/// Looks at every state that a power cut can leave of `change` where `MINE`,
/// of one cluster that `make` gives it, has an entry of FAT12 in two sectors,
/// number `at`, and goes on at `next`.
fn split(
    at: usize,
    next: usize,
    clusters: usize,
    make: impl Fn(&Volume<'_>) -> NodeId,
    change: impl Fn(&Volume<'_>, NodeId),
) {
    let dev = Arc::new(MemDevice::new((clusters * CLUSTER) as u64));
    let how = Make {
        options: Options::parse("cluster=512,root-entries=16,fats=1"),
        ..Make::default()
    };
    FAT.make(dev.clone(), "fat12", &how).unwrap();
    let recorder = Arc::new(Recorder::new(dev.clone()));
    let fs = keeping::attach(0, recorder.clone());
    let (cred, cancel) = (Cred::root(), Cancel::new());
    let cx = Ctx {
        cred: &cred,
        now: Time::from_secs(1_700_000_000),
        cancel: &cancel,
    };
    let volume = Volume { fs: &fs, cx: &cx };
    let fill = |name, clusters| {
        let file = volume.make(fs.root(), name);
        volume.grow(file, clusters);
    };
    fill("BELOW", at - 2);
    let mine = make(&volume);
    fill("BETWEEN", next - at - 1);
    volume.sync();
    let base = dev.to_vec();
    let before = Raw::new(&base).walk().unwrap();
    recorder.take();
    change(&volume, mine);
    volume.sync();
    let look = |image: &[u8], request: usize| {
        let mended = preen(image).and_then(|dev| Raw::new(&dev.to_vec()).walk());
        let told = format!("cluster {at}, then {next}, after request {request}");
        let after = mended.unwrap_or_else(|e| panic!("{told}: {e}"));
        for (path, file) in &before.files {
            let Some(now) = after.files.get(path) else {
                panic!("{told}: {path} is lost");
            };
            let len = now.content.len().min(file.content.len());
            assert!(len >= CLUSTER.min(file.content.len()), "{told}: {path}");
            assert!(now.content.iter().all(|&b| b == 0x42), "{told}: {path}");
        }
    };
    let states = all_cuts(base, &recorder.take(), look);
    assert!(states > 8, "{states} states");
}

/// Entries with 4 bits and with 8 bits in the first of two sectors; where
/// their chains go on, with all that matters to the half that is written first;
/// and how large a volume is that makes one half of a link a cluster.
fn splits(mut each: impl FnMut(usize, usize, usize)) {
    for next in 342..358 {
        each(341, next, 400);
    }
    for next in [0x2ab, 0x2f5, 0x2f7, 0x2f8, 0x2ff, 0x300, 0x301] {
        each(682, next, 1000);
    }
    for next in [0x2ab, 0x2ef, 0x2f7, 0x300] {
        each(682, next, 4080);
    }
}

#[test]
fn a_directory_goes_on_after_a_split_entry() {
    splits(|at, next, clusters| {
        split(
            at,
            next,
            clusters,
            |volume| {
                let dir = volume.make_dir("MINE");
                for i in 0..14 {
                    volume.make(dir, &format!("F{i}"));
                }
                dir
            },
            |volume, dir| {
                for i in 14..18 {
                    volume.make(dir, &format!("F{i}"));
                }
            },
        );
    });
}

/// Returns a file of one cluster, the split one.
fn one(volume: &Volume<'_>) -> NodeId {
    let file = volume.make(volume.fs.root(), "MINE");
    volume.grow(file, 1);
    file
}

#[test]
fn a_file_goes_on_after_a_split_entry() {
    splits(|at, next, clusters| {
        split(at, next, clusters, one, |volume, file| {
            volume.grow(file, 2);
        });
    });
}

#[test]
fn a_file_is_cut_at_a_split_entry() {
    splits(|at, next, clusters| {
        split(at, next, clusters, one, |volume, file| {
            volume.grow(file, 2);
            volume.sync();
            volume.cut(file, 1);
            volume.sync();
        });
        split(at, next, clusters, one, |volume, file| {
            volume.grow(file, 2);
            volume.sync();
            volume.cut(file, 1);
            volume.grow(file, 3);
        });
    });
}
