use crate::{Rig, memory};
use volary_core::{Call, Kind};
use volary_layers::{Fault, FaultRule, When};

/// Returns which of `count` look-ups fail.
fn failures(words: &str, count: usize) -> Vec<usize> {
    let rig = Rig::new(Fault::parse(memory(), words).unwrap());
    let root = rig.fs.root();
    (1..=count)
        .filter(|_| rig.find(root, "a").unwrap_err() != Kind::NotFound)
        .collect()
}

#[test]
fn the_nth_call_fails_or_all_from_it_on() {
    assert_eq!(failures("lookup@3", 6), [3]);
    assert_eq!(failures("lookup@3+", 6), [3, 4, 5, 6]);
    assert_eq!(failures("any@2,lookup@4", 6), [2, 4]);
    assert_eq!(failures("lookup", 3), [1, 2, 3]);
    assert_eq!(failures("read@1", 6), []);
}

#[test]
fn the_same_seed_gives_the_same_failures_and_about_as_many_as_asked() {
    let some = failures("lookup%10,seed=7", 2000);
    assert_eq!(some, failures("lookup%10,seed=7", 2000));
    assert_ne!(some, failures("lookup%10,seed=8", 2000));
    assert!((150..250).contains(&some.len()), "{}", some.len());
    assert_eq!(failures("lookup%0", 100), []);
    assert_eq!(failures("lookup%100", 3), [1, 2, 3]);
}

#[test]
fn the_error_is_the_one_asked_for_and_nothing_below_happens() {
    let below = memory();
    let rule = FaultRule {
        call: Some(Call::MkDir),
        when: When::Nth(1),
        kind: Kind::Quota,
    };
    let rig = Rig::new(Fault::new(below.clone(), [rule], 0));
    let root = rig.fs.root();
    let set = volary_core::SetAttr::default();
    let made = rig.fs.mkdir(&rig.cx(), root, crate::n("d"), &set);
    assert_eq!(made.unwrap_err(), Kind::Quota);
    assert_eq!(Rig::over(below).list(root).len(), 0);
    rig.dir(root, "d");
}

#[test]
fn a_close_that_fails_has_closed() {
    let below = Rig::over(memory());
    let root = below.fs.root();
    let node = below.file(root, "a", b"x");
    let rig = Rig::new(Fault::parse(below.fs.clone(), "close@1").unwrap());
    assert_eq!(rig.read(node).unwrap_err(), Kind::Io);
    below.fs.unlink(&below.cx(), root, crate::n("a")).unwrap();
    let gone = below.fs.getattr(&below.cx(), node);
    assert_eq!(gone.unwrap_err(), Kind::Stale);
}

#[test]
fn words_that_are_no_rules_are_refused_with_what_is_expected() {
    for (words, expected) in [
        ("", "write@3:NoSpace"),
        ("seed=1", "write@3:NoSpace"),
        ("wirte@3", "any or one of: statfs"),
        ("write@0", "a number from 1 on"),
        ("write@x", "a number from 1 on"),
        ("write%101", "0 to 100"),
        ("write%-1", "0 to 100"),
        ("write:Nope", "one of: NotFound"),
        ("write,seed=x", "seed=NUMBER"),
    ] {
        let e = Fault::parse(memory(), words).err().unwrap();
        assert_eq!(e.kind(), Kind::Invalid);
        assert!(e.to_string().contains(expected), "{words}: {e}");
    }
}
