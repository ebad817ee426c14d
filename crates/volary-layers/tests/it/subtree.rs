use crate::{Rig, memory, n};
use std::sync::Arc;
use volary_core::{Caps, Fs, Kind, Layer, Mode, NodeId, RenameFlags, SetAttr};
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

/// Ids last, as those of a volume on a device do.
struct Lasting(Fs);

impl Layer for Lasting {
    fn below(&self) -> &Fs {
        &self.0
    }
    fn caps(&self) -> Caps {
        self.0.caps().with(Caps::STABLE_IDS)
    }
}

/// Returns the subtree anew, as after a restart, over ids that last.
fn again(s: &Scene) -> Rig {
    let lasting: Fs = Arc::new(Lasting(s.below.fs.clone()));
    Rig::new(Subtree::new(lasting, b"/in").unwrap())
}

#[test]
fn ids_that_last_are_found_again_where_they_lie_inside() {
    let s = scene();
    let link = s.below.fs.symlink(
        &s.below.cx(),
        s.dir,
        n("link"),
        b"file",
        &SetAttr::default(),
    );
    let link = link.unwrap().node;
    let rig = again(&s);
    assert_eq!(rig.read(s.file).unwrap(), b"text");
    assert_eq!(rig.fs.readlink(&rig.cx(), link).unwrap(), b"file");
    assert_eq!(
        Rig::kind(rig.fs.getattr(&rig.cx(), s.secret)),
        Some(Kind::Stale)
    );
    assert_eq!(
        Rig::kind(rig.fs.open(&rig.cx(), s.secret, Mode::Read)),
        Some(Kind::Stale)
    );
    // What is forgotten is found again, and what is given out is known, sought in vain or not.
    rig.fs.forget(s.file, 1);
    assert_eq!(rig.read(s.file).unwrap(), b"text");
    let (cx, below) = (s.below.cx(), &s.below.fs);
    below.link(&cx, s.secret, s.inside, n("let in")).unwrap();
    rig.find(s.inside, "let in").unwrap();
    assert_eq!(rig.read(s.secret).unwrap(), b"secret");
}

#[test]
fn what_was_moved_out_or_removed_before_a_restart_is_stale_after_it() {
    let s = scene();
    let (cx, below) = (s.below.cx(), &s.below.fs);
    let gone = s.below.file(s.dir, "gone", b"");
    let replace = RenameFlags::REPLACE;
    below
        .rename(&cx, s.dir, n("file"), s.outside, n("file"), replace)
        .unwrap();
    below.unlink(&cx, s.dir, n("gone")).unwrap();
    let rig = again(&s);
    for node in [s.file, gone, s.secret, s.outside] {
        assert_eq!(
            Rig::kind(rig.fs.getattr(&rig.cx(), node)),
            Some(Kind::Stale)
        );
    }
}

#[test]
fn a_large_subtree_is_gone_through() {
    let s = scene();
    let mut last = s.file;
    for dir in 0..20 {
        let dir = s.below.dir(s.dir, &format!("d{dir}"));
        for file in 0..200 {
            last = s.below.file(dir, &format!("f{file}"), b"x");
        }
    }
    // More than is listed at a time.
    for file in 0..3000 {
        last = s.below.file(s.dir, &format!("f{file}"), b"x");
    }
    assert_eq!(again(&s).read(last).unwrap(), b"x");
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
