//! What mkfs makes, and by what a volume is told.

use crate::volumes::{MIB, SHAPES, attach, clean, name, shape};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    BlockDevice, Create, Extent, Format, Kind, Make, Options, Place, SetAttr, Time, Tune,
};
use volary_testkit::rng::Rng;
use volary_testkit::volumes::{as_root, dump, lost_in_map};
use volary_v7::V7;

fn make(len: u64, kind: &str, options: &str) -> Result<Arc<MemDevice>, Kind> {
    let dev = Arc::new(MemDevice::new(len));
    let how = Make {
        label: Some("disk1".into()),
        now: Time::from_secs(1_000_000_000),
        options: Options::parse(options),
        ..Make::default()
    };
    match V7.make(dev.clone(), kind, &how) {
        Ok(_) => Ok(dev),
        Err(e) => {
            let mut start = vec![0; len.min(1 << 20) as usize];
            dev.read_at(0, &mut start).expect("read");
            assert!(start.iter().all(|&b| b == 0), "something was written");
            Err(e.kind())
        }
    }
}

#[test]
fn what_is_made_is_told_clean_and_all_of_it_known() {
    for shape in SHAPES {
        let dev = shape.device();
        let probe = V7.probe(&dev).expect("probe").expect("a volume");
        assert_eq!(probe.kind, shape.kind);
        clean(dev.clone()).expect("clean");
        let all: Arc<dyn BlockDevice> = dev;
        assert_eq!(lost_in_map(&V7, &all), 0, "{}", shape.name());
    }
}

#[test]
fn options_that_make_no_sense_are_refused_before_a_byte_is_written() {
    for (kind, options) in [
        ("v7", "order=big"),
        ("v7", "block=1024"),
        ("sysv", "order=pdp"),
        ("sysv", "block=4096"),
        ("v7", "inodes=70000"),
        ("v7", "interleave=0/10"),
        ("v7", "interleave=11/10"),
        ("v7", "interleave=3"),
        ("v7", "interleave=1/501"),
        ("v7", "pack=toolong"),
        ("v7", "other"),
        ("v6", ""),
    ] {
        let made = make(MIB, kind, options).map(drop);
        assert_eq!(made, Err(Kind::Invalid), "{kind} {options}");
    }
    assert_eq!(make(1024, "v7", "").map(drop), Err(Kind::Invalid));
    let too_long = make((1 << 24) * 512, "v7", "").map(drop);
    assert_eq!(too_long, Err(Kind::Invalid));
}

#[test]
fn the_label_is_kept_and_can_be_changed() {
    let dev = make(MIB, "v7", "pack=pack2").expect("made");
    let label = || V7.probe(&dev).expect("probe").expect("told").label;
    assert_eq!(label().as_deref(), Some("disk1"));
    let how = Tune {
        label: Some("usr".into()),
        ..Tune::default()
    };
    V7.tune(dev.clone(), &how, &volary_core::Quiet)
        .expect("tune");
    assert_eq!(label().as_deref(), Some("usr"));
    let all: Arc<dyn BlockDevice> = dev;
    let text = dump(&V7, &all, "superblock");
    assert!(text.contains("s_fpack  pack2"), "{text}");
    clean(all).expect("clean");
}

/// Returns where the blocks of a new file lie, counted from the first.
fn turns(options: &str, blocks: usize) -> Vec<u64> {
    let fs = attach(make(MIB, "v7", options).expect("made"), "");
    let mut out: Vec<Extent> = Vec::new();
    as_root(|cx| {
        let set = SetAttr::default();
        let made = fs.create(cx, fs.root(), name("f"), Create::New, &set);
        let (_, open) = made.expect("create");
        for i in 0..blocks as u64 {
            fs.write(cx, open, Some(i * 512), &[1; 512]).expect("write");
        }
        fs.extents(cx, open, 0, u64::MAX, &mut out)
            .expect("extents");
    });
    let places = out.iter().flat_map(|extent| match extent.place {
        Place::Device(at) => (at / 512..(at + extent.len) / 512).collect(),
        _ => Vec::new(),
    });
    places.collect()
}

#[test]
fn blocks_are_given_in_the_interleave_of_mkfs() {
    let all = turns("inodes=8,interleave=1/500", 10);
    assert_eq!(all, (4..14).collect::<Vec<_>>());
    // The root has block 3; 1 to 3 of the first cylinder hold no data.
    let all = turns("inodes=8,interleave=3/10", 10);
    assert_eq!(all, [6, 9, 5, 8, 4, 7, 10, 13, 16, 19]);
}

#[test]
fn a_free_list_of_many_blocks_is_used_up_to_the_last() {
    for shape in [
        shape("v7", MIB),
        shape("sysv", MIB).made("order=big,block=512"),
    ] {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        as_root(|cx| {
            let set = SetAttr::default();
            let made = fs.create(cx, fs.root(), name("f"), Create::New, &set);
            let (_, open) = made.expect("create");
            let mut at = 0;
            let e = loop {
                match fs.write(cx, open, Some(at), &[7; 512]) {
                    Ok(end) => at = end,
                    Err(e) => break e,
                }
            };
            assert_eq!(e, Kind::NoSpace);
            assert_eq!(fs.statfs(cx).expect("statfs").free, 0);
            fs.close(cx, open).expect("close");
            fs.detach(cx).expect("detach");
        });
        clean(dev.clone()).expect("clean");
        let fs = attach(dev.clone(), "");
        as_root(|cx| {
            fs.unlink(cx, fs.root(), name("f")).expect("unlink");
            fs.detach(cx).expect("detach");
        });
        clean(dev).expect("clean");
    }
}

#[test]
fn random_bytes_are_no_volume() {
    let mut rng = Rng::new(1);
    for round in 0..200 {
        let mut bytes: Vec<u8> = (0..32 << 10).map(|_| rng.below(256) as u8).collect();
        if round % 2 == 0 {
            // A superblock whose numbers are plausible, and nothing else.
            bytes[512..952].fill(0);
            bytes[512] = 10;
            bytes[514..518].copy_from_slice(&[0, 0, 60, 0]);
        }
        let dev = MemDevice::from_vec(bytes);
        assert_eq!(V7.probe(&dev).expect("probe"), None);
    }
    for len in [0, 511, 1023, 1 << 20] {
        let dev = MemDevice::new(len);
        assert_eq!(V7.probe(&dev).expect("probe"), None);
    }
}

#[test]
fn bad_blocks_are_put_aside() {
    for shape in SHAPES {
        let dev = shape.device();
        let bad = |sectors: &[u64]| V7.mark_bad(dev.clone(), sectors).map(drop);
        let first = shape.len / 512 - 60;
        let many: Vec<u64> = (first..shape.len / 512).collect();
        bad(&many).expect("marked");
        bad(&many[..4]).expect("there before");
        clean(dev.clone()).expect("clean");
        assert_eq!(bad(&[0]).unwrap_err(), Kind::Invalid);
        assert_eq!(bad(&[shape.len / 512]).unwrap_err(), Kind::Invalid);
        let map = V7.map(dev.clone(), 100).expect("map");
        let aside: u64 = map.cells.iter().map(|cell| cell.bad).sum();
        assert!(aside >= 60 * 512, "{aside}");
        let fs = attach(dev.clone(), "");
        as_root(|cx| {
            let set = SetAttr::default();
            let made = fs.create(cx, fs.root(), name("f"), Create::New, &set);
            let (_, open) = made.expect("create");
            while fs.write(cx, open, None, &[1; 65_536]).is_ok() {}
            while fs.write(cx, open, None, &[1; 512]).is_ok() {}
            let mut out = Vec::new();
            fs.extents(cx, open, 0, u64::MAX, &mut out)
                .expect("extents");
            let ends = out.iter().filter_map(|extent| match extent.place {
                Place::Device(at) => Some(at + extent.len),
                _ => None,
            });
            assert!(ends.max() <= Some(first * 512));
            fs.detach(cx).expect("detach");
        });
        clean(dev.clone()).expect("clean");
        assert_eq!(bad(&[first - 1]).unwrap_err(), Kind::Busy);
    }
}
