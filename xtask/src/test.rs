//! Everything: the gate, oracles, real mounts, suites, fuzzing.

use crate::harness::{self, Harness};
use crate::run::{Step, root};
use crate::{check, tools};
use anyhow::Result;

/// Where the tests are that need more than a unit's.
const TESTS: &str = "--workspace --profile soak --test *";

/// What CI runs.
pub(crate) fn everything(install: bool) -> Result<()> {
    if install {
        tools::install()?;
        tools::install_suites()?;
    }
    let mut forgiven = check::gate()?;
    forgiven.extend(integration("")?);
    forgiven.extend(run_suites()?);
    eprintln!("\nall steps passed");
    harness::warn(&forgiven);
    Ok(())
}

/// The tests in each crate's `tests/`: oracles, crash states, real mounts.
fn integration(seqs: &str) -> Result<Vec<String>> {
    let mut tests = Harness::new(TESTS);
    if !seqs.is_empty() {
        tests = tests.env("VOLARY_SEQS", seqs);
    }
    tests.run()
}

/// Test suites of others, on real mounts and real servers.
pub(crate) fn suites() -> Result<()> {
    tools::install()?;
    tools::install_suites()?;
    harness::warn(&run_suites()?);
    Ok(())
}

/// The tests in modules named `suites`, which do nothing without the variable.
fn run_suites() -> Result<Vec<String>> {
    let bin = tools::cargo_root().join("bin");
    let path = std::env::var("PATH").unwrap_or_default();
    Harness::new(TESTS)
        .only("suites")
        .env("VOLARY_SUITES", "1")
        .env("PATH", &format!("{}:{path}", bin.display()))
        .run()
}

/// The long runs.
pub(crate) fn soak() -> Result<()> {
    tools::install()?;
    tools::install_suites()?;
    let mut forgiven = integration("2000")?;
    forgiven.extend(run_suites()?);
    harness::warn(&forgiven);
    Ok(())
}

/// Clients of servers that are killed on the way, on each kind of volume.
pub(crate) fn soak_servers(minutes: &str) -> Result<()> {
    Step::new("cargo test --profile soak -p volary-cli --test soak -- --nocapture --test-threads 1")
        .env("VOLARY_SOAK", minutes)
        .run()
}

/// One fuzz target.
pub(crate) fn fuzz(target: &str, runs: &str) -> Result<()> {
    Step::new(&format!("./run {target} {runs}"))
        .within(&root().join("fuzz"))
        .run()
}
