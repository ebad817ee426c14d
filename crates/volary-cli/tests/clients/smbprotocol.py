import os, sys, uuid
from smbprotocol.connection import Connection, Dialects
from smbprotocol.file_info import FileInformationClass
from smbprotocol.open import CreateDisposition, CreateOptions, DirectoryAccessMask, FileAttributes, \
    FilePipePrinterAccessMask, ImpersonationLevel, Open, ShareAccess
from smbprotocol.exceptions import NoMoreFiles
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

port, share, way, tree, name, back = int(sys.argv[1]), *sys.argv[2:]
connection = Connection(uuid.uuid4(), "127.0.0.1", port, require_signing=True)
connection.connect(Dialects.SMB_3_1_1 if way == "encrypt" else Dialects.SMB_2_0_2)
session = Session(connection, "tester", "pass", require_encryption=way == "encrypt", auth_protocol="ntlm")
session.connect()
volume = TreeConnect(session, r"\\127.0.0.1\%s" % share)
volume.connect()
ALL = ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE


def opened(path, access, disposition, options):
    it = Open(volume, path)
    it.create(ImpersonationLevel.Impersonation, access, FileAttributes.FILE_ATTRIBUTE_NORMAL, ALL, disposition, options)
    return it


def put(here, there):
    opened(there, DirectoryAccessMask.FILE_LIST_DIRECTORY, CreateDisposition.FILE_CREATE,
           CreateOptions.FILE_DIRECTORY_FILE).close(False)
    for entry in sorted(os.scandir(here), key=lambda e: e.name):
        if entry.is_dir():
            put(entry.path, there + "\\" + entry.name)
            continue
        it = opened(there + "\\" + entry.name, FilePipePrinterAccessMask.FILE_WRITE_DATA,
                    CreateDisposition.FILE_CREATE, CreateOptions.FILE_NON_DIRECTORY_FILE)
        with open(entry.path, "rb") as file:
            at = 0
            while piece := file.read(65536):
                assert it.write(piece, at) == len(piece)
                at += len(piece)
        it.close(False)


def entries(there):
    it = opened(there, DirectoryAccessMask.FILE_LIST_DIRECTORY, CreateDisposition.FILE_OPEN,
                CreateOptions.FILE_DIRECTORY_FILE)
    found = []
    while True:
        try:
            found += it.query_directory("*", FileInformationClass.FILE_DIRECTORY_INFORMATION)
        except NoMoreFiles:
            it.close(False)
            return found


def get(there, here):
    os.mkdir(here)
    for entry in entries(there):
        leaf = entry["file_name"].get_value().decode("utf-16-le")
        if leaf in (".", ".."):
            continue
        path = there + "\\" + leaf
        if entry["file_attributes"].has_flag(FileAttributes.FILE_ATTRIBUTE_DIRECTORY):
            get(path, os.path.join(here, leaf))
            continue
        size = entry["end_of_file"].get_value()
        it = opened(path, FilePipePrinterAccessMask.FILE_READ_DATA, CreateDisposition.FILE_OPEN,
                    CreateOptions.FILE_NON_DIRECTORY_FILE)
        with open(os.path.join(here, leaf), "wb") as file:
            for at in range(0, size, 65536):
                file.write(it.read(at, min(65536, size - at)))
        it.close(False)


put(tree, name)
get(name, os.path.join(back, name))
connection.disconnect()
