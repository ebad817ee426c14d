import os, sys
from impacket.smbconnection import SMBConnection
from impacket.smb3structs import SMB2_DIALECT_21, SMB2_DIALECT_311

port, share, way, tree, name, back = int(sys.argv[1]), *sys.argv[2:]
dialect = {"2.1": SMB2_DIALECT_21, "3.1.1": SMB2_DIALECT_311}[way]
client = SMBConnection("127.0.0.1", "127.0.0.1", sess_port=port, preferredDialect=dialect)
client.login("tester", "pass")


def put(here, there):
    client.createDirectory(share, there)
    for entry in sorted(os.scandir(here), key=lambda e: e.name):
        if entry.is_dir():
            put(entry.path, there + "\\" + entry.name)
        else:
            with open(entry.path, "rb") as file:
                client.putFile(share, there + "\\" + entry.name, file.read)


def get(there, here):
    os.mkdir(here)
    for entry in client.listPath(share, there + "\\*"):
        leaf = entry.get_longname()
        if leaf in (".", ".."):
            continue
        if entry.is_directory():
            get(there + "\\" + leaf, os.path.join(here, leaf))
        else:
            with open(os.path.join(here, leaf), "wb") as file:
                client.getFile(share, there + "\\" + leaf, file.write)


put(tree, name)
get(name, os.path.join(back, name))
client.logoff()
