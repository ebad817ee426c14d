//! What copies keep, and what is said of what they cannot.

use crate::sandbox::{Run, Sandbox, noise};
use rustix::fs::{XattrFlags, fgetxattr, setxattr};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};

const SPARSE: u64 = 500 << 30;

/// `all`: a file with two names, a file of 500 GB with three blocks, a file and a directory with
/// an extended attribute.
fn all(sandbox: &Sandbox) {
    fs::create_dir_all(sandbox.path("all/d")).unwrap();
    sandbox.write("all/a", &noise(70_000));
    fs::hard_link(sandbox.path("all/a"), sandbox.path("all/d/b")).unwrap();
    sparse(sandbox, "all/sparse", SPARSE);
    for name in ["all/a", "all/d"] {
        let flags = XattrFlags::empty();
        setxattr(sandbox.path(name), "user.note", &noise(900), flags).unwrap();
    }
    sandbox
        .shell("touch -d 2001-02-03T04:05:06Z all/* all")
        .ok();
}

fn sparse(sandbox: &Sandbox, name: &str, len: u64) {
    use std::os::unix::fs::FileExt;
    let file = fs::File::create(sandbox.path(name)).unwrap();
    for at in [0, len / 3, len - 10] {
        file.write_all_at(b"0123456789", at).unwrap();
    }
}

fn meta(sandbox: &Sandbox, name: &str) -> fs::Metadata {
    fs::symlink_metadata(sandbox.path(name)).unwrap()
}

fn note(sandbox: &Sandbox, name: &str) -> Vec<u8> {
    let file = fs::File::open(sandbox.path(name)).unwrap();
    let mut value = vec![0; 2000];
    let len = fgetxattr(file, "user.note", &mut value).unwrap_or(0);
    value.truncate(len);
    value
}

/// That `name` is [`all`] with nothing lost.
fn is_all(sandbox: &Sandbox, name: &str) {
    let (a, b) = (
        meta(sandbox, &format!("{name}/a")),
        meta(sandbox, &format!("{name}/d/b")),
    );
    assert_eq!((a.ino(), a.nlink(), a.mtime()), (b.ino(), 2, 981_173_106));
    assert_eq!(meta(sandbox, &format!("{name}/d")).mtime(), 981_173_106);
    assert!(sandbox.read(&format!("{name}/d/b")) == noise(70_000));
    for part in ["a", "d"] {
        assert!(
            note(sandbox, &format!("{name}/{part}")) == noise(900),
            "{name}/{part}"
        );
    }
    holds_sparse(sandbox, &format!("{name}/sparse"), SPARSE);
}

fn holds_sparse(sandbox: &Sandbox, name: &str, len: u64) {
    use std::os::unix::fs::FileExt;
    let file = fs::File::open(sandbox.path(name)).unwrap();
    let meta = file.metadata().unwrap();
    assert_eq!(meta.len(), len);
    assert!(
        meta.blocks() * 512 < 1 << 20,
        "{name} takes {} blocks",
        meta.blocks()
    );
    for (at, expected) in [
        (0, b"0123456789"),
        (len / 3, b"0123456789"),
        (len - 10, b"0123456789"),
    ] {
        let mut bytes = [0; 10];
        file.read_exact_at(&mut bytes, at).unwrap();
        assert_eq!(&bytes, expected, "{name} at {at}");
    }
}

#[test]
fn hard_links_holes_and_attributes_go_everywhere_with_archive() {
    let sandbox = Sandbox::empty();
    all(&sandbox);
    for image in ["one.img", "two.img"] {
        let line = format!("mkfs -q -t ffs2 --size 16M {image}");
        sandbox.run(&line).ok();
    }
    sandbox.run("cp -a all one.img:/").ok();
    sandbox.run("cp -a one.img:/all two.img:/").ok();
    sandbox.run("cp -a two.img:/all two.img:/again").ok();
    sandbox.run("cp -a two.img:/again out").ok();
    is_all(&sandbox, "out");
    sandbox.run("cp -a host:out:/ host:all:/out").ok();
    is_all(&sandbox, "all/out");
    sandbox.run("fsck -n two.img").ok();
}

#[test]
fn a_second_copy_over_the_first_changes_nothing() {
    let sandbox = Sandbox::empty();
    all(&sandbox);
    sandbox.run("mkfs -q -t ffs2 --size 16M one.img").ok();
    for _ in 0..2 {
        sandbox.run("cp -a all one.img:/").ok();
        sandbox.run("cp -a one.img:/all/. out").ok();
        is_all(&sandbox, "out");
    }
}

/// Of a name that was left alone, the next name of the same file is a copy and no link to it.
#[test]
fn a_name_that_is_left_is_not_linked_to() {
    let sandbox = Sandbox::empty();
    all(&sandbox);
    sandbox.run("mkfs -q -t ffs2 --size 16M one.img").ok();
    sandbox.run("mkdir one.img:/all").ok();
    sandbox.run("cp tree/a.txt one.img:/all/a").ok();
    sandbox.run("cp -an all one.img:/").ok();
    assert_eq!(sandbox.run("cat one.img:/all/a").ok(), "alpha\n");
    sandbox.run("cp one.img:/all/d/b out").ok();
    assert!(sandbox.read("out") == noise(70_000));
}

/// `ln -f` keeps the old file where no link can be made: on volumes without links, and for a target
/// that does not exist.
#[test]
fn what_no_link_replaces_stays() {
    let sandbox = Sandbox::new();
    sandbox.run("mkfs -q -t ffs2 --size 16M one.img").ok();
    for image in ["disk.img", "one.img"] {
        let run = |line: &str| sandbox.run(&line.replace("IMG", image));
        run("cp tree/a.txt IMG:/old").ok();
        run("cp words IMG:/new").ok();
        run("ln -f IMG:/none IMG:/old").fails(1);
        if image == "disk.img" {
            run("ln -f IMG:/new IMG:/old").fails(1);
            run("ln -sf new IMG:/old").fails(1);
        }
        assert_eq!(run("cat IMG:/old").ok(), "alpha\n");
        assert!(!run("ls -a IMG:/").ok().contains('~'));
    }
    sandbox.run("ln -f one.img:/new one.img:/old").ok();
    assert!(sandbox.run("cat one.img:/old").ok() != "alpha\n");
    sandbox.run("mkdir one.img:/d").ok();
    sandbox.run("ln -sf new one.img:/d").ok();
    assert_eq!(sandbox.run("ls one.img:/d").ok(), "new\n");
}

#[test]
fn without_archive_names_are_files_of_their_own_and_holes_stay() {
    let sandbox = Sandbox::empty();
    all(&sandbox);
    sandbox.run("mkfs -q -t ffs2 --size 16M one.img").ok();
    sandbox.run("cp -r all one.img:/").ok();
    sandbox.run("cp -r one.img:/all out").ok();
    assert_eq!(meta(&sandbox, "out/a").nlink(), 1);
    assert!(note(&sandbox, "out/a").is_empty());
    holds_sparse(&sandbox, "out/sparse", SPARSE);
}

/// Returns what the last line of each kind says.
fn told(run: &Run) -> Vec<&str> {
    assert_eq!(run.code, 1, "{}", run.err);
    run.err.lines().collect()
}

#[test]
fn what_a_volume_cannot_keep_is_told_once_for_each_kind() {
    let sandbox = Sandbox::new();
    all(&sandbox);
    fs::remove_file(sandbox.path("all/sparse")).unwrap();
    sparse(&sandbox, "all/sparse", 3 << 20);
    sparse(&sandbox, "all/sparse2", 3 << 20);
    let run = sandbox.run("cp -a all disk.img:/");
    let lines = told(&run);
    assert_eq!(
        lines,
        [
            "volary: disk.img:/all/d/b: hard links cannot be kept there; each name is a file of its own",
            "volary: disk.img:/all/a: extended attributes that cannot be kept there; left out (3 in all)",
            "volary: disk.img:/all/a: owner or mode cannot be kept there (4 in all)",
            "volary: disk.img:/all/sparse: holes cannot be kept there; they are filled with zeros (2 in all)",
        ],
    );
    sandbox.run("cp -r disk.img:/all out").ok();
    assert!(sandbox.read("out/d/b") == noise(70_000));
    assert_eq!(sandbox.shell("cmp all/sparse2 out/sparse2").ok(), "");
    // Nobody promised anything.
    sandbox.run("cp -r all disk.img:/again").ok();
    sandbox.is_clean("disk.img");
}

#[test]
fn a_move_removes_nothing_of_which_something_is_lost() {
    let sandbox = Sandbox::new();
    all(&sandbox);
    fs::remove_file(sandbox.path("all/sparse")).unwrap();
    let run = sandbox.run("mv all disk.img:/");
    let lines = told(&run);
    assert!(
        lines[0].contains("hard links cannot be kept there"),
        "{lines:?}"
    );
    assert!(lines[1].contains("extended attributes"), "{lines:?}");
    assert!(
        lines[2].ends_with("all: not moved: not all of it could be copied"),
        "{lines:?}"
    );
    assert!(sandbox.read("all/d/b") == noise(70_000));
    sandbox.run("mkfs -q -t ffs2 --size 16M one.img").ok();
    sandbox.run("mv all one.img:/").ok();
    assert!(!sandbox.path("all").exists());
    sandbox.run("mv one.img:/all out").ok();
    assert_eq!(sandbox.run("ls one.img").ok(), "");
    sparse(&sandbox, "out/sparse", SPARSE);
    assert_eq!(meta(&sandbox, "out/a").nlink(), 2);
    assert!(note(&sandbox, "out/a") == noise(900));
}

#[test]
fn names_of_one_file_that_are_moved_together_stay_together() {
    let sandbox = Sandbox::empty();
    all(&sandbox);
    sandbox.run("mkfs -q -t ffs2 --size 16M one.img").ok();
    sandbox.run("mkdir one.img:/d").ok();
    sandbox.run("mv all/a all/d/b one.img:/d").ok();
    assert!(!sandbox.path("all/a").exists() && !sandbox.path("all/d/b").exists());
    sandbox.run("mv one.img:/d/a one.img:/d/b tree").ok();
    let (a, b) = (meta(&sandbox, "tree/a"), meta(&sandbox, "tree/b"));
    assert_eq!((a.ino(), a.nlink()), (b.ino(), 2));
    // Two that would have one name there are not put in one place.
    sandbox.write("all/a.txt", b"another\n");
    let said = sandbox.run("mv tree/a.txt all/a.txt one.img:/").fails(1);
    assert!(said.contains("was moved there before"), "{said}");
    assert_eq!(sandbox.run("cat one.img:/a.txt").ok(), "alpha\n");
    assert_eq!(sandbox.read("all/a.txt"), b"another\n");
}

#[test]
fn files_of_a_volume_without_modes_get_those_of_the_umask() {
    let sandbox = Sandbox::new();
    sandbox.run("attrib +r disk.img:/docs/b.txt").ok();
    sandbox
        .shell("umask 022; volary cp -r disk.img:/docs out")
        .ok();
    sandbox
        .shell("umask 007; volary cp -a disk.img:/docs tight")
        .ok();
    sandbox
        .shell("volary cp -o fmask=177 disk.img:/README.txt .")
        .ok();
    sandbox.run("mkfs -q -t ffs2 --size 16M one.img").ok();
    sandbox.run("cp -a disk.img:/docs one.img:/").ok();
    sandbox
        .shell("umask 0; volary cp -rp one.img:/docs inner")
        .ok();
    for (name, mode) in [
        ("out", 0o755),
        ("out/a.txt", 0o644),
        ("out/b.txt", 0o444),
        ("tight", 0o770),
        ("tight/a.txt", 0o660),
        ("README.txt", 0o600),
        ("inner", 0o755),
        ("inner/a.txt", 0o644),
        ("inner/b.txt", 0o444),
    ] {
        assert_eq!(meta(&sandbox, name).mode() & 0o7777, mode, "{name}");
    }
}

#[test]
fn dos_attributes_are_kept_where_there_is_a_place_for_them() {
    let sandbox = Sandbox::new();
    sandbox.run("attrib +h +s disk.img:/README.txt").ok();
    sandbox.run("mkfs -q -t ffs2 --size 16M two.img").ok();
    sandbox.run("mkfs -q -t ffs1 --size 16M one.img").ok();
    sandbox.run("cp disk.img:/README.txt one.img:/").ok();
    sandbox.run("cp -a disk.img:/README.txt two.img:/").ok();
    sandbox.run("rm -f disk.img:/README.txt").ok();
    sandbox.run("cp -a two.img:/README.txt disk.img:/").fails(1);
    let shown = sandbox.run("attrib disk.img:/README.txt").ok();
    assert!(shown.contains("HS"), "{shown}");
    let run = sandbox.run("cp -a disk.img:/README.txt one.img:/");
    let said = run.fails(1);
    assert!(
        said.contains("DOS attributes that cannot be kept there"),
        "{said}"
    );
}

/// Who has no right to be root runs this, where we have.
fn as_nobody(sandbox: &Sandbox, line: &str) -> Option<Run> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    fs::set_permissions(sandbox.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    let drop = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    Some(sandbox.shell(&format!("{drop} volary {line}")))
}

#[test]
fn set_uid_goes_where_the_owner_cannot_be_kept() {
    let sandbox = Sandbox::empty();
    sandbox.shell("chmod 6755 tree/a.txt").ok();
    sandbox.run("mkfs -q -t ffs2 --size 16M one.img").ok();
    sandbox.run("cp -p --owner 0:0 tree/a.txt one.img:/").ok();
    sandbox
        .run("cp -p --owner 65534:0 tree/a.txt one.img:/mine")
        .ok();
    sandbox.run("cp tree/a.txt one.img:/plain").ok();
    let listed = sandbox.run("ls -l one.img:/plain").ok();
    assert!(listed.starts_with("-rwxr-xr-x"), "{listed}");
    sandbox.shell("chmod 666 one.img").ok();
    let Some(run) = as_nobody(&sandbox, "cp -p one.img:/a.txt one.img:/mine .") else {
        return;
    };
    run.ok();
    assert_eq!(meta(&sandbox, "a.txt").mode() & 0o7777, 0o755);
    assert_eq!(meta(&sandbox, "mine").mode() & 0o7777, 0o755);
    sandbox.run("cp -p one.img:/a.txt roots").ok();
    let roots = meta(&sandbox, "roots");
    assert_eq!((roots.mode() & 0o7777, roots.uid()), (0o6755, 0));
}

#[test]
fn devices_come_out_only_when_root_asks_for_them() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let sandbox = Sandbox::empty();
    sandbox
        .shell("mknod tree/null c 1 3 && mkfifo -m 620 tree/pipe && chown 7:8 tree/*")
        .ok();
    sandbox.run("mkfs -q -t ffs2 --size 16M one.img").ok();
    sandbox.run("cp -a tree one.img:/").ok();
    let said = sandbox.run("cp -r one.img:/tree plain").fails(1);
    assert!(said.contains("plain/null: a device; left out"), "{said}");
    assert!(!sandbox.path("plain/null").exists());
    assert!(meta(&sandbox, "plain/pipe").file_type().is_fifo());
    sandbox.shell("chmod 666 one.img").ok();
    let said = as_nobody(&sandbox, "cp -a one.img:/tree theirs")
        .unwrap()
        .fails(1);
    assert!(
        said.contains("theirs/null: operation not permitted"),
        "{said}"
    );
    sandbox.run("cp -a one.img:/tree kept").ok();
    let (null, pipe) = (meta(&sandbox, "kept/null"), meta(&sandbox, "kept/pipe"));
    assert!(null.file_type().is_char_device());
    assert_eq!((null.uid(), null.gid()), (7, 8));
    assert_eq!((pipe.mode() & 0o7777, pipe.gid()), (0o620, 8));
}

#[test]
fn a_copy_ends_before_the_file_that_is_too_much() {
    let sandbox = Sandbox::empty();
    sandbox.run("mkfs -q -t ffs2 --size 16M one.img").ok();
    sparse(&sandbox, "hole", SPARSE);
    fs::create_dir(sandbox.path("many")).unwrap();
    for i in 0..5 {
        sandbox.write(&format!("many/{i}"), &noise(100_000));
    }
    sandbox.run("cp hole one.img:/many0").ok();
    sandbox.run("cp -r many one.img:/").ok();
    // Holes count for nothing where they stay holes.
    sandbox.run("cp --max-size 1M one.img:/many0 out").ok();
    assert_eq!(meta(&sandbox, "out").len(), SPARSE);
    let said = sandbox
        .run("cp -r --max-size 350000 one.img:/many few")
        .fails(1);
    let expected = "volary: one.img:/many/3: stopped before it: with it, more than 350000 bytes \
                    would be copied (--max-size)\n";
    assert_eq!(said, expected);
    assert_eq!(sandbox.shell("ls few").ok(), "0\n1\n2\n");
    let run = sandbox.run("mv --max-size 150000 one.img:/many/0 one.img:/many/1 few");
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(sandbox.run("ls one.img:/many").ok().contains("1\n"));
    let run = sandbox.shell("cat many/0 | volary cp --max-size 50k - one.img:/input");
    assert!(run.err.contains("standard input: stopped"), "{}", run.err);
    assert!(!sandbox.run("ls one.img").ok().contains("input"));
}

#[test]
fn an_image_is_not_copied_over_itself() {
    let sandbox = Sandbox::new();
    let before = sandbox.read("disk.img");
    let said = sandbox.run("cp disk.img:/README.txt disk.img").fails(1);
    assert!(
        said.contains("disk.img: is the volume that is copied from"),
        "{said}"
    );
    sandbox.run("cp -r words tree unix.img:/").ok();
    sandbox.run("mv unix.img:/words unix.img:/unix.img").ok();
    let said = sandbox.run("cp -r unix.img:/ .").fails(1);
    assert!(
        said.contains("unix.img: is the volume that is copied from"),
        "{said}"
    );
    let said = sandbox.run("cp disk.img disk.img:/").fails(1);
    assert!(
        said.contains("disk.img: is the volume that is copied to"),
        "{said}"
    );
    assert!(sandbox.read("disk.img") == before);
    sandbox.is_clean("unix.img");
}

#[test]
fn two_sources_of_one_name_are_not_put_in_one_place() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/README.TXT", b"mine\n");
    sandbox.write("README.txt", b"theirs\n");
    sandbox.write("docs.txt", b"one\n");
    for (line, place) in [
        (
            "cp tree/README.TXT README.txt disk.img:/docs",
            "/docs/README.TXT",
        ),
        (
            "cp tree/README.TXT README.txt unix.img:/docs",
            "/docs/README.TXT",
        ),
    ] {
        let said = sandbox.run(line).fails(1);
        assert!(said.contains("copied there before"), "{line}: {said}");
        let image = line
            .split_whitespace()
            .last()
            .unwrap()
            .split(':')
            .next()
            .unwrap();
        let held = sandbox.run(&format!("cat {image}:{place}")).ok();
        assert_eq!(held, "mine\n", "{line}");
    }
    sandbox.run("rm disk.img:/docs/a.txt").ok();
    sandbox.run("cp README.txt disk.img:/a.txt").ok();
    sandbox.run("cp words disk.img:/docs/a.txt").ok();
    let said = sandbox
        .run("cp disk.img:/a.txt disk.img:/docs/a.txt tree")
        .fails(1);
    assert!(
        said.contains("tree/a.txt: something of that name was copied there before"),
        "{said}"
    );
    assert_eq!(sandbox.read("tree/a.txt"), b"theirs\n");
}

#[test]
fn a_file_that_a_volume_cannot_hold_is_refused_before_it_is_written() {
    let sandbox = Sandbox::new();
    fs::File::create(sandbox.path("huge"))
        .unwrap()
        .set_len(5 << 30)
        .unwrap();
    let said = sandbox.run("cp huge disk.img:/").fails(1);
    assert!(said.contains("disk.img:/huge: "), "{said}");
    sparse(&sandbox, "wide", 2 << 30);
    let said = sandbox.run("cp wide disk.img:/").fails(1);
    assert!(said.contains("no space left"), "{said}");
    assert_eq!(sandbox.run("ls disk.img").ok(), "README.txt\ndocs\nempty\n");
    sandbox.shell("touch -d 1960-01-01 words").ok();
    sandbox.run("cp -r words disk.img:/").ok();
    let run = sandbox.run("cp -a words disk.img:/");
    let said = run.err;
    assert!(
        said.contains("words: a time that cannot be kept there"),
        "{said}"
    );
    sandbox.is_clean("disk.img");
}
