//! The programs: the command, which is static, and what runs plug-ins for it.

use super::{Release, Target};
use crate::run::{Step, root};
use crate::tools;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// What was built for a target.
pub(super) struct Programs {
    pub(super) volary: PathBuf,
    /// A static program loads no libraries: this one does, of any Linux with glibc.
    pub(super) plugin_host: PathBuf,
}

/// The name of the program that runs plug-ins.
pub(super) const PLUGIN_HOST: &str = "volary-plugin-host";
/// The glibc that it needs, or a later one: as manylinux_2_17 has it.
const GLIBC: &str = "2.17";

/// Builds the programs for a target: the command against musl, its host of plug-ins against glibc.
///
/// C is compiled by zig, which has the headers and libraries of every target. Nothing of this machine is
/// needed, and none of its paths are kept.
pub(super) fn build(target: Target, release: &Release) -> Result<Programs> {
    let gnu = super::wheel::other_triple(target);
    let volary = zig_build(target.triple, "", "-p volary-cli", release)?;
    let host = format!("-p volary-plugin --bin {PLUGIN_HOST}");
    let plugin_host = zig_build(&gnu, &format!(".{GLIBC}"), &host, release)?;
    Ok(Programs {
        volary: volary.join("volary"),
        plugin_host: plugin_host.join(PLUGIN_HOST),
    })
}

/// Builds for a target, against a version of its C library; returns where the programs are.
fn zig_build(triple: &str, library: &str, what: &str, release: &Release) -> Result<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let bin = tools::python_bin("");
    let dir = root().join("target/dist");
    let step = Step::new(&format!(
        "cargo zigbuild --release --locked --target {triple}{library} --target-dir {} {what}",
        dir.display()
    ));
    with_flags(step, release)?
        .env("PATH", &format!("{}:{path}", bin.display()))
        .run()?;
    Ok(dir.join(triple).join("release"))
}

/// Adds what makes two builds of a commit alike, and, of a quick one, what makes it quick.
pub(super) fn with_flags(step: Step, release: &Release) -> Result<Step> {
    let step = step
        .env("SOURCE_DATE_EPOCH", &release.time.to_string())
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo")
        .env("CARGO_ENCODED_RUSTFLAGS", &rust_flags()?)
        .env("CFLAGS", &c_flags()?);
    if !release.is_quick {
        return Ok(step);
    }
    Ok(step
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"))
}

/// Returns the paths of this machine that what is built may name, and what it is to name instead.
fn renamed() -> Result<[(String, &'static str); 2]> {
    let home = std::env::var("HOME").context("HOME is not set")?;
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    Ok([(root().display().to_string(), "/volary"), (cargo, "/cargo")])
}

/// Returns the flags that do so, divided as cargo wants them.
fn rust_flags() -> Result<String> {
    let flags = renamed()?.map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    Ok(flags.join("\u{1f}"))
}

/// What C sees as the time when it is compiled: an allocator keeps it. The time of the commit would be
/// that of an earlier one in an object that was not compiled anew.
const NO_TIME: &str = "-Wno-builtin-macro-redefined -D__DATE__=\"none\" -D__TIME__=\"none\"";

/// Returns the flags that do so for C.
fn c_flags() -> Result<String> {
    let flags = renamed()?.map(|(from, to)| format!("-ffile-prefix-map={from}={to}"));
    Ok(format!("-g0 {NO_TIME} {}", flags.join(" ")))
}
