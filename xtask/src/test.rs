//! Everything: the gate, oracles, real mounts, suites, fuzzing.

use crate::run::{Step, root};
use crate::{check, tools};
use anyhow::Result;

/// What CI runs.
pub(crate) fn everything(install: bool) -> Result<()> {
    if install {
        tools::install()?;
        tools::install_suites()?;
    }
    check::gate()?;
    integration("")?;
    run_suites()?;
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

/// Test suites of others, on real mounts and real servers.
pub(crate) fn suites() -> Result<()> {
    tools::install()?;
    tools::install_suites()?;
    run_suites()
}

/// The tests in modules named `suites`, which do nothing without the variable.
fn run_suites() -> Result<()> {
    let bin = tools::cargo_root().join("bin");
    let path = std::env::var("PATH").unwrap_or_default();
    Step::new("cargo test --workspace --profile soak --test * suites")
        .env("VOLARY_SUITES", "1")
        .env("PATH", &format!("{}:{path}", bin.display()))
        .run()
}

/// The long runs.
pub(crate) fn soak() -> Result<()> {
    tools::install()?;
    tools::install_suites()?;
    integration("2000")?;
    run_suites()
}

/// One fuzz target.
pub(crate) fn fuzz(target: &str, runs: &str) -> Result<()> {
    Step::new(&format!("./run {target} {runs}"))
        .within(&root().join("fuzz"))
        .run()
}
