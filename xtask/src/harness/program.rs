//! One program with tests: runs it within bounds, and reads which of its tests failed.

use anyhow::{Context, Result};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::Value;
use std::io::{BufRead, BufReader, PipeReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long one program may take, all its tests together.
const PATIENCE: Duration = Duration::from_secs(20 * 60);
/// How long its output may stay open after it ended: a child that it left behind may hold it.
const FAREWELL: Duration = Duration::from_secs(3);

/// A program with tests in it.
pub(crate) struct Program {
    pub(super) path: PathBuf,
    /// The folder of its package, in which it runs.
    pub(super) dir: PathBuf,
}

/// What to run of a program, and how.
#[derive(Clone, Default)]
pub(super) struct Choice {
    /// What it is told.
    pub(super) arguments: Vec<String>,
    /// Set for it.
    pub(super) variables: Vec<(String, String)>,
}

/// What came of a run.
pub(super) struct Outcome {
    /// Whether it ended with 0.
    pub(super) well: bool,
    /// The tests that it says failed, or that had not ended when it was killed.
    pub(super) failed: Vec<String>,
    /// What it printed.
    pub(super) lines: Vec<String>,
    pub(super) took: Duration,
    /// What it and the programs that it waited for computed, all processors together.
    pub(super) computed: Duration,
}

impl Program {
    /// Returns the program that a message of cargo's is about, if it has tests.
    pub(super) fn built(message: &str, root: &Path) -> Option<Self> {
        let message: Value = serde_json::from_str(message).ok()?;
        if message.get("profile")?.get("test")? != &Value::Bool(true) {
            return None;
        }
        let path = PathBuf::from(message.get("executable")?.as_str()?);
        let manifest = Path::new(message.get("manifest_path")?.as_str()?);
        let dir = manifest.parent().unwrap_or(root).to_path_buf();
        Some(Self { path, dir })
    }

    /// Returns the name of the package; its folder has the same.
    pub(super) fn package(&self) -> String {
        let name = self.dir.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Returns the package and the target, as people name them.
    pub(super) fn name(&self) -> String {
        let file = self.path.file_name().unwrap_or_default().to_string_lossy();
        let target = file.rsplit_once('-').map_or(&*file, |(target, _)| target);
        format!("{} {target}", self.package())
    }

    /// Runs it to its end. Kills it, with what it started, after [`PATIENCE`], and says what it waited for.
    ///
    /// Fails if it cannot be started.
    pub(super) fn run(&self, choice: &Choice) -> Result<Outcome> {
        let started = now();
        let (output, input) = std::io::pipe()?;
        let child = Command::new(&self.path)
            .args(&choice.arguments)
            .current_dir(&self.dir)
            .env("CARGO_MANIFEST_DIR", &self.dir)
            .env("CARGO_PKG_NAME", self.package())
            .envs(choice.variables.iter().map(|(key, value)| (key, value)))
            .process_group(0)
            .stdout(input.try_clone()?)
            .stderr(input)
            .spawn()
            .with_context(|| format!("cannot run {}", self.path.display()))?;
        let printed = reader(output);
        let pid = child.id();
        let (status, computed) = wait(child);
        let mut lines = drained(&printed);
        let mut failed = failed_tests(&lines);
        if status.is_none() {
            failed = unfinished(&lines);
            lines.push(stuck(pid));
            lines.push(format!("killed after {} s", PATIENCE.as_secs()));
            kill_group(pid);
        }
        Ok(Outcome {
            well: status.is_some_and(|status| status.success()),
            failed,
            lines,
            took: started.elapsed(),
            computed,
        })
    }
}

/// Reads lines as they come.
fn reader(output: PipeReader) -> mpsc::Receiver<String> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    told
}

/// Returns what was printed until the last writer closed, or until [`FAREWELL`].
fn drained(printed: &mpsc::Receiver<String>) -> Vec<String> {
    let end = now() + FAREWELL;
    let mut lines = Vec::new();
    while let Ok(line) = printed.recv_timeout(end.saturating_duration_since(now())) {
        lines.push(line);
    }
    lines
}

/// Waits for the end; `None` after [`PATIENCE`]. With it, what the child and those that it waited
/// for computed.
fn wait(mut child: Child) -> (Option<ExitStatus>, Duration) {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let pid = Pid::from_child(&child);
        // Its entry in /proc stays until it is waited for without this flag.
        let flags = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let computed = match waitid(WaitId::Pid(pid), flags) {
            Ok(_) => computed(pid),
            Err(_) => Duration::ZERO,
        };
        // Nobody listens any more if it took too long.
        let _ = tell.send((child.wait().ok(), computed));
    });
    told.recv_timeout(PATIENCE).unwrap_or_default()
}

/// Processor time of a process and of those that it waited for, from `/proc/PID/stat` (proc(5)).
fn computed(pid: Pid) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let stat = stat.unwrap_or_default();
    // The name may hold spaces and parentheses; fields 14 to 17 are utime, stime, cutime, cstime.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = fields.split(' ').skip(11).take(4);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

/// Returns the time, which only bounds what runs and tells how long it took.
#[expect(clippy::disallowed_methods, reason = "other programs take real time")]
fn now() -> Instant {
    Instant::now()
}

/// Ends a program and all that it started in its group. Does not wait for it: one that waits
/// in the kernel for a mount that nobody serves may never end.
fn kill_group(pid: u32) {
    let group = format!("-{pid}");
    let killed = Command::new("kill").args(["-9", "--", &group]).status();
    if !killed.is_ok_and(|status| status.success()) {
        eprintln!("cannot kill the process group {pid}");
    }
}

/// Returns the threads of a process and where in the kernel each waits.
fn stuck(pid: u32) -> String {
    let mut text = format!("threads of {pid}:");
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    for task in tasks.into_iter().flatten().flatten() {
        let read = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let (name, place) = (read("comm"), read("wchan"));
        text += &format!("\n  {} in {place}", name.trim());
    }
    text
}

/// Returns the names in the last list of failures that a test program prints.
fn failed_tests(lines: &[String]) -> Vec<String> {
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

/// Returns the tests that ran for more than a minute and had not ended.
fn unfinished(lines: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in lines {
        let Some(rest) = line.strip_prefix("test ") else {
            continue;
        };
        let name = rest.split_whitespace().next().unwrap_or_default();
        if rest.contains("has been running for over") {
            names.push(name.to_owned());
        } else {
            names.retain(|known| known != name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn reads_the_last_list_of_failures() {
        let text = "test a ... ok\ntest b::c ... FAILED\n\nfailures:\n\n---- b::c stdout ----\n    indented words\n\n\
            failures:\n    b::c\n    d - should panic\n\ntest result: FAILED. 1 passed; 2 failed\n";
        assert_eq!(failed_tests(&lines(text)), ["b::c", "d"]);
    }

    #[test]
    fn finds_no_failures_where_there_are_none() {
        let text = "test a ... ok\n\ntest result: ok. 1 passed\n";
        assert!(failed_tests(&lines(text)).is_empty());
    }

    #[test]
    fn names_what_had_not_ended() {
        let text = "test a has been running for over 60 seconds\n\
            test b has been running for over 60 seconds\ntest a ... ok\n";
        assert_eq!(unfinished(&lines(text)), ["b"]);
    }

    #[test]
    fn takes_programs_with_tests_only() {
        let message = |test| {
            format!(
                r#"{{"executable":"/t/it-1","manifest_path":"/w/volary-x/Cargo.toml","profile":{{"test":{test}}}}}"#
            )
        };
        let root = Path::new("/w");
        let found = Program::built(&message("true"), root).unwrap();
        assert_eq!(
            (found.name().as_str(), found.path.to_str()),
            ("volary-x it", Some("/t/it-1"))
        );
        assert!(Program::built(&message("false"), root).is_none());
        assert!(Program::built(r#"{"reason":"build-finished"}"#, root).is_none());
    }
}
