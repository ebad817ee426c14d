//! Each command: what it prints and what it changes.

use crate::sandbox::{Run, Sandbox};
use serde_json::Value;

#[test]
fn listings_are_sorted_and_take_the_options_of_ls() {
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.run("ls disk.img:/").ok(),
        "README.txt\ndocs\nempty\n"
    );
    assert_eq!(
        sandbox.run("ls -r disk.img").ok(),
        "empty\ndocs\nREADME.txt\n"
    );
    assert_eq!(sandbox.run("ls disk.img:/README.txt").ok(), "/README.txt\n");
    let all = sandbox.run("ls -R disk.img").ok();
    assert!(all.contains("disk.img:/docs:\na.txt\nb.txt\n"), "{all}");
    let long = sandbox.run("ls -l unix.img").ok();
    assert!(
        long.contains("-rw-r--r-- ") && long.contains("link -> docs/a.txt"),
        "{long}"
    );
    sandbox.run("cp words unix.img:/.hidden").ok();
    assert!(!sandbox.run("ls unix.img").ok().contains("hidden"));
    assert!(sandbox.run("ls -a unix.img").ok().contains(".hidden"));
}

#[test]
fn everything_that_prints_a_table_prints_json_too() {
    let sandbox = Sandbox::new();
    for line in [
        "ls --json disk.img",
        "ls -lR --json unix.img",
        "tree --json disk.img",
        "find --json disk.img",
        "stat --json disk.img:/README.txt unix.img:/link",
        "du --json disk.img",
        "df --json disk.img unix.img",
        "sha256sum -r --json disk.img",
        "info --json disk.img",
        "formats --json",
        "fsck -n --json disk.img",
        "map --json disk.img",
        "mkfs --json --size 8M new.img",
        "badsect --json disk.img 100000",
        "tune --json --label NEW disk.img",
    ] {
        let text = sandbox.run(line).ok();
        let json: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(!json.is_null(), "{line}");
    }
    let listed: Value = serde_json::from_str(&sandbox.run("ls --json disk.img").ok()).unwrap();
    assert_eq!(listed[0]["name"], "README.txt");
    assert_eq!(listed[0]["path"], "/README.txt");
    assert_eq!(listed[0]["size"], 6);
    assert_eq!(listed[1]["kind"], "directory");
    let empty = sandbox.run("ls --json disk.img:/empty").ok();
    assert_eq!(
        serde_json::from_str::<Value>(&empty).unwrap(),
        Value::Array(Vec::new())
    );
}

#[test]
fn a_tree_is_drawn_with_its_counts() {
    let sandbox = Sandbox::new();
    let drawn = sandbox.run("tree disk.img").ok();
    assert_eq!(
        drawn,
        "disk.img:/\n├── README.txt\n├── docs\n│   ├── a.txt\n│   └── b.txt\n└── empty\n\n\
         2 directories, 3 files\n"
    );
    assert!(!sandbox.run("tree -L 1 disk.img").ok().contains("a.txt"));
}

#[test]
fn find_takes_patterns_and_kinds() {
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.run("find disk.img -name *.txt -type f").ok(),
        "disk.img:/README.txt\ndisk.img:/docs/a.txt\ndisk.img:/docs/b.txt\n"
    );
    assert_eq!(
        sandbox.run("find disk.img -iname readme*").ok(),
        "disk.img:/README.txt\n"
    );
    assert_eq!(
        sandbox.run("find unix.img -type l").ok(),
        "unix.img:/link\n"
    );
    assert_eq!(
        sandbox.run("find disk.img:/docs -maxdepth 0").ok(),
        "disk.img:/docs\n"
    );
    assert_eq!(
        sandbox.run("find disk.img:/docs -name a* -print0").ok(),
        "/docs/a.txt\0"
    );
}

#[test]
fn contents_and_sums_are_those_of_the_files() {
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.run("cat disk.img:/README.txt unix.img:/link").ok(),
        "words\nwords\n"
    );
    let ours = sandbox.run("sha256sum disk.img:/README.txt").ok();
    let theirs = sandbox.shell("sha256sum words").ok();
    assert_eq!(
        ours.split_whitespace().next(),
        theirs.split_whitespace().next()
    );
    assert_eq!(
        sandbox.run("hash -r disk.img:/docs").ok().lines().count(),
        2
    );
}

#[test]
fn entries_are_made_moved_and_removed() {
    let sandbox = Sandbox::new();
    sandbox.run("mkdir -p disk.img:/x/y/z disk.img:/x/y").ok();
    sandbox
        .run("mv disk.img:/README.txt disk.img:/x/y/READ.ME")
        .ok();
    sandbox
        .run("mv disk.img:/x/y/READ.ME disk.img:/docs/a.txt disk.img:/x")
        .ok();
    assert_eq!(sandbox.run("ls disk.img:/x").ok(), "READ.ME\na.txt\ny\n");
    sandbox.run("mv disk.img:/x disk.img:/X").ok();
    assert!(sandbox.run("ls disk.img").ok().contains("X\n"));
    assert_eq!(
        sandbox
            .run("mv -n disk.img:/X/a.txt disk.img:/docs/b.txt")
            .code,
        1
    );
    sandbox.run("rm -r disk.img:/X disk.img:/docs").ok();
    sandbox.run("rm -f disk.img:/X").ok();
    sandbox.run("rmdir disk.img:/empty").ok();
    assert_eq!(sandbox.run("ls disk.img").ok(), "");
    sandbox.is_clean("disk.img");
}

#[test]
fn what_fails_has_its_line_and_the_rest_is_done() {
    let sandbox = Sandbox::new();
    let run = sandbox.run("rm disk.img:/gone disk.img:/README.txt disk.img:/docs");
    assert_eq!((run.code, run.err.lines().count()), (1, 2), "{}", run.err);
    assert_eq!(sandbox.run("ls disk.img").ok(), "docs\nempty\n");
}

#[test]
fn attributes_are_kept_as_far_as_the_volume_can() {
    let sandbox = Sandbox::new();
    let stat = |place: &str| -> Value {
        let text = sandbox.run(&format!("stat --json {place}")).ok();
        serde_json::from_str::<Value>(&text).unwrap()[0].clone()
    };
    sandbox.run("chown 12:34 unix.img:/README.txt").ok();
    sandbox.run("chmod u+s,go-rwx unix.img:/README.txt").ok();
    let read = stat("unix.img:/README.txt");
    assert_eq!(
        (&read["mode"], &read["uid"], &read["gid"]),
        (&"4600".into(), &12.into(), &34.into())
    );
    sandbox.run("chmod -R 700 unix.img:/docs").ok();
    assert_eq!(stat("unix.img:/docs/b.txt")["mode"], "0700");
    sandbox.run("chmod a-w disk.img:/README.txt").ok();
    assert_eq!(
        sandbox.run("attrib disk.img:/README.txt").ok(),
        "R--A disk.img:/README.txt\n"
    );
    sandbox.run("attrib -r +hs disk.img:/README.txt").ok();
    assert_eq!(
        sandbox.run("attrib disk.img:/README.txt").ok(),
        "-HSA disk.img:/README.txt\n"
    );
    sandbox
        .run_words(&["touch", "-d", "2001-02-03 04:05:06", "disk.img:/README.txt"])
        .ok();
    assert_eq!(
        stat("disk.img:/README.txt")["modified"],
        "2001-02-03T04:05:06.000000000Z"
    );
    sandbox.run("touch -t 199912312359 disk.img:/new").ok();
    assert_eq!(
        stat("disk.img:/new")["modified"],
        "1999-12-31T23:59:00.000000000Z"
    );
    sandbox.run("touch -c disk.img:/not-made").ok();
    sandbox.run("truncate -s 100k disk.img:/new").ok();
    sandbox.run("truncate -s -1k disk.img:/new").ok();
    assert_eq!(stat("disk.img:/new")["size"], 99 << 10);
    assert!(!sandbox.run("ls disk.img").ok().contains("not-made"));
    sandbox.is_clean("disk.img");
    sandbox.is_clean("unix.img");
}

#[test]
fn room_is_told_by_du_and_df() {
    let sandbox = Sandbox::new();
    sandbox.run("cp tree/sub/b.bin disk.img:/docs").ok();
    let used = sandbox.run("du -s --bytes disk.img:/docs").ok();
    let bytes: u64 = used.split_whitespace().next().unwrap().parse().unwrap();
    assert!((300_000..320_000).contains(&bytes), "{used}");
    assert!(
        sandbox
            .run("du -h disk.img")
            .ok()
            .ends_with("\tdisk.img:/\n")
    );
    let full = sandbox.run("df -h disk.img").ok();
    assert!(
        full.starts_with("Volume") && full.lines().nth(1).unwrap().contains("64M"),
        "{full}"
    );
}

#[test]
fn a_volume_is_made_checked_shown_and_tuned() {
    let sandbox = Sandbox::new();
    let made = sandbox
        .run("mkfs -t fat32 --size 0x4000000 --label one new.img")
        .ok();
    assert!(made.starts_with("new.img:\n"), "{made}");
    assert_eq!(sandbox.run("label new.img").ok(), "ONE\n");
    sandbox.run("label new.img TWO").ok();
    assert_eq!(sandbox.run("label new.img").ok(), "TWO\n");
    assert!(sandbox.run("info new.img").ok().contains("TWO"));
    assert_eq!(sandbox.run("fsck -n new.img").ok(), "new.img: clean\n");
    sandbox.run("tune --dirty new.img").ok();
    let run = sandbox.run("fsck -n new.img");
    assert_eq!(run.code, 4, "{}", run.out);
    assert_eq!(sandbox.run("fsck -p new.img").code, 1);
    assert_eq!(sandbox.run("fsck -n new.img").code, 0);
    let map = sandbox.run("map disk.img").ok();
    assert!(map.contains("directories") && map.contains("free"), "{map}");
    sandbox.run("map --svg map.svg disk.img").ok();
    assert!(sandbox.read("map.svg").starts_with(b"<svg"));
    assert!(!sandbox.run("dump disk.img").ok().is_empty());
}

#[test]
fn a_volume_made_over_another_is_what_it_was_made_as() {
    let sandbox = Sandbox::empty();
    let kinds = ["fat16", "fat32", "cedar", "ffs1", "ffs2"];
    for before in kinds {
        for kind in kinds {
            sandbox
                .run(&format!("mkfs -q -f -t {before} --size 64M v.img"))
                .ok();
            sandbox.run(&format!("mkfs -q -f -t {kind} v.img")).ok();
            let line = format!("mkfs -t {kind} --size 64M v.img");
            let said = sandbox.run(&line).fails(1);
            let held = format!("holds a {kind} volume; with --force it is lost");
            assert!(said.contains(&held), "{kind} over {before}: {said}");
            sandbox.run("fsck -n v.img").ok();
        }
    }
}

#[test]
fn the_same_seed_and_time_make_the_same_bytes() {
    let sandbox = Sandbox::empty();
    for image in ["one.img", "two.img"] {
        let line = format!(
            "export SOURCE_DATE_EPOCH=1000000000; volary mkfs -q --size 8M --seed 7 {image} && \
             volary cp -r tree {image}:/"
        );
        sandbox.shell(&line).ok();
    }
    assert!(sandbox.read("one.img") == sandbox.read("two.img"));
}

#[test]
fn a_volume_in_memory_is_there_to_look_at() {
    let sandbox = Sandbox::empty();
    assert!(sandbox.run("tree mem:").ok().contains("words.txt"));
    assert!(
        sandbox
            .run("cat mem:/README.txt")
            .ok()
            .contains("volary mkfs")
    );
    assert!(sandbox.run("cat mem:/hello").ok().starts_with("#!/bin/sh"));
    assert_eq!(sandbox.run("ls mem:8M").ok(), "");
    sandbox.run("cp -r mem:/docs .").ok();
    assert!(sandbox.read("docs/words.txt").starts_with(b"node"));
}

#[test]
fn images_with_odd_names_are_reached_by_an_escape() {
    let sandbox = Sandbox::new();
    std::fs::rename(sandbox.path("disk.img"), sandbox.path("odd:")).unwrap();
    std::fs::rename(sandbox.path("unix.img"), sandbox.path("disk#2")).unwrap();
    assert!(sandbox.run(r"ls odd\::/docs").ok().contains("a.txt"));
    assert!(sandbox.run(r"ls disk\#2:/docs").ok().contains("a.txt"));
    assert!(
        sandbox
            .run(r"cp disk\#2:/README.txt tree/got")
            .ok()
            .is_empty()
    );
}

#[test]
fn a_volume_is_mounted_in_the_background_and_unmounted() {
    let sandbox = Sandbox::new();
    if !std::path::Path::new("/dev/fuse").exists() {
        return;
    }
    sandbox.run("mount --background unix.img mnt").ok();
    assert_eq!(sandbox.read("mnt/README.txt"), b"words\n");
    sandbox.write("mnt/new.txt", b"new\n");
    let said = sandbox.run("mkdir unix.img:/x").fails(3);
    assert!(said.contains("in use"), "{said}");
    assert_eq!(sandbox.run("mount disk.img mnt").code, 1);
    sandbox.shell("fusermount3 -u mnt").ok();
    // The server ends after its mount: whoever opens the image waits for it.
    assert_eq!(sandbox.run("cat unix.img:/new.txt").ok(), "new\n");
    sandbox.is_clean("unix.img");
}

/// One program writes a file and asks for nothing, another's file cannot be
/// made durable: who mounted is told at once, and when the mount ends.
#[test]
fn a_failed_write_is_told_when_the_mount_ends() {
    let sandbox = Sandbox::new();
    if !std::path::Path::new("/dev/fuse").exists() {
        println!("SKIPPED: no /dev/fuse");
        return;
    }
    sandbox.with_a_far_directory("unix.img");
    let mut server = sandbox.short_of_room(&["mount", "unix.img", "mnt"]);
    server.stderr(std::process::Stdio::piped());
    let server = server.spawn().unwrap();
    let mounted = "timeout 60 sh -c 'until mountpoint -q mnt; do sleep 0.1; done'";
    sandbox.shell(mounted).ok();
    sandbox.write("mnt/before", b"not synced\n");
    let late = sandbox.shell("dd if=tree/a.txt of=mnt/far/file conv=fsync");
    assert_ne!(late.code, 0, "{}", late.err);
    sandbox.shell("fusermount3 -u mnt").ok();
    let ended = crate::sandbox::Run::of(&server.wait_with_output().unwrap());
    ended.tells_of_a_failed_write("unix.img");
    let mended = sandbox.run("fsck -p unix.img");
    assert!(mended.code <= 1, "{}{}", mended.out, mended.err);
}

#[test]
fn a_directory_of_the_host_is_a_volume_like_any_other() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run("ls host:tree").ok(), "a.txt\nsub\n");
    sandbox.run("cp -r disk.img:/docs host:tree:/sub").ok();
    assert_eq!(sandbox.run("ls host:tree:/sub/docs").ok(), "a.txt\nb.txt\n");
    sandbox.run("mkdir host:tree:/new").ok();
    sandbox
        .run("mv host:tree:/sub/docs host:tree:/new/moved")
        .ok();
    let text = sandbox.run("cat host:tree:/new/moved/a.txt").ok();
    assert_eq!(text, sandbox.run("cat disk.img:/docs/a.txt").ok());
    sandbox.run("rm -r host:tree:/new").ok();
    assert_eq!(sandbox.run("ls host:tree").ok(), "a.txt\nsub\n");
    // What is above it is not of it.
    let up = sandbox.run("ls host:tree:/../disk.img").fails(1);
    assert!(up.contains("no such file"), "{up}");
    assert!(sandbox.run("ls host:missing").fails(3).contains("missing"));
    let device = sandbox.run("info host:tree").fails(3);
    assert!(device.contains("no device"), "{device}");
}

#[test]
fn a_rival_that_is_not_installed_is_named_and_ends_no_benchmark() {
    let sandbox = Sandbox::empty();
    let mut bench = sandbox.command(&["bench", "peers", "cedar", "--only", "none of them"]);
    let run = Run::of(&bench.env("PATH", "/nonexistent").output().unwrap());
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    for rival in ["fuse2fs", "ext4 on loop"] {
        let line = run.out.lines().find(|line| line.contains(rival));
        let line = line.unwrap_or_else(|| panic!("{rival}: {}", run.out));
        assert!(
            line.contains("not measured: mke2fs is not installed"),
            "{line}"
        );
    }
}

#[test]
fn bulk_reads_are_measured_beside_who_is_there_and_the_findings_can_be_parsed() {
    let sandbox = Sandbox::empty();
    let only = ["--only", "fat: 50,000", "--fewer", "500", "--rounds", "1"];
    let mut bench = sandbox.command(&["bench", "peers", "bulk", "--json", "--dir", "."]);
    // Not even tar is there. Whether the aims are reached says nothing of so few files.
    let run = bench.args(only).env("PATH", "/nonexistent").output();
    let run = Run::of(&run.unwrap());
    assert!(
        [0, 1].contains(&run.code) && run.err.is_empty(),
        "{}",
        run.err
    );
    let told: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(
        (&told["peers"], &told["rounds"]),
        (&"bulk".into(), &1.into())
    );
    assert!(
        told["volary"].as_str().unwrap().starts_with("volary "),
        "{told}"
    );
    let found = told["findings"].as_array().unwrap();
    let of = |rival: &str| found.iter().find(|one| one["rival"] == rival).unwrap();
    assert!(of("in sequence")["ours"]["median"].as_f64().unwrap() > 0.0);
    assert!(of("in sequence")["ratio"].as_f64().unwrap() > 0.0);
    let missing = of("7-Zip")["why"].as_str().unwrap();
    assert!(missing.contains("7zz is not installed"), "{missing}");
    let files = found.iter().find_map(|one| one["files"].as_u64());
    assert_eq!(files, Some(100));
    // What was printed becomes a page.
    sandbox.write("bulk.json", run.out.as_bytes());
    sandbox.run("bench report --from bulk.json page.html").ok();
    let page = String::from_utf8(sandbox.read("page.html")).unwrap();
    for part in [
        "<!DOCTYPE html>",
        "<svg",
        "in sequence",
        "7zz is not installed",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    sandbox.write("bulk.json", b"[]");
    let told = sandbox
        .run("bench report --from bulk.json other.html")
        .fails(1);
    assert!(told.contains("bulk.json: not what"), "{told}");
    let told = sandbox.run("bench report --peers none page.html").fails(2);
    assert!(told.contains("none"), "{told}");
}

#[test]
fn a_papers_table_can_be_parsed_and_one_that_it_does_not_have_is_refused() {
    let sandbox = Sandbox::empty();
    let run = sandbox.run("bench paper cedar --table 5.4 --json").ok();
    let tables: Vec<serde_json::Value> = serde_json::from_str(&run).unwrap();
    let cell = &tables[0]["rows"][2]["cells"][0];
    assert_eq!(
        (cell["paper"].as_f64(), cell["ours"].as_f64()),
        (Some(7.0), Some(7.0))
    );
    for (words, said) in [
        (
            "cedar --table 1",
            "--table 1 is none of the paper cedar: 2, 3, 4, 5, 5.4",
        ),
        (
            "daft --table 2a",
            "--table 2a is none of the paper daft: 2, 3, 4, fig2, memory",
        ),
        (
            "fifs --table 1",
            "--table 1 is none of the paper fifs: 5-1, 5-2, 5-3, 5-4, 5-5",
        ),
        ("fifs src", "DIR is for the paper ffs"),
        ("cedar --svg figures", "--svg is for"),
        ("daft src", "DIR is for the paper ffs"),
    ] {
        let err = sandbox.run(&format!("bench paper {words}")).fails(2);
        assert!(err.contains(said), "{err}");
    }
}

#[test]
fn changes_of_a_mode_without_a_who_leave_the_bits_of_the_umask() {
    let sandbox = Sandbox::new();
    let mode = |umask: &str, change: &str| -> String {
        let line = format!(
            "umask {umask}; volary chmod 444 unix.img:/docs && volary chmod {change} unix.img:/docs"
        );
        sandbox.shell(&line).ok();
        let stat: Value =
            serde_json::from_str(&sandbox.run("stat --json unix.img:/docs").ok()).unwrap();
        stat[0]["mode"].as_str().unwrap().to_owned()
    };
    assert_eq!(mode("022", "+w"), "0644");
    assert_eq!(mode("027", "=rwx"), "0750");
    assert_eq!(mode("077", "a+w"), "0666");
    sandbox
        .shell("umask 027; volary mkdir -m =rwx unix.img:/new")
        .ok();
    let listed = sandbox.run("ls -l unix.img").ok();
    assert!(listed.contains("drwxr-x--- "), "{listed}");
}
