//! The static binaries.

use super::{Release, Target};
use crate::run::{Step, root};
use crate::tools;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// Builds the command for a target, against musl. C is compiled by zig, which has the headers and
/// libraries of every target; nothing of this machine is needed, and none of its paths are kept.
pub(super) fn build(target: Target, release: &Release) -> Result<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let bin = tools::python_bin("");
    let dir = root().join("target/dist");
    let mut step = Step::new(&format!(
        "cargo zigbuild --release --locked --target {} --target-dir {} -p volary-cli",
        target.triple,
        dir.display()
    ))
    .env("PATH", &format!("{}:{path}", bin.display()))
    .env("SOURCE_DATE_EPOCH", &release.time.to_string())
    .env("CARGO_INCREMENTAL", "0")
    .env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo")
    .env("CARGO_ENCODED_RUSTFLAGS", &rust_flags()?)
    .env("CFLAGS", &c_flags());
    if release.is_quick {
        step = step
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    }
    step.run()?;
    Ok(dir.join(target.triple).join("release/volary"))
}

/// Returns the flags that replace paths of this machine, divided as cargo wants them.
fn rust_flags() -> Result<String> {
    let home = std::env::var("HOME").context("HOME is not set")?;
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let flags = [(root().display().to_string(), "/volary"), (cargo, "/cargo")]
        .map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    Ok(flags.join("\u{1f}"))
}

/// Returns the flags that do so for C.
fn c_flags() -> String {
    format!("-ffile-prefix-map={}=/volary -g0", root().display())
}
