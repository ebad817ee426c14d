//! Files that are worth writing on one side and reading on the other.

use std::path::Path;
use volary_core::{Create, Ctx, FileKind, Fs, Kind, Name, NodeId, SetAttr, SetTime, Time};
use volary_testkit::oracle::host;
use volary_testkit::rng::pattern;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::NOW;

/// A file, by its path from the root.
pub(crate) struct Sample {
    pub(crate) path: String,
    pub(crate) content: Vec<u8>,
    pub(crate) mtime: Time,
}

/// Names that test the forms in which VFAT keeps them: 8.3 in either case of
/// both parts, mixed, long, with characters that short names lack, of other
/// scripts, and of the greatest length.
const NAMES: &[&str] = &[
    "UPPER.TXT",
    "lower.txt",
    "lowbase.TXT",
    "UPBASE.txt",
    "Mixed.Txt",
    "noext",
    "a",
    ".hidden",
    "two.dots.txt",
    "with blanks in it.text",
    "plus+comma,semi;equal=[bracket].x",
    "exactly8.thr",
    "longer than 8.3.html",
    "thirteen-char",
    "exactly twenty-six chars!!",
    "grün und groß",
    "Ελληνικά.txt",
    "файл с пробелами",
    "日本語のファイル名.txt",
    "~tilde~1.txt",
    "%percent&ampersand'quote",
];

/// Returns all of them: the same each time.
pub(crate) fn samples() -> Vec<Sample> {
    let mut all: Vec<Sample> = Vec::new();
    let mut add = |path: String, len: usize| {
        let nth = all.len() as i64;
        all.push(Sample {
            content: pattern(nth as u64, len),
            mtime: Time::from_secs(NOW.secs - 100_000_000 + nth * 1_234_568),
            path,
        });
    };
    for (i, name) in NAMES.iter().enumerate() {
        add(name.to_string(), i * 100);
    }
    add(format!("{}.txt", "n".repeat(251)), 10);
    for len in [0, 1, 511, 512, 513, 1023, 1024, 4096, 4097, 65_537, 300_000] {
        add(format!("sizes/{len} bytes"), len);
    }
    for i in 0..120 {
        add(
            format!("many/file number {i:03} of a directory with many"),
            i,
        );
        add(format!("many/F{i}.DAT"), i);
    }
    let mut deep = String::from("deep");
    for depth in 0..20 {
        deep += &format!("/level {depth}");
        add(format!("{deep}/f"), depth);
    }
    all
}

/// Writes the samples into a directory of the host.
pub(crate) fn write_to_host(dir: &Path) {
    for s in samples() {
        host::write(&dir.join(&s.path), &s.content, s.mtime).expect("a file of the host");
    }
}

/// Writes the samples and more through the driver, in an order that leaves
/// files in pieces and names where others were deleted.
pub(crate) fn write_to(fs: &Fs, cx: &Ctx<'_>) {
    let samples = samples();
    // Two at a time, a piece of each in turn, so that they share the space.
    for two in samples.chunks(2) {
        let opens: Vec<_> = two.iter().map(|s| create(fs, cx, &s.path)).collect();
        let most = two.iter().map(|s| s.content.len()).max().unwrap_or(0);
        for at in (0..most).step_by(5000) {
            for (s, (_, open)) in two.iter().zip(&opens) {
                if let Some(rest) = s.content.get(at..).filter(|r| !r.is_empty()) {
                    let part = &rest[..rest.len().min(5000)];
                    fs.write(cx, *open, None, part).expect("write");
                }
            }
        }
        for (s, (node, open)) in two.iter().zip(opens) {
            fs.close(cx, open).expect("close");
            set_time(fs, cx, node, s.mtime);
        }
    }
    // Names between those of others are deleted, and their room used again.
    for i in (0..120).step_by(3) {
        let path = format!("many/file number {i:03} of a directory with many");
        let (dir, name) = place(fs, cx, &path);
        fs.unlink(cx, dir, name).expect("unlink");
    }
    for i in 0..30 {
        let (_, open) = create(fs, cx, &format!("many/new one {i}"));
        fs.write(cx, open, Some(0), &pattern(i, 3000))
            .expect("write");
        fs.close(cx, open).expect("close");
    }
}

fn set_time(fs: &Fs, cx: &Ctx<'_>, node: NodeId, mtime: Time) {
    let set = SetAttr {
        mtime: Some(SetTime::To(mtime)),
        ..SetAttr::default()
    };
    fs.setattr(cx, node, &set).expect("setattr");
}

/// Returns the directory of a path, made where it is missing, and the last name.
fn place<'a>(fs: &Fs, cx: &Ctx<'_>, path: &'a str) -> (NodeId, Name<'a>) {
    let (dirs, last) = path.rsplit_once('/').unwrap_or(("", path));
    let mut at = fs.root();
    for name in dirs.split('/').filter(|n| !n.is_empty()) {
        let name = Name::new(name.as_bytes()).expect("a name");
        at = match fs.lookup(cx, at, name) {
            Ok(entry) => entry.node,
            Err(e) => {
                assert_eq!(e, Kind::NotFound);
                fs.mkdir(cx, at, name, &SetAttr::default())
                    .expect("mkdir")
                    .node
            }
        };
    }
    (at, Name::new(last.as_bytes()).expect("a name"))
}

fn create(fs: &Fs, cx: &Ctx<'_>, path: &str) -> (NodeId, volary_core::OpenId) {
    let (dir, name) = place(fs, cx, path);
    let made = fs.create(cx, dir, name, Create::New, &SetAttr::default());
    let (entry, open) = made.unwrap_or_else(|e| panic!("create of '{path}': {e}"));
    (entry.node, open)
}

/// Returns what the driver reads, without what other readers cannot tell.
pub(crate) fn tree(fs: &Fs, cx: &Ctx<'_>) -> Tree {
    comparable(Tree::read(fs, cx).expect("the whole tree"))
}

/// Without owners and counts of links, and without the times of directories, which tools that
/// copy move.
pub(crate) fn comparable(tree: Tree) -> Tree {
    tree.map(|leaf| {
        leaf.owner = None;
        leaf.links = None;
        leaf.mtime = leaf.mtime.filter(|_| leaf.kind == FileKind::File);
        leaf.mtime = leaf.mtime.map(|t| t.round_down(2_000_000_000));
    })
}
