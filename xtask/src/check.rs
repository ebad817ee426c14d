//! The quick gate.

use crate::harness::Harness;
use crate::run::Step;
use anyhow::Result;

/// fmt, clippy with warnings denied, unit tests, docs.
pub(crate) fn gate() -> Result<()> {
    format()?;
    let tests = Harness::new("--workspace --lib --bins").with("", &[]);
    tests.run()?;
    texts("dev")
}

/// The format of the code.
pub(crate) fn format() -> Result<()> {
    Step::new("cargo fmt --all --check").run()
}

/// What needs no test: lints, the examples in the docs, the docs. `profile` is the one
/// that the tests are built with, which has made the build scripts already.
pub(crate) fn texts(profile: &str) -> Result<()> {
    let lints = "cargo clippy --workspace --all-targets --quiet";
    Step::new(&format!("{lints} --profile {profile} -- -D warnings")).run()?;
    Step::new(&format!(
        "cargo test --workspace --doc --quiet --profile {profile}"
    ))
    .run()?;
    Step::new(&format!(
        "cargo doc --workspace --no-deps --quiet --profile {profile}"
    ))
    .env("RUSTDOCFLAGS", "-D warnings")
    .run()
}
