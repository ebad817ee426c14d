"""What is known of files and volumes."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Optional, Tuple, Union

#: A path in a volume. It begins at the root, with a slash or without.
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

#: A size in bytes, or as people write it: ``"64M"``.
Size = Union[int, str]


class Stat(NamedTuple):
    """What is known of a file or directory. Times are nanoseconds since 1970; ``mtime`` and the others are seconds."""

    #: ``file``, ``directory``, ``symlink``, ``fifo``, ``socket``, ``char`` or ``block``.
    kind: str
    #: Permission bits and type, as ``os.stat`` has them.
    mode: int
    nlink: int
    uid: int
    gid: int
    #: Length of the content in bytes.
    size: int
    #: Bytes that it takes on the volume.
    allocated: int
    ino: int
    atime_ns: int
    mtime_ns: int
    ctime_ns: int
    #: Birth, where the format keeps it.
    birthtime_ns: Optional[int]

    @property
    def atime(self) -> float:
        """Last access."""
        return self.atime_ns / 1e9

    @property
    def mtime(self) -> float:
        """Last change of the content."""
        return self.mtime_ns / 1e9

    @property
    def ctime(self) -> float:
        """Last change of content or attributes."""
        return self.ctime_ns / 1e9

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return self.kind == "directory"

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.kind == "file"


class Entry(NamedTuple):
    """An entry of a directory."""

    name: str
    path: str
    #: As :attr:`Stat.kind`.
    kind: str
    #: None if it is damaged.
    stat: Optional[Stat]

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return self.kind == "directory"

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.kind == "file"


class Space(NamedTuple):
    """How full a volume is, in bytes and in nodes."""

    total: int
    free: int
    available: int
    nodes: int
    nodes_free: int


def stat_of(told: Tuple[Any, ...]) -> Stat:
    """Returns attributes as the native part tells them."""
    return Stat._make(told)


def encoded(path: Path) -> bytes:
    """Returns a path as volumes have it. What is no UTF-8 in a name stands as Python's ``surrogateescape`` has it."""
    path = os.fspath(path)
    return path if isinstance(path, bytes) else path.encode("utf-8", "surrogateescape")


def decoded(path: bytes) -> str:
    """Returns a path of a volume as text, from which :func:`encoded` makes the same bytes."""
    return path.decode("utf-8", "surrogateescape")


def bytes_of(size: Size) -> int:
    """Returns a size in bytes."""
    if isinstance(size, int):
        return size
    from ._volary import parse_size

    found = parse_size(size)
    if found is None:
        raise ValueError(f"not a size: {size!r}; write 4096, '64M', '1.5G'")
    return found
