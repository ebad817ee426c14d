//! Two clients in Python, impacket and smbprotocol, which share no code with
//! Samba's.

use crate::served::{Served, config, run};
use std::process::Command;
use volary_smb::Config;
use volary_testkit::oracle::python;

fn script(text: &str) {
    script_on(config(), text);
}

/// Runs a script, which is told the port; the last that it prints is `content`.
pub(crate) fn script_on(config: Config, text: &str) {
    let Some(python) = python::with_smb_clients() else {
        return;
    };
    let served = Served::new(config);
    let (printed, content) = run(Command::new(python).args(["-c", text, &served.port.to_string()]));
    assert!(
        content && printed.trim_end().ends_with("content"),
        "{printed}"
    );
}

#[test]
fn impacket_is_content() {
    script(
        r#"
import io, sys
from impacket.smbconnection import SMBConnection, SessionError
from impacket.smb3structs import SMB2_DIALECT_002, SMB2_DIALECT_21, SMB2_DIALECT_30, SMB2_DIALECT_311
port = int(sys.argv[1])
for dialect in (SMB2_DIALECT_002, SMB2_DIALECT_21, SMB2_DIALECT_30, SMB2_DIALECT_311):
    c = SMBConnection('127.0.0.1', '127.0.0.1', sess_port=port, preferredDialect=dialect)
    assert c.getDialect() == dialect, c.getDialect()
    c.login('tester', 'pass')
    names = [s['shi1_netname'][:-1] for s in c.listShares()]
    assert names == ['share', 'crypt', 'fixed', 'IPC$'], names
    data = bytes(range(256)) * 3000
    c.createDirectory('share', 'd')
    c.putFile('share', 'd\\f', io.BytesIO(data).read)
    out = io.BytesIO()
    c.getFile('share', 'd\\f', out.write)
    assert out.getvalue() == data
    listed = {f.get_longname(): f.get_filesize() for f in c.listPath('share', 'd\\*')}
    assert listed == {'.': 0, '..': 0, 'f': len(data)}, listed
    c.rename('share', 'd\\f', 'd\\g')
    c.deleteFile('share', 'd\\g')
    c.deleteDirectory('share', 'd')
    c.logoff()
for user, password in (('tester', 'no'), ('', ''), ('guest', '')):
    try:
        SMBConnection('127.0.0.1', '127.0.0.1', sess_port=port).login(user, password)
    except SessionError as e:
        assert e.getErrorCode() in (0xC000006D,), e
    else:
        raise SystemExit('logged on as ' + user)
print('content')
"#,
    );
}

#[test]
fn smbprotocol_is_content() {
    script(
        r#"
import sys, uuid
from smbprotocol.connection import Connection, Dialects, Ciphers, SigningAlgorithms
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect
from smbprotocol.open import Open, CreateDisposition, CreateOptions, FilePipePrinterAccessMask, \
    FileAttributes, ImpersonationLevel, ShareAccess
port = int(sys.argv[1])
ways = [(d, None, None) for d in (Dialects.SMB_2_0_2, Dialects.SMB_2_1_0, Dialects.SMB_3_0_0, Dialects.SMB_3_0_2)]
ways += [(Dialects.SMB_3_1_1, [c], None) for c in (Ciphers.AES_128_CCM, Ciphers.AES_128_GCM, Ciphers.AES_256_CCM, Ciphers.AES_256_GCM)]
ways += [(Dialects.SMB_3_1_1, None, [s]) for s in (SigningAlgorithms.HMAC_SHA256, SigningAlgorithms.AES_CMAC)]
for dialect, ciphers, signing in ways:
    c = Connection(uuid.uuid4(), '127.0.0.1', port, require_signing=True)
    c.connect(dialect, preferred_encryption_algos=ciphers, preferred_signing_algos=signing)
    assert c.dialect == dialect
    encrypt = ciphers is not None or dialect in (Dialects.SMB_3_0_0, Dialects.SMB_3_0_2)
    s = Session(c, 'tester', 'pass', require_encryption=encrypt, auth_protocol='ntlm')
    s.connect()
    t = TreeConnect(s, r'\\127.0.0.1\share')
    t.connect()
    f = Open(t, 'f.txt')
    f.create(ImpersonationLevel.Impersonation,
             FilePipePrinterAccessMask.GENERIC_READ | FilePipePrinterAccessMask.GENERIC_WRITE | FilePipePrinterAccessMask.DELETE,
             FileAttributes.FILE_ATTRIBUTE_NORMAL, ShareAccess.FILE_SHARE_READ,
             CreateDisposition.FILE_OVERWRITE_IF,
             CreateOptions.FILE_NON_DIRECTORY_FILE | CreateOptions.FILE_DELETE_ON_CLOSE)
    data = bytes(range(251)) * 200
    assert f.write(data, 0) == len(data)
    assert f.read(0, len(data)) == data
    f.flush()
    f.close()
    t.disconnect()
    s.disconnect()
    c.disconnect()
print('content')
"#,
    );
}
