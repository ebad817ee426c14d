//! A plug-in's process is killed 200 times while five clients work on its volume and on two
//! others: what was answered is there, nothing is wrong, and the others notice nothing.
//!
//! In a program of its own: it kills what its own process has started.

#[path = "it/built.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod built;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use volary_core::{
    Cancel, Create, Cred, Ctx, Error, Fs, Kind, Mode, Name, NodeId, Result, SetAttr,
};

const KILLS: usize = 200;
const CLIENTS: u64 = 5;

fn with_cx<T>(call: impl FnOnce(&Ctx<'_>) -> T) -> T {
    call(&Ctx {
        cred: &Cred::root(),
        now: built::now(),
        cancel: &Cancel::new(),
    })
}

/// Returns the processes that a process has started.
fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let read = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children"));
    let texts: Vec<String> = tasks.filter_map(|task| read(task).ok()).collect();
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    words.filter_map(|word| word.parse().ok()).collect()
}

/// Returns the content of a file: what its name says, so that no other file has it.
fn content(client: u64, number: u64) -> Vec<u8> {
    let len = (client * 7919 + number * 104_729) % 40_000 + 1;
    let byte = |at: u64| (at.wrapping_mul(31) ^ number.wrapping_mul(131) ^ (client * 17)) as u8;
    (0..len).map(byte).collect()
}

fn name(client: u64, number: u64) -> String {
    format!("client {client} file {number}")
}

/// Makes a file, as clients do: in steps, any of which can fail.
fn make(fs: &Fs, client: u64, number: u64) -> Result<()> {
    let name = name(client, number);
    let name = Name::new(name.as_bytes()).unwrap();
    with_cx(|cx| {
        let set = SetAttr::mode(0o644);
        let (_, open) = fs.create(cx, fs.root(), name, Create::Truncate, &set)?;
        let mut at = 0;
        for part in content(client, number).chunks(9000) {
            at = fs.write(cx, open, Some(at), part)?;
        }
        fs.close(cx, open)
    })
}

fn read_all(fs: &Fs, node: NodeId, len: u64) -> Result<Vec<u8>> {
    with_cx(|cx| {
        let open = fs.open(cx, node, Mode::Read)?;
        let mut all = vec![0; usize::try_from(len).unwrap() + 10];
        let read = fs.read(cx, open, 0, &mut all)?;
        all.truncate(read);
        fs.close(cx, open)?;
        Ok(all)
    })
}

fn read(fs: &Fs, client: u64, number: u64) -> Result<Vec<u8>> {
    let name = name(client, number);
    let name = Name::new(name.as_bytes()).unwrap();
    let entry = with_cx(|cx| fs.lookup(cx, fs.root(), name))?;
    read_all(fs, entry.node, entry.attr.size)
}

/// What a client has of one volume.
struct Own {
    fs: Fs,
    client: u64,
    made: BTreeSet<u64>,
    next: u64,
}

impl Own {
    fn new(fs: &Fs, client: u64) -> Self {
        Self {
            fs: Arc::clone(fs),
            client,
            made: BTreeSet::new(),
            next: 0,
        }
    }

    /// Makes one more file, and reads one that was made. What there is, is right.
    fn turn(&mut self) -> Result<()> {
        self.next += 1;
        // The same names again: a file that was half made is made anew.
        let number = self.next % 40;
        self.made.remove(&number);
        make(&self.fs, self.client, number)?;
        self.made.insert(number);
        let old = self.next * 17 % 40;
        if self.made.contains(&old) {
            let found = read(&self.fs, self.client, old)?;
            assert!(found == content(self.client, old), "wrong content of {old}");
        }
        Ok(())
    }

    fn check(&self) {
        for number in &self.made {
            let found = read(&self.fs, self.client, *number).unwrap();
            assert!(
                found == content(self.client, *number),
                "wrong content of {number}"
            );
        }
    }
}

/// What the one that is killed may answer.
fn is_expected(e: &Error) -> bool {
    matches!(e.kind(), Kind::Io | Kind::Stale)
}

/// Works until it is over. Returns what it has made on the one that is killed.
fn client(number: u64, killed: &Fs, others: &[Fs], over: &AtomicBool, turns: &AtomicU64) -> Own {
    let mut own = Own::new(killed, number);
    let mut beside: Vec<Own> = others.iter().map(|fs| Own::new(fs, number)).collect();
    while !over.load(Ordering::Relaxed) {
        match own.turn() {
            Ok(()) => {
                turns.fetch_add(1, Ordering::Relaxed);
            }
            Err(e) => assert!(is_expected(&e), "{e:?}"),
        }
        for other in &mut beside {
            other.turn().expect("another volume notices nothing");
        }
    }
    beside.iter().for_each(Own::check);
    own
}

fn survive(killed: &Fs, zygote: u32) {
    let mem = volary_mem::Mem::attach(volary_mem::MemOptions::sized(64 << 20), built::now());
    let others = [mem.unwrap(), built::apart(&built::memory(), "64M").unwrap()];
    let (over, turns) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let clients: Vec<_> = (1..=CLIENTS)
            .map(|n| {
                scope.spawn({
                    let (others, over, turns) = (&others, &over, &turns);
                    move || client(n, killed, others, over, turns)
                })
            })
            .collect();
        for kill in 0..KILLS {
            // It came back, and some were answered; not always the same number.
            let until = turns.load(Ordering::Relaxed) + 1 + (kill as u64 * 7) % 5;
            while turns.load(Ordering::Relaxed) < until {
                assert!(
                    !clients.iter().any(thread::ScopedJoinHandle::is_finished),
                    "a client failed"
                );
                thread::yield_now();
            }
            let worker = loop {
                if let [worker] = children(zygote)[..] {
                    break worker;
                }
            };
            let pid = rustix::process::Pid::from_raw(worker.cast_signed()).unwrap();
            // One that was ended meanwhile by a call that found it gone is none any more.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        over.store(true, Ordering::Relaxed);
        for client in clients {
            let own = client.join().unwrap();
            // The last kill may be noticed only now, and the next process is not there at once.
            while let Err(e) = with_cx(|cx| own.fs.statfs(cx)) {
                assert!(is_expected(&e), "{e:?}");
                thread::yield_now();
            }
            own.check();
        }
    });
    let lines = killed.findings();
    assert!(
        lines.iter().all(|line| line.message.contains("signal 9")),
        "{lines:?}"
    );
    let ends = lines.len();
    println!(
        "{ends} lines of {KILLS} kills, {} turns",
        turns.load(Ordering::Relaxed)
    );
    assert!((KILLS / 2..=KILLS).contains(&ends), "{ends} lines");
    for other in others {
        assert!(other.findings().is_empty());
    }
}

#[test]
fn what_was_answered_is_there_after_two_hundred_kills_and_nobody_else_notices() {
    let Some(sqlite) = built::sqlite() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume.db");
    let fs = built::apart(sqlite, path.to_str().unwrap()).unwrap();
    let zygotes = children(std::process::id());
    let [zygote] = zygotes[..] else {
        panic!("{zygotes:?}");
    };
    survive(&fs, zygote);
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(descriptors < 100, "{descriptors} descriptors are left");
    // Once, it is told that changes ended with a process before anybody had made them durable.
    assert_eq!(with_cx(|cx| fs.sync(cx)).unwrap_err(), Kind::Io);
    with_cx(|cx| fs.sync(cx)).unwrap();
    with_cx(|cx| fs.detach(cx)).unwrap();
}
