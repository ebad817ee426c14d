//! Samba's client, by every dialect.

use crate::served::{Served, config, run};
use std::process::Command;
use volary_testkit::oracle::{self, Tool};

const SMBCLIENT: Tool = Tool {
    program: "smbclient",
    package: "smbclient",
};

const DIALECTS: [&str; 5] = ["SMB2_02", "SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11"];

fn smbclient(port: u16, args: &[&str]) -> Command {
    let mut command = SMBCLIENT.command();
    command
        .args(["-p", &port.to_string(), "-s", "/dev/null"])
        .args(args);
    command
}

/// Dialect and protection, as far as there is one.
fn ways() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = DIALECTS
        .into_iter()
        .flat_map(|d| [(d, "sign"), (d, "encrypt")]);
    all.filter(|(dialect, how)| *how == "sign" || dialect.starts_with("SMB3"))
}

#[test]
fn shares_are_listed() {
    if !oracle::have(&[SMBCLIENT]) {
        return;
    }
    let served = Served::new(config());
    for (dialect, how) in ways() {
        let protection = format!("--client-protection={how}");
        let args = [
            "-L",
            "127.0.0.1",
            "-U",
            "tester%pass",
            "-m",
            dialect,
            &protection,
        ];
        let (printed, content) = run(&mut smbclient(served.port, &args));
        assert!(content, "{dialect} {how}: {printed}");
        for name in ["share", "crypt", "fixed", "IPC$"] {
            assert!(
                printed.contains(name),
                "{dialect} {how} lacks {name}: {printed}"
            );
        }
    }
}

#[test]
fn files_are_put_and_got_listed_renamed_and_removed() {
    if !oracle::have(&[SMBCLIENT]) {
        return;
    }
    let served = Served::new(config());
    let dir = tempfile::tempdir().expect("a directory");
    let content: Vec<u8> = (0..2_500_000u32)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8)
        .collect();
    std::fs::write(dir.path().join("in"), &content).expect("a file");
    for (dialect, how) in ways() {
        let script =
            "put in b; mkdir d; rename b d\\c; ls d\\*; get d\\c out; del d\\c; rmdir d; ls";
        let protection = format!("--client-protection={how}");
        let args = [
            "//127.0.0.1/share",
            "-U",
            "tester%pass",
            "-m",
            dialect,
            &protection,
            "-c",
            script,
        ];
        let (printed, content_with_it) = run(smbclient(served.port, &args).current_dir(dir.path()));
        assert!(content_with_it, "{dialect} {how}: {printed}");
        assert!(!printed.contains("NT_STATUS"), "{dialect} {how}: {printed}");
        assert!(printed.contains(" 2500000 "), "{dialect} {how}: {printed}");
        let out = std::fs::read(dir.path().join("out")).expect("a file");
        assert!(out == content, "{dialect} {how}: other bytes came back");
        std::fs::remove_file(dir.path().join("out")).expect("a file");
    }
}

#[test]
fn encrypted_shares_ask_for_encryption_and_fixed_ones_stay_as_they_are() {
    if !oracle::have(&[SMBCLIENT]) {
        return;
    }
    let served = Served::new(config());
    let on = |share: &str, dialect: &str, script: &str| {
        let path = format!("//127.0.0.1/{share}");
        run(&mut smbclient(
            served.port,
            &[&path, "-U", "tester%pass", "-m", dialect, "-c", script],
        ))
    };
    for dialect in ["SMB3_00", "SMB3_02", "SMB3_11"] {
        let (printed, content) = on("crypt", dialect, "mkdir d; rmdir d");
        assert!(
            content && !printed.contains("NT_STATUS"),
            "{dialect}: {printed}"
        );
    }
    let (printed, _) = on("crypt", "SMB2_10", "ls");
    assert!(printed.contains("NT_STATUS_ACCESS_DENIED"), "{printed}");
    let (printed, _) = on("fixed", "SMB3_11", "mkdir d");
    let refusals = ["NT_STATUS_ACCESS_DENIED", "NT_STATUS_MEDIA_WRITE_PROTECTED"];
    assert!(refusals.iter().any(|r| printed.contains(r)), "{printed}");
}

/// Clients that speak SMB1 as well begin with it, and are told to go on with SMB2.
#[test]
fn clients_that_begin_with_smb1_go_on_with_smb2() {
    if !oracle::have(&[SMBCLIENT]) {
        return;
    }
    let served = Served::new(config());
    for (dialect, spoken) in [
        ("NT1", false),
        ("SMB2_02", true),
        ("SMB2_10", true),
        ("SMB3_11", true),
    ] {
        let oldest = "--option=client min protocol=NT1";
        let args = [
            "//127.0.0.1/share",
            "-U",
            "tester%pass",
            "-m",
            dialect,
            oldest,
            "-c",
            "ls",
        ];
        let (printed, content) = run(&mut smbclient(served.port, &args));
        assert_eq!(content, spoken, "{dialect}: {printed}");
    }
}

#[test]
fn nobody_comes_in_without_the_password() {
    if !oracle::have(&[SMBCLIENT]) {
        return;
    }
    let served = Served::new(config());
    let who = [
        &["-U", "tester%wrong"][..],
        &["-U", "tester%"],
        &["-U", "nobody%pass"],
        &["-U", "%"],
        &["-N"],
        &["-U", "tester%pass", "--option=client NTLMv2 auth=no"],
    ];
    for who in who {
        for dialect in DIALECTS {
            let args = [&["-L", "127.0.0.1", "-m", dialect], who].concat();
            let (printed, content) = run(&mut smbclient(served.port, &args));
            assert!(!content, "{who:?} {dialect}: {printed}");
        }
    }
}
