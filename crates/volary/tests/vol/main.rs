//! `Vol`: the library as people use it, over every kind of volume that it makes.

mod uses;

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use tempfile::TempDir;
use volary::{
    Caps, CheckMode, Commit, FileHow, FileKind, ImageFormat, Kind, Time, Vol, VolError, VolResult,
};

const KINDS: [&str; 8] = [
    "fat12", "fat16", "fat32", "ffs1", "ffs2", "cedar", "v7", "sysv",
];

fn size_of(kind: &str) -> u64 {
    match kind {
        "fat12" => 2 << 20,
        "fat16" => 16 << 20,
        "v7" => 8 << 20,
        _ => 64 << 20,
    }
}

struct Image(TempDir);

impl Image {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("disk.img")
    }

    fn fat(&self) -> Vol {
        Vol::make(self.path(), "fat16", 16 << 20).unwrap()
    }

    fn ffs(&self) -> Vol {
        Vol::make(self.path(), "ffs2", 64 << 20).unwrap()
    }
}

fn kind<T>(done: VolResult<T>) -> Kind {
    done.err().expect("an error").kind()
}

fn is_shared<T: Clone + Send + Sync + 'static>(_: &T) {}

#[test]
fn every_kind_is_made_written_closed_read_and_clean() {
    for kind in KINDS {
        let image = Image::new();
        let vol = Vol::make(image.path(), kind, size_of(kind)).unwrap();
        is_shared(&vol);
        vol.mkdir_all("/a/b/c").unwrap();
        let big: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        vol.write("/a/b/big", &big).unwrap();
        vol.write("/a/b/big", &big[..70_001]).unwrap();
        vol.append("/a/b/big", b"end").unwrap();
        vol.write("a/empty", "").unwrap();
        vol.rename("/a/empty", "/a/b/c/none").unwrap();
        vol.close().unwrap();

        let vol = Vol::open(image.path()).unwrap();
        let read = vol.read("/a/b/big").unwrap();
        assert_eq!(read.len(), 70_004, "{kind}");
        assert_eq!(
            (&read[..70_001], &read[70_001..]),
            (&big[..70_001], &b"end"[..])
        );
        let mut some = [0; 7];
        assert_eq!(vol.read_at("/a/b/big", 70_000, &mut some).unwrap(), 4);
        assert_eq!(&some[1..4], b"end");
        let mut paths: Vec<String> = vol
            .walk("/")
            .map(|found| String::from_utf8(found.unwrap().path).unwrap())
            .collect();
        paths.retain(|path| path.starts_with("/a"));
        paths.sort();
        assert_eq!(
            paths,
            ["/a", "/a/b", "/a/b/big", "/a/b/c", "/a/b/c/none"],
            "{kind}"
        );
        assert_eq!(vol.metadata("/a/b/c/none").unwrap().size, 0);
        assert!(vol.exists("/a/b").unwrap() && !vol.exists("/a/empty").unwrap());
        assert!(vol.space().unwrap().free > 0);
        vol.close().unwrap();
        let checked = Vol::check(image.path()).unwrap();
        assert!(checked.is_clean(), "{kind}: {:?}", checked.findings);
    }
}

#[test]
fn a_dropped_volume_is_cleanly_left_too() {
    let image = Image::new();
    let vol = image.ffs();
    let other = vol.clone();
    drop(vol);
    other.write("/kept", "kept").unwrap();
    drop(other);
    assert!(Vol::check(image.path()).unwrap().is_clean());
    assert_eq!(
        Vol::open(image.path()).unwrap().read("kept").unwrap(),
        b"kept"
    );
}

#[test]
fn errors_say_what_was_tried_and_where() {
    let image = Image::new();
    let vol = image.fat();
    let path = image.path();
    let shown = path.to_str().unwrap();
    let e = vol.read("/no\x01thing").unwrap_err();
    assert_eq!(
        e.to_string(),
        format!("cannot read {shown}:/no\\u{{1}}thing: no such file or directory")
    );
    assert_eq!((e.kind(), e.doing()), (Kind::NotFound, "read"));
    let of_std: std::io::Error = e.into();
    assert_eq!(of_std.kind(), std::io::ErrorKind::NotFound);
    let e: VolError = Vol::open("/no/such.img").unwrap_err();
    assert!(
        e.to_string().starts_with("cannot open /no/such.img: "),
        "{e}"
    );
    assert_eq!(kind(vol.mkdir("/a/b")), Kind::NotFound);
    assert_eq!(kind(vol.remove("/")), Kind::Busy);
    assert_eq!(kind(vol.write("/", "x")), Kind::Busy);
    vol.mkdir("/d").unwrap();
    assert_eq!(kind(vol.mkdir("/d")), Kind::Exists);
    assert_eq!(kind(vol.write("/d", "x")), Kind::IsDir);
    assert_eq!(kind(vol.read("/d")), Kind::IsDir);
    assert_eq!(kind(vol.list("/d/x")), Kind::NotFound);
    vol.write("/f", "x").unwrap();
    assert_eq!(kind(vol.list("/f")), Kind::NotDir);
    assert_eq!(kind(vol.walk("/f").next().unwrap()), Kind::NotDir);
    assert_eq!(kind(vol.write("/f/g", "x")), Kind::NotDir);
    assert_eq!(kind(vol.write("/a\0b", "x")), Kind::Invalid);
}

#[test]
fn nothing_is_written_through_a_volume_for_reading() {
    let image = Image::new();
    image.fat().close().unwrap();
    let before = std::fs::read(image.path()).unwrap();
    let vol = Vol::open(image.path()).unwrap();
    for done in [
        vol.write("/a", "x"),
        vol.mkdir("/a"),
        vol.append("/a", "x"),
        vol.remove("/a").or_else(|_| vol.mkdir_all("/x/y")),
        vol.open_file("/a", FileHow::NEW).map(drop),
    ] {
        assert_eq!(kind(done), Kind::ReadOnly);
    }
    vol.close().unwrap();
    assert_eq!(std::fs::read(image.path()).unwrap(), before);
}

#[test]
fn an_image_that_is_there_is_left_alone_unless_it_is_asked_for() {
    let image = Image::new();
    let vol = image.fat();
    vol.write("/a", "x").unwrap();
    let overwriting = Vol::options().overwrite();
    assert_eq!(
        kind(overwriting.make(image.path(), "fat12", 1 << 20)),
        Kind::Busy
    );
    vol.close().unwrap();
    let before = std::fs::read(image.path()).unwrap();
    assert_eq!(
        kind(Vol::make(image.path(), "fat16", 16 << 20)),
        Kind::Exists
    );
    // What fails leaves the image, and nothing beside it.
    assert_eq!(
        kind(overwriting.make(image.path(), "fat32", 4096)),
        Kind::Invalid
    );
    assert_eq!(
        kind(overwriting.make(image.path(), "hfs", 1 << 20)),
        Kind::Invalid
    );
    assert_eq!(std::fs::read(image.path()).unwrap(), before);
    let vol = overwriting.make(image.path(), "ffs2", 32 << 20).unwrap();
    assert!(!vol.exists("/a").unwrap());
    vol.close().unwrap();
    assert_eq!(std::fs::metadata(image.path()).unwrap().len(), 32 << 20);
    assert_eq!(std::fs::read_dir(image.0.path()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_made_leaves_no_image() {
    let image = Image::new();
    for (made, size) in [
        ("hfs", 1 << 20),
        ("iso9660", 1 << 20),
        ("fat32", 4096),
        ("fat16", 0),
    ] {
        let e = Vol::make(image.path(), made, size).unwrap_err();
        assert!(
            matches!(e.kind(), Kind::Invalid | Kind::Unsupported),
            "{made}: {e}"
        );
        assert_eq!(
            std::fs::read_dir(image.0.path()).unwrap().count(),
            0,
            "{made}"
        );
    }
    let below = image.0.path().join("no/disk.img");
    assert_eq!(kind(Vol::make(below, "fat16", 16 << 20)), Kind::NotFound);
    assert_eq!(kind(Vol::make("mem:", "fat16", 16 << 20)), Kind::Invalid);
    let vdi = image.0.path().join("disk.vdi");
    assert_eq!(kind(Vol::make(vdi, "fat16", 16 << 20)), Kind::Unsupported);
}

#[test]
fn qcow2_by_name_or_if_asked_for() {
    let image = Image::new();
    let by_name = image.0.path().join("disk.qcow2");
    let vol = Vol::make(&by_name, "fat16", 16 << 20).unwrap();
    vol.write("/a", "x").unwrap();
    vol.close().unwrap();
    assert!(std::fs::metadata(&by_name).unwrap().len() < 4 << 20);
    let asked = Vol::options().image_format(ImageFormat::Qcow2);
    asked.make(image.path(), "fat16", 16 << 20).unwrap();
    for path in [by_name, image.path()] {
        assert!(std::fs::read(path).unwrap().starts_with(b"QFI\xfb"));
    }
}

#[test]
fn a_file_that_is_replaced_keeps_what_it_had() {
    let image = Image::new();
    let vol = image.ffs();
    vol.write("/a", "old").unwrap();
    vol.set_owner("/a", 5, 6).unwrap();
    vol.set_mode("/a", 0o4751).unwrap();
    vol.xattrs("/a").unwrap().set("user.note", "kept").unwrap();
    vol.symlink("a", "/to-a").unwrap();
    vol.symlink("new", "/to-new").unwrap();
    vol.write("/to-a", "new").unwrap();
    vol.write("/to-new", "made").unwrap();
    let attr = vol.metadata("/a").unwrap();
    assert_eq!((attr.mode, attr.uid, attr.gid), (0o4751, 5, 6));
    assert_eq!(vol.xattrs("/a").unwrap().get("user.note").unwrap(), b"kept");
    assert_eq!(vol.read("/a").unwrap(), b"new");
    assert_eq!(vol.read("/new").unwrap(), b"made");
    assert_eq!(vol.read_link("/to-a").unwrap(), b"a");
    assert_eq!(
        vol.symlink_metadata("/to-a").unwrap().kind,
        FileKind::Symlink
    );

    vol.hard_link("/a", "/b").unwrap();
    vol.write("/a", "of both").unwrap();
    assert_eq!(vol.read("/b").unwrap(), b"of both");

    let hidden = Vol::options()
        .make(image.0.path().join("fat.img"), "fat16", 16 << 20)
        .unwrap();
    hidden.write("/h", "old").unwrap();
    let set = volary::SetAttr {
        dos: Some(2),
        ..volary::SetAttr::default()
    };
    hidden.set_attr("/h", &set).unwrap();
    hidden.write("/h", "new").unwrap();
    assert_eq!(hidden.metadata("/h").unwrap().dos, Some(2));
}

#[test]
fn a_full_volume_keeps_the_old_content() {
    let image = Image::new();
    let vol = Vol::make(image.path(), "fat12", 1 << 20).unwrap();
    vol.write("/a", vec![7; 600_000]).unwrap();
    assert_eq!(kind(vol.write("/a", vec![8; 600_000])), Kind::NoSpace);
    assert_eq!(vol.read("/a").unwrap(), vec![7; 600_000]);
    let names: Vec<_> = vol
        .list("/")
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, [b"a"]);
}

#[test]
fn files_are_files_of_the_standard_library() {
    let image = Image::new();
    let vol = image.fat();
    let mut file = vol.open_file("/lines", FileHow::NEW).unwrap();
    for n in 0..1000 {
        writeln!(file, "line {n}").unwrap();
    }
    file.sync().unwrap();
    file.close().unwrap();
    assert_eq!(kind(vol.open_file("/lines", FileHow::NEW)), Kind::Exists);
    assert_eq!(
        kind(vol.open_file("/none", FileHow::UPDATE)),
        Kind::NotFound
    );

    let file = vol.open_file("/lines", FileHow::READ).unwrap();
    assert_eq!(kind(file.write_at(0, b"x")), Kind::Access);
    let lines: Vec<_> = BufReader::new(file).lines().map(Result::unwrap).collect();
    assert_eq!((lines.len(), lines[999].as_str()), (1000, "line 999"));

    let mut file = vol.open_file("/lines", FileHow::UPDATE).unwrap();
    file.seek(SeekFrom::End(-9)).unwrap();
    file.write_all(b"LINE").unwrap();
    file.set_len(file.metadata().unwrap().size - 1).unwrap();
    file.seek(SeekFrom::Current(-4)).unwrap();
    let mut rest = String::new();
    file.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "LINE 999");
    assert!(file.seek(SeekFrom::Current(-100_000)).is_err());
    file.close().unwrap();

    let mut file = vol.open_file("/lines", FileHow::WRITE).unwrap();
    assert_eq!(file.metadata().unwrap().size, 0);
    file.write_all(b"short").unwrap();
    drop(file);
    vol.append("/lines", "er").unwrap();
    assert_eq!(vol.read("/lines").unwrap(), b"shorter");
}

#[test]
fn a_walk_leaves_out_what_it_is_told_to() {
    let image = Image::new();
    let vol = image.ffs();
    vol.mkdir_all("/in/deep").unwrap();
    vol.mkdir_all("/out/deep").unwrap();
    vol.symlink("/", "/in/up").unwrap();
    let mut walk = vol.walk("");
    let mut found = Vec::new();
    while let Some(walked) = walk.next() {
        let walked = walked.unwrap();
        if walked.path == b"/out" {
            walk.skip_dir();
        }
        found.push(walked.path);
    }
    found.retain(|path| !path.ends_with(b"lost+found"));
    found.sort();
    let expected: [&[u8]; 4] = [b"/in", b"/in/deep", b"/in/up", b"/out"];
    assert_eq!(found, expected);
}

#[test]
fn trees_are_removed_and_links_out_of_them_are_not_followed() {
    let image = Image::new();
    let vol = image.ffs();
    vol.mkdir_all("/tree/a/b").unwrap();
    vol.write("/kept", "kept").unwrap();
    vol.symlink("/kept", "/tree/a/link").unwrap();
    vol.symlink("/", "/tree/root").unwrap();
    vol.write("/tree/a/b/file", "x").unwrap();
    assert_eq!(kind(vol.remove("/tree")), Kind::NotEmpty);
    vol.remove_all("/tree").unwrap();
    assert!(!vol.exists("/tree").unwrap() && vol.exists("/kept").unwrap());
    vol.remove_all("/kept").unwrap();
    assert_eq!(kind(vol.remove_all("/kept")), Kind::NotFound);
    assert_eq!(kind(vol.remove_all("/")), Kind::Busy);
}

#[test]
fn a_closed_volume_answers_its_other_handles_stale() {
    let image = Image::new();
    let vol = image.fat();
    let (other, file) = (vol.clone(), vol.open_file("/a", FileHow::WRITE).unwrap());
    vol.close().unwrap();
    assert_eq!(kind(other.read("/a")), Kind::Stale);
    assert_eq!(kind(file.write_at(0, b"x")), Kind::Stale);
    assert_eq!(kind(file.close()), Kind::Stale);
}

#[test]
fn who_changes_an_image_has_it_alone() {
    let image = Image::new();
    let vol = image.fat();
    assert_eq!(kind(Vol::open(image.path())), Kind::Busy);
    assert_eq!(kind(Vol::check(image.path())), Kind::Busy);
    vol.close().unwrap();
    let both = (
        Vol::open(image.path()).unwrap(),
        Vol::open(image.path()).unwrap(),
    );
    assert_eq!(kind(Vol::edit(image.path())), Kind::Busy);
    drop(both);
    Vol::edit(image.path()).unwrap();
}

#[test]
fn layers_lie_over_a_volume_from_the_start_or_later() {
    let image = Image::new();
    let vol = image.ffs();
    vol.mkdir("/Docs").unwrap();
    vol.write("/Docs/Read.Me", "x").unwrap();
    let vol = vol.layer("subtree=/Docs").unwrap();
    assert_eq!(vol.read("/Read.Me").unwrap(), b"x");
    let vol = vol.layer("readonly").unwrap();
    assert_eq!(kind(vol.write("/Read.Me", "y")), Kind::ReadOnly);
    let other = vol.clone();
    assert_eq!(kind(vol.layer("casefold")), Kind::Busy);
    assert_eq!(kind(other.layer("no-such-layer")), Kind::Invalid);
    // The volume is closed, cleanly.
    let folded = Vol::options().layer("casefold").open(image.path()).unwrap();
    assert_eq!(folded.read("/docs/READ.me").unwrap(), b"x");
    drop(folded);
    let wrong = Vol::options()
        .layer("casefold")
        .layer("none-such")
        .open(image.path());
    assert_eq!(kind(wrong), Kind::Invalid);
    assert!(Vol::check(image.path()).unwrap().is_clean());
}

#[test]
fn the_same_calls_by_the_same_clock_make_the_same_bytes() {
    let image = Image::new();
    let make = |name: &str| {
        let options = Vol::options()
            .clock(|| Time::from_secs(1_000_000_000))
            .commit(Commit::WhenAsked)
            .seed(7)
            .owner(1, 2)
            .umask(0o027)
            .label("SAME")
            .make_options("unix");
        let path = image.0.path().join(name);
        let vol = options.make(&path, "fat16", 16 << 20).unwrap();
        vol.mkdir("/d").unwrap();
        vol.write("/d/a", "x").unwrap();
        let (dir, file) = (vol.metadata("/d").unwrap(), vol.metadata("/d/a").unwrap());
        assert_eq!((dir.mode, file.mode), (0o750, 0o640));
        assert_eq!((file.uid, file.gid, file.mtime.secs), (1, 2, 1_000_000_000));
        vol.close().unwrap();
        std::fs::read(path).unwrap()
    };
    assert!(make("one") == make("two"));
}

#[test]
fn many_threads_use_one_volume() {
    let image = Image::new();
    let vol = image.ffs();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let vol = vol.clone();
            scope.spawn(move || {
                for n in 0..50 {
                    let path = format!("/t{thread}/f{n}");
                    vol.mkdir_all(format!("/t{thread}")).unwrap();
                    vol.write(&path, path.repeat(100)).unwrap();
                    // All write this one: whole contents of one of them.
                    vol.write("/shared", vec![b'0' + thread; 5000]).unwrap();
                    let shared = vol.read("/shared").unwrap();
                    assert!(shared.len() == 5000, "{}", shared.len());
                    assert!(shared.iter().all(|b| *b == shared[0]));
                    assert_eq!(vol.read(&path).unwrap(), path.repeat(100).into_bytes());
                }
            });
        }
    });
    vol.close().unwrap();
    assert!(Vol::check(image.path()).unwrap().is_clean());
}

#[test]
fn directories_and_memory_are_volumes_too() {
    let dir = TempDir::new().unwrap();
    let vol = Vol::edit(format!("host:{}", dir.path().display())).unwrap();
    vol.write("/a", "x").unwrap();
    assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"x");
    let vol = Vol::edit("mem:1M").unwrap();
    assert!(vol.volume().caps().has(Caps::SYMLINKS));
    vol.write("/a", "x").unwrap();
    assert_eq!(kind(Vol::options().kind("hfs").open("mem:")), Kind::Invalid);
}

#[test]
fn a_check_mends_if_it_may() {
    let image = Image::new();
    image.fat().close().unwrap();
    // The second FAT says something else than the first.
    let mut bytes = std::fs::read(image.path()).unwrap();
    let reserved = u16::from_le_bytes([bytes[14], bytes[15]]) as usize;
    bytes[reserved * 512 + 100] = 0x55;
    std::fs::write(image.path(), bytes).unwrap();
    let looked = Vol::check(image.path()).unwrap();
    assert!(!looked.is_clean() && !looked.findings.is_empty());
    let mended = Vol::options().check(image.path(), CheckMode::Mend).unwrap();
    assert!(mended.is_clean() && mended.report.mended > 0);
    assert!(Vol::check(image.path()).unwrap().findings.is_empty());
}
