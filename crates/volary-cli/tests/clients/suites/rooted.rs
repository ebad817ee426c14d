//! A volume as the root of a system (DosFs §1: "as root"): Linux in a guest mounts it by NFS,
//! makes it the root of its first process, and works there.

use crate::served::{Server, content, volary};
use std::fs;
use std::path::Path;
use std::process::Command;
use volary_testkit::oracle::vm;

/// Makes a small system of the host's programs.
const USERLAND: &str = include_str!("userland.sh");
/// Makes and builds a project, and prints what came of it.
const BUILD: &str = include_str!("build.sh");

/// How the guest gets there: in a new mount namespace the volume takes the place of what the
/// guest has booted from, in a new PID namespace its `/sbin/init` is the first process.
const BOOT: &str = r#"
mkdir /newroot
mount -t nfs -o "addr=10.0.2.2,vers=3,proto=tcp,port=$PORT,mountport=$PORT,mountproto=tcp,nolock" \
    10.0.2.2:/disk /newroot || exit 9
exec unshare -m -p -f sh -c 'cd /newroot && mount --move . / && exec chroot . /sbin/init'
"#;

/// The first process. All it runs, reads and writes, devices too, is on the volume.
const INIT: &str = r#"#!/bin/sh
export PATH=/bin HOME=/root LC_ALL=C
mount -t proc proc /proc || exit 1
echo "process $$ on $(grep -c ' / nfs ' /proc/mounts) root by nfs"
cat /etc/secret
chroot --userspec=1000:1000 / /bin/sh -c '
    id -u
    cat /etc/secret 2> /dev/null || echo "the secret is kept"
    echo mine > /home/user/file && chmod 600 /home/user/file && stat -c "%a %u" /home/user/file
    echo no 2> /dev/null > /etc/file || echo "/etc is kept"
'
ln -s /home/user/file /root/link && cat /root/link
sh /root/build.sh /root/project $(cat /root/sources) || exit 2
sync
"#;

/// What the first process prints before it builds.
const SAID: &str = "\
process 1 on 1 root by nfs
hidden
1000
the secret is kept
600 1000
/etc is kept
mine
";

fn sh(script: &str, arguments: &[&str]) -> String {
    let mut sh = Command::new("sh");
    sh.args(["-c", script, "sh"]).args(arguments);
    content(&sh.output().unwrap(), "sh")
}

/// The system, in this directory.
fn system(root: &Path, sources: &str) {
    sh(USERLAND, &[root.to_str().unwrap()]);
    fs::write(root.join("sbin/init"), INIT).unwrap();
    fs::write(root.join("etc/secret"), "hidden\n").unwrap();
    fs::write(root.join("root/build.sh"), BUILD).unwrap();
    fs::write(root.join("root/sources"), sources).unwrap();
    let modes = "chmod 755 $1/sbin/init && chmod 600 $1/etc/secret && ls -d $1/*";
    sh(modes, &[root.to_str().unwrap()]);
}

/// Boots from a new volume of this kind.
fn boots(kind: &str) {
    let Some(vmrun) = super::guest() else {
        return;
    };
    assert!(rustix::process::getuid().is_root(), "makes devices: root");
    let dir = tempfile::TempDir::new().unwrap();
    let run = |line: &str| content(&volary(dir.path(), line).output().unwrap(), line);
    let sources = if crate::tree::all() { "30" } else { "3" };
    system(&dir.path().join("system"), sources);
    run(&format!("mkfs -q -t {kind} --size 512M disk.img"));
    let tops = fs::read_dir(dir.path().join("system")).unwrap();
    let tops: Vec<_> = tops.map(|top| top.unwrap().path()).collect();
    let mut copy = volary(dir.path(), "cp -a");
    copy.args(&tops).arg("disk.img:/");
    content(&copy.output().unwrap(), "cp -a");

    let line = "serve --json --nfs 127.0.0.1:0 --key key --squash none disk.img";
    let server = Server::start(dir.path(), line);
    let script = format!("PORT={}\n{BOOT}", server.port("nfs"));
    let options = ["--mem", "1024", "--timeout", "3000"];
    let printed = vm::with_network(&vmrun, &options, &script);
    let printed = printed.unwrap_or_else(|words| panic!("{words}"));
    server.stop();

    let here = dir.path().join("here");
    let built = sh(BUILD, &[here.to_str().unwrap(), sources]);
    assert_eq!(printed, format!("{SAID}{built}"));
    run("fsck -n disk.img");
    let result = run("cat disk.img:/root/project/result");
    assert_eq!(result, fs::read_to_string(here.join("result")).unwrap());
}

#[test]
fn a_system_has_fat_as_its_root() {
    boots("fat32 --unix");
}

#[test]
fn a_system_has_ffs_as_its_root() {
    boots("ffs2");
}
