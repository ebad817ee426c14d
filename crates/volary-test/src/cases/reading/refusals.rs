//! Changes that a volume without `WRITE` refuses.

use super::seen::{Seen, files, of_kind, sample};
use crate::suite::{Case, case_list};
use std::fmt::Debug;
use volary_core::{Create, FileKind, Kind, Mode, RenameFlags, Result, SetAttr, SetTime};

case_list! {
    about Create | MkDir | MkNod | Symlink | Link | Unlink | RmDir | Rename | SetAttr | Open | Write;
    names_cannot_be_made_without_write without WRITE;
    names_cannot_be_removed_or_moved_without_write without WRITE;
    attributes_cannot_be_changed_without_write without WRITE;
    files_cannot_be_opened_to_write_without_write without WRITE;
    an_open_for_reading_cannot_be_written without WRITE;
}

#[track_caller]
fn refused<T: Debug>(got: Result<T>) {
    match got {
        Ok(got) => panic!("it was done: {got:?}"),
        Err(e) => assert_eq!(e, Kind::ReadOnly),
    }
}

/// Returns some of the files, and some that nobody may write. A server may refuse a change to the
/// latter for lack of permission, before it asks the volume.
fn tried<'a, 'b>(all: &'a [Seen<'b>]) -> impl Iterator<Item = &'a Seen<'b>> {
    let protected = files(all).filter(|file| file.want.mode & 0o222 == 0);
    files(all).take(3).chain(protected.take(2))
}

/// Runs `act`, and asserts that it has changed nothing.
fn unchanged(c: &Case, act: impl FnOnce()) {
    let before = c.tree();
    act();
    before.assert_same(&c.tree());
}

fn names_cannot_be_made_without_write(c: &Case) {
    let all = sample(c, c.manifest());
    unchanged(c, || {
        for dir in of_kind(&all, FileKind::Dir).take(3) {
            for how in [Create::New, Create::Open, Create::Truncate] {
                refused(c.create(dir.node, "new", how));
            }
            refused(c.mkdir(dir.node, "new"));
            refused(c.mknod(dir.node, "new", FileKind::Fifo, 0));
            refused(c.symlink(dir.node, "new", b"target"));
            if let Some(file) = files(&all).next() {
                refused(c.link(file.node, dir.node, "new"));
            }
        }
    });
}

fn names_cannot_be_removed_or_moved_without_write(c: &Case) {
    let all = sample(c, c.manifest());
    unchanged(c, || {
        for seen in tried(&all).chain(of_kind(&all, FileKind::Symlink).take(1)) {
            let (dir, name) = crate::manifest::split(&seen.path);
            let dir = all
                .iter()
                .find(|other| other.path == dir)
                .expect("its directory");
            refused(c.unlink(dir.node, name));
            for flags in [RenameFlags::REPLACE, RenameFlags::KEEP] {
                refused(c.rename_with(dir.node, name, dir.node, "new", flags));
            }
        }
        for seen in of_kind(&all, FileKind::Dir)
            .filter(|dir| !dir.path.is_empty())
            .take(3)
        {
            let (up, name) = crate::manifest::split(&seen.path);
            let up = all
                .iter()
                .find(|other| other.path == up)
                .expect("its directory");
            let got = c.rmdir(up.node, name).expect_err("rmdir");
            let told = [Kind::ReadOnly, Kind::NotEmpty];
            assert!(
                told.contains(&got.kind()),
                "rmdir of {}: {got:?}",
                seen.shown()
            );
        }
    });
}

fn attributes_cannot_be_changed_without_write(c: &Case) {
    let all = sample(c, c.manifest());
    unchanged(c, || {
        let dirs = of_kind(&all, FileKind::Dir).take(2);
        for seen in tried(&all).chain(dirs) {
            let mtime = SetAttr {
                mtime: Some(SetTime::Now),
                ..SetAttr::default()
            };
            for set in [SetAttr::mode(0o700), SetAttr::owned(0o600, 3, 4), mtime] {
                refused(c.setattr(seen.node, &set));
            }
        }
        for seen in tried(&all) {
            refused(c.setattr(seen.node, &SetAttr::size(0)));
        }
    });
}

fn files_cannot_be_opened_to_write_without_write(c: &Case) {
    let all = sample(c, c.manifest());
    unchanged(c, || {
        for seen in tried(&all) {
            for mode in [Mode::Write, Mode::ReadWrite] {
                refused(c.try_open(seen.node, mode));
            }
        }
    });
}

fn an_open_for_reading_cannot_be_written(c: &Case) {
    let all = sample(c, c.manifest());
    unchanged(c, || {
        for seen in tried(&all) {
            let open = c.open_to_read(seen.node);
            refused(c.write(open, 0, b"x"));
            refused(c.append(open, b"x"));
            c.close(open);
        }
    });
}
