//! The end of an attachment, and attaching again.

use crate::suite::{Case, case_list};
use volary_core::{Kind, Mode};

case_list! {
    about Detach | Sync;
    a_second_detach_does_nothing;
    after_detach_every_call_is_stale;
    detach_ends_opens with WRITE;
    detach_makes_all_durable with WRITE;
    a_volume_can_be_attached_many_times with WRITE;
}

fn a_second_detach_does_nothing(c: &Case) {
    c.fs().detach(&c.cx()).expect("detach");
    c.fs().detach(&c.cx()).expect("a second detach");
}

fn after_detach_every_call_is_stale(c: &Case) {
    let (fs, root) = (c.fs(), c.root());
    fs.detach(&c.cx()).expect("detach");
    assert_eq!(fs.statfs(&c.cx()).unwrap_err(), Kind::Stale);
    assert_eq!(fs.sync(&c.cx()).unwrap_err(), Kind::Stale);
    assert_eq!(c.getattr(root).unwrap_err(), Kind::Stale);
    assert_eq!(c.lookup(root, "x").unwrap_err(), Kind::Stale);
    assert_eq!(fs.parent(&c.cx(), root).unwrap_err(), Kind::Stale);
    assert_eq!(c.try_open(root, Mode::Read).unwrap_err(), Kind::Stale);
    if c.caps().has(volary_core::Caps::WRITE) {
        assert_eq!(c.mkdir(root, "x").unwrap_err(), Kind::Stale);
        let got = c.create(root, "x", volary_core::Create::New);
        assert_eq!(got.unwrap_err(), Kind::Stale);
        assert_eq!(c.unlink(root, "x").unwrap_err(), Kind::Stale);
    }
}

fn detach_ends_opens(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    let (open, listing) = (c.open(node), c.open_to_read(c.root()));
    c.write(open, 0, b"C").expect("write");
    c.fs().detach(&c.cx()).expect("detach");
    assert_eq!(c.read(open, 0, 1).unwrap_err(), Kind::Stale);
    assert_eq!(c.write(open, 0, b"x").unwrap_err(), Kind::Stale);
    let got = c.readdir(listing, volary_core::Cookie::START, 1, 100);
    assert_eq!(got.unwrap_err(), Kind::Stale);
}

fn detach_makes_all_durable(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    let open = c.open(node);
    c.append(open, b", not synced").expect("append");
    c.dir(c.root(), "d");
    // The file is still open when the volume is detached.
    if c.reattach() {
        let node = c.find(c.root(), "f");
        assert_eq!(c.content(node), b"content, not synced");
        assert_eq!(c.names(c.root()), ["d", "f"]);
    }
}

fn a_volume_can_be_attached_many_times(c: &Case) {
    for round in 0..10_u8 {
        c.file(c.root(), format!("file {round}"), &[round; 1000]);
        if round > 1 {
            c.unlink(c.root(), format!("file {}", round - 2))
                .expect("unlink");
        }
        let before = c.tree();
        if !c.reattach() {
            return;
        }
        before.assert_same(&c.tree());
    }
}
