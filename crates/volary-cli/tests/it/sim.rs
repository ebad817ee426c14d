//! `sim`: what commands would cost on other disks.

use crate::sandbox::Sandbox;
use std::collections::BTreeMap;

/// Returns an image with a tree on it.
fn image() -> Sandbox {
    let sandbox = Sandbox::with_tree();
    sandbox.write("src/large", &vec![7; 3_000_000]);
    sandbox.run("mkfs -t ffs2 --size 16M disk.img").ok();
    sandbox.run("cp -r src disk.img:/").ok();
    sandbox
}

/// Returns what the report has, in JSON.
fn report(sandbox: &Sandbox, disk: &str, verb: &str) -> BTreeMap<String, serde_json::Value> {
    let run = sandbox.run(&format!("sim --disk {disk} --json -- {verb}"));
    assert_eq!(run.code, 0, "{}", run.err);
    let line = run.err.lines().last().unwrap();
    serde_json::from_str(line).unwrap()
}

#[test]
fn a_command_prints_what_it_always_does_and_the_same_time_each_run() {
    let sandbox = image();
    let plain = sandbox.run("sha256sum disk.img:/src/large").ok();
    let run = sandbox.run("sim --disk hdd -- sha256sum disk.img:/src/large");
    assert_eq!((run.code, run.out.as_str()), (0, plain.as_str()));
    for line in ["disk      hdd (", "time      ", "reads     ", "seeks     "] {
        assert!(run.err.contains(line), "{}", run.err);
    }
    let first = report(&sandbox, "hdd", "cat disk.img:/src/large");
    assert_eq!(first, report(&sandbox, "hdd", "cat disk.img:/src/large"));
    assert!(first["read_bytes"].as_u64().unwrap() >= 3_000_000);
    assert_eq!(first["writes"], 0);
    let seconds = |disk| report(&sandbox, disk, "cat disk.img:/src/large")["seconds"].clone();
    let [card, disk, nvme] = ["sd", "6y160p0", "nvme"].map(|disk| seconds(disk).as_f64().unwrap());
    // 3 MB at 90, 56 and 6,500 MB/s are the least.
    assert!(
        card > 0.033 && disk > 0.053 && nvme > 0.0004,
        "{card} {disk} {nvme}"
    );
    assert!(
        nvme < card / 5.0 && card < 0.2 && disk < 0.5,
        "{card} {disk} {nvme}"
    );
}

#[test]
fn images_stay_as_they_are_whatever_the_command_writes() {
    let sandbox = image();
    let before = sandbox.read("disk.img");
    for verb in [
        "cp src/large disk.img:/again",
        "rm -r disk.img:/src",
        "mkfs -t fat --force disk.img",
        "label disk.img OTHER",
        "mkdir disk.img:/dir",
    ] {
        let told = report(&sandbox, "hdd", verb);
        assert!(told["writes"].as_u64().unwrap() > 0, "{verb}: {told:?}");
        assert!(sandbox.read("disk.img") == before, "{verb}");
    }
    let full = sandbox.run("sim --disk hdd --memory 64K -- cp src/large disk.img:/again");
    assert_eq!(full.code, 1, "{}", full.err);
    assert!(full.err.contains("sim --memory gives more"), "{}", full.err);
    assert!(sandbox.read("disk.img") == before);
}

#[test]
fn the_head_s_path_is_drawn() {
    let sandbox = image();
    let run = sandbox.run("sim --disk hdd --svg path.svg -- bulk disk.img");
    assert_eq!(run.code, 0, "{}", run.err);
    let drawn = String::from_utf8(sandbox.read("path.svg")).unwrap();
    assert!(
        drawn.contains("<line") && drawn.contains("hdd: byte 0"),
        "{drawn}"
    );
    let run = sandbox.run("sim --disk hdd --svg no/path.svg -- ls disk.img");
    assert_eq!(run.code, 1);
    assert!(run.err.contains("no/path.svg"), "{}", run.err);
}

#[test]
fn what_makes_no_sense_is_told_in_a_line() {
    let sandbox = image();
    for (line, code, words) in [
        ("sim --disk drum -- ls disk.img", 2, "none of capricorn"),
        ("sim --disk hdd -- serve disk.img", 2, "not serve"),
        ("sim --disk hdd -- lz disk.img", 2, "no such command"),
        ("sim --disk hdd -- ls --wide", 2, "--wide"),
        (
            "sim --disk hdd -- mkfs --size 1M new.img",
            2,
            "makes no image",
        ),
        ("sim --disk hdd -- ls none.img", 3, "none.img"),
        ("sim --disk hdd", 2, "VERB"),
    ] {
        let told = sandbox.run(line).fails(code);
        assert!(told.contains(words), "{line}: {told}");
    }
    assert!(!sandbox.path("new.img").exists());
    sandbox.run("mkfs -t fat --size 400M big.img").ok();
    let told = sandbox.run("sim --disk t300 -- ls big.img").fails(3);
    assert!(told.contains("301276160"), "{told}");
}

#[test]
fn nothing_of_the_host_is_removed_or_changed() {
    let sandbox = image();
    sandbox.write("file", b"words\n");
    let before = sandbox.read("disk.img");
    for verb in ["mv file disk.img:/", "mv src/docs disk.img:/new"] {
        report(&sandbox, "hdd", verb);
    }
    for verb in [
        "rm -r host:src:/docs",
        "mv host:src:/docs disk.img:/new",
        "mv disk.img:/src/large host:src:/",
        "mkdir host:src:/new",
    ] {
        // Images that were opened before have their report.
        let run = sandbox.run(&format!("sim --disk hdd -- {verb}"));
        assert_eq!(run.code, 3, "{}", run.err);
        assert!(run.err.contains("sim does not change it"), "{}", run.err);
    }
    sandbox
        .run("sim --disk hdd -- tune -o minfree=5 src")
        .fails(2);
    report(&sandbox, "hdd", "cp host:src:/docs/words disk.img:/new");
    assert_eq!(sandbox.read("file"), b"words\n");
    assert_eq!(sandbox.read("src/docs/words"), b"words\n");
    assert!(!sandbox.path("src/new").exists());
    assert!(sandbox.read("disk.img") == before);
}
