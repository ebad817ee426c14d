//! The quick gate.

use crate::run::Step;
use anyhow::Result;

/// fmt, clippy with warnings denied, unit tests, docs.
pub(crate) fn gate() -> Result<()> {
    Step::new("cargo fmt --all --check").run()?;
    Step::new("cargo clippy --workspace --all-targets --quiet -- -D warnings").run()?;
    Step::new("cargo test --workspace --lib --bins --quiet").run()?;
    Step::new("cargo test --workspace --doc --quiet").run()?;
    Step::new("cargo doc --workspace --no-deps --quiet")
        .env("RUSTDOCFLAGS", "-D warnings")
        .run()
}
