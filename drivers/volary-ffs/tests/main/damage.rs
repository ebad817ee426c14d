//! Fields that are out of their range: one line each, with the field's name and place.

use crate::hostile::{Base, bases};
use crate::{attach, attach_as, check};
use volary_core::{Kind, Name, NodeId};
use volary_testkit::volumes::as_root;

/// A field of the superblock, its byte offset, and a value that cannot be.
const FIELDS: &[(&str, usize, u32)] = &[
    ("fs_bsize", 48, 5000),
    ("fs_bsize", 48, 2048),
    ("fs_bsize", 48, 131_072),
    ("fs_fsize", 52, 256),
    ("fs_fsize", 52, 16_384),
    ("fs_frag", 56, 3),
    ("fs_bmask", 72, 0xffff_0000),
    ("fs_fmask", 76, 7),
    ("fs_bshift", 80, 11),
    ("fs_fshift", 84, 8),
    ("fs_fragshift", 96, 9),
    ("fs_sbsize", 104, 100),
    ("fs_nindir", 116, 100),
    ("fs_inopb", 120, 15),
    ("fs_ncg", 44, 0),
    ("fs_ncg", 44, 0xffff_ffff),
    ("fs_fpg", 188, 0),
    ("fs_fpg", 188, 0x8000_0000),
    ("fs_ipg", 184, 0),
    ("fs_ipg", 184, 33),
    ("fs_cblkno", 12, 0),
    ("fs_iblkno", 16, 0x7fff_ffff),
    ("fs_dblkno", 20, 3),
    ("fs_cgsize", 160, 100),
    ("fs_cgsize", 160, 0x0100_0000),
    ("fs_cssize", 156, 0),
    ("fs_minfree", 60, 100),
];

fn put(image: &mut [u8], base: &Base, at: usize, value: u32) {
    let bytes = match base.is_big {
        true => value.to_be_bytes(),
        false => value.to_le_bytes(),
    };
    image[at..at + 4].copy_from_slice(&bytes);
}

#[test]
fn each_field_of_the_superblock_is_checked_and_named() {
    for base in bases() {
        for &(field, at, value) in FIELDS {
            let mut image = base.image.clone();
            put(&mut image, &base, base.superblock + at, value);
            let e = attach_as(&image, "").err();
            let e = e.unwrap_or_else(|| panic!("{}: {field} = {value} is taken", base.name));
            let damage = e.as_corrupt().unwrap_or_else(|| panic!("{field}: {e}"));
            assert_eq!(damage.what, field, "{}: {e}", base.name);
            assert_eq!(damage.offset, (base.superblock + at) as u64, "{e}");
            assert!(!e.to_string().contains('\n'));
        }
    }
}

#[test]
fn a_volume_longer_than_its_device_is_refused() {
    for base in bases() {
        let e = attach_as(&base.image[..base.image.len() - 4096], "")
            .err()
            .expect("refused");
        let what = e.as_corrupt().expect("damage").what;
        assert!(["fs_size", "fs_old_size"].contains(&what), "{e}");
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for base in bases() {
        let kind = |options: &str| {
            attach_as(&base.image, options)
                .err()
                .expect("refused")
                .kind()
        };
        assert_eq!(kind("nope"), Kind::Invalid);
        assert_eq!(kind("superblock=x"), Kind::Invalid);
        assert_eq!(kind("superblock=3"), Kind::Corrupt);
        assert_eq!(kind("superblock=0xffffffffffff"), Kind::Corrupt);
    }
}

#[test]
fn ids_that_are_none_are_stale() {
    for base in bases() {
        let fs = attach(&base.image);
        as_root(|cx| {
            let root = fs.root();
            let file = fs.lookup(cx, root, Name::new(b"file").expect("a name"));
            let file = file.expect("lookup").node;
            let ids = [
                (0xffff_ffff, 0),
                (u64::MAX, 0),
                (500, 0),
                (file.ino.get(), file.generation.wrapping_add(1)),
                (root.ino.get(), root.generation.wrapping_add(1)),
            ];
            for (ino, generation) in ids {
                let id = NodeId::new(ino, generation).expect("an id");
                assert_eq!(fs.getattr(cx, id).unwrap_err(), Kind::Stale, "{ino}");
            }
            assert_eq!(fs.getattr(cx, file).expect("getattr").node, file);
        });
    }
}

/// What is damaged, by the line of `dump` that says where it is; how; what is found.
#[test]
fn the_check_tells_damage_from_what_a_crash_leaves() {
    for base in bases() {
        let at = |topic: &str, field: &str| base.place(topic, field);
        let file = base.inode("file");
        let dir = base.inode("dir");
        let cases: [(usize, &[u8], &str); 8] = [
            (at(&format!("inode {file}"), "di_mode"), &[0, 0], "inode"),
            (
                at(&format!("inode {file}"), "di_nlink"),
                &[9, 9],
                "link-count",
            ),
            (
                at(&format!("inode {file}"), "di_blocks"),
                &[7, 7, 7, 7],
                "block-count",
            ),
            (
                at(&format!("inode {file}"), "di_db"),
                &[0x7f; 4],
                "bad-block",
            ),
            (
                at(&format!("inode {dir}"), "di_mode"),
                &[0x81, 0x81],
                "inode",
            ),
            (at("group 0", "cg_magic"), &[1], "group"),
            (at("group 0", "cg_cs"), &[9, 9, 9, 9], "summary"),
            (at("group 0", "cg_frsum") + 4, &[9, 9, 9, 9], "summary"),
        ];
        for (at, bytes, code) in cases {
            let mut image = base.image.clone();
            image[at..at + bytes.len()].copy_from_slice(bytes);
            let found = check(&image).expect("check");
            let told = found
                .iter()
                .any(|line| line.starts_with(&format!("{code}:")));
            assert!(told, "{}: {code} at {at}: {found:#?}", base.name);
        }
    }
}

#[test]
fn a_free_map_that_is_wrong_is_told() {
    for base in bases() {
        let start = base.place("group 0", "cg_firstfield");
        let freeoff: usize = base.value("group 0", "cg_freeoff");
        let iusedoff: usize = base.value("group 0", "cg_iusedoff");
        for (map, byte, codes) in [
            (freeoff, 0xff, ["free-map", "summary"]),
            (freeoff, 0x00, ["lost-blocks", "summary"]),
            (iusedoff, 0x04, ["inode-map", "summary"]),
        ] {
            let mut image = base.image.clone();
            let len = if map == freeoff { 60 } else { 1 };
            image[start + map..start + map + len].fill(byte);
            let found = check(&image).expect("check");
            for code in codes {
                assert!(
                    found.iter().any(|line| line.starts_with(code)),
                    "{code}: {found:#?}"
                );
            }
        }
    }
}
