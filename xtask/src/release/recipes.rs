//! Recipes by which others install what was built: with its version and sums filled in.

use super::{Release, TARGETS};
use crate::run::{Step, root};
use anyhow::{Context, Result};

/// Fills `packaging/*.in` in: `@VERSION@`, and the sum of each archive as `@SHA256:TRIPLE@`. A
/// recipe that names an archive which was not built is left out, and said so.
pub(super) fn write(release: &Release) -> Result<()> {
    for recipe in super::files(&root().join("packaging"))? {
        let name = recipe.file_name().context("a recipe without a name")?;
        let name = name.to_string_lossy();
        let Some(plain) = name.strip_suffix(".in") else {
            continue;
        };
        let text = std::fs::read_to_string(&recipe)?;
        match filled(&text, release)? {
            Some(text) => std::fs::write(release.out.join(plain), text)?,
            None => println!("{plain}: left out, as not all archives that it names were built"),
        }
    }
    Ok(())
}

fn filled(text: &str, release: &Release) -> Result<Option<String>> {
    let mut text = text.replace("@VERSION@", &release.version);
    for target in TARGETS {
        let word = format!("@SHA256:{}@", target.triple);
        let archive = release
            .out
            .join(format!("{}.tar.gz", release.stem(*target)));
        if !text.contains(&word) {
            continue;
        }
        if !archive.is_file() {
            return Ok(None);
        }
        let sum = Step::new(&format!("sha256sum {}", archive.display())).output()?;
        let sum = sum.split_whitespace().next().context("no sum")?;
        text = text.replace(&word, sum);
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_without_its_archive_is_left_out() {
        let out = tempfile::tempdir().unwrap();
        let release = Release {
            version: "1.2.3".into(),
            time: 0,
            out: out.path().to_path_buf(),
            is_quick: true,
        };
        let text = "v@VERSION@ @SHA256:x86_64-unknown-linux-musl@";
        assert_eq!(filled("v@VERSION@", &release).unwrap().unwrap(), "v1.2.3");
        assert_eq!(filled(text, &release).unwrap(), None);
        let archive = "volary-1.2.3-x86_64-unknown-linux-musl.tar.gz";
        std::fs::write(out.path().join(archive), "").unwrap();
        let filled = filled(text, &release).unwrap().unwrap();
        assert!(
            filled.starts_with("v1.2.3 e3b0c44298fc1c149afbf4c8996fb924"),
            "{filled}"
        );
    }
}
