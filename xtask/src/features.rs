//! The library with each of its features alone.

use crate::run::root;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::process::Command;

/// Crates that a program is built from which reads and writes FAT images, at most.
const FAT_CRATES_MAX: usize = 45;

/// Checks that `volary` builds without features and with each alone, without a warning, and that `fat` takes few crates
/// and no C.
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
    few()
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

/// Counts what `fat` alone is built from.
fn few() -> Result<()> {
    let line = "tree --package volary --no-default-features --features fat --edges normal,build --prefix none";
    let told = cargo(line)?.0;
    let crates: BTreeSet<&str> = told
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let c: Vec<&&str> = crates
        .iter()
        .filter(|name| **name == "cc" || (name.ends_with("-sys") && **name != "linux-raw-sys"))
        .collect();
    ensure!(
        c.is_empty(),
        "volary with the feature fat compiles C: {c:?}"
    );
    let count = crates.len();
    ensure!(
        count <= FAT_CRATES_MAX,
        "volary with the feature fat is built from {count} crates, more than {FAT_CRATES_MAX}"
    );
    Ok(())
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
