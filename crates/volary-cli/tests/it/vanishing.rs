//! Volumes that vanish while they are served, by clients of NFS, of SMB and of a mount.

use crate::sandbox::{Run, Sandbox, noise};
use crate::serving::Serving;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::thread;
use std::time::Duration;
use volary_testkit::nfs::client::{self as nfs, Fh};
use volary_testkit::smb::{self, access, status};

const NFS3ERR_IO: u32 = 5;
const NFS3ERR_STALE: u32 = 70;
const EIO: i32 = 5;

fn can_mount() -> bool {
    let able = std::path::Path::new("/dev/fuse").exists();
    if !able {
        println!("SKIPPED: no /dev/fuse");
    }
    able
}

/// Serves the volumes of a configuration over NFS and SMB; the sandbox is its home.
fn serve(sandbox: &Sandbox, volumes: &str) -> Serving {
    let head = "nfs = '127.0.0.1:0'\nsmb = '127.0.0.1:0'\nuser = 'me'\n";
    sandbox.write("serve.toml", format!("{head}{volumes}").as_bytes());
    let words = "serve --json --squash none --key key --config serve.toml";
    let mut command = sandbox.command(&words.split(' ').collect::<Vec<_>>());
    command.env("VOLARY_PASSWORD", "secret");
    Serving::of(command)
}

fn address(serving: &Serving, protocol: &str) -> SocketAddr {
    serving.said[protocol].as_str().unwrap().parse().unwrap()
}

/// Returns a client that has mounted an export, and waits long for answers.
fn by_nfs(serving: &Serving, export: &str) -> (nfs::Client, Fh) {
    let mut client = nfs::Client::new(address(serving, "nfs"));
    let long = Some(Duration::from_secs(120));
    client.wire.stream.set_read_timeout(long).unwrap();
    let root = client.mnt(export).unwrap();
    (client, root)
}

fn by_smb(serving: &Serving, share: &str) -> smb::Client {
    let at = address(serving, "smb");
    let connected = smb::Client::connect(at, "me", "secret", share, [9; 16]);
    connected.unwrap().0
}

/// Returns what is said to a client of SMB that wants to read a file.
fn smb_read(client: &smb::Client, path: &str, offset: u64) -> Result<Vec<u8>, smb::Fail> {
    let open = client.open(path, &smb::How::open(access::READ))?.open;
    let read = client.read(open, offset, 1000);
    client.close(open)?;
    read
}

/// The volume that does not vanish is served as before.
fn goes_on((client, root): &mut (nfs::Client, Fh), share: &smb::Client, name: &str) {
    let how = nfs::How::Guarded(nfs::Set::mode(0o666));
    let (fh, _) = client.create(root, name.as_bytes(), how).unwrap();
    client.write(&fh, 0, name.as_bytes(), 2).unwrap();
    assert_eq!(smb_read(share, name, 0).unwrap(), name.as_bytes());
}

fn signal(id: u32, name: &str) {
    let id = id.to_string();
    let sent = Command::new("kill").args([name, &id]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn what_vanishes_is_told_once_and_all_else_is_served_on() {
    if !can_mount() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("big", &noise(6 << 20));
    sandbox.run("cp big unix.img:/big").ok();
    let volumes = "[[volume]]\nvolume = 'unix.img'\nmount = 'mnt'\noptions = ['memory=1M']\n\
                   [[volume]]\nvolume = 'host:tree'\n\
                   [[volume]]\nvolume = 'mem:'\nname = 'other'\n";
    let serving = serve(&sandbox, volumes);
    let (mut image, root) = by_nfs(&serving, "/unix");
    let (big, _) = image.lookup(&root, b"big").unwrap();
    let share = by_smb(&serving, "unix");
    let file = File::open(sandbox.path("mnt/big")).unwrap();
    let (mut host, tree) = by_nfs(&serving, "/tree");
    let host_share = by_smb(&serving, "tree");
    let (mut other, other_share) = (by_nfs(&serving, "/other"), by_smb(&serving, "other"));
    goes_on(&mut other, &other_share, "before");
    // From here on the volume is in use, and has to be marked as left in order.
    std::fs::write(sandbox.path("mnt/new"), "new").unwrap();

    File::create(sandbox.path("unix.img")).unwrap();
    std::fs::remove_dir_all(sandbox.path("tree")).unwrap();
    for round in 0..10_u64 {
        let far = (2 << 20) + (round << 17);
        assert_eq!(image.read(&big, far, 1000).unwrap_err(), NFS3ERR_IO);
        let said = smb_read(&share, "big", far + (1 << 16)).unwrap_err();
        assert_eq!(said, smb::Fail::Status(status::IO_DEVICE_ERROR));
        let said = file.read_at(&mut [0; 1000], far + (2 << 20)).unwrap_err();
        assert_eq!(said.raw_os_error(), Some(EIO));
        assert_eq!(host.getattr(&tree).unwrap_err(), NFS3ERR_STALE);
        let how = nfs::How::Guarded(nfs::Set::mode(0o666));
        assert_eq!(host.create(&tree, b"new", how).unwrap_err(), NFS3ERR_STALE);
        let said = smb_read(&host_share, "a.txt", 0).unwrap_err();
        assert_eq!(said, smb::Fail::Status(status::FILE_CLOSED));
        goes_on(&mut other, &other_share, &format!("round {round}"));
    }
    drop(file);
    let Run { code, err, .. } = serving.end("-TERM");
    let lines: Vec<&str> = err.lines().collect();
    let of = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
    assert_eq!(code, 1, "{err}");
    assert_eq!(of("unix.img: failed while it was served: "), 1, "{err}");
    assert_eq!(of("host:tree: failed while it was served: "), 1, "{err}");
    assert!(
        lines.last().unwrap().starts_with("volary: unix.img: "),
        "{err}"
    );
    assert_eq!(lines.len(), 3, "{err}");
}

/// A server of others that has another volume, or other handles, once it is there again.
#[test]
fn an_export_that_is_another_after_a_restart_says_what_to_do() {
    let sandbox = Sandbox::new();
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let address = format!("127.78.{high}.{low}:2049");
    let above = |key| {
        let words = format!("serve --json --key {key} --nfs {address} --squash none mem:");
        Serving::of(sandbox.command(&words.split(' ').collect::<Vec<_>>()))
    };
    let first = above("one.key");
    let export = first.said["volumes"][0]["export"].as_str().unwrap();
    let url = format!("nfs://{address}{export}");
    let volumes = format!("[[volume]]\nvolume = '{url}'\nname = 'far'\n");
    let serving = serve(&sandbox, &volumes);
    let (mut far, root) = by_nfs(&serving, "/far");
    far.getattr(&root).unwrap();
    drop(first);
    // With another key it knows no handle of the first.
    let second = above("another.key");
    // What it knew it believes for some seconds; of names it asks.
    assert_eq!(far.lookup(&root, b"none").unwrap_err(), NFS3ERR_STALE);
    assert_eq!(far.lookup(&root, b"none").unwrap_err(), NFS3ERR_STALE);
    let Run { code, err, .. } = serving.end("-TERM");
    assert_eq!((code, err.lines().count()), (0, 1), "{err}");
    assert!(err.contains("begin anew"), "{err}");
    drop(second);
}

/// A server of others that says nothing for a while.
#[test]
fn an_export_that_goes_and_comes_back_is_served_on() {
    let sandbox = Sandbox::new();
    let above = Serving::start(&sandbox, "--squash none unix.img");
    let url = format!("nfs://127.0.0.1:{}/unix?timeout=8", above.port());
    let volumes = format!(
        "[[volume]]\nvolume = '{url}'\nname = 'far'\n[[volume]]\nvolume = 'mem:'\nname = 'other'\n"
    );
    let serving = serve(&sandbox, &volumes);
    let (mut far, root) = by_nfs(&serving, "/far");
    let (file, _) = far.lookup(&root, b"README.txt").unwrap();
    let share = by_smb(&serving, "far");
    let (mut other, other_share) = (by_nfs(&serving, "/other"), by_smb(&serving, "other"));

    signal(above.id(), "-STOP");
    let writing = thread::spawn(move || {
        let wrote = far.write(&file, 0, b"unheard", 2);
        (far, file, wrote)
    });
    let asking = thread::spawn({
        let share = share.clone();
        move || smb_read(&share, "docs\\a.txt", 0)
    });
    goes_on(&mut other, &other_share, "meanwhile");
    let (mut far, file, wrote) = writing.join().unwrap();
    assert_eq!(wrote.unwrap_err(), NFS3ERR_IO);
    let said = asking.join().unwrap().unwrap_err();
    assert_eq!(said, smb::Fail::Status(status::IO_DEVICE_ERROR));

    signal(above.id(), "-CONT");
    // Its first calls may still be those of a connection that was given up.
    let mut wrote = far.write(&file, 0, b"heard", 2);
    for _ in 0..10 {
        if wrote.is_err() {
            wrote = far.write(&file, 0, b"heard", 2);
        }
    }
    wrote.expect("the server is back");
    // What was given up may have been carried out before: the file is then as long as that.
    let held = smb_read(&share, "README.txt", 0).unwrap();
    assert!(held == b"heard\n" || held == b"heardrd", "{held:?}");
    let Run { code, err, .. } = serving.end("-TERM");
    let lines: Vec<&str> = err.lines().collect();
    assert!(lines[0].contains("failed while it was served"), "{err}");
    assert!(lines[1].contains("answers again"), "{err}");
    // Unless the write was refused before it was begun.
    let lost = lines
        .get(2)
        .is_some_and(|line| line.contains("could not be made"));
    assert_eq!(
        (code, lines.len()),
        if lost { (1, 3) } else { (0, 2) },
        "{err}"
    );
    above.stop("-TERM");
    let whole = sandbox.run("cat unix.img:/README.txt").ok();
    assert_eq!(whole.as_bytes(), held);
}
