//! `cp`, in all directions.

use crate::sandbox::{Sandbox, noise};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};

/// A tree with files of every awkward length.
fn awkward(sandbox: &Sandbox) {
    fs::create_dir_all(sandbox.path("all/one/two")).unwrap();
    for (i, len) in [
        0, 1, 511, 512, 4096, 131_072, 131_073, 262_144, 262_145, 1_048_576, 3_000_001,
    ]
    .into_iter()
    .enumerate()
    {
        let dir = ["all", "all/one", "all/one/two"][i % 3];
        sandbox.write(&format!("{dir}/file {len}.bin"), &noise(len));
    }
    for i in 0..700 {
        sandbox.write(&format!("all/one/small{i}"), format!("{i}\n").as_bytes());
    }
}

#[test]
fn a_tree_comes_back_as_it_went_in() {
    let sandbox = Sandbox::new();
    awkward(&sandbox);
    sandbox.run("cp -r all disk.img:/").ok();
    sandbox.is_clean("disk.img");
    sandbox.run("cp -r disk.img:/all unix.img:/docs").ok();
    sandbox.is_clean("unix.img");
    sandbox.run("cp -r unix.img:/docs/all back").ok();
    assert_eq!(sandbox.shell("diff -r all back").ok(), "");
}

#[test]
fn targets_are_chosen_as_cp_chooses_them() {
    let sandbox = Sandbox::new();
    sandbox.run("cp tree/a.txt disk.img:/docs").ok();
    sandbox.run("cp tree/a.txt disk.img:/docs/new.txt").ok();
    sandbox.run("cp -r tree disk.img:/docs").ok();
    sandbox.run("cp -r tree disk.img:/copy").ok();
    sandbox.run("cp -r tree/. disk.img:/empty").ok();
    let docs = sandbox.run("ls disk.img:/docs").ok();
    assert_eq!(docs, "a.txt\nb.txt\nnew.txt\ntree\n");
    assert_eq!(sandbox.run("ls disk.img:/copy").ok(), "a.txt\nsub\n");
    assert_eq!(sandbox.run("ls disk.img:/empty").ok(), "a.txt\nsub\n");
    sandbox
        .run("cp disk.img:/docs/a.txt disk.img:/docs/b.txt tree")
        .ok();
    sandbox.run("cp -r disk.img:/ out").ok();
    assert_eq!(sandbox.read("tree/b.txt"), b"words\n");
    assert_eq!(sandbox.read("out/docs/new.txt"), b"alpha\n");
    let said = sandbox
        .run("cp tree/a.txt tree/b.txt disk.img:/gone")
        .fails(2);
    assert!(said.contains("several go into one"), "{said}");
}

#[test]
fn standard_input_and_output_are_files_too() {
    let sandbox = Sandbox::new();
    sandbox.write("big", &noise(1_000_000));
    sandbox.shell("cat big | volary cp - disk.img:/big").ok();
    sandbox.shell("volary cp disk.img:/big - | cmp - big").ok();
    let run = sandbox.shell("echo x | volary cp - disk.img:/docs");
    assert!(
        run.err.contains("standard input has no name"),
        "{}",
        run.err
    );
}

#[test]
fn times_modes_and_links_are_kept() {
    let sandbox = Sandbox::new();
    fs::set_permissions(
        sandbox.path("tree/a.txt"),
        fs::Permissions::from_mode(0o751),
    )
    .unwrap();
    symlink("a.txt", sandbox.path("tree/link")).unwrap();
    sandbox
        .shell("touch -d '2011-12-13 14:15:16 UTC' tree/a.txt tree/sub")
        .ok();
    sandbox.run("cp -r tree unix.img:/").ok();
    sandbox.run("cp -r unix.img:/tree out").ok();
    let meta = fs::symlink_metadata(sandbox.path("out/a.txt")).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.mtime()), (0o751, 1_323_785_716));
    assert_eq!(
        fs::metadata(sandbox.path("out/sub")).unwrap().mtime(),
        1_323_785_716
    );
    assert_eq!(
        fs::read_link(sandbox.path("out/link")).unwrap().to_str(),
        Some("a.txt")
    );
    let run = sandbox.run("cp -r tree disk.img:/");
    assert_eq!((run.code, run.err.lines().count()), (1, 1), "{}", run.err);
    assert!(
        run.err
            .contains("/tree/link: a symlink, which this volume cannot keep")
    );
    sandbox.run("cp -rL tree disk.img:/followed").ok();
    assert_eq!(sandbox.run("cat disk.img:/followed/link").ok(), "alpha\n");
}

/// A helper writes them while others are made: what fails is told and taken away, and times are
/// set last.
#[test]
fn many_small_files_come_out_whole_but_for_one_that_the_host_refuses() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("many")).unwrap();
    for i in 0..250 {
        // After some megabytes, a thread of its own writes.
        let len = match i {
            0..90 => 100_000,
            170 => 120_000,
            _ => i * 10,
        };
        sandbox.write(&format!("many/{i:03}"), &noise(len));
    }
    sandbox
        .shell("touch -d 2001-02-03T04:05:06Z many many/*")
        .ok();
    sandbox.run("cp -r many disk.img:/").ok();
    sandbox.run("cp -r disk.img:/many all").ok();
    assert_eq!(sandbox.shell("diff -r many all").ok(), "");
    let limited = "trap '' XFSZ; prlimit --fsize=110000 volary cp -r disk.img:/many out";
    let said = sandbox.shell(limited).fails(1);
    assert_eq!(said, "volary: ./out/170: file too large\n");
    fs::remove_file(sandbox.path("many/170")).unwrap();
    assert_eq!(sandbox.shell("diff -r many out").ok(), "");
    for name in ["out", "out/000", "out/249", "all"] {
        let meta = fs::metadata(sandbox.path(name)).unwrap();
        assert_eq!(meta.mtime(), 981_173_106, "{name}");
    }
}

#[test]
fn what_is_there_is_left_or_replaced_as_asked() {
    let sandbox = Sandbox::new();
    sandbox.run("cp -n tree/a.txt disk.img:/README.txt").ok();
    assert_eq!(sandbox.run("cat disk.img:/README.txt").ok(), "words\n");
    sandbox.shell("touch -d '2000-01-01' tree/a.txt").ok();
    sandbox.run("cp -u tree/a.txt disk.img:/README.txt").ok();
    assert_eq!(sandbox.run("cat disk.img:/README.txt").ok(), "words\n");
    sandbox.run("cp tree/a.txt disk.img:/README.txt").ok();
    assert_eq!(sandbox.run("cat disk.img:/README.txt").ok(), "alpha\n");
    sandbox.run("cp -n disk.img:/docs/b.txt tree/a.txt").ok();
    assert_eq!(sandbox.read("tree/a.txt"), b"alpha\n");
    sandbox.run("cp disk.img:/docs/b.txt tree/a.txt").ok();
    assert_eq!(sandbox.read("tree/a.txt"), b"words\n");
}

#[test]
fn nothing_is_written_through_symlinks_of_the_target() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("out/docs")).unwrap();
    sandbox.write("precious", b"precious\n");
    symlink("../../precious", sandbox.path("out/docs/a.txt")).unwrap();
    let run = sandbox.run("cp -r disk.img:/docs out");
    assert_eq!(run.code, 1);
    assert!(
        run.err
            .contains("out/docs/a.txt: is a symlink; not followed"),
        "{}",
        run.err
    );
    assert_eq!(
        sandbox.read("out/docs/b.txt"),
        b"words\n",
        "the rest is copied"
    );
    assert_eq!(sandbox.read("precious"), b"precious\n");
    fs::remove_dir_all(sandbox.path("out/docs")).unwrap();
    symlink("../tree", sandbox.path("out/docs")).unwrap();
    let run = sandbox.run("cp -r disk.img:/docs out");
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(!sandbox.path("tree/b.txt").exists());
}

#[test]
fn a_full_volume_keeps_what_was_copied_and_no_half_file() {
    let sandbox = Sandbox::empty();
    sandbox.run("mkfs -q -t fat12 --size 1M small.img").ok();
    fs::create_dir(sandbox.path("many")).unwrap();
    for i in 0..10 {
        sandbox.write(&format!("many/f{i}"), &noise(150_000));
    }
    let said = sandbox.run("cp -r many small.img:/").fails(1);
    assert!(
        said.contains("no space left on the volume; stopped, with "),
        "{said}"
    );
    let listed = sandbox.run("ls small.img:/many").ok();
    let count = listed.lines().count();
    assert!((5..7).contains(&count), "{listed}");
    assert!(
        said.contains(&format!("with {count} files copied")),
        "{said}"
    );
    for name in listed.lines() {
        sandbox.run(&format!("cp small.img:/many/{name} got")).ok();
        assert!(sandbox.read("got") == noise(150_000), "{name} is not whole");
    }
    sandbox.is_clean("small.img");
}

#[test]
fn names_that_differ_in_case_only_are_told() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/A.TXT", b"upper\n");
    let run = sandbox.run("cp -r tree disk.img:/");
    assert_eq!((run.code, run.err.lines().count()), (1, 1), "{}", run.err);
    assert!(run.err.contains("differs in case only"), "{}", run.err);
    sandbox.is_clean("disk.img");
}

#[test]
fn a_copy_that_is_stopped_leaves_a_clean_volume() {
    let sandbox = Sandbox::new();
    let mut copy = sandbox.command(&["cp", "-", "disk.img:/endless"]);
    let mut child = copy
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    use std::io::Write;
    input.write_all(&noise(1 << 20)).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    // What unblocks the read; after the signal it can be that nobody reads.
    let _ = input.write_all(&noise(1 << 20));
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    // No half file is left under a name that was free.
    assert!(!sandbox.run("ls disk.img").ok().contains("endless"));
    sandbox.is_clean("disk.img");
}

#[test]
fn what_mtools_reads_is_what_was_copied() {
    let sandbox = Sandbox::new();
    awkward(&sandbox);
    sandbox.run("cp -r all disk.img:/").ok();
    let mut mcopy = Command::new("mcopy");
    mcopy
        .args(["-s", "-Q", "-i", "disk.img", "::all", "mtools"])
        .current_dir(sandbox.path(""));
    if mcopy.status().is_ok_and(|status| status.success()) {
        assert_eq!(sandbox.shell("diff -r all mtools").ok(), "");
    }
}

#[test]
fn a_move_between_volumes_copies_and_then_removes() {
    let sandbox = Sandbox::new();
    awkward(&sandbox);
    let before = sandbox.shell("cp -r all kept && ls all").ok();
    sandbox.run("mv all disk.img:/").ok();
    assert!(!sandbox.path("all").exists());
    sandbox.run("mv disk.img:/all unix.img:/moved").ok();
    assert!(!sandbox.run("ls disk.img").ok().contains("all"));
    assert_eq!(sandbox.run("ls unix.img:/moved").ok(), before);
    sandbox.run("mv unix.img:/moved back").ok();
    assert_eq!(sandbox.shell("diff -r kept back").ok(), "");
    sandbox.is_clean("disk.img");
    sandbox.is_clean("unix.img");
}

#[test]
fn a_move_that_cannot_end_well_removes_nothing() {
    let sandbox = Sandbox::new();
    for (line, expected) in [
        ("mv disk.img:/docs unix.img:/README.txt", "not a directory"),
        (
            "mv disk.img:/README.txt unix.img:/docs/a.txt/x",
            "not a directory",
        ),
        ("mv -n disk.img:/README.txt unix.img:/", "already exists"),
        ("mv tree/gone disk.img:/", "no such file"),
        ("mv disk.img:/docs unix.img:/", "directory not empty"),
    ] {
        let said = sandbox.run(line).fails(1);
        assert!(said.contains(expected), "{line}: {said}");
    }
    assert_eq!(sandbox.run("ls disk.img").ok(), "README.txt\ndocs\nempty\n");
    // Not all of it can be copied: a symlink has no place on plain FAT.
    sandbox.shell("ln -s a.txt tree/link").ok();
    let said = sandbox.run("mv tree disk.img:/");
    assert_ne!(said.code, 0);
    assert!(
        said.err.contains("not all of it could be copied"),
        "{}",
        said.err
    );
    assert_eq!(sandbox.read("tree/a.txt"), b"alpha\n");
    sandbox.is_clean("disk.img");
}

#[test]
fn a_fifo_in_the_way_is_not_opened() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("to")).unwrap();
    sandbox.shell("mkfifo to/README.txt").ok();
    // With a reader, it could be opened.
    let fifo = sandbox.path("to/README.txt");
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
    let reader = rustix::fs::open(fifo, flags, rustix::fs::Mode::empty()).unwrap();
    let run = sandbox.run("cp disk.img:/README.txt to");
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.err.contains("README.txt"), "{}", run.err);
    let mut poll = [rustix::event::PollFd::new(
        &reader,
        rustix::event::PollFlags::IN,
    )];
    rustix::event::poll(&mut poll, Some(&rustix::event::Timespec::default())).unwrap();
    let hung_up = rustix::event::PollFlags::HUP;
    assert!(!poll[0].revents().contains(hung_up), "it was opened");
}
