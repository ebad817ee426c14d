//! `--plugin` in every verb that takes a volume.

use crate::examples::verbs;
use crate::mounting::Mounting;
use crate::plugins::build;
use crate::sandbox::Sandbox;
use crate::serving::{Serving, can_mount, client};
use std::collections::BTreeSet;
use std::fs;

/// A volume of the example that shows a directory of the host.
const VOLUME: &str = "plugin:passthrough?vol";

/// What is run, in this order, and what it prints, as far as that is told. VOL stands for the volume.
const DONE: &[(&str, &str, &str)] = &[
    ("info", "VOL", "format"),
    ("info", "--json VOL", "\"longest name\": 255"),
    ("ls", "VOL", "a.txt\nsub\n"),
    ("tree", "VOL", "deep"),
    ("find", "VOL:/ -name a.txt", "/a.txt"),
    ("cat", "VOL:/a.txt", "alpha\n"),
    ("stat", "VOL:/a.txt", "6"),
    (
        "sha256sum",
        "VOL:/a.txt",
        "b6a98d9ce9a2d9149288fa3df42d377c3e42737afdcdaf714e33c0a100b51060",
    ),
    ("du", "VOL", "VOL"),
    ("df", "VOL", "VOL"),
    ("bulk", "--grep alpha VOL", "a.txt"),
    ("cp", "VOL:/a.txt out", ""),
    ("cp", "words VOL:/words", ""),
    ("mv", "VOL:/words VOL:/moved", ""),
    ("mkdir", "VOL:/new", ""),
    ("rmdir", "VOL:/new", ""),
    ("ln", "-s a.txt VOL:/link", ""),
    ("readlink", "VOL:/link", "a.txt\n"),
    ("chmod", "600 VOL:/moved", ""),
    ("chown", ":0 VOL:/moved", ""),
    ("touch", "VOL:/moved", ""),
    ("truncate", "-s 3 VOL:/moved", ""),
    ("rm", "VOL:/moved VOL:/link", ""),
    ("conform", "VOL", "passed"),
];

/// What a volume cannot do that is on no device, or is of no format that has it: one line that names the volume.
const REFUSED: &[(&str, &str, &str)] = &[
    ("dump", "VOL", "is on no device"),
    ("fsck", "-n VOL", "is on no device"),
    ("tune", "--label X VOL", "is on no device"),
    ("label", "VOL", "is on no device"),
    ("badsect", "VOL 5", "is on no device"),
    ("map", "VOL", "is on no device"),
    ("attrib", "VOL:/a.txt", "this volume cannot do that"),
    ("versions", "VOL:/a.txt", "it keeps no versions"),
    ("quota", "VOL", "have no quotas"),
];

/// What takes no volume of a user: it makes one, names of its own, or none.
const NONE: &[&str] = &[
    "mkfs",
    "torture",
    "sim",
    "bench",
    "formats",
    "layers",
    "new",
    "completions",
    "man",
];

fn sandbox() -> Option<Sandbox> {
    let sandbox = Sandbox::empty();
    sandbox.write("words", b"words\n");
    fs::rename(sandbox.path("tree"), sandbox.path("vol")).unwrap();
    build(&sandbox, "passthrough", "/usr/include/stdint.h", &[]).then_some(sandbox)
}

#[test]
fn every_verb_that_takes_a_volume_takes_one_of_a_plug_in() {
    let Some(sandbox) = sandbox() else { return };
    let line = |verb: &str, words: &str| {
        let words = words.replace("VOL", VOLUME);
        format!("{verb} --plugin ./libpassthrough.so {words}")
    };
    for (verb, words, out) in DONE {
        let line = line(verb, words);
        let run = sandbox.run(&line);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{line}: {}", run.out);
        let expected = out.replace("VOL", VOLUME);
        assert!(run.out.contains(&expected), "{line}: {}", run.out);
    }
    for (verb, words, part) in REFUSED {
        let line = line(verb, words);
        let run = sandbox.run(&line);
        assert!(run.code != 0 && run.code < 100, "{line}: {}", run.code);
        assert_eq!(run.err.lines().count(), 1, "{line}: {}", run.err);
        let begins = format!("volary: {VOLUME}");
        assert!(
            run.err.starts_with(&begins) && run.err.contains(part),
            "{line}: {}",
            run.err
        );
    }
    assert_eq!(sandbox.read("out"), b"alpha\n");
    let left: BTreeSet<_> = fs::read_dir(sandbox.path("vol"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["a.txt".into(), "sub".into()].into());
    // No verb is left out.
    let tried = DONE.iter().chain(REFUSED).map(|(verb, ..)| *verb);
    let tried: BTreeSet<&str> = tried
        .chain(["mount", "serve"])
        .chain(NONE.iter().copied())
        .collect();
    let all = verbs(&sandbox);
    assert_eq!(tried, all.iter().map(String::as_str).collect());
}

#[test]
fn a_volume_of_a_plug_in_is_mounted_and_served() {
    let Some(sandbox) = sandbox() else { return };
    let words = format!("--plugin ./libpassthrough.so {VOLUME}");
    let serving = Serving::start(&sandbox, &words);
    if let Some(run) = client(&sandbox, "nfs-cat", &[&serving.url("/passthrough/a.txt")]) {
        assert_eq!(run.out, "alpha\n", "{}", run.err);
    }
    serving.stop("-TERM");
    if !can_mount() {
        return;
    }
    let words: Vec<_> = words.split(' ').collect();
    let Some(mounting) = Mounting::start(&sandbox, &words) else {
        return;
    };
    assert_eq!(sandbox.read("mnt/a.txt"), b"alpha\n");
    sandbox.write("mnt/sub/new", b"new\n");
    let held = fs::File::open(sandbox.path("mnt/sub/new")).unwrap();
    fs::remove_file(sandbox.path("mnt/sub/new")).unwrap();
    assert_eq!(std::io::read_to_string(held).unwrap(), "new\n");
    fs::rename(sandbox.path("mnt/sub"), sandbox.path("mnt/renamed")).unwrap();
    assert!(sandbox.path("vol/renamed/deep").is_dir());
    mounting.end();
    let left = fs::read_dir(sandbox.path("vol")).unwrap();
    assert_eq!(left.count(), 2);
}
