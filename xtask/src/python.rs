//! The Python package: built, installed as its users install it, and tested.

use crate::run::{Step, root};
use crate::tools::{install_python_tests, python_tests_bin};
use anyhow::{Context, Result};
use std::fs;

/// Builds the wheel with this profile, installs it into a place of its own and runs its tests.
pub(crate) fn check(profile: &str) -> Result<()> {
    install_python_tests()?;
    let wheels = root().join("target/wheels").join(profile);
    // What was built before is not what is tested.
    if wheels.exists() {
        fs::remove_dir_all(&wheels).with_context(|| wheels.display().to_string())?;
    }
    let python = python_tests_bin("python3").display().to_string();
    let maturin = python_tests_bin("maturin").display().to_string();
    let out = wheels.display().to_string();
    Step::new(&format!(
        "{maturin} build --quiet --profile {profile} --auditwheel skip --interpreter {python} --out {out}"
    ))
    .within(&root().join("python"))
    .run()?;
    Step::new(&format!(
        "{python} -m pip install --quiet --no-index --no-deps --force-reinstall --find-links {out} volary"
    ))
    .run()?;
    // From a folder without the sources: what is installed is what is imported.
    Step::new(&format!("{python} -P -m pytest --quiet --timeout 120"))
        .within(&root().join("python/tests"))
        .run()
}
