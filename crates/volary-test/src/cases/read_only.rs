//! Volumes that do not allow changes.

use crate::suite::{Case, case_list};
use volary_core::{Caps, Create, FileKind, Kind, Mode, NodeId, RenameFlags, SetAttr};

case_list! {
    about Create | MkDir | Unlink | RmDir | Rename | SetAttr | Link | Open | Write;
    a_read_only_volume_refuses_every_change without WRITE;
    a_read_only_volume_can_be_read without WRITE;
    attached_for_reading_it_refuses_every_change with WRITE;
    attached_for_reading_it_reads_the_same with WRITE;
}

/// Asserts that each kind of change in `dir` is refused as read-only. `dir` may hold a file `f` and
/// a directory `d`. `file` is a file to be changed, if there is one.
fn refuses_changes(c: &Case, dir: NodeId, file: Option<NodeId>) {
    for how in [Create::New, Create::Open, Create::Truncate] {
        c.refuses(Kind::ReadOnly, || c.create(dir, "new", how));
    }
    c.refuses(Kind::ReadOnly, || c.mkdir(dir, "new"));
    c.refuses(Kind::ReadOnly, || c.mknod(dir, "new", FileKind::Fifo, 0));
    c.refuses(Kind::ReadOnly, || c.symlink(dir, "new", b"target"));
    c.refuses(Kind::ReadOnly, || c.unlink(dir, "f"));
    c.refuses(Kind::ReadOnly, || c.rmdir(dir, "d"));
    for flags in [RenameFlags::REPLACE, RenameFlags::KEEP, RenameFlags::SWAP] {
        c.refuses(Kind::ReadOnly, || c.rename_with(dir, "f", dir, "g", flags));
    }
    let Some(file) = file else { return };
    c.refuses(Kind::ReadOnly, || c.link(file, dir, "new"));
    c.refuses(Kind::ReadOnly, || c.setattr(file, &SetAttr::size(0)));
    c.refuses(Kind::ReadOnly, || c.setattr(file, &SetAttr::mode(0)));
    for mode in [Mode::Write, Mode::ReadWrite] {
        c.refuses(Kind::ReadOnly, || c.try_open(file, mode));
    }
    let open = c.open_to_read(file);
    c.refuses(Kind::ReadOnly, || c.write(open, 0, b"x"));
    c.refuses(Kind::ReadOnly, || c.append(open, b"x"));
    c.close(open);
}

fn some_file(c: &Case) -> Option<NodeId> {
    let all = c.list(c.root());
    all.iter()
        .find(|i| i.kind == FileKind::File)
        .map(|i| i.node)
}

fn a_read_only_volume_refuses_every_change(c: &Case) {
    refuses_changes(c, c.root(), some_file(c));
}

fn a_read_only_volume_can_be_read(c: &Case) {
    let tree = c.tree();
    tree.assert_same(&c.tree());
    if let Some(file) = some_file(c) {
        assert_eq!(c.content(file).len() as u64, c.attr(file).size);
    }
}

fn attached_for_reading_it_refuses_every_change(c: &Case) {
    c.file(c.root(), "f", b"content");
    c.dir(c.root(), "d");
    if !c.reattach_read_only() {
        return;
    }
    assert!(!c.fs().caps().has(Caps::WRITE), "still claims WRITE");
    let file = c.find(c.root(), "f");
    refuses_changes(c, c.root(), Some(file));
    assert_eq!(c.content(file), b"content");
}

fn attached_for_reading_it_reads_the_same(c: &Case) {
    let dir = c.dir(c.root(), "d");
    for i in 0..20_u8 {
        c.file(dir, format!("file {i}"), &vec![i; 1000]);
    }
    let before = c.tree();
    if c.reattach_read_only() {
        before.assert_same(&c.tree());
        c.fs().sync(&c.cx()).expect("sync");
        c.fs().statfs(&c.cx()).expect("statfs");
    }
}
