//! Volumes of the Seventh Edition and of System V on the command line.

use crate::sandbox::{Sandbox, noise};

/// How each is made, and what it says of itself.
const WAYS: [(&str, &str); 4] = [
    ("-t v7 -o pack=root", "PDP-11"),
    ("-t v7 -o order=little,interleave=3/500", "little-endian"),
    ("-t sysv", "little-endian"),
    ("-t sysv -o order=big,block=2048", "big-endian"),
];

#[test]
fn volumes_of_old_unix_are_made_filled_checked_and_shown() {
    for (way, words) in WAYS {
        let sandbox = Sandbox::with_tree();
        sandbox.write("long", &noise(300_000));
        sandbox
            .run(&format!("mkfs -q {way} --label usr --size 4M disk.img"))
            .ok();
        for line in [
            "cp -r src/docs disk.img:/",
            "cp long disk.img:/docs/long",
            "mkdir disk.img:/new",
            "mv disk.img:/docs/words disk.img:/new/other",
            "ln disk.img:/docs/long disk.img:/again",
            "chmod 600 disk.img:/again",
            "rm disk.img:/docs/long",
        ] {
            sandbox.run(line).ok();
        }
        assert_eq!(sandbox.run("ls disk.img").ok(), "again\ndocs\nnew\n");
        assert_eq!(sandbox.run("cat disk.img:/new/other").ok(), "words\n");
        sandbox.run("cp disk.img:/again copy").ok();
        assert!(sandbox.read("copy") == sandbox.read("long"), "{way}");
        let summed = sandbox.run("bulk --sha256 disk.img:/").ok();
        assert_eq!(summed.lines().count(), 2, "{summed}");
        let info = sandbox.run("info disk.img").ok();
        assert!(info.contains(words) && info.contains("usr"), "{info}");
        let checked = sandbox.run("fsck -n disk.img").ok();
        assert!(checked.contains("clean"), "{checked}");
        sandbox.run("map disk.img").ok();
        let dumped = sandbox.run("dump disk.img directory 2").ok();
        assert!(dumped.contains("again"), "{dumped}");
        let linked = sandbox.run("ln -s docs disk.img:/link");
        assert_eq!(linked.code == 0, way.contains("sysv"), "{}", linked.err);
        let long = sandbox.run("mkdir disk.img:/a-name-that-is-too-long");
        assert_ne!(long.code, 0);
    }
}

#[test]
fn what_was_in_use_is_checked_before_it_takes_changes() {
    let sandbox = Sandbox::empty();
    sandbox.run("mkfs -q -t v7 --size 1M disk.img").ok();
    let mut image = sandbox.read("disk.img");
    image[512 + 412] = 1;
    sandbox.write("disk.img", &image);
    let told = sandbox.run("mkdir disk.img:/d").fails(1);
    assert!(
        told.contains("read-only: the volume was not cleanly left"),
        "{told}"
    );
    assert_eq!(sandbox.run("fsck -p disk.img").code, 1);
    sandbox.run("mkdir disk.img:/d").ok();
}
