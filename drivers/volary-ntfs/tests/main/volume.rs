//! What the format says of a volume.

use crate::images::{Images, can_make, can_mount, fill, mounted};
use crate::{attach_as, file, memory, tools};
use std::fs;
use volary_core::{Cookie, DirBuf, Format, Kind, Make, Mode, Name, Quiet, Tune};
use volary_ntfs::NTFS;
use volary_testkit::rng::pattern;
use volary_testkit::volumes::as_root;
use volary_testkit::{Fresh, Suite};

const MIB: u64 = 1 << 20;

fn image() -> Option<Vec<u8>> {
    can_mount().then(|| {
        let images = Images::new();
        let image = images.filled("", 12 * MIB, fill);
        fs::read(image).expect("an image")
    })
}

#[test]
fn the_suite_holds() {
    let Some(bytes) = image() else { return };
    let make = move || Fresh::new(attach_as(memory(bytes.clone()), "").expect("attach"));
    Suite::new("ntfs", make).run();
}

#[test]
fn volumes_are_told_and_shown() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let image = images.made("a.img", "-L LABEL", 8 * MIB);
    let dev = file(&image);
    let probe = NTFS.probe(&*dev).expect("probe").expect("a volume");
    assert_eq!(probe.kind, "ntfs");
    let facts = NTFS.info(dev.clone()).expect("info");
    let label = facts.iter().find(|fact| fact.key == "label").unwrap();
    assert_eq!(
        (facts[0].value.as_str(), label.value.as_str()),
        ("ntfs", "LABEL")
    );
    for (what, words) in [
        ("boot", "bytes_per_sector         512"),
        ("record", "$INDEX_ROOT"),
        ("record 0", "\"$MFT\""),
        ("runs 0", "$BITMAP"),
        ("index", "\"$Volume\""),
        ("list 5", "no attribute list"),
        ("security 5", "descriptor"),
        ("upcase", "0061 0041"),
        ("bitmap", "clusters"),
        ("record /", "record 5"),
    ] {
        let text = tools::dump(&dev, what);
        assert!(text.contains(words), "{what}: {text}");
    }
    for what in ["nothing", "record x", "list"] {
        let what: Vec<String> = what.split(' ').map(Into::into).collect();
        let e = NTFS.dump(dev.clone(), &what, &mut String::new());
        assert_eq!(e.unwrap_err(), Kind::Invalid);
    }
    assert_eq!(tools::check(&dev), [""; 0]);
}

#[test]
fn nothing_is_made_or_changed_yet() {
    let dev = memory(vec![0; 1 << 20]);
    let made = NTFS.make(dev.clone(), "ntfs", &Make::default());
    assert_eq!(made.unwrap_err(), Kind::Unsupported);
    let tuned = NTFS.tune(dev.clone(), &Tune::default(), &Quiet);
    assert_eq!(tuned.unwrap_err(), Kind::Unsupported);
    let marked = NTFS.mark_bad(dev.clone(), &[1]);
    assert_eq!(marked.unwrap_err(), Kind::Unsupported);
    assert_eq!(attach_as(dev, "").err(), Some(Kind::Corrupt.into()));
}

#[test]
fn a_detached_volume_is_stale() {
    let Some(bytes) = image() else { return };
    let fs = attach_as(memory(bytes), "").expect("attach");
    as_root(|cx| {
        let open = fs.open(cx, fs.root(), Mode::Read).unwrap();
        fs.detach(cx).unwrap();
        assert_eq!(fs.getattr(cx, fs.root()).unwrap_err(), Kind::Stale);
        assert_eq!(fs.close(cx, open).unwrap_err(), Kind::Stale);
        fs.detach(cx).unwrap();
    });
}

#[test]
fn names_are_found_in_any_case_and_the_very_one_first() {
    let Some(bytes) = image() else { return };
    let fs = attach_as(memory(bytes), "").expect("attach");
    as_root(|cx| {
        let find = |dir, name: &str| fs.lookup(cx, dir, Name::new(name.as_bytes()).unwrap());
        let few = find(fs.root(), "FEW").expect("few").node;
        let ids = ["a", "A", "ä", "Ä", "B.TXT"].map(|name| find(few, name).expect("a name").node);
        assert_ne!(ids[0], ids[1]);
        assert_ne!(ids[2], ids[3]);
        assert_eq!(ids[4], find(few, "b.txt").unwrap().node);
        assert_eq!(find(few, "c").unwrap_err(), Kind::NotFound);
    });
}

#[test]
fn long_streams_are_files_of_their_own_names() {
    if !can_mount() {
        return;
    }
    let images = Images::new();
    let image = images.made("streams.img", "", 8 * MIB);
    let mount = mounted(&images, &image, "streams_interface=windows");
    for (name, len) in [
        ("file", 1),
        ("other", 1),
        ("file:short", 5),
        ("file:long", 200_000),
    ] {
        fs::write(mount.dir().join(name), pattern(7, len)).unwrap();
    }
    drop(mount);
    let fs = attach_as(file(&image), "").expect("attach");
    as_root(|cx| {
        let find = |name: &str| fs.lookup(cx, fs.root(), Name::new(name.as_bytes()).unwrap());
        let node = find("file").expect("a file").node;
        for (name, len) in [("file:short", 5), ("FILE:long", 200_000)] {
            let stream = find(name).expect("a stream");
            assert_eq!(stream.attr.size, len as u64);
            assert_ne!(stream.node, node);
            assert_eq!(fs.getattr(cx, stream.node).unwrap(), stream.attr);
            let open = fs.open(cx, stream.node, Mode::Read).unwrap();
            let mut buf = vec![0; len + 9];
            assert_eq!(fs.read(cx, open, 0, &mut buf).unwrap(), len);
            assert!(buf[..len] == pattern(7, len));
        }
        for name in ["file:none", "file:", ":short", "other:short"] {
            assert_eq!(find(name).unwrap_err(), Kind::NotFound, "{name}");
        }
        let mut names = fs.listxattr(cx, node).unwrap();
        names.sort();
        assert_eq!(names, [b"user.long".to_vec(), b"user.short".to_vec()]);
        assert_eq!(fs.getxattr(cx, node, b"user.short").unwrap(), pattern(7, 5));
        let e = fs.getxattr(cx, node, b"user.long").unwrap_err();
        assert_eq!(e, Kind::TooBig);
        assert!(e.to_string().contains("FILE:STREAM"), "{e}");
    });
}

#[test]
fn the_volumes_own_files_are_shown_if_asked_for() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let image = images.made("own.img", "", 8 * MIB);
    let list = |options: &str| {
        let fs = attach_as(file(&image), options).expect("attach");
        as_root(|cx| {
            let open = fs.open(cx, fs.root(), Mode::Read).unwrap();
            let mut out = DirBuf::new(100, 1 << 16, true);
            assert!(fs.readdir(cx, open, Cookie::START, &mut out).unwrap());
            let all = out
                .iter()
                .map(|entry| String::from_utf8_lossy(entry.name).into_owned());
            let all: Vec<String> = all.collect();
            for name in &all {
                fs.lookup(cx, fs.root(), Name::new(name.as_bytes()).unwrap())
                    .expect("lookup");
            }
            let hidden = fs.lookup(cx, fs.root(), Name::new(b"$MFT").unwrap());
            assert_eq!(hidden.is_ok(), !options.is_empty());
            all
        })
    };
    assert_eq!(list(""), [""; 0]);
    let shown = list("show_sys_files");
    for name in [
        "$MFT", "$MFTMirr", "$LogFile", "$Bitmap", "$UpCase", "$Extend",
    ] {
        assert!(shown.iter().any(|one| one == name), "{shown:?}");
    }
}
