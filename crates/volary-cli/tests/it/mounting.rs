//! `volary mount` on a sandbox's `mnt`, by a program of its own.

use crate::flushing::{KINDS, make};
use crate::sandbox::{Run, Sandbox};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A mount that runs; dropped, its program is killed, and it is taken away.
pub(crate) struct Mounting {
    child: Child,
    dir: PathBuf,
}

impl Mounting {
    /// Mounts with these words; `None` where nothing can be mounted.
    pub(crate) fn start(sandbox: &Sandbox, words: &[&str]) -> Option<Self> {
        if !Path::new("/dev/fuse").exists() {
            println!("SKIPPED: no /dev/fuse");
            return None;
        }
        let words = [&["mount", "--tell"], words, &["mnt"]].concat();
        Some(Self::of(sandbox, sandbox.command(&words)))
    }

    /// Returns a program that mounts on `mnt` and tells when it has.
    pub(crate) fn of(sandbox: &Sandbox, mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mounting = Self {
            child,
            dir: sandbox.path("mnt"),
        };
        // It says "mounted", or nothing and why.
        out.read_exact(&mut [0; 8]).unwrap();
        mounting
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends its program with SIGTERM: it takes the mount away, and ends well.
    pub(crate) fn terminate(mut self) {
        let id = self.child.id().to_string();
        let killed = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(killed.success());
        assert!(self.child.wait().unwrap().success());
    }

    /// Unmounts, and waits until the program has left the volume.
    pub(crate) fn end(mut self) {
        let unmounted = Command::new("umount").arg(&self.dir).status().unwrap();
        assert!(unmounted.success());
        assert!(self.child.wait().unwrap().success());
    }

    /// Takes the mount away; its program ends well.
    pub(crate) fn stop(mut self) {
        let unmounted = Command::new("umount").arg(&self.dir).status().unwrap();
        assert!(unmounted.success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Mounting {
    fn drop(&mut self) {
        // It may have ended, and its mount with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut unmount = Command::new("umount");
        unmount.arg("-l").arg(&self.dir).stderr(Stdio::null());
        let _ = unmount.status();
    }
}

#[test]
fn who_reads_beside_direct_asynchronous_writes_is_given_what_is_on_the_disk() {
    for kind in [&KINDS[..], &["host"]].concat() {
        let sandbox = Sandbox::empty();
        sandbox.write("direct.py", include_bytes!("direct.py"));
        let volume = match kind {
            "host" => "host:tree".to_owned(),
            _ => {
                make(&sandbox, kind);
                format!("{kind}.img")
            }
        };
        let Some(_mounting) = Mounting::start(&sandbox, &[&volume]) else {
            return;
        };
        let mut python = Command::new("timeout");
        python.args(["120", "python3", "direct.py", "mnt/file"]);
        let output = python.current_dir(sandbox.path("")).output().unwrap();
        let Run { code, out, err } = Run::of(&output);
        assert_eq!(code, 0, "{kind}: {out}{err}");
    }
}
