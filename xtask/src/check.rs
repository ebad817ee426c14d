//! The quick gate.

use crate::features;
use crate::harness::Harness;
use crate::run::Step;
use anyhow::Result;

/// Runs the quick gate: fmt, clippy with warnings denied, unit tests, the library's features, docs.
pub(crate) fn gate() -> Result<()> {
    format()?;
    let tests = Harness::new("--workspace --lib --bins").with("", &[]);
    tests.run()?;
    Step::new("cargo clippy --workspace --all-targets --quiet -- -D warnings").run()?;
    examples("dev").run()?;
    features::check("dev")?;
    let docs = Step::new("cargo doc --workspace --no-deps --quiet");
    docs.env("RUSTDOCFLAGS", "-D warnings").run()
}

/// The house rules, with their figures. A rule that is broken says where.
pub(crate) fn tidy() -> Result<()> {
    let tests = "tidy:: --nocapture --test-threads 1";
    Step::new(&format!("cargo test --quiet --package xtask -- {tests}")).run()
}

/// The format of the code.
pub(crate) fn format() -> Result<()> {
    Step::new("cargo fmt --all --check").run()
}

/// Returns the step that runs the doctests. Give it the profile of the other tests: it reuses their build.
pub(crate) fn examples(profile: &str) -> Step {
    Step::new(&format!(
        "cargo test --workspace --doc --quiet --profile {profile}"
    ))
}
