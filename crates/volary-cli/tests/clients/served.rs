//! `volary serve` with one volume of each kind.

use crate::tree;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use tempfile::TempDir;
use volary_testkit::oracle::dosfstools;

const PROGRAM: &str = env!("CARGO_BIN_EXE_volary");

/// The volumes, by the names of their exports and shares.
pub(crate) const VOLUMES: [&str; 3] = ["fat", "host", "memory"];

const CONFIG: &str = "
[[volume]]
volume = 'fat.img'
name = 'fat'
squash = 'none'

[[volume]]
volume = 'host:dir'
name = 'host'
squash = 'none'

[[volume]]
volume = 'mem:1G'
name = 'memory'
squash = 'none'
";

/// A server, the tree that clients copy, and a place for what they copy out.
pub(crate) struct Served {
    dir: TempDir,
    server: Server,
    pub(crate) dirs: u32,
}

impl Served {
    /// Serves them all over NFS and SMB; the tree has `few` directories, or all.
    pub(crate) fn start(few: u32) -> Self {
        let dir = TempDir::new().unwrap();
        let dirs = tree::dirs(few);
        tree::make(&dir.path().join("tree"), dirs);
        fs::create_dir(dir.path().join("dir")).unwrap();
        fs::write(dir.path().join("serve.toml"), CONFIG).unwrap();
        let mkfs = "mkfs -q -t fat32 --size 1G --unix fat.img";
        let made = volary(dir.path(), mkfs).output().unwrap();
        content(&made, mkfs);
        let server = Server::start(
            dir.path(),
            "serve --json --nfs 127.0.0.1:0 --smb=127.0.0.1:0 --smb-min 2.0.2 --key key --user tester --config serve.toml",
        );
        Self { dir, server, dirs }
    }

    /// Returns the port of a server, `nfs` or `smb`.
    pub(crate) fn port(&self, server: &str) -> u16 {
        self.server.port(server)
    }

    /// Returns the tree to copy.
    pub(crate) fn tree(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    /// Returns a new empty directory to copy to.
    pub(crate) fn back(&self, name: &str) -> PathBuf {
        let back = self.dir.path().join(name);
        fs::create_dir(&back).unwrap();
        back
    }

    /// Fails unless the directory of the host that is served holds the tree at `name`.
    pub(crate) fn is_on_host(&self, name: &str) {
        tree::same(&self.tree(), &self.dir.path().join("dir").join(name), name);
    }

    /// Stops the server: it ends well, and the FAT volume is clean.
    pub(crate) fn stop(self) {
        self.server.stop();
        dosfstools::check(&self.dir.path().join("fat.img")).unwrap();
    }
}

/// A running `volary serve --json`. Killed if it is still there at the end.
pub(crate) struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    said: Value,
}

impl Server {
    /// Runs this command line in this directory, and waits until it serves.
    pub(crate) fn start(dir: &Path, line: &str) -> Self {
        let mut serve = volary(dir, line);
        serve.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = serve.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let said = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut words = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut words)
                .unwrap();
            panic!("{line}{words}");
        });
        Self { child, out, said }
    }

    /// Returns the port of a server, `nfs` or `smb`.
    pub(crate) fn port(&self, server: &str) -> u16 {
        let address = self.said[server].as_str().unwrap();
        address.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Stops it by a signal: it ends well.
    pub(crate) fn stop(mut self) {
        let id = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(asked.success());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        assert_eq!(rest, "{\"status\":\"stopped\"}\n");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the program in this directory.
pub(crate) fn volary(dir: &Path, line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(line.split_whitespace()).current_dir(dir);
    command.env("VOLARY_PASSWORD", "pass");
    command
}

/// Returns what a program printed; fails if it was not content.
pub(crate) fn content(output: &Output, what: &str) -> String {
    let printed = [output.stdout.as_slice(), &output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert!(output.status.success(), "{what}: {printed}");
    printed
}
