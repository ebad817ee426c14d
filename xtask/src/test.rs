//! Everything: the gate, oracles, real mounts, suites, fuzzing.

use crate::harness::Harness;
use crate::run::{Step, root};
use crate::{check, deps, features, ports, python, rustc, tools};
use anyhow::Result;

/// All targets: unit and integration tests to run, programs and examples to lint. Built once.
const TESTS: &str = "--workspace --profile gate --lib --bins --tests --examples";
/// Those that need more than a unit's, as soaks run them.
const SOAK: &str = "--workspace --profile soak --test *";

/// What CI runs.
pub(crate) fn everything(install: bool) -> Result<()> {
    check::format()?;
    let tests = with_suites(Harness::new(TESTS).linted().with("", &[]));
    let programs = std::thread::scope(|scope| {
        let tools = scope.spawn(|| if install { all_tools() } else { Ok(()) });
        let programs = tests.build();
        let tools = tools.join();
        tools.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        programs
    })?;
    tests.run_beside(&programs, || {
        deps::check()?;
        rustc::wrap(check::examples("gate"))?.run()?;
        features::check("gate")?;
        ports::check("gate", install)?;
        python::check("gate")
    })?;
    eprintln!("\nall steps passed");
    Ok(())
}

/// Installs what judges volary, and what the suites need. Our own build needs none of it, so both
/// go on at once.
fn all_tools() -> Result<()> {
    tools::install()?;
    tools::install_suites()
}

/// Test suites of others, on real mounts and real servers.
pub(crate) fn suites() -> Result<()> {
    all_tools()?;
    with_suites(Harness::new(TESTS).linted()).run()
}

/// Adds the tests in modules named `suites`, which do nothing without the variable.
fn with_suites(tests: Harness) -> Harness {
    let bin = tools::cargo_root().join("bin");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", bin.display());
    tests.with("suites", &[("VOLARY_SUITES", "1"), ("PATH", &path)])
}

/// The long runs.
pub(crate) fn soak() -> Result<()> {
    all_tools()?;
    let tests = Harness::new(SOAK).with("", &[("VOLARY_SEQS", "2000")]);
    with_suites(tests).run()
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
