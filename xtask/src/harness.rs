//! Runs test programs in lanes, and judges what failed.
//!
//! Programs that serve, mount and start clients wait more than they compute, so they
//! run beside those that only compute. A lane that has come to its end takes over some of those.
//!
//! A test that fails fails the run. It runs once more, alone, so that the report says whether it
//! depends on what ran beside it.

mod program;

use crate::run::{Step, root};
use crate::rustc;
use anyhow::{Result, bail};
pub(crate) use program::Program;
use program::{Choice, Outcome};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How many failed tests are run again.
const AGAIN: usize = 12;

/// The package of the command.
const COMMAND: &str = "volary-cli";
/// Packages whose tests wait for servers, mounts and clients.
const WAITING: &[&str] = &[
    COMMAND,
    "volary-fuse",
    "volary-nfs",
    "volary-nfs-client",
    "volary-smb",
];

/// Packages whose tests take longest, the longest first. They come before all others: last, one of
/// them would end alone, on one processor.
const LONGEST: &[&str] = &["volary", "volary-ffs", "volary-fat", "volary-host"];

/// Which tests to run, and with which variables.
pub(crate) struct Harness {
    /// What `cargo test` is told: packages, profile, kinds of targets.
    targets: String,
    /// The runs that each program gets, one after the other.
    choices: Vec<Choice>,
    /// Whether clippy and rustdoc check the crates as they are built.
    lints: bool,
}

/// One run of a program.
struct Job<'a> {
    program: &'a Program,
    choice: &'a Choice,
}

/// A test that failed, or a program that died without saying which.
struct Failure<'a> {
    job: Job<'a>,
    test: Option<String>,
}

impl Harness {
    /// Returns the tests of these targets; none until [`with`](Self::with) is called.
    pub(crate) fn new(targets: &str) -> Self {
        Self {
            targets: targets.to_owned(),
            choices: Vec::new(),
            lints: false,
        }
    }

    /// Has clippy and rustdoc check the crates as they are built.
    pub(crate) fn linted(mut self) -> Self {
        self.lints = true;
        self
    }

    /// Adds a run of each program: of the tests with `filter` in their names (all if it is
    /// empty), with these variables.
    pub(crate) fn with(mut self, filter: &str, variables: &[(&str, &str)]) -> Self {
        let arguments = Some(filter).filter(|word| !word.is_empty());
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        self.choices.push(Choice {
            arguments: arguments.into_iter().map(str::to_owned).collect(),
            variables: variables.iter().map(owned).collect(),
        });
        self
    }

    /// Runs these programs while `other` runs on this thread.
    ///
    /// Fails if `other` fails, or if a test failed; all tests have been run by then.
    pub(crate) fn run_beside(
        &self,
        programs: &[Program],
        other: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (tests, other) = std::thread::scope(|scope| {
            let tests = scope.spawn(|| self.judge(programs));
            let other = other();
            (tests.join(), other)
        });
        let judged = tests.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        other?;
        judged
    }

    /// Builds the programs and runs them; fails if one cannot be built, or if a test failed.
    pub(crate) fn run(&self) -> Result<()> {
        self.judge(&self.build()?)
    }

    /// Builds the programs and says where they are.
    pub(crate) fn build(&self) -> Result<Vec<Program>> {
        let line = format!(
            "cargo test {} --no-run --message-format=json-render-diagnostics",
            self.targets
        );
        let mut step = Step::new(&line);
        if self.lints {
            step = rustc::wrap(step)?;
        }
        let messages = step.output()?;
        let root = root();
        let built = messages.lines().map(|line| Program::built(line, &root));
        Ok(built.flatten().collect())
    }

    /// Runs these programs in lanes, then what failed alone.
    fn judge(&self, programs: &[Program]) -> Result<()> {
        let (lanes, computing) = self.lanes(programs);
        let computing = &Mutex::new(computing);
        let lanes = std::thread::scope(|scope| {
            let lanes = lanes.into_iter();
            let started: Vec<_> = lanes
                .map(|jobs| scope.spawn(move || lane(jobs, computing)))
                .collect();
            let ended = started.into_iter().map(|lane| lane.join());
            ended
                .map(|lane| lane.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Result<Vec<_>>>()
        })?;
        let failures: Vec<_> = lanes.into_iter().flatten().collect();
        if failures.is_empty() {
            return Ok(());
        }
        let mut listed = String::new();
        for (at, failure) in failures.iter().enumerate() {
            let alone = if at >= AGAIN {
                ""
            } else if failure.passes_alone()? {
                " (alone it passes)"
            } else {
                " (alone as well)"
            };
            listed += &format!("\n  {}{alone}", failure.name());
        }
        bail!("{} tests failed:{listed}", failures.len());
    }

    /// Lanes, and the jobs of the programs that compute, for whichever lane is free. For each choice
    /// the programs that wait have two lanes: the command's and the others' take about half the time
    /// each. One lane more has no jobs of its own.
    fn lanes<'a>(&'a self, programs: &'a [Program]) -> (Vec<Vec<Job<'a>>>, VecDeque<Job<'a>>) {
        let is_waiting = |program: &&Program| WAITING.contains(&program.package().as_str());
        let is_command = |program: &&Program| program.package() == COMMAND;
        let (waiting, mut computing): (Vec<_>, Vec<_>) = programs.iter().partition(is_waiting);
        let place = |program: &&Program| LONGEST.iter().position(|p| *p == program.package());
        computing.sort_by_key(|program| place(program).unwrap_or(LONGEST.len()));
        let (commands, servers): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_command);
        let jobs = |programs: &[&'a Program], choice: &'a Choice| {
            let jobs = programs.iter();
            jobs.map(|program| Job { program, choice })
                .collect::<Vec<_>>()
        };
        let all = self.choices.iter();
        let waiting = all.clone();
        let waiting = waiting.flat_map(|choice| [jobs(&commands, choice), jobs(&servers, choice)]);
        let mut lanes: Vec<_> = waiting.collect();
        lanes.push(Vec::new());
        let computing = all.flat_map(|choice| jobs(&computing, choice)).collect();
        (lanes, computing)
    }
}

/// Runs jobs one after the other, and then those that no lane has begun; what failed in them.
fn lane<'a>(jobs: Vec<Job<'a>>, more: &Mutex<VecDeque<Job<'a>>>) -> Result<Vec<Failure<'a>>> {
    let mut failures = Vec::new();
    let mut own = jobs.into_iter();
    let take = || {
        more.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    while let Some(job) = own.next().or_else(take) {
        let outcome = job.program.run(job.choice)?;
        show(job.program, job.choice, &outcome);
        if outcome.well {
            continue;
        }
        if outcome.failed.is_empty() {
            failures.push(Failure { job, test: None });
            continue;
        }
        failures.extend(outcome.failed.into_iter().map(|name| {
            let job = Job { ..job };
            let test = Some(name);
            Failure { job, test }
        }));
    }
    Ok(failures)
}

/// Prints what a program said, one program at a time.
fn show(program: &Program, choice: &Choice, outcome: &Outcome) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let (name, seconds) = (program.name(), outcome.took.as_secs());
    let computed = outcome.computed.as_secs();
    println!(
        "\n     Ran {name} {:?} in {seconds} s, computed for {computed} s",
        choice.arguments
    );
    for line in &outcome.lines {
        println!("{line}");
    }
}

impl Failure<'_> {
    /// Runs what failed once more, with nothing beside it.
    fn passes_alone(&self) -> Result<bool> {
        eprintln!("\nonce more, alone: {}", self.name());
        let mut choice = self.job.choice.clone();
        match &self.test {
            Some(test) => choice.arguments = vec!["--exact".to_owned(), test.clone()],
            None => choice.arguments.push("--test-threads=1".to_owned()),
        }
        let outcome = self.job.program.run(&choice)?;
        show(self.job.program, &choice, &outcome);
        Ok(outcome.well)
    }

    /// Returns the test's name with its package's.
    fn name(&self) -> String {
        match &self.test {
            Some(test) => format!("{} {test}", self.job.program.package()),
            None => format!("{} (died)", self.job.program.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    /// Returns a script that stands for a program with one test.
    fn script(dir: &Path, package: &str, body: &str) -> Program {
        let dir = dir.join(package);
        std::fs::create_dir(&dir).unwrap();
        let path = dir.join("it");
        // Written by another process: a child of this one that begins meanwhile would
        // have it open for writing, and nothing could run it.
        let text = format!("#!/bin/sh\necho run >> runs\n{body}\n");
        let write = ["-c", r#"printf %s "$1" > "$0" && chmod 755 "$0""#];
        let mut sh = Command::new("sh");
        let written = sh.args(write).arg(&path).arg(text).status().unwrap();
        assert!(written.success());
        Program { path, dir }
    }

    /// Returns what becomes of such a script, and how often it was run.
    fn verdict(body: &str) -> (Result<()>, usize) {
        let dir = tempfile::TempDir::new().unwrap();
        let harness = Harness::new("").with("", &[]);
        let answer = harness.judge(&[script(dir.path(), COMMAND, body)]);
        let runs = std::fs::read_to_string(dir.path().join("volary-cli/runs")).unwrap();
        (answer, runs.lines().count())
    }

    /// Returns a script in which the test of this name fails beside others and passes alone.
    fn passes_alone(test: &str) -> String {
        format!(
            r#"[ "$1" = --exact ] && [ "$2" = {test} ] || {{ printf 'failures:\n    {test}\n'; exit 101; }}"#
        )
    }

    #[test]
    fn a_test_that_passes_alone_fails_the_run_which_says_so() {
        let (answer, runs) = verdict(&passes_alone("waits::t"));
        let said = answer.unwrap_err().to_string();
        assert!(said.contains("waits::t (alone it passes)"), "{said}");
        assert_eq!(runs, 2);
    }

    #[test]
    fn a_test_that_fails_alone_fails_the_run() {
        let (answer, runs) = verdict(r"printf 'failures:\n    t\n'; exit 101");
        let said = answer.unwrap_err().to_string();
        assert!(said.contains(" t (alone as well)"), "{said}");
        assert_eq!(runs, 2);
    }

    #[test]
    fn a_program_that_dies_runs_again_as_a_whole() {
        let (answer, runs) = verdict(r#"[ "$1" = --test-threads=1 ] || kill -9 $$"#);
        assert!(answer.is_err());
        assert_eq!(runs, 2);
        let (answer, runs) = verdict("kill -9 $$");
        assert!(answer.is_err());
        assert_eq!(runs, 2);
    }

    #[test]
    fn what_passes_runs_once() {
        let (answer, runs) = verdict("exit 0");
        answer.unwrap();
        assert_eq!(runs, 1);
    }

    #[test]
    fn each_program_runs_once_whichever_lane_takes_it() {
        let dir = tempfile::TempDir::new().unwrap();
        let harness = Harness::new("").with("", &[]).with("suites", &[]);
        let packages = [
            "volary-core",
            "volary-ffs",
            COMMAND,
            "volary-nfs",
            "volary-fat",
        ];
        let programs = packages.map(|package| script(dir.path(), package, "exit 0"));
        harness.judge(&programs).unwrap();
        for package in packages {
            let runs = std::fs::read_to_string(dir.path().join(package).join("runs")).unwrap();
            assert_eq!(runs.lines().count(), 2, "{package}: one for each choice");
        }
    }

    #[test]
    fn a_child_left_behind_does_not_hold_the_run() {
        let (answer, runs) = verdict("sleep 60 & exit 0");
        answer.unwrap();
        assert_eq!(runs, 1);
    }
}
