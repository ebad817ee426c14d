//! Archives: what a user unpacks anywhere.

use super::binary::{PLUGIN_HOST, Programs};
use super::{Papers, Release, SEMANTICS, SHELLS, Target, files, place, replace_dir};
use crate::run::{Step, root};
use anyhow::{Context, Result};
use std::path::Path;

/// Documents at the workspace's root that go with the command.
pub(super) const DOCUMENTS: &[&str] = &["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-MIT"];

/// Writes the archive of a target.
pub(super) fn write(
    target: Target,
    release: &Release,
    built: &Programs,
    papers: &Papers,
    stage: &Path,
) -> Result<()> {
    let stem = release.stem(target);
    let dir = stage.join(&stem);
    place(&built.volary, &dir.join("volary"), 0o755)?;
    place(&built.plugin_host, &dir.join(PLUGIN_HOST), 0o755)?;
    for page in files(&papers.man)? {
        let name = page.file_name().context("a page without a name")?;
        place(&page, &dir.join("man").join(name), 0o644)?;
    }
    for (_, file) in SHELLS {
        place(
            &papers.completions.join(file),
            &dir.join("completions").join(file),
            0o644,
        )?;
    }
    for document in DOCUMENTS {
        place(&root().join(document), &dir.join(document), 0o644)?;
    }
    place(&stage.join(SEMANTICS), &dir.join(SEMANTICS), 0o644)?;
    pack(&stem, release, stage)
}

/// Packs a directory of the stage: names in order, one time, no owner.
fn pack(stem: &str, release: &Release, stage: &Path) -> Result<()> {
    let tar = stage.join(format!("{stem}.tar"));
    let line = format!(
        "tar --create --file {} --format=ustar --sort=name --mtime=@{} --owner=0 --group=0 --numeric-owner {stem}",
        tar.display(),
        release.time
    );
    Step::new(&line).within(stage).run()?;
    Step::new(&format!("gzip --no-name --best {}", tar.display())).run()?;
    let name = format!("{stem}.tar.gz");
    place(&stage.join(&name), &release.out.join(&name), 0o644)?;
    replace_dir(&stage.join(stem))
}
