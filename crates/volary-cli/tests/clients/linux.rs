//! Linux's own clients, NFS and cifs, in a guest that reaches this host's loop-back as
//! 10.0.2.2.

use crate::served::{Served, VOLUMES};
use crate::tree;
use volary_testkit::oracle::vm;

/// Makes a tree of `$DIRS` directories of `$FILES` files each and a file of `$LARGE` MiB. Copies it
/// in and, after a new mount, out, for `$VOLUMES`. `mounted` mounts: it is told the volume and the
/// way; `$1` is the way.
const COPY: &str = r#"
sums() { (cd "$1" && find . -type f | sort | tr '\n' '\0' | xargs -0 sha256sum | sha256sum); }
made=
mkdir /tree && cd /tree
for d in $(seq $DIRS); do
    mkdir "dir $d"
    for f in $(seq $FILES); do echo "$d $f" > "dir $d/file $f.txt"; done
done
dd if=/dev/urandom of=large bs=1M count=$LARGE 2>/dev/null
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

/// How each server's shares are mounted.
const WAYS: [(&str, &str, &[&str]); 2] = [
    ("nfs", NFS, &["v3"]),
    (
        "smb",
        vm::CIFS,
        &[
            "vers=2.1,sign",
            "vers=3.0,sign",
            "vers=3.0,seal",
            "vers=3.1.1,sign",
            "vers=3.1.1,seal",
        ],
    ),
];

/// All ways in one guest, since each takes its time to boot: as many copies are the same as
/// there are volumes and ways.
#[test]
fn linux_copies_in_and_out_by_nfs_and_by_cifs_2_1_to_3_1_1() {
    let Some(vmrun) = vm::find() else { return };
    let served = Served::start(1);
    let volumes = VOLUMES.join(" ");
    let (files, large) = if tree::all() { (100, 8) } else { (20, 3) };
    let mut script = format!(
        "DIRS={} FILES={files} LARGE={large} VOLUMES='{volumes}'\n{COPY}",
        served.dirs
    );
    for (server, mounted, ways) in WAYS {
        script += &format!("PORT={}\n{mounted}", served.port(server));
        script += &format!("for how in {}; do copies $how; done\n", ways.join(" "));
    }
    let printed = vm::with_network(&vmrun, &["--timeout", "3000"], &script)
        .unwrap_or_else(|words| panic!("{words}"));
    println!("{printed}");
    let ways: usize = WAYS.iter().map(|(_, _, ways)| ways.len()).sum();
    let same = printed.matches("is the same").count();
    assert_eq!(same, VOLUMES.len() * ways, "{printed}");
    served.stop();
}
