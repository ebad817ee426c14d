//! The attack: for minutes, 16 clients take what they can get, each in its own way: some without
//! a password, some as the user `a`, some by NFS as `nobody`. Meanwhile one client of SMB (the
//! user `b`) and one of NFS (root) work on. They keep at least half their speed, the server stays
//! within its memory, ends within seconds under attack, and its log says who did what.
//!
//! The attackers are a process of `nobody`, and of the lowest priority: on machines of their own
//! they would not compute on the server's.

use crate::{minutes, now, rest};
use rustix::process::{getppid, nice};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tempfile::TempDir;
use volary_testkit::nfs::client as nfs;
use volary_testkit::nfs::locks::Locker;
use volary_testkit::rng::Rng;
use volary_testkit::smb::{self, How, access, disposition};

/// The addresses of NFS and SMB, for the process of the attackers.
const ATTACKS: &str = "VOLARY_ATTACK";
const PASSWORD: &str = "open-sesame";
/// Root, `a` and `b`, with [`PASSWORD`].
const HASH: &str = "f4b406a74041f8de30afa3a9fd2ed348";
const CONTENT: &[u8] = b"what-is-in-a-file";
const SET_ZERO_DATA: u32 = 0x0009_80C8;
/// Its caches, and what `volary_smb::Limits` and `volary_nfs::Limits` let all clients have, MiB.
const MEMORY_MAX: u64 = 1280;
const END_WITHIN: Duration = Duration::from_secs(5);
/// How long the clients work with nobody beside them.
const ALONE: Duration = Duration::from_secs(15);
/// In how many parts the time of the attack is told.
const PARTS: u32 = 10;

/// Where the servers are.
#[derive(Clone, Copy)]
struct Target {
    nfs: SocketAddr,
    smb: SocketAddr,
}

impl Target {
    fn log_on(self, user: &str) -> smb::Client {
        let guid = [user.as_bytes()[0]; 16];
        let client = smb::Client::connect(self.smb, user, PASSWORD, "disk", guid);
        client.expect("a logon").0
    }
}

struct Serving {
    child: Child,
    target: Target,
    dir: TempDir,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    fn start() -> Self {
        let dir = TempDir::new().unwrap();
        let volary = |words: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_volary"));
            command.args(words.split(' ')).current_dir(dir.path());
            command
        };
        let mkfs = volary("mkfs -q -t fat32 --unix --size 256M disk.img").status();
        assert!(mkfs.unwrap().success());
        let users: String = [("root", 0), ("a", 1000), ("b", 1001)]
            .map(|(name, id)| format!("{name}:{id}:{id}:{HASH}\n"))
            .concat();
        fs::write(dir.path().join("users"), users).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(dir.path().join("users"), mode).unwrap();
        let words = "serve --json --nfs 127.0.0.1:0 --smb=127.0.0.1:0 --key key --squash none --users users --log log disk.img";
        let mut command = volary(words);
        command.stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let said: serde_json::Value = serde_json::from_str(&line).expect("where it serves");
        let address = |key: &str| said[key].as_str().unwrap().parse().unwrap();
        let (nfs, smb) = (address("nfs"), address("smb"));
        let target = Target { nfs, smb };
        Self { child, target, dir }
    }

    /// Returns the most memory that it had (`VmHWM:`), or has now (`VmRSS:`), MiB.
    fn memory(&self, of: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix(of));
        let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap() >> 10
    }

    /// Ends it by a signal; how long that took.
    fn end(mut self) -> (Duration, String) {
        let begun = now();
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status();
        assert!(told.unwrap().success());
        while self.child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < 12 * END_WITHIN, "it does not end");
            rest(Duration::from_millis(20));
        }
        assert!(self.child.wait().unwrap().success());
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap();
        (begun.elapsed(), log)
    }
}

/// A client that works: how many files it has made, read and removed, and how often it was cut off.
#[derive(Default)]
struct Work {
    steps: AtomicU64,
    failures: AtomicU64,
    end: AtomicBool,
}

type Step = Box<dyn FnMut()>;

/// Works on a thread of this name by steps of what `begin` makes.
fn work(name: &str, begin: impl Fn() -> Step + Send + 'static) -> (Arc<Work>, JoinHandle<()>) {
    let work = Arc::new(Work::default());
    let shared = Arc::clone(&work);
    let run = move || {
        while !shared.end.load(Ordering::SeqCst) {
            let session = catch_unwind(AssertUnwindSafe(|| {
                let mut step = begin();
                while !shared.end.load(Ordering::SeqCst) {
                    step();
                    shared.steps.fetch_add(1, Ordering::SeqCst);
                }
            }));
            if session.is_err() {
                shared.failures.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let thread = thread::Builder::new().name(name.to_owned());
    (work, thread.spawn(run).unwrap())
}

fn make() -> How {
    How {
        disposition: disposition::OPEN_IF,
        ..How::open(access::READ | access::WRITE | access::DELETE)
    }
}

fn works_by_smb(target: Target) -> Step {
    let client = target.log_on("b");
    Box::new(move || {
        let file = client.open("work-b", &make()).unwrap().open;
        client.write(file, 0, CONTENT).unwrap();
        assert_eq!(client.read(file, 0, CONTENT.len()).unwrap(), CONTENT);
        client.set_delete(file, true).unwrap();
        client.close(file).unwrap();
    })
}

fn works_by_nfs(target: Target) -> Step {
    let mut client = nfs::Client::new(target.nfs);
    let root = client.mnt("/disk").unwrap();
    Box::new(move || {
        let how = nfs::How::Unchecked(nfs::Set::mode(0o600));
        let (file, _) = client.create(&root, b"work-root", how).unwrap();
        client.write(&file, 0, CONTENT, 0).unwrap();
        let (read, _) = client.read(&file, 0, CONTENT.len() as u32).unwrap();
        assert_eq!(read, CONTENT);
        client.remove(&root, b"work-root").unwrap();
    })
}

/// Steps in a second of each client, over a time.
fn speeds(works: &[Arc<Work>], time: Duration) -> Vec<f64> {
    let steps = |work: &Arc<Work>| work.steps.load(Ordering::SeqCst);
    let before: Vec<u64> = works.iter().map(steps).collect();
    let begun = now();
    rest(time);
    let seconds = begun.elapsed().as_secs_f64();
    let done = works.iter().zip(before);
    done.map(|(work, before)| (steps(work) - before) as f64 / seconds)
        .collect()
}

fn attackers(target: Target) -> Child {
    let mut command = Command::new("/proc/self/exe");
    command.args(["--exact", "attack::who_attacks_takes_what_it_can_get"]);
    command.args(["--nocapture", "--test-threads=1"]);
    command.env(ATTACKS, format!("{} {}", target.nfs, target.smb));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.uid(65534).gid(65534).spawn().unwrap()
}

#[test]
fn clients_work_on_under_attack() {
    let Some(minutes) = minutes() else {
        println!("skipped: VOLARY_SOAK is not set");
        return;
    };
    let serving = Serving::start();
    let target = serving.target;
    open_root(target);
    let (smb, smb_thread) = work("client of smb", move || works_by_smb(target));
    let (nfs, nfs_thread) = work("client of nfs", move || works_by_nfs(target));
    let works = [smb, nfs];
    rest(Duration::from_secs(3));
    let alone = speeds(&works, ALONE);
    let mut attackers = attackers(target);
    rest(Duration::from_secs(3));
    let part = Duration::from_secs_f64(minutes * 60.0 / f64::from(PARTS));
    let mut attacked = vec![0.0; works.len()];
    for number in 1..=PARTS {
        let speeds = speeds(&works, part);
        let memory = serving.memory("VmRSS:");
        println!("part {number} of {PARTS}: {speeds:.0?} steps a second, {memory} MiB");
        for (all, speed) in attacked.iter_mut().zip(speeds) {
            *all += speed / f64::from(PARTS);
        }
    }
    let memory = serving.memory("VmHWM:");
    assert!(attackers.try_wait().unwrap().is_none(), "nobody attacked");
    works
        .iter()
        .for_each(|work| work.end.store(true, Ordering::SeqCst));
    smb_thread.join().unwrap();
    nfs_thread.join().unwrap();
    let failures: Vec<u64> = works
        .iter()
        .map(|work| work.failures.load(Ordering::SeqCst))
        .collect();
    let (took, log) = serving.end();
    attackers.kill().unwrap();
    attackers.wait().unwrap();
    println!(
        "steps a second by smb and nfs: alone {alone:.0?}, under attack {attacked:.0?}; cut off {failures:?} times; \
         {memory} MiB at most; ended within {took:?}; a log of {} lines",
        log.lines().count()
    );
    judge_log(&log);
    assert_eq!(failures, [0, 0], "clients that did no harm were cut off");
    assert!(memory < MEMORY_MAX, "{memory} MiB");
    assert!(took < END_WITHIN, "{took:?}");
    for (alone, attacked) in alone.iter().zip(attacked) {
        assert!(attacked >= alone / 2.0, "{attacked} steps, {alone} alone");
    }
}

/// All may make files in the root.
fn open_root(target: Target) {
    let mut client = nfs::Client::new(target.nfs);
    let root = client.mnt("/disk").unwrap();
    client
        .setattr(&root, &nfs::Set::mode(0o1777), None)
        .unwrap();
}

fn judge_log(log: &str) {
    for told in ["logon refused", "limit reached", "user=a ", "127.0.0.1"] {
        assert!(log.contains(told), "the log does not say {told}:\n{log}");
    }
    for secret in [PASSWORD, HASH, "guess-", "what-is-in-a-file"] {
        assert!(!log.contains(secret), "the log says {secret}");
    }
    assert!(log.len() < 4 << 20, "a log of {} bytes", log.len());
}

/// One way to attack, and its name.
type Attack = (&'static str, fn(Target, &mut Rng));

const WAYS: [Attack; 16] = [
    ("silent on both", silent),
    ("noise by smb", |target, rng| noise(target.smb, rng)),
    ("noise by nfs", |target, rng| noise(target.nfs, rng)),
    ("half a message", halves),
    ("guesses", guesses),
    ("comes and goes", comes_and_goes),
    ("opens", opens),
    ("locks that wait", locks_that_wait),
    ("watches", watches),
    ("patterns", patterns),
    ("listings", listings),
    ("holes to zero", zeroes),
    ("fills the volume", fills),
    ("forged handles", forged_handles),
    ("owners of locks", lock_owners),
    ("connections with a call each", connections),
];

/// The process of the attackers; does nothing unless it is started as that.
#[test]
fn who_attacks_takes_what_it_can_get() {
    let Ok(target) = std::env::var(ATTACKS) else {
        return;
    };
    let mut addresses = target.split(' ').map(|address| address.parse().unwrap());
    let [nfs, smb] = [(); 2].map(|()| addresses.next().unwrap());
    nice(19).unwrap();
    std::panic::set_hook(Box::new(|_| ()));
    let target = Target { nfs, smb };
    // Until it is killed, or nobody is there who would.
    let parent = getppid();
    let threads: Vec<_> = WAYS
        .iter()
        .enumerate()
        .map(|(seed, (_, attack))| {
            let mut rng = Rng::new(seed as u64);
            thread::spawn(move || {
                while getppid() == parent {
                    // What is refused is tried again.
                    let _ = catch_unwind(AssertUnwindSafe(|| attack(target, &mut rng)));
                    rest(Duration::from_millis(1));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn reach(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    let time = Some(Duration::from_secs(2));
    stream.set_read_timeout(time).unwrap();
    stream.set_write_timeout(time).unwrap();
    stream
}

/// As many connections as there are to be had, on which nothing is said.
fn silent(target: Target, _: &mut Rng) {
    let both = [target.nfs, target.smb].into_iter().cycle();
    let held: Vec<_> = both.take(100).map(reach).collect();
    rest(Duration::from_secs(3));
    drop(held);
}

fn random(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.below(256) as u8).collect()
}

/// Lengths that fit, and what makes no sense behind them.
fn noise(address: SocketAddr, rng: &mut Rng) {
    let mut stream = reach(address);
    for _ in 0..20 {
        let len = rng.below(2000) as usize + 4;
        let mut message = random(rng, len);
        let head = (len as u32 - 4) | if rng.below(2) == 0 { 1 << 31 } else { 0 };
        message[..4].copy_from_slice(&head.to_be_bytes());
        if rng.below(2) == 0 && len > 20 {
            message[4..8].copy_from_slice(b"\xfeSMB");
        }
        stream.write_all(&message).unwrap();
    }
    let mut answer = [0; 4096];
    let _ = stream.read(&mut answer).unwrap();
}

/// A byte of a long message now and then.
fn halves(target: Target, rng: &mut Rng) {
    let address = if rng.below(2) == 0 {
        target.nfs
    } else {
        target.smb
    };
    let mut streams: Vec<_> = (0..8).map(|_| reach(address)).collect();
    for stream in &mut streams {
        stream.write_all(&[0x80, 0x0f, 0xff, 0xff]).unwrap();
    }
    for _ in 0..20 {
        for stream in &mut streams {
            stream.write_all(&[0]).unwrap();
        }
        rest(Duration::from_millis(100));
    }
}

fn guesses(target: Target, rng: &mut Rng) {
    let password = format!("guess-{}", rng.below(1 << 32));
    let user = ["a", "root", "nobody-there"][rng.below(3) as usize];
    // Another host's guesses: those of this address make its users wait, as SECURITY.md says.
    let guessed = smb::Client::connect(target.smb, user, &password, "disk", [9; 16]);
    assert!(guessed.is_err());
}

fn comes_and_goes(target: Target, _: &mut Rng) {
    for _ in 0..50 {
        drop((reach(target.nfs), reach(target.smb)));
    }
}

fn opens(target: Target, _: &mut Rng) {
    let client = target.log_on("a");
    for number in 0.. {
        if client.open(&format!("open{number}"), &make()).is_err() {
            break;
        }
    }
}

fn locks_that_wait(target: Target, _: &mut Rng) {
    let client = target.log_on("a");
    let [first, second] = [(); 2].map(|()| client.open("locked", &make()).unwrap().open);
    client.lock(first, 0..1, true).unwrap();
    let waiting: Vec<_> = (0..60)
        .map(|_| {
            let client = client.clone();
            thread::spawn(move || client.lock_waiting_padded(second, 0..1, 1_000_000))
        })
        .collect();
    rest(Duration::from_secs(2));
    client.hang_up();
    for thread in waiting {
        // It fails with the connection.
        let _ = thread.join();
    }
}

fn watches(target: Target, _: &mut Rng) {
    let client = target.log_on("a");
    let watching: Vec<_> = (0..400).map_while(|_| client.watch("").ok()).collect();
    for _ in 0..50 {
        let file = client.open("watched", &make()).unwrap().open;
        client.set_delete(file, true).unwrap();
        client.close(file).unwrap();
    }
    drop(watching);
}

fn patterns(target: Target, _: &mut Rng) {
    let client = target.log_on("a");
    let directory = How {
        options: 1,
        ..How::open(access::READ)
    };
    let dir = client.open("", &directory).unwrap().open;
    for _ in 0..20 {
        let _ = client.find(dir, &"*a".repeat(250));
        let _ = client.find(dir, &"x".repeat(32_000));
    }
}

fn listings(target: Target, _: &mut Rng) {
    let client = target.log_on("a");
    let mut other = nfs::Client::new(target.nfs).of_user(65534, 65534);
    let root = other.mnt("/disk").unwrap();
    for _ in 0..20 {
        client.list("").unwrap();
        other.list(&root, 65_536).unwrap();
    }
}

fn zeroes(target: Target, _: &mut Rng) {
    let client = target.log_on("a");
    let file = client.open("hole", &make()).unwrap().open;
    client.set_size(file, 64 << 20).unwrap();
    let range = [0_u64, 64 << 20].map(u64::to_le_bytes).concat();
    client.control(file, SET_ZERO_DATA, &range).unwrap();
    client.set_delete(file, true).unwrap();
    client.close(file).unwrap();
}

fn fills(target: Target, _: &mut Rng) {
    let client = target.log_on("a");
    let file = client.open("full", &make()).unwrap().open;
    for part in 0..16 {
        client.write(file, part << 16, &[7; 1 << 16]).unwrap();
    }
    client.set_delete(file, true).unwrap();
    client.close(file).unwrap();
}

fn forged_handles(target: Target, rng: &mut Rng) {
    let mut client = nfs::Client::new(target.nfs).of_user(0, 0);
    for _ in 0..200 {
        assert!(client.getattr(&random(rng, 32)).is_err());
    }
}

fn lock_owners(target: Target, rng: &mut Rng) {
    let mut client = nfs::Client::new(target.nfs).of_user(65534, 65534);
    let root = client.mnt("/disk").unwrap();
    let how = nfs::How::Unchecked(nfs::Set::mode(0o666));
    let (file, _) = client.create(&root, b"locked by nobody", how).unwrap();
    for _ in 0..500 {
        let client = nfs::Client::new(target.nfs).of_user(65534, 65534);
        let process = rng.below(1 << 31) as u32;
        let mut locker = Locker::new(client, &file, b"attacker", process);
        let at = rng.below(1 << 40);
        locker.lock((at, 1), true, rng.below(2) == 0);
    }
}

/// As many connections as there are to be had, each with a call that is answered.
fn connections(target: Target, _: &mut Rng) {
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut client = nfs::Client::new(target.nfs).of_user(65534, 65534);
        if catch_unwind(AssertUnwindSafe(|| client.mnt("/disk").unwrap())).is_err() {
            break;
        }
        held.push(client);
    }
    rest(Duration::from_secs(2));
}
