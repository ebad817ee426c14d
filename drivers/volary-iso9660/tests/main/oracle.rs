//! What others read on the same images.

use crate::images::{Images, XORRISO};
use crate::{attach, attach_as, hand};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use volary_core::{Attr, Cookie, DirBuf, FileKind, Fs, Mode, Name};
use volary_testkit::oracle::{GENISOIMAGE, have, sleuthkit, vm};
use volary_testkit::volumes::as_root;

/// What is compared of a node: kind, mode, owner, links of a file, size of a file,
/// time, hash of content or target.
type Row = (FileKind, u32, u32, u32, u32, u64, i64, String);

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|b| format!("{b:02x}")).collect()
}

pub(crate) fn content(fs: &Fs, attr: &Attr) -> Vec<u8> {
    as_root(|cx| {
        let open = fs.open(cx, attr.node, Mode::Read).expect("open");
        let mut bytes = vec![0; attr.size as usize];
        assert_eq!(fs.read(cx, open, 0, &mut bytes).expect("read"), bytes.len());
        fs.close(cx, open).expect("close");
        bytes
    })
}

fn ours(fs: &Fs) -> BTreeMap<String, Row> {
    as_root(|cx| {
        let mut rows = BTreeMap::new();
        let mut dirs = vec![(String::new(), fs.root())];
        while let Some((path, dir)) = dirs.pop() {
            let open = fs.open(cx, dir, Mode::Read).expect("open");
            let mut at = Cookie::START;
            loop {
                // Few at a time, so that places are tried.
                let mut out = DirBuf::new(7, 1 << 16, true);
                let end = fs.readdir(cx, open, at, &mut out).expect("readdir");
                for entry in out.iter() {
                    let name = Name::new(entry.name).expect("a name");
                    let found = fs.lookup(cx, dir, name).expect("lookup");
                    assert_eq!(found.node, entry.node);
                    let attr = fs.getattr(cx, entry.node).expect("getattr");
                    assert_eq!(found.attr, attr);
                    assert_eq!(entry.attr.unwrap_or(attr), attr);
                    let path = format!("{path}/{}", String::from_utf8_lossy(entry.name));
                    if attr.kind == FileKind::Dir {
                        assert_eq!(fs.parent(cx, attr.node).expect("parent").node, dir);
                        dirs.push((path.clone(), attr.node));
                    }
                    rows.insert(path, row(fs, &attr));
                }
                at = out.last_cookie().unwrap_or(at);
                if end {
                    break;
                }
            }
            fs.close(cx, open).expect("close");
        }
        rows
    })
}

fn row(fs: &Fs, attr: &Attr) -> Row {
    let hash = match attr.kind {
        FileKind::File => hex(&content(fs, attr)),
        FileKind::Symlink => hex(&as_root(|cx| fs.readlink(cx, attr.node)).expect("readlink")),
        _ => String::new(),
    };
    let is_file = attr.kind == FileKind::File;
    (
        attr.kind,
        attr.mode,
        attr.uid,
        attr.gid,
        if is_file { attr.nlink } else { 0 },
        if is_file { attr.size } else { 0 },
        attr.mtime.secs,
        hash,
    )
}

/// Returns the tree that images are made of.
fn host(root: &Path) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            let meta = path.symlink_metadata().expect("lstat");
            let kind = FileKind::from_mode(meta.mode()).expect("a kind");
            let hash = match kind {
                FileKind::File => hex(&std::fs::read(&path).expect("content")),
                FileKind::Symlink => {
                    use std::os::unix::ffi::OsStrExt;
                    hex(path.read_link().expect("target").as_os_str().as_bytes())
                }
                _ => String::new(),
            };
            let is_file = kind == FileKind::File;
            let row = (
                kind,
                meta.mode() & 0o7777,
                meta.uid(),
                meta.gid(),
                if is_file { meta.nlink() as u32 } else { 0 },
                if is_file { meta.size() } else { 0 },
                meta.mtime(),
                hash,
            );
            let name = path.strip_prefix(root).expect("inside").display();
            rows.insert(format!("/{name}"), row);
            if kind == FileKind::Dir {
                dirs.push(path);
            }
        }
    }
    rows
}

fn assert_same(ours: &BTreeMap<String, Row>, theirs: &BTreeMap<String, Row>, about: &str) {
    for (path, row) in theirs {
        assert_eq!(ours.get(path), Some(row), "{about}: {path}");
    }
    let more: Vec<_> = ours.keys().filter(|p| !theirs.contains_key(*p)).collect();
    assert!(more.is_empty(), "{about}: {more:?}");
}

#[test]
fn rock_ridge_keeps_the_whole_tree() {
    if !have(&[XORRISO, GENISOIMAGE]) {
        return;
    }
    let images = Images::new();
    let source = host(&images.source());
    assert!(source.len() > 300);
    for image in [images.xorriso(), images.xorriso_new(), images.genisoimage()] {
        let bytes = std::fs::read(&image).expect("image");
        let fs = attach(&bytes);
        let mut found = ours(&fs);
        // Where genisoimage puts the directories that it moves.
        found.remove("/rr_moved");
        assert_same(&found, &source, &image.display().to_string());
    }
}

#[test]
fn names_of_one_file_are_one_node() {
    if !have(&[XORRISO, GENISOIMAGE]) {
        return;
    }
    let images = Images::new();
    for image in [images.xorriso_new(), images.genisoimage()] {
        let bytes = std::fs::read(&image).expect("image");
        let node = |path: &str| {
            let fs = attach(&bytes);
            as_root(|cx| {
                path.split('/').fold(fs.root(), |dir, name| {
                    let name = Name::new(name.as_bytes()).expect("a name");
                    fs.lookup(cx, dir, name).expect("lookup").node
                })
            })
        };
        let all = ["hard", "size2049", "dir/hard too"].map(node);
        assert_eq!(all, [all[0]; 3], "{}", image.display());
        assert_ne!(all[0], node("size2048"));
    }
}

#[test]
fn joliet_keeps_names_and_content() {
    if !have(&[XORRISO]) {
        return;
    }
    let images = Images::new();
    let bytes = std::fs::read(images.joliet()).expect("image");
    let found = ours(&attach(&bytes));
    for name in ["/grün", "/dir/Mixed Case Name.txt", "/many/file number 299"] {
        let path = images.source().join(&name[1..]);
        let row = found.get(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(row.7, hex(&std::fs::read(path).expect("content")), "{name}");
    }
    let both = std::fs::read(images.xorriso()).expect("image");
    let joliet = ours(&attach_as(&both, "names=joliet").expect("Joliet"));
    assert!(joliet.contains_key("/grün") && !joliet.contains_key("/fifo"));
    let plain = ours(&attach_as(&both, "names=plain").expect("plain"));
    assert!(plain.contains_key("/size2048"), "{:?}", plain.keys());
    let iso = ours(&attach_as(&both, "names=iso").expect("as stored"));
    assert!(iso.contains_key("/SIZE2048.;1") || iso.contains_key("/SIZE2048;1"));
}

#[test]
fn the_sleuth_kit_reads_the_same() {
    if !have(&[XORRISO, GENISOIMAGE, sleuthkit::FLS]) {
        return;
    }
    let images = Images::new();
    // It prefers Joliet, and knows nothing of Rock Ridge's names.
    for (image, names) in [
        (images.plain(), "names=iso"),
        (images.xorriso(), "names=joliet"),
    ] {
        let bytes = std::fs::read(&image).expect("image");
        let fs = attach_as(&bytes, names).expect("attach");
        let found = ours(&fs);
        let ours: BTreeSet<&str> = found.keys().map(|path| stem(path)).collect();
        let output = sleuthkit::FLS
            .command()
            .args(["-r", "-p", "-u"])
            .arg(&image)
            .output()
            .expect("fls");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let theirs = text.lines().filter_map(|line| line.split_once(":\t"));
        let theirs: Vec<String> = theirs.map(|(_, path)| format!("/{path}")).collect();
        let theirs: BTreeSet<&str> = theirs
            .iter()
            .filter(|path| !path.contains("$OrphanFiles"))
            .map(|path| stem(path))
            .collect();
        assert!(theirs.len() >= 3, "{text}");
        let differ: Vec<_> = ours.symmetric_difference(&theirs).collect();
        assert!(differ.is_empty(), "{}: {differ:?}", image.display());
    }
}

/// Returns a plain name without its version and the dot before it.
fn stem(name: &str) -> &str {
    let name = name.strip_suffix(";1").unwrap_or(name);
    name.strip_suffix('.').unwrap_or(name)
}

const LIST: &str = r#"
for d in vda vdb vdc vdd; do
[ -b /dev/$d ] || continue
mount -t iso9660 -o ro,iocharset=utf8 /dev/$d /mnt || exit 1
echo "D $d"
cd /mnt
find . -mindepth 1 -exec stat -c 'S %f|%u|%g|%h|%s|%Y|%n' {} +
find . -type f -exec sha256sum {} + | sed 's/^/H /'
find . -type l | while read l; do printf 'H %s  %s\n' "$(readlink -n "$l" | sha256sum | cut -c1-64)" "$l"; done
cd /
umount /mnt
done
"#;

#[test]
fn linux_reads_the_same() {
    if !have(&[XORRISO, GENISOIMAGE]) {
        return;
    }
    let Some(vmrun) = vm::find() else { return };
    let images = Images::new();
    let sections = images.source().with_file_name("sections.iso");
    std::fs::write(&sections, hand::in_sections()).expect("an image");
    let all = [
        images.xorriso(),
        images.genisoimage(),
        images.joliet(),
        sections,
    ];
    let disks: Vec<_> = all
        .iter()
        .map(|i| (i.as_path(), vm::Disk::ReadOnly))
        .collect();
    let printed = vm::script(&vmrun, &disks, None, LIST).expect("Linux");
    let trees = parse(&printed);
    assert_eq!(trees.len(), all.len(), "{printed}");
    for (image, theirs) in all.iter().zip(trees) {
        let bytes = std::fs::read(image).expect("image");
        assert_same(
            &ours(&attach(&bytes)),
            &theirs,
            &image.display().to_string(),
        );
    }
}

fn parse(printed: &str) -> Vec<BTreeMap<String, Row>> {
    let mut trees: Vec<BTreeMap<String, Row>> = Vec::new();
    for line in printed.lines() {
        let Some((word, rest)) = line.split_once(' ') else {
            continue;
        };
        match (word, trees.last_mut()) {
            ("D", _) => trees.push(BTreeMap::new()),
            ("S", Some(tree)) => {
                let fields: Vec<&str> = rest.splitn(7, '|').collect();
                let [mode, uid, gid, links, size, mtime, path] = fields[..] else {
                    continue;
                };
                let mode = u32::from_str_radix(mode, 16).expect("a mode");
                let kind = FileKind::from_mode(mode).expect("a kind");
                let is_file = kind == FileKind::File;
                let of_file = |text: &str| if is_file { text.parse().unwrap() } else { 0 };
                let row = (
                    kind,
                    mode & 0o7777,
                    uid.parse().unwrap(),
                    gid.parse().unwrap(),
                    of_file(links) as u32,
                    of_file(size),
                    mtime.parse().unwrap(),
                    String::new(),
                );
                tree.insert(path.trim_start_matches('.').to_owned(), row);
            }
            ("H", Some(tree)) => {
                let (hash, path) = rest.split_once("  .").expect("a hash");
                if let Some(row) = tree.get_mut(path) {
                    row.7 = hash.into();
                }
            }
            _ => {}
        }
    }
    trees
}
