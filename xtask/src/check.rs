//! The quick gate.

use crate::harness::Harness;
use crate::run::Step;
use anyhow::Result;

/// fmt, clippy with warnings denied, unit tests, docs. Answers the tests that
/// failed at first and passed alone.
pub(crate) fn gate() -> Result<Vec<String>> {
    Step::new("cargo fmt --all --check").run()?;
    Step::new("cargo clippy --workspace --all-targets --quiet -- -D warnings").run()?;
    let forgiven = Harness::new("--workspace --lib --bins").run()?;
    Step::new("cargo test --workspace --doc --quiet").run()?;
    Step::new("cargo doc --workspace --no-deps --quiet")
        .env("RUSTDOCFLAGS", "-D warnings")
        .run()?;
    Ok(forgiven)
}
