//! FSCTLs of SMB clients that are a driver's own codes.

use crate::sandbox::Sandbox;
use crate::serving::Serving;
use std::process::Command;
use volary_testkit::oracle::python;

/// Users that are root and nobody in particular; their password is "password".
const USERS: &str = "\
root:0:0:8846F7EAEE8FB117AD06BDD830B7586C
me:1000:1000:8846F7EAEE8FB117AD06BDD830B7586C
";

/// Sets the reserve of an FFS volume: `_IOW('V', 1, int)`.
const SCRIPT: &str = r#"
import struct, sys
from impacket.smbconnection import SMBConnection, SessionError
from impacket.smb3structs import *
SET, OTHER, DUPLICATE_EXTENTS = 0x8056A004, 0x8056A008, 0x00098344
DENIED, NO_REQUEST, PARAMETER = 0xC0000022, 0xC0000010, 0xC000000D
def ask(user, share, name, rights, code, data, room=0, how=FILE_OPEN_IF):
    c = SMBConnection('127.0.0.1', '127.0.0.1', sess_port=int(sys.argv[1]))
    c.login(user, 'password')
    smb = c.getSMBServer()
    tree = c.connectTree(share)
    f = c.createFile(tree, name, desiredAccess=rights, creationDisposition=how)
    try:
        smb.ioctl(tree, f, code, SMB2_0_IOCTL_IS_FSCTL, data, maxOutputResponse=room)
        return 0
    except SessionError as e:
        return e.getErrorCode()
    except Exception as e:
        return e.get_error_code()
    finally:
        c.closeFile(tree, f)
        c.close()
def same(found, wanted):
    assert found == wanted, '%x' % found
WRITE, READ = FILE_READ_DATA | FILE_WRITE_DATA, FILE_READ_DATA
seven, eight = struct.pack('<I', 7), struct.pack('<I', 8)
same(ask('root', 'ffs', 'f', WRITE, SET, seven), 0)
same(ask('root', 'ffs', 'f', READ, SET, eight), DENIED)
same(ask('root', 'fixed', 'f', READ, SET, eight, how=FILE_OPEN), DENIED)
same(ask('me', 'ffs', 'mine', WRITE, SET, eight), DENIED)
same(ask('root', 'ffs', 'f', WRITE, SET, eight * 2), NO_REQUEST)
same(ask('root', 'ffs', 'f', WRITE, SET, eight * 5000), PARAMETER)
same(ask('root', 'ffs', 'f', WRITE, OTHER, eight), NO_REQUEST)
same(ask('root', 'ffs', 'f', WRITE, DUPLICATE_EXTENTS, eight), NO_REQUEST)
print('content')
"#;

const CONFIG: &str = "
smb = '127.0.0.1:0'
users = 'users'
[[volume]]
volume = 'ffs.img'
[[volume]]
volume = 'host:tree'
name = 'fixed'
read-only = true
";

#[test]
fn drivers_own_codes_reach_them_from_smb_clients_who_may() {
    let Some(python) = python::with_smb_clients() else {
        return;
    };
    let sandbox = Sandbox::empty();
    sandbox.run("mkfs -q -t ffs2 --size 8M ffs.img").ok();
    sandbox.run("chmod 777 ffs.img:/").ok();
    sandbox.write("tree/f", b"text");
    sandbox.write_secret("users", USERS.as_bytes());
    sandbox.write("serve.toml", CONFIG.as_bytes());
    let serving = Serving::of(sandbox.command(&["serve", "--json", "--config", "serve.toml"]));
    let address = serving.said["smb"].as_str().unwrap();
    let port = address.rsplit(':').next().unwrap();
    let run = Command::new(python)
        .args(["-c", SCRIPT, port])
        .output()
        .unwrap();
    let run = crate::sandbox::Run::of(&run);
    assert_eq!(run.out, "content\n", "{}", run.err);
    serving.stop("-TERM");
    sandbox.run("mkfs -q -t ffs2 --size 8M like.img").ok();
    sandbox.run("tune -o minfree=7 like.img").ok();
    let kept = |image: &str| {
        let facts = sandbox.run(&format!("info --json {image}")).ok();
        let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
        facts["kept for root"].as_u64().unwrap()
    };
    assert_eq!(kept("ffs.img"), kept("like.img"));
}
