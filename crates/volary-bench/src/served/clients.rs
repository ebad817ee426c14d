//! The programs that use the servers, and what they print.

use super::{PASSWORD, Place, USER};
use crate::measure::{Cost, Summary};
use crate::needs::{self, Lacks};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCES: [(&str, &str); 5] = [
    ("descriptors.h", include_str!("../../clients/descriptors.h")),
    ("phases.h", include_str!("../../clients/phases.h")),
    ("smb.c", include_str!("../../clients/smb.c")),
    ("nfs.c", include_str!("../../clients/nfs.c")),
    ("posix.c", include_str!("../../clients/posix.c")),
];

/// The compiled programs; what is not here to compile one is told when that is asked for.
pub(crate) struct Clients {
    smb: Result<PathBuf, Lacks>,
    nfs: Result<PathBuf, Lacks>,
    posix: Result<PathBuf, Lacks>,
}

impl Clients {
    /// # Errors
    /// If a client does not compile though all that it needs is here.
    pub(crate) fn compile(place: &Place) -> Result<Self> {
        let one = |name: &str, libraries: &[&str]| match compile(name, &place.path(name), libraries)
        {
            Ok(program) => Ok(Ok(program)),
            Err(e) => needs::lacking(e).map(|words| Err(Lacks::new(words))),
        };
        Ok(Self {
            smb: one("smb", &["smbclient"])?,
            nfs: one("nfs", &["libnfs"])?,
            posix: one("posix", &[])?,
        })
    }

    /// By SMB at a port, with the share's name.
    ///
    /// # Errors
    /// [`Lacks`].
    pub(crate) fn smb(&self, port: u16, share: &str) -> Result<Client> {
        let mut command = Command::new(self.smb.clone()?);
        command
            .arg(format!("smb://127.0.0.1/{share}"))
            .env("SMB_PORT", port.to_string())
            .env("SMB_USER", USER)
            .env("SMB_PASSWORD", PASSWORD);
        Ok(Client(command))
    }

    /// By NFS at its ports, with the export's path.
    ///
    /// # Errors
    /// [`Lacks`].
    pub(crate) fn nfs(&self, port: u16, mount_port: u16, export: &str) -> Result<Client> {
        let mut command = Command::new(self.nfs.clone()?);
        command.arg(format!(
            "nfs://127.0.0.1{export}?version=3&nfsport={port}&mountport={mount_port}"
        ));
        Ok(Client(command))
    }

    /// By system calls, on a mount or any directory.
    ///
    /// # Errors
    /// [`Lacks`].
    pub(crate) fn posix(&self, dir: &Path) -> Result<Client> {
        let mut command = Command::new(self.posix_program()?);
        command.arg(dir);
        Ok(Client(command))
    }

    /// Returns the program that makes system calls: to run it elsewhere.
    ///
    /// # Errors
    /// [`Lacks`].
    pub(crate) fn posix_program(&self) -> Result<&Path, Lacks> {
        self.posix.as_deref().map_err(Clone::clone)
    }
}

/// Costs of each phase, one for each round.
#[derive(Default)]
pub(crate) struct Phases(BTreeMap<String, Vec<Cost>>);

impl Phases {
    /// One more round.
    pub(crate) fn add(&mut self, costs: Vec<(String, f64)>) {
        for (phase, seconds) in costs {
            self.0.entry(phase).or_default().push(Cost {
                seconds,
                ..Cost::default()
            });
        }
    }

    /// # Errors
    /// If the client said nothing of that phase.
    pub(crate) fn of(&self, phase: &str) -> Result<Summary> {
        let all = self.0.get(phase);
        let all = all.with_context(|| format!("the client did not time {phase}"))?;
        Ok(Summary::of(all))
    }

    /// Returns the median of a phase, in seconds, if the client timed it.
    pub(crate) fn median(&self, phase: &str) -> Option<f64> {
        self.of(phase).ok().map(|all| all.median)
    }
}

/// A client program, told where its server is.
pub(crate) struct Client(Command);

impl Client {
    /// By system calls: one for whose files the kernel keeps nothing in memory.
    pub(crate) fn uncached(mut self) -> Self {
        self.0.env("POSIX_DIRECT", "1");
        self
    }

    /// Runs phases once and gives their seconds.
    ///
    /// # Errors
    /// What the client says.
    pub(crate) fn run(mut self, what: &[&str]) -> Result<Vec<(String, f64)>> {
        let run = self.0.args(what).stdin(Stdio::null()).output()?;
        if !run.status.success() {
            let said = String::from_utf8_lossy(&run.stderr);
            bail!("{:?}: {}", self.0, said.trim());
        }
        parse(&String::from_utf8_lossy(&run.stdout))
    }
}

/// Reads lines of a phase and its seconds.
///
/// # Errors
/// If a line is another one.
pub(crate) fn parse(text: &str) -> Result<Vec<(String, f64)>> {
    text.lines()
        .map(|line| {
            let (phase, seconds) = line.split_once(' ').context("a line without seconds")?;
            Ok((phase.to_owned(), seconds.parse()?))
        })
        .collect()
}

/// Compiles one of the clients, against libraries that `pkg-config` knows.
///
/// # Errors
/// [`Lacks`] without a compiler or a library; if it does not compile.
pub(crate) fn compile(name: &str, program: &Path, libraries: &[&str]) -> Result<PathBuf> {
    let sources = tempfile::tempdir()?;
    for (file, text) in SOURCES {
        fs::write(sources.path().join(file), text)?;
    }
    let source = sources.path().join(format!("{name}.c"));
    cc(&source, program, libraries)?;
    Ok(program.to_owned())
}

/// Returns what the compiler is to be told of libraries.
fn flags(libraries: &[&str]) -> Result<String> {
    if libraries.is_empty() {
        return Ok(String::new());
    }
    let mut config = Command::new("pkg-config");
    needs::program(&config)?;
    let flags = config
        .args(["--cflags", "--libs"])
        .args(libraries)
        .output()?;
    if !flags.status.success() {
        let words = format!(
            "no library {}: apt-get install libsmbclient-dev libnfs-dev libfuse3-dev",
            libraries.join(" ")
        );
        return Err(Lacks::new(words).into());
    }
    Ok(String::from_utf8_lossy(&flags.stdout).into_owned())
}

/// Compiles one file of C.
///
/// # Errors
/// As [`compile`].
pub(crate) fn cc(source: &Path, program: &Path, libraries: &[&str]) -> Result<()> {
    let flags = flags(libraries)?;
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-w", "-o"]).arg(program).arg(source);
    needs::program(&cc)?;
    if !cc.args(flags.split_whitespace()).status()?.success() {
        bail!("{} does not compile", source.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_a_phase_is_the_middle_round() {
        let mut phases = Phases::default();
        for seconds in ["3.0", "1.0", "2.0"] {
            phases.add(parse(&format!("create {seconds}\n")).unwrap());
        }
        assert!((phases.of("create").unwrap().median - 2.0).abs() < 1e-9);
        assert!(phases.of("stat").is_err());
        assert!(parse("create").is_err());
    }

    #[test]
    fn system_calls_time_every_phase() {
        let dir = tempfile::tempdir().unwrap();
        let program = compile("posix", &dir.path().join("posix"), &[]).unwrap();
        let posix = || {
            let mut command = Command::new(&program);
            command.arg(dir.path());
            Client(command)
        };
        let phases = |what: &[&str]| -> Vec<String> {
            let costs = posix().run(what).unwrap();
            costs.into_iter().map(|(phase, _)| phase).collect()
        };
        let peers = crate::peers::servers::PHASES.map(|(phase, _, _)| phase);
        assert_eq!(phases(&["peers", "3", "1"]), peers);
        assert_eq!(phases(&["large", "256"]).len(), 5);
        assert_eq!(phases(&["small"]).len(), 5);
        assert!(posix().run(&["huge"]).is_err());
        // The program itself is left.
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
