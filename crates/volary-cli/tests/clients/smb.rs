//! SMB: Samba's client, impacket and smbprotocol, which share no code.

use crate::served::{Served, VOLUMES, content};
use crate::tree;
use std::path::Path;
use std::process::Command;
use volary_testkit::oracle::{self, Tool, python};

const SMBCLIENT: Tool = Tool {
    program: "smbclient",
    package: "smbclient",
};

/// Copies with `copy`, which is told the share, the way, the name of the copy there and the
/// place for what comes back; by each way in turn.
fn copies(ways: &[&str], copy: impl Fn(&Served, &str, &str, &str, &Path)) {
    let served = Served::start(1);
    for share in VOLUMES {
        for way in ways {
            let name = format!("{share}-{way}");
            let back = served.back(&name);
            copy(&served, share, way, &name, &back);
            tree::same(&served.tree(), &back.join(&name), &name);
            if share == "host" {
                served.is_on_host(&name);
            }
        }
    }
    served.stop();
}

#[test]
fn samba_s_client_copies_in_and_out() {
    if !oracle::have(&[SMBCLIENT]) {
        return;
    }
    copies(&["SMB2_10", "SMB3_11"], |served, share, way, name, back| {
        let tree = served.tree();
        let script = format!(
            "mkdir {name}; cd {name}; lcd {}; recurse on; prompt off; mput *; cd \\; lcd {}; mget {name}",
            tree.display(),
            back.display()
        );
        let mut command = SMBCLIENT.command();
        command
            .arg(format!("//127.0.0.1/{share}"))
            .args(["-p", &served.port("smb").to_string(), "-s", "/dev/null"])
            .args(["-U", "tester%pass", "-m", way, "-c", &script]);
        let printed = content(&command.output().unwrap(), name);
        assert!(!printed.contains("NT_STATUS"), "{printed}");
    });
}

#[test]
fn impacket_copies_in_and_out() {
    by_script(include_str!("impacket.py"), &["2.1", "3.1.1"]);
}

#[test]
fn smbprotocol_copies_in_and_out() {
    by_script(include_str!("smbprotocol.py"), &["sign", "encrypt"]);
}

/// Copies with a script, which is told the port, the share, the way, the tree, its name there, and where to.
fn by_script(script: &str, ways: &[&str]) {
    let Some(python) = python::with_smb_clients() else {
        return;
    };
    copies(ways, |served, share, way, name, back| {
        let port = served.port("smb").to_string();
        let mut command = Command::new(&python);
        command.args(["-c", script, &port, share, way]);
        command.arg(served.tree()).arg(name).arg(back);
        content(&command.output().unwrap(), name);
    });
}
