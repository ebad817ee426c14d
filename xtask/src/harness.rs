//! Runs test programs, and gives a test that failed a second chance, alone.
//!
//! Real mounts, servers and guests share the machine's few cores here. A test
//! that fails beside others and passes alone has a fault, mostly its own, and the
//! run names it at its end; it does not throw away what the others have shown. A
//! test that fails alone as well fails the run.

use crate::run::{Step, root};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How often a failed test is run alone before it counts as failed; a program that died
/// is run once more.
const CHANCES: u32 = 2;
/// How many failed tests are run again; more than that are no accident.
const FORGIVEN: usize = 12;
/// How long one program may take, all its tests together.
const PATIENCE: Duration = Duration::from_secs(25 * 60);
/// How long it may take to end after its last word.
const FAREWELL: Duration = Duration::from_secs(60);

/// Which tests to run, and with which variables.
pub(crate) struct Harness {
    /// What `cargo test` is told: packages, profile, kinds of targets.
    targets: String,
    /// Part of the names of the tests to run; all of them if empty.
    filter: String,
    variables: Vec<(String, String)>,
}

/// A program with tests in it.
struct Program {
    path: PathBuf,
    /// The folder of its package, in which it runs.
    dir: PathBuf,
}

/// A test that failed, or a program that died without saying which.
struct Failure<'a> {
    program: &'a Program,
    test: Option<String>,
}

impl Harness {
    /// The tests of these targets.
    pub(crate) fn new(targets: &str) -> Self {
        Self {
            targets: targets.to_owned(),
            filter: String::new(),
            variables: Vec::new(),
        }
    }

    /// Only those with this in their names.
    pub(crate) fn only(mut self, filter: &str) -> Self {
        filter.clone_into(&mut self.filter);
        self
    }

    /// Sets a variable for the tests.
    pub(crate) fn env(mut self, key: &str, value: &str) -> Self {
        self.variables.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Builds and runs them all, then those again that failed, one by one.
    ///
    /// Answers the names of those that failed first and passed then. Fails if
    /// they cannot be built, or if one failed each time; all have been run by then.
    pub(crate) fn run(&self) -> Result<Vec<String>> {
        self.judge(&self.build()?)
    }

    /// Runs these programs, as `run` says.
    fn judge(&self, programs: &[Program]) -> Result<Vec<String>> {
        let mut failures = Vec::new();
        for program in programs {
            failures.extend(self.first(program)?);
        }
        if failures.len() > FORGIVEN {
            bail!("{} tests failed:{}", failures.len(), listed(&failures));
        }
        let mut forgiven = Vec::new();
        let mut failed = Vec::new();
        for failure in failures {
            if self.again(&failure)? {
                forgiven.push(failure.name());
            } else {
                failed.push(failure);
            }
        }
        if !failed.is_empty() {
            bail!("failed, alone as well:{}", listed(&failed));
        }
        Ok(forgiven)
    }

    /// Builds the programs and says where they are.
    fn build(&self) -> Result<Vec<Program>> {
        let line = format!(
            "cargo test {} --no-run --message-format=json-render-diagnostics",
            self.targets
        );
        let messages = Step::new(&line).output()?;
        Ok(messages.lines().filter_map(program).collect())
    }

    /// Runs all of a program's tests; those that failed.
    fn first<'a>(&self, program: &'a Program) -> Result<Vec<Failure<'a>>> {
        let mut arguments = Vec::new();
        if !self.filter.is_empty() {
            arguments.push(self.filter.as_str());
        }
        let (well, failed) = self.execute(program, &arguments)?;
        if well {
            return Ok(Vec::new());
        }
        if failed.is_empty() {
            let test = None;
            return Ok(vec![Failure { program, test }]);
        }
        let failures = failed.into_iter().map(|name| {
            let test = Some(name);
            Failure { program, test }
        });
        Ok(failures.collect())
    }

    /// Runs what failed again, alone; whether it passed in the end.
    fn again(&self, failure: &Failure<'_>) -> Result<bool> {
        let (chances, arguments) = match &failure.test {
            Some(test) => (CHANCES, vec!["--exact", test]),
            None => (1, vec!["--test-threads=1", &self.filter]),
        };
        for _ in 0..chances {
            eprintln!("\nonce more, alone: {}", failure.name());
            if self.execute(failure.program, &arguments)?.0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs a program to its end, or to the end of patience; what it printed goes
    /// on to the standard output. The pair: whether it ended well, and what it says failed.
    fn execute(&self, program: &Program, arguments: &[&str]) -> Result<(bool, Vec<String>)> {
        eprintln!("\n     Running {} {arguments:?}", program.path.display());
        let mut child = Command::new(&program.path)
            .args(arguments.iter().filter(|word| !word.is_empty()))
            .current_dir(&program.dir)
            .env("CARGO_MANIFEST_DIR", &program.dir)
            .env("CARGO_PKG_NAME", program.package())
            .envs(self.variables.iter().map(|(key, value)| (key, value)))
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", program.path.display()))?;
        let lines = child.stdout.take().map(BufReader::new);
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            // Nobody listens any more if patience ended before the output did.
            let _ = tell.send(failed_tests(lines.into_iter().flat_map(shown)));
        });
        let failed = told.recv_timeout(PATIENCE).or_else(|_| {
            eprintln!("killed after {} s", PATIENCE.as_secs());
            child.kill().map(|()| Vec::new())
        })?;
        Ok((ended_well(child), failed))
    }
}

impl Program {
    /// The name of the package; its folder has the same.
    fn package(&self) -> String {
        let name = self.dir.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

impl Failure<'_> {
    /// The test's name with its package's.
    fn name(&self) -> String {
        let package = self.program.package();
        match &self.test {
            Some(test) => format!("{package} {test}"),
            None => format!("{package} {} (died)", self.program.path.display()),
        }
    }
}

/// Whether a program that has closed its output, or was killed, ended with 0. One that
/// waits in the kernel for a mount that nobody serves any more may not end at all.
fn ended_well(mut child: Child) -> bool {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        // Nobody listens any more if it took too long.
        let _ = tell.send(child.wait());
    });
    let status = told.recv_timeout(FAREWELL);
    status.is_ok_and(|status| status.is_ok_and(|status| status.success()))
}

/// Names the tests that failed beside others and passed alone, if there are any.
pub(crate) fn warn(forgiven: &[String]) {
    if forgiven.is_empty() {
        return;
    }
    eprintln!("\nwarning: failed beside other tests and passed alone; find out why:");
    for name in forgiven {
        eprintln!("  {name}");
    }
}

/// The program that a message of cargo's is about, if it has tests.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message.get("profile")?.get("test")? != &Value::Bool(true) {
        return None;
    }
    let path = PathBuf::from(message.get("executable")?.as_str()?);
    let manifest = Path::new(message.get("manifest_path")?.as_str()?);
    let dir = manifest.parent().unwrap_or(&root()).to_path_buf();
    Some(Program { path, dir })
}

/// The lines of a program, each printed as it is read.
fn shown(lines: impl BufRead) -> impl Iterator<Item = String> {
    let lines = lines.split(b'\n').map_while(Result::ok);
    lines.map(|line| {
        let line = String::from_utf8_lossy(&line).into_owned();
        println!("{line}");
        line
    })
}

/// The names in the last list of failures that a test program prints.
fn failed_tests(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut names = Vec::new();
    for line in lines {
        if line == "failures:" {
            names.clear();
        } else if let Some(name) = line.strip_prefix("    ") {
            names.extend(name.split_whitespace().next().map(str::to_owned));
        }
    }
    names
}

fn listed(failures: &[Failure<'_>]) -> String {
    let names = failures.iter().map(|f| format!("\n  {}", f.name()));
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script that stands for a program with one test, `t`.
    fn script(dir: &Path, body: &str) -> Program {
        let path = dir.join("it");
        // Written by another process: a child of this one that begins meanwhile would
        // have it open for writing, and nothing could run it.
        let text = format!("#!/bin/sh\necho run >> runs\n{body}\n");
        let write = ["-c", r#"printf %s "$1" > "$0" && chmod 755 "$0""#];
        let mut sh = Command::new("sh");
        assert!(
            sh.args(write)
                .arg(&path)
                .arg(text)
                .status()
                .unwrap()
                .success()
        );
        let dir = dir.to_path_buf();
        Program { path, dir }
    }

    /// What becomes of such a script, and how often it was run.
    fn verdict(body: &str) -> (Result<Vec<String>>, usize) {
        let dir = tempfile::TempDir::new().unwrap();
        let answer = Harness::new("").judge(&[script(dir.path(), body)]);
        let runs = std::fs::read_to_string(dir.path().join("runs")).unwrap();
        (answer, runs.lines().count())
    }

    #[test]
    fn a_test_that_passes_alone_is_forgiven_and_named() {
        let (answer, runs) = verdict(
            r#"[ "$1" = --exact ] && [ "$2" = t ] || { printf 'failures:\n    t\n'; exit 101; }"#,
        );
        assert_eq!((answer.unwrap().len(), runs), (1, 2));
    }

    #[test]
    fn a_test_that_fails_alone_fails_the_run() {
        let (answer, runs) = verdict(r"printf 'failures:\n    t\n'; exit 101");
        assert!(answer.unwrap_err().to_string().contains(" t"));
        assert_eq!(runs, 3);
    }

    #[test]
    fn a_program_that_dies_runs_again_as_a_whole() {
        let (answer, runs) = verdict(r#"[ "$1" = --test-threads=1 ] || kill -9 $$"#);
        assert_eq!((answer.unwrap().len(), runs), (1, 2));
        let (answer, runs) = verdict("kill -9 $$");
        assert!(answer.is_err());
        assert_eq!(runs, 2);
    }

    #[test]
    fn what_passes_runs_once() {
        let (answer, runs) = verdict("exit 0");
        assert_eq!((answer.unwrap().len(), runs), (0, 1));
    }

    #[test]
    fn reads_the_last_list_of_failures() {
        let text = "test a ... ok\ntest b::c ... FAILED\n\nfailures:\n\n---- b::c stdout ----\n    indented words\n\n\
            failures:\n    b::c\n    d - should panic\n\ntest result: FAILED. 1 passed; 2 failed\n";
        let names = failed_tests(text.lines().map(str::to_owned));
        assert_eq!(names, ["b::c", "d"]);
    }

    #[test]
    fn finds_no_failures_where_there_are_none() {
        let text = "test a ... ok\n\ntest result: ok. 1 passed\n";
        assert!(failed_tests(text.lines().map(str::to_owned)).is_empty());
    }

    #[test]
    fn takes_programs_with_tests_only() {
        let message = |test| {
            format!(
                r#"{{"executable":"/t/it-1","manifest_path":"/w/volary-x/Cargo.toml","profile":{{"test":{test}}}}}"#
            )
        };
        let found = program(&message("true")).unwrap();
        assert_eq!(
            (found.package().as_str(), found.path.to_str()),
            ("volary-x", Some("/t/it-1"))
        );
        assert!(program(&message("false")).is_none());
        assert!(program(r#"{"reason":"build-finished"}"#).is_none());
    }
}
