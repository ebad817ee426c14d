//! A machine that vmrun boots: its kernel has clients of NFS and SMB, which the host's may lack. It reaches this
//! process's loop-back as [`HOST`]. Its processor is emulated, so that its times can be compared with each other only.

use super::bound;
use crate::needs::Lacks;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What the guest calls this host.
pub(crate) const HOST: &str = "10.0.2.2";
/// Its memory in MiB: the host's programs run in it, and compile.
const MEMORY: &str = "1024";
/// Seconds that a script may take.
const PATIENCE: &str = "3000";
/// How often one is booted whose kernel dies before the script begins: an emulated one does, now and then.
const BOOTS: usize = 3;
/// What a script prints first.
const BEGUN: &str = "the script begins\n";
/// As vmrun says that the guest died, and that it has none to boot.
const DIED: i32 = 125;
const NOT_SET_UP: i32 = 126;

/// vmrun.
pub(crate) struct Guest {
    vmrun: PathBuf,
}

impl Guest {
    /// Finds vmrun in `$VOLARY_SHARED/tools/vmrun`, or else where programs are.
    ///
    /// # Errors
    /// [`Lacks`].
    pub(crate) fn find() -> Result<Self> {
        let shared = std::env::var_os("VOLARY_SHARED").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::among(shared.as_deref(), std::env::split_paths(&path))
    }

    fn among(shared: Option<&Path>, path: impl Iterator<Item = PathBuf>) -> Result<Self> {
        let given = shared.map(|dir| dir.join("tools/vmrun"));
        let found = given.into_iter().chain(path).map(|dir| dir.join("vmrun"));
        match found.into_iter().find(|program| program.is_file()) {
            Some(vmrun) => Ok(Self { vmrun }),
            None => Err(Lacks::new("no vmrun in $VOLARY_SHARED/tools/vmrun or $PATH").into()),
        }
    }

    /// Runs a script as root in a guest that has these files of the host in its `/root`, and gives what it prints.
    /// `goes_on` is asked now and then; its error ends the guest.
    ///
    /// # Errors
    /// [`Lacks`] if vmrun has no guest to boot; what was printed, if the script failed or took too long.
    pub(crate) fn run(
        &self,
        files: &[&Path],
        script: &str,
        dir: &Path,
        goes_on: &dyn Fn() -> Result<()>,
    ) -> Result<String> {
        let file = dir.join("guest.sh");
        std::fs::write(
            &file,
            format!("printf '{}'\n{script}", BEGUN.escape_default()),
        )?;
        let mut command = Command::new(&self.vmrun);
        // With two processors, emulation costs half as much again.
        command.args(["--smp", "1", "--mem", MEMORY, "--timeout", PATIENCE]);
        command.args(["--net", "--hostroot", "--script"]).arg(file);
        for file in files {
            command.arg("--file").arg(file);
        }
        for _ in 0..BOOTS {
            let (code, printed, said) = self.boot(&command, dir, goes_on)?;
            let begun = printed.strip_prefix(BEGUN);
            match (code, begun) {
                (Some(0), Some(printed)) => return Ok(printed.to_owned()),
                (Some(DIED), None) => {}
                (Some(NOT_SET_UP), _) => return Err(Lacks::new(said.trim()).into()),
                _ => bail!("in the guest: {}", tail(&format!("{printed}\n{said}"))),
            }
        }
        bail!("the guest died {BOOTS} times before its script began")
    }

    /// Runs vmrun once: its code, and what it printed.
    fn boot(
        &self,
        command: &Command,
        dir: &Path,
        goes_on: &dyn Fn() -> Result<()>,
    ) -> Result<(Option<i32>, String, String)> {
        let [out, err] = ["guest.out", "guest.err"].map(|name| dir.join(name));
        let mut bound = bound(command)?;
        bound.stdin(Stdio::null());
        bound.stdout(std::fs::File::create(&out)?);
        bound.stderr(std::fs::File::create(&err)?);
        let mut booted = Booted(bound.spawn()?);
        let status = loop {
            if let Some(status) = booted.0.try_wait()? {
                break status;
            }
            goes_on()?;
            std::thread::sleep(Duration::from_millis(50));
        };
        let text = |path: &Path| -> Result<String> {
            Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
        };
        Ok((status.code(), text(&out)?, text(&err)?))
    }
}

/// Returns the last lines.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let from = lines.len().saturating_sub(5);
    lines.get(from..).unwrap_or_default().join("; ")
}

/// vmrun as it runs; it is asked to end, and with it the guest, when this is dropped.
struct Booted(Child);

impl Drop for Booted {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            if let Some(pid) = rustix::process::Pid::from_raw(self.0.id().cast_signed()) {
                // One that has ended already needs no signal.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let _ = self.0.wait();
        }
    }
}

/// Shell functions that mount at `$M`: `nfs PORT OPTIONS` and `smb PORT OPTIONS` what is served there under the usual
/// name, `memory` a directory of the guest's own. Options begin with a comma. Host programs see `$M` as [`MOUNTED`].
pub(crate) fn mounting() -> String {
    let (name, user, password) = (super::ours::NAME, super::USER, super::PASSWORD);
    format!(
        "M=/host{MOUNTED}; mkdir $M\n\
         nfs() {{ mount -t nfs -o \"addr={HOST},vers=3,proto=tcp,port=$1,mountport=$1,mountproto=tcp,nolock$2\" \
         {HOST}:/{name} $M; }}\n\
         smb() {{ mount -t cifs -o \"ip={HOST},port=$1,username={user},password={password},vers=3.1.1$2\" \
         '\\\\{HOST}\\{name}' $M; }}\n\
         memory() {{ mount -t tmpfs none $M; }}\n"
    )
}

/// Where a program of the host finds what is mounted, in the guest.
pub(crate) const MOUNTED: &str = "/tmp/mounted";

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a vmrun that runs this in its place. A shell writes it: the kernel starts no program that is open for writing,
    /// as it might be here in a child that another test has just started.
    fn guest(dir: &Path, script: &str) -> Guest {
        let vmrun = dir.join("tools/vmrun/vmrun");
        std::fs::create_dir_all(vmrun.parent().unwrap()).unwrap();
        let line = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 755 "$0""#;
        let mut write = Command::new("sh");
        let written = write.args(["-c", line]).arg(vmrun).arg(script).status();
        assert!(written.unwrap().success());
        Guest::among(Some(dir), std::iter::empty()).unwrap()
    }

    #[test]
    fn a_guest_that_dies_at_once_is_booted_again_and_one_that_is_not_there_is_lacking() {
        let dir = tempfile::tempdir().unwrap();
        let lacks = |e: anyhow::Error| crate::needs::lacking(e);
        let none = Guest::among(Some(dir.path()), std::iter::empty());
        assert!(
            lacks(none.err().unwrap())
                .unwrap()
                .contains("VOLARY_SHARED")
        );
        let once = dir.path().join("once").display().to_string();
        let dies = format!(
            "[ -e {once} ] || {{ touch {once}; exit 125; }}\necho the script begins\necho a 1"
        );
        let run = |script: &str| guest(dir.path(), script).run(&[], "true", dir.path(), &|| Ok(()));
        assert_eq!(run(&dies).unwrap(), "a 1\n");
        let unset = run("echo vmrun: run setup first >&2; exit 126");
        assert!(lacks(unset.unwrap_err()).unwrap().contains("setup"));
        let failed = run("echo the script begins; echo no server; exit 9").unwrap_err();
        assert!(failed.to_string().contains("no server"), "{failed}");
        assert!(
            run("exit 125")
                .unwrap_err()
                .to_string()
                .contains("died 3 times")
        );
    }

    #[test]
    fn who_asks_to_stop_ends_the_guest() {
        let dir = tempfile::tempdir().unwrap();
        let guest = guest(dir.path(), "exec sleep 60");
        let stopped = guest.run(&[], "true", dir.path(), &|| bail!("stopped"));
        assert_eq!(stopped.unwrap_err().to_string(), "stopped");
    }
}
