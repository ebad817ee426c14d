//! One or two adjacent bad pages lose nothing but the data of the file that they are
//! in (paper, section 3): every page that is used of volumes that were left and that
//! were cut off, with little in the log and with a log that went round; unreadable,
//! zeroed, overwritten, as it was before, and with what belongs to its neighbour.
//! `VOLARY_IMAGES` says how many volumes of each kind.

use crate::volumes::{attach, attach_read_only, check, shape};
use std::collections::BTreeMap;
use std::sync::Arc;
use volary_block::{Faulty, MemDevice};
use volary_core::{
    Attr, BlockDevice, CheckMode, Create, Ctx, FileKind, Fs, Kind, Mode, Name, NodeId, Result,
    SetAttr,
};
use volary_testkit::rng::{Rng, pattern};
use volary_testkit::volumes::{Shape, as_root};

const PAGE: usize = 512;
const PLAIN: Shape = shape(1 << 19)
    .made("page=512,name-table=16k,log=186k")
    .attached("commit=0");
const SUMMED: Shape = shape(1 << 19)
    .made("page=512,name-table=16k,log=186k,checksums")
    .attached("commit=0");

/// What files hold, by their paths; directories have nothing.
type Files = BTreeMap<String, Option<Vec<u8>>>;

/// A volume, as it was some changes ago and as it is.
struct Image {
    before: Vec<u8>,
    now: Vec<u8>,
    files: Files,
    shape: Shape,
}

/// How a volume came to be as it is.
#[derive(Clone, Copy, Debug)]
struct Life {
    /// Changes; after some sixty the log has gone round.
    changes: u32,
    left: bool,
}

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn find(fs: &Fs, cx: &Ctx<'_>, path: &str) -> Result<Attr> {
    let mut at: NodeId = fs.root();
    for part in path.split('/') {
        at = fs.lookup(cx, at, name(part))?.node;
    }
    fs.getattr(cx, at)
}

/// Makes, overwrites or removes a file.
fn change(fs: &Fs, cx: &Ctx<'_>, files: &mut Files, rng: &mut Rng) -> Result<()> {
    let number = rng.below(24);
    let (dir, path) = if number.is_multiple_of(3) {
        (find(fs, cx, "dir")?.node, format!("dir/file {number}"))
    } else {
        (fs.root(), format!("file {number}"))
    };
    let leaf = format!("file {number}");
    if files.contains_key(&path) && rng.below(4) == 0 {
        fs.unlink(cx, dir, name(&leaf))?;
        files.remove(&path);
        return Ok(());
    }
    let content = pattern(rng.next_u64(), rng.below(2400) as usize);
    let set = SetAttr::default();
    let (_, open) = fs.create(cx, dir, name(&leaf), Create::Truncate, &set)?;
    fs.write(cx, open, Some(0), &content)?;
    fs.close(cx, open)?;
    files.insert(path, Some(content));
    Ok(())
}

fn image(shape: Shape, seed: u64, life: Life) -> Image {
    let dev = shape.device();
    let fs = attach(dev.clone(), shape.attach);
    let (mut files, mut rng) = (Files::new(), Rng::new(seed));
    let mut before = Vec::new();
    as_root(|cx| {
        fs.mkdir(cx, fs.root(), name("dir"), &SetAttr::default())?;
        files.insert("dir".into(), None);
        for at in 0..life.changes {
            if at == life.changes * 2 / 3 {
                before = dev.to_vec();
            }
            change(&fs, cx, &mut files, &mut rng)?;
        }
        fs.sync(cx)?;
        if life.left { fs.detach(cx) } else { Ok(()) }
    })
    .unwrap();
    Image {
        before,
        now: dev.to_vec(),
        files,
        shape,
    }
}

fn content(fs: &Fs, cx: &Ctx<'_>, attr: &Attr) -> Result<Vec<u8>> {
    let open = fs.open(cx, attr.node, Mode::Read)?;
    let mut buf = vec![0; attr.size as usize];
    let n = fs.read(cx, open, 0, &mut buf);
    fs.close(cx, open)?;
    buf.truncate(n?);
    Ok(buf)
}

/// All is there as it was, but for what two files hold, as two pages may be of two.
/// Where data has checksums, what is wrong is told, and none is given for right.
fn must_hold(fs: &Fs, image: &Image, what: &str) {
    let mut lost = 0;
    as_root(|cx| {
        for (path, whole) in &image.files {
            let attr = find(fs, cx, path).unwrap_or_else(|e| panic!("{what}: {path}: {e}"));
            let Some(whole) = whole else {
                assert_eq!(attr.kind, FileKind::Dir, "{what}: {path}");
                continue;
            };
            assert_eq!(
                (attr.kind, attr.size),
                (FileKind::File, whole.len() as u64),
                "{what}: {path}"
            );
            match content(fs, cx, &attr) {
                Ok(found) if found == *whole => continue,
                Ok(_) => assert_eq!(image.shape.make, PLAIN.make, "{what}: {path}: untold"),
                Err(e) => assert!(matches!(e.kind(), Kind::Io | Kind::Corrupt), "{what}: {e}"),
            }
            lost += 1;
        }
    });
    assert!(lost <= 2, "{what}: {lost} files lost content");
}

/// The ways in which pages go wrong, but for unreadable ones.
const WAYS: [&str; 4] = ["zeroed", "overwritten", "as before", "the neighbour's"];

/// Returns the pages from `at` to `end`, gone wrong.
fn wrong(image: &Image, way: &str, at: usize, end: usize) -> Vec<u8> {
    let mut bytes = image.now.clone();
    match way {
        "zeroed" => bytes[at..end].fill(0),
        "overwritten" => bytes[at..end].copy_from_slice(&pattern(at as u64, end - at)),
        "as before" => bytes[at..end].copy_from_slice(&image.before[at..end]),
        _ => {
            let from = if end * 2 - at <= bytes.len() {
                end
            } else {
                at - (end - at)
            };
            bytes.copy_within(from..from + (end - at), at);
        }
    }
    bytes
}

/// A check mends the damage, a second one finds nothing and writes nothing, and what
/// was there is.
fn mends(dev: Arc<MemDevice>, image: &Image, what: &str) {
    let (report, found) = check(dev.clone(), CheckMode::Mend);
    assert_eq!(report.left(), 0, "{what}: {found:?}");
    let (again, found) = check(dev.clone(), CheckMode::Mend);
    assert_eq!((again.found, again.written), (0, 0), "{what}: {found:?}");
    must_hold(
        &attach(dev, image.shape.attach),
        image,
        &format!("mended: {what}"),
    );
}

/// Damages every page in use, and every two, of one volume.
fn damage(shape: Shape, seed: u64, life: Life) {
    let image = image(shape, seed, life);
    let look = |dev: Arc<dyn BlockDevice>, what: &str| {
        let fs = attach_read_only(dev, shape.attach).unwrap_or_else(|e| panic!("{what}: {e}"));
        must_hold(&fs, &image, what);
    };
    look(Arc::new(MemDevice::from_vec(image.now.clone())), "whole");
    let pages = image.now.chunks(PAGE).zip(image.before.chunks(PAGE));
    let used = |(now, before): (&[u8], &[u8])| now.iter().chain(before).any(|b| *b != 0);
    let used: Vec<usize> = pages
        .enumerate()
        .filter(|(_, p)| used(*p))
        .map(|(i, _)| i)
        .collect();
    for page in used {
        for len in [1, 2] {
            let (at, end) = (page * PAGE, ((page + len) * PAGE).min(image.now.len()));
            let what = format!("seed {seed}, {life:?}, {len} pages from {page}");
            let faulty = Faulty::new(Arc::new(MemDevice::from_vec(image.now.clone())));
            faulty.bad_reads(at as u64..end as u64);
            look(Arc::new(faulty), &format!("unreadable: {what}"));
            for way in WAYS {
                let bytes = wrong(&image, way, at, end);
                if bytes[at..end] == image.now[at..end] {
                    continue;
                }
                let (dev, what) = (
                    Arc::new(MemDevice::from_vec(bytes)),
                    format!("{way}: {what}"),
                );
                look(dev.clone(), &what);
                mends(dev, &image, &what);
            }
        }
    }
}

fn volumes(shape: Shape, seed: u64) {
    let asked = std::env::var("VOLARY_IMAGES").ok();
    let count = asked.and_then(|n| n.parse().ok()).unwrap_or(1);
    for seed in seed..seed + count {
        for changes in [9, 30, 90] {
            for left in [true, false] {
                damage(shape, seed, Life { changes, left });
            }
        }
    }
}

#[test]
fn bad_pages_of_a_volume_are_made_good() {
    volumes(PLAIN, 1);
}

#[test]
fn bad_pages_of_a_volume_with_checksums_are_made_good_or_told() {
    volumes(SUMMED, 1001);
}
