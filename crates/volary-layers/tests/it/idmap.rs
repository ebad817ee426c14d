use crate::{Rig, memory, n};
use volary_core::{Create, Kind, SetAttr};
use volary_layers::IdMap;

fn mapped(words: &str) -> (Rig, Rig) {
    let below = Rig::over(memory());
    let rig = Rig::new(IdMap::parse(below.fs.clone(), words).unwrap());
    (below, rig)
}

fn owner(rig: &Rig, node: volary_core::NodeId) -> (u32, u32) {
    let attr = rig.fs.getattr(&rig.cx(), node).unwrap();
    (attr.uid, attr.gid)
}

#[test]
fn owners_are_shown_and_set_by_their_other_ids() {
    let (below, rig) = mapped("u:1000:5:10,g:100:7");
    let root = rig.fs.root();
    let set = SetAttr::owned(0o644, 1003, 100);
    let made = rig.fs.create(&rig.cx(), root, n("a"), Create::New, &set);
    let (entry, open) = made.unwrap();
    rig.fs.close(&rig.cx(), open).unwrap();
    assert_eq!((entry.attr.uid, entry.attr.gid), (1003, 100));
    assert_eq!(owner(&below, entry.node), (8, 7));
    assert_eq!(owner(&rig, entry.node), (1003, 100));

    let found = rig.fs.lookup(&rig.cx(), root, n("a")).unwrap();
    assert_eq!(found.attr.uid, 1003);
    let listed = rig.list(root);
    let attr = listed.iter().next().unwrap().attr.unwrap();
    assert_eq!((attr.uid, attr.gid), (1003, 100));

    let chown = SetAttr {
        uid: Some(1009),
        ..SetAttr::default()
    };
    let attr = rig.fs.setattr(&rig.cx(), entry.node, &chown).unwrap();
    assert_eq!(attr.uid, 1009);
    assert_eq!(owner(&below, entry.node), (14, 7));
}

#[test]
fn ids_without_a_rule_stay_or_are_squashed() {
    let (below, rig) = mapped("u:1000:5:10");
    let set = SetAttr::owned(0o755, 1010, 3);
    let node = rig
        .fs
        .mkdir(&rig.cx(), rig.fs.root(), n("d"), &set)
        .unwrap()
        .node;
    assert_eq!(owner(&below, node), (1010, 3));

    let (below, rig) = mapped("u:0:0,squash:99:98");
    let root = rig.fs.root();
    let set = SetAttr::owned(0o755, 1010, 3);
    let node = rig.fs.mkdir(&rig.cx(), root, n("d"), &set).unwrap().node;
    assert_eq!(owner(&below, node), (99, 98));
    assert_eq!(owner(&rig, node), (99, 98));
    assert_eq!(owner(&rig, root), (0, 98));
}

#[test]
fn words_that_are_no_rules_are_refused_with_what_is_expected() {
    for words in [
        "",
        "u",
        "u:1",
        "u:1:2:3:4",
        "x:1:2",
        "u:a:b",
        "squash:1",
        "u:-1:0",
    ] {
        let e = IdMap::parse(memory(), words).err().unwrap();
        assert_eq!(e.kind(), Kind::Invalid);
        assert!(e.to_string().contains("u:ABOVE:BELOW[:COUNT]"), "{e}");
    }
}
