use super::*;
use crate::tree::Tree;
use volary_core::{FileKind, Time};

#[test]
fn a_missing_program_is_named_with_its_package() {
    let tool = Tool {
        program: "no-such-program",
        package: "no-such-package",
    };
    assert_eq!(tool.find(), None);
    assert!(missing(tool).contains("apt-get install no-such-package"));
}

#[test]
fn fsck_fat_is_clean_only_if_it_says_nothing() {
    let clean = "fsck.fat 4.2 (2021-01-31)\na.img: 4 files, 12/8143 clusters\n";
    assert!(dosfstools::is_clean(clean));
    let dirty = format!("{clean}0x41: Dirty bit is set.\n");
    assert!(!dosfstools::is_clean(&dirty));
}

#[test]
fn the_lines_of_fls_are_read() {
    let printed = "\
0|/LABEL       (Volume Label Entry)|3|r/rrwxrwxrwx|0|0|0|1795219200|1795298954|0|1795298954
0|/a|b grün.txt|6|r/rrwxrwxrwx|0|0|3|1577923200|1577934246|0|1577934246
0|/sub|7|d/drwxrwxrwx|0|0|1024|1795219200|1795298986|0|1795298986
0|/$MBR|261091|v/v---------|0|0|512|0|0|0|0
";
    let rows = sleuthkit::parse(printed);
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (rows[0].path.as_str(), rows[0].inode.as_str()),
        ("a|b grün.txt", "6")
    );
    assert_eq!(rows[0].leaf.size, 3);
    assert_eq!(rows[0].leaf.mtime, Some(Time::from_secs(1_577_934_246)));
    assert_eq!(rows[1].leaf.kind, FileKind::Dir);
    assert_eq!(rows[1].leaf.owner, Some((0o777, 0, 0)));
    let line = "0|/x|4-128|r/rrwSr-s--T|7|8|0|1|2|3|4";
    let rows = sleuthkit::parse(line);
    assert_eq!(rows[0].leaf.owner, Some((0o7650, 7, 8)));
}

#[test]
fn the_lines_of_mattrib_are_read() {
    let printed = "  A  R       ::/A long name.txt\n             ::/sub\n   SH        ::/sub/x\n";
    let all = mtools::parse_attributes(printed);
    assert_eq!(all["A long name.txt"], "AR");
    assert_eq!(all["sub"], "");
    assert_eq!(all["sub/x"], "SH");
}

#[test]
fn the_lines_of_readers_in_python_are_read() {
    let hash = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let file = format!("N f 4755 7 8 2 1 1577934246000000009 {hash} 787c79");
    let trees = listed::trees(&format!(
        "I 0\n{file}\nN d 700 0 0 2 0 -1 - 64\nI 1048576\n"
    ));
    let trees = trees.expect("trees");
    assert_eq!(trees.len(), 2);
    assert_eq!((trees[0].0.len(), trees[1].0.len()), (2, 0));
    let leaf = &trees[0].0[&b"x|y"[..]];
    assert_eq!((leaf.kind, leaf.size), (FileKind::File, 1));
    assert_eq!((leaf.owner, leaf.links), (Some((0o4755, 7, 8)), Some(2)));
    assert_eq!(leaf.mtime, Some(Time::new(1_577_934_246, 9)));
    assert_eq!(leaf.hash.expect("a hash")[0], 0x2d);
    let leaf = &trees[0].0[&b"d"[..]];
    assert_eq!((leaf.kind, leaf.hash), (FileKind::Dir, None));
    assert_eq!(leaf.mtime, Some(Time::new(-1, 999_999_999)));
    let twice = listed::trees(&format!("I 0\n{file}\n{file}\n"));
    assert!(twice.expect_err("a name twice").contains("twice"));
    assert!(listed::trees("ufs: cannot mount\n").is_err());
}

/// Returns an image with some files, made by mkfs.fat and mcopy.
fn image() -> (tempfile::TempDir, PathBuf, Tree) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let image = dir.path().join("fat.img");
    let file = std::fs::File::create(&image).expect("an image");
    file.set_len(8 << 20).expect("its length");
    dosfstools::make(&image, &["-F", "16", "-s", "2", "-a", "-n", "LABEL"]).expect("mkfs.fat");
    let from = dir.path().join("from");
    let at = Time::from_secs(1_577_934_246);
    for (path, content) in [
        ("A long name grün.txt", "hi"),
        ("sub/日本語.txt", "x"),
        ("E", ""),
    ] {
        host::write(&from.join(path), content.as_bytes(), at).expect("a file");
    }
    mtools::copy_in(&image, &from).expect("mcopy");
    let tree = host::tree(&from).expect("the tree");
    (dir, image, tree)
}

/// Without owners, and without the times of directories, which copying moves.
fn files_only_times(tree: Tree) -> Tree {
    tree.map(|leaf| {
        leaf.owner = None;
        if leaf.kind == FileKind::Dir {
            leaf.mtime = None;
        }
    })
}

#[test]
fn mtools_sleuthkit_and_fsck_fat_agree_on_an_image() {
    if !have(&[
        dosfstools::MKFS,
        dosfstools::FSCK,
        mtools::MCOPY,
        sleuthkit::FLS,
    ]) {
        return;
    }
    let (_dir, image, want) = image();
    let want = files_only_times(want);
    dosfstools::check(&image).expect("clean");
    let seen = mtools::tree(&image).expect("mcopy");
    want.assert_same(&files_only_times(seen));
    let seen = sleuthkit::tree(&image).expect("fls");
    want.assert_same(&files_only_times(seen));
    let attributes = mtools::attributes(&image).expect("mattrib");
    assert_eq!(attributes["E"], "A");
}

#[test]
fn fsck_fat_finds_what_is_broken() {
    if !have(&[dosfstools::MKFS, dosfstools::FSCK, mtools::MCOPY]) {
        return;
    }
    let (_dir, image, _) = image();
    let mut bytes = std::fs::read(&image).expect("the image");
    // The first file's cluster in the first FAT alone.
    bytes[512 + 4..512 + 8].fill(0);
    std::fs::write(&image, bytes).expect("the image");
    dosfstools::check(&image).expect_err("a broken chain");
}

/// Returns a vmrun that dies so often before its script begins.
fn dying(times: u32) -> (tempfile::TempDir, Command) {
    let dir = tempfile::tempdir().expect("a directory");
    let text = format!(
        "cd '{}'; echo x >> tries\n[ $(wc -l < tries) -gt {times} ] || exit 125\n{}",
        dir.path().display(),
        vm::that_says_so("echo done; exit $RC")
    );
    let mut command = Command::new("sh");
    command.arg("-c").arg(text).env("RC", "0");
    (dir, command)
}

#[test]
fn a_guest_that_dies_as_it_boots_is_booted_again() {
    for times in [0, 1, 2] {
        let (_dir, mut command) = dying(times);
        assert_eq!(vm::boot(&mut command).as_deref(), Ok("done\n"), "{times}");
    }
    let (_dir, mut command) = dying(3);
    assert!(vm::boot(&mut command).is_err(), "three times at most");
    // Once the script has begun, nothing is done twice.
    let (dir, mut command) = dying(0);
    assert!(vm::boot(command.env("RC", "125")).is_err());
    let tries = std::fs::read_to_string(dir.path().join("tries"));
    assert_eq!(tries.expect("tries"), "x\n");
}
