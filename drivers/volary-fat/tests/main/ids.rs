//! Ids of nodes: none is given twice, and what is open keeps its own.

use crate::volumes::{attach, shape};
use volary_core::{Create, Ctx, Fs, Kind, Mode, Name, NodeId, RenameFlags, SetAttr};
use volary_testkit::volumes::as_root;

const KINDS: [&str; 3] = ["", "unix=on", "unix=off"];

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).expect("a name")
}

fn create(fs: &Fs, cx: &Ctx<'_>, text: &str) -> NodeId {
    let made = fs.create(cx, fs.root(), name(text), Create::New, &SetAttr::default());
    let (entry, open) = made.expect("create");
    fs.close(cx, open).expect("close");
    entry.node
}

fn id(fs: &Fs, cx: &Ctx<'_>, text: &str) -> NodeId {
    fs.lookup(cx, fs.root(), name(text)).expect("lookup").node
}

#[test]
fn a_removed_directory_that_is_open_keeps_its_id_and_its_cluster() {
    for options in KINDS {
        let dev = shape("fat12", 1 << 20).device();
        let fs = attach(dev, options);
        as_root(|cx| {
            let root = fs.root();
            let mkdir = |text| fs.mkdir(cx, root, name(text), &SetAttr::default());
            let free = fs.statfs(cx).expect("statfs").free;
            for by_rename in [false, true] {
                let dir = mkdir("dir").expect("mkdir").node;
                let open = fs.open(cx, dir, Mode::Read).expect("open");
                if by_rename {
                    mkdir("other").expect("mkdir");
                    fs.rename(
                        cx,
                        root,
                        name("other"),
                        root,
                        name("dir"),
                        RenameFlags::REPLACE,
                    )
                    .expect("rename");
                } else {
                    fs.rmdir(cx, root, name("dir")).expect("rmdir");
                }
                let gone = fs.getattr(cx, dir).expect("getattr of what is open");
                assert_eq!(gone.nlink, 0, "{options}");
                let next = mkdir("next").expect("mkdir").node;
                assert_ne!(next.ino, dir.ino, "{options}: a cluster that is in use");
                fs.close(cx, open).expect("close");
                assert_eq!(fs.getattr(cx, dir).expect_err("gone"), Kind::Stale);
                fs.rmdir(cx, root, name("next")).expect("rmdir");
                if by_rename {
                    fs.rmdir(cx, root, name("dir")).expect("rmdir");
                }
                assert_eq!(fs.statfs(cx).expect("statfs").free, free, "{options}");
            }
            fs.detach(cx).expect("detach");
        });
    }
}

#[test]
fn what_a_directory_or_a_move_overwrites_is_not_forgotten() {
    for options in KINDS {
        for moved in [false, true] {
            let dev = shape("fat12", 1 << 20).device();
            let mut seen = Vec::new();
            let fs = attach(dev.clone(), options);
            as_root(|cx| {
                seen.push(create(&fs, cx, "FIRST"));
                create(&fs, cx, "SECOND");
                let root = fs.root();
                fs.rename(
                    cx,
                    root,
                    name("SECOND"),
                    root,
                    name("FIRST"),
                    RenameFlags::REPLACE,
                )
                .expect("rename");
                fs.detach(cx).expect("detach");
            });
            // The ids of this attachment all go by the place alone.
            let fs = attach(dev, options);
            as_root(|cx| {
                let root = fs.root();
                seen.push(id(&fs, cx, "FIRST"));
                if moved {
                    create(&fs, cx, "LAST");
                    fs.rename(
                        cx,
                        root,
                        name("LAST"),
                        root,
                        name("FIRST"),
                        RenameFlags::REPLACE,
                    )
                    .expect("rename");
                } else {
                    fs.unlink(cx, root, name("FIRST")).expect("unlink");
                    fs.mkdir(cx, root, name("FIRST"), &SetAttr::default())
                        .expect("mkdir");
                }
                let away = name("a name that needs other slots");
                fs.rename(cx, root, name("FIRST"), root, away, RenameFlags::KEEP)
                    .expect("rename");
                let last = create(&fs, cx, "NEW");
                assert_eq!(last.ino, seen[0].ino, "{options}: not the same place");
                assert!(
                    !seen.contains(&last),
                    "{options} {moved}: {last:?} in {seen:?}"
                );
                fs.detach(cx).expect("detach");
            });
        }
    }
}
