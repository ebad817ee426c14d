//! The state kept for nodes is dropped with them.

use crate::HostOptions;
use crate::volume::Host;
use tempfile::TempDir;
use volary_core::{
    Cancel, Create, Cred, Ctx, FileSystem, Mode, Name, NodeId, OpenId, RenameFlags, SetAttr, Time,
};

static NEVER: Cancel = Cancel::new();

/// Runs a test on a volume in a new directory, both by handle, if the host permits it, and without.
fn both(test: impl Fn(&Host, &Ctx<'_>)) {
    let cred = Cred::root();
    let cx = Ctx {
        cred: &cred,
        now: Time::EPOCH,
        cancel: &NEVER,
    };
    for by_handle in [true, false] {
        let dir = TempDir::new().unwrap();
        let options = HostOptions {
            by_handle,
            ..HostOptions::default()
        };
        test(&Host::new(dir.path(), &options).unwrap(), &cx);
    }
}

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn make(host: &Host, cx: &Ctx<'_>, text: &str) -> (NodeId, OpenId) {
    let set = SetAttr::mode(0o644);
    let (entry, open) = host
        .create(cx, host.root(), name(text), Create::New, &set)
        .unwrap();
    (entry.node, open)
}

#[test]
fn nothing_is_remembered_of_files_that_come_and_go() {
    both(|host, cx| {
        let root = host.root();
        for number in 0..100 {
            let (old, new) = (format!("old{number}"), format!("new{number}"));
            let (node, open) = make(host, cx, &old);
            host.close(cx, open).unwrap();
            // Servers look nodes up without forgetting them.
            host.lookup(cx, root, name(&old)).unwrap();
            let open = host.open(cx, node, Mode::Read).unwrap();
            host.close(cx, open).unwrap();
            host.rename(cx, root, name(&old), root, name(&new), RenameFlags::REPLACE)
                .unwrap();
            host.unlink(cx, root, name(&new)).unwrap();
            assert_eq!(host.nodes.len(), (0, 0), "after file {number}");
        }
    });
}

#[test]
fn nothing_is_remembered_of_what_is_replaced_or_unlinked_while_open() {
    both(|host, cx| {
        let root = host.root();
        let (kept, open) = make(host, cx, "to");
        host.close(cx, open).unwrap();
        let mut last = kept;
        for number in 0..100 {
            let from = format!("from{number}");
            let (node, open) = make(host, cx, &from);
            host.close(cx, open).unwrap();
            let replaced = host.open(cx, last, Mode::Read).unwrap();
            host.rename(
                cx,
                root,
                name(&from),
                root,
                name("to"),
                RenameFlags::REPLACE,
            )
            .unwrap();
            assert_eq!(host.getattr(cx, last).unwrap().nlink, 0, "it is open");
            host.close(cx, replaced).unwrap();
            assert_eq!(host.nodes.len().0, 1, "after file {number}");
            last = node;
        }
        let open = host.open(cx, last, Mode::Read).unwrap();
        host.unlink(cx, root, name("to")).unwrap();
        assert_eq!(host.nodes.len().0, 1, "it is open");
        host.close(cx, open).unwrap();
        assert_eq!(host.nodes.len(), (0, 0));
    });
}

#[test]
fn a_node_with_another_name_is_remembered() {
    both(|host, cx| {
        let root = host.root();
        let (node, open) = make(host, cx, "one");
        host.close(cx, open).unwrap();
        host.link(cx, node, root, name("two")).unwrap();
        host.unlink(cx, root, name("one")).unwrap();
        assert_eq!(host.nodes.len().0, 1);
        assert_eq!(host.getattr(cx, node).unwrap().nlink, 1);
        host.unlink(cx, root, name("two")).unwrap();
        assert_eq!(host.nodes.len(), (0, 0));
    });
}

#[test]
fn nothing_is_remembered_of_what_is_unlinked_while_its_last_opens_end() {
    both(|host, cx| {
        let root = host.root();
        for number in 0..500 {
            let (node, one) = make(host, cx, "x");
            let two = host.open(cx, node, Mode::Read).unwrap();
            let start = std::sync::Barrier::new(3);
            std::thread::scope(|threads| {
                for open in [one, two] {
                    let start = &start;
                    threads.spawn(move || {
                        start.wait();
                        let cred = Cred::root();
                        let cx = Ctx {
                            cred: &cred,
                            now: Time::EPOCH,
                            cancel: &NEVER,
                        };
                        host.close(&cx, open).unwrap();
                    });
                }
                start.wait();
                host.unlink(cx, root, name("x")).unwrap();
            });
            assert_eq!(host.nodes.len(), (0, 0), "after file {number}");
        }
    });
}
