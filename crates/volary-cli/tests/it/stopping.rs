//! Signals that ask to stop, while the program waits for something else.

use crate::sandbox::{PROGRAM, Run, Sandbox};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a program may take to stop: far longer than it does, for a busy host.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns whether a process has a signal in one of the masks that the kernel tells of.
fn has(child: &Child, mask: &str, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(mask));
    let mask = u64::from_str_radix(line.unwrap_or("0").trim(), 16).unwrap();
    mask >> (signal.as_raw() - 1) & 1 != 0
}

/// Waits until a program catches signals and sleeps: it waits for its input.
fn catches(child: &Child) {
    while !has(child, "SigCgt:", Signal::TERM) || !sleeps(child) {
        std::thread::yield_now();
    }
}

fn sleeps(child: &Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let state = stat.rsplit(')').next();
    state.is_some_and(|rest| rest.trim_start().starts_with('S'))
}

/// Sends a signal, and returns the program's exit code.
fn stop(mut child: Child, signal: Signal) -> Option<i32> {
    let pid = Pid::from_child(&child);
    kill_process(pid, signal).unwrap();
    let (ended, end) = mpsc::channel();
    // What it waits for stays open until it has ended.
    let held = (child.stdin.take(), child.stdout.take());
    let waits = std::thread::spawn(move || ended.send(child.wait().unwrap().code()));
    let code = end.recv_timeout(PATIENCE);
    if code.is_err() {
        kill_process(pid, Signal::KILL).unwrap();
    }
    waits.join().unwrap().unwrap();
    drop(held);
    code.expect("it goes on after the signal")
}

#[test]
fn a_copy_that_waits_for_input_stops_and_leaves_the_volume_clean() {
    let sandbox = Sandbox::new();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut copy = sandbox.command(&["cp", "-", "disk.img:/new"]);
        let copy = copy.stdin(Stdio::piped()).spawn().unwrap();
        catches(&copy);
        assert_eq!(stop(copy, signal), Some(130), "{signal:?}");
        sandbox.is_clean("disk.img");
        assert!(!sandbox.run("ls disk.img").ok().contains("new"));
    }
}

#[test]
fn a_hangup_that_is_ignored_stays_so() {
    let sandbox = Sandbox::new();
    let mut copy = Command::new("nohup");
    copy.args([PROGRAM, "cp", "-", "disk.img:/new"]);
    copy.current_dir(sandbox.path("")).stdin(Stdio::piped());
    let mut copy = copy.stderr(Stdio::null()).spawn().unwrap();
    catches(&copy);
    assert!(has(&copy, "SigIgn:", Signal::HUP));
    kill_process(Pid::from_child(&copy), Signal::HUP).unwrap();
    drop(copy.stdin.take());
    assert_eq!(copy.wait().unwrap().code(), Some(0));
    assert!(sandbox.run("ls disk.img").ok().contains("new"));
}

#[test]
fn commands_of_bulk_are_not_waited_for() {
    let sandbox = Sandbox::new();
    sandbox.write("large", &vec![7; 300_000]);
    sandbox.run("cp large disk.img:/docs/large").ok();
    // One that is only waited for, and one that reads nothing of more than a pipe takes.
    for place in ["disk.img:/README.txt", "disk.img:/docs/large"] {
        let words = ["bulk", "--exec", "echo begun; exec sleep 100", place];
        let mut bulk = sandbox.command(&words);
        let mut bulk = bulk.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(bulk.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "begun");
        assert_eq!(stop(bulk, Signal::INT), Some(130), "{place}");
    }
    let words = ["bulk", "--exec", "wc -c", "disk.img:/docs/large"];
    assert_eq!(sandbox.run_words(&words).ok().trim(), "300000");
}

/// Runs the program at a terminal, where Ctrl-C follows on `words`.
fn at_terminal(sandbox: &Sandbox, program: &[&str], words: &[&str]) -> Run {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/terminal.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(PROGRAM).args(program).arg("--");
    command.args(words).current_dir(sandbox.path(""));
    for name in ["VOLARY_CRYPT_PASSPHRASE", "VOLARY_PASSWORD"] {
        command.env_remove(name);
    }
    Run::of(&command.env("TERM", "xterm").output().unwrap())
}

#[test]
fn a_question_for_a_passphrase_is_left_by_one_interrupt() {
    let sandbox = Sandbox::new();
    let before = sandbox.read("disk.img");
    for words in ["rm disk.img:/x", "cp tree/a.txt disk.img:/x"] {
        let mut words: Vec<&str> = words.split(' ').collect();
        words.extend(["--layer", "crypt"]);
        let run = at_terminal(&sandbox, &words, &[": "]);
        // Of 256 the signal's number is missing: it was killed by that.
        assert_eq!(run.code, 256 - 2, "{}{}", run.out, run.err);
        assert!(sandbox.read("disk.img") == before);
    }
}

#[test]
fn a_question_of_fsck_is_left_by_one_interrupt() {
    let sandbox = Sandbox::new();
    let mut image = sandbox.read("disk.img");
    let word = |at: usize| usize::from(u16::from_le_bytes([image[at], image[at + 1]]));
    // The second FAT is another than the first.
    let second = (word(14) + word(22)) * 512;
    image[second + 4] ^= 0x55;
    sandbox.write("disk.img", &image);
    let run = at_terminal(&sandbox, &["fsck", "disk.img"], &["[y/n] "]);
    assert_eq!(run.code, 32, "{}{}", run.out, run.err);
    assert!(run.out.contains("stopped"), "{}", run.out);
    assert!(sandbox.read("disk.img") == image);
}

#[test]
fn what_is_printed_is_not_behind_the_line_of_progress() {
    let sandbox = Sandbox::new();
    sandbox.write("large", &vec![7; 5_000_000]);
    sandbox.run("cp large disk.img:/docs/large").ok();
    let run = at_terminal(&sandbox, &["bulk", "--sha256", "disk.img"], &[]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let mut sums = 0;
    for (at, _) in run.out.match_indices("  disk.img:/") {
        let before = &run.out[..at - 64];
        let is_begin = before.is_empty() || before.ends_with(['\n', '\r']);
        assert!(is_begin || before.ends_with("\x1b[2K"), "{:?}", run.out);
        sums += 1;
    }
    assert_eq!(sums, 4, "{}", run.out);
}
