//! Extended attributes.

use crate::{Make, OTHER, OWNER, kind, root, user, volume, volume_with};
use volary_core::{Caps, Kind, SetAttr};
use volary_session::SetXattr;

#[test]
fn user_attributes_need_the_access_that_content_needs() {
    let volume = volume();
    let owner = user(&volume, OWNER);
    let node = owner.file(owner.root(), "f", 0o604);
    owner
        .setxattr(node, b"user.a", b"1", SetXattr::Any)
        .unwrap();
    let other = user(&volume, OTHER);
    assert_eq!(other.getxattr(node, b"user.a").unwrap(), b"1");
    assert_eq!(other.listxattr(node).unwrap(), [b"user.a"]);
    let set = other.setxattr(node, b"user.a", b"2", SetXattr::Any);
    assert_eq!(kind(set), Some(Kind::Access));
    let removed = other.removexattr(node, b"user.a");
    assert_eq!(kind(removed), Some(Kind::Access));
    owner.setattr(node, &SetAttr::mode(0o600)).unwrap();
    let got = other.getxattr(node, b"user.a");
    assert_eq!(kind(got), Some(Kind::Access));
    owner.removexattr(node, b"user.a").unwrap();
    assert_eq!(kind(owner.getxattr(node, b"user.a")), Some(Kind::NoXattr));
}

#[test]
fn user_attributes_are_for_files_and_directories() {
    let volume = volume();
    let s = user(&volume, OWNER);
    let link = s
        .symlink(s.root(), b"l", b"x", &SetAttr::mode(0o777))
        .unwrap();
    let set = s.setxattr(link.node, b"user.a", b"", SetXattr::Any);
    assert_eq!(kind(set), Some(Kind::NotPermitted));
    assert_eq!(kind(s.getxattr(link.node, b"user.a")), Some(Kind::NoXattr));
    let dir = s.dir(s.root(), "d", 0o777);
    user(&volume, OTHER)
        .setxattr(dir, b"user.a", b"", SetXattr::Any)
        .unwrap();
    s.setattr(dir, &SetAttr::mode(0o1777)).unwrap();
    let sticky = user(&volume, OTHER).setxattr(dir, b"user.a", b"", SetXattr::Any);
    assert_eq!(kind(sticky), Some(Kind::NotPermitted));
}

#[test]
fn trusted_attributes_are_roots_alone_and_others_are_set_by_root() {
    let volume = volume();
    let (owner, root) = (user(&volume, OWNER), root(&volume));
    let node = owner.file(owner.root(), "f", 0o666);
    for name in [&b"trusted.a"[..], b"security.a"] {
        let set = owner.setxattr(node, name, b"", SetXattr::Any);
        assert_eq!(kind(set), Some(Kind::NotPermitted));
        root.setxattr(node, name, b"x", SetXattr::Any).unwrap();
    }
    assert_eq!(
        kind(owner.getxattr(node, b"trusted.a")),
        Some(Kind::NoXattr)
    );
    assert_eq!(owner.getxattr(node, b"security.a").unwrap(), b"x");
    assert_eq!(owner.listxattr(node).unwrap(), [b"security.a"]);
    assert_eq!(root.listxattr(node).unwrap().len(), 2);
}

#[test]
fn an_attribute_is_made_or_replaced_as_asked() {
    let volume = volume();
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o644);
    let set = |how| s.setxattr(node, b"user.a", b"x", how);
    assert_eq!(kind(set(SetXattr::Replace)), Some(Kind::NoXattr));
    set(SetXattr::New).unwrap();
    assert_eq!(kind(set(SetXattr::New)), Some(Kind::Exists));
    set(SetXattr::Replace).unwrap();
}

#[test]
fn names_and_values_have_bounds() {
    let volume = volume();
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o644);
    let (long, large) = ([b'n'; 256], vec![0; (64 << 10) + 1]);
    let set = |name: &[u8], value: &[u8]| kind(s.setxattr(node, name, value, SetXattr::Any));
    assert_eq!(set(b"", b""), Some(Kind::Invalid));
    assert_eq!(set(b"user.\0", b""), Some(Kind::Invalid));
    assert_eq!(set(&long, b""), Some(Kind::NameTooLong));
    assert_eq!(set(b"user.a", &large), Some(Kind::TooBig));
    assert_eq!(set(&long[1..], &large[1..]), None);
}

#[test]
fn a_volume_without_them_says_so() {
    let volume = volume_with(crate::without(Caps::XATTRS), false);
    let s = root(&volume);
    let node = s.root();
    let refused = [
        kind(s.getxattr(node, b"user.a")),
        kind(s.setxattr(node, b"user.a", b"", SetXattr::Any)),
        kind(s.listxattr(node)),
        kind(s.removexattr(node, b"user.a")),
    ];
    assert_eq!(refused, [Some(Kind::Unsupported); 4]);
}
