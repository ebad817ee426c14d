use crate::{Rig, n};
use proptest::prelude::*;
use std::sync::Arc;
use volary_core::{Caps, Fs, Kind, SetAttr, Time};
use volary_layers::{Munge, Side, munge, unmunge};
use volary_mem::{Mem, MemOptions};

#[test]
fn names_are_written_so() {
    for (name, form) in [
        (&b"plain name.txt"[..], "plain name.txt"),
        (b"a:b", "a%3Ab"),
        (b"what?*<>|\"\\", "what%3F%2A%3C%3E%7C%22%5C"),
        (b"dot.", "dot%2E"),
        (b"..", ".%2E"),
        (b"space ", "space%20"),
        (b"con", "%63on"),
        (b"NUL.txt", "%4EUL.txt"),
        (b"com1", "%63om1"),
        ("com¹".as_bytes(), "%63om¹"),
        ("LPT³.txt".as_bytes(), "%4CPT³.txt"),
        (b"com0", "com0"),
        ("com⁴".as_bytes(), "com⁴"),
        ("nul\u{85}".as_bytes(), "nul\u{85}"),
        (b"aux .txt", "%61ux .txt"),
        (b"console", "console"),
        (b"100%", "100%"),
        (b"%41", "%2541"),
        (b"%4g", "%4g"),
        (b"%4a", "%4a"),
        (b"\x01\x7f", "%01%7F"),
        (b"gr\xfcn", "gr%FCn"),
        ("grün".as_bytes(), "grün"),
    ] {
        let got = munge(name);
        assert_eq!(String::from_utf8_lossy(&got), form);
        assert_eq!(unmunge(&got).as_deref(), Some(name));
    }
    for form in ["%41", "a:b", "dot.", "CON", "%3a", "%c3%bc", "%C3%BC"] {
        assert_eq!(
            unmunge(form.as_bytes()).is_some(),
            form == "%3a" || form == "%c3%bc"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn every_name_comes_back(name in bytes()) {
        let form = munge(&name);
        prop_assert_eq!(unmunge(&form), Some(name));
        prop_assert!(is_harmless(&form), "{:?}", String::from_utf8_lossy(&form));
    }

    #[test]
    fn different_names_have_different_forms(a in bytes(), b in bytes()) {
        prop_assert_eq!(a == b, munge(&a) == munge(&b));
    }

    #[test]
    fn what_is_a_form_is_the_form_of_its_name(form in bytes()) {
        if let Some(name) = unmunge(&form) {
            prop_assert_eq!(munge(&name), form);
        }
    }
}

/// Returns bytes that are likely to be trouble.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(b"%".to_vec()),
        Just(b"CON".to_vec()),
        Just(b".".to_vec()),
        Just(b" ".to_vec()),
        "[0-9A-Fa-f]{1,2}".prop_map(String::into_bytes),
        "(nul|lpt|com)[0-9¹²³]?".prop_map(String::into_bytes),
        any::<char>().prop_map(|c| c.to_string().into_bytes()),
        any::<u8>().prop_map(|b| vec![b]),
    ];
    prop::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
}

/// Returns whether Windows can hold the name.
fn is_harmless(name: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(name) else {
        return false;
    };
    // Windows passes over spaces there, but over no other blanks.
    let stem = text.split('.').next().unwrap().trim_end_matches(' ');
    let stem = stem.to_ascii_uppercase();
    let device = ["CON", "PRN", "AUX", "NUL"].contains(&stem.as_str())
        || (stem.chars().count() == 4
            && (stem.starts_with("COM") || stem.starts_with("LPT"))
            && stem.ends_with(|c: char| "123456789¹²³".contains(c)));
    !device
        && !text.ends_with(['.', ' '])
        && !text.contains(|c: char| c.is_ascii_control() || "\"*/:<>?\\|".contains(c))
}

fn refusing() -> Fs {
    let mut options = MemOptions::default();
    options.caps = options.caps.without(Caps::ANY_NAME);
    Mem::attach(options, Time::EPOCH).unwrap()
}

#[test]
fn clients_see_forms_and_make_names() {
    let below = Rig::over(crate::memory());
    let rig = Rig::over(Arc::new(Munge::new(below.fs.clone(), Side::Above)));
    let root = rig.fs.root();
    let node = below.file(root, "a:b", b"x");
    assert_eq!(rig.find(root, "a%3Ab").unwrap(), node);
    assert_eq!(rig.find(root, "a:b").unwrap_err(), Kind::NotFound);
    rig.file(root, "c%3Fd", b"y");
    below.find(root, "c?d").unwrap();
    let names: Vec<_> = rig.list(root).iter().map(|e| e.name.to_vec()).collect();
    assert_eq!(names, [b"a%3Ab".to_vec(), b"c%3Fd".to_vec()]);
    let made = rig.fs.mkdir(&rig.cx(), root, n("%41"), &SetAttr::default());
    assert_eq!(made.unwrap_err(), Kind::Invalid);
    assert!(!rig.fs.caps().has(Caps::ANY_NAME));
}

#[test]
fn a_volume_that_refuses_names_keeps_any() {
    let below = Rig::over(refusing());
    let rig = Rig::over(Arc::new(Munge::new(below.fs.clone(), Side::Below)));
    let root = rig.fs.root();
    let node = rig.file(root, "x\u{1}y", b"x");
    assert_eq!(below.find(root, "x%01y").unwrap(), node);
    assert_eq!(rig.list(root).iter().next().unwrap().name, b"x\x01y");
    below.file(root, "%41", b"not ours");
    assert_eq!(rig.list(root).len(), 1);
    assert_eq!(rig.find(root, "%41").unwrap_err(), Kind::NotFound);
}
