//! Places, and entries that go with their last open.

use crate::{Make, OTHER, OWNER, kind, root, user, volume, volume_with, without};
use std::sync::Arc;
use volary_core::{Caps, Create, Entry, Kind, Mode, Name, NodeId, OpenId, RenameFlags, SetAttr};
use volary_mem::MemOptions;
use volary_session::{EventQueue, News, OpenHow, Rights, Session, Share};

const REPLACE: RenameFlags = RenameFlags::REPLACE;

fn sharing_all(mode: Mode) -> OpenHow {
    OpenHow::from(mode).with_share(Share {
        wants: Rights::ALL,
        allows: Rights::ALL,
    })
}

fn open_at(s: &Session, dir: NodeId, name: &str) -> volary_core::Result<OpenId> {
    let node = s.find(dir, name)?;
    s.open_entry_of(node, Some((dir, name.as_bytes())), sharing_all(Mode::Read))
}

fn place(s: &Session, open: OpenId) -> Option<(NodeId, String)> {
    let (dir, name) = s.place(open)?;
    Some((dir, String::from_utf8(name).unwrap()))
}

#[test]
fn a_place_follows_renames_by_anybody() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let (a, b) = (s.dir(top, "a", 0o777), s.dir(top, "b", 0o777));
    s.file(a, "f", 0o644);
    s.file(a, "g", 0o644);
    let (f, g) = (open_at(&s, a, "f").unwrap(), open_at(&s, a, "g").unwrap());
    let other = user(&volume, OTHER);
    other.rename(a, b"f", b, b"F", REPLACE).unwrap();
    assert_eq!(place(&s, f), Some((b, "F".into())));
    other.rename(top, b"b", a, b"deep", REPLACE).unwrap();
    assert_eq!(place(&s, f), Some((b, "F".into())));
    assert!(s.is_open_below(a).unwrap() && s.is_open_below(b).unwrap());
    other.rename(a, b"g", b, b"F", RenameFlags::SWAP).unwrap();
    assert_eq!(place(&s, f), Some((a, "g".into())));
    assert_eq!(place(&s, g), Some((b, "F".into())));
    assert!(s.is_open_below(a).unwrap());
    other.rename(a, b"g", b, b"F", REPLACE).unwrap();
    assert_eq!(place(&s, f), Some((b, "F".into())));
    assert_eq!(place(&s, g), None);
    other.unlink(b, b"F").unwrap();
    assert_eq!(place(&s, f), None);
    assert!(!s.is_open_below(a).unwrap());
}

/// Directories `a` and `b` are each above the other, as a damaged volume may say.
struct Knot(volary_core::Fs);

impl volary_core::Layer for Knot {
    fn below(&self) -> &volary_core::Fs {
        &self.0
    }

    fn parent(&self, cx: &volary_core::Ctx<'_>, dir: NodeId) -> volary_core::Result<Entry> {
        let find = |name| self.0.lookup(cx, self.0.root(), Name::new(name)?);
        let (a, b) = (find(b"a")?, find(b"b")?);
        Ok(if dir == a.node { b } else { a })
    }
}

#[test]
fn a_way_up_without_an_end_ends() {
    use volary_session::{Volume, VolumeOptions};
    let fs = volary_mem::Mem::attach(MemOptions::default(), crate::NOW).unwrap();
    let options = VolumeOptions::new("knot", || crate::NOW);
    let volume = Volume::new(Arc::new(Knot(fs)), options);
    let s = root(&volume);
    let (a, other) = (s.dir(s.root(), "a", 0o777), s.dir(s.root(), "other", 0o777));
    s.dir(s.root(), "b", 0o777);
    s.file(a, "f", 0o644);
    let open = open_at(&s, a, "f").unwrap();
    assert_eq!(kind(s.is_open_below(other)), Some(Kind::Corrupt));
    assert_eq!(kind(s.free_below(other)), Some(Kind::Corrupt));
    let cancel = Arc::new(volary_core::Cancel::new());
    cancel.set();
    let late = s.clone().with_cancel(cancel);
    assert_eq!(kind(late.is_open_below(other)), Some(Kind::Interrupted));
    s.close(open).unwrap();
}

#[test]
fn an_open_renames_what_it_came_through() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let node = s.file(top, "f", 0o644);
    s.link(node, top, b"g").unwrap();
    let (f, g) = (
        open_at(&s, top, "f").unwrap(),
        open_at(&s, top, "g").unwrap(),
    );
    s.rename_open(g, top, b"h", REPLACE).unwrap();
    assert_eq!(place(&s, f), Some((top, "f".into())));
    assert_eq!(place(&s, g), Some((top, "h".into())));
    // Two names of one node: nothing happens.
    s.rename_open(g, top, b"f", REPLACE).unwrap();
    assert_eq!(place(&s, g), Some((top, "h".into())));
    let reader = s.open(node, Mode::Read).unwrap();
    assert_eq!(
        kind(s.rename_open(reader, top, b"x", REPLACE)),
        Some(Kind::Access)
    );
    s.unlink(top, b"h").unwrap();
    assert_eq!(
        kind(s.rename_open(g, top, b"x", REPLACE)),
        Some(Kind::NotFound)
    );
}

#[test]
fn a_node_with_one_name_keeps_its_place_in_any_case() {
    let volume = volume_with(without(Caps::CASE_SENSITIVE | Caps::HARD_LINKS), false);
    let s = root(&volume);
    let top = s.root();
    s.file(top, "File", 0o644);
    let open = open_at(&s, top, "FILE").unwrap();
    s.rename(top, b"file", top, b"fILE", REPLACE).unwrap();
    assert_eq!(place(&s, open), Some((top, "fILE".into())));
    s.unlink(top, b"file").unwrap();
    assert_eq!(place(&s, open), None);
}

#[test]
fn an_entry_goes_with_its_last_open() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let node = s.file(top, "f", 0o644);
    let (one, two) = (
        open_at(&s, top, "f").unwrap(),
        open_at(&s, top, "f").unwrap(),
    );
    let posix = s.open(node, Mode::Read).unwrap();
    s.set_delete(one, true).unwrap();
    assert!(s.delete_pending(one) && s.delete_pending(two) && s.delete_pending(posix));
    assert_eq!(kind(open_at(&s, top, "f")), Some(Kind::DeletePending));
    assert_eq!(kind(s.open(node, Mode::Read)), Some(Kind::DeletePending));
    s.set_delete(two, false).unwrap();
    assert!(!s.delete_pending(one));
    s.close(open_at(&s, top, "f").unwrap()).unwrap();
    s.set_delete(one, true).unwrap();
    s.close(one).unwrap();
    assert_eq!(s.find(top, "f"), Ok(node));
    s.close(two).unwrap();
    assert_eq!(kind(s.find(top, "f")), Some(Kind::NotFound));
    // The POSIX open has kept the node.
    assert_eq!(s.getattr_open(posix).unwrap().nlink, 0);
    s.close(posix).unwrap();
}

#[test]
fn delete_on_close_waits_for_its_open() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    s.file(top, "f", 0o644);
    let (one, two) = (
        open_at(&s, top, "f").unwrap(),
        open_at(&s, top, "f").unwrap(),
    );
    s.delete_on_close(one).unwrap();
    assert!(!s.delete_pending(one));
    s.close(open_at(&s, top, "f").unwrap()).unwrap();
    s.close(one).unwrap();
    assert!(s.delete_pending(two));
    assert_eq!(kind(open_at(&s, top, "f")), Some(Kind::DeletePending));
    s.close(two).unwrap();
    assert_eq!(kind(s.find(top, "f")), Some(Kind::NotFound));
}

#[test]
fn only_the_entry_goes_that_the_open_came_through() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let node = s.file(top, "f", 0o644);
    s.link(node, top, b"g").unwrap();
    let f = open_at(&s, top, "f").unwrap();
    s.set_delete(f, true).unwrap();
    let g = open_at(&s, top, "g").unwrap();
    // The node has one more name than goes.
    s.close(s.open(node, Mode::Read).unwrap()).unwrap();
    s.rename(top, b"f", top, b"moved", REPLACE).unwrap();
    s.close(f).unwrap();
    assert_eq!(kind(s.find(top, "moved")), Some(Kind::NotFound));
    assert_eq!(s.find(top, "g"), Ok(node));
    s.close(g).unwrap();
}

#[test]
fn an_entry_that_was_replaced_does_not_take_the_new_one_along() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    s.file(top, "f", 0o644);
    let new = s.file(top, "new", 0o644);
    let f = open_at(&s, top, "f").unwrap();
    s.set_delete(f, true).unwrap();
    s.rename(top, b"new", top, b"f", REPLACE).unwrap();
    assert!(!s.delete_pending(f));
    assert_eq!(kind(s.set_delete(f, true)), Some(Kind::NotFound));
    s.close(f).unwrap();
    assert_eq!(s.find(top, "f"), Ok(new));
}

#[test]
fn who_may_not_unlink_may_not_let_go() {
    let volume = volume();
    let admin = root(&volume);
    let top = admin.root();
    let closed = admin.dir(top, "closed", 0o755);
    let sticky = admin.dir(top, "sticky", 0o1777);
    admin.file(closed, "f", 0o666);
    user(&volume, OWNER).file(sticky, "f", 0o666);
    let s = user(&volume, OTHER);
    let f = open_at(&s, closed, "f").unwrap();
    assert_eq!(kind(s.set_delete(f, true)), Some(Kind::Access));
    assert_eq!(kind(s.delete_on_close(f)), Some(Kind::Access));
    let g = open_at(&s, sticky, "f").unwrap();
    assert_eq!(kind(s.set_delete(g, true)), Some(Kind::NotPermitted));
    let plain = s.open(s.find(sticky, "f").unwrap(), Mode::Read).unwrap();
    assert_eq!(kind(s.set_delete(plain, true)), Some(Kind::Access));
}

#[test]
fn a_directory_goes_if_it_is_empty_and_takes_no_new_entries() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let dir = s.dir(top, "d", 0o777);
    s.file(dir, "f", 0o644);
    let open = open_at(&s, top, "d").unwrap();
    assert_eq!(kind(s.set_delete(open, true)), Some(Kind::NotEmpty));
    s.unlink(dir, b"f").unwrap();
    s.set_delete(open, true).unwrap();
    let set = SetAttr::default();
    let made = [
        kind(s.mkdir(dir, b"x", &set)),
        kind(s.create(dir, b"x", Create::New, Mode::Write, &set)),
        kind(s.symlink(dir, b"x", b"y", &set)),
    ];
    assert_eq!(made, [Some(Kind::DeletePending); 3]);
    s.close(open).unwrap();
    assert_eq!(kind(s.find(top, "d")), Some(Kind::NotFound));
}

#[test]
fn a_directory_with_entries_stays_though_it_was_to_go() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let dir = s.dir(top, "d", 0o777);
    s.file(dir, "f", 0o644);
    let open = open_at(&s, top, "d").unwrap();
    s.delete_on_close(open).unwrap();
    s.close(open).unwrap();
    assert_eq!(s.find(top, "d"), Ok(dir));
    // And can be opened again.
    s.close(open_at(&s, top, "d").unwrap()).unwrap();
}

#[test]
fn the_removal_is_told_as_its_authors() {
    let volume = volume();
    let client = volume.client();
    let s = root(&volume).with_client(client);
    let top = s.root();
    let node = s.file(top, "f", 0o644);
    let open = open_at(&s, top, "f").unwrap();
    s.set_delete(open, true).unwrap();
    let queue = Arc::new(EventQueue::new(8));
    let _told = volume.subscribe(queue.clone());
    // Closed by another session.
    root(&volume).close(open).unwrap();
    let event = queue.try_take().unwrap();
    assert_eq!(event.origin, Some(client));
    let news = News::Removed {
        dir: top,
        name: b"f".as_slice().into(),
        node: Some(node),
    };
    assert_eq!(event.news, news);
}

#[test]
fn detach_removes_what_was_to_go() {
    let fs = volary_mem::Mem::attach(MemOptions::default(), crate::NOW).unwrap();
    let volume = crate::volume_of(fs, false);
    let s = root(&volume);
    let top = s.root();
    for name in ["a", "b", "c"] {
        s.file(top, name, 0o644);
    }
    let (a, b) = (
        open_at(&s, top, "a").unwrap(),
        open_at(&s, top, "b").unwrap(),
    );
    open_at(&s, top, "c").unwrap();
    s.set_delete(a, true).unwrap();
    s.delete_on_close(b).unwrap();
    let queue = Arc::new(EventQueue::new(8));
    let _told = volume.subscribe(queue.clone());
    volume.detach().unwrap();
    let mut gone: Vec<_> = std::iter::from_fn(|| queue.try_take())
        .map(|event| match event.news {
            News::Removed { name, .. } => name.into_vec(),
            other => panic!("{other:?}"),
        })
        .collect();
    gone.sort();
    assert_eq!(gone, [b"a", b"b"]);
}
