use crate::{Rig, memory, n};
use volary_core::{Fs, Kind, Mode, NodeId, RenameFlags, SetAttr};
use volary_layers::Subtree;

/// `/in/dir/file`, `/in/file` and `/out/secret`, and the subtree at `/in`.
struct Scene {
    below: Rig,
    rig: Rig,
    inside: NodeId,
    dir: NodeId,
    file: NodeId,
    outside: NodeId,
    secret: NodeId,
}

fn scene() -> Scene {
    let below = Rig::over(memory());
    let root = below.fs.root();
    let inside = below.dir(root, "in");
    let dir = below.dir(inside, "dir");
    let file = below.file(dir, "file", b"text");
    let outside = below.dir(root, "out");
    let secret = below.file(outside, "secret", b"secret");
    let rig = Rig::new(Subtree::new(below.fs.clone(), b"/in//./").unwrap());
    Scene {
        below,
        rig,
        inside,
        dir,
        file,
        outside,
        secret,
    }
}

#[test]
fn the_directory_is_the_root_and_holds_itself() {
    let s = scene();
    assert_eq!(s.rig.fs.root(), s.inside);
    let up = s.rig.fs.parent(&s.rig.cx(), s.inside).unwrap();
    assert_eq!(up.node, s.inside);
    assert_eq!(s.rig.list(s.inside).iter().count(), 1);
    let dir = s.rig.find(s.inside, "dir").unwrap();
    let file = s.rig.find(dir, "file").unwrap();
    assert_eq!(s.rig.read(file).unwrap(), b"text");
    let up = s.rig.fs.parent(&s.rig.cx(), dir).unwrap();
    assert_eq!(up.node, s.inside);
}

#[test]
fn nothing_outside_can_be_reached_by_its_id() {
    let s = scene();
    let (fs, cx, set) = (&s.rig.fs, s.rig.cx(), SetAttr::default());
    let root = s.below.fs.root();
    let keep = RenameFlags::REPLACE;
    s.rig.find(s.inside, "dir").unwrap();
    let refused = [
        Rig::kind(fs.getattr(&cx, s.secret)),
        Rig::kind(fs.getattr(&cx, s.outside)),
        Rig::kind(fs.getattr(&cx, root)),
        Rig::kind(fs.lookup(&cx, root, n("out"))),
        Rig::kind(fs.lookup(&cx, s.outside, n("secret"))),
        Rig::kind(fs.parent(&cx, s.outside)),
        Rig::kind(fs.open(&cx, s.secret, Mode::Read)),
        Rig::kind(fs.setattr(&cx, s.secret, &SetAttr::mode(0o777))),
        Rig::kind(fs.mkdir(&cx, s.outside, n("new"), &set)),
        Rig::kind(fs.link(&cx, s.secret, s.inside, n("stolen"))),
        Rig::kind(fs.link(&cx, s.file, s.outside, n("leak"))),
        Rig::kind(fs.unlink(&cx, s.outside, n("secret"))),
        Rig::kind(fs.rename(&cx, s.outside, n("secret"), s.inside, n("x"), keep)),
        Rig::kind(fs.rename(&cx, s.inside, n("dir"), s.outside, n("x"), keep)),
    ];
    assert_eq!(refused, [Some(Kind::Stale); 14]);
    assert_eq!(s.below.list(s.outside).len(), 1);
}

#[test]
fn directories_inside_are_known_even_if_not_given_out_and_files_are_not() {
    let s = scene();
    assert_eq!(s.rig.find(s.dir, "file").unwrap(), s.file);
    s.rig.fs.forget(s.file, 1);
    let forgotten = s.rig.fs.getattr(&s.rig.cx(), s.file);
    assert_eq!(forgotten.unwrap_err(), Kind::Stale);
    s.rig.list(s.dir);
    s.rig.fs.getattr(&s.rig.cx(), s.file).unwrap();
}

#[test]
fn one_cannot_climb_out_of_a_directory_that_was_moved_out() {
    let s = scene();
    let dir = s.rig.find(s.inside, "dir").unwrap();
    let (fs, cx) = (&s.below.fs, s.below.cx());
    fs.rename(
        &cx,
        s.inside,
        n("dir"),
        s.outside,
        n("dir"),
        RenameFlags::REPLACE,
    )
    .unwrap();
    let up = s.rig.fs.parent(&s.rig.cx(), dir);
    assert_eq!(up.unwrap_err(), Kind::Stale);
}

#[test]
fn a_path_that_leads_to_no_directory_is_refused_by_name() {
    let below = Rig::over(memory());
    below.file(below.fs.root(), "file", b"");
    for (path, kind) in [
        (&b"/none"[..], Kind::NotFound),
        (b"file", Kind::NotDir),
        (b"/..", Kind::Invalid),
    ] {
        let e = Subtree::new(Fs::clone(&below.fs), path).err().unwrap();
        assert_eq!(e.kind(), kind);
        let words = e.to_string();
        assert!(words.starts_with("layer subtree: "), "{words}");
    }
}
