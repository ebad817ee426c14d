//! Damage past one or two adjacent pages: of a record that others follow, of a page
//! of the name table in both copies, of all of the map.

use crate::volumes::{attach, attach_read_only, check, shape};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_cedar::CEDAR;
use volary_cedar::Layout;
use volary_cedar::seal;
use volary_core::{BlockDevice, CheckMode, Create, Format, Fs, Name, SetAttr};
use volary_testkit::rng::pattern;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::{self, NOW, Shape, as_root};

const PAGE: usize = 512;
const SHAPE: Shape = shape(1 << 20)
    .made("page=512,name-table=16k,log=186k")
    .attached("commit=0");

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

/// Files, directories, and a log that went round.
fn fill(fs: &Fs) {
    as_root(|cx| {
        let set = SetAttr::default();
        let dir = fs.mkdir(cx, fs.root(), name("dir"), &set).unwrap().node;
        for i in 0..30_u32 {
            let text = format!("file {i}");
            let into = if i % 3 == 0 { dir } else { fs.root() };
            let (_, open) = fs.create(cx, into, name(&text), Create::New, &set).unwrap();
            let content = pattern(i.into(), 300 * (i as usize % 7));
            fs.write(cx, open, Some(0), &content).unwrap();
            fs.close(cx, open).unwrap();
        }
        fs.sync(cx).unwrap();
    });
}

/// Returns an image and its tree; `left` says whether it was detached.
fn image(left: bool) -> (Vec<u8>, Tree) {
    let dev = SHAPE.device();
    let fs = attach(dev.clone(), SHAPE.attach);
    fill(&fs);
    let tree = as_root(|cx| Tree::read(&fs, cx)).unwrap();
    if left {
        as_root(|cx| fs.detach(cx)).unwrap();
    }
    (dev.to_vec(), tree)
}

/// The tree of a damaged volume must be as it was, but for the content of one file.
fn must_hold(dev: Arc<dyn BlockDevice>, whole: &Tree, what: &str) {
    let fs = attach_read_only(dev, SHAPE.attach).unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut differ = 0;
    for (path, leaf) in &whole.0 {
        let found = as_root(|cx| {
            let mut at = fs.root();
            for part in path.split(|b| *b == b'/') {
                at = fs.lookup(cx, at, Name::new(part)?)?.node;
            }
            fs.getattr(cx, at)
        });
        let attr = found.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!((attr.kind, attr.size), (leaf.kind, leaf.size), "{what}");
        let content = as_root(|cx| -> volary_core::Result<Vec<u8>> {
            let open = fs.open(cx, attr.node, volary_core::Mode::Read)?;
            let mut buf = vec![0; attr.size as usize];
            let n = fs.read(cx, open, 0, &mut buf);
            fs.close(cx, open)?;
            buf.truncate(n?);
            Ok(buf)
        });
        let number = path
            .rsplit(|b| *b == b' ')
            .next()
            .and_then(|n| std::str::from_utf8(n).ok());
        let number = number.and_then(|n| n.parse::<u64>().ok());
        if let Some(number) = number {
            let good = content.is_ok_and(|c| c == pattern(number, 300 * (number as usize % 7)));
            differ += u32::from(!good);
        }
    }
    // Two adjacent pages may be of two files.
    assert!(differ <= 2, "{what}: {differ} files lost content");
}

/// A check mends the damage, and a second one finds nothing and writes nothing.
fn mends(dev: Arc<MemDevice>, what: &str) {
    let (report, found) = check(dev.clone(), CheckMode::Mend);
    assert_eq!(report.left(), 0, "{what}: {found:?}");
    let (again, found) = check(dev, CheckMode::Mend);
    assert_eq!((again.found, again.written), (0, 0), "{what}: {found:?}");
}

#[test]
fn damage_of_a_record_that_later_ones_follow_is_not_passed_over() {
    let (mut image, _) = image(false);
    // Both headers of a record in the middle of the log: more than is stood.
    let is_head = |p: &[u8]| p[..5] == [0x43, 0x64, 0x46, 0x73, 6];
    let heads: Vec<usize> = (0..image.len() / PAGE)
        .filter(|i| is_head(&image[i * PAGE..(i + 1) * PAGE]))
        .collect();
    let seq = |page: usize| {
        u64::from_le_bytes(
            image[page * PAGE + 24..page * PAGE + 32]
                .try_into()
                .unwrap(),
        )
    };
    let newest = heads.iter().map(|p| seq(*p)).max().unwrap();
    let bad: Vec<usize> = heads
        .into_iter()
        .filter(|p| seq(*p) + 2 == newest)
        .collect();
    for page in bad {
        image[page * PAGE..(page + 1) * PAGE].fill(0xee);
    }
    let dev = Arc::new(MemDevice::from_vec(image));
    let refused = volumes::attach(&CEDAR, dev.clone(), "")
        .err()
        .expect("a refusal");
    assert!(refused.to_string().contains("fsck -y"), "{refused}");
    drop(attach_read_only(dev.clone(), "").expect("for reading"));
    let (report, found) = check(dev.clone(), CheckMode::Preen);
    assert!(
        report.left() > 0 && found.iter().any(|f| f.starts_with("log-lost")),
        "{found:?}"
    );
    let (report, found) = check(dev.clone(), CheckMode::Mend);
    assert_eq!(report.left(), 0, "{found:?}");
    let fs = attach(dev, "");
    as_root(|cx| {
        assert_eq!(cx.now, NOW);
        fs.lookup(cx, fs.root(), name("file 1")).unwrap();
    });
}

/// Returns the pages of the name table that are in use, with their levels.
fn table(image: &[u8]) -> Vec<(usize, u8)> {
    let pages = image.chunks(PAGE).enumerate();
    let own = pages.filter(|(_, p)| p[..5] == [0x43, 0x64, 0x46, 0x73, 3]);
    let start = own.clone().next().unwrap().0;
    let first = own.filter(|(at, p)| p[16..20] == ((at - start) as u32).to_le_bytes());
    first.map(|(at, p)| (at, p[5])).collect()
}

/// The paper's leaders check the name table; where both copies of a page of it
/// are lost, they and the rest of it bring most files back.
#[test]
fn a_page_of_the_name_table_lost_in_both_copies_is_made_good() {
    let (image, tree) = image(true);
    let pages = table(&image);
    assert!(pages.iter().any(|(_, level)| *level > 0));
    for (page, level) in pages {
        let mut bytes = image.clone();
        let copy = other_copy(&image, page);
        for at in [page, copy] {
            bytes[at * PAGE..(at + 1) * PAGE].fill(0xee);
        }
        let dev = Arc::new(MemDevice::from_vec(bytes));
        let (report, found) = check(dev.clone(), CheckMode::Mend);
        assert_eq!(report.left(), 0, "page {page}: {found:?}");
        let (again, found) = check(dev.clone(), CheckMode::Mend);
        assert_eq!(
            (again.found, again.written),
            (0, 0),
            "page {page}: {found:?}"
        );
        let fs = attach(dev, "");
        let now = as_root(|cx| Tree::read(&fs, cx)).unwrap();
        if level > 0 {
            now.assert_same(&tree);
        } else {
            let lost = names(&tree).filter(|n| !has_content(&fs, &now, *n)).count();
            assert_eq!(lost, 0, "page {page}: {now:?}");
        }
    }
}

/// Returns the numbers of the files that have content.
fn names(tree: &Tree) -> impl Iterator<Item = u64> {
    let files = tree.0.iter().filter(|(_, leaf)| leaf.size > 0);
    let number = |path: &Vec<u8>| {
        std::str::from_utf8(path)
            .ok()?
            .rsplit(' ')
            .next()?
            .parse()
            .ok()
    };
    files.filter_map(move |(path, _)| number(path))
}

/// Returns whether a file begins with what was written to that of a number.
fn has_content(fs: &Fs, tree: &Tree, number: u64) -> bool {
    let whole = pattern(number, 300 * (number as usize % 7));
    let files = tree
        .0
        .iter()
        .filter(|(_, l)| l.size as usize >= whole.len());
    let mut contents = files.filter_map(|(path, leaf)| {
        as_root(|cx| {
            let mut at = fs.root();
            for part in path.split(|b| *b == b'/') {
                at = fs.lookup(cx, at, Name::new(part)?)?.node;
            }
            let open = fs.open(cx, at, volary_core::Mode::Read)?;
            let mut content = vec![0; leaf.size as usize];
            let read = fs.read(cx, open, 0, &mut content);
            fs.close(cx, open)?;
            read.map(|_| content)
        })
        .ok()
    });
    contents.any(|c| c.starts_with(&whole))
}

/// Returns the page that has the second copy.
fn other_copy(image: &[u8], page: usize) -> usize {
    let own = &image[page * PAGE..(page + 1) * PAGE];
    let same = |at: &usize| *at != page && &image[at * PAGE..(at + 1) * PAGE] == own;
    (0..image.len() / PAGE).find(same).unwrap()
}

/// A logged map is there twice: what is lost of it is written anew, also by `fsck -p`.
#[test]
fn pages_of_the_map_are_made_good() {
    let (image, tree) = image(true);
    let is_map = |p: &[u8]| p[..5] == [0x43, 0x64, 0x46, 0x73, 5];
    let maps: Vec<usize> = (0..image.len() / PAGE)
        .filter(|i| is_map(&image[i * PAGE..(i + 1) * PAGE]))
        .collect();
    let [first, second] = maps[..] else {
        panic!("{maps:?}: the map is there twice")
    };
    assert!(second > first + 1, "they are adjacent");
    for lost in [vec![first], vec![second], vec![first, second]] {
        let mut bytes = image.clone();
        for page in &lost {
            bytes[page * PAGE..(page + 1) * PAGE].fill(0xee);
        }
        let dev = Arc::new(MemDevice::from_vec(bytes));
        must_hold(dev.clone(), &tree, "without the map");
        let (report, found) = check(dev.clone(), CheckMode::Preen);
        assert!(found[0].starts_with("map-copy"), "{found:?}");
        assert_eq!((report.found, report.left()), (1, 0), "{found:?}");
        mends(dev, "the map");
    }
}

#[test]
fn a_dump_of_the_log_says_what_each_record_took_and_freed() {
    let (image, _) = image(false);
    let dev = MemDevice::from_vec(image);
    let mut out = String::new();
    CEDAR
        .dump(Arc::new(dev), &["log".into()], &mut out)
        .unwrap();
    assert!(out.contains("    takes "), "{out}");
}

/// Numbers that only somebody who wants harm writes: of the last epoch nothing can be changed, and an
/// anchor whose numbers cannot be counted on from is none.
#[test]
fn numbers_without_a_next_are_refused() {
    let (image, tree) = image(true);
    let layout = Layout::read(&MemDevice::from_vec(image.clone())).unwrap();
    let with = |at: usize, bytes: &[u8]| {
        let mut image = image.clone();
        for anchor in layout.anchors() {
            let page = &mut image[layout.offset(anchor) as usize..][..PAGE];
            page[at..at + bytes.len()].copy_from_slice(bytes);
            seal(page);
        }
        Arc::new(MemDevice::from_vec(image))
    };
    let last = with(20, &u32::MAX.to_le_bytes());
    let fs = attach(last.clone(), SHAPE.attach);
    assert!(as_root(|cx| Tree::read(&fs, cx)).unwrap() == tree);
    let set = SetAttr::default();
    let made = as_root(|cx| fs.mkdir(cx, fs.root(), name("new"), &set).map(|_| ()));
    let refused = made.unwrap_err().to_string();
    let end = "is epoch 4294967295, expected an epoch that another follows";
    assert!(
        refused.starts_with("damaged: anchor at byte ") && refused.ends_with(end),
        "{refused}"
    );
    // The number of the next record, the stamp, and that of the newest durable one.
    for at in [24, 40, 56] {
        let dev = with(at, &u64::MAX.to_le_bytes());
        let fs = attach(dev, SHAPE.attach);
        assert!(as_root(|cx| Tree::read(&fs, cx)).unwrap() == tree, "{at}");
        as_root(|cx| fs.mkdir(cx, fs.root(), name("new"), &set)).unwrap();
        as_root(|cx| fs.detach(cx)).unwrap();
    }
}

/// Damages the leaders of so many files; their paths.
fn bad_leaders(image: &mut [u8], count: usize) {
    let own = |p: &[u8]| p[..5] == [0x43, 0x64, 0x46, 0x73, 4];
    let layout = Layout::read(&MemDevice::from_vec(image.to_vec())).unwrap();
    let pages = image.chunks_mut(PAGE).enumerate();
    let leaders = pages.filter(|(at, page)| layout.is_data(*at as u32) && own(page));
    let spoiled = leaders.take(count).map(|(_, page)| page[100] ^= 1).count();
    assert_eq!(spoiled, count);
}

#[test]
fn all_leaders_that_are_bad_are_reported() {
    let (mut image, _) = image(true);
    bad_leaders(&mut image, 5);
    let dev = Arc::new(MemDevice::from_vec(image));
    for _ in 0..2 {
        let (report, found) = check(dev.clone(), CheckMode::Look);
        let leaders = found.iter().filter(|f| f.starts_with("leader")).count();
        assert_eq!((report.found, leaders), (5, 5), "{found:?}");
    }
    let (report, found) = check(dev.clone(), CheckMode::Mend);
    assert_eq!((report.mended, report.left()), (5, 0), "{found:?}");
}

/// The paper's check by leaders is for the user: it is told, and the data is given.
#[test]
fn a_leader_that_does_not_agree_is_told_when_its_file_is_read() {
    let (mut image, tree) = image(true);
    bad_leaders(&mut image, 5);
    for read_only in [true, false] {
        let dev = Arc::new(MemDevice::from_vec(image.clone()));
        let fs = match read_only {
            true => attach_read_only(dev.clone(), "").unwrap(),
            false => attach(dev.clone(), ""),
        };
        assert!(fs.findings().is_empty());
        as_root(|cx| {
            if !read_only {
                fs.mkdir(cx, fs.root(), name("new"), &SetAttr::default())
                    .unwrap();
                fs.rmdir(cx, fs.root(), name("new")).unwrap();
            }
            // Twice: each is told once.
            for _ in 0..2 {
                Tree::read(&fs, cx).unwrap().assert_same(&tree);
            }
        });
        let found = fs.findings();
        assert_eq!(found.len(), 5, "{found:?}");
        let mends = |f: &volary_core::Finding| f.repair == "it is written anew";
        assert!(found.iter().all(|f| f.code == "leader" && f.path.is_some()));
        assert!(found.iter().all(|f| mends(f) != read_only), "{found:?}");
        assert!(fs.findings().is_empty());
        as_root(|cx| fs.detach(cx)).unwrap();
        let (report, found) = check(dev, CheckMode::Look);
        assert_eq!(report.found, if read_only { 5 } else { 0 }, "{found:?}");
    }
}

#[test]
fn a_leader_is_looked_at_whatever_was_read_first() {
    let (mut image, _) = image(true);
    bad_leaders(&mut image, 21);
    let dev = Arc::new(MemDevice::from_vec(image));
    let fs = attach_read_only(dev, "").unwrap();
    as_root(|cx| {
        let node = fs.lookup(cx, fs.root(), name("file 4")).unwrap().node;
        let open = fs.open(cx, node, volary_core::Mode::Read).unwrap();
        let mut buf = [0; 100];
        fs.read(cx, open, 700, &mut buf).unwrap();
        assert!(fs.findings().is_empty());
        fs.read(cx, open, 0, &mut buf).unwrap();
        let found = fs.findings();
        assert_eq!(found[0].path.as_deref(), Some(&b"/file 4"[..]));
    });
}
