//! `volary quota`, and `tune` and `badsect` of FFS volumes.

use crate::sandbox::{Sandbox, noise};
use crate::serving::{Serving, can_mount};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn quotas_are_turned_on_set_shown_and_turned_off() {
    let sandbox = Sandbox::new();
    sandbox.run("mkfs -q -t ffs1 --size 8M ffs.img").ok();
    let off = sandbox.run("quota ffs.img").fails(1);
    assert!(off.contains("volary quota --on turns them on"), "{off}");
    sandbox.run("cp -r tree ffs.img:/").ok();
    sandbox.run("chown -R 1000:100 ffs.img:/tree").ok();
    sandbox.run("quota --on ffs.img").ok();
    sandbox
        .run("quota --user 1000 --soft 1M --hard 2M --hard-files 30 ffs.img")
        .ok();
    sandbox.run("quota --user 1000 --soft none ffs.img").ok();
    sandbox.run("quota --grace 3d --users ffs.img").ok();
    let report = json(&sandbox.run("quota --json ffs.img").ok());
    let users = &report[0];
    assert_eq!(
        (&users["of"], &users["grace"]),
        (&"user".into(), &259_200.into())
    );
    assert_eq!(users["grace_files"], 604_800);
    let ann = users["quotas"].as_array().unwrap();
    let ann = ann.iter().find(|quota| quota["id"] == 1000).unwrap();
    assert_eq!(ann["bytes"]["hard"], 2 << 20);
    assert_eq!(ann["bytes"]["soft"], Value::Null);
    assert_eq!(ann["files"]["hard"], 30);
    assert!(ann["bytes"]["used"].as_u64() > Some(0));
    assert!(ann["files"]["used"].as_u64() > Some(1));
    assert_eq!(report[1]["of"], "group");
    let table = sandbox.run("quota ffs.img").ok();
    assert!(
        table.contains("user 1000 ") && table.contains(" 2.0M "),
        "{table}"
    );
    assert!(table.contains("Time of grace of users: 3d for room, 7d for files"));
    // Who is past a limit.
    sandbox
        .run("quota --group 100 --soft-files 1 --soft 2k ffs.img")
        .ok();
    let over = json(&sandbox.run("quota --over --json ffs.img").ok());
    assert_eq!(over[0]["quotas"], Value::Array(Vec::new()));
    assert_eq!(over[1]["quotas"][0]["id"], 100);
    assert!(over[1]["quotas"][0]["files"]["until"].is_string());
    sandbox.run("fsck -n ffs.img").ok();
    sandbox.run("quota --off --groups ffs.img").ok();
    assert!(!sandbox.run("quota ffs.img").ok().contains("group 100"));
    sandbox.run("quota --groups ffs.img").fails(1);
    sandbox.run("quota --off ffs.img").ok();
    sandbox.run("quota ffs.img").fails(1);
    assert!(!sandbox.run("ls ffs.img").ok().contains("quota"));
    sandbox.run("fsck -n ffs.img").ok();
}

#[test]
fn a_quota_that_makes_no_sense_is_refused_in_a_line() {
    let sandbox = Sandbox::new();
    sandbox
        .run("mkfs -q -t ffs2 --size 8M -o quota ffs.img")
        .ok();
    for (line, code, words) in [
        ("quota disk.img", 1, "no quotas"),
        ("quota --user nobody-of-that-name ffs.img", 2, "no user"),
        ("quota --group 5 --hard much ffs.img", 2, "is no size"),
        ("quota --hard 5M ffs.img", 2, "--user or --group"),
        ("quota --user 5 --on ffs.img", 2, "of all"),
        ("quota --user 0 --hard 5M ffs.img", 1, "no limits"),
        (
            "quota --user 5 --soft 5M --hard 4M ffs.img",
            1,
            "past the hard one",
        ),
        ("quota --grace 3w ffs.img", 2, "is no time"),
        ("quota --grace 3d --on ffs.img", 2, "one at a time"),
        ("tune -o minfree=100 ffs.img", 2, "0 to 99"),
        ("tune -o softupdates=on ffs.img", 1, "order of soft updates"),
        ("badsect ffs.img 130", 2, "own structures"),
    ] {
        let said = sandbox.run(line).fails(code);
        assert!(said.contains(words), "{line}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{line}: {said}");
    }
    sandbox.run("fsck -n ffs.img").ok();
}

#[test]
fn an_ffs_volume_is_tuned_and_its_bad_sectors_put_aside() {
    let sandbox = Sandbox::new();
    sandbox.run("mkfs -q -t ffs2 --size 8M ffs.img").ok();
    let facts = sandbox
        .run("tune --json -o minfree=3,optim=space --label STICK ffs.img")
        .ok();
    assert_eq!(json(&facts)["minfree"], 3);
    assert_eq!(sandbox.run("label ffs.img").ok(), "STICK\n");
    let info = sandbox.run("info ffs.img").ok();
    assert!(info.contains("space"), "{info}");
    sandbox.run("badsect ffs.img 9000 0x2500").ok();
    let bad = sandbox.run("ls ffs.img:/BAD").ok();
    assert_eq!(bad.lines().count(), 2, "{bad}");
    sandbox.run("rm -r ffs.img:/BAD").ok();
    sandbox.run("fsck -n ffs.img").ok();
}

/// Returns a volume with 20 KiB of user 1000's, who may have 50 for a while.
fn bounded(kind: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let make = format!("mkfs -q -t {kind},quota --size 8M ffs.img");
    sandbox.run(&make).ok();
    sandbox.write("small", &noise(20_000));
    sandbox.write("large", &noise(60_000));
    sandbox.run("cp small large ffs.img:/").ok();
    sandbox
        .run("quota --user 1000 --soft 50k --hard 1M ffs.img")
        .ok();
    let below = sandbox.run("chown 1000 ffs.img:/small");
    assert_eq!(below.err, "");
    sandbox
}

const PAST: &str = "user 1000 takes 84 KiB, more than the soft limit of 50 KiB";

#[test]
fn a_command_names_the_user_who_passes_a_soft_limit() {
    for (kind, left) in [
        ("ffs1 -o old", "3 warnings are left to go below it"),
        ("ffs1 -o order=big", "7 days are left to go below it"),
        ("ffs2 -o order=big", "7 days are left to go below it"),
    ] {
        let sandbox = bounded(kind);
        let passed = sandbox.run("chown 1000 ffs.img:/large");
        assert_eq!(passed.code, 0, "{}", passed.err);
        assert!(passed.err.contains(PAST), "{kind}: {}", passed.err);
        assert!(passed.err.contains(left), "{kind}: {}", passed.err);
        // Past it, each change is not told of again.
        assert_eq!(sandbox.run("chmod 600 ffs.img:/large").err, "");
        sandbox.run("fsck -n ffs.img").ok();
    }
}

#[test]
fn a_server_names_the_user_who_passes_a_soft_limit() {
    let sandbox = bounded("ffs2 -o order=little");
    let serving = Serving::start(&sandbox, "--squash none ffs.img");
    let export = format!("nfs://127.0.0.1:{}/ffs:/large", serving.port());
    sandbox.run(&format!("chown 1000 {export}")).ok();
    let said = serving.end("-TERM").err;
    assert_eq!(said.matches(PAST).count(), 1, "{said}");
}

#[test]
fn a_mount_in_the_background_tells_the_system_s_log() {
    use std::os::unix::fs::chown;
    use std::os::unix::net::UnixDatagram;
    let sandbox = bounded("ffs2 -o order=little");
    if !can_mount() {
        return;
    }
    let Ok(log) = UnixDatagram::bind("/dev/log") else {
        println!("skipped: this host has a log of its own");
        return;
    };
    let soon = Some(std::time::Duration::from_secs(10));
    log.set_read_timeout(soon).unwrap();
    // Others may say something too.
    let said = |words: &str| loop {
        let mut line = [0; 1024];
        let len = log.recv(&mut line).unwrap();
        let line = String::from_utf8_lossy(&line[..len]).into_owned();
        if line.contains(words) {
            break line;
        }
    };
    let mounted = sandbox.run("mount --background ffs.img mnt");
    Serving::start(&sandbox, "--log system mem:16M").stop("-TERM");
    std::fs::remove_file("/dev/log").unwrap();
    mounted.ok();
    let served = said("NFS: server begins: at=[127.0.0.1:");
    assert!(served.starts_with("<30>volary["), "{served}");
    chown(sandbox.path("mnt/large"), Some(1000), None).unwrap();
    let passed = said(PAST);
    assert!(passed.starts_with("<28>volary["), "{passed}");
    let unmounted = sandbox.shell("umount mnt");
    assert_eq!(unmounted.code, 0, "{}", unmounted.err);
}
