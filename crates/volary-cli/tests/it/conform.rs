//! `volary conform`: the suite on volumes, and on directories of somebody else's file system.

use crate::sandbox::Sandbox;
use crate::serving::Serving;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a directory holds: of each path its kind, bytes and times.
fn look(dir: &Path) -> BTreeMap<Vec<u8>, (u32, i64, i64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let stat = fs::symlink_metadata(&path).unwrap();
            let content = match () {
                () if stat.is_file() => fs::read(&path).unwrap(),
                () if stat.is_symlink() => fs::read_link(&path)
                    .unwrap()
                    .as_os_str()
                    .as_bytes()
                    .to_vec(),
                () => Vec::new(),
            };
            if stat.is_dir() {
                todo.push(path.clone());
            }
            let seen = (stat.mode(), stat.mtime_nsec(), stat.ctime_nsec(), content);
            all.insert(path.as_os_str().as_bytes().to_vec(), seen);
        }
    }
    all
}

fn passed(report: &str) -> usize {
    let report: Value = serde_json::from_str(report).unwrap_or_else(|e| panic!("{report}: {e}"));
    assert_eq!(
        report["failed"].as_array().map(Vec::len),
        Some(0),
        "{report}"
    );
    report["passed"].as_array().map_or(0, Vec::len)
}

#[test]
fn what_a_volume_holds_is_read_alike_in_every_way() {
    let sandbox = Sandbox::new();
    for line in [
        "conform --json disk.img",
        "conform --json unix.img",
        "conform --json --layer count --layer readonly unix.img",
        "conform --json tree",
        "conform --json host:tree",
    ] {
        let before = sandbox.read("disk.img");
        let run = sandbox.run(line);
        assert_eq!(run.code, 0, "{line}: {}{}", run.out, run.err);
        assert!(passed(&run.out) > 30, "{line}: {}", run.out);
        assert!(sandbox.read("disk.img") == before, "{line} wrote");
    }
}

#[test]
fn a_volume_is_held_against_the_directory_that_it_was_filled_from() {
    let sandbox = Sandbox::new();
    sandbox
        .run("mkfs -q -t ffs2 --size 32M --seed 1 ffs.img")
        .ok();
    sandbox.run("cp -a tree/a.txt tree/sub ffs.img:/").ok();
    let against = "conform --json --against tree ffs.img";
    assert!(passed(&sandbox.run(against).ok()) > 30);
    // One byte that is another one.
    sandbox.write("b", b"A");
    sandbox.write("tree/a.txt", b"Alpha\n");
    let run = sandbox.run("conform --against tree ffs.img");
    assert_eq!(run.code, 1, "{}{}", run.out, run.err);
    assert!(run.out.contains("a.txt"), "{}", run.out);
    assert!(run.out.contains("the contract:"), "{}", run.out);
}

#[test]
fn writing_touches_nothing_beside_its_own_directory() {
    let sandbox = Sandbox::new();
    for (kind, size) in [("fat32", "64M"), ("ffs2", "32M"), ("v7", "32M")] {
        sandbox
            .run(&format!("mkfs -q -t {kind} --size {size} --seed 1 v.img"))
            .ok();
        sandbox.run("cp -r tree v.img:/").ok();
        let before = sandbox.run("ls -lR v.img:/").ok();
        let run = sandbox.run("conform --json --write v.img");
        assert_eq!(run.code, 0, "{kind}: {}{}", run.out, run.err);
        assert!(passed(&run.out) > 100, "{kind}: {}", run.out);
        assert_eq!(sandbox.run("ls -lR v.img:/").ok(), before, "{kind}");
        sandbox.run("fsck -n v.img").ok();
        fs::remove_file(sandbox.path("v.img")).unwrap();
    }
}

#[test]
fn writing_on_the_host_touches_nothing_beside_its_own_directory() {
    let sandbox = Sandbox::with_tree();
    fs::hard_link(
        sandbox.path("src/docs/words"),
        sandbox.path("src/docs/more"),
    )
    .unwrap();
    let before = look(&sandbox.path("src"));
    let run = sandbox.run("conform --json --write src");
    assert!([0, 1].contains(&run.code), "{}{}", run.out, run.err);
    assert_eq!(run.err, "");
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert!(report["passed"].as_array().unwrap().len() > 100, "{report}");
    assert_eq!(look(&sandbox.path("src")), before);
}

/// Both have clocks of their own, which no call can set.
#[test]
fn a_directory_as_a_volume_and_an_export_keep_their_word() {
    let sandbox = Sandbox::new();
    let mut lines = vec![
        "conform --json --write host:tree".to_owned(),
        "conform --json --write -o suid host:tree".to_owned(),
    ];
    sandbox
        .run("mkfs -q -t ffs2 --size 32M --seed 1 ffs.img")
        .ok();
    let serving = Serving::start(&sandbox, "--squash none ffs.img");
    let url = format!("nfs://127.0.0.1:{}/ffs", serving.port());
    lines.push(format!("conform --json --write {url}"));
    for line in lines {
        let run = sandbox.run(&line);
        assert_eq!(run.code, 0, "{line}: {}{}", run.out, run.err);
        assert!(passed(&run.out) > 100, "{line}: {}", run.out);
    }
    serving.stop("-TERM");
    sandbox.run("fsck -n ffs.img").ok();
}

#[test]
fn what_makes_no_sense_is_refused_in_a_line() {
    let sandbox = Sandbox::new();
    for (line, code, words) in [
        ("conform --layer count tree", 2, "host:DIR takes layers"),
        ("conform --write -o ro tree", 2, "host:DIR takes layers"),
        ("conform --layer nothing disk.img", 2, "--layer nothing"),
        ("conform --write -o ro disk.img", 3, ""),
        ("conform nothing.img", 3, "nothing.img"),
        ("conform blank.img", 3, "blank.img"),
        ("conform --against nothing disk.img", 1, "nothing"),
        ("conform --case nothing disk.img", 2, "nothing"),
    ] {
        let said = sandbox.run(line).fails(code);
        assert!(said.contains(words), "{line}: {said}");
    }
}
