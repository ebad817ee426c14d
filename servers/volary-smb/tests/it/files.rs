//! What Windows clients rely on in the answers about files.

use crate::python::script_on;
use crate::served::{config, now};
use volary_mem::{Mem, MemOptions};
use volary_session::{Volume, VolumeOptions};

#[test]
fn files_are_as_windows_has_them() {
    script_on(config(), FILES);
}

/// The same where the volume tells upper from lower case and the server finds names by itself.
#[test]
fn files_are_as_windows_has_them_on_a_volume_that_tells_cases_apart() {
    let mut config = config();
    let options = MemOptions {
        uid: 1000,
        gid: 1000,
        ..MemOptions::default()
    };
    let fs = Mem::attach(options, now()).expect("a volume");
    config.shares[0].volume = Volume::new(fs, VolumeOptions::new("share", now));
    script_on(config, FILES);
}

/// Dispositions, names, share modes, rights, attributes, notification, deletion.
const FILES: &str = r#"
import sys, uuid
from smbprotocol.connection import Connection
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect
from smbprotocol.open import (Open, CreateDisposition as D, CreateOptions as O, FilePipePrinterAccessMask as A,
    DirectoryAccessMask, FileAttributes as F, ImpersonationLevel, ShareAccess as S)
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.change_notify import FileSystemWatcher, CompletionFilter, FileAction
from smbprotocol.file_info import FileInformationClass
port = int(sys.argv[1])
c = Connection(uuid.uuid4(), '127.0.0.1', port); c.connect()
s = Session(c, 'tester', 'pass'); s.connect()
t = TreeConnect(s, r'\\127.0.0.1\share'); t.connect()
ALL = S.FILE_SHARE_READ | S.FILE_SHARE_WRITE | S.FILE_SHARE_DELETE
def open_(name, disposition=D.FILE_OPEN, access=A.GENERIC_READ | A.GENERIC_WRITE | A.DELETE, options=0, share=ALL, attributes=0):
    o = Open(t, name)
    o.create(ImpersonationLevel.Impersonation, access, attributes, share, disposition, options)
    return o
def refused(status, act, *args, **named):
    try:
        act(*args, **named)
    except SMBResponseException as e:
        assert e.status == status, (hex(e.status), hex(status), args)
    else:
        raise AssertionError(('not refused', args))
dir = open_('d', D.FILE_CREATE, options=O.FILE_DIRECTORY_FILE)
watch = FileSystemWatcher(dir)
watch.start(CompletionFilter.FILE_NOTIFY_CHANGE_FILE_NAME)
# Dispositions.
refused(0xC0000034, open_, 'd\\f')
f = open_('d\\f', D.FILE_CREATE)
watch.wait()
seen = [(a['action'].get_value(), a['file_name'].get_value()) for a in watch.result]
assert seen == [(FileAction.FILE_ACTION_ADDED, 'f')], seen
f.write(b'12345', 0)
refused(0xC0000035, open_, 'd\\F', D.FILE_CREATE)
g = open_('D\\F')
assert g.read(0, 5) == b'12345'
# What is no name here.
for name, status in (('d\\f:stream', 0xC0000033), ('d\\nul', 0xC0000033), ('x\\y', 0xC000003A), ('d\\f\\z', 0xC000003A)):
    refused(status, open_, name, D.FILE_OPEN_IF)
open_('d\\f::$DATA').close()
# Share modes and rights.
refused(0xC0000043, open_, 'd\\f', share=0)
r = open_('d\\f', access=A.GENERIC_READ)
refused(0xC0000022, r.write, b'x', 0)
r.close()
g.close()
# Overwritten, it is empty.
h = open_('d\\f', D.FILE_OVERWRITE)
refused(0xC0000011, h.read, 0, 1)
h.close(); f.close()
# Hidden is kept.
open_('d\\h', D.FILE_CREATE, attributes=F.FILE_ATTRIBUTE_HIDDEN).close()
listed = {e['file_name'].get_value().decode('utf-16-le'): e['file_attributes'].get_value() for e in dir.query_directory('*', FileInformationClass.FILE_DIRECTORY_INFORMATION)}
assert set(listed) == {'.', '..', 'f', 'h'} and listed['h'] & F.FILE_ATTRIBUTE_HIDDEN, listed
# Deleted with their last close.
for name in ('d\\f', 'd\\h'):
    one = open_(name, options=O.FILE_DELETE_ON_CLOSE)
    two = open_(name)
    one.close()
    refused(0xC0000056, open_, name)
    two.close()
    refused(0xC0000034, open_, name)
dir.close()
open_('d', options=O.FILE_DIRECTORY_FILE | O.FILE_DELETE_ON_CLOSE).close()
refused(0xC0000034, open_, 'd')
c.disconnect()
print('content')
"#;
