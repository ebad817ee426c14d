//! The library with each of its features alone.

use crate::run::root;
use anyhow::{Context, Result, bail, ensure};
use std::process::Command;

/// Checks that `volary` builds without features and with each alone, without a warning.
///
/// # Errors
/// The first that does not, with what the compiler says.
pub(crate) fn check(profile: &str) -> Result<()> {
    let all = all()?;
    eprintln!(
        "\n$ cargo check -p volary, with each of {} features",
        all.len()
    );
    for feature in std::iter::once("").chain(all.iter().map(String::as_str)) {
        let line = format!(
            "check --quiet --lib --package volary --profile {profile} --no-default-features --features={feature}"
        );
        let words = cargo(&line)?.1;
        ensure!(
            words.is_empty(),
            "volary with the feature '{feature}':\n{words}"
        );
    }
    Ok(())
}

/// Returns the features' names but for those that are others together.
fn all() -> Result<Vec<String>> {
    let told = cargo("metadata --no-deps --format-version 1")?.0;
    let told: serde_json::Value = serde_json::from_str(&told)?;
    let packages = told["packages"].as_array().context("packages")?;
    let volary = packages.iter().find(|package| package["name"] == "volary");
    let features = volary.and_then(|package| package["features"].as_object());
    let names = features.context("features of volary")?.keys();
    let names = names.filter(|name| !matches!(name.as_str(), "default" | "full"));
    Ok(names.cloned().collect())
}

/// Runs cargo; returns what it prints: its output, and its warnings.
fn cargo(line: &str) -> Result<(String, String)> {
    let mut command = Command::new("cargo");
    command.args(line.split_whitespace()).current_dir(root());
    let done = command.output().context("cannot run cargo")?;
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    if !done.status.success() {
        bail!("cargo {line}:\n{words}");
    }
    Ok((String::from_utf8_lossy(&done.stdout).into_owned(), words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What README.md says.
    const FAT_CRATES: usize = 45;

    #[test]
    fn fat_alone_is_built_from_few_crates_and_no_c() {
        let line = "tree --package volary --no-default-features --features fat --edges normal,build --prefix none";
        let told = cargo(line).expect("cargo tree").0;
        let crates: BTreeSet<&str> = told
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert!(crates.contains("volary-fat"), "{told}");
        assert!(crates.len() < FAT_CRATES, "{} crates", crates.len());
        let is_c =
            |name: &&&str| **name == "cc" || name.ends_with("-sys") && **name != "linux-raw-sys";
        let c: Vec<&&str> = crates.iter().filter(is_c).collect();
        assert!(c.is_empty(), "{c:?}");
    }
}
