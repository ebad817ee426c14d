//! More new files than a volume keeps nodes of.

use crate::volumes::fsck_fat;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    Attach, Cookie, Create, Ctx, DirBuf, Format, Fs, Make, Mode, Name, NodeId, RenameFlags, SetAttr,
};
use volary_fat::FAT;
use volary_testkit::volumes::{NOW, as_root};

/// So many nodes are kept with the least memory, and some times more are made.
const FILES: usize = 5000;

fn attach(dev: &Arc<MemDevice>) -> Fs {
    let how = Attach {
        memory: 1,
        ..Attach::default()
    };
    FAT.attach(dev.clone(), &how).unwrap()
}

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn put(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, i: usize) {
    let text = format!("a file with number {i}");
    let made = fs.create(cx, dir, name(&text), Create::New, &SetAttr::default());
    let (_, open) = made.unwrap();
    fs.write(cx, open, None, &vec![1; i % 700]).unwrap();
    fs.close(cx, open).unwrap();
    if i.is_multiple_of(3) {
        let new = format!("moved {i}");
        fs.rename(cx, dir, name(&text), dir, name(&new), RenameFlags::REPLACE)
            .unwrap();
    }
}

/// Names and sizes of what is in the directory.
fn sizes(fs: &Fs, cx: &Ctx<'_>, dir: NodeId) -> Vec<(String, u64)> {
    let open = fs.open(cx, dir, Mode::Read).unwrap();
    let mut all = Vec::new();
    let mut buf = DirBuf::new(FILES + 1, FILES * 64, true);
    assert!(fs.readdir(cx, open, Cookie::START, &mut buf).unwrap());
    for entry in buf.iter() {
        let text = String::from_utf8(entry.name.to_vec()).unwrap();
        all.push((text, entry.attr.unwrap().size));
    }
    fs.close(cx, open).unwrap();
    all.sort();
    all
}

#[test]
fn entries_of_more_files_than_there_are_nodes_are_all_right() {
    let dev = Arc::new(MemDevice::new(64 << 20));
    let make = Make {
        now: NOW,
        ..Make::default()
    };
    FAT.make(dev.clone(), "fat32", &make).unwrap();
    let mut expected: Vec<_> = (0..FILES)
        .map(|i| match i % 3 {
            0 => (format!("moved {i}"), (i % 700) as u64),
            _ => (format!("a file with number {i}"), (i % 700) as u64),
        })
        .collect();
    expected.sort();
    as_root(|cx| {
        let fs = attach(&dev);
        let set = SetAttr::default();
        let dir = fs.mkdir(cx, fs.root(), name("dir"), &set).unwrap().node;
        for i in 0..FILES {
            put(&fs, cx, dir, i);
        }
        assert!(sizes(&fs, cx, dir) == expected, "before the commit");
        fs.detach(cx).unwrap();
        let fs = attach(&dev);
        assert!(sizes(&fs, cx, dir) == expected, "attached again");
    });
    fsck_fat(&*dev).unwrap();
}
