//! Volumes are told apart: what has no magic number claims no volume of another format.

use std::sync::Arc;
use volary::block::MemDevice;
use volary::{Abilities, BlockDevice, Format, Identity, Make, Options, SetAttr, Time, identify};
use volary_testkit::rng::Rng;
use volary_testkit::volumes::{as_root, attach};

/// Returns a volume of each kind, with some directories.
fn volumes() -> Vec<(&'static str, Arc<MemDevice>)> {
    let makes = |format: &&&dyn Format| format.abilities().has(Abilities::MAKE);
    let made = volary::formats().iter().filter(makes);
    let kinds = made.flat_map(|format| format.kinds().iter().map(move |kind| (*format, *kind)));
    kinds
        .map(|(format, kind)| {
            let dev = Arc::new(MemDevice::new(40 << 20));
            let small = if kind == "fat12" { "cluster=16k" } else { "" };
            let how = Make {
                now: Time::from_secs(1_700_000_000),
                options: Options::parse(small),
                ..Make::default()
            };
            format.make(dev.clone(), kind, &how).expect(kind);
            let fs = attach(format, dev.clone(), "").expect(kind);
            as_root(|cx| {
                for name in ["a", "b"] {
                    let name = volary::Name::new(name.as_bytes()).expect("a name");
                    let _ = fs.mkdir(cx, fs.root(), name, &SetAttr::default());
                }
                fs.detach(cx).expect("detach");
            });
            (kind, dev)
        })
        .collect()
}

fn kind(dev: &Arc<MemDevice>) -> Option<&'static str> {
    match identify(&**dev).expect("identify") {
        Identity::Volume(_, probe) => Some(probe.kind),
        _ => None,
    }
}

#[test]
fn each_volume_is_told_as_what_it_is() {
    for (made, dev) in volumes() {
        assert_eq!(kind(&dev), Some(made));
    }
}

#[test]
fn a_volume_that_is_made_over_another_is_told_as_the_last() {
    for (before, dev) in volumes() {
        for format in volary::formats()
            .iter()
            .filter(|format| format.name() == "v7")
        {
            for made in format.kinds() {
                let how = Make::default();
                format.make(dev.clone(), made, &how).expect(made);
                assert_eq!(kind(&dev), Some(*made), "over {before}");
            }
        }
    }
}

#[test]
fn damage_makes_no_other_volume_one_of_the_seventh_edition() {
    let mut rng = Rng::new(3);
    let others = volumes()
        .into_iter()
        .filter(|(kind, _)| !["v7", "sysv"].contains(kind));
    for (made, dev) in others {
        let mut head = vec![0; 4096];
        dev.read_at(0, &mut head).expect("read");
        for _ in 0..300 {
            let at = rng.below(4096);
            dev.write_at(at, &[rng.below(256) as u8]).expect("write");
            let found = kind(&dev);
            assert!(
                found.is_none_or(|found| !["v7", "sysv"].contains(&found)),
                "{made}"
            );
        }
        dev.write_at(0, &head).expect("write");
    }
}

#[test]
fn each_format_does_what_its_abilities_say_and_no_more() {
    let nothing: Arc<dyn BlockDevice> = Arc::new(MemDevice::new(0));
    for format in volary::formats() {
        assert_eq!(
            volary::unkept(*format, &nothing),
            [""; 0],
            "{}",
            format.name()
        );
    }
}
