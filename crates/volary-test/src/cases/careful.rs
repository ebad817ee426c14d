//! Behavior that is easily forgotten: each was once broken deliberately, and no other case noticed.

use crate::suite::{Case, case_list};
use volary_core::{FileKind, Kind, NodeId};

case_list! {
    about Link | MkDir | Lookup | Write | SetXattr | GetXattr | GetAttr;
    a_link_sets_the_time_of_change_of_its_node with WRITE | HARD_LINKS;
    directories_count_the_directories_in_them with WRITE;
    a_name_that_was_missed_is_found_once_it_is_made with WRITE;
    a_name_that_was_removed_is_not_found with WRITE;
    an_open_for_reading_takes_no_writes with WRITE;
    a_long_extended_attribute_is_kept_or_refused_whole with WRITE | XATTRS;
}

fn a_link_sets_the_time_of_change_of_its_node(c: &Case) {
    if !c.takes_our_time() {
        return c.skip("the volume's times come from a clock of its own");
    }
    let node = c.touch(c.root(), "f");
    let before = c.attr(node);
    c.pass(1000);
    c.link(node, c.root(), "g").expect("link");
    let after = c.attr(node);
    assert!(after.ctime > before.ctime, "ctime stays {:?}", before.ctime);
    assert_eq!(after.mtime, before.mtime, "mtime of a node with a new name");
}

fn directories_count_the_directories_in_them(c: &Case) {
    let (dir, empty) = (c.dir(c.root(), "d"), c.dir(c.root(), "e"));
    let links = |node: NodeId| c.attr(node).nlink;
    let first = links(empty);
    // A driver whose directories count only their names reports 1.
    assert!(
        [1, 2].contains(&first),
        "an empty directory has {first} links"
    );
    for made in 1..=3 {
        c.dir(dir, format!("sub{made}"));
        c.touch(dir, format!("file{made}"));
        let want = if first == 1 { 1 } else { 2 + made };
        assert_eq!(
            links(dir),
            want,
            "links of a directory with {made} directories"
        );
    }
    c.rmdir(dir, "sub1").expect("rmdir");
    c.rename(dir, "sub2", empty, "sub2").expect("rename");
    let want = if first == 1 { [1, 1] } else { [3, 3] };
    assert_eq!(
        [links(dir), links(empty)],
        want,
        "links after a removal and a move"
    );
}

fn a_name_that_was_missed_is_found_once_it_is_made(c: &Case) {
    let dir = c.dir(c.root(), "d");
    for name in ["file", "dir", "moved"] {
        assert_eq!(
            c.lookup(dir, name).map(|e| e.node).unwrap_err(),
            Kind::NotFound
        );
    }
    let file = c.touch(dir, "file");
    assert_eq!(c.find(dir, "file"), file);
    let made = c.dir(dir, "dir");
    assert_eq!(c.find(dir, "dir"), made);
    c.rename(dir, "file", dir, "moved").expect("rename");
    assert_eq!(c.find(dir, "moved"), file);
    assert_eq!(c.attr(made).kind, FileKind::Dir);
}

fn a_name_that_was_removed_is_not_found(c: &Case) {
    let gone = |name: &str| c.lookup(c.root(), name).map(|e| e.node).unwrap_err();
    for name in ["File", "Moved", "Dir"] {
        c.touch(c.root(), name);
        c.find(c.root(), name);
    }
    c.unlink(c.root(), "File").expect("unlink");
    assert_eq!(gone("File"), Kind::NotFound);
    c.rename(c.root(), "Moved", c.root(), "Other")
        .expect("rename");
    assert_eq!(gone("Moved"), Kind::NotFound);
    c.unlink(c.root(), "Dir").expect("unlink");
    c.dir(c.root(), "Dir");
    c.rmdir(c.root(), "Dir").expect("rmdir");
    assert_eq!(gone("Dir"), Kind::NotFound);
}

fn an_open_for_reading_takes_no_writes(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    let open = c.open_to_read(node);
    assert!(c.write(open, 0, b"x").is_err(), "it was written");
    assert!(c.append(open, b"x").is_err(), "it was appended to");
    c.close(open);
    assert_eq!(c.content(node), b"content");
}

fn a_long_extended_attribute_is_kept_or_refused_whole(c: &Case) {
    let node = c.touch(c.root(), "f");
    let (fs, name) = (c.fs(), b"user.long".as_slice());
    for len in [0, 1, 30, 255, 256, 1000, 4000] {
        let value = crate::rng::pattern(len as u64, len);
        match fs.setxattr(&c.cx(), node, name, &value) {
            Ok(()) => {
                let got = fs.getxattr(&c.cx(), node, name).expect("getxattr");
                assert!(got == value, "{} bytes of {len} came back", got.len());
            }
            Err(e) => assert!(
                [Kind::TooBig, Kind::NoSpace].contains(&e.kind()),
                "{len}: {e:?}"
            ),
        }
    }
}
