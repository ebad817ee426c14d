//! The servers: a process that is killed and started again.

use crate::{now, rest};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// The password of the user `tester`.
pub(crate) const PASSWORD: &str = "pass";

/// What a process has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Use {
    /// After so many steps of all clients, with this process.
    pub(crate) steps: u64,
    /// Resident, its own, in KiB.
    pub(crate) memory: u64,
    pub(crate) descriptors: u64,
}

pub(crate) struct Server {
    volume: String,
    running: Mutex<Running>,
    restarts: AtomicU64,
    /// It is being killed, or started.
    down: AtomicBool,
    dir: TempDir,
}

struct Running {
    child: Child,
    nfs: SocketAddr,
    smb: SocketAddr,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(volume: &str, dir: &TempDir) -> Running {
    let words = "serve --json --nfs 127.0.0.1:0 --smb=127.0.0.1:0 --key key --squash none";
    let mut command = Command::new(env!("CARGO_BIN_EXE_volary"));
    command.args(words.split(' '));
    command.args(["--user", "tester", "--mount", "mnt", volume]);
    if !volume.starts_with("host:") {
        // A small cache is full soon: what grows after that is no cache.
        command.args(["-o", "memory=8M"]);
    }
    // One arena: what threads that come and go leave free in arenas of their own is
    // no growth, and would be taken for some.
    command.env("MALLOC_ARENA_MAX", "1");
    command
        .env("VOLARY_PASSWORD", PASSWORD)
        .env("HOME", dir.path());
    command.current_dir(dir.path()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let said: serde_json::Value = serde_json::from_str(&line).expect("a server that says where");
    let address = |key: &str| said[key].as_str().unwrap().parse().unwrap();
    Running {
        nfs: address("nfs"),
        smb: address("smb"),
        child,
    }
}

impl Server {
    /// On a new volume.
    pub(crate) fn new(volume: &str) -> Self {
        let dir = TempDir::new().unwrap();
        for name in ["mnt", "dir"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        if !volume.starts_with("host:") {
            let mut make = Command::new(env!("CARGO_BIN_EXE_volary"));
            make.args(["mkfs", "-t", "fat32", "--unix", "--size", "256M", volume]);
            assert!(make.current_dir(dir.path()).status().unwrap().success());
        }
        Self {
            volume: volume.to_owned(),
            running: Mutex::new(start(volume, &dir)),
            restarts: AtomicU64::new(0),
            down: AtomicBool::new(false),
            dir,
        }
    }

    /// Kills it, without a word, and starts another.
    pub(crate) fn restart(&self) {
        self.down.store(true, Ordering::SeqCst);
        let mut running = self.running.lock().unwrap();
        running.child.kill().unwrap();
        running.child.wait().unwrap();
        *running = start(&self.volume, &self.dir);
        self.restarts.fetch_add(1, Ordering::SeqCst);
        self.down.store(false, Ordering::SeqCst);
    }

    /// Returns how often; and what fails until this changes may be for that.
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::SeqCst)
    }

    pub(crate) fn is_down(&self) -> bool {
        self.down.load(Ordering::SeqCst)
    }

    /// Returns where NFS and SMB are.
    pub(crate) fn addresses(&self) -> (SocketAddr, SocketAddr) {
        let running = self.running.lock().unwrap();
        (running.nfs, running.smb)
    }

    pub(crate) fn mount(&self) -> PathBuf {
        self.dir.path().join("mnt")
    }

    /// Returns what the volume is exported as.
    pub(crate) fn export(&self) -> &str {
        let name = self.volume.trim_start_matches("host:");
        name.trim_end_matches(".img")
    }

    pub(crate) fn used(&self, steps: u64) -> Use {
        let id = self.running.lock().unwrap().child.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let memory = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        let descriptors = std::fs::read_dir(format!("/proc/{id}/fd")).unwrap();
        Use {
            steps,
            memory: memory.expect("RssAnon"),
            descriptors: descriptors.count() as u64,
        }
    }

    /// Ends it as a user would; the volume is in order then.
    pub(crate) fn stop(&self) {
        let mut running = self.running.lock().unwrap();
        let id = running.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
        let since = now();
        while running.child.try_wait().unwrap().is_none() {
            assert!(
                since.elapsed() < Duration::from_secs(120),
                "it does not end"
            );
            rest(Duration::from_millis(50));
        }
        assert!(running.child.wait().unwrap().success());
        if !self.volume.starts_with("host:") {
            // A killed server may leave clusters that nobody has: that is mended.
            assert!(matches!(self.fsck("-p"), Some(0 | 1)), "damage is left");
            assert_eq!(self.fsck("-n"), Some(0), "damage after it was mended");
        }
    }

    fn fsck(&self, how: &str) -> Option<i32> {
        let mut check = Command::new(env!("CARGO_BIN_EXE_volary"));
        check.args(["fsck", how, &self.volume]);
        check.current_dir(self.dir.path()).status().unwrap().code()
    }
}
