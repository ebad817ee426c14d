//! Running a program or a piece of code, and how long it took.

use crate::needs;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

/// What one run cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Cost {
    /// Wall clock, in seconds.
    pub seconds: f64,
    /// Processor time of the program, its own and the host's for it, in
    /// seconds; 0 if unknown.
    pub cpu: f64,
    /// Most memory that the program had at one time, in bytes; 0 if unknown.
    pub peak: u64,
}

impl Cost {
    /// That of this and of what comes after it.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            seconds: self.seconds + next.seconds,
            cpu: self.cpu + next.cpu,
            peak: self.peak.max(next.peak),
        }
    }
}

/// Runs a program to its end, its output thrown away. Its peak is not known.
///
/// # Errors
/// If it is not installed, cannot be started, or ends with a code that `accept` does not list.
pub fn program(command: &mut Command, accept: &[i32]) -> Result<Cost> {
    let cost = run(command, accept)?;
    Ok(Cost { peak: 0, ..cost })
}

/// As [`program`], and finds the program's peak.
///
/// The host counts in the memory of whoever starts a program without a copy of
/// itself; so this starts it as a copy, which takes a little longer. What this
/// process has of memory at the time is the least that is found.
///
/// # Errors
/// As [`program`].
#[expect(unsafe_code, reason = "the one way to have a copy of the process made")]
pub fn program_with_peak(command: &mut Command, accept: &[i32]) -> Result<Cost> {
    // SAFETY: the closure does nothing.
    unsafe { command.pre_exec(|| Ok(())) };
    run(command, accept)
}

fn run(command: &mut Command, accept: &[i32]) -> Result<Cost> {
    needs::program(command)?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let name = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let (code, usage) = wait(child.id())?;
    let seconds = start.elapsed().as_secs_f64();
    if !accept.contains(&code) {
        bail!("{name} ended with {code}: {command:?}");
    }
    Ok(Cost {
        seconds,
        cpu: in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime),
        peak: u64::try_from(usage.ru_maxrss)? * 1024,
    })
}

fn in_seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

/// Waits for a child; its exit code (128 + signal) and what it used.
#[expect(unsafe_code, reason = "no safe wait4 that gives what it used")]
fn wait(pid: u32) -> Result<(i32, libc::rusage)> {
    let mut status = 0;
    let pid = libc::pid_t::try_from(pid)?;
    // SAFETY: rusage is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: pid is our child, not yet waited for; both pointers are to
    // locals that live through the call.
    let got = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    if got != pid {
        return Err(std::io::Error::last_os_error()).context("wait4");
    }
    let code = if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    };
    Ok((code, usage))
}

/// Where a benchmark puts what it makes, unless it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scratch {
    /// In memory, so that the programs are compared and not the disk.
    Memory,
    /// On a disk: in memory nothing is cold.
    Disk,
}

impl Scratch {
    /// Returns `base`, or the usual directory.
    pub fn dir(self, base: Option<&Path>) -> PathBuf {
        let usual = Path::new(match self {
            Self::Memory => "/dev/shm",
            Self::Disk => "/var/tmp",
        });
        match base {
            Some(base) => base.to_path_buf(),
            None if usual.is_dir() => usual.to_path_buf(),
            None => std::env::temp_dir(),
        }
    }

    /// Makes a folder in [`dir`](Self::dir).
    ///
    /// # Errors
    /// What the host says.
    pub fn make(self, base: Option<&Path>) -> Result<TempDir> {
        let mut builder = tempfile::Builder::new();
        Ok(builder.prefix("volary-bench").tempdir_in(self.dir(base))?)
    }
}

/// Times a piece of code in this process.
///
/// # Errors
/// What it says.
pub fn here(work: impl FnOnce() -> Result<()>) -> Result<Cost> {
    let start = Instant::now();
    work()?;
    Ok(Cost {
        seconds: start.elapsed().as_secs_f64(),
        ..Cost::default()
    })
}

/// What several runs cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Summary {
    /// The median of the times, in seconds.
    pub median: f64,
    /// The shortest and the longest.
    pub least: f64,
    /// See `least`.
    pub most: f64,
    /// The median of the processor times, in seconds; 0 if unknown.
    pub cpu: f64,
    /// The highest peak, in bytes; 0 if unknown.
    pub peak: u64,
}

impl Summary {
    /// Of these runs; all zeros if there are none.
    pub fn of(costs: &[Cost]) -> Self {
        let times = sorted(costs, |c| c.seconds);
        Self {
            median: middle(&times),
            least: times.first().copied().unwrap_or(0.0),
            most: times.last().copied().unwrap_or(0.0),
            cpu: middle(&sorted(costs, |c| c.cpu)),
            peak: costs.iter().map(|c| c.peak).max().unwrap_or(0),
        }
    }
}

fn sorted(costs: &[Cost], of: impl Fn(&Cost) -> f64) -> Vec<f64> {
    let mut all: Vec<f64> = costs.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    all
}

fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let cost = |seconds, peak| Cost {
            seconds,
            cpu: seconds / 2.0,
            peak,
        };
        let all = Summary::of(&[cost(3.0, 7), cost(1.0, 9), cost(2.0, 8)]);
        assert_eq!((all.median, all.least, all.most), (2.0, 1.0, 3.0));
        assert_eq!((all.cpu, all.peak), (1.0, 9));
        assert_eq!(Summary::of(&[]), Summary::default());
    }

    #[test]
    fn a_program_that_fails_is_an_error() {
        assert!(program(&mut Command::new("false"), &[0]).is_err());
        assert!(program(&mut Command::new("/nonexistent"), &[0]).is_err());
    }

    #[test]
    fn a_peak_is_that_of_the_program_and_not_of_this_one() {
        // Far more than what other tests may have in this process at the time.
        let held = vec![1_u8; 320 << 20];
        assert_eq!(held.iter().filter(|&&b| b == 1).count(), held.len());
        drop(held);
        let cost = program_with_peak(&mut Command::new("true"), &[0]).unwrap();
        assert!((1..256 << 20).contains(&cost.peak), "{}", cost.peak);
    }
}
