"""File systems in user space: any volume, any layer, any server.

A volume is an image file, a partition of one, a directory of the host, an NFS export, or a driver of your own::

    import volary

    volary.mkfs("disk.img", "fat32", "64M")
    with volary.open("disk.img", write=True) as vol:
        vol.mkdir("/docs")
        vol.write("/docs/notes.txt", b"kept")
    with volary.open("disk.img") as vol:
        print(vol.read("/docs/notes.txt"))

With ``fsspec`` installed, ``volary://docs/notes.txt::disk.img`` works wherever a URL does: in pandas, dask, pyarrow.
"""

from ._bulk import Bulk, bulk
from ._check import CheckResult, Finding, check, mkfs
from ._conform import CaseFailure, ConformReport, conform, write_reference
from ._driver import Dir, File, ReadOnly, Symlink, volume
from ._errors import (
    Busy,
    Corrupt,
    Error,
    Exists,
    Interrupted,
    IsADirectory,
    NoPermission,
    NotADirectory,
    NotFound,
)
from ._serving import Mount, Server, mount, serve
from ._types import Entry, Space, Stat
from ._volume import Volume, Xattrs, open

__all__ = [
    "Bulk",
    "Busy",
    "CaseFailure",
    "CheckResult",
    "ConformReport",
    "Corrupt",
    "Dir",
    "Entry",
    "Error",
    "Exists",
    "File",
    "Finding",
    "Interrupted",
    "IsADirectory",
    "Mount",
    "NoPermission",
    "NotADirectory",
    "NotFound",
    "ReadOnly",
    "Server",
    "Space",
    "Stat",
    "Symlink",
    "Volume",
    "Xattrs",
    "bulk",
    "check",
    "conform",
    "mkfs",
    "mount",
    "open",
    "serve",
    "volume",
    "write_reference",
]
