//! Linux's own clients, NFS and cifs, in a guest that reaches this host's loop-back as
//! 10.0.2.2.

use crate::served::{Served, VOLUMES};
use volary_testkit::oracle::vm;

/// Makes a tree of `$DIRS` directories, and copies it in and, after a new mount, out, for
/// `$VOLUMES`, by the mount of `mounted`, which is told the volume and the way; `$1` is
/// the way.
const COPY: &str = r#"
sums() { (cd "$1" && find . -type f | sort | tr '\n' '\0' | xargs -0 sha256sum | sha256sum); }
made=
mkdir /tree && cd /tree
for d in $(seq $DIRS); do
    mkdir "dir $d"
    for f in $(seq 100); do echo "$d $f" > "dir $d/file $f.txt"; done
done
dd if=/dev/urandom of=large bs=1M count=8 2>/dev/null
cd /
made=$(sums /tree)
copies() {
    for volume in $VOLUMES; do
        name=$(echo "$1" | tr ',=' '--')
        mounted $volume "$1" || { echo "cannot mount $volume $1"; exit 9; }
        cp -r /tree "/mnt/$name" || exit 1
        umount /mnt
        mounted $volume "$1" || exit 9
        cp -r "/mnt/$name" /back || exit 2
        [ "$(sums /back)" = "$made" ] || { echo "$volume $1: another tree"; exit 3; }
        rm -r /back "/mnt/$name" || exit 4
        [ ! -e "/mnt/$name" ] || exit 5
        umount /mnt
        echo "$volume $1 is the same"
    done
}
"#;

/// Mounts the export `$1` of the server at `$PORT`.
pub(crate) const NFS: &str = r#"
mounted() {
    mount -t nfs -o "addr=10.0.2.2,vers=3,proto=tcp,port=$PORT,mountport=$PORT,mountproto=tcp,nolock" "10.0.2.2:/$1" /mnt
}
"#;

/// Mounts the share `$1` of the server at `$PORT`, with the options `$2`.
pub(crate) const CIFS: &str = r#"
mounted() { mount -t cifs -o "ip=10.0.2.2,port=$PORT,username=tester,password=pass,$2" "\\\\10.0.2.2\\$1" /mnt; }
"#;

/// Runs it in a guest: as many copies are the same as there are volumes and ways.
fn copies(server: &str, mounted: &str, ways: &[&str]) {
    let Some(vmrun) = vm::find() else { return };
    let served = Served::start(1);
    let script = format!(
        "PORT={} DIRS={} VOLUMES='{}'\n{COPY}{mounted}for how in {}; do copies $how; done\n",
        served.port(server),
        served.dirs,
        VOLUMES.join(" "),
        ways.join(" ")
    );
    let printed = vm::with_network(&vmrun, &["--timeout", "3000"], &script)
        .unwrap_or_else(|words| panic!("{words}"));
    println!("{printed}");
    let same = printed.matches("is the same").count();
    assert_eq!(same, VOLUMES.len() * ways.len(), "{printed}");
    served.stop();
}

#[test]
fn linux_copies_in_and_out_by_nfs() {
    copies("nfs", NFS, &["v3"]);
}

#[test]
fn linux_copies_in_and_out_by_cifs_2_1() {
    copies("smb", CIFS, &["vers=2.1,sign"]);
}

#[test]
fn linux_copies_in_and_out_by_cifs_3_0() {
    copies("smb", CIFS, &["vers=3.0,sign", "vers=3.0,seal"]);
}

#[test]
fn linux_copies_in_and_out_by_cifs_3_1_1() {
    copies("smb", CIFS, &["vers=3.1.1,sign", "vers=3.1.1,seal"]);
}
