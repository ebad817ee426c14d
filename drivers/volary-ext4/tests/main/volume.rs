//! What the format says of a volume.

use crate::images::{Images, can_make};
use crate::{attach_as, file, memory, tools};
use volary_core::{Format, Kind, Make, Mode, Quiet, Tune};
use volary_ext4::EXT4;
use volary_testkit::volumes::as_root;
use volary_testkit::{Fresh, Suite};

fn image(how: &str) -> Option<Vec<u8>> {
    let can = can_make();
    can.then(|| {
        let images = Images::new();
        let source = images.tree();
        let image = images.made("a.img", how, "12M", Some(&source));
        std::fs::read(image).expect("an image")
    })
}

#[test]
fn the_suite_holds() {
    for how in [
        "-t ext4",
        "-t ext2 -b 1024 -I 128",
        "-t ext4 -O inline_data",
    ] {
        let Some(bytes) = image(how) else { return };
        let make = move || Fresh::new(attach_as(memory(bytes.clone()), "").expect("attach"));
        Suite::new(how, make).run();
    }
}

#[test]
fn volumes_are_told_apart_and_shown() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    for kind in ["ext2", "ext3", "ext4"] {
        let image = images.made(kind, &format!("-t {kind} -L LABEL"), "8M", None);
        let dev = file(&image);
        let probe = EXT4.probe(&*dev).expect("probe").expect("a volume");
        assert_eq!((probe.kind, probe.label.as_deref()), (kind, Some("LABEL")));
        let facts = EXT4.info(dev.clone()).expect("info");
        assert_eq!(facts[0].value, kind);
        for (what, words) in [
            ("superblock", "s_volume_name            LABEL"),
            ("group 0", "bg_inode_table"),
            ("inode 2", "i_links_count            3"),
            ("blocks 2", " at "),
            ("directory", "\"lost+found\""),
        ] {
            let text = tools::dump(&dev, what);
            assert!(text.contains(words), "{text}");
        }
        for what in ["nothing", "inode x", "group"] {
            let what: Vec<String> = what.split(' ').map(Into::into).collect();
            let e = EXT4.dump(dev.clone(), &what, &mut String::new());
            assert_eq!(e.unwrap_err(), Kind::Invalid);
        }
    }
}

#[test]
fn what_is_not_read_is_refused_by_its_name() {
    let Some(bytes) = image("-t ext4") else {
        return;
    };
    // s_feature_incompat, and the checksum that then is wrong: features are looked at first.
    let mut bytes = bytes;
    bytes[1024 + 0x60] |= 1;
    let e = attach_as(memory(bytes.clone()), "")
        .err()
        .expect("a refusal");
    assert_eq!(e, Kind::Unsupported);
    assert!(e.to_string().contains("compression"), "{e}");
    bytes[1024 + 0x60] = 8;
    assert_eq!(
        attach_as(memory(bytes), "").err(),
        Some(Kind::Unsupported.into())
    );
}

#[test]
fn nothing_is_made_or_changed_yet() {
    let dev = memory(vec![0; 1 << 20]);
    let made = EXT4.make(dev.clone(), "ext4", &Make::default());
    assert_eq!(made.unwrap_err(), Kind::Unsupported);
    let tuned = EXT4.tune(dev.clone(), &Tune::default(), &Quiet);
    assert_eq!(tuned.unwrap_err(), Kind::Unsupported);
    assert_eq!(
        EXT4.mark_bad(dev.clone(), &[1]).unwrap_err(),
        Kind::Unsupported
    );
    assert_eq!(attach_as(dev, "").err(), Some(Kind::Corrupt.into()));
}

#[test]
fn a_detached_volume_is_stale() {
    let Some(bytes) = image("-t ext4") else {
        return;
    };
    let fs = attach_as(memory(bytes), "").expect("attach");
    as_root(|cx| {
        let open = fs.open(cx, fs.root(), Mode::Read).unwrap();
        fs.detach(cx).unwrap();
        assert_eq!(fs.getattr(cx, fs.root()).unwrap_err(), Kind::Stale);
        assert_eq!(fs.close(cx, open).unwrap_err(), Kind::Stale);
        fs.detach(cx).unwrap();
    });
}
