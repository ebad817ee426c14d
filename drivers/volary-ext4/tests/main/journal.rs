//! Journals that were not replayed: what Linux left when its volume was copied while it was
//! mounted, and transactions that debugfs writes.

use crate::images::{Images, Mounted, can_make, can_mount, debugfs, run};
use crate::{attach_as, file, memory, tools};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use volary_core::{FileKind, Format, Kind, Mode, Name};
use volary_ext4::EXT4;
use volary_testkit::rng::pattern;
use volary_testkit::view::{Row, View, assert_same, host, kept_by_a_copy, ours};
use volary_testkit::volumes::as_root;

/// The magic of a journal's blocks: data that begins so is escaped.
const MAGIC: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];

/// Work on a mounted volume, so that blocks are freed, used again, and written twice.
fn work(dir: &Path) {
    let sh = |line: &str| run(Command::new("sh").args(["-ec", line]).current_dir(dir));
    sh("mkdir a b; for n in $(seq 1 120); do echo $n > a/file_number_$n; done; sync .");
    sh("mkdir b/c; mv a/file_number_7 b/c/seven; ln b/c/seven b/eight; ln -s b/c link; sync .");
    sh("rm -r a; mkdir d; sync .");
    fs::write(dir.join("magic"), [&MAGIC[..], &[7; 9000]].concat()).expect("a file");
    fs::write(dir.join("d/new"), pattern(5, 70_000)).expect("a file");
    sh("chmod 600 magic; touch -d 2001-02-03 d/new; sync .");
    // Open and without a name when the power goes.
    sh("for n in $(seq 1 40); do echo $n > d/$n; done; rm d/*5; truncate -s 10000 d/new; sync .");
}

/// Returns the volume as it was on the disk while Linux had it mounted.
fn left_in_use(images: &Images, how: &str, options: &str, work: impl Fn(&Path)) -> PathBuf {
    let image = images.made("used.img", how, "24M", None);
    let left = images.path("left.img");
    let mounted = Mounted::new(images, &image, options);
    work(mounted.dir());
    fs::copy(&image, &left).expect("a copy");
    drop(mounted);
    left
}

/// Returns what Linux makes of it when it replays the journal.
fn by_linux(images: &Images, left: &Path) -> View {
    let copy = images.path("replayed.img");
    fs::copy(left, &copy).expect("a copy");
    drop(Mounted::new(images, &copy, "rw"));
    let mounted = Mounted::new(images, &copy, "ro");
    host(mounted.dir())
}

#[test]
fn a_journal_is_replayed_in_memory_as_linux_replays_it() {
    if !can_make() || !can_mount() {
        return;
    }
    let images = Images::new();
    for (how, options) in [
        ("-t ext4", "rw"),
        ("-t ext4 -b 1024 -J size=1", "rw"),
        ("-t ext4 -O ^metadata_csum,^64bit -b 1024", "rw"),
        ("-t ext4 -O ^metadata_csum", "rw,journal_checksum"),
        ("-t ext4 -O ^64bit", "rw,data=journal"),
        ("-t ext3 -b 1024", "rw,data=journal"),
    ] {
        let what = format!("{how}, {options}");
        let left = left_in_use(&images, how, options, work);
        let before = fs::read(&left).expect("an image");
        let dev = file(&left);
        let fs = attach_as(dev.clone(), "").unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_same(&what, &ours(&fs, &dev), &by_linux(&images, &left));
        assert_eq!(tools::damage(&dev), [""; 0], "{what}");
        tools::check_map(&dev);
        let facts = EXT4.info(dev.clone()).expect("info");
        assert!(
            facts.iter().any(|fact| fact.key == "replayed in memory"),
            "{what}"
        );
        assert!(
            tools::dump(&dev, "journal").contains("transaction"),
            "{what}"
        );
        assert!(
            before == fs::read(&left).expect("an image"),
            "{what}: it wrote"
        );
    }
}

/// Without times and counts of directories: Linux gives what it replays of fast commits the time of
/// the replay, and does not count directories in directories.
fn without_what_replaying_changes(view: &View) -> View {
    let change = |row: Row| Row {
        links: if row.kind == FileKind::Dir {
            0
        } else {
            row.links
        },
        ..row
    };
    let rows = kept_by_a_copy(view).into_iter();
    rows.map(|(name, row)| {
        let mut row = change(row);
        if row.kind == FileKind::Dir {
            row.times = Default::default();
        }
        (name, row)
    })
    .collect()
}

/// Changes that are made durable one by one, as fast commits are.
fn work_by_fast_commits(dir: &Path) {
    let fsync = |name: &str| {
        fs::File::open(dir.join(name))
            .and_then(|file| file.sync_all())
            .expect("fsync");
    };
    fs::create_dir(dir.join("old")).expect("a directory");
    fs::write(dir.join("old/kept"), pattern(1, 20_000)).expect("a file");
    fs::write(dir.join("old/cut"), pattern(2, 90_000)).expect("a file");
    fs::write(dir.join("old/gone"), "gone").expect("a file");
    run(Command::new("sync").arg("-f").arg(dir));
    fs::write(dir.join("first"), pattern(3, 50_000)).expect("a file");
    fsync("first");
    fs::create_dir(dir.join("new")).expect("a directory");
    fs::create_dir(dir.join("new/below")).expect("a directory");
    fs::write(dir.join("new/below/file"), pattern(4, 5000)).expect("a file");
    fsync("new/below/file");
    fs::hard_link(dir.join("old/kept"), dir.join("new/linked")).expect("a link");
    fs::rename(dir.join("first"), dir.join("new/moved")).expect("a rename");
    fs::remove_file(dir.join("old/gone")).expect("a removal");
    let cut = fs::File::options()
        .write(true)
        .open(dir.join("old/cut"))
        .expect("a file");
    cut.set_len(10_000).expect("a cut");
    std::os::unix::fs::FileExt::write_all_at(&cut, &pattern(6, 8000), 60_000).expect("a write");
    cut.sync_all().expect("fsync");
    fsync("new/moved");
    fsync("new/linked");
}

#[test]
fn fast_commits_are_replayed() {
    if !can_make() || !can_mount() {
        return;
    }
    let images = Images::new();
    for how in [
        "-t ext4 -O fast_commit",
        "-t ext4 -O fast_commit,inline_data -b 1024",
    ] {
        let left = left_in_use(&images, how, "rw", work_by_fast_commits);
        let dev = file(&left);
        let fs = attach_as(dev.clone(), "").unwrap_or_else(|e| panic!("{how}: {e}"));
        let told = tools::dump(&dev, "journal");
        assert!(told.contains("fast commit"), "{how}: {told}");
        let linux = without_what_replaying_changes(&by_linux(&images, &left));
        let seen = ours(&fs, &dev);
        assert_same(how, &without_what_replaying_changes(&seen), &linux);
        let links = |name: &[u8]| seen.get(name).map(|row| row.links);
        assert_eq!(
            (links(b"/new"), links(b"/new/below")),
            (Some(3), Some(2)),
            "{how}"
        );
        assert_eq!(tools::damage(&dev), [""; 0], "{how}");
    }
}

/// Returns a file's bytes and the first block that they are in.
fn read(image: &Path, options: &str, name: &[u8]) -> Vec<u8> {
    let dev = file(image);
    let fs = attach_as(dev.clone(), options).expect("attach");
    as_root(|cx| {
        let entry = fs
            .lookup(cx, fs.root(), Name::new(name).unwrap())
            .expect("the file");
        volary_testkit::view::content(&fs, cx, &entry.attr, &dev)
    })
}

/// What debugfs writes into a journal, with checksums of each version: blocks, an escaped one, and
/// ones that are revoked.
#[test]
fn transactions_of_debugfs_are_replayed_and_revoked() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let source = images.path("few");
    fs::create_dir_all(&source).expect("a directory");
    for name in ["one", "two", "three"] {
        fs::write(source.join(name), pattern(name.len() as u64, 1024)).expect("a file");
    }
    for (features, open) in [
        ("^metadata_csum,^64bit", "jo"),
        ("^metadata_csum,64bit", "jo"),
        ("^metadata_csum,64bit", "jo -c -v 2"),
        ("^metadata_csum,^64bit", "jo -c -v 2"),
        ("metadata_csum", "jo -c -v 2"),
        ("metadata_csum,^64bit", "jo -c -v 2"),
        ("metadata_csum", "jo -c -v 3"),
    ] {
        let what = format!("{features}, {open}");
        let how = format!("-t ext4 -b 1024 -O {features}");
        let image = images.made("debugfs.img", &how, "8M", Some(&source));
        let block = |name: &str| {
            let told = debugfs(&image, &format!("bmap {name} 0\n"));
            let number = told
                .lines()
                .rev()
                .find_map(|line| line.trim().parse::<u64>().ok());
            number.unwrap_or_else(|| panic!("{told}"))
        };
        let places = ["one", "two", "three"].map(block);
        let escaped = [&MAGIC[..], &pattern(8, 1020)].concat();
        fs::write(images.path("new"), pattern(9, 1024)).expect("a block");
        fs::write(images.path("escaped"), &escaped).expect("a block");
        // Without checksums of metadata a journal has those of the first version: debugfs counts revocations into
        // them; Linux and e2fsck do not.
        let is_first = features.starts_with("^metadata_csum") && open.starts_with("jo -c");
        let revokes = !is_first;
        let [one, two, three] = places;
        let new = images.path("new");
        let requests = format!(
            "{open}\njw -b {one} {new}\njw -b {two} {}\njw -b {three} {new}\n{}jc\n",
            images.path("escaped").display(),
            if revokes {
                format!("jw -r {three}\n")
            } else {
                String::new()
            },
            new = new.display(),
        );
        debugfs(&image, &requests);
        assert!(read(&image, "", b"one") == pattern(9, 1024), "{what}");
        assert!(read(&image, "", b"two") == escaped, "{what}");
        let third = if revokes { 5 } else { 9 };
        assert!(read(&image, "", b"three") == pattern(third, 1024), "{what}");
        assert!(read(&image, "noload", b"one") == pattern(3, 1024), "{what}");
        let dev = file(&image);
        assert_eq!(tools::damage(&dev), [""; 0], "{what}");
    }
}

/// A journal whose blocks are damaged is refused, or ends earlier; `noload` reads the volume.
#[test]
fn a_damaged_journal_is_refused() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let image = images.made("damaged.img", "-t ext4 -b 1024", "8M", None);
    fs::write(images.path("new"), pattern(9, 1024)).expect("a block");
    let requests = format!(
        "jo -c -v 3\njw -b 3000 {}\njc\n",
        images.path("new").display()
    );
    debugfs(&image, &requests);
    let told = debugfs(&image, "bmap <8> 1\nbmap <8> 2\nbmap <8> 3\n");
    let blocks: Vec<u64> = told
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect();
    assert_eq!(blocks.len(), 3, "{told}");
    let good = fs::read(&image).expect("an image");
    for (block, what) in blocks.iter().zip(["a descriptor", "data", "a commit"]) {
        let mut bytes = good.clone();
        bytes[usize::try_from(*block).unwrap() * 1024 + 20] ^= 1;
        let dev = memory(bytes);
        let told = attach_as(dev.clone(), "")
            .err()
            .unwrap_or_else(|| panic!("{what} was taken"));
        assert_eq!(told, Kind::Corrupt, "{what}: {told}");
        let fs = attach_as(dev.clone(), "noload").expect("attach");
        as_root(|cx| fs.open(cx, fs.root(), Mode::Read)).expect("open");
        let found = tools::check(&dev);
        assert!(
            found.iter().any(|line| line.starts_with("journal: ")),
            "{what}: {found:?}"
        );
    }
}
