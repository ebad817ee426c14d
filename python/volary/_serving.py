"""Servers and mounts."""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType
from typing import Any, Mapping, Optional, Sequence, Tuple, Type, Union

from . import _volary
from ._errors import Busy
from ._types import decoded, encoded
from ._volume import Volume, open


class Server:
    """A volume that is served, by threads of its own, until it is closed; see :func:`serve`."""

    def __init__(self, native: _volary.Server, volume: Volume, owns: bool) -> None:
        self._native = native
        self.volume = volume
        self._owns = owns

    @property
    def nfs(self) -> Optional[Tuple[str, int]]:
        """Host and port of NFS."""
        return self._native.nfs

    @property
    def smb(self) -> Optional[Tuple[str, int]]:
        """Host and port of SMB."""
        return self._native.smb

    def wait(self) -> None:
        """Waits until the user interrupts."""
        _wait()

    def close(self) -> None:
        """Stops it. What is being done is done to its end. The volume is closed if :func:`serve` has opened it."""
        try:
            self._native.stop()
        finally:
            if self._owns:
                self._owns = False
                self.volume.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


def serve(
    source: Any,
    *,
    nfs: Union[None, bool, str] = None,
    smb: Union[None, bool, str] = None,
    name: str = "volume",
    write: Optional[bool] = None,
    users: Optional[Mapping[str, str]] = None,
    clients: Sequence[str] = (),
    squash: str = "root",
    **how: Any,
) -> Server:
    """Serves a volume, or what :func:`open` opens, by NFS, SMB or both::

        with volary.serve("disk.img", nfs=True) as server:
            host, port = server.nfs

    ``nfs`` and ``smb`` are ``"HOST:PORT"``; ``True`` is a free port of this host alone. Clients mount ``name``. ``write`` lets
    them change it: what the volume itself lets unless it is said, and not what is opened here. SMB is for ``users``, a
    password for each, who have this process's rights on the volume. NFS believes the word of who calls, so ``clients``
    (``"192.168.1.0/24"``) says whom but this host it is for; ``squash`` whose rights are nobody's: ``"root"``'s,
    ``"none"``, ``"all"``.
    """
    if nfs is None and smb is None:
        raise ValueError("nothing to serve by: nfs=True or smb=True")
    if smb and not users:
        raise ValueError("SMB needs users: {'name': 'password'}")
    volume, owns = _volume(source, bool(write), how)
    may_write = volume.writable if write is None else write
    serving = {
        "name": name,
        "nfs": _address(nfs),
        "smb": _address(smb),
        "write": may_write,
        "squash": squash,
        "clients": list(clients),
        "users": list((users or {}).items()),
        "key": os.urandom(16),
        "instance": time.time_ns(),
    }
    try:
        server = Server(volume._native.serve(serving), volume, owns)
    except BaseException:
        if owns:
            volume.close()
        raise
    return volume._keep(server)  # type: ignore[no-any-return]


def _address(given: Union[None, bool, str]) -> Optional[str]:
    if given is True:
        return "127.0.0.1:0"
    return given or None


class Mount:
    """A volume that is mounted, until it is closed; see :func:`mount`."""

    def __init__(self, native: _volary.Mount, volume: Volume, owns: bool) -> None:
        self._native = native
        self.volume = volume
        self._owns = owns

    @property
    def path(self) -> str:
        """Where it is mounted."""
        return decoded(self._native.path)

    def wait(self) -> None:
        """Waits until the user interrupts."""
        _wait()

    def unmount(self, lazily: bool = False) -> None:
        """Unmounts it. In use, it stays mounted, and :class:`Busy` is raised; ``lazily`` takes it from its place all the
        same, and it ends with its last user."""
        self._native.unmount(lazily)

    def close(self) -> None:
        """Unmounts it, lazily if it is in use. The volume is closed if :func:`mount` has opened it."""
        try:
            try:
                self.unmount()
            except Busy:
                self.unmount(lazily=True)
        finally:
            if self._owns:
                self._owns = False
                self.volume.close()

    def __enter__(self) -> "Mount":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


def mount(
    source: Any,
    dir: Union[str, "os.PathLike[str]"],
    *,
    write: Optional[bool] = None,
    options: str = "",
    **how: Any,
) -> Mount:
    """Mounts a volume, or what :func:`open` opens, on a directory of this host, by FUSE::

        with volary.mount("disk.img", "/mnt/disk") as mounted:
            print(os.listdir(mounted.path))

    ``options`` are those of the mount: ``"allow_other,noexec"``. How a volume is opened has its own names, but for
    ``options``.

    Of a driver in Python, whose answers wait for the interpreter: use the mount from other processes. A call that keeps
    the interpreter's lock and waits for the mount would wait without end: reading an ``mmap`` of a file on it, or starting a program in it.
    """
    volume, owns = _volume(source, bool(write), how)
    may_write = volume.writable if write is None else write
    try:
        native = volume._native.mount(encoded(dir), options, may_write)
        mounted = Mount(native, volume, owns)
    except BaseException:
        if owns:
            volume.close()
        raise
    return volume._keep(mounted)  # type: ignore[no-any-return]


def _volume(source: Any, write: bool, how: Mapping[str, Any]) -> Tuple[Volume, bool]:
    if isinstance(source, Volume):
        if how:
            raise TypeError(f"the volume is open already: {', '.join(how)}")
        if write and not source.writable:
            raise ValueError(f"{source!r} takes no changes")
        return source, False
    return open(source, write=write, **how), True


def _wait() -> None:
    threading.Event().wait()
