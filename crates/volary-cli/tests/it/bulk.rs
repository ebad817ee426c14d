//! `bulk`: sums, archives, commands and searches, beside the programs that others use for them.

use crate::sandbox::{Sandbox, noise};
use rustix::fs::Advice;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use volary_testkit::oracle::{self, GENISOIMAGE, MKE2FS, Tool};

/// Makes a directory `src` with files of awkward lengths and names.
fn awkward() -> Sandbox {
    let sandbox = Sandbox::empty();
    fs::create_dir_all(sandbox.path("src/one/two")).unwrap();
    for (i, len) in [0, 1, 511, 4096, 70_001, 5_000_001].into_iter().enumerate() {
        let dir = ["src", "src/one", "src/one/two"][i % 3];
        sandbox.write(&format!("{dir}/file {len}.bin"), &noise(len));
    }
    for i in 0..120 {
        sandbox.write(&format!("src/one/small{i}"), format!("{i}\n").as_bytes());
    }
    sandbox
}

/// Makes the tree of [`awkward`], and adds links, files with holes and long names.
fn rich() -> Sandbox {
    let sandbox = awkward();
    let long = "l".repeat(120);
    fs::create_dir(sandbox.path(&format!("src/{long}"))).unwrap();
    sandbox.write(&format!("src/{long}/{long}"), b"long\n");
    std::os::unix::fs::symlink(&long, sandbox.path("src/to long")).unwrap();
    fs::hard_link(sandbox.path("src/one/small7"), sandbox.path("src/again7")).unwrap();
    for (name, at) in [("holes", 3_000_000), ("large holes", 9_000_000)] {
        let holes = fs::File::create(sandbox.path(&format!("src/{name}"))).unwrap();
        holes.write_at(b"begin", 4096).unwrap();
        holes.write_at(b"end", at).unwrap();
        holes.set_len(at + 20_000).unwrap();
    }
    sandbox
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Drops an image from the host's page cache, so that it is read past the cache.
fn forget(image: &Path) {
    let image = fs::File::open(image).unwrap();
    image.sync_all().unwrap();
    rustix::fs::fadvise(&image, 0, None, Advice::DontNeed).unwrap();
}

/// Holds if the sums of an image are those that sha256sum makes of `src`.
fn sums_of(sandbox: &Sandbox, image: &str, top: &str) {
    let theirs = sandbox
        .shell("cd src && find . -type f -print0 | xargs -0 sha256sum")
        .ok();
    let theirs = theirs.replace("  ./", &format!("  {image}:{top}"));
    for (how, is_cold) in [
        ("", true),
        ("", false),
        ("--memory 1M --threads 2", true),
        ("--method daftnm --shuffle 7", true),
        ("--method vanilla", true),
    ] {
        if is_cold {
            forget(&sandbox.path(image));
        }
        let ours = sandbox
            .run(&format!("bulk --sha256 {how} {image}:{top}"))
            .ok();
        assert_eq!(sorted(&ours), sorted(&theirs), "{image} {how}");
    }
}

#[test]
fn sums_of_volumes_are_those_of_sha256sum() {
    let sandbox = awkward();
    for kind in ["fat16", "fat32", "cedar", "ffs1", "ffs2"] {
        let image = format!("{kind}.img");
        sandbox
            .run(&format!("mkfs -q -t {kind} --size 64M --seed 1 {image}"))
            .ok();
        // Cedar has no directories as such: names have slashes in them, or versions behind.
        sandbox.run(&format!("cp -r src {image}:/")).ok();
        if kind != "cedar" {
            sums_of(&sandbox, &image, "/src/");
        }
    }
    let listed = sandbox.run("bulk --sha256 cedar.img").ok();
    assert_eq!(listed.lines().count(), 126);
}

#[test]
fn sums_of_volumes_that_others_made_are_those_of_sha256sum() {
    let sandbox = awkward();
    if oracle::have(&[MKE2FS]) {
        let args = ["-q", "-t", "ext4", "-d"];
        let (tree, image) = (sandbox.path("src"), sandbox.path("ext4.img"));
        let made = MKE2FS
            .command()
            .args(args)
            .arg(tree)
            .arg(image)
            .arg("32M")
            .status();
        assert!(made.unwrap().success());
        sums_of(&sandbox, "ext4.img", "/");
    }
    if oracle::have(&[GENISOIMAGE]) {
        let (tree, image) = (sandbox.path("src"), sandbox.path("cd.iso"));
        let made = GENISOIMAGE
            .command()
            .args(["-quiet", "-R", "-o"])
            .arg(image)
            .arg(tree)
            .status();
        assert!(made.unwrap().success());
        sums_of(&sandbox, "cd.iso", "/");
    }
}

#[test]
fn sums_of_directories_are_checked_by_sha256sum() {
    let sandbox = awkward();
    sandbox.write("src/a\nb\\c", b"odd\n");
    sandbox.shell("volary bulk --sha256 src > sums").ok();
    sandbox.shell("sha256sum --quiet --strict -c sums").ok();
    let count = sandbox.shell("wc -l < sums").ok();
    assert_eq!(count.trim(), "127");
}

#[test]
fn blake3_sums_are_those_of_b3sum() {
    let sandbox = awkward();
    let ours = sandbox.run("bulk --blake3 src").ok();
    // The sum of nothing, from the specification.
    let nothing = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
    assert!(
        ours.contains(&format!("{nothing}  src/file 0.bin\n")),
        "{ours}"
    );
    let b3sum = Tool {
        program: "b3sum",
        package: "b3sum",
    };
    if b3sum.find().is_some() {
        let theirs = sandbox
            .shell("find src -type f -print0 | xargs -0 b3sum")
            .ok();
        assert_eq!(sorted(&ours), sorted(&theirs));
    }
}

#[test]
fn an_archive_is_what_tar_reads_with_links_holes_and_attributes() {
    let sandbox = rich();
    let sets = sandbox
        .shell("setfattr -n user.colour -v blue src/one/small3")
        .code
        == 0;
    sandbox
        .shell("volary bulk --tar a.tar src && mkdir x && tar xf a.tar -C x --xattrs")
        .ok();
    sandbox.shell("diff -r --no-dereference src x").ok();
    let metadata = |dir: &str| {
        let list = "find . -printf '%P %y %m %U %G %s %n %T@ %l\\n' | sort";
        let text = sandbox.shell(&format!("cd {dir} && {list}")).ok();
        // The lengths of directories are the host's business.
        text.lines()
            .filter(|line| !line.contains(" d "))
            .map(String::from)
            .collect::<Vec<_>>()
    };
    assert_eq!(metadata("src"), metadata("x"));
    for name in ["holes", "large holes"] {
        let blocks = fs::metadata(sandbox.path(&format!("x/{name}")))
            .unwrap()
            .blocks();
        assert!(blocks < 100, "{name} takes {blocks} blocks");
    }
    let inode = |name: &str| fs::metadata(sandbox.path(name)).unwrap().ino();
    assert_eq!(inode("x/again7"), inode("x/one/small7"));
    if sets {
        let value = sandbox
            .shell("getfattr --only-values -n user.colour x/one/small3")
            .ok();
        assert_eq!(value, "blue");
    }
    let len = fs::metadata(sandbox.path("a.tar")).unwrap().len();
    assert!(len < 6_000_000, "{len} bytes: holes are in it");
}

#[test]
fn an_archive_of_a_volume_is_that_of_its_tree() {
    let sandbox = rich();
    sandbox
        .run("mkfs -q -t ffs2 --size 64M --seed 1 disk.img")
        .ok();
    sandbox.run("cp -r -p src disk.img:/").ok();
    sandbox
        .run("ln disk.img:/src/one/small8 disk.img:/src/linked8")
        .ok();
    fs::hard_link(sandbox.path("src/one/small8"), sandbox.path("src/linked8")).unwrap();
    sandbox
        .shell("volary bulk --tar - disk.img:/src | tar xf -")
        .ok();
    sandbox
        .shell("mkdir x && volary bulk --tar - disk.img | tar xf - -C x")
        .ok();
    sandbox.shell("diff -r --no-dereference src x/src").ok();
    let listed = sandbox
        .shell("volary bulk --tar - disk.img:/src | tar tf - | sort")
        .ok();
    let found = sandbox
        .shell("find src -type d -printf '%p/\\n' -o -printf '%p\\n' | sort")
        .ok();
    assert_eq!(sorted(&listed), sorted(&found));
    let inode = |name: &str| fs::metadata(sandbox.path(name)).unwrap().ino();
    assert_eq!(inode("x/src/linked8"), inode("x/src/one/small8"));
}

#[test]
fn a_command_has_each_content_on_its_standard_input() {
    let sandbox = awkward();
    let script = "bulk --exec";
    let words = |extra: &[&str], command: &str| {
        let mut all: Vec<&str> = script.split(' ').collect();
        all.push(command);
        all.extend_from_slice(extra);
        sandbox.run_words(&all)
    };
    let command = "echo $(sha256sum | cut -d' ' -f1) $VOLARY_PATH";
    let ours = words(&["src"], command).ok().replace(' ', "");
    let theirs = sandbox
        .shell("find src -type f -print0 | xargs -0 sha256sum")
        .ok()
        .replace(' ', "");
    assert_eq!(sorted(&ours), sorted(&theirs));
    // One that reads nothing is no failure; one that fails is one.
    words(&["src", "--threads", "3"], "true").ok();
    let run = words(&["src"], "test \"$VOLARY_PATH\" != src/one/small9");
    assert_eq!(run.code, 1);
    let line = "volary: src/one/small9: the command ended with exit status: 1\n";
    assert_eq!(run.err, line);
}

#[test]
fn lines_that_fit_are_those_of_grep() {
    let sandbox = awkward();
    let lines: String = (0..300_000)
        .map(|i| format!("line {i} of many\n"))
        .collect();
    sandbox.write("src/lines", lines.as_bytes());
    sandbox.write("src/last", b"no end of the line 1777");
    let theirs = sandbox
        .shell("grep -r --binary-files=without-match '17*7$\\|17777 of' src")
        .ok();
    let ours = sandbox
        .run_words(&["bulk", "--grep", "17*7$|17777 of", "src"])
        .ok();
    let ours: Vec<&str> = ours
        .lines()
        .filter(|l| !l.ends_with("a binary file fits"))
        .collect();
    assert_eq!(sorted(&ours.join("\n")), sorted(&theirs));
    let told = sandbox.run_words(&["bulk", "--grep", "(", "src"]).fails(2);
    assert!(told.contains("unclosed group"), "{told}");
}

#[test]
fn globs_and_sizes_choose() {
    let sandbox = awkward();
    let names = |options: &str| {
        let printed = sandbox.run(&format!("bulk --sha256 {options} src")).ok();
        let name = |line: &str| line.split_once("  src/").unwrap().1.to_string();
        let mut names: Vec<String> = printed.lines().map(name).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(
        names("--include *7 --exclude *1*"),
        [
            "one/small27",
            "one/small37",
            "one/small47",
            "one/small57",
            "one/small67",
            "one/small7",
            "one/small77",
            "one/small87",
            "one/small97"
        ]
    );
    assert_eq!(names("--min-size 511 --max-size 8k").len(), 2);
    assert_eq!(names("--exclude one").len(), 2);
    assert_eq!(names("--exclude /one/small*").len(), 6);
}

#[test]
fn the_summary_counts_and_json_has_a_line_for_each_file() {
    let sandbox = awkward();
    sandbox
        .run("mkfs -q -t ffs2 --size 64M --seed 1 disk.img")
        .ok();
    sandbox.run("cp -r src disk.img:/").ok();
    let words = sandbox.run("bulk --null disk.img").ok();
    for part in [
        "files             126 (0 failed)\n",
        "device reads",
        "peak buffer",
        "seconds",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let json = sandbox.run("bulk --blake3 --json disk.img").ok();
    let files = json
        .lines()
        .filter(|l| l.starts_with("{\"event\":\"file\""))
        .count();
    let last = json.lines().last().unwrap();
    assert_eq!(files, 126, "{json}");
    assert!(
        last.contains("\"event\":\"summary\",\"files\":126,"),
        "{last}"
    );
    assert!(json.contains("\"way\":\"direct\",\"sum\":"), "{json}");
    sandbox.shell("volary bulk --json src | python3 -c 'import json,sys; [json.loads(l) for l in sys.stdin]'").ok();
    let told = sandbox.run("bulk --json --tar - src").fails(2);
    assert!(told.contains("both take standard output"), "{told}");
    let told = sandbox.run("bulk --memory 4k src").fails(2);
    assert!(told.contains("less memory than 1M"), "{told}");
}

#[test]
fn what_goes_wrong_is_said_for_each_and_the_rest_is_delivered() {
    let sandbox = awkward();
    let run = sandbox.run("bulk --sha256 src src/gone host:src:/one/nothing");
    assert_ne!(run.code, 0);
    let run =
        sandbox.run("bulk --sha256 host:src:/one/small1 host:src:/nothing host:src:/one/small2");
    assert_eq!(
        (run.code, run.out.lines().count()),
        (1, 2),
        "{}{}",
        run.out,
        run.err
    );
    assert_eq!(run.err, "volary: src/nothing: no such file or directory\n");
    // Full outputs and closed pipes.
    let run = sandbox.shell("volary bulk --tar /dev/full src");
    assert_eq!(run.code, 1);
    assert!(
        run.err.contains("/dev/full: no space left on device"),
        "{}",
        run.err
    );
    let run = sandbox.shell("volary bulk --sha256 src > /dev/full");
    assert_eq!(run.code, 1);
    assert!(
        run.err.contains("standard output: no space left"),
        "{}",
        run.err
    );
    let run = sandbox.shell("{ volary bulk --tar - src; echo $? >&2; } | head -c 1000 > part");
    assert_eq!(run.err, "volary: standard output: broken pipe\n1\n");
}

#[test]
fn a_damaged_file_is_told_and_costs_no_other() {
    let sandbox = awkward();
    sandbox
        .run("mkfs -q -t fat16 --size 64M --seed 1 disk.img")
        .ok();
    sandbox.run("cp -r src disk.img:/").ok();
    // Both FATs end the large file in its middle.
    let image = sandbox.read("disk.img");
    let word = |at: usize| usize::from(u16::from_le_bytes([image[at], image[at + 1]]));
    let (first, len) = (word(14) * 512, word(22) * 512);
    let mut file = fs::File::options();
    let file = file.write(true).open(sandbox.path("disk.img")).unwrap();
    for fat in [first, first + len] {
        file.write_at(&[0xff; 2], (fat + 2 * 1000) as u64).unwrap();
    }
    let ours = sandbox.run("bulk --sha256 disk.img");
    let ordinary = sandbox.run("bulk --sha256 --method vanilla disk.img");
    assert_eq!((ours.code, ordinary.code), (1, 1), "{}", ours.err);
    assert_eq!(sorted(&ours.out), sorted(&ordinary.out));
    assert!(
        ours.out.lines().count() > 50 && !ours.err.is_empty(),
        "{}",
        ours.err
    );
}

#[test]
fn an_archive_is_neither_an_image_in_use_nor_a_member_of_itself() {
    let sandbox = awkward();
    sandbox
        .run("mkfs -q -t fat --size 8M --seed 1 disk.img")
        .ok();
    sandbox.run("cp -r src/one disk.img:/").ok();
    let before = fs::read(sandbox.path("disk.img")).unwrap();
    let refused = sandbox.run("bulk --tar disk.img disk.img");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("disk.img: is in use"), "{refused:?}");
    assert!(fs::read(sandbox.path("disk.img")).unwrap() == before);

    let made = sandbox.run("bulk --tar src/a.tar src");
    assert_eq!(made.code, 0, "{made:?}");
    assert!(
        made.err.contains("src/a.tar: is the archive; left out"),
        "{made:?}"
    );
    let listed = sandbox.shell("tar tf src/a.tar").ok();
    assert!(
        listed.contains("one/small7") && !listed.contains("a.tar"),
        "{listed}"
    );
}

/// What appends lines: an image in a line's place is refused, and stays as it was.
#[test]
fn lines_are_appended_to_text_and_to_no_image() {
    let sandbox = Sandbox::empty();
    for name in ["disk.img", "other.img"] {
        let make = format!("mkfs -q -t fat --size 8M --seed 1 {name}");
        sandbox.run(&make).ok();
    }
    let before = fs::read(sandbox.path("disk.img")).unwrap();
    for (image, text) in [("disk.img", "disk.img"), ("other.img", "disk.img")] {
        let run = sandbox.run(&format!("mkdir --layer audit={text} {image}:/dir"));
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.err.contains("is not a text file"), "{run:?}");
        let run = sandbox.run(&format!("serve --log {text} {image} --smb 127.0.0.1:0"));
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.err.contains("is not a text file"), "{run:?}");
    }
    assert!(fs::read(sandbox.path("disk.img")).unwrap() == before);
    for name in ["one", "two"] {
        let run = format!("mkdir --layer audit=audit.log disk.img:/{name}");
        sandbox.run(&run).ok();
    }
    let lines = fs::read_to_string(sandbox.path("audit.log")).unwrap();
    assert!(
        lines.contains("name=\"one\"") && lines.contains("name=\"two\""),
        "{lines}"
    );
}

#[test]
fn each_of_several_sources_has_its_own_directory_in_an_archive() {
    let sandbox = awkward();
    fs::create_dir_all(sandbox.path("more/src")).unwrap();
    sandbox.write("more/src/file 0.bin", b"another of that name");
    sandbox
        .run("mkfs -q -t fat --size 8M --seed 1 disk.img")
        .ok();
    sandbox.shell("volary cp more/src/* disk.img:/").ok();
    sandbox
        .shell("volary bulk --tar - src more/src disk.img | tar xf - --one-top-level=x")
        .ok();
    sandbox
        .shell("diff -r src x/src && diff -r more/src x/src.2")
        .ok();
    sandbox.shell("diff -r more/src x/disk.img").ok();
}

#[test]
fn raw_reads_of_a_directory_are_refused_in_words_where_there_are_none() {
    let sandbox = Sandbox::with_tree();
    let told = sandbox.run("bulk -o raw=often src").fails(2);
    assert!(told.contains("raw") && told.contains("always"), "{told}");
    let told = sandbox.run("bulk -o raw=always /proc/self/fdinfo").fails(3);
    let words = "the host does not tell where on a block device its files lie";
    assert!(told.contains(words), "{told}");
    for how in ["auto", "never"] {
        let line = format!("bulk --sha256 -o raw={how} src");
        assert_eq!(sandbox.run(&line).code, 0, "{how}");
    }
}

#[test]
fn after_the_end_of_a_line_there_is_no_line() {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("src")).unwrap();
    sandbox.write("src/none", b"");
    sandbox.write("src/one", b"a\n");
    sandbox.write("src/gap", b"a\n\nb");
    sandbox.write("src/large", &b"words\n".repeat(50_000));
    for whole in ["64K", "4M"] {
        let words = ["bulk", "--whole", whole, "--grep", "^$", "src"];
        assert_eq!(sandbox.run_words(&words).ok(), "src/gap:\n");
    }
}

#[test]
fn a_place_in_another_is_read_twice_and_no_damage() {
    let sandbox = Sandbox::empty();
    sandbox.run("mkfs -q -t ffs2 --size 16M ffs.img").ok();
    sandbox.run("cp -r tree ffs.img:/").ok();
    sandbox
        .run("ln ffs.img:/tree/a.txt ffs.img:/tree/sub/b.txt")
        .ok();
    let sums = sandbox.run("bulk --sha256 ffs.img ffs.img:/tree/sub").ok();
    let sums = sorted(&sums);
    let count = |name: &str| sums.iter().filter(|line| line.ends_with(name)).count();
    assert_eq!((sums.len(), count("b.bin"), count("a.txt")), (5, 2, 1));
    let tar = "bulk --tar all.tar ffs.img ffs.img:/tree ffs.img:/tree/sub";
    sandbox.run(tar).ok();
    sandbox.shell("mkdir out && tar xf all.tar -C out").ok();
    sandbox.shell("cmp out/tree/a.txt tree/a.txt").ok();
    sandbox
        .shell("test out/tree/a.txt -ef out/tree/sub/b.txt")
        .ok();
}
