//! What `cp` and `mv` must not write over: their own sources, open images, and what they just made.

use crate::sandbox::{Sandbox, noise};
use std::fs;
use std::os::unix::fs::symlink;

/// Returns a directory with `big`, `D/f`, a symlink `L` to `D`, and the tree `P/a/b`.
fn files() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write("big", &noise(2_000_000));
    fs::create_dir(sandbox.path("D")).unwrap();
    sandbox.write("D/f", &noise(2_000_000));
    symlink("D", sandbox.path("L")).unwrap();
    fs::create_dir_all(sandbox.path("P/a/b")).unwrap();
    fs::create_dir(sandbox.path("P/none")).unwrap();
    sandbox.write("P/a/x", b"x\n");
    sandbox
}

#[test]
fn a_file_of_the_host_is_not_copied_over_itself_however_it_is_named() {
    let sandbox = files();
    for line in [
        "cp big host:.:/big",
        "cp host:.:/big big",
        "cp host:D:/f D/f",
        "cp host:D:/f host:.:/D/f",
        "cp host:L:/f D",
        "cp D/f host:.:/L/f",
        "cp -a host:D:/f host:L:/",
    ] {
        let said = sandbox.run(line).fails(1);
        assert!(
            said.contains("would be copied over itself"),
            "{line}: {said}"
        );
    }
    for line in [
        "mv big host:.:/big",
        "mv host:.:/big big",
        "mv host:L:/f D/",
        "mv host:P:/none P",
    ] {
        let said = sandbox.run(line).fails(1);
        assert!(said.contains("both are the same file"), "{line}: {said}");
    }
    assert!(sandbox.read("big") == noise(2_000_000));
    assert!(sandbox.read("D/f") == noise(2_000_000));
    assert!(sandbox.path("P/none").is_dir());
}

#[test]
fn a_directory_of_the_host_is_not_copied_into_itself_however_it_is_named() {
    let sandbox = files();
    for line in [
        "mv host:P:/a P/a/b",
        "mv P/a host:P:/a/b/new",
        "cp -r P host:P:/a",
        "cp -r host:P:/a host:.:/P/a/b",
        "cp -r host:P:/. P/a/new",
    ] {
        let said = sandbox.run(line).fails(2);
        assert!(said.contains("into itself"), "{line}: {said}");
    }
    let found = sandbox.shell("find P | sort").ok();
    assert_eq!(found, "P\nP/a\nP/a/b\nP/a/x\nP/none\n");
}

#[test]
fn an_open_image_is_neither_written_over_nor_copied_through_a_directory_of_the_host() {
    let sandbox = Sandbox::new();
    fs::hard_link(sandbox.path("disk.img"), sandbox.path("second.img")).unwrap();
    for name in ["disk.img", "second.img", "unix.img"] {
        sandbox.run(&format!("cp words disk.img:/{name}")).ok();
    }
    let before = sandbox.read("disk.img");
    let (mine, open) = (
        "is the volume that is copied from",
        "is the image of a volume that is open",
    );
    for (line, words) in [
        ("cp disk.img:/disk.img host:.:/", mine),
        ("cp disk.img:/disk.img host:.:/second.img", mine),
        ("mv disk.img:/disk.img host:.:/", open),
        // The second volume is open as well.
        ("mv disk.img:/unix.img unix.img:/link host:.:/", open),
    ] {
        let run = sandbox.run(line);
        assert_eq!(run.code, 1, "{line}: {}", run.err);
        assert!(run.err.contains(words), "{line}: {}", run.err);
    }
    assert_eq!(sandbox.run("cp -r disk.img:/. host:.:/out").code, 0);
    for line in ["cp -r disk.img:/. host:.:/", "cp -r disk.img:/. ."] {
        let run = sandbox.run(line);
        // The last of the images is not open, and gives way.
        assert_eq!(run.err.matches(mine).count(), 2, "{line}: {}", run.err);
    }
    assert_eq!(sandbox.read("unix.img"), b"words\n");
    let run = sandbox.run("mv host:.:/disk.img disk.img:/docs");
    assert!(
        run.err.contains("is the volume that is copied to"),
        "{}",
        run.err
    );
    assert!(run.err.contains("not moved"), "{}", run.err);
    assert_eq!(sandbox.read("disk.img").len(), before.len());
    sandbox.is_clean("disk.img");
}

#[test]
fn the_second_of_one_name_is_not_moved_over_the_first() {
    let sandbox = Sandbox::new();
    sandbox
        .run("mkdir disk.img:/p disk.img:/q disk.img:/r")
        .ok();
    for (dir, name, content) in [("p", "f", "1\n"), ("q", "f", "2\n"), ("r", "F", "3\n")] {
        sandbox.write("one", content.as_bytes());
        sandbox.run(&format!("cp one disk.img:/{dir}/{name}")).ok();
    }
    sandbox.write("f", b"4\n");
    let run = sandbox.run("mv disk.img:/p/f disk.img:/q/f disk.img:/r/F f disk.img:/docs");
    assert_eq!(run.code, 1, "{}", run.err);
    let told = "something of that name was moved there before";
    assert_eq!(run.err.matches(told).count(), 3, "{}", run.err);
    let left = sandbox.run("cat disk.img:/docs/f disk.img:/q/f disk.img:/r/F");
    assert_eq!(left.ok(), "1\n2\n3\n");
    assert_eq!(sandbox.read("f"), b"4\n");
    // First a copy, then a name.
    sandbox.run("rm disk.img:/docs/f").ok();
    let said = sandbox.run("mv f disk.img:/q/f disk.img:/docs").fails(1);
    assert!(said.contains(told), "{said}");
    let left = sandbox.run("cat disk.img:/docs/f disk.img:/q/f");
    assert_eq!(left.ok(), "4\n2\n");
    // A new case is none of that, nor is what was there before.
    sandbox.run("mv disk.img:/docs/f disk.img:/docs/F").ok();
    sandbox.run("mv disk.img:/q/f disk.img:/docs").ok();
    assert_eq!(sandbox.run("cat disk.img:/docs/f").ok(), "2\n");
    sandbox.is_clean("disk.img");
}

#[test]
fn the_second_directory_of_one_name_is_left_out() {
    let sandbox = Sandbox::new();
    for (file, content) in [("x/a/f", "1\n"), ("y/a/f", "2\n"), ("y/a/g", "3\n")] {
        fs::create_dir_all(sandbox.path(&file[..3])).unwrap();
        sandbox.write(file, content.as_bytes());
    }
    let said = sandbox.run("cp -r x/a y/a disk.img:/").fails(1);
    assert!(said.contains("was copied there before"), "{said}");
    assert_eq!(sandbox.run("ls disk.img:/a").ok(), "f\n");
    assert_eq!(sandbox.run("cat disk.img:/a/f").ok(), "1\n");
    sandbox.run("cp -r x y disk.img:/docs").ok();
    fs::create_dir(sandbox.path("out")).unwrap();
    // Into a directory that is not there, and into one that is.
    for _ in 0..2 {
        let said = sandbox
            .run("cp -r disk.img:/docs/x/a disk.img:/docs/y/a out")
            .fails(1);
        assert!(said.contains("was copied there before"), "{said}");
        assert_eq!(sandbox.shell("cat out/a/f; ls out/a").ok(), "1\nf\n");
    }
}

#[test]
fn a_new_name_with_a_slash_is_only_for_a_directory() {
    let sandbox = Sandbox::new();
    for line in [
        "cp words unix.img:/new/",
        "cp - unix.img:/new/",
        "cp unix.img:/README.txt unix.img:/new/",
        "cp unix.img:/README.txt new/",
        "cp unix.img:/README.txt new/.",
        "cp unix.img:/README.txt words/",
        "mv unix.img:/README.txt unix.img:/new/",
        "mv words unix.img:/new/",
        "mv unix.img:/README.txt new/",
        "touch unix.img:/new/",
        "truncate -s 5 unix.img:/new/",
        "ln -s README.txt unix.img:/new/",
    ] {
        let said = sandbox.run(line).fails(1);
        assert!(said.contains("not a directory"), "{line}: {said}");
    }
    assert_eq!(sandbox.read("words"), b"words\n");
    assert!(!sandbox.path("new").exists());
    assert!(!sandbox.run("ls unix.img:/").ok().contains("new"));
    for line in [
        "cp -r tree unix.img:/new/",
        "mv unix.img:/new unix.img:/newer/",
        "mv unix.img:/newer new/",
        "mkdir unix.img:/made/",
    ] {
        sandbox.run(line).ok();
    }
    assert_eq!(sandbox.read("new/a.txt"), b"alpha\n");
}

#[test]
fn a_symlink_in_the_way_is_told_as_one() {
    let sandbox = Sandbox::new();
    let said = sandbox.run("cp tree/a.txt unix.img:/link").fails(1);
    assert!(said.contains("is a symlink; not followed"), "{said}");
    assert_eq!(sandbox.run("cat unix.img:/docs/a.txt").ok(), "words\n");
}

#[test]
fn a_deep_tree_of_the_host_is_copied_and_moved() {
    let sandbox = Sandbox::empty();
    let mut deep = String::from("deep");
    for _ in 0..700 {
        deep.push_str("/d");
    }
    fs::create_dir_all(sandbox.path(&deep)).unwrap();
    sandbox.write(&format!("{deep}/f"), b"words\n");
    sandbox.run("mkfs -q -t ffs2 --size 64M ffs.img").ok();
    sandbox.run("cp -r deep ffs.img:/").ok();
    sandbox.run("mv deep ffs.img:/moved").ok();
    assert!(!sandbox.path("deep").exists());
    let moved = deep.replacen("deep", "moved", 1);
    for path in [deep, moved] {
        assert_eq!(
            sandbox.run(&format!("cat ffs.img:/{path}/f")).ok(),
            "words\n"
        );
    }
}
