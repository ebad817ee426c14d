//! Everything: the gate, oracles, real mounts, suites, fuzzing.

use crate::run::{Step, root};
use crate::{check, tools};
use anyhow::Result;

/// What CI runs. The suites of others take longer than that should: they have
/// a command of their own, and are in the soak.
pub(crate) fn everything(install: bool) -> Result<()> {
    if install {
        tools::install()?;
    }
    check::gate()?;
    integration("")?;
    eprintln!("\nall steps passed");
    Ok(())
}

/// The tests in each crate's `tests/`: oracles, crash states, real mounts.
fn integration(seqs: &str) -> Result<()> {
    let mut step = Step::new("cargo test --workspace --profile soak --test *");
    if !seqs.is_empty() {
        step = step.env("VOLARY_SEQS", seqs);
    }
    step.run()
}

/// pjdfstest and fsx on real mounts.
pub(crate) fn suites() -> Result<()> {
    tools::install()?;
    tools::install_suites()?;
    let bin = tools::cargo_root().join("bin");
    let path = std::env::var("PATH").unwrap_or_default();
    Step::new("cargo test --package volary-fuse --profile soak --test it suites")
        .env("VOLARY_SUITES", "1")
        .env("PATH", &format!("{}:{path}", bin.display()))
        .run()
}

/// The long runs.
pub(crate) fn soak() -> Result<()> {
    tools::install()?;
    integration("2000")?;
    suites()
}

/// One fuzz target.
pub(crate) fn fuzz(target: &str, runs: &str) -> Result<()> {
    Step::new(&format!("./run {target} {runs}"))
        .within(&root().join("fuzz"))
        .run()
}
