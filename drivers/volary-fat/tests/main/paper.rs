//! The paper's own layout: it is recognised, and its reset loses no data.

use crate::check::image::Image;
use crate::check::reader::files;
use crate::check::run::{assert_clean, check, show};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{BlockDevice, CheckMode, Create, FileKind, Format, Fs, Name, SetAttr};
use volary_fat::FAT;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::{self, as_root};

const LONG: &str = "a long name, as the paper has it";

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn file(fs: &Fs, dir: volary_core::NodeId, at: &str, content: &[u8]) {
    as_root(|cx| {
        let set = SetAttr::owned(0o4750, 70, 80);
        let (_, open) = fs.create(cx, dir, name(at), Create::New, &set).unwrap();
        fs.write(cx, open, Some(0), content).unwrap();
        fs.close(cx, open).unwrap();
    });
}

/// Returns a volume in the paper's layout, with long names that begin alike and devices.
fn volume(kind: &str) -> Arc<MemDevice> {
    let dev = Arc::new(MemDevice::new(4 << 20));
    volumes::make(&FAT, dev.clone(), kind, "");
    let fs = volumes::attach(&FAT, dev.clone(), "unix=dosfs").unwrap();
    let root = fs.root();
    file(&fs, root, LONG, b"one");
    file(&fs, root, "a long name that begins alike", b"two");
    file(&fs, root, "short", b"three");
    as_root(|cx| {
        let set = SetAttr::owned(0o755, 1, 2);
        let dir = fs.mkdir(cx, root, name("dir"), &set).unwrap().node;
        let set = SetAttr::owned(0o600, 3, 4);
        for (at, kind) in [
            ("null", FileKind::CharDevice),
            ("disk", FileKind::BlockDevice),
        ] {
            let rdev = 1000 << 32 | 65_535;
            fs.mknod(cx, dir, name(at), kind, rdev, &set).unwrap();
        }
        file(&fs, dir, LONG, b"four");
        fs.detach(cx).unwrap();
    });
    dev
}

fn tree(dev: &Arc<MemDevice>, options: &str) -> Tree {
    let fs = volumes::attach(&FAT, dev.clone(), options).unwrap();
    as_root(|cx| {
        let tree = Tree::read(&fs, cx).unwrap();
        fs.detach(cx).unwrap();
        tree
    })
}

#[test]
fn the_papers_layout_is_recognised() {
    for kind in ["fat12", "fat16"] {
        let dev = volume(kind);
        let named = tree(&dev, "unix=dosfs");
        named.assert_same(&tree(&dev, ""));
        let facts = FAT.info(dev.clone()).unwrap();
        let fact = facts.iter().find(|f| f.key == "UNIX extension").unwrap();
        assert_eq!(fact.value, "in DosFs's own layout", "{kind}");
        let done = check(&dev.to_vec(), CheckMode::Mend, "");
        assert_eq!(done.codes(), [""; 0], "{kind}: {}", show(&done.findings));
        // What is written to it is in that layout as well.
        let fs = volumes::attach(&FAT, dev.clone(), "").unwrap();
        file(&fs, fs.root(), "another name of more than eleven", b"five");
        as_root(|cx| fs.detach(cx).unwrap());
        let done = check(&dev.to_vec(), CheckMode::Look, "unix=dosfs");
        assert_eq!(done.codes(), [""; 0], "{kind}: {}", show(&done.findings));
    }
}

#[test]
fn a_few_marks_are_not_taken_for_the_papers_layout() {
    let dev = Arc::new(MemDevice::new(4 << 20));
    volumes::make(&FAT, dev.clone(), "fat16", "");
    let fs = volumes::attach(&FAT, dev.clone(), "").unwrap();
    for at in ["ONE.TXT", "TWO.TXT", "THREE.TXT"] {
        file(&fs, fs.root(), at, b"content");
    }
    as_root(|cx| fs.detach(cx).unwrap());
    let before = tree(&dev, "");
    let image = Image::new(dev.to_vec()).unwrap();
    let at = image.find("ONETXT").at as u64;
    dev.write_at(at + 11, &[0x60]).unwrap();
    dev.write_at(at + 12, &[0xa4, 0x81]).unwrap();
    assert_eq!(before.differences(&tree(&dev, "")), [""; 0]);
}

#[test]
fn a_reset_takes_the_papers_layout_away_and_loses_no_data() {
    for kind in ["fat12", "fat16"] {
        let dev = volume(kind);
        let done = check(&dev.to_vec(), CheckMode::Mend, "unix=dosfs-reset");
        assert_eq!(
            done.report.as_ref().unwrap().left(),
            0,
            "{}",
            show(&done.findings)
        );
        assert_clean(&done.bytes, kind, &done.findings);
        let again = check(&done.bytes, CheckMode::Look, "");
        assert_eq!(again.codes(), [""; 0], "{kind}: {}", show(&again.findings));
        let image = Image::new(done.bytes.clone()).unwrap();
        let mut contents: Vec<String> = files(&image)
            .into_values()
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .collect();
        contents.sort();
        let device = ["b 1000:65535\n", "c 1000:65535\n"];
        let all = [&device[..], &["four", "one", "three", "two"]].concat();
        assert_eq!(contents, all, "{kind}: {}", show(&done.findings));
        for (slot, raw) in image
            .slots(0)
            .iter()
            .map(|&at| &image.bytes[at..at + 32])
            .enumerate()
        {
            let live = !matches!(raw[0], 0 | 0xe5);
            assert!(
                !live || raw[11] & 0xc8 == 0,
                "{kind}: slot {slot} is {raw:02x?}"
            );
        }
        let preened = check(&dev.to_vec(), CheckMode::Preen, "unix=dosfs-reset");
        assert!(!preened.wrote(), "{kind}");
    }
}
