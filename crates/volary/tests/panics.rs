//! A panic is a fault of ours. In whichever operation it comes, it costs a client of any server one
//! request or one connection; nothing stays locked, and everybody else works on.

mod servers;

use servers::{clock, serve_nfs, serve_smb};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use volary::fuse::{MountOptions, Stop};
use volary::mem::{Mem, MemOptions};
use volary::{
    Call, Cancel, Caps, Cookie, Create, Cred, Ctx, DirBuf, Fs, Layer, Mode, Name, Op, RenameFlags,
    Result, SetAttr, Volume, VolumeOptions,
};
use volary_testkit::{hostfs, nfs, smb};

/// How long a client may take for what takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What each server asks of a volume for [`work`].
const ALWAYS: [Call; 11] = [
    Call::Create,
    Call::Write,
    Call::Read,
    Call::Lookup,
    Call::GetAttr,
    Call::SetAttr,
    Call::MkDir,
    Call::Rename,
    Call::ReadDir,
    Call::Unlink,
    Call::RmDir,
];

/// Panics once in the operation that it is told.
struct Faulty {
    below: Fs,
    planted: Mutex<Option<Call>>,
}

impl Faulty {
    fn new() -> Arc<Self> {
        let below = Mem::attach(MemOptions::sized(64 << 20), clock()).expect("memory");
        Arc::new(Self {
            below,
            planted: Mutex::default(),
        })
    }

    fn plant(&self, call: Option<Call>) -> Option<Call> {
        std::mem::replace(&mut *self.planted.lock().expect("no panic"), call)
    }

    fn is_met(&self, call: Call) -> bool {
        let mut planted = self.planted.lock().expect("no panic");
        planted.take_if(|planted| *planted == call).is_some()
    }
}

impl Layer for Faulty {
    fn below(&self) -> &Fs {
        &self.below
    }
    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        assert!(!self.is_met(op.call), "planted in {}", op.call.name());
        call()
    }
}

/// Makes, reads, changes, moves and removes; `number` is in all names.
fn work(fs: &Fs, number: usize) -> Result<()> {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    let cx = Ctx {
        cred: &cred,
        now: clock(),
        cancel: &cancel,
    };
    let [file, dir, moved] = ["file", "dir", "moved"].map(|name| format!("{name}{number}"));
    let [file, dir, moved] = [&file, &dir, &moved].map(|name| Name::new(name.as_bytes()));
    let (file, dir, moved) = (file?, dir?, moved?);
    let root = fs.root();
    let (made, open) = fs.create(&cx, root, file, Create::New, &SetAttr::mode(0o644))?;
    fs.write(&cx, open, Some(0), b"what is in a file")?;
    fs.fsync(&cx, open, false)?;
    fs.close(&cx, open)?;
    let open = fs.open(&cx, made.node, Mode::Read)?;
    fs.read(&cx, open, 5, &mut [0; 32])?;
    fs.close(&cx, open)?;
    let shorter = SetAttr {
        size: Some(4),
        ..SetAttr::default()
    };
    fs.setattr(&cx, made.node, &shorter)?;
    let into = fs.mkdir(&cx, root, dir, &SetAttr::mode(0o755))?.node;
    fs.rename(&cx, root, file, into, moved, RenameFlags::REPLACE)?;
    let open = fs.open(&cx, into, Mode::Read)?;
    fs.readdir(&cx, open, Cookie::START, &mut DirBuf::new(16, 4096, true))?;
    fs.close(&cx, open)?;
    fs.lookup(&cx, into, moved)?;
    fs.getattr(&cx, made.node)?;
    fs.unlink(&cx, into, moved)?;
    fs.rmdir(&cx, root, dir)?;
    fs.statfs(&cx)?;
    Ok(())
}

/// Returns what came of a client's work; `None` if the client itself found no sense in an answer.
///
/// # Panics
/// If it waits for an answer that never comes.
fn outcome(client: Fs, number: usize, of: &str) -> Option<Result<()>> {
    let (tell, told) = mpsc::channel();
    let worker = thread::spawn(move || {
        let done = work(&client, number);
        _ = tell.send(());
        done
    });
    let waited = told.recv_timeout(PATIENCE);
    assert_ne!(waited, Err(mpsc::RecvTimeoutError::Timeout), "{of}: waits");
    worker.join().ok()
}

/// Plants a panic in each operation, for a client of its own; another works before and after, on the
/// connection that it had, and so does one that comes then.
fn try_each(server: &str, faulty: &Faulty, client: impl Fn() -> Fs) {
    let mut met = BTreeSet::new();
    let witness = client();
    let well = |client: &Fs, number, of: &str| {
        let done = outcome(Arc::clone(client), number, of);
        assert!(matches!(done, Some(Ok(()))), "{of}: {done:?}");
    };
    well(&witness, 0, server);
    for (number, call) in (1..).step_by(3).zip(Call::ALL) {
        let of = format!("{server}, {}", call.name());
        let victim = client();
        faulty.plant(Some(*call));
        _ = outcome(victim, number, &of);
        if faulty.plant(None).is_none() {
            met.insert(*call);
        }
        well(&witness, number + 1, &of);
        well(&client(), number + 2, &of);
    }
    let missed: Vec<_> = ALWAYS.iter().filter(|call| !met.contains(call)).collect();
    assert!(missed.is_empty(), "{server} never called {missed:?}");
}

fn served(faulty: &Arc<Faulty>) -> (Arc<Volume>, Caps) {
    let fs: Fs = faulty.clone();
    let caps = fs.caps();
    (Volume::new(fs, VolumeOptions::new("test", clock)), caps)
}

#[test]
fn a_panic_costs_an_smb_client_its_connection_and_no_other() {
    let faulty = Faulty::new();
    let (volume, caps) = served(&faulty);
    let server = serve_smb(&volume);
    try_each("SMB", &faulty, || {
        let client = smb::Client::connect(server.address, "tester", "pass", "test", [7; 16]);
        Arc::new(smb::Remote::new(
            client.expect("a client").0,
            smb::shown(caps),
        ))
    });
    assert!(server.runs());
    drop(server);
    volume.detach().expect("detached");
}

#[test]
fn a_panic_costs_an_nfs_client_one_call() {
    let faulty = Faulty::new();
    let (volume, caps) = served(&faulty);
    let server = serve_nfs(&volume);
    try_each("NFS", &faulty, || {
        let client = nfs::client::Client::new(server.addresses()[0]);
        Arc::new(nfs::Remote::new(client, nfs::shown(caps)))
    });
    drop(server);
    // The server has detached it, or this does.
    _ = volume.detach();
}

#[test]
fn a_panic_costs_a_program_on_a_mount_one_call() {
    if !Path::new("/dev/fuse").exists() || !rustix::process::geteuid().is_root() {
        println!("SKIPPED: no /dev/fuse, or no right to mount");
        return;
    }
    let faulty = Faulty::new();
    let (volume, caps) = served(&faulty);
    let dir = TempDir::new().expect("a directory");
    let mounted = volary::fuse::serve(volume, dir.path(), &MountOptions::default(), Stop::Call);
    let mounted = mounted.expect("a mount");
    try_each("FUSE", &faulty, || {
        hostfs::open(dir.path(), caps).expect("the mount")
    });
    mounted.unmount().expect("unmount");
}
