//! Damage of many kinds, mended: a second check finds nothing and writes nothing, what was
//! not damaged is there, what is lost was told of, and others read the volume as we do.

mod bits;
mod cut;
mod directories;
mod kept;
mod kinds;
mod made;

use crate::lists::without_the_examiners;
use crate::oracle::{by_linux, by_sleuthkit, for_linux, on_disk};
use crate::volumes::{attach, check, shape};
use kinds::{Kind, Preen, kinds};
use made::Made;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    Answer, BlockDevice, Check, CheckMode, FileKind, Finding, Format, Options, Quiet, escape,
};
use volary_ffs::FFS;
use volary_testkit::oracle::{have, sleuthkit, vm};
use volary_testkit::readable::Readable;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::{NOW, Shape, as_root, attach_read_only};

const MIB: u64 = 1 << 20;
const SHAPES: [Shape; 4] = [
    shape("ffs1", 6 * MIB).made("block=4096,fragment=512"),
    shape("ffs2", 6 * MIB).made("block=4096,fragment=512,order=big"),
    shape("ffs2", 6 * MIB).made("block=4096,fragment=512"),
    shape("ffs1", 6 * MIB).made("block=4096,fragment=512,old"),
];

/// What a volume is after it was mended.
struct Mended {
    image: Vec<u8>,
    tree: Tree,
}

/// Files that are gone: neither by their names nor in `lost+found`.
fn lost<'a>(before: &'a Tree, after: &Tree) -> Vec<&'a [u8]> {
    let is_there = |hash: &Option<[u8; 32]>| after.0.values().any(|leaf| leaf.hash == *hash);
    let files = before.0.iter().filter(|(_, leaf)| leaf.hash.is_some());
    let lost = files.filter(|(_, leaf)| !is_there(&leaf.hash));
    lost.map(|(path, _)| path.as_slice()).collect()
}

fn damaged(m: &Made, kind: &Kind) -> Result<Vec<u8>, String> {
    let mut image = m.image.clone();
    (kind.act)(m, &mut image);
    let does_something = image != m.image;
    does_something
        .then_some(image)
        .ok_or_else(|| "does nothing".into())
}

/// Returns what a check tells: paths, and messages with their codes.
fn told(dev: Arc<dyn BlockDevice>) -> Vec<(Vec<u8>, String)> {
    let mut told = Vec::new();
    let mut tell = |f: &Finding| {
        let message = format!("{}: {}", f.code, f.message);
        told.push((f.path.clone().unwrap_or_default(), message));
        Answer::No
    };
    let how = Check {
        mode: CheckMode::Look,
        now: NOW,
        options: Options::default(),
    };
    let report = FFS.check(dev, &how, &mut tell, &Quiet);
    assert_eq!(report.expect("check").written, 0);
    told
}

/// Returns whether it was told that a file may be lost: by its path, or by its inode.
fn is_told(m: &Made, path: &[u8], told: &[(Vec<u8>, String)]) -> bool {
    let number = m.ino_of(path).expect("an inode").to_string();
    told.iter().any(|(its, message)| {
        let mut words = message.split(|c: char| !c.is_ascii_digit());
        its.strip_prefix(b"/") == Some(path) || words.any(|word| word == number)
    })
}

/// Returns how much can be read of a volume, which perhaps cannot even be attached. The long file with a
/// hole counts only if `all` does.
fn readable(m: &Made, dev: &Arc<MemDevice>, all: bool) -> Readable {
    let Ok(fs) = attach_read_only(&FFS, dev.clone(), "") else {
        return Readable::default();
    };
    as_root(|cx| {
        let mut readable = m.content.readable(&fs, cx);
        if all {
            readable.0.extend(m.sparse.readable(&fs, cx).0);
        }
        readable
    })
}

/// Returns what is wrong with how one kind of damage is mended.
fn mended(m: &Made, kind: &Kind) -> Result<Mended, String> {
    let dev = Arc::new(MemDevice::from_vec(damaged(m, kind)?));
    let is_of_sparse = kind.what.contains("double");
    let before = readable(m, &dev, is_of_sparse);
    let told = told(dev.clone());
    let code = format!("{}:", kind.code);
    if !told.iter().any(|(_, message)| message.starts_with(&code)) {
        return Err(format!("not found: {told:#?}"));
    }
    let (report, found) = check(dev.clone(), CheckMode::Mend);
    if report.left() > 0 {
        return Err(format!("{} left: {found:#?}", report.left()));
    }
    let (again, found) = check(dev.clone(), CheckMode::Mend);
    if (again.found, again.written) != (0, 0) {
        return Err(format!("{} written again: {found:#?}", again.written));
    }
    let gone = readable(m, &dev, is_of_sparse).lost_since(&before);
    if !gone.is_empty() {
        return Err(format!("{}: {told:#?}", gone.join("\n")));
    }
    let image = dev.to_vec();
    let fs = attach(dev as Arc<dyn BlockDevice>, "");
    let tree = as_root(|cx| Tree::read(&fs, cx)).map_err(|e| e.to_string())?;
    let lost = lost(&m.tree, &tree);
    match lost.into_iter().find(|path| !is_told(m, path, &told)) {
        Some(path) => Err(format!("'{}' is lost: {told:#?}", escape(path))),
        None => Ok(Mended { image, tree }),
    }
}

/// What sleuthkit reads otherwise. Of 4.3BSD's directories it reads nothing, of nodes that are
/// neither file nor directory little.
fn read_otherwise(mended: &Mended) -> Result<(), String> {
    let plain = |tree: Tree| {
        let mut tree = tree.map(by_sleuthkit);
        tree.0
            .retain(|_, leaf| matches!(leaf.kind, FileKind::File | FileKind::Dir));
        tree
    };
    let theirs = sleuthkit::tree(on_disk(&mended.image).path())?;
    let theirs = plain(without_the_examiners(theirs));
    let differences = theirs.differences(&plain(mended.tree.clone()));
    match differences.is_empty() {
        true => Ok(()),
        false => Err(format!("sleuthkit reads otherwise: {differences:#?}")),
    }
}

/// Returns whether others look at all of it (`VOLARY_SUITES=all`), rather than at a part.
pub(crate) fn is_whole() -> bool {
    std::env::var_os("VOLARY_SUITES").is_some_and(|suites| suites == "all")
}

#[test]
fn damage_is_mended_and_nothing_is_lost_untold() {
    let has_sleuthkit = have(&[sleuthkit::FLS, sleuthkit::ICAT, sleuthkit::RECOVER]);
    let mut failures = Vec::new();
    for shape in SHAPES {
        let m = Made::new(shape);
        let reads = has_sleuthkit && !m.is_old();
        for (kind, number) in kinds(&m).zip(0_u32..) {
            let reads = reads && (is_whole() || number.is_multiple_of(4));
            let done = mended(&m, kind);
            let done = done.and_then(|mended| match reads {
                true => read_otherwise(&mended),
                false => Ok(()),
            });
            if let Err(words) = done {
                failures.push(format!("{}: {}: {words}", m.shape.name(), kind.what));
            }
        }
        let count = kinds(&m).count();
        println!("{}: {count} kinds of damage", m.shape.name());
        assert!(count >= 60);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// All in one guest; one in twelve of the kinds, others on each shape, or all of them.
#[test]
fn linux_reads_what_was_mended() {
    let Some(vmrun) = vm::find() else { return };
    let mut all = Vec::new();
    let step = if is_whole() { 1 } else { 12 };
    for (first, shape) in SHAPES.iter().enumerate() {
        let m = Made::new(*shape);
        for kind in kinds(&m).skip(first * 2 % step).step_by(step) {
            let mended = mended(&m, kind).expect("mended");
            let what = format!("{}: {}", shape.name(), kind.what);
            all.push((shape, what, on_disk(&mended.image), mended.tree));
        }
    }
    let volumes = all
        .iter()
        .map(|(shape, _, file, _)| for_linux(file.path(), shape));
    let theirs = vm::trees(&vmrun, &volumes.collect::<Vec<_>>()).expect("Linux");
    for ((_, what, _, ours), theirs) in all.into_iter().zip(theirs) {
        let differences = theirs.map(by_linux).differences(&ours.map(by_linux));
        assert!(differences.is_empty(), "{what}: {differences:#?}");
    }
}

/// What is wrong with what preening does to one kind of damage.
fn preened(m: &Made, kind: &Kind) -> Result<(), String> {
    let image = damaged(m, kind)?;
    let dev = Arc::new(MemDevice::from_vec(image.clone()));
    let (report, found) = check(dev.clone(), CheckMode::Preen);
    let is_right = match kind.preen {
        Preen::Refuses => {
            report.left() > 0 && (report.written, report.mended) == (0, 0) && dev.to_vec() == image
        }
        Preen::Mends => {
            let (again, _) = check(dev, CheckMode::Preen);
            report.left() == 0 && (again.found, again.written) == (0, 0)
        }
    };
    is_right
        .then_some(())
        .ok_or_else(|| format!("not {:?}: {report:?}: {found:#?}", kind.preen))
}

#[test]
fn preening_refuses_damage_and_mends_what_a_power_cut_leaves() {
    let mut failures = Vec::new();
    for shape in SHAPES {
        let m = Made::new(shape);
        for kind in kinds(&m) {
            if let Err(words) = preened(&m, kind) {
                failures.push(format!("{}: {}: {words}", m.shape.name(), kind.what));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Whose fragments it would take, before or after it, loses nothing.
#[test]
fn a_directory_whose_size_says_too_much_ends_with_its_blocks() {
    for shape in SHAPES {
        let m = Made::new(shape);
        for (dir, size) in ["", "a", "b", "empty", "many"]
            .into_iter()
            .flat_map(|dir| (9..64).map(move |bit| (dir, 1_u64 << bit)))
        {
            let place = m.size(dir);
            let before = m.get(&m.image, place, 8);
            if before & size != 0 {
                continue;
            }
            let mut image = m.image.clone();
            m.put(&mut image, place, 8, before | size);
            let what = format!("{}: '{dir}' of {} bytes", shape.name(), before | size);
            let dev = Arc::new(MemDevice::from_vec(image));
            let (report, found) = check(dev.clone(), CheckMode::Mend);
            assert_eq!(report.left(), 0, "{what}: {found:#?}");
            let (again, found) = check(dev.clone(), CheckMode::Mend);
            assert_eq!((again.found, again.written), (0, 0), "{what}: {found:#?}");
            let fs = attach(dev, "");
            let tree = as_root(|cx| Tree::read(&fs, cx)).expect("the tree");
            let differences = m.tree.differences(&tree);
            assert!(differences.is_empty(), "{what}: {differences:#?}");
        }
    }
}

#[test]
fn a_check_goes_by_the_superblock_that_is_named() {
    for shape in SHAPES {
        let m = Made::new(shape);
        let mut image = m.image.clone();
        image[m.head()..][..1376].fill(0xee);
        let dev = Arc::new(MemDevice::from_vec(image));
        let options = format!("superblock={}", m.replica(1) / 512);
        let as_named = |mode| volary_testkit::volumes::check(&FFS, dev.clone(), mode, &options);
        let (report, found) = as_named(CheckMode::Mend).expect("check");
        assert!(
            found.iter().any(|line| line.starts_with("superblock:")),
            "{found:#?}"
        );
        assert_eq!(report.left(), 0, "{found:#?}");
        let (again, found) = as_named(CheckMode::Mend).expect("check");
        assert_eq!((again.found, again.written), (0, 0), "{found:#?}");
        let fs = attach(dev.clone(), "");
        let tree = as_root(|cx| Tree::read(&fs, cx)).expect("the tree");
        tree.assert_same(&m.tree);
    }
}

#[test]
fn a_format_of_inodes_that_there_is_none_of_is_damage() {
    let ufs1 = SHAPES.into_iter().find(|shape| shape.kind == "ffs1");
    let m = Made::new(ufs1.expect("UFS1"));
    let mut image = m.image.clone();
    // One bit of `fs_old_inodefmt`, which is 2.
    image[m.head() + 1326] ^= 4;
    let dev = Arc::new(MemDevice::from_vec(image));
    let (report, found) = check(dev.clone(), CheckMode::Mend);
    assert_eq!(report.left(), 0, "{found:#?}");
    assert!(found[0].starts_with("superblock:"), "{found:#?}");
    assert_eq!(check(dev.clone(), CheckMode::Mend).0.written, 0);
    let fs = attach(dev, "");
    let tree = as_root(|cx| Tree::read(&fs, cx)).expect("the tree");
    tree.assert_same(&m.tree);
}
