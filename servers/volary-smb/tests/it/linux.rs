//! Linux's client, in a guest.

use crate::served::{Served, config};
use volary_testkit::oracle::vm::{self, CIFS};

/// Mounts with each dialect and protection, and does there what file systems are
/// there for.
#[test]
fn linux_mounts_it_signed_and_sealed() {
    let Some(vmrun) = vm::find() else { return };
    let served = Served::new(config());
    let script = format!(
        r#"set -e
PORT={port}
{CIFS}
for how in vers=2.1 vers=3.0 vers=3.0,seal vers=3.1.1 vers=3.1.1,seal; do
    mounted share $how
    cd /mnt
    mkdir d
    dd if=/dev/urandom of=/tmp/f bs=64k count=30 2>/dev/null
    cp /tmp/f d/f
    cmp /tmp/f d/f
    echo more >> d/f
    mv d/f d/g
    [ $(stat -c %s d/g) = 1966085 ]
    for n in $(seq 100); do echo $n > d/n$n; done
    [ $(ls d | wc -l) = 101 ]
    [ $(cat d/n77) = 77 ]
    truncate -s 10 d/g
    [ $(stat -c %s d/g) = 10 ]
    df . | tail -1
    rm -r d
    [ -z "$(ls)" ]
    cd /
    umount /mnt
    echo $how is content
done
! mount -t cifs -o ip=10.0.2.2,port={port},username=tester,password=wrong '\\10.0.2.2\share' /mnt 2>/dev/null
"#,
        port = served.port
    );
    let printed = vm::with_network(&vmrun, &["--timeout", "400"], &script)
        .unwrap_or_else(|words| panic!("{words}"));
    assert_eq!(printed.matches("is content").count(), 5, "{printed}");
}
