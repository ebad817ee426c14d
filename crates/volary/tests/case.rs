//! Upper and lower case: what a driver or a layer finds by another name, the session takes for
//! the same entry, and nothing else.

use std::sync::Arc;
use volary::block::MemDevice;
use volary::layers::CaseFold;
use volary::mem::{Mem, MemOptions};
use volary::{
    Attach, BlockDevice, Caps, Create, Cred, Fs, Kind, Make, Mode, Session, SetAttr, Time, Volume,
    VolumeOptions,
};
use volary_core::{RenameFlags, same_name};
use volary_session::{OpenHow, Rights, Share};

fn memory(cases: u32) -> Fs {
    let mut options = MemOptions::default();
    options.caps.bits = options.caps.bits & !Caps::CASE_SENSITIVE | cases;
    Mem::attach(options, Time::EPOCH).unwrap()
}

fn fat() -> Fs {
    let dev: Arc<dyn BlockDevice> = Arc::new(MemDevice::new(8 << 20));
    let format = volary::format_of("fat12").unwrap();
    format
        .make(Arc::clone(&dev), "fat12", &Make::default())
        .unwrap();
    volary::attach(dev, &Attach::default()).unwrap().fs
}

/// Every character beside each that Unicode relates to it by case.
fn pairs() -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for c in ('\u{80}'..=char::MAX).chain('A'..='z') {
        let relatives = [c.to_lowercase().to_string(), c.to_uppercase().to_string()];
        let one = c.to_string();
        for other in relatives.into_iter().filter(|other| *other != one) {
            pairs.push((one.clone(), other));
        }
    }
    pairs
}

/// Through an open that came by the first name: what is done to the second is done to it if
/// they are the same, and only then.
fn check(s: &Session, one: &str, other: &str, what: &str) {
    let (root, set) = (s.root(), SetAttr::default());
    let how = OpenHow::from(Mode::Read).with_share(Share {
        wants: Rights::READ,
        allows: Rights::ALL,
    });
    let (entry, open) = s
        .create(root, one.as_bytes(), Create::New, how, &set)
        .unwrap();
    let is_same = same_name(one.as_bytes(), other.as_bytes());
    let found = s.lookup(root, other.as_bytes());
    assert_eq!(found.is_ok(), is_same, "{what}: {one} {other}");
    if !is_same && s.caps().has(Caps::HARD_LINKS) {
        s.link(entry.node, root, other.as_bytes()).unwrap();
    }
    let moved = s.rename(root, other.as_bytes(), root, b"moved", RenameFlags::KEEP);
    let is_there = is_same || s.caps().has(Caps::HARD_LINKS);
    let error = (!is_there).then_some(Kind::NotFound);
    assert_eq!(
        moved.err().map(|e| e.kind()),
        error,
        "{what}: {one} {other}"
    );
    let place = if is_same { "moved" } else { one };
    let place = Some((root, place.as_bytes().to_vec()));
    assert_eq!(s.place(open), place, "{what}: {one} {other}");
    s.close(open).unwrap();
    for name in [one, "moved"] {
        // One of them, or both, is there.
        let _ = s.unlink(root, name.as_bytes());
    }
}

#[test]
fn drivers_layers_and_the_session_take_the_same_names_for_one() {
    let layered = CaseFold::new(memory(Caps::CASE_SENSITIVE)).unwrap();
    let volumes: [(&str, Fs); 3] = [
        ("mem", memory(0)),
        ("casefold", Arc::new(layered)),
        ("fat", fat()),
    ];
    let pairs = pairs();
    assert!(pairs.len() > 2_000);
    for (what, fs) in volumes {
        let options = VolumeOptions::new(what, || Time::from_secs(1_700_000_000));
        let volume = Volume::new(fs, options);
        let session = volume.session(Cred::root());
        for (one, other) in &pairs {
            check(&session, one, other, what);
        }
        volume.detach().unwrap();
    }
}
