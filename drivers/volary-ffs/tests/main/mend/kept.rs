//! What is kept of damaged files, and what the findings say of them.

use super::made::Made;
use super::{SHAPES, readable};
use crate::volumes::{attach, check};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{Answer, Check, CheckMode, Ctx, Finding, Format, Fs, Mode, Name, Options, Quiet};
use volary_ffs::FFS;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::{NOW, as_root};

/// Bytes of a block.
const BLOCK: usize = 4096;

/// Findings of one run.
fn run(dev: &Arc<MemDevice>, mode: CheckMode, answer: Answer) -> (Vec<Finding>, u64) {
    let how = Check {
        mode,
        now: NOW,
        options: Options::default(),
    };
    let mut all = Vec::new();
    let mut tell = |f: &Finding| {
        all.push(f.clone());
        answer
    };
    let report = FFS.check(dev.clone(), &how, &mut tell, &Quiet);
    (all, report.expect("check").left())
}

fn read(fs: &Fs, cx: &Ctx<'_>, path: &str) -> Vec<u8> {
    let mut node = fs.root();
    for part in path.split('/') {
        let name = Name::new(part.as_bytes()).expect("a name");
        node = fs.lookup(cx, node, name).expect("lookup").node;
    }
    let open = fs.open(cx, node, Mode::Read).expect("open");
    let size = fs.getattr(cx, node).expect("attributes").size;
    let mut bytes = vec![0; usize::try_from(size).expect("a size")];
    let n = fs.read(cx, open, 0, &mut bytes).expect("read");
    bytes.truncate(n);
    fs.close(cx, open).expect("close");
    bytes
}

/// Returns a file on a mended volume.
fn content(dev: &Arc<MemDevice>, path: &str) -> Vec<u8> {
    let fs = attach(dev.clone(), "");
    as_root(|cx| read(&fs, cx, path))
}

fn with(m: &Made, act: impl FnOnce(&Made, &mut [u8])) -> Arc<MemDevice> {
    let mut image = m.image.clone();
    act(m, &mut image);
    Arc::new(MemDevice::from_vec(image))
}

fn of_code<'a>(found: &'a [Finding], code: &str) -> &'a Finding {
    let one = found.iter().find(|finding| finding.code == code);
    one.unwrap_or_else(|| panic!("no {code}: {found:#?}"))
}

#[test]
fn a_pointer_out_of_range_costs_its_block_and_names_the_path() {
    for shape in SHAPES {
        let m = Made::new(shape);
        let whole = &m.content.0[b"large".as_slice()];
        let dev = with(&m, |m, image| {
            m.point(image, m.pointer("large", 3), 0x7f7f_7f7f);
        });
        for mode in [CheckMode::Look, CheckMode::Mend] {
            let (found, _) = run(&dev, mode, Answer::No);
            let finding = of_code(&found, "bad-block");
            assert_eq!(finding.path.as_deref(), Some(b"/large".as_slice()));
            assert_eq!(finding.repair, "the pointer becomes a hole");
        }
        let mut expected = whole.clone();
        expected[3 * BLOCK..4 * BLOCK].fill(0);
        assert!(content(&dev, "large") == expected, "{}", m.shape.name());
    }
}

#[test]
fn a_file_ends_before_its_last_blocks_if_they_are_out_of_range_and_the_finding_says_so() {
    for shape in SHAPES {
        let m = Made::new(shape);
        let whole = &m.content.0[b"large".as_slice()];
        let dev = with(&m, |m, image| {
            m.point(image, m.pointer("large", 12), 0x7f7f_7f7f);
        });
        let (found, _) = run(&dev, CheckMode::Mend, Answer::No);
        let repair = &of_code(&found, "bad-block").repair;
        assert!(repair.ends_with("it ends after 49152 bytes"), "{repair}");
        assert!(content(&dev, "large") == whole[..12 * BLOCK]);
    }
}

#[test]
fn two_owners_of_a_block_both_have_it_afterwards() {
    for shape in SHAPES {
        let m = Made::new(shape);
        let whole = &m.content.0[b"large".as_slice()];
        let dev = with(&m, |m, image| {
            m.point(image, m.pointer("two", 0), m.block("large") as u64 / 512);
        });
        let (found, left) = run(&dev, CheckMode::Ask, Answer::Yes);
        assert_eq!(left, 0, "{found:#?}");
        let path = of_code(&found, "duplicate-blocks").path.as_deref();
        assert_eq!(path, Some(b"/a/b/two".as_slice()));
        assert_eq!(check(dev.clone(), CheckMode::Preen).0.found, 0);
        assert!(content(&dev, "a/b/two")[..BLOCK] == whole[..BLOCK]);
        assert!(content(&dev, "large") == *whole);
    }
}

#[test]
fn who_refuses_one_repair_is_left_with_a_volume_that_takes_no_changes() {
    let m = Made::new(SHAPES[0]);
    let dev = with(&m, |m, image| {
        m.point(image, m.pointer("two", 0), m.block("large") as u64 / 512);
        m.point(image, m.pointer("large", 3), 0x7f7f_7f7f);
    });
    let how = Check {
        mode: CheckMode::Ask,
        now: NOW,
        options: Options::default(),
    };
    let mut tell = |f: &Finding| match f.code {
        "bad-block" => Answer::No,
        _ => Answer::Yes,
    };
    let report = FFS.check(dev.clone(), &how, &mut tell, &Quiet);
    assert!(report.expect("check").left() > 0);
    let (found, _) = run(&dev, CheckMode::Look, Answer::No);
    of_code(&found, "dirty");
    assert!(
        found.iter().all(|f| f.code != "duplicate-blocks"),
        "{found:#?}"
    );
    assert_eq!(run(&dev, CheckMode::Mend, Answer::No).1, 0);
}

#[test]
fn without_room_for_a_copy_both_owners_keep_the_block_and_the_check_says_why() {
    let m = Made::new(SHAPES[0]);
    let full = Arc::new(MemDevice::from_vec(m.image.clone()));
    let fs = attach(full.clone(), "");
    as_root(|cx| fill_up(&fs, cx));
    let mut image = full.to_vec();
    // A hole, so that nothing becomes free.
    m.point(
        &mut image,
        m.pointer("double", 5),
        m.block("large") as u64 / 512,
    );
    let dev = Arc::new(MemDevice::from_vec(image));
    let before = readable(&m, &dev, false);
    let (found, left) = run(&dev, CheckMode::Mend, Answer::No);
    let finding = of_code(&found, "duplicate-blocks");
    assert!(
        finding.message.ends_with("there is no room for a copy"),
        "{finding:?}"
    );
    assert!(finding.repair.is_empty() && left > 0);
    assert_eq!(
        readable(&m, &dev, false).lost_since(&before),
        Vec::<String>::new()
    );
}

/// The first inode claims what is the second's as an indirect block, with holes to be made in it.
#[test]
fn without_room_for_a_copy_nothing_is_written_into_what_two_files_claim() {
    for shape in SHAPES {
        let m = Made::new(shape);
        let full = Arc::new(MemDevice::from_vec(m.image.clone()));
        let fs = attach(full.clone(), "");
        as_root(|cx| fill_up(&fs, cx));
        let mut image = full.to_vec();
        let data = m.block("double");
        let indirect = m.leads(m.pointer("large", 12));
        // In range, and nothing that it leads to becomes free: its own blocks go on being taken.
        m.point(&mut image, data, indirect as u64 / 512);
        m.point(&mut image, m.pointer("large", 12), data as u64 / 512);
        for size in [200_000, 13 * BLOCK as u64] {
            let mut image = image.clone();
            m.put(&mut image, m.size("large"), 8, size);
            let dev = Arc::new(MemDevice::from_vec(image.clone()));
            _ = run(&dev, CheckMode::Mend, Answer::No);
            let now = content(&dev, "double");
            let before = &image[data..][..BLOCK];
            assert!(now[..BLOCK] == *before, "{}: {size}", m.shape.name());
        }
    }
}

/// Takes all room.
fn fill_up(fs: &Fs, cx: &Ctx<'_>) {
    let set = Default::default();
    let name = Name::new(b"filler").expect("a name");
    let made = fs.create(cx, fs.root(), name, volary_core::Create::New, &set);
    let (_, open) = made.expect("create");
    let (mut at, mut len) = (0, 1 << 16);
    while len > 0 {
        match fs.write(cx, open, Some(at), &vec![7; len]) {
            Ok(_) => at += len as u64,
            Err(_) => len /= 2,
        }
    }
    fs.close(cx, open).expect("close");
    fs.detach(cx).expect("detach");
}

/// Damage of one inode, the one finding's repair, and whether all of the tree comes back.
type Case = (fn(&Made, &mut [u8]), &'static str, &'static str);

const CASES: [Case; 8] = [
    (
        |m, i| m.flip(i, m.inode("large"), 2, 12),
        "large",
        "it counts as a file",
    ),
    (
        |m, i| m.flip(i, m.inode("b"), 2, 12),
        "a/b",
        "it counts as a directory",
    ),
    // A directory's bit made it a device.
    (
        |m, i| m.flip(i, m.inode("b"), 2, 13),
        "a/b",
        "it counts as a directory",
    ),
    // A file's made it a socket.
    (
        |m, i| m.flip(i, m.inode("large"), 2, 14),
        "large",
        "it counts as a file",
    ),
    (
        |m, i| m.flip(i, m.inode("fifo"), 2, 14),
        "a/fifo",
        "it counts as a fifo",
    ),
    (
        |m, i| m.flip(i, m.size("large"), 8, 62),
        "large",
        "it ends after 200000 bytes",
    ),
    (
        |m, i| m.flip(i, m.size("one"), 8, 55),
        "a/one",
        "it ends after 3000 bytes",
    ),
    (
        |m, i| m.put(i, m.size("b"), 8, 0),
        "a/b",
        "it ends after 512 bytes",
    ),
];

#[test]
fn an_inode_becomes_what_it_was_before_its_mode_or_size_was_damaged() {
    for shape in SHAPES {
        let m = Made::new(shape);
        for (act, path, repair) in &CASES {
            // 4.3BSD's entries do not say what is a fifo.
            if m.is_old() && *path == "a/fifo" {
                continue;
            }
            let what = format!("{}: {path}: {repair}", m.shape.name());
            let dev = with(&m, act);
            let (found, left) = run(&dev, CheckMode::Mend, Answer::No);
            assert_eq!(left, 0, "{what}: {found:#?}");
            let its = found.iter().find(|f| f.repair == *repair);
            let its = its.unwrap_or_else(|| panic!("{what}: {found:#?}"));
            let its = its.path.clone().unwrap_or_default();
            assert!(
                its == format!("/{path}").as_bytes() || path == &"a/one",
                "{what}"
            );
            let fs = attach(dev, "");
            let tree = as_root(|cx| Tree::read(&fs, cx)).expect("the tree");
            let differences = m.tree.differences(&tree);
            assert!(differences.is_empty(), "{what}: {differences:#?}");
        }
    }
}

#[test]
fn a_symlink_too_long_for_its_inode_has_its_target_again() {
    for shape in SHAPES
        .into_iter()
        .filter(|shape| !shape.make.contains("old"))
    {
        let m = Made::new(shape);
        let dev = with(&m, |m, image| m.flip(image, m.size("short"), 8, 12));
        let (found, left) = run(&dev, CheckMode::Mend, Answer::No);
        assert_eq!(left, 0, "{found:#?}");
        let fs = attach(dev, "");
        let tree = as_root(|cx| Tree::read(&fs, cx)).expect("the tree");
        assert_eq!(m.tree.differences(&tree), Vec::<String>::new());
    }
}

/// A block of a directory, and all that the others of it name.
#[test]
fn a_directory_that_lost_a_block_keeps_the_names_of_the_others() {
    for shape in SHAPES {
        let m = Made::new(shape);
        let dev = with(&m, |m, image| {
            m.point(image, m.pointer("many", 0), 0x7f7f_7f7f);
        });
        let named = |tree: &Tree| {
            let names = tree.0.iter().filter(|(path, _)| path.starts_with(b"many/"));
            names.map(|(path, _)| path.clone()).collect::<Vec<_>>()
        };
        let second: Vec<_> = named(&m.tree)
            .into_iter()
            .filter(|path| !is_in_first(&m, path))
            .collect();
        assert!(second.len() > 10, "{}", second.len());
        // Before it is mended, what can be read is found, and the rest is no empty directory.
        let fs = volary_testkit::volumes::attach_read_only(&FFS, dev.clone(), "").expect("attach");
        as_root(|cx| {
            let last = String::from_utf8(second[0].clone()).expect("text");
            assert!(read(&fs, cx, &last) == m.content.0[last.as_bytes()]);
        });
        let before = readable(&m, &dev, false);
        assert_eq!(run(&dev, CheckMode::Mend, Answer::No).1, 0);
        assert_eq!(
            readable(&m, &dev, false).lost_since(&before),
            Vec::<String>::new()
        );
        let fs = attach(dev, "");
        let tree = as_root(|cx| Tree::read(&fs, cx)).expect("the tree");
        let kept = named(&tree);
        assert!(second.iter().all(|path| kept.contains(path)), "{kept:?}");
        let found = tree
            .0
            .keys()
            .filter(|path| path.starts_with(b"lost+found/"));
        assert_eq!(found.count(), named(&m.tree).len() - second.len());
    }
}

/// Returns whether the first block of `many` has a name.
fn is_in_first(m: &Made, path: &[u8]) -> bool {
    let name = path.strip_prefix(b"many/").expect("a name in it");
    m.image[m.block("many")..][..BLOCK]
        .windows(name.len())
        .any(|bytes| bytes == name)
}
