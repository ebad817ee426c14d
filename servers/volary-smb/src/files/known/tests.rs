use super::*;
use crate::files::names::{Path, to_utf16};
use crate::files::open::Common;
use crate::files::{attrs, ea, path};
use crate::wire::Dialect;
use std::sync::Arc;
use volary_core::{Create, Cred, Mode, RenameFlags, SetAttr, Time};
use volary_mem::{Mem, MemOptions};
use volary_session::{Session, SetXattr, Volume, VolumeOptions};

fn volume() -> Arc<Volume> {
    let now = || Time::EPOCH;
    let fs = Mem::attach(MemOptions::default(), now()).unwrap();
    Volume::new(fs, VolumeOptions::new("known", now))
}

/// Returns the volume's name of the entry that the path leads to.
fn found(session: &Session, common: &Common, path: &str) -> Option<String> {
    let parsed = Path::parse(&to_utf16(path.as_bytes())).unwrap();
    let walked = path::walk(
        session,
        common,
        &parsed,
        Dialect::Smb311,
        path::Search::new(&|_| Ok(())),
    )
    .unwrap();
    walked.entry?;
    Some(String::from_utf8(walked.name().to_vec()).unwrap())
}

fn make(session: &Session, name: &str) -> NodeId {
    let (root, how) = (session.root(), Mode::Write);
    let set = SetAttr::default();
    let made = session.create(root, name.as_bytes(), Create::New, how, &set);
    let (entry, open) = made.unwrap();
    session.close(open).unwrap();
    entry.node
}

#[test]
fn a_walk_that_nobody_wants_ends_within_a_directory() {
    use crate::wire::Status;
    let volume = volume();
    let common = Common::new(&volume);
    let s = volume.session(Cred::root());
    for number in 0..600 {
        make(&s, &format!("f{number}"));
    }
    let parsed = Path::parse(&to_utf16(b"nothing")).unwrap();
    let wanted = |looked_at| match looked_at {
        0 => Ok(()),
        1..600 => Err(Status::CANCELLED.into()),
        _ => unreachable!("the whole directory was looked at"),
    };
    let search = path::Search::new(&wanted);
    let walked = path::walk(&s, &common, &parsed, Dialect::Smb311, search);
    assert_eq!(walked.unwrap_err().status, Status::CANCELLED);
    assert_eq!(volume.open_count(), 0);
}

#[test]
fn what_others_make_and_move_is_found_in_any_case() {
    let volume = volume();
    let common = Common::new(&volume);
    let s = volume.session(Cred::root());
    assert_eq!(found(&s, &common, "a"), None);
    let root = s.root();
    assert_eq!(common.known.may_have(root, hash("a")), Some(false));
    make(&s, "A");
    assert_eq!(found(&s, &common, "a").as_deref(), Some("A"));
    s.unlink(root, b"A").unwrap();
    assert_eq!(found(&s, &common, "a"), None);
    assert_eq!(
        common.known.may_have(root, hash("a")),
        Some(false),
        "read once more"
    );
    make(&s, "B");
    s.rename(root, b"B", root, b"C", RenameFlags::REPLACE)
        .unwrap();
    assert_eq!(found(&s, &common, "c").as_deref(), Some("C"));
    assert_eq!(found(&s, &common, "b"), None);
    let node = s.lookup(root, b"C").unwrap().node;
    s.link(node, root, b"D").unwrap();
    s.symlink(root, b"E", b"C", &SetAttr::default()).unwrap();
    s.mkdir(root, b"F", &SetAttr::default()).unwrap();
    for (asked, there) in [("d", "D"), ("e", "E"), ("f", "F"), ("c", "C")] {
        assert_eq!(found(&s, &common, asked).as_deref(), Some(there));
    }
}

#[test]
fn dos_attributes_that_others_set_are_seen() {
    let volume = volume();
    let common = Common::new(&volume);
    let s = volume.session(Cred::root());
    let node = make(&s, "a");
    let attr = || s.getattr(node).unwrap();
    let plain = attrs::dos(&common, &attr());
    assert_eq!(common.known.kept(node), Some(Kept::NOTHING));
    s.setxattr(node, ea::DOS_XATTR, b"0x2", SetXattr::Any)
        .unwrap();
    assert_eq!(attrs::dos(&common, &attr()), 2);
    s.setxattr(node, b"user.more", b"12345", SetXattr::Any)
        .unwrap();
    assert!(attrs::ea_size(&common, &attr()) > 5);
    s.removexattr(node, ea::DOS_XATTR).unwrap();
    assert_eq!(attrs::dos(&common, &attr()), plain);
}

#[test]
fn what_was_looked_at_before_news_is_not_remembered() {
    let known = Known::new(Hearing::All);
    let node = NodeId::new(7, 0).unwrap();
    let as_of = known.as_of();
    known.hear(&News::Attr(NodeId::new(8, 0).unwrap()));
    known.keep(node, Kept::NOTHING, as_of);
    assert_eq!(known.kept(node), None);
    known.keep(node, Kept::NOTHING, known.as_of());
    assert_eq!(known.kept(node), Some(Kept::NOTHING));
    known.hear(&News::Everything);
    assert_eq!(known.kept(node), None);
}

#[test]
fn where_changes_are_unheard_nothing_is_remembered() {
    let known = Known::new(Hearing::Nothing);
    let node = NodeId::new(7, 0).unwrap();
    known.keep(node, Kept::NOTHING, known.as_of());
    assert_eq!(known.kept(node), None);
    assert!(known.read_names(node).is_none());
}

#[test]
fn nothing_is_remembered_of_what_is_gone() {
    let known = Known::new(Hearing::All);
    let (dir, node) = (NodeId::new(1, 0).unwrap(), NodeId::new(7, 0).unwrap());
    let name: Box<[u8]> = b"a"[..].into();
    let removed = News::Removed {
        dir,
        name: name.clone(),
        node: Some(node),
    };
    let replaced = News::Renamed {
        from: dir,
        name: name.clone(),
        to: dir,
        new_name: name,
        node: None,
        replaced: Some(node),
        swapped: false,
    };
    for news in [removed, replaced, News::Gone(node)] {
        known.keep(node, Kept::NOTHING, known.as_of());
        assert_eq!(known.nodes.lock().kept.len(), 1);
        known.hear(&news);
        assert!(known.nodes.lock().kept.is_empty(), "{news:?}");
    }
}
