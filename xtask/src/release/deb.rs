//! Debian packages. The command is static: a package runs on every Debian and its kin.

use super::archive::DOCUMENTS;
use super::binary::{PLUGIN_HOST, Programs};
use super::{Papers, Release, SEMANTICS, Target, files, place, replace_dir};
use crate::run::{Step, root};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Where a shell looks for completions of `volary`, and the file of [`Papers`] that goes there.
const COMPLETIONS: &[(&str, &str)] = &[
    (
        "volary.bash",
        "usr/share/bash-completion/completions/volary",
    ),
    ("_volary", "usr/share/zsh/vendor-completions/_volary"),
    (
        "volary.fish",
        "usr/share/fish/vendor_completions.d/volary.fish",
    ),
];

const DOCS: &str = "usr/share/doc/volary";

/// Writes the package of a target.
pub(super) fn write(
    target: Target,
    release: &Release,
    built: &Programs,
    papers: &Papers,
    stage: &Path,
) -> Result<()> {
    let dir = stage.join("deb");
    replace_dir(&dir)?;
    place(&built.volary, &dir.join("usr/bin/volary"), 0o755)?;
    let libexec = dir.join("usr/libexec/volary");
    place(&built.plugin_host, &libexec.join(PLUGIN_HOST), 0o755)?;
    for (file, to) in COMPLETIONS {
        place(&papers.completions.join(file), &dir.join(to), 0o644)?;
    }
    for page in files(&papers.man)? {
        let name = page.file_name().context("a page without a name")?;
        let to = dir.join("usr/share/man/man1").join(name);
        place(&page, &to, 0o644)?;
        zip(&to)?;
    }
    for document in DOCUMENTS {
        place(
            &root().join(document),
            &dir.join(DOCS).join(document),
            0o644,
        )?;
    }
    place(
        &stage.join(SEMANTICS),
        &dir.join(DOCS).join(SEMANTICS),
        0o644,
    )?;
    let changes = dir.join(DOCS).join("CHANGELOG.md");
    std::fs::rename(&changes, dir.join(DOCS).join("changelog"))?;
    zip(&dir.join(DOCS).join("changelog"))?;
    std::fs::rename(
        dir.join(DOCS).join("LICENSE-MIT"),
        dir.join(DOCS).join("copyright"),
    )?;
    describe(target, release, &dir)?;
    let name = format!("volary_{}_{}.deb", release.version, target.debian);
    let line = format!(
        "dpkg-deb --root-owner-group --build -Zxz {} {}",
        dir.display(),
        release.out.join(name).display()
    );
    Step::new(&line)
        .env("SOURCE_DATE_EPOCH", &release.time.to_string())
        .run()
}

/// Compresses a file in place, without its time.
fn zip(path: &Path) -> Result<()> {
    Step::new(&format!("gzip --no-name --best {}", path.display())).run()
}

/// Writes what dpkg reads: the package's description, and the sums of its files.
fn describe(target: Target, release: &Release, dir: &Path) -> Result<()> {
    let paths = below(dir)?;
    let mut size = 0;
    for path in &paths {
        size += path.metadata()?.len().div_ceil(1024);
    }
    let control = dir.join("DEBIAN/control");
    std::fs::create_dir_all(dir.join("DEBIAN"))?;
    std::fs::write(&control, control_file(target, release, size))?;
    let mut sums = String::new();
    for path in paths {
        let name = path.strip_prefix(dir)?;
        let line = format!("md5sum {}", name.display());
        sums += &Step::new(&line).within(dir).output()?;
    }
    Ok(std::fs::write(dir.join("DEBIAN/md5sums"), sums)?)
}

fn control_file(target: Target, release: &Release, size: u64) -> String {
    let mut text = String::new();
    let fields = [
        ("Package", "volary".into()),
        ("Version", release.version.clone()),
        ("Architecture", target.debian.into()),
        (
            "Maintainer",
            "The volary authors <volary@users.noreply.github.com>".into(),
        ),
        ("Installed-Size", size.to_string()),
        // Only what runs plug-ins needs it.
        ("Depends", "libc6 (>= 2.17)".into()),
        // What `volary mount` needs of others, as no root.
        ("Recommends", "fuse3".into()),
        ("Section", "otherosfs".into()),
        ("Priority", "optional".into()),
        ("Homepage", "https://github.com/volary/volary".into()),
        (
            "Description",
            "file systems in user space: any volume, any layer, any server\n \
             volary opens FAT, UFS, ext4, NTFS, ISO 9660 and other volumes, directories and NFS\n \
             exports, and serves them by FUSE, NFS and SMB. It makes, checks, repairs and tunes\n \
             volumes, and reads whole trees in the order of the disk."
                .into(),
        ),
    ];
    for (key, value) in fields {
        let _ = writeln!(text, "{key}: {value}");
    }
    text
}

/// Returns all files below a directory, in order.
fn below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in files(dir)? {
        match path.is_dir() {
            true => found.extend(below(&path)?),
            false => found.push(path),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dpkg_reads_what_a_package_says_of_itself() {
        let release = Release {
            version: "1.2.3".into(),
            time: 0,
            out: PathBuf::new(),
            is_quick: true,
        };
        let text = control_file(super::super::TARGETS[1], &release, 7);
        assert!(text.starts_with("Package: volary\nVersion: 1.2.3\nArchitecture: arm64\n"));
        let more = text
            .lines()
            .skip_while(|line| !line.starts_with("Description"));
        assert!(more.skip(1).all(|line| line.starts_with(' ')), "{text}");
    }
}
