"""Volumes as file systems of fsspec: protocol ``volary``.

::

    import fsspec, pandas

    with fsspec.open("volary://docs/a.csv::disk.img") as f: ...
    pandas.read_csv("volary://docs/a.csv::disk.img")
    fs = fsspec.filesystem("volary", fo="disk.img", write=True)

What holds the volume may be a URL itself: ``volary://a.csv::s3://bucket/disk.img``, which is only read.
"""

from __future__ import annotations

import io
import os
import threading
import weakref
from typing import IO, Any, Dict, List, Optional, Sequence, Tuple, Union

import fsspec
from fsspec.spec import AbstractFileSystem

from ._errors import Error
from ._files import BUFFER, RawFile
from ._types import Size, Stat, encoded
from ._volume import Volume, open

#: Volumes that are open for file systems: fsspec makes one for each thread, and an image is opened for changes once.
_SHARED: "weakref.WeakValueDictionary[Tuple[Any, ...], Volume]" = weakref.WeakValueDictionary()
_LOCK = threading.Lock()


def _in_fork() -> None:
    """Forgets what a thread of the other process may have held or opened."""
    global _LOCK
    _LOCK = threading.Lock()
    _SHARED.clear()


os.register_at_fork(after_in_child=_in_fork)


class VolaryFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """A volume as a file system of fsspec.

    Parameters
    ----------
    fo:
        What holds the volume: as :func:`volary.open` has it, a URL that fsspec knows, or a binary file object.
    volume:
        A volume that is open, in place of ``fo``.
    write:
        Opens it for changes. Nobody else can open the image then, until :meth:`close`, or the end of this process.
    kind, layers, options, memory:
        As :func:`volary.open` has them.
    target_protocol, target_options:
        The protocol of ``fo``, and what its file system is made with.

    Instances are cached, as fsspec's are; those of one process share a volume. They can be pickled, and used after a fork: they
    open the volume anew there.
    """

    protocol = "volary"
    root_marker = ""

    def __init__(
        self,
        fo: Any = "",
        volume: Optional[Volume] = None,
        write: bool = False,
        kind: Optional[str] = None,
        layers: Sequence[str] = (),
        options: str = "",
        memory: Optional[Size] = None,
        target_protocol: Optional[str] = None,
        target_options: Optional[Dict[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if volume is None and not fo:
            raise ValueError("no volume; name what holds it: volary://a.csv::disk.img")
        self.fo = fo
        self.write = write
        self.target_protocol = target_protocol
        self.target_options = target_options
        self._how: Dict[str, Any] = {
            "kind": kind,
            "layers": list(layers),
            "options": options,
            "memory": memory,
        }
        self._given = volume
        self._opened: Optional[Volume] = None
        # What is wrong with the image is told now, and not at the first file.
        self.volume  # noqa: B018

    @property
    def volume(self) -> Volume:
        """The volume. It is opened again after :meth:`close`, and in a process that was forked off."""
        if self._given is not None:
            return self._given
        opened = self._opened
        if opened is None or opened.closed:
            with _LOCK:
                opened = self._opened = self._shared()
        return opened

    def _shared(self) -> Volume:
        local = self._local()
        if local is None:
            return self._remote()
        key = (local,) + tuple(str(value) for value in self._how.values())
        # Whoever changes it is the only one, and lets others in this process read it.
        for write in (True,) if self.write else (True, False):
            found = _SHARED.get((write,) + key)
            if found is not None and not found.closed:
                return found
        opened = _SHARED[(self.write,) + key] = open(local, write=self.write, **self._how)
        return opened

    def _local(self) -> Optional[str]:
        """Returns the name of what volary opens by itself; None for what fsspec is asked for."""
        if not isinstance(self.fo, (str, os.PathLike)):
            return None
        name = os.fspath(self.fo)
        protocol = self.target_protocol
        if protocol is None and "://" in name and not name.startswith("nfs://"):
            protocol = name.split("://", 1)[0]
        if protocol in (None, "file", "local"):
            for prefix in ("file://", "local://"):
                name = name[len(prefix) :] if name.startswith(prefix) else name
            return os.path.abspath(name) if os.path.exists(name) else os.path.expanduser(name)
        return None

    def _remote(self) -> Volume:
        if self.write:
            raise ValueError(f"the volume in {self.fo} is only read; copy it to a file to change it")
        file = self.fo
        if isinstance(file, (str, os.PathLike)):
            options = self.target_options or {}
            file = fsspec.open(file, "rb", protocol=self.target_protocol, **options)
        if hasattr(file, "open") and not hasattr(file, "read"):
            file = file.open()
        return open(file, **self._how)

    def close(self) -> None:
        """Closes the volume, for all that use it in this process: what was written is durable then. Of a volume that was
        given nothing happens."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def sync(self) -> None:
        """Makes what was written durable."""
        self.volume.sync()

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        stripped = super()._strip_protocol(path)
        if isinstance(stripped, list):
            return [one.lstrip("/") for one in stripped]
        return stripped.lstrip("/")

    @property
    def fsid(self) -> str:
        return f"volary-{self.volume.name}"

    # Names.

    def info(self, path: Any, **kwargs: Any) -> Dict[str, Any]:
        path = self._strip_protocol(path)
        return self._info(path, self.volume.stat(path, follow_symlinks=False))

    def _info(self, path: str, stat: Optional[Stat], kind: str = "other") -> Dict[str, Any]:
        if stat is None:
            return {"name": path, "size": None, "type": _type(kind)}
        info: Dict[str, Any] = {"islink": stat.kind == "symlink"}
        if info["islink"]:
            info["destination"] = self.volume.readlink(path)
            try:
                stat = self.volume.stat(path)
            except Error:
                # It leads nowhere.
                pass
        info.update(
            name=path,
            size=0 if stat.is_dir else stat.size,
            type=_type(stat.kind),
            created=(stat.ctime_ns if stat.birthtime_ns is None else stat.birthtime_ns) / 1e9,
            mtime=stat.mtime,
            mode=stat.mode,
            uid=stat.uid,
            gid=stat.gid,
            ino=stat.ino,
            nlink=stat.nlink,
        )
        return info

    def ls(self, path: Any, detail: bool = True, **kwargs: Any) -> List[Any]:
        path = self._strip_protocol(path)
        try:
            entries = self.volume.list(path)
        except NotADirectoryError:
            info = self.info(path)
            return [info] if detail else [info["name"]]
        before = f"{path}/" if path else ""
        if not detail:
            return sorted(before + entry.name for entry in entries)
        infos = [self._info(before + entry.name, entry.stat, entry.kind) for entry in entries]
        return sorted(infos, key=lambda info: str(info["name"]))

    def exists(self, path: Any, **kwargs: Any) -> bool:
        return self.volume.exists(self._strip_protocol(path))

    def isdir(self, path: Any) -> bool:
        return self.volume.is_dir(self._strip_protocol(path))

    def isfile(self, path: Any) -> bool:
        return self.volume.is_file(self._strip_protocol(path))

    def lexists(self, path: Any, **kwargs: Any) -> bool:
        """Returns whether there is something of this name, if only a symlink that leads nowhere."""
        try:
            self.volume.stat(self._strip_protocol(path), follow_symlinks=False)
            return True
        except (FileNotFoundError, NotADirectoryError):
            return False

    def created(self, path: Any) -> Any:
        return _moment(self.info(path)["created"])

    def modified(self, path: Any) -> Any:
        return _moment(self.info(path)["mtime"])

    # Changes of names.

    def mkdir(self, path: Any, create_parents: bool = True, **kwargs: Any) -> None:
        path = self._strip_protocol(path)
        if create_parents and not self.exists(path):
            self.volume.mkdir(path, parents=True)
        else:
            self.volume.mkdir(path)

    def makedirs(self, path: Any, exist_ok: bool = False) -> None:
        path = self._strip_protocol(path)
        if path:
            self.volume.mkdir(path, parents=True, exist_ok=exist_ok)

    def rmdir(self, path: Any) -> None:
        path = self._strip_protocol(path)
        if not self.volume.stat(path, follow_symlinks=False).is_dir:
            raise NotADirectoryError(path)
        self.volume.remove(path)

    def _rm(self, path: Any) -> None:
        path = self._strip_protocol(path)
        if self.volume.stat(path, follow_symlinks=False).is_dir:
            raise IsADirectoryError(path)
        self.volume.remove(path)

    rm_file = _rm

    def rm(self, path: Any, recursive: bool = False, maxdepth: Optional[int] = None) -> None:
        if maxdepth is not None:
            super().rm(path, recursive=recursive, maxdepth=maxdepth)
            return
        # Patterns are looked up before anything is removed, and a directory is removed with all in it.
        paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        for found in reversed(self.expand_path([self._strip_protocol(one) for one in paths])):
            if found == "":
                for entry in self.volume.list():
                    self.rm(entry.name, recursive=recursive)
            elif recursive:
                if self.lexists(found):
                    self.volume.remove(found, recursive=True)
            else:
                self._rm(found)

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: Optional[int] = None,
        **kwargs: Any,
    ) -> None:
        old, new = self._strip_protocol(path1), self._strip_protocol(path2)
        if old == new:
            return
        if self.isdir(new):
            new = f"{new}/{old.rsplit('/', 1)[-1]}".lstrip("/")
        self.volume.rename(old, new)

    mv_file = mv

    def cp_file(self, path1: Any, path2: Any, **kwargs: Any) -> None:
        old, new = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.isdir(old):
            self.makedirs(new, exist_ok=True)
            return
        if self.exists(new) and self.volume.stat(old).ino == self.volume.stat(new).ino:
            # The same file: to open it for writing would empty it.
            return
        self._parents(new)
        with self.volume.open(old, "rb") as source:
            with self.volume.open(new, "wb") as target:
                while True:
                    part = source.read(1 << 20)
                    if not part:
                        break
                    target.write(part)

    def touch(self, path: Any, truncate: bool = True, **kwargs: Any) -> None:
        path = self._strip_protocol(path)
        if truncate or not self.exists(path):
            self._parents(path)
            self.volume.open(path, "wb").close()
        else:
            now = _now()
            self.volume.utime(path, atime_ns=now, mtime_ns=now)

    def link(self, src: Any, dst: Any, **kwargs: Any) -> None:
        """Gives a file one more name."""
        self.volume.link(self._strip_protocol(src), self._strip_protocol(dst))

    def symlink(self, src: Any, dst: Any, **kwargs: Any) -> None:
        """Makes a symlink at ``dst`` that holds ``src``."""
        self.volume.symlink(src, self._strip_protocol(dst))

    def _parents(self, path: str) -> None:
        """Makes the directories above, which object stores do not have and programs for them do not make."""
        if "/" in path:
            self.volume.mkdir(path.rsplit("/", 1)[0], parents=True, exist_ok=True)

    # Content.

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: Optional[int] = None,
        autocommit: bool = True,
        cache_options: Optional[Dict[str, Any]] = None,
        **kwargs: Any,
    ) -> IO[bytes]:
        path = self._strip_protocol(path)
        size = block_size if isinstance(block_size, int) and block_size > 1 else -1
        if mode == "rb":
            file = self.volume.open(path, "rb", size)
            # As other file systems of fsspec have it.
            file.size = file.raw._file.size()  # type: ignore[attr-defined]
            return file
        self._parents(path)
        if autocommit:
            return self.volume.open(path, mode, size)
        return _Pending(self.volume, path, mode, size)

    def cat_file(
        self, path: Any, start: Optional[int] = None, end: Optional[int] = None, **kwargs: Any
    ) -> bytes:
        path = self._strip_protocol(path)
        if start is None and end is None:
            return self.volume.read(path)
        return self.volume.cat_ranges([path], start, end)[0]  # type: ignore[no-any-return]

    def cat(self, path: Any, recursive: bool = False, on_error: str = "raise", **kwargs: Any) -> Any:
        paths = self.expand_path(path, recursive=recursive)
        if len(paths) == 1 and isinstance(path, str) and paths[0] == self._strip_protocol(path):
            return self.cat_file(paths[0], **kwargs)
        if kwargs:
            return super().cat(path, recursive=recursive, on_error=on_error, **kwargs)
        files = [one for one in paths if not (recursive and self.isdir(one))]
        found = self.volume.cat_ranges(
            files, on_error="raise" if on_error == "raise" else "return"
        )
        told = zip(files, found)
        if on_error == "omit":
            return {one: data for one, data in told if not isinstance(data, Exception)}
        return dict(told)

    def cat_ranges(
        self,
        paths: List[Any],
        starts: Union[None, int, List[Optional[int]]],
        ends: Union[None, int, List[Optional[int]]],
        max_gap: Optional[int] = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> List[Any]:
        """Returns bytes of many files, or many ranges of some, read in the order in which they lie."""
        if not isinstance(paths, list):
            raise TypeError("paths is a list")
        stripped = [self._strip_protocol(path) for path in paths]
        how = "raise" if on_error == "raise" else "return"
        return self.volume.cat_ranges(stripped, starts, ends, on_error=how)

    def pipe_file(self, path: Any, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        path = self._strip_protocol(path)
        self._parents(path)
        if mode == "create":
            with self.volume.open(path, "xb") as file:
                file.write(value)
        elif self.isdir(path):
            raise IsADirectoryError(path)
        else:
            self.volume.write(path, value)

    def ukey(self, path: Any) -> str:
        stat = self.volume.stat(self._strip_protocol(path))
        return fsspec.utils.tokenize(self.fsid, stat)  # type: ignore[no-any-return]


class _Pending(io.BufferedWriter):
    """A file of a transaction: it stands under another name until it is committed."""

    def __init__(self, volume: Volume, path: str, mode: str, size: int) -> None:
        self._volume = volume
        self.path = path
        self._spare = f"{path}.{os.getpid()}-{threading.get_ident()}.tmp"
        if mode == "ab" and volume.exists(path):
            volume.write(self._spare, volume.read(path))
        raw = RawFile(volume, encoded(self._spare), self._spare, "a" if mode == "ab" else "w")
        super().__init__(raw, size if size > 1 else BUFFER)
        volume._keep(self)

    def commit(self) -> None:
        """Gives it its name."""
        self.close()
        self._volume.rename(self._spare, self.path)

    def discard(self) -> None:
        """Takes it away."""
        self.close()
        self._volume.remove(self._spare)


def _type(kind: str) -> str:
    return kind if kind in ("file", "directory") else "other"


def _moment(seconds: float) -> Any:
    import datetime

    return datetime.datetime.fromtimestamp(seconds, tz=datetime.timezone.utc)


def _now() -> int:
    import time

    return time.time_ns()
