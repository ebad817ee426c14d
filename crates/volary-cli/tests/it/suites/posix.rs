//! `pjdfstest` on a directory of the host that the command serves as a mount, as users have it: with
//! everything given up that it does not need (`--sandbox strict`).

use crate::mounting::Mounting;
use crate::sandbox::Sandbox;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Where the suite's configurations are: beside the tests of mounts.
const CONFIG: &str = "../../servers/volary-fuse/tests/suites/pjdfstest.toml";

#[test]
fn pjdfstest_finds_nothing_on_a_directory_that_a_confined_command_mounts() {
    if std::env::var_os("VOLARY_SUITES").is_none() {
        println!("skipped: pjdfstest, without VOLARY_SUITES=1");
        return;
    }
    let sandbox = Sandbox::empty();
    let [served, elsewhere] = [(); 2].map(|()| TempDir::new_in("/dev/shm").unwrap());
    let all = std::fs::Permissions::from_mode(0o755);
    for dir in [&sandbox.path(""), served.path()] {
        std::fs::set_permissions(dir, all.clone()).unwrap();
    }
    let volume = format!("host:{}", served.path().display());
    let words = ["--sandbox", "strict", "-o", "allow_other,dev,suid", &volume];
    let Some(mounting) = Mounting::start(&sandbox, &words) else {
        return;
    };
    let mut suite = Command::new("pjdfstest");
    suite.arg("-c");
    suite.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(CONFIG));
    suite.arg("-s").arg(elsewhere.path());
    suite.arg("-p").arg(sandbox.path("mnt"));
    let done = suite.output().expect("pjdfstest: cargo install pjdfstest");
    let words = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{words}");
    mounting.end();
}
