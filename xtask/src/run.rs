//! Running other programs, loudly.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Returns the root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A command to run in the workspace's root, printed before it is run.
pub(crate) struct Step {
    command: Command,
    line: String,
}

impl Step {
    /// From one line of words; no quoting.
    pub(crate) fn new(line: &str) -> Self {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("true"));
        command.args(words).current_dir(root());
        Self {
            command,
            line: line.to_owned(),
        }
    }

    /// Sets a variable.
    pub(crate) fn env(mut self, key: &str, value: &str) -> Self {
        self.line = format!("{key}='{value}' {}", self.line);
        self.command.env(key, value);
        self
    }

    /// Runs in this folder.
    pub(crate) fn within(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Runs it; fails unless it exits with 0, and names the command.
    pub(crate) fn run(self) -> Result<()> {
        self.finish().map(|_| ())
    }

    /// Runs it like `run`; what it printed on its standard output.
    pub(crate) fn output(mut self) -> Result<String> {
        self.command.stdout(Stdio::piped());
        let output = self.finish()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn finish(mut self) -> Result<Output> {
        eprintln!("\n$ {}", self.line);
        let child = self.command.spawn();
        let output = child
            .and_then(Child::wait_with_output)
            .with_context(|| format!("cannot run: {}", self.line))?;
        if !output.status.success() {
            bail!("{}: {}", output.status, self.line);
        }
        Ok(output)
    }
}

/// Returns whether a program is found on PATH, `/sbin` and `/usr/sbin` included.
pub(crate) fn found(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    dirs.extend(["/sbin".into(), "/usr/sbin".into()]);
    dirs.iter().any(|dir| dir.join(program).is_file())
}
