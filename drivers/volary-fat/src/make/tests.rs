use super::*;
use crate::look::info::info;
use crate::look::walk::{Walker, Where};
use std::sync::Arc;
use volary_block::{MemDevice, Recorder};
use volary_core::{Options, Time};

fn how(options: &str) -> Make {
    Make {
        now: Time::from_secs(1_000_000_000),
        seed: 7,
        options: Options::parse(options),
        ..Make::default()
    }
}

fn made(size: u64, kind: FatKind, options: &str) -> Result<crate::volume::layout::Layout> {
    let dev = MemDevice::new(size);
    make(&dev, kind, &how(options))?;
    crate::volume::layout::Layout::read(&dev)
}

const MIB: u64 = 1 << 20;

#[test]
fn sizes_get_the_clusters_of_microsofts_tables() {
    let cases = [
        (FatKind::Fat16, 12 * MIB, 1024),
        (FatKind::Fat16, 100 * MIB, 2048),
        (FatKind::Fat16, 256 * MIB, 4096),
        (FatKind::Fat16, 500 * MIB, 8192),
        (FatKind::Fat16, 2047 * MIB, 32_768),
        (FatKind::Fat16, 4095 * MIB, 65_536),
        (FatKind::Fat32, 100 * MIB, 512),
        (FatKind::Fat32, 1024 * MIB, 4096),
        (FatKind::Fat32, 10_000 * MIB, 8192),
        (FatKind::Fat32, 20_000 * MIB, 16_384),
        (FatKind::Fat32, 2048 * 1024 * MIB, 32_768),
        (FatKind::Fat12, MIB, 512),
        (FatKind::Fat12, 30 * MIB, 8192),
    ];
    for (kind, size, cluster) in cases {
        let layout = made(size, kind, "").unwrap();
        assert_eq!((layout.kind, layout.cluster_len), (kind, cluster), "{size}");
    }
}

#[test]
fn floppies_have_the_layout_of_their_size() {
    for (kib, media, root, fat, cluster) in [
        (160, 0xfe, 64, 1, 512),
        (180, 0xfc, 64, 2, 512),
        (320, 0xff, 112, 1, 1024),
        (360, 0xfd, 112, 2, 1024),
        (640, 0xfb, 112, 2, 1024),
        (720, 0xf9, 112, 3, 1024),
        (1200, 0xf9, 224, 7, 512),
        (1440, 0xf0, 224, 9, 512),
        (2880, 0xf0, 240, 9, 1024),
    ] {
        let l = made(kib << 10, FatKind::Fat12, "").unwrap();
        assert_eq!(
            (l.media, l.root_entries, l.fat_sectors, l.cluster_len),
            (media, root, fat, cluster),
            "{kib}"
        );
        let asked = made(4 << 20, FatKind::Fat12, &format!("floppy={kib}k")).unwrap();
        assert_eq!(asked, l);
    }
}

#[test]
fn a_bad_request_writes_nothing_and_says_why() {
    let cases = [
        (FatKind::Fat12, MIB, "cluster=600", "power of two"),
        (FatKind::Fat12, MIB, "fats=0", "fats"),
        (FatKind::Fat12, MIB, "reserved=0", "reserved"),
        (FatKind::Fat12, MIB, "media=f1", "media"),
        (FatKind::Fat12, MIB, "serial=123456789", "serial"),
        (FatKind::Fat12, MIB, "floppy=1441k", "floppy"),
        (FatKind::Fat12, MIB, "floppy=1440k", "1474560"),
        (FatKind::Fat16, MIB, "", "try fat12"),
        (FatKind::Fat16, MIB, "floppy=720k", "floppies are fat12"),
        (FatKind::Fat32, MIB, "", "try fat16"),
        (FatKind::Fat32, 64 * MIB, "root-entries=512", "root-entries"),
        (FatKind::Fat32, 64 * MIB, "reserved=1", "reserved"),
        (
            FatKind::Fat32,
            64 * MIB,
            "backup=1",
            "copy of the boot sector",
        ),
        (
            FatKind::Fat32,
            64 * MIB,
            "backup=31",
            "copy of the boot sector",
        ),
        (FatKind::Fat16, 64 * MIB, "backup=6", "only fat32"),
        (FatKind::Fat16, 64 * MIB, "cluster=512", "larger clusters"),
        (FatKind::Fat16, 64 * MIB, "cluster=64k", "smaller clusters"),
        (FatKind::Fat12, 512 * MIB, "", "try fat16"),
        (FatKind::Fat16, 8192 * MIB, "", "try fat32"),
        (FatKind::Fat32, 4096 * 1024 * MIB, "", "larger"),
        (
            FatKind::Fat12,
            MIB,
            "sector=4096,cluster=512",
            "less than a sector",
        ),
        (FatKind::Fat12, MIB, "oem=ninechars", "oem"),
        (FatKind::Fat12, MIB, "nosuch=1", "nosuch"),
        (FatKind::Fat12, 512, "", "too small"),
        (FatKind::Fat12, 0, "", "too small"),
    ];
    for (kind, size, options, words) in cases {
        let dev = Recorder::new(Arc::new(MemDevice::new(size)));
        let e = make(&dev, kind, &how(options)).unwrap_err();
        assert_eq!(e, Kind::Invalid, "{options}: {e}");
        assert!(e.to_string().contains(words), "{options}: {e}");
        assert_eq!(dev.counts().writes, 0, "{options}");
    }
}

#[test]
fn labels_that_dos_could_not_have_are_refused() {
    for bad in ["", " x", "twelve chars", "a.b", "a/b", "a\u{1}", "日本"] {
        let how = Make {
            label: Some(bad.into()),
            ..how("")
        };
        let e = make(&MemDevice::new(MIB), FatKind::Fat12, &how).unwrap_err();
        assert_eq!(e, Kind::Invalid, "{bad}");
    }
    let long = how(&format!("message={}", "x".repeat(420)));
    let e = make(&MemDevice::new(MIB), FatKind::Fat12, &long).unwrap_err();
    assert!(e.to_string().contains("boot message"), "{e}");
}

#[test]
fn what_was_there_before_is_gone() {
    let dev = MemDevice::from_vec(vec![0xa5; 40 << 20]);
    make(&dev, FatKind::Fat32, &how("unix")).unwrap();
    let layout = crate::volume::layout::Layout::read(&dev).unwrap();
    let walker = Walker::new(&dev, &layout);
    let mut count = 0;
    walker
        .records(Where::Root, &mut |_| {
            count += 1;
            true
        })
        .unwrap();
    assert_eq!(count, 1);
    assert!((4..layout.last_cluster()).all(|n| walker.fat_entry(n).unwrap() == 0));
}

#[test]
fn the_boot_sector_is_cleared_first_and_written_last() {
    use volary_block::Request;
    let dev = Recorder::new(Arc::new(MemDevice::new(MIB)));
    make(&dev, FatKind::Fat12, &how("")).unwrap();
    let writes: Vec<_> = dev
        .requests()
        .into_iter()
        .filter(|r| !matches!(r, Request::Read { .. }))
        .collect();
    let Some(Request::Write { offset: 0, data }) = writes.first() else {
        panic!("{:?}", writes.first());
    };
    assert!(data.iter().all(|&b| b == 0));
    let [
        ..,
        Request::Flush,
        Request::Write { offset: 0, data },
        Request::Flush,
    ] = &writes[..]
    else {
        panic!("the end is another");
    };
    assert_eq!(data[510..], [0x55, 0xaa]);
}

#[test]
fn two_tebibytes_are_made_without_writing_their_tables() {
    let dev = MemDevice::new(2 << 40);
    make(&dev, FatKind::Fat32, &how("unix")).unwrap();
    assert!(dev.allocated() < 8 << 20, "{}", dev.allocated());
    let facts = info(&dev).unwrap();
    assert!(facts.iter().any(|f| f.key == "kind" && f.value == "fat32"));
}

#[test]
fn the_first_cluster_is_aligned_unless_told_otherwise() {
    for (kind, size) in [
        (FatKind::Fat12, 20 * MIB),
        (FatKind::Fat16, 700 * MIB),
        (FatKind::Fat32, 3000 * MIB),
    ] {
        let layout = made(size, kind, "").unwrap();
        assert_eq!(layout.cluster_offset(2) % u64::from(layout.cluster_len), 0);
        let not = made(size, kind, "align=no").unwrap();
        assert_eq!(
            not.reserved_sectors,
            if kind == FatKind::Fat32 { 32 } else { 1 }
        );
    }
}

#[test]
fn same_seed_same_bytes() {
    let bytes = |seed| {
        let dev = MemDevice::new(MIB);
        make(
            &dev,
            FatKind::Fat12,
            &Make {
                seed,
                ..how("unix")
            },
        )
        .unwrap();
        dev.to_vec()
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

#[test]
fn every_cluster_count_at_the_borders_is_read_as_the_kind_it_was_made_as() {
    for (kind, clusters) in [
        (FatKind::Fat12, 4084),
        (FatKind::Fat16, 4085),
        (FatKind::Fat16, 65_524),
        (FatKind::Fat32, 65_525),
    ] {
        let made = (0..2000_u64).find_map(|extra| {
            let size = (clusters + extra) * 512;
            let layout = made(size, kind, "cluster=512,align=no").ok()?;
            (u64::from(layout.cluster_count) == clusters).then_some(layout)
        });
        assert_eq!(made.unwrap().kind, kind, "{clusters}");
    }
}

mod any_request {
    use super::*;
    use proptest::prelude::*;

    fn options() -> impl Strategy<Value = String> {
        let one = prop_oneof![
            (9..17_u32).prop_map(|n| format!("cluster={}", 1_u32 << n)),
            (9..13_u32).prop_map(|n| format!("sector={}", 1_u32 << n)),
            (1..256_u32).prop_map(|n| format!("fats={n}")),
            (1..70_000_u32).prop_map(|n| format!("reserved={n}")),
            (1..70_000_u32).prop_map(|n| format!("root-entries={n}")),
            (0..40_u32).prop_map(|n| format!("backup={n}")),
            Just("align=no".to_string()),
            Just("align=yes".to_string()),
            Just("unix".to_string()),
            Just("small".to_string()),
            Just("floppy=720k".to_string()),
        ];
        proptest::collection::vec(one, 0..4).prop_map(|all| all.join(","))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn is_refused_or_makes_a_volume_of_that_kind(
            kind in prop::sample::select(vec![FatKind::Fat12, FatKind::Fat16, FatKind::Fat32]),
            size in prop_oneof![0..100_000_u64, 0..4 * MIB, 0..100 * MIB],
            options in options(),
        ) {
            let dev = MemDevice::new(size);
            match make(&dev, kind, &how(&options)) {
                Err(e) => prop_assert_eq!(e, Kind::Invalid),
                Ok(_) => {
                    let layout = crate::volume::layout::Layout::read(&dev).unwrap();
                    prop_assert_eq!(layout.kind, kind);
                    let walker = Walker::new(&dev, &layout);
                    let mut names = 0;
                    walker.records(Where::Root, &mut |_| { names += 1; true }).unwrap();
                    prop_assert_eq!(names, u32::from(options.contains("unix")));
                    prop_assert_eq!(walker.fat_entry(0), Ok(kind.mask() & !0xff | u32::from(layout.media)));
                }
            }
        }
    }
}
