//! What clients change is on the image though nobody asks for it, and the server is killed.

use crate::mounting::Mounting;
use crate::sandbox::{Run, Sandbox, noise};
use crate::serving::Serving;
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use volary_testkit::nfs::client::{self as nfs};
use volary_testkit::smb::{self, access, disposition};

pub(crate) const KINDS: [&str; 3] = ["cedar", "fat32", "ffs2"];
/// How long the image is looked at.
const CEILING: Duration = Duration::from_secs(60);

pub(crate) fn make(sandbox: &Sandbox, kind: &str) {
    let small = if kind == "fat32" { "-o small " } else { "" };
    let line = format!("mkfs -q -t {kind} --size 8M --seed 1 {small}{kind}.img");
    sandbox.run(&line).ok();
}

/// Returns the file on the image, after a check if that wants one.
fn on_image(sandbox: &Sandbox, image: &str, name: &str) -> Option<Vec<u8>> {
    // It may say that it has mended something, or has nothing to do.
    sandbox.run(&format!("fsck -p {image}"));
    let _ = fs::remove_file(sandbox.path("back"));
    let Run { code, .. } = sandbox.run(&format!("cp {image}:/{name} back"));
    (code == 0).then(|| sandbox.read("back"))
}

/// Looks at copies of the image until the file is there.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing tells when a server has made something durable"
)]
fn until_there(sandbox: &Sandbox, image: &str, name: &str, content: &[u8]) {
    let begin = Instant::now();
    loop {
        fs::copy(sandbox.path(image), sandbox.path("copy.img")).unwrap();
        let found = on_image(sandbox, "copy.img", name);
        if found.as_deref() == Some(content) {
            return;
        }
        assert!(
            begin.elapsed() < CEILING,
            "{image}: {name} is not there: {:?} bytes",
            found.map(|data| data.len())
        );
        std::thread::sleep(Duration::from_millis(300));
    }
}

fn survives(sandbox: &Sandbox, kind: &str, name: &str, content: &[u8], kill: impl FnOnce()) {
    let image = format!("{kind}.img");
    until_there(sandbox, &image, name, content);
    kill();
    let found = on_image(sandbox, &image, name);
    assert_eq!(found.as_deref(), Some(content), "{kind}: {name}");
}

fn put_by_nfs(address: SocketAddr, kind: &str, content: &[u8]) {
    let mut client = nfs::Client::new(address);
    let root = client.mnt(&format!("/{kind}")).unwrap();
    let how = nfs::How::Guarded(nfs::Set::mode(0o644));
    let (fh, _) = client.create(&root, b"by-nfs", how).unwrap();
    for (i, part) in content.chunks(32 << 10).enumerate() {
        // Unstable, and no COMMIT after it.
        client.write(&fh, i as u64 * (32 << 10), part, 0).unwrap();
    }
}

fn put_by_smb(address: SocketAddr, kind: &str, content: &[u8]) {
    let client = smb::Client::connect(address, "me", "secret", kind, [7; 16]);
    let client = client.unwrap().0;
    let how = smb::How {
        disposition: disposition::CREATE,
        ..smb::How::open(access::WRITE)
    };
    let open = client.open("by-smb", &how).unwrap().open;
    client.write(open, 0, content).unwrap();
    client.close(open).unwrap();
}

#[test]
fn what_clients_of_nfs_write_is_kept_without_a_commit() {
    for kind in KINDS {
        let sandbox = Sandbox::empty();
        make(&sandbox, kind);
        let serving = Serving::start(&sandbox, &format!("--squash none --async {kind}.img"));
        let address = serving.said["nfs"].as_str().unwrap().parse().unwrap();
        let content = noise(200_000);
        put_by_nfs(address, kind, &content);
        survives(&sandbox, kind, "by-nfs", &content, || {
            serving.end("-KILL");
        });
    }
}

#[test]
fn what_clients_of_smb_write_is_kept_without_a_flush() {
    for kind in KINDS {
        let sandbox = Sandbox::empty();
        make(&sandbox, kind);
        let image = format!("{kind}.img");
        let words = ["serve", "--json", "--smb", "127.0.0.1:0", "--user", "me"];
        let mut command = sandbox.command(&[&words[..], &[&image]].concat());
        command.env("VOLARY_PASSWORD", "secret");
        let serving = Serving::of(command);
        let address = serving.said["smb"].as_str().unwrap().parse().unwrap();
        let content = noise(200_000);
        put_by_smb(address, kind, &content);
        survives(&sandbox, kind, "by-smb", &content, || {
            serving.end("-KILL");
        });
    }
}

#[test]
fn what_is_written_on_an_idle_mount_is_kept_in_the_time_that_is_asked_for() {
    for kind in KINDS {
        let sandbox = Sandbox::empty();
        make(&sandbox, kind);
        let words = ["-o", "commit=0.25", &format!("{kind}.img")];
        let Some(mount) = Mounting::start(&sandbox, &words) else {
            return;
        };
        let content = noise(200_000);
        fs::write(sandbox.path("mnt/by-mount"), &content).unwrap();
        survives(&sandbox, kind, "by-mount", &content, || drop(mount));
    }
}

#[test]
fn a_commit_time_that_is_none_is_refused() {
    let sandbox = Sandbox::empty();
    make(&sandbox, "fat32");
    for words in [
        "mount -o commit=soon fat32.img mnt",
        "serve -o commit=soon fat32.img",
    ] {
        let said = sandbox.run(words).fails(2);
        assert!(said.contains("option 'commit' is 'soon'"), "{said}");
    }
}
