//! What was packed, tried as its user has it: unpacked, with nothing of the workspace.

use super::{Release, Target};
use crate::run::{Step, root};
use anyhow::{Result, ensure};
use std::path::Path;

/// Unpacks the archive of a target and runs what is in it: makes and checks a volume, and lists one of
/// a plug-in, which a static program cannot load by itself. A target of another processor is left out.
pub(super) fn run(target: Target, release: &Release, stage: &Path) -> Result<()> {
    if !target.triple.starts_with(std::env::consts::ARCH) {
        println!(
            "{}: not tried, as it runs on another processor",
            target.triple
        );
        return Ok(());
    }
    let dir = stage.join("trial");
    super::replace_dir(&dir)?;
    let stem = release.stem(target);
    let archive = release.out.join(format!("{stem}.tar.gz"));
    let unpack = format!("tar --extract --gzip --file {}", archive.display());
    Step::new(&unpack).within(&dir).run()?;
    let volary = dir.join(stem).join("volary");
    let volary = volary.display();
    let run = |words: &str| {
        Step::new(&format!("{volary} {words}"))
            .within(&dir)
            .output()
    };
    let told = run("--version")?;
    let expected = format!("volary {}", release.version);
    ensure!(
        told.trim() == expected,
        "it says '{}', not '{expected}'",
        told.trim()
    );
    run("mkfs --quiet --type fat32 --size 64M disk.img")?;
    run("fsck -n disk.img")?;
    let plugin = root().join("crates/volary-plugin/include");
    let hello = root().join("examples/plugins/hello.c");
    Step::new(&format!(
        "cc -shared -fPIC -I {} -o libhello.so {}",
        plugin.display(),
        hello.display()
    ))
    .within(&dir)
    .run()?;
    let listed = run("ls --plugin ./libhello.so plugin:hello")?;
    ensure!(listed.trim() == "hello.txt", "the plug-in lists '{listed}'");
    Ok(())
}
