//! ISO 9660 images on the command line.

use crate::sandbox::Sandbox;
use volary_testkit::oracle::{self, GENISOIMAGE};

/// Returns a tree and an image of it; none where no program makes one.
fn image() -> Option<Sandbox> {
    if !oracle::have(&[GENISOIMAGE]) {
        return None;
    }
    let sandbox = Sandbox::with_tree();
    let made = GENISOIMAGE
        .command()
        .args(["-quiet", "-R", "-J", "-V", "LABEL", "-o"])
        .arg(sandbox.path("disc.iso"))
        .arg(sandbox.path("src"))
        .output();
    let made = made.unwrap();
    assert!(made.status.success(), "{made:?}");
    Some(sandbox)
}

#[test]
fn an_image_can_be_looked_at_copied_and_checked() {
    let Some(sandbox) = image() else { return };
    assert_eq!(sandbox.run("ls disc.iso").ok(), "docs\nlink\n");
    assert_eq!(sandbox.run("cat disc.iso:/link").ok(), "words\n");
    let tree = sandbox.run("tree disc.iso").ok();
    assert!(tree.contains("link -> docs/words"), "{tree}");
    sandbox.run("cp -r disc.iso:/ copy").ok();
    assert_eq!(sandbox.read("copy/docs/words"), b"words\n");
    let link = std::fs::read_link(sandbox.path("copy/link")).unwrap();
    assert_eq!(link.to_str(), Some("docs/words"));
    let info = sandbox.run("info disc.iso").ok();
    assert!(
        info.contains("LABEL") && info.contains("RRIP_1991A"),
        "{info}"
    );
    let checked = sandbox.run("fsck -n disc.iso").ok();
    assert!(checked.contains("clean"), "{checked}");
    let dumped = sandbox.run("dump disc.iso directory").ok();
    assert!(dumped.contains("DOCS") && dumped.contains("PX"), "{dumped}");
    sandbox.run("map disc.iso").ok();
    let joliet = sandbox.run("ls -o names=joliet disc.iso").ok();
    // It has no symlinks.
    assert_eq!(joliet, "docs\nlink\n");
    sandbox.run("cp disc.iso:/docs/words mem:/").ok();
}

#[test]
fn an_image_takes_no_changes_and_is_not_made() {
    let Some(sandbox) = image() else { return };
    let told = sandbox.run("rm disc.iso:/link").fails(1);
    assert!(told.contains("read-only"), "{told}");
    let told = sandbox.run("mkfs -t iso9660 --size 8M new.iso").fails(1);
    assert!(told.contains("xorriso or genisoimage"), "{told}");
    assert!(!sandbox.path("new.iso").exists());
}
