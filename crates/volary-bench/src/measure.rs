//! Running a program or a piece of code, and how long it took.

use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What one run cost.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Cost {
    /// Wall clock, in seconds.
    pub seconds: f64,
    /// Most memory that the process had at one time, in bytes; 0 if unknown.
    pub peak: u64,
}

/// Runs a program to its end, its output thrown away.
///
/// # Errors
/// If it cannot be started, or ends with a code that `accept` does not list.
pub fn program(command: &mut Command, accept: &[i32]) -> Result<Cost> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let name = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let (code, peak) = wait(child.id())?;
    let seconds = start.elapsed().as_secs_f64();
    if !accept.contains(&code) {
        bail!("{name} ended with {code}: {command:?}");
    }
    Ok(Cost { seconds, peak })
}

/// Waits for a child; its exit code (128 + signal) and peak memory in bytes.
#[expect(unsafe_code, reason = "no safe wait4 that gives the peak")]
fn wait(pid: u32) -> Result<(i32, u64)> {
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
    Ok((code, u64::try_from(usage.ru_maxrss)? * 1024))
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
        peak: 0,
    })
}

/// The median by time, and the highest peak. Costs must not be empty.
pub fn median(costs: &mut [Cost]) -> Option<Cost> {
    costs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let peak = costs.iter().map(|c| c.peak).max()?;
    Some(Cost {
        seconds: costs.get(costs.len() / 2)?.seconds,
        peak,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let cost = |seconds| Cost { seconds, peak: 7 };
        let mut costs = [cost(3.0), cost(1.0), cost(2.0)];
        assert_eq!(median(&mut costs), Some(cost(2.0)));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn a_program_that_fails_is_an_error_and_one_that_runs_has_a_peak() {
        assert!(program(&mut Command::new("false"), &[0]).is_err());
        assert!(program(&mut Command::new("/nonexistent"), &[0]).is_err());
        assert!(program(&mut Command::new("true"), &[0]).unwrap().peak > 0);
    }
}
