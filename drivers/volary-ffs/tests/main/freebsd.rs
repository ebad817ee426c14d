//! FreeBSD's images: extended attributes, three levels of indirect blocks, long targets.

use crate::lists::hex;
use crate::{attach, shared};
use volary_core::{Attr, Extent, Fs, Kind, Mode, Name, Place, Time};
use volary_testkit::volumes::as_root;

const IMAGES: [&str; 2] = ["ufs-little", "ufs-big"];

fn find(fs: &Fs, name: &str) -> Attr {
    let name = Name::new(name.as_bytes()).expect("a name");
    as_root(|cx| fs.lookup(cx, fs.root(), name))
        .expect("lookup")
        .attr
}

fn extents(fs: &Fs, attr: &Attr) -> Vec<Extent> {
    as_root(|cx| {
        let open = fs.open(cx, attr.node, Mode::Read).expect("open");
        let mut out = Vec::new();
        fs.extents(cx, open, 0, u64::MAX, &mut out)
            .expect("extents");
        fs.close(cx, open).expect("close");
        out
    })
}

fn read(fs: &Fs, attr: &Attr, offset: u64, len: usize) -> Vec<u8> {
    as_root(|cx| {
        let open = fs.open(cx, attr.node, Mode::Read).expect("open");
        let mut bytes = vec![0xee; len];
        let n = fs.read(cx, open, offset, &mut bytes).expect("read");
        fs.close(cx, open).expect("close");
        bytes.truncate(n);
        bytes
    })
}

#[test]
fn extended_attributes_are_read_in_both_byte_orders() {
    for name in IMAGES {
        let Some(image) = shared::image(name) else {
            return;
        };
        let fs = attach(&image);
        let get = |file: &str, name: &str| {
            let node = find(&fs, file).node;
            as_root(|cx| fs.getxattr(cx, node, name.as_bytes()))
        };
        let names = |file: &str| {
            let node = find(&fs, file).node;
            as_root(|cx| fs.listxattr(cx, node)).expect("listxattr")
        };
        assert_eq!(names("xattrs"), [b"user.test"]);
        assert_eq!(get("xattrs", "user.test").expect("value"), b"testvalue");
        for absent in ["test", "user.tes", "system.test", "user.testx"] {
            assert_eq!(
                get("xattrs", absent).unwrap_err(),
                Kind::NoXattr,
                "{absent}"
            );
        }
        // More than one block of them.
        let many = names("xattrs2");
        assert!(many.len() > 1000, "{}", many.len());
        for (i, name) in many.iter().enumerate() {
            assert_eq!(*name, format!("user.attr{}", i + 1).into_bytes());
            let name = String::from_utf8_lossy(name);
            let value = get("xattrs2", &name).expect("value");
            assert_eq!(value, format!("value{}", i + 1).into_bytes());
        }
        let big = get("xattrs3", "user.big").expect("value");
        let expected: String = (0..4000).map(|i| format!("{i:015x}\n")).collect();
        assert_eq!(big, expected.trim_end().as_bytes());
        assert!(names("file1").is_empty());
    }
}

#[test]
fn holes_are_seen_at_each_level_of_indirect_blocks() {
    // The file, its size, and where its only data begin.
    let files = [
        ("sparse", 134_643_712, 134_578_176),
        ("sparse2", 134_615_040, 134_578_176),
        ("sparse3", 549_890_457_600, 549_890_392_064),
    ];
    for name in IMAGES {
        let Some(image) = shared::image(name) else {
            return;
        };
        let fs = attach(&image);
        for (file, size, data) in files {
            let attr = find(&fs, file);
            assert_eq!(attr.size, size);
            let extents = extents(&fs, &attr);
            let first = extents.first().expect("extents");
            assert_eq!(
                (first.offset, first.len, first.place),
                (0, data, Place::Hole)
            );
            let rest: u64 = extents.iter().skip(1).map(|e| e.len).sum();
            assert_eq!(data + rest, size);
            assert!(extents.iter().skip(1).all(|e| e.place != Place::Hole));
            assert_eq!(read(&fs, &attr, data - 5000, 5000), vec![0; 5000]);
            assert_eq!(read(&fs, &attr, data / 2, 70_000), vec![0; 70_000]);
            assert!(read(&fs, &attr, size, 10).is_empty());
            let end = read(&fs, &attr, data - 100, 200_000);
            assert_eq!(end.len() as u64, size - data + 100);
            for extent in extents.iter().skip(1) {
                let Place::Device(place) = extent.place else {
                    panic!()
                };
                let there = &image[place as usize..][..extent.len as usize];
                let at = (extent.offset + 100 - data) as usize;
                assert_eq!(&end[at..at + there.len()], there);
            }
        }
    }
}

#[test]
fn both_byte_orders_hold_the_same() {
    let (Some(little), Some(big)) = (shared::image(IMAGES[0]), shared::image(IMAGES[1])) else {
        return;
    };
    let (little, big) = (attach(&little), attach(&big));
    for file in ["file1", "file3"] {
        let hashes = [&little, &big].map(|fs| {
            let attr = find(fs, file);
            hex(&read(fs, &attr, 0, attr.size as usize))
        });
        assert_eq!(hashes[0], hashes[1], "{file}");
    }
    for fs in [&little, &big] {
        let target = as_root(|cx| fs.readlink(cx, find(fs, "long-link").node)).expect("readlink");
        assert_eq!(target.len(), 1023);
        assert!(target.starts_with(&b"./".repeat(500)) && target.ends_with(b"/file1"));
        let short = as_root(|cx| fs.readlink(cx, find(fs, "link1").node)).expect("readlink");
        assert_eq!(short, b"dir1/dir2/dir3/file2");
        let birth = find(fs, "file1").btime.expect("UFS2 keeps births");
        assert!((1_722_785_995..1_722_786_700).contains(&birth.secs));
        assert!(birth.nanos > 0 && birth >= Time::EPOCH);
    }
}
