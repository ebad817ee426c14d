//! `tune` and `badsect`: what they do, as other programs see it, and what a
//! power cut in the middle of them leaves.

use crate::cuts::{cuts, preen, seeds};
use crate::raw::Raw;
use crate::volumes::{Image, attach, fsck_fat};
use std::collections::BTreeMap;
use std::sync::Arc;
use volary_block::{MemDevice, Recorder};
use volary_core::{
    BlockDevice, Create, Ctx, Fact, FileKind, Format, Fs, Kind, Make, Name, NodeId, Options, Quiet,
    SetAttr, Tune,
};
use volary_fat::FAT;
use volary_fat::volume::Layout;
use volary_testkit::oracle::{have, mtools};
use volary_testkit::rng::Rng;
use volary_testkit::volumes::{NOW, as_root};

/// Kinds of volumes: size and options of mkfs.
const SHAPES: [(&str, u64, &str); 3] = [
    ("fat12", 160 << 10, "cluster=512,root-entries=64"),
    ("fat16", 3 << 20, "cluster=512,root-entries=64"),
    ("fat32", 256 << 10, "cluster=512,small"),
];

/// The same, with a FAT32 that mtools reads.
const LARGE: [(&str, u64, &str); 3] = [SHAPES[0], SHAPES[1], ("fat32", 36 << 20, "cluster=512")];

type Contents = BTreeMap<String, Vec<u8>>;

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn made((kind, len, options): (&str, u64, &str)) -> Arc<MemDevice> {
    let dev = Arc::new(MemDevice::new(len));
    let how = Make {
        label: Some("BEFORE".into()),
        now: NOW,
        options: Options::parse(options),
        ..Make::default()
    };
    FAT.make(dev.clone(), kind, &how).unwrap();
    dev
}

/// A file that is being written: its path, directory, name and bytes so far.
struct Growing(String, NodeId, String, Vec<u8>);

fn append(fs: &Fs, cx: &Ctx<'_>, file: &mut Growing, part: &[u8]) {
    let made = fs.create(cx, file.1, name(&file.2), Create::Open, &SetAttr::default());
    let open = made.unwrap().1;
    fs.write(cx, open, Some(file.3.len() as u64), part).unwrap();
    fs.close(cx, open).unwrap();
    file.3.extend_from_slice(part);
}

/// Returns a volume whose files and directories were written in turns, a cluster at a
/// time, some of them removed since; with what is in the files.
fn fragmented(shape: (&str, u64, &str), seed: u64) -> (Arc<MemDevice>, Contents) {
    let dev = made(shape);
    let fs = attach(dev.clone(), "");
    let mut rng = Rng::new(seed);
    let files = as_root(|cx| {
        let mut dirs = vec![("/".to_owned(), fs.root())];
        for i in 0..4 {
            let (above, at) = dirs[rng.index(dirs.len())].clone();
            let text = format!("dir{i}");
            let made = fs.mkdir(cx, at, name(&text), &SetAttr::default());
            dirs.push((format!("{above}{text}/"), made.unwrap().node));
        }
        let mut files: Vec<Growing> = (0..24)
            .map(|i| {
                let (above, at) = &dirs[rng.index(dirs.len())];
                let text = format!("a file with number {i}.data");
                Growing(format!("{above}{text}"), *at, text, Vec::new())
            })
            .collect();
        for _ in 0..100 {
            let i = rng.index(files.len());
            let part: Vec<u8> = (0..1 + rng.below(600))
                .map(|_| rng.below(256) as u8)
                .collect();
            append(&fs, cx, &mut files[i], &part);
        }
        files.retain(|f| !f.3.is_empty());
        for gone in files.iter().step_by(4) {
            fs.unlink(cx, gone.1, name(&gone.2)).unwrap();
        }
        fs.detach(cx).unwrap();
        files
    });
    let left = files.into_iter().enumerate().filter(|(i, _)| i % 4 != 0);
    (dev, left.map(|(_, f)| (f.0, f.3)).collect())
}

/// Returns the files of an image, read by code that is not the driver's.
fn contents(image: &[u8]) -> Result<Contents, String> {
    let tree = Raw::new(image).walk()?;
    let files = tree.files.into_iter().filter(|(p, _)| !p.ends_with('/'));
    Ok(files.map(|(path, file)| (path, file.content)).collect())
}

fn assert_contents(image: &[u8], want: &Contents, about: &str) {
    let have = contents(image).unwrap_or_else(|e| panic!("{about}: {e}"));
    let paths: Vec<_> = want.keys().collect();
    assert_eq!(have.keys().collect::<Vec<_>>(), paths, "{about}");
    for (path, bytes) in want {
        assert!(have[path] == *bytes, "{about}: {path} has other bytes");
    }
}

fn tune(dev: Arc<dyn BlockDevice>, how: &Tune) -> volary_core::Result<Vec<Fact>> {
    FAT.tune(dev, how, &Quiet)
}

fn compact() -> Tune {
    Tune {
        compact: true,
        now: NOW,
        ..Tune::default()
    }
}

/// Records what `work` does to a volume, and looks at each state that a power
/// cut can leave: mended, it is sound and has all files. How many states.
fn explore(
    dev: &Arc<MemDevice>,
    files: &Contents,
    seed: u64,
    work: impl FnOnce(Arc<dyn BlockDevice>),
    each: impl Fn(&Arc<MemDevice>, &str),
) -> usize {
    let base = dev.to_vec();
    let recorder = Arc::new(Recorder::new(dev.clone()));
    work(recorder.clone());
    cuts(base, &recorder.requests(), seed, 4, |image, at| {
        let about = format!("VOLARY_SEED={seed}, after request {at}");
        // Before anything is mended, every entry leads to its bytes already.
        assert_contents(image, files, &about);
        let mended = preen(image).unwrap_or_else(|e| panic!("{about}: {e}"));
        assert_contents(&mended.to_vec(), files, &format!("{about}, mended"));
        let fs = attach(mended.clone(), "");
        as_root(|cx| fs.detach(cx)).unwrap();
        each(&mended, &about);
    })
}

#[test]
fn compaction_puts_files_in_one_piece_and_keeps_them() {
    for shape in SHAPES {
        let (dev, files) = fragmented(shape, 1);
        let facts = tune(dev.clone(), &compact()).unwrap();
        let now = facts.iter().find(|f| f.key == "in several pieces now");
        let before = facts.iter().find(|f| f.key == "in several pieces before");
        assert_ne!(before.unwrap().number, now.unwrap().number, "{facts:?}");
        assert_contents(&dev.to_vec(), &files, shape.0);
        fsck_fat(&*dev).unwrap();
        let map = FAT.map(dev.clone(), 64).unwrap();
        assert_eq!(map.breaks, 0, "{}: {facts:?}", shape.0);
    }
}

#[test]
fn no_power_cut_during_compaction_loses_a_file() {
    let mut states = 0;
    for seed in seeds(4) {
        for shape in SHAPES {
            let (dev, files) = fragmented(shape, seed);
            let work = |dev| drop(tune(dev, &compact()).unwrap());
            states += explore(&dev, &files, seed, work, |_, _| {});
        }
    }
    println!("{states} states");
    assert!(states > 1000, "{states} states only");
}

#[test]
fn a_compaction_that_is_stopped_is_whole() {
    for shape in SHAPES {
        let (dev, files) = fragmented(shape, 3);
        let stop = Stop(5.into());
        let stopped = FAT.tune(dev.clone(), &compact(), &stop);
        assert_eq!(stopped.unwrap_err(), Kind::Interrupted);
        assert_contents(&dev.to_vec(), &files, shape.0);
        fsck_fat(&*dev).unwrap();
    }
}

/// Interrupts after some calls.
struct Stop(std::sync::atomic::AtomicU32);

impl volary_core::Progress for Stop {
    fn progress(&self, _: &str, _: u64, _: u64) -> volary_core::Result<()> {
        use std::sync::atomic::Ordering::Relaxed;
        match self.0.fetch_sub(1, Relaxed) {
            0 => Err(Kind::Interrupted.into()),
            _ => Ok(()),
        }
    }
}

/// Returns what mlabel shows.
fn mlabel(dev: &dyn BlockDevice) -> String {
    let image = Image::of(dev);
    let shown = mtools::on("mlabel", &image.path(), &["-s", "::"]).unwrap();
    String::from_utf8_lossy(&shown).trim().to_owned()
}

fn label(text: &str) -> Tune {
    Tune {
        label: Some(text.into()),
        now: NOW,
        ..Tune::default()
    }
}

#[test]
fn a_label_is_set_changed_and_taken_away_as_others_see_it() {
    have(&[mtools::MCOPY]);
    for shape in LARGE {
        let (dev, files) = fragmented(shape, 2);
        for text in ["After", "GR\u{dc}N 1", "", "AGAIN"] {
            tune(dev.clone(), &label(text)).unwrap();
            assert_contents(&dev.to_vec(), &files, text);
            // fsck.fat takes a byte past 0x7F in a label for damage.
            if !text.is_ascii() {
                continue;
            }
            fsck_fat(&*dev).unwrap();
            if mtools::MCOPY.find().is_some() {
                let shown = mlabel(&*dev);
                let want = match text {
                    "" => "Volume has no label".to_owned(),
                    text => format!("Volume label is {}", text.to_uppercase()),
                };
                assert_eq!(shown, want, "{}", shape.0);
            }
        }
        for wrong in ["TWELVE CHARS", "a*b", " "] {
            let before = dev.to_vec();
            let refused = tune(dev.clone(), &label(wrong));
            assert_eq!(refused.unwrap_err(), Kind::Invalid, "'{wrong}'");
            assert!(dev.to_vec() == before, "'{wrong}' changed something");
        }
    }
}

#[test]
fn a_label_in_a_full_root_directory_is_refused() {
    let dev = made(("fat12", 160 << 10, "cluster=512,root-entries=16"));
    tune(dev.clone(), &label("")).unwrap();
    let fs = attach(dev.clone(), "");
    as_root(|cx| {
        for i in 0..16 {
            let file = format!("F{i}");
            let made = fs.create(cx, fs.root(), name(&file), Create::New, &SetAttr::default());
            fs.close(cx, made.unwrap().1).unwrap();
        }
        fs.detach(cx).unwrap();
    });
    let before = dev.to_vec();
    assert_eq!(tune(dev.clone(), &label("X")).unwrap_err(), Kind::NoSpace);
    assert!(dev.to_vec() == before, "it changed something");
}

#[test]
fn no_power_cut_while_a_label_is_set_leaves_damage() {
    for shape in SHAPES {
        let (dev, files) = fragmented(shape, 5);
        let work = |dev: Arc<dyn BlockDevice>| {
            for text in ["NEW", "", "THIRD"] {
                tune(dev.clone(), &label(text)).unwrap();
            }
        };
        explore(&dev, &files, 5, work, |mended, about| {
            fsck_fat(&**mended).unwrap_or_else(|e| panic!("{about}: {e}"));
        });
    }
}

#[test]
fn the_mark_is_set_and_cleared_as_others_see_it() {
    for shape in SHAPES {
        let (dev, files) = fragmented(shape, 6);
        let mark = |dirty| Tune {
            dirty: Some(dirty),
            now: NOW,
            ..Tune::default()
        };
        tune(dev.clone(), &mark(true)).unwrap();
        let image = Image::of(&*dev);
        let path = image.path();
        if let Some(said) = crate::tools::run("fsck.fat", &["-n", path.to_str().unwrap()]) {
            assert!(said.text.contains("Dirty bit is set"), "{}", said.text);
        }
        let refused = tune(dev.clone(), &compact());
        assert_eq!(refused.unwrap_err(), Kind::Corrupt, "compaction when dirty");
        tune(dev.clone(), &mark(false)).unwrap();
        fsck_fat(&*dev).unwrap();
        assert_contents(&dev.to_vec(), &files, shape.0);
    }
}

/// Returns the first sectors of some free clusters, and one that holds data.
fn sectors(dev: &Arc<MemDevice>) -> (Vec<u64>, u64) {
    let layout = Layout::read(&**dev).unwrap();
    let bytes = dev.to_vec();
    let per_cluster = u64::from(layout.cluster_len / layout.sector_len);
    let sector = |n: u32| u64::from(layout.data_sector) + u64::from(n - 2) * per_cluster;
    let raw = Raw::new(&bytes);
    let free = (2..=layout.last_cluster()).filter(|&n| raw.is_free(n as usize));
    let some: Vec<u64> = free.step_by(7).take(5).map(sector).collect();
    let mut used = (2..=layout.last_cluster()).filter(|&n| !raw.is_free(n as usize));
    (some, sector(used.next().unwrap()))
}

#[test]
fn bad_sectors_are_marked_in_every_fat_and_taken_by_nobody() {
    have(&[mtools::MCOPY]);
    for shape in LARGE {
        let (dev, files) = fragmented(shape, 7);
        let (bad, used) = sectors(&dev);
        let before = dev.to_vec();
        let wrong = FAT.mark_bad(dev.clone(), &[bad[0], used]);
        assert_eq!(wrong.unwrap_err(), Kind::Busy);
        for outside in [0, u64::MAX] {
            let wrong = FAT.mark_bad(dev.clone(), &[bad[0], outside]);
            assert_eq!(wrong.unwrap_err(), Kind::Invalid);
        }
        assert!(dev.to_vec() == before, "a refused call changed something");
        for _ in 0..2 {
            FAT.mark_bad(dev.clone(), &bad).unwrap();
            fsck_fat(&*dev).unwrap();
            assert_contents(&dev.to_vec(), &files, shape.0);
        }
        if mtools::MCOPY.find().is_some() {
            let image = Image::of(&*dev);
            let tree = mtools::tree(&image.path()).unwrap();
            let count = tree.0.values().filter(|n| n.kind == FileKind::File).count();
            assert_eq!(count, files.len(), "{}: mtools reads other files", shape.0);
        }
        // A full volume has the files, and not the bad clusters.
        let fs = attach(dev.clone(), "");
        as_root(|cx| {
            let made = fs.create(
                cx,
                fs.root(),
                name("rest"),
                Create::New,
                &SetAttr::default(),
            );
            let open = made.unwrap().1;
            let mut at = 0;
            while let Ok(n) = fs.write(cx, open, Some(at), &[7; 512]) {
                at += n;
            }
            fs.close(cx, open).unwrap();
            fs.detach(cx).unwrap();
        });
        let bytes = dev.to_vec();
        for &sector in &bad {
            let at = sector as usize * 512;
            assert_eq!(bytes[at..at + 512], before[at..at + 512], "{}", shape.0);
        }
        fsck_fat(&*dev).unwrap();
    }
}

#[test]
fn no_power_cut_while_sectors_are_marked_leaves_damage() {
    for shape in SHAPES {
        let (dev, files) = fragmented(shape, 8);
        let (bad, _) = sectors(&dev);
        let work = |dev| drop(FAT.mark_bad(dev, &bad).unwrap());
        explore(&dev, &files, 8, work, |mended, about| {
            fsck_fat(&**mended).unwrap_or_else(|e| panic!("{about}: {e}"));
        });
    }
}
