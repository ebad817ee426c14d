//! Wraps the compiler for the crates of the workspace: lints and documents each one as it is compiled.
//!
//! `cargo clippy` and `cargo doc` would type-check all dependencies once more, a tenth of the whole run.

use crate::run::Step;
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages whose libraries' unit tests compute enough to pay for optimisation.
const COMPUTING: &[&str] = &["volary-cedar"];
/// Packages whose test programs run as long without: what computes is the library, and programs of others.
const WAITING: &[&str] = &["volary-ffs"];

/// Sets this program as the wrapper: cargo calls `PROGRAM RUSTC ARGUMENT...` for each crate of the workspace.
pub(crate) fn wrap(step: Step) -> Result<Step> {
    let here = std::env::current_exe().context("cannot find this program")?;
    let here = here.to_str().context("a path that is not UTF-8")?;
    Ok(step.env("RUSTC_WORKSPACE_WRAPPER", here))
}

/// Returns whether cargo calls the wrapper: the first argument is the path of the compiler.
pub(crate) fn is_wrapper_call(word: &str) -> bool {
    Path::new(word).file_name() == Some(OsStr::new("rustc"))
}

/// Compiles with clippy's lints, and then builds the docs unless it is a test. Treats warnings as errors.
/// Returns the exit code; the compiler has printed what is wrong.
///
/// Fails if a program is missing.
pub(crate) fn compile(rustc: &str, arguments: &[&str]) -> Result<i32> {
    let call = Call(arguments);
    // `clippy-driver` is rustc with more lints, installed beside it.
    let mut driver = Command::new(Path::new(rustc).with_file_name("clippy-driver"));
    let code = run(driver.arg(rustc).args(call.compiled()))?;
    match call.documented() {
        Some(documented) if code == 0 => {
            let mut rustdoc = Command::new(Path::new(rustc).with_file_name("rustdoc"));
            run(rustdoc.args(documented))
        }
        _ => Ok(code),
    }
}

/// Runs it; returns its exit code, 1 if a signal ended it.
fn run(command: &mut Command) -> Result<i32> {
    let program = command.get_program().to_owned();
    let status = command.status();
    let status = status.with_context(|| format!("cannot run {}", program.display()))?;
    Ok(status.code().unwrap_or(1))
}

/// The arguments of one call of the compiler.
struct Call<'a>(&'a [&'a str]);

impl<'a> Call<'a> {
    /// Returns the arguments for the compiler.
    fn compiled(&self) -> Vec<&'a str> {
        let mut told = Vec::new();
        let mut rest = self.0.iter();
        while let Some(&word) = rest.next() {
            let next = rest.clone().next();
            let optimised = next.is_some_and(|next| next.starts_with("opt-level="));
            if word == "-C" && optimised && self.is_small_test() {
                rest.next();
            } else {
                told.push(word);
            }
        }
        if self.value("--crate-name").is_some() {
            told.extend(["-D", "warnings"]);
        }
        told
    }

    /// Returns the arguments for rustdoc; a program is documented with its private items. `None` for a
    /// test, and for a query such as `-vV`.
    fn documented(&self) -> Option<Vec<String>> {
        let kind = self.value("--crate-type")?;
        if !["lib", "bin"].contains(&kind) {
            return None;
        }
        let deps = PathBuf::from(self.value("--out-dir")?);
        // A program and a library may have the same name.
        let docs = deps.join("../doc").join(kind);
        let mut told = Vec::new();
        let mut rest = self.0.iter();
        while let Some(&word) = rest.next() {
            if word == "--out-dir" {
                rest.next();
            } else if !word.starts_with("--emit") {
                told.push(word.to_owned());
            }
        }
        told.extend(["--out-dir".to_owned(), docs.to_str()?.to_owned()]);
        told.extend(["-D", "warnings"].map(str::to_owned));
        if kind == "bin" {
            told.push("--document-private-items".to_owned());
        }
        Some(told)
    }

    /// Returns whether this builds tests that take less time to run than to optimise.
    fn is_small_test(&self) -> bool {
        let is_source = |word: &&&str| word.ends_with(".rs");
        let source = self.0.iter().find(is_source).map_or("", |word| *word);
        let is_of = |packages: &[&str]| source.split('/').any(|part| packages.contains(&part));
        let is_small = match source.ends_with("src/lib.rs") {
            true => !is_of(COMPUTING),
            false => is_of(WAITING),
        };
        self.0.contains(&"--test") && is_small
    }

    /// Returns the argument after this one.
    fn value(&self, word: &str) -> Option<&'a str> {
        let at = self.0.iter().position(|&it| it == word)?;
        self.0.get(at + 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a call as cargo makes it.
    fn call(source: &'static str, kind: &'static [&'static str]) -> Vec<&'static str> {
        let start = ["--crate-name", "volary_x", "--edition=2024", source];
        let end = ["--emit=dep-info,link", "-C", "opt-level=3", "-C", "lto=off"];
        let out = ["--out-dir", "target/gate/deps"];
        [&start[..], kind, &end[..], &out[..]].concat()
    }

    #[test]
    fn a_library_is_compiled_as_told_and_documented() {
        let words = call("crates/x/src/lib.rs", &["--crate-type", "lib"]);
        let compiled = Call(&words).compiled();
        assert_eq!(compiled[..words.len()], words);
        assert_eq!(compiled[words.len()..], ["-D", "warnings"]);
        let documented = Call(&words).documented().unwrap();
        let place = ["--out-dir", "target/gate/deps/../doc/lib", "-D", "warnings"];
        assert_eq!(documented[documented.len() - 4..], place);
        assert!(!documented.iter().any(|word| word.starts_with("--emit")));
    }

    #[test]
    fn tests_are_not_optimised_but_for_those_that_compute() {
        for source in [
            "crates/x/src/lib.rs",
            "drivers/volary-ffs/tests/main/main.rs",
        ] {
            let words = call(source, &["--test"]);
            let compiled = Call(&words).compiled();
            assert!(!compiled.contains(&"opt-level=3"), "{compiled:?}");
            assert!(compiled.contains(&"lto=off"), "{compiled:?}");
            assert!(Call(&words).documented().is_none());
        }
        for source in [
            "drivers/volary-cedar/src/lib.rs",
            "crates/x/tests/main/main.rs",
        ] {
            let words = call(source, &["--test"]);
            assert!(Call(&words).compiled().contains(&"opt-level=3"));
        }
    }

    #[test]
    fn questions_of_cargo_pass_through() {
        assert!(is_wrapper_call("/toolchain/bin/rustc") && is_wrapper_call("rustc"));
        assert!(!is_wrapper_call("check"));
        assert_eq!(Call(&["-vV"]).compiled(), ["-vV"]);
        assert!(Call(&["-vV"]).documented().is_none());
    }
}
