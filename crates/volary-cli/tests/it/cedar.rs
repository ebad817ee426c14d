//! Cedar volumes on the command line.

use crate::sandbox::{Sandbox, noise};

fn volume() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox
        .run("mkfs -t cedar --size 16M --label PARC c.img")
        .ok();
    sandbox
}

#[test]
fn a_tree_goes_in_and_comes_out_the_same() {
    let sandbox = volume();
    std::fs::create_dir_all(sandbox.path("src/docs")).unwrap();
    let large = noise(1_000_000);
    sandbox.write("src/docs/large", &large);
    sandbox.write("src/empty", b"");
    std::os::unix::fs::symlink("docs/large", sandbox.path("src/link")).unwrap();
    sandbox.run("cp -r src c.img:/").ok();
    assert_eq!(sandbox.run("ls c.img:/src").ok(), "docs\nempty\nlink\n");
    sandbox.run("cp -r c.img:/src back").ok();
    assert_eq!(sandbox.read("back/docs/large"), large);
    let link = std::fs::read_link(sandbox.path("back/link")).unwrap();
    assert_eq!(link.to_str(), Some("docs/large"));
    sandbox.run("mv c.img:/src/docs c.img:/moved").ok();
    sandbox.run("rm -r c.img:/src").ok();
    assert_eq!(sandbox.run("ls c.img").ok(), "moved\n");
    let checked = sandbox.run("fsck -n c.img").ok();
    assert!(checked.contains("clean"), "{checked}");
}

#[test]
fn it_can_be_looked_at_and_given_a_label() {
    let sandbox = volume();
    sandbox.write("words", b"words\n");
    sandbox.run("cp words c.img:/").ok();
    let info = sandbox.run("info c.img").ok();
    assert!(
        info.contains("PARC") && info.contains("cleanly left"),
        "{info}"
    );
    for (topic, words) in [
        ("root", "PARC"),
        ("anchors", "durable up to"),
        ("log", "0 records to be replayed"),
        ("table", "words!1"),
        ("page 4", "leader"),
    ] {
        let dumped = sandbox.run(&format!("dump c.img {topic}")).ok();
        assert!(dumped.contains(words), "{topic}: {dumped}");
    }
    sandbox.run("map c.img").ok();
    sandbox.run("tune --label DRAGON c.img").ok();
    let info = sandbox.run("info c.img").ok();
    assert!(info.contains("DRAGON"), "{info}");
    assert_eq!(sandbox.run("cat c.img:/words").ok(), "words\n");
}

#[test]
fn what_cannot_be_made_or_tuned_is_said_so() {
    let sandbox = volume();
    let small = sandbox.run("mkfs -t cedar --size 1M small.img").fails(2);
    assert!(small.contains("too small"), "{small}");
    let page = sandbox
        .run("mkfs -t cedar --size 16M -o page=1000 odd.img")
        .fails(2);
    assert!(page.contains("power of two"), "{page}");
    let tuned = sandbox.run("tune --compact c.img").fails(1);
    assert!(tuned.contains("cedar"), "{tuned}");
    let bad = sandbox.run("badsect c.img 100").fails(1);
    assert!(bad.contains("twice"), "{bad}");
}

#[test]
fn versions_are_kept_listed_and_brought_back() {
    let sandbox = volume();
    for (text, keep) in [
        ("one", Some(3)),
        ("two", None),
        ("three", None),
        ("four", None),
    ] {
        sandbox.write("a", text.as_bytes());
        sandbox.run("cp a c.img:/").ok();
        if let Some(keep) = keep {
            sandbox
                .run(&format!("versions --keep {keep} c.img:/a"))
                .ok();
        }
    }
    let shown = sandbox.run("versions c.img:/a").ok();
    let names: Vec<&str> = shown
        .lines()
        .filter_map(|l| l.split(' ').next_back())
        .collect();
    assert_eq!(names, ["c.img:/a!4", "c.img:/a!3", "c.img:/a!2"], "{shown}");
    assert_eq!(sandbox.run_words(&["cat", "c.img:/a!2"]).ok(), "two");
    sandbox.run_words(&["mv", "c.img:/a!2", "c.img:/a"]).ok();
    assert_eq!(sandbox.run("cat c.img:/a").ok(), "two");
    assert_eq!(sandbox.run("ls c.img:/").ok(), "a\n");
    let json = sandbox.run("versions --json c.img:/a").ok();
    assert!(
        json.contains("\"version\":\"5\"") && json.contains("a!3"),
        "{json}"
    );
    sandbox.run("cp a c.img:/b").ok();
    let none = sandbox.run("versions c.img:/b");
    assert!(
        none.code == 1 && none.err.contains("keeps no versions"),
        "{}",
        none.err
    );
    let checked = sandbox.run("fsck -n c.img").ok();
    assert!(checked.contains("clean"), "{checked}");
}

#[test]
fn files_of_another_volume_are_cached_and_linked_to() {
    let sandbox = Sandbox::empty();
    std::fs::create_dir(sandbox.path("theirs")).unwrap();
    sandbox.write("theirs/a", b"a of theirs\n");
    sandbox.write("theirs/b", b"b of theirs\n");
    sandbox
        .run("mkfs -t cedar --size 16M -o cache=host:theirs cache.img")
        .ok();
    let remote = "-o remote=host:theirs";
    let listed = sandbox.run(&format!("ls {remote} cache.img")).ok();
    assert_eq!(listed, "a\nb\n");
    let read = sandbox.run(&format!("cat {remote} cache.img:/a")).ok();
    assert_eq!(read, "a of theirs\n");
    std::fs::remove_file(sandbox.path("theirs/a")).unwrap();
    // Without the remote, what is here is as it was.
    assert_eq!(sandbox.run("cat cache.img:/a").ok(), "a of theirs\n");
    let away = sandbox.run("cat cache.img:/b").fails(1);
    assert!(away.contains("-o remote=host:theirs"), "{away}");
    assert_eq!(sandbox.run(&format!("ls {remote} cache.img")).ok(), "b\n");
    let info = sandbox.run("info cache.img").ok();
    assert!(info.contains("host:theirs"), "{info}");
    let table = sandbox.run("dump cache.img table").ok();
    assert!(
        table.contains("away") && table.contains("last used"),
        "{table}"
    );
    let other = sandbox.run("ls -o remote=host:. cache.img").fails(2);
    assert!(other.contains("host:theirs"), "{other}");

    sandbox
        .run("mkfs -t cedar --size 16M -o remote=host:theirs own.img")
        .ok();
    sandbox
        .run(&format!("ln --remote {remote} /b own.img:/mine"))
        .ok();
    sandbox
        .run(&format!("ln --remote {remote} / own.img:/all"))
        .ok();
    assert_eq!(
        sandbox.run(&format!("cat {remote} own.img:/mine")).ok(),
        "b of theirs\n"
    );
    assert_eq!(sandbox.run("cat own.img:/mine").ok(), "b of theirs\n");
    assert_eq!(
        sandbox.run(&format!("ls {remote} own.img:/all")).ok(),
        "b\n"
    );
    let none = sandbox
        .run(&format!("ln --remote {remote} /none own.img:/x"))
        .fails(1);
    assert!(none.contains("no such file"), "{none}");
    assert_eq!(sandbox.run("ls own.img").ok(), "all\nmine\n");
    assert!(sandbox.run("fsck -n own.img").ok().contains("clean"));
    let fat = sandbox
        .run(&format!("ln --remote {remote} /b c.img:/mine"))
        .fails(3);
    assert!(fat.contains("c.img"), "{fat}");
}
