//! Wheels: what `pip install volary` takes. One for each target and C library, for every Python from
//! the oldest that the package names.

use super::{Release, Target};
use crate::run::{Step, root};
use crate::tools;
use anyhow::Result;

/// C libraries that Pythons for Linux are built against, by the targets of a processor.
const LIBRARIES: &[(&str, &str)] = &[("gnu", "manylinux_2_17"), ("musl", "musllinux_1_2")];

/// Writes the wheels for the processor of a target.
pub(super) fn write(target: Target, release: &Release) -> Result<()> {
    let maturin = tools::python_bin("maturin");
    let path = std::env::var("PATH").unwrap_or_default();
    let bin = tools::python_bin("");
    for (library, platform) in LIBRARIES {
        let triple = target.triple.replace("-musl", &format!("-{library}"));
        let line = format!(
            "{} build --quiet --release --locked --strip --zig --compatibility {platform} --target {triple} \
             --manifest-path python/Cargo.toml --target-dir {} --out {}",
            maturin.display(),
            root().join("target/dist").display(),
            release.out.display()
        );
        super::binary::with_flags(Step::new(&line), release)?
            .env("PATH", &format!("{}:{path}", bin.display()))
            .run()?;
    }
    Ok(())
}

/// Returns the target that wheels are built for besides the release's own.
pub(super) fn other_triple(target: Target) -> String {
    target.triple.replace("-musl", "-gnu")
}
