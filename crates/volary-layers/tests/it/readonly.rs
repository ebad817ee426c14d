use crate::{Rig, memory, n};
use volary_core::{Caps, Create, Kind, Mode, RenameFlags, SetAttr};
use volary_layers::ReadOnly;

#[test]
fn what_is_there_can_be_read_and_nothing_changed() {
    let below = Rig::over(memory());
    let root = below.fs.root();
    let node = below.file(root, "a", b"text");
    let rig = Rig::new(ReadOnly::new(below.fs.clone()));
    let (fs, cx, set) = (&rig.fs, rig.cx(), SetAttr::default());

    assert!(!fs.caps().has(Caps::WRITE));
    assert_eq!(rig.read(node).unwrap(), b"text");
    let refused = [
        Rig::kind(fs.create(&cx, root, n("b"), Create::New, &set)),
        Rig::kind(fs.create(&cx, root, n("a"), Create::Open, &set)),
        Rig::kind(fs.mkdir(&cx, root, n("b"), &set)),
        Rig::kind(fs.symlink(&cx, root, n("b"), b"a", &set)),
        Rig::kind(fs.link(&cx, node, root, n("b"))),
        Rig::kind(fs.unlink(&cx, root, n("a"))),
        Rig::kind(fs.rmdir(&cx, root, n("a"))),
        Rig::kind(fs.rename(&cx, root, n("a"), root, n("b"), RenameFlags::REPLACE)),
        Rig::kind(fs.setattr(&cx, node, &SetAttr::mode(0))),
        Rig::kind(fs.setxattr(&cx, node, b"user.x", b"")),
        Rig::kind(fs.removexattr(&cx, node, b"user.x")),
        Rig::kind(fs.open(&cx, node, Mode::Write)),
        Rig::kind(fs.open(&cx, node, Mode::ReadWrite)),
    ];
    assert_eq!(refused, [Some(Kind::ReadOnly); 13]);
    let open = fs.open(&cx, node, Mode::Read).unwrap();
    assert_eq!(fs.write(&cx, open, None, b"x").unwrap_err(), Kind::ReadOnly);
    assert_eq!(
        fs.allocate(&cx, open, 0, 10, false).unwrap_err(),
        Kind::ReadOnly
    );
    assert_eq!(fs.ioctl(&cx, open, 1, b"").unwrap_err(), Kind::ReadOnly);
    assert_eq!(below.list(root).len(), 1);
    assert_eq!(below.read(node).unwrap(), b"text");
}
