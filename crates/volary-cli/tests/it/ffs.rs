//! Volumes of the Fast File System on the command line.

use crate::sandbox::Sandbox;
use std::process::Command;

/// A tree and an image of it in this format; none where no program makes one.
fn image(version: u32, order: &str) -> Option<Sandbox> {
    let sandbox = Sandbox::empty();
    std::fs::create_dir_all(sandbox.path("src/docs")).unwrap();
    sandbox.write("src/docs/words", b"words\n");
    std::os::unix::fs::symlink("docs/words", sandbox.path("src/link")).unwrap();
    let made = Command::new("makefs")
        .args(["-t", "ffs", "-s", "1m", "-B", order, "-o"])
        .arg(format!("version={version},bsize=4096,fsize=512"))
        .arg(sandbox.path("disk.img"))
        .arg(sandbox.path("src"))
        .output();
    match made {
        Ok(made) => {
            assert!(made.status.success(), "{made:?}");
            Some(sandbox)
        }
        Err(e) => {
            let ci = std::env::var("CI").as_deref() == Ok("true");
            assert!(!ci, "makefs is missing: apt-get install makefs");
            println!("skipped: makefs: {e}");
            None
        }
    }
}

#[test]
fn an_ffs_volume_can_be_looked_at_copied_and_checked() {
    for (version, order, words) in [(1, "le", "little"), (1, "be", "big"), (2, "le", "little")] {
        let Some(sandbox) = image(version, order) else {
            return;
        };
        assert_eq!(sandbox.run("ls disk.img").ok(), "docs\nlink\n");
        assert_eq!(sandbox.run("cat disk.img:/link").ok(), "words\n");
        sandbox.run("cp -r disk.img:/ copy").ok();
        assert_eq!(sandbox.read("copy/docs/words"), b"words\n");
        let link = std::fs::read_link(sandbox.path("copy/link")).unwrap();
        assert_eq!(link.to_str(), Some("docs/words"));
        let info = sandbox.run("info disk.img").ok();
        assert!(info.contains(&format!("UFS{version}")), "{info}");
        assert!(info.contains(&format!("{words}-endian")), "{info}");
        let checked = sandbox.run("fsck -n disk.img").ok();
        assert!(checked.contains("clean"), "{checked}");
        let dumped = sandbox.run("dump disk.img directory 2").ok();
        assert!(dumped.contains("\"docs\""), "{dumped}");
        let listed = sandbox.run("dump disk.img superblocks").ok();
        assert!(listed.contains("good"), "{listed}");
        sandbox.run("map disk.img").ok();
        sandbox.run("cp disk.img:/docs/words mem:/").ok();
    }
}

#[test]
fn an_ffs_volume_takes_no_changes_and_is_not_made() {
    let Some(sandbox) = image(2, "be") else {
        return;
    };
    let told = sandbox.run("rm disk.img:/link").fails(1);
    assert!(told.contains("read-only"), "{told}");
    let told = sandbox.run("mkfs -t ffs2 --size 8M new.img").fails(1);
    assert!(told.contains("makefs or newfs"), "{told}");
    assert!(!sandbox.path("new.img").exists());
}
